import { eq } from 'drizzle-orm'
import type { RestingProviders } from '../../storage/storage.ts'
import type { Database } from './database.ts'
import { restingProviders } from './schema.ts'

/** What the nodes on one database tell each other of failing providers. */
export function createRestingProviders({
  orm,
  changes,
}: Pick<Database, 'orm' | 'changes'>): RestingProviders {
  return {
    tell: async (provider, resting) => {
      if (resting === undefined) {
        await orm.delete(restingProviders).where(eq(restingProviders.provider, provider))
        return
      }
      await orm
        .insert(restingProviders)
        .values({ provider, ...resting })
        .onConflictDoUpdate({ target: restingProviders.provider, set: resting })
    },
    listen: (changed) => {
      const read = async () => changed(await orm.select().from(restingProviders))
      // A hint: who can't read it now goes by what it finds itself.
      changes.onChange(() => void read().catch(() => undefined))
      void read().catch(() => undefined)
    },
  }
}
