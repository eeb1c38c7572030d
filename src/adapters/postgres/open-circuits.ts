import { eq } from 'drizzle-orm'
import type { OpenCircuits } from '../store/store.ts'
import { raiseRevision } from './changes.ts'
import { type Database, ormOn } from './database.ts'
import { tables } from './schema.ts'

const { openCircuits } = tables

export function createOpenCircuits({
  orm,
  pool,
  changes,
}: Pick<Database, 'orm' | 'pool' | 'changes'>): OpenCircuits {
  return {
    share: (provider, circuit) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        if (circuit === undefined) {
          await inside.delete(openCircuits).where(eq(openCircuits.provider, provider))
        } else {
          await inside
            .insert(openCircuits)
            .values({ provider, ...circuit })
            .onConflictDoUpdate({ target: openCircuits.provider, set: circuit })
        }
        await raiseRevision(inside)
      }),
    listen: (changed) => {
      const read = async () => changed(await orm.select().from(openCircuits))
      // Only a hint: without it a node detects failures itself.
      changes.onChange(() => void read().catch(() => undefined))
      void read().catch(() => undefined)
    },
  }
}
