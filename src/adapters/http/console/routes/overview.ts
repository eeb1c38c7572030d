import type { Elysia } from 'elysia'
import { type ProviderHealth, periods } from '../../../../domain/statistics.ts'
import { wayName } from '../../../../domain/tallies.ts'
import { html } from '../answers.ts'
import type { ConsoleRoutePorts, Frame } from '../frame.ts'
import { overviewPage } from '../pages/overview.tsx'

/** What is going on. */
export function overviewRoutes(routes: Elysia, ports: ConsoleRoutePorts, { page }: Frame): void {
  routes.get(
    '/admin',
    page(async ({ url }, shell) => {
      const period = periods.find((known) => known === url.searchParams.get('period')) ?? 'day'
      const { now } = shell
      const [isUsable, statistics, lastHour] = await Promise.all([
        ports.checkDatabase().then(
          () => true,
          () => false,
        ),
        ports.journal.statistics(period, now),
        ports.journal.lastHour(now),
      ])
      const providers = ports.providerStates().map((state): ProviderHealth => {
        const quiet = { accepted: 0, failed: 0, unknown: 0 }
        return { ...state, lastHour: lastHour.get(wayName(state.channel, state.name)) ?? quiet }
      })
      const { lost, lastLostAt } = ports.stats.journal()
      const isNews = lastLostAt !== null && lastLostAt >= statistics.from
      const store = { isUsable, lostRequests: isNews ? lost : 0 }
      const limited = ports.limited.list(now)
      return html(overviewPage(shell, { store, statistics, limited, providers }))
    }),
  )
}
