import { isSetUp } from '../../../domain/accounts/accounts.ts'
import { type HealthFacts, readServerHealth } from '../../../domain/health/facts.ts'
import { firstDay, isFirstDay } from '../../../domain/health/first-day.ts'
import { readHistory } from '../../../domain/health/history.ts'
import { incidentsOf, readImpact } from '../../../domain/health/incidents.ts'
import { periods, rangeBetween } from '../../../domain/log/ranges.ts'
import { unitCurrency } from '../../../domain/money/amounts.ts'
import { visitOf } from '../access.ts'
import { eventStream, html } from '../answers.ts'
import { timeIn } from '../deliveries/query.ts'
import type { PageHandler } from '../page-handler.ts'
import { overviewPage } from './page.tsx'

export function overviewRoutes({ get, routes, ports, settings, withoutSession }: PageHandler): void {
  get('/admin', async ({ url }, pageContext) => {
    const { searchParams: query } = url
    const period = periods.find((known) => known === query.get('period')) ?? 'day'
    const { now } = pageContext
    const asked = ['from', 'until'].map((name) => query.get(name) || undefined)
    const [from, until] = asked.map((text) => timeIn(text))
    const isRead = from !== undefined && (until !== undefined || asked[1] === undefined)
    const range = isRead ? rangeBetween(from, until ?? now, now) : undefined
    const facts = await readServerHealth({ ...ports, ...settings.numbers }, settings, period, now)
    const statistics = range ? await ports.eventLog.statisticsIn(range) : facts.statistics
    const isUnknown = !range && asked.some((text) => text !== undefined)
    const history = await readHistory(ports, statistics, now)
    const { incidents, notes } = incidentsOf(facts)
    const [steps, ...found] = await Promise.all([
      readFirstDay(facts),
      ...incidents.map((incident) => readImpact(ports.eventLog, incident, settings.providerCodes, now)),
    ])
    return html(overviewPage(pageContext, { facts, found, notes, steps, statistics, history, isUnknown }))
  })

  async function readFirstDay({ providers, acknowledgements, statistics }: HealthFacts) {
    const hasTraffic = statistics.totals.verified > 0 || (await ports.guard.verifiedHistory()).length > 0
    if (!isFirstDay(hasTraffic, acknowledgements)) return null
    const [brands, apps, { rules, budgets }, { currency }, accounts, backups, files] = await Promise.all([
      ports.brands.list(),
      ports.apps.list(),
      ports.policy.rows(),
      ports.priceList(),
      ports.sessions.accounts(),
      ports.audit.list({ actions: ['data.backed-up'], limit: 1 }),
      ports.stats.files().catch(() => undefined),
    ])
    const owners = accounts.filter(({ role }) => role === 'owner')
    const setUp = owners.filter(isSetUp).length
    const steps = firstDay({
      activeBrands: brands.filter(({ status }) => status === 'active').length,
      apps: apps.length + ports.apps.configured.length,
      providers: providers.filter(({ channel, isForDevelopment }) => channel === 'SMS' && !isForDevelopment),
      rules,
      smsCountries: settings.smsCountries,
      hasPrices: currency !== unitCurrency,
      budgets,
      owners: setUp,
      invitedOwners: owners.length - setUp,
      hasBackup: files && backups.length > 0,
    })
    return steps.values().some(([isDone]) => !isDone) ? steps : null
  }

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
