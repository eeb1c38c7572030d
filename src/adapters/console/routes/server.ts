import { type ProviderHealth, periods } from '../../../domain/events/statistics.ts'
import { wayName } from '../../../domain/events/stats.ts'
import { budgetStatuses } from '../../../domain/money/budgets.ts'
import { withReasons } from '../../../domain/operator/audit.ts'
import { readGuardWarnings } from '../../../domain/operator/guard.ts'
import { roleOf, sessionId } from '../../../domain/operator/sessions.ts'
import { html } from '../answers.ts'
import { type PageHandler, pageLength } from '../page-handler.ts'
import { auditPage } from '../pages/audit.tsx'
import { overviewPage } from '../pages/overview.tsx'
import { settingsPage } from '../pages/settings.tsx'

export function serverRoutes({ get, ports, settings }: PageHandler): void {
  get('/admin', async ({ url }, pageContext) => {
    const period = periods.find((known) => known === url.searchParams.get('period')) ?? 'day'
    const { now } = pageContext
    const [
      isUsable,
      statistics,
      lastHour,
      accepted,
      rejections,
      guard,
      policy,
      failing,
      queue,
      failed,
      failingAlerts,
    ] = await Promise.all([
      ports.checkDatabase().then(
        () => true,
        () => false,
      ),
      ports.eventLog.statistics(period, now),
      ports.eventLog.lastHour(now),
      ports.eventLog.accepted(now),
      ports.eventLog.risingRejections(now),
      readGuardWarnings({ ...ports, ...settings, guard: ports.guard }, settings.guard),
      ports.policy.rows(),
      ports.events.failing(now),
      ports.jobs.status(),
      ports.jobs.failed(),
      ports.alerts.failing(now),
    ])
    const providers = ports.providerStates().map((state): ProviderHealth => {
      const quiet = { accepted: 0, failed: 0, unknown: 0 }
      const way = wayName(state.channel, state.name)
      const hasAccepted = accepted.has(way) || settings.developmentOnly.includes(state.name)
      return { ...state, lastHour: lastHour.get(way) ?? quiet, hasAccepted }
    })
    const { lost, lastLostAt } = ports.stats.eventLog()
    const isNews = lastLostAt !== null && lastLostAt >= statistics.from
    const store = { isUsable, lostRequests: isNews ? lost : 0 }
    const limited = ports.limited.list(now)
    return html(
      overviewPage(pageContext, {
        store,
        statistics,
        limited,
        budgets: await budgetStatuses(ports.budgets, policy.budgets, now),
        providers,
        guard,
        rejections,
        queue: { ...queue, failed },
        webhooks: policy.webhooks.map(({ appId, disabledAt }) => ({
          appId,
          disabledAt,
          failing: failing.get(appId),
        })),
        failingAlerts,
        reviewNumbers: pageContext.reviewNumbers,
      }),
    )
  })
  get('/admin/audit', async ({ url }, pageContext) => {
    const text = url.searchParams.get('before')
    const before = text !== null && /^[1-9][0-9]{0,14}$/.test(text) ? { before: Number(text) } : {}
    const records = await ports.audit.list({ ...before, limit: pageLength + 1 })
    const shown = records.slice(0, pageLength)
    const next = records.length > pageLength ? (shown.at(-1)?.id ?? null) : null
    return html(auditPage(pageContext, { records: await withReasons(shown, ports.requests), next }))
  })
  get('/admin/settings', async ({ visit }, pageContext) => {
    const [all, accounts] = await Promise.all([
      ports.sessions.list(pageContext.now),
      ports.sessions.accounts(),
    ])
    const isOwner = roleOf(visit) === 'owner'
    const sessions = all.map(({ tokenSha256, ...session }) => ({
      ...session,
      id: sessionId({ tokenSha256 }),
      person: accounts.find(({ id }) => id === session.operatorId)?.email ?? null,
      isOwn: tokenSha256 === visit.session.tokenSha256,
      mayEnd: isOwner || session.operatorId === visit.session.operatorId,
    }))
    const { inForce, databaseName, bun } = settings
    return html(settingsPage(pageContext, { settings: inForce, sessions, databaseName, bun }))
  })
}
