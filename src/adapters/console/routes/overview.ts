import { type ProviderHealth, periods } from '../../../domain/events/statistics.ts'
import { wayName } from '../../../domain/events/stats.ts'
import { html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { overviewPage } from '../pages/overview.tsx'

export function overviewRoutes({ get, ports }: PageHandler): void {
  get('/admin', async ({ url }, pageContext) => {
    const period = periods.find((known) => known === url.searchParams.get('period')) ?? 'day'
    const { now } = pageContext
    const [isUsable, statistics, lastHour] = await Promise.all([
      ports.checkDatabase().then(
        () => true,
        () => false,
      ),
      ports.eventLog.statistics(period, now),
      ports.eventLog.lastHour(now),
    ])
    const providers = ports.providerStates().map((state): ProviderHealth => {
      const quiet = { accepted: 0, failed: 0, unknown: 0 }
      return { ...state, lastHour: lastHour.get(wayName(state.channel, state.name)) ?? quiet }
    })
    const { lost, lastLostAt } = ports.stats.eventLog()
    const isNews = lastLostAt !== null && lastLostAt >= statistics.from
    const store = { isUsable, lostRequests: isNews ? lost : 0 }
    const limited = ports.limited.list(now)
    return html(overviewPage(pageContext, { store, statistics, limited, providers }))
  })
}
