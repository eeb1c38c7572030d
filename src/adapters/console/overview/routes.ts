import { isSetUp } from '../../../domain/accounts/accounts.ts'
import { type ProviderHealth, periods } from '../../../domain/log/statistics.ts'
import { wayName } from '../../../domain/log/stats.ts'
import { budgetStatuses } from '../../../domain/money/budgets.ts'
import { readGuardWarnings } from '../../../domain/operator/guard.ts'
import { visitOf } from '../access.ts'
import { eventStream, html } from '../answers.ts'
import type { PageHandler } from '../page-handler.ts'
import { overviewPage } from './page.tsx'

export function overviewRoutes({ get, routes, ports, settings, withoutSession }: PageHandler): void {
  get('/admin', async ({ url }, pageContext) => {
    const period = periods.find((known) => known === url.searchParams.get('period')) ?? 'day'
    const { now } = pageContext
    const [
      isUsable,
      statistics,
      lastHour,
      lastFailures,
      accepted,
      rejections,
      guard,
      policy,
      failing,
      queue,
      failed,
      failingAlerts,
      freeBytes,
    ] = await Promise.all([
      ports.checkDatabase().then(
        () => true,
        () => false,
      ),
      ports.eventLog.statistics(period, now),
      ports.eventLog.lastHour(now),
      ports.eventLog.lastFailures(now),
      ports.eventLog.accepted(now),
      ports.eventLog.risingRejections(now),
      readGuardWarnings({ ...ports, ...settings.numbers }, settings.guard),
      ports.policy.rows(),
      ports.events.failing(now),
      ports.jobs.status(),
      ports.jobs.failed(),
      ports.alerts.failing(now),
      ports.stats.files().then(
        (files) => files?.diskFree,
        () => undefined,
      ),
    ])
    const providers = ports.providerStates().map((state): ProviderHealth => {
      const quiet = { accepted: 0, failed: 0, unknown: 0 }
      const way = wayName(state.channel, state.name)
      const hasAccepted = accepted.has(way) || settings.developmentOnly.includes(state.name)
      return { ...state, lastHour: lastHour.get(way) ?? quiet, hasAccepted }
    })
    const { lost, lastLostAt } = ports.stats.eventLog()
    const isNews = lastLostAt !== null && lastLostAt >= statistics.from
    const store = { isUsable, lostRequests: isNews ? lost : 0, freeBytes }
    const limited = ports.limited.list(now)
    return html(
      overviewPage(pageContext, {
        store,
        statistics,
        lastFailures,
        limited,
        budgets: await budgetStatuses(ports.budgets, policy.budgets, now),
        providers,
        guard,
        rejections,
        providerTimeoutMs: settings.providerTimeoutMs,
        queue: { ...queue, failed },
        webhooks: policy.webhooks.map(({ appId, disabledAt }) => ({
          appId,
          disabledAt,
          failing: failing.get(appId),
        })),
        failingAlerts,
        reviewNumbers: pageContext.reviewNumbers,
        clockStep: ports.latestClockStep(),
      }),
    )
  })
  // Sends an event to each live page when its content has changed.
  routes.get('/admin/live', async ({ request, server }) => {
    const visit = () => visitOf(ports, request, settings.publicUrl, false)
    const current = await visit()
    if (!current || (current.account && !isSetUp(current.account))) return withoutSession(request)
    server?.timeout(request, 0)
    const isSignedIn = async () => (await visit()) !== undefined
    return eventStream(ports.live.open(current.session.tokenSha256, isSignedIn))
  })
}
