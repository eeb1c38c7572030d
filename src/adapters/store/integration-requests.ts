import { count, desc, eq, ne } from 'drizzle-orm'
import type { IntegrationRequests } from '../../domain/integration/integration.ts'
import type { IntegrationRequestStore } from '../../domain/operator/operator.ts'
import type { StoreDatabase } from './database.ts'

export function createIntegrationRequestStore({
  orm,
  tables: { integrationRequests },
  write,
}: StoreDatabase): IntegrationRequests & IntegrationRequestStore {
  const { id: requestId, status, createdAt } = integrationRequests
  return {
    add: (request) => write(orm.insert(integrationRequests).values({ ...request, status: 'pending' })),
    list: async ({ isPending, limit = Number.MAX_SAFE_INTEGER, offset = 0 } = {}) =>
      orm
        .select()
        .from(integrationRequests)
        .where(isPending === undefined ? undefined : (isPending ? eq : ne)(status, 'pending'))
        .orderBy(desc(createdAt), desc(requestId))
        .limit(limit)
        .offset(offset),
    pendingCount: async () => {
      const [row] = await orm
        .select({ pending: count() })
        .from(integrationRequests)
        .where(eq(status, 'pending'))
      return row?.pending ?? 0
    },
    get: async (id) => {
      const [request] = await orm.select().from(integrationRequests).where(eq(requestId, id))
      return request
    },
  }
}
