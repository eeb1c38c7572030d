import { count, desc, eq, ne } from 'drizzle-orm'
import type { IntegrationRequestRecord, IntegrationRequests } from '../../domain/integration/integration.ts'
import type { IntegrationRequestStore } from '../../domain/operator/operator.ts'
import type { Database, Orm } from './database.ts'
import { integrationRequests } from './schema.ts'
import { storableRow } from './text.ts'

/** Integration requests in PostgreSQL. */
export function createIntegrationRequestStore({
  orm,
}: Pick<Database, 'orm'>): IntegrationRequests & IntegrationRequestStore {
  const { read } = requestTable(orm)
  return {
    add: async (request) => {
      await orm.insert(integrationRequests).values({ ...storableRow(request), status: 'pending' })
    },
    list: async ({ isPending, limit, offset = 0 } = {}) => {
      const all = orm
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
        .offset(offset)
      return limit === undefined ? all : all.limit(limit)
    },
    pendingCount: async () => {
      const [row] = await orm
        .select({ pending: count() })
        .from(integrationRequests)
        .where(eq(integrationRequests.status, 'pending'))
      return row?.pending ?? 0
    },
    get: read,
  }
}

/** Integration requests as a change of the operator reads and decides them. */
export function requestTable(orm: Orm) {
  return {
    async read(id: string): Promise<IntegrationRequestRecord | undefined> {
      const [row] = await orm.select().from(integrationRequests).where(eq(integrationRequests.id, id))
      return row
    },
    async decide(id: string, verdict: Partial<IntegrationRequestRecord>): Promise<void> {
      await orm.update(integrationRequests).set(storableRow(verdict)).where(eq(integrationRequests.id, id))
    },
  }
}
