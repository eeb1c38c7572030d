import { count, desc, eq, max, ne } from 'drizzle-orm'
import { requestAlert, requestKind } from '../../domain/health/alerts.ts'
import type { IntegrationRequests } from '../../domain/integration/integration.ts'
import type { IntegrationRequestStore } from '../../domain/operator/changes.ts'
import { addAlert } from './alerts.ts'
import type { StoreDatabase } from './database.ts'
import { run } from './statements.ts'

export function createIntegrationRequestStore({
  orm,
  tables,
  now,
  serialTransaction,
}: StoreDatabase): IntegrationRequests & IntegrationRequestStore {
  const { integrationRequests, alerts } = tables
  const { id: requestId, status, createdAt } = integrationRequests
  const pendingFields = { count: count() }
  const isPending = eq(status, 'pending')
  return {
    add: (request, maxPending, alertChannels = []) =>
      serialTransaction(function* (inside) {
        const pending = yield* run(inside.select(pendingFields).from(integrationRequests).where(isPending))
        if ((pending[0]?.count ?? 0) >= maxPending) return undefined
        yield* run(inside.insert(integrationRequests).values({ ...request, status: 'pending' }))
        const latestAt = { latestAt: max(alerts.at) }
        const [latest] = yield* run(inside.select(latestAt).from(alerts).where(eq(alerts.kind, requestKind)))
        const alert = requestAlert(latest?.latestAt ?? undefined, now())
        if (alert.at === latest?.latestAt) return { alert: null }
        yield* addAlert(inside, tables, alert, alertChannels)
        return { alert }
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
