import { eq } from 'drizzle-orm'
import type { OpenCircuits } from '../store/store.ts'
import { raiseRevision } from './changes.ts'
import { type Database, ormOn } from './database.ts'
import { openCircuitRows } from './schema.ts'

export function createOpenCircuits({
  orm,
  pool,
  changes,
}: Pick<Database, 'orm' | 'pool' | 'changes'>): OpenCircuits {
  return {
    share: (provider, openCircuits) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        if (openCircuits === undefined) {
          await inside.delete(openCircuitRows).where(eq(openCircuitRows.provider, provider))
        } else {
          await inside
            .insert(openCircuitRows)
            .values({ provider, ...openCircuits })
            .onConflictDoUpdate({ target: openCircuitRows.provider, set: openCircuits })
        }
        await raiseRevision(inside)
      }),
    listen: (changed) => {
      const read = async () => changed(await orm.select().from(openCircuitRows))
      // Only a hint: without it a node detects failures itself.
      changes.onChange(() => void read().catch(() => undefined))
      void read().catch(() => undefined)
    },
  }
}
