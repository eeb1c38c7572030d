import { roleOf, sessionId } from '../../domain/accounts/sessions.ts'
import { type AuditFilters, type AuditGroup, auditGroups, withReasons } from '../../domain/ground/audit.ts'
import { type ProviderHealth, periods } from '../../domain/log/statistics.ts'
import { wayName } from '../../domain/log/stats.ts'
import { budgetStatuses } from '../../domain/money/budgets.ts'
import { readGuardWarnings } from '../../domain/operator/guard.ts'
import { html } from './answers.ts'
import { auditPage } from './audit/page.tsx'
import { overviewPage } from './overview/page.tsx'
import { type PageHandler, pageLength } from './page-handler.ts'
import { settingsPage } from './settings/page.tsx'

export function serverRoutes({ get, ports, settings }: PageHandler): void {
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
      readGuardWarnings({ ...ports, ...settings, guard: ports.guard }, settings.guard),
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
  get('/admin/audit', async ({ url }, pageContext) => {
    const query = url.searchParams
    const filters = auditFilters(query)
    const page = async (place: { before?: number | undefined; after?: number | undefined }) =>
      ports.audit.list({ ...filters, ...place, limit: pageLength + 1 })
    const [before, after] = [idIn(query.get('before')), idIn(query.get('after'))]
    const later = after === undefined ? [] : await page({ after })
    const isBetween = later.length > pageLength
    const found = isBetween ? later.slice(1) : await page({ before })
    const shown = found.slice(0, pageLength)
    const [first, last] = [shown.at(0)?.id, shown.at(-1)?.id]
    const newest = first ?? (before === undefined ? undefined : before - 1)
    const hasNewer =
      newest !== undefined && (isBetween || (before !== undefined && (await isFollowed(filters, newest))))
    const hasOlder = isBetween || found.length > pageLength
    const accounts = await ports.sessions.accounts()
    const model = {
      filters,
      people: accounts.map(({ email }) => email),
      records: await withReasons(shown, ports.requests),
      newer: hasNewer ? newest : null,
      next: hasOlder ? (last ?? null) : null,
    }
    return html(auditPage(pageContext, model))
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

  async function isFollowed(filters: AuditFilters, after: number): Promise<boolean> {
    return (await ports.audit.list({ ...filters, after, limit: 1 })).length > 0
  }
}

function auditFilters(query: URLSearchParams): AuditFilters {
  const text = (name: string) => query.get(name)?.trim() || undefined
  return {
    group: groups.find((group) => group === query.get('group')),
    actorName: text('by'),
    target: text('target'),
    withoutSignIns: query.get('hide') === 'sign-ins',
  }
}

const groups = Object.keys(auditGroups).filter((name): name is AuditGroup => name in auditGroups)

function idIn(text: string | null): number | undefined {
  return text !== null && /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : undefined
}
