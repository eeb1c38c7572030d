import { eq } from 'drizzle-orm'
import type { OpenCircuits } from '../store/store.ts'
import type { Database } from './database.ts'
import { openCircuitRows } from './schema.ts'

/** What the nodes on one database tell each other of failing providers. */
export function createOpenCircuits({ orm, changes }: Pick<Database, 'orm' | 'changes'>): OpenCircuits {
  return {
    tell: async (provider, openCircuits) => {
      if (openCircuits === undefined) {
        await orm.delete(openCircuitRows).where(eq(openCircuitRows.provider, provider))
        return
      }
      await orm
        .insert(openCircuitRows)
        .values({ provider, ...openCircuits })
        .onConflictDoUpdate({ target: openCircuitRows.provider, set: openCircuits })
    },
    listen: (changed) => {
      const read = async () => changed(await orm.select().from(openCircuitRows))
      // A hint: who can't read it now goes by what it finds itself.
      changes.onChange(() => void read().catch(() => undefined))
      void read().catch(() => undefined)
    },
  }
}
