import { count, desc, eq, ne } from 'drizzle-orm'
import type { IntegrationRequests } from '../../domain/integration/integration.ts'
import type { IntegrationRequestStore } from '../../domain/operator/operator.ts'
import type { StoreDatabase } from './database.ts'
import { run } from './statements.ts'

export function createIntegrationRequestStore({
  orm,
  tables: { integrationRequests },
  serialTransaction,
}: StoreDatabase): IntegrationRequests & IntegrationRequestStore {
  const { id: requestId, status, createdAt } = integrationRequests
  const pendingFields = { count: count() }
  const isPending = eq(status, 'pending')
  return {
    add: (request, maxPending) =>
      serialTransaction(function* (inside) {
        const pending = yield* run(inside.select(pendingFields).from(integrationRequests).where(isPending))
        if ((pending[0]?.count ?? 0) >= maxPending) return false
        yield* run(inside.insert(integrationRequests).values({ ...request, status: 'pending' }))
        return true
      }),
    list: async ({ isPending: wanted, limit = Number.MAX_SAFE_INTEGER, offset = 0 } = {}) =>
      orm
        .select()
        .from(integrationRequests)
        .where(wanted === undefined ? undefined : (wanted ? eq : ne)(status, 'pending'))
        .orderBy(desc(createdAt), desc(requestId))
        .limit(limit)
        .offset(offset),
    pendingCount: async () => {
      const [row] = await orm.select(pendingFields).from(integrationRequests).where(isPending)
      return row?.count ?? 0
    },
    get: async (id) => {
      const [request] = await orm.select().from(integrationRequests).where(eq(requestId, id))
      return request
    },
  }
}
