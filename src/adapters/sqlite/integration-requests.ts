import { count, desc, eq, ne } from 'drizzle-orm'
import type { IntegrationRequestRecord, IntegrationRequests } from '../../domain/integration/integration.ts'
import type { IntegrationRequestStore } from '../../domain/operator/operator.ts'
import type { Database } from './database.ts'
import { integrationRequests } from './schema.ts'

/** Where integration requests are added. */
export function createIntegrationRequests({
  orm,
  writer,
}: Pick<Database, 'orm' | 'writer'>): IntegrationRequests {
  return {
    add: (request) =>
      writer.write(() => {
        orm
          .insert(integrationRequests)
          .values({ ...request, status: 'pending' })
          .run()
      }),
  }
}

/** Integration requests in SQLite, as the operator sees them. */
export function createIntegrationRequestStore({ orm }: Pick<Database, 'orm'>): IntegrationRequestStore {
  const { read } = requestTable(orm)
  return {
    list: async ({ isPending, limit = -1, offset = 0 } = {}) =>
      orm
        .select()
        .from(integrationRequests)
        .where(
          isPending === undefined
            ? undefined
            : isPending
              ? eq(integrationRequests.status, 'pending')
              : ne(integrationRequests.status, 'pending'),
        )
        .orderBy(desc(integrationRequests.createdAt), desc(integrationRequests.id))
        .limit(limit)
        .offset(offset)
        .all(),
    pendingCount: async () =>
      orm
        .select({ pending: count() })
        .from(integrationRequests)
        .where(eq(integrationRequests.status, 'pending'))
        .get()?.pending ?? 0,
    get: async (id) => read(id),
  }
}

/** Integration requests as a step of the writer reads and decides them. */
export function requestTable(orm: Database['orm']) {
  return {
    read: (id: string): IntegrationRequestRecord | undefined =>
      orm.select().from(integrationRequests).where(eq(integrationRequests.id, id)).get(),
    decide(id: string, verdict: Partial<IntegrationRequestRecord>): void {
      orm.update(integrationRequests).set(verdict).where(eq(integrationRequests.id, id)).run()
    },
  }
}
