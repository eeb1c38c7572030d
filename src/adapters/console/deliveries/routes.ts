import type { Delivery } from '../../../domain/delivery/delivery-reports.ts'
import { explainedCodes } from '../../../domain/delivery/provider-codes.ts'
import { effectivePrefixes } from '../../../domain/guard/status.ts'
import { type LoggedRequest, statusOf } from '../../../domain/log/event-log.ts'
import { resultOf } from '../../../domain/log/explain.ts'
import {
  deliveryStatuses,
  type Found,
  type LogFilters,
  type LogList,
  type PageOfLog,
  positionIn,
} from '../../../domain/log/log-search.ts'
import { explained } from '../../../domain/operator/reads.ts'
import { guardDecision } from '../../../domain/request/request-context.ts'
import type { RequestTrace } from '../../../domain/request/request-trace.ts'
import { otpLanguages } from '../../../domain/texts/otp-texts.ts'
import { templateKeys } from '../../../domain/texts/templates.ts'
import { csvDownload, html, seeOther } from '../answers.ts'
import { type PageHandler, pageLength } from '../page-handler.ts'
import { callsPage, deliveriesPage, type LogModel } from './log.tsx'
import { tracePage } from './page.tsx'
import { csvOf, type FilterColumns, filtersInForce, logUrl, readLogQuery, unknownIn } from './query.ts'

// The lists of the event log, their CSV files, and the page of a request.

export function deliveryRoutes({ get, ports, settings, missing }: PageHandler): void {
  const { eventLog } = ports

  get('/admin/deliveries', async ({ url }, pageContext) =>
    shown('deliveries', url, eventLog.findDeliveries, (model) => deliveriesPage(pageContext, model)),
  )
  get('/admin/calls', async ({ url }, pageContext) =>
    shown('calls', url, eventLog.findCalls, (model) => callsPage(pageContext, model)),
  )
  get('/admin/deliveries.csv', ({ url: { searchParams } }) => {
    const filters = readLogQuery(searchParams)
    const rows = csvOf(deliveryColumns, (page) => eventLog.findDeliveries(filters, page))
    return csvDownload('deliveries', rows)
  })
  get('/admin/calls.csv', ({ url: { searchParams } }) => {
    const filters = readLogQuery(searchParams)
    return csvDownload(
      'calls',
      csvOf(callColumns, (page) => eventLog.findCalls(filters, page)),
    )
  })

  async function shown<Row extends Pick<RequestTrace, 'recipient'>>(
    list: LogList,
    { searchParams }: URL,
    find: (filters: LogFilters, page: PageOfLog) => Promise<Found<Row>>,
    page: (model: LogModel<Row>) => string,
  ): Promise<Response> {
    const filters = readLogQuery(searchParams)
    // A form sends its empty fields too.
    if ([...searchParams.values()].includes('')) return seeOther(logUrl(list, filters))
    const unknown = unknownIn(searchParams)
    const before = positionIn(searchParams.get('before') ?? '')
    const isCounted = before === undefined && filtersInForce(list, filters, null).length > 0
    const [brands, apps, found, total] = await Promise.all([
      ports.brands.list(),
      ports.apps.list(),
      find(filters, { before, limit: pageLength }),
      isCounted ? eventLog.countFound(list, filters) : null,
    ])
    const masked = filters.recipientHashes ? (found.rows[0]?.recipient ?? null) : null
    const providers = ports.providerStates().map(({ name }) => name)
    const own = brands.flatMap(({ notifyTemplates }) => notifyTemplates)
    const known = {
      provider: [...new Set(filters.provider === undefined ? providers : [...providers, filters.provider])],
      app: [...new Set([...apps.map(({ appId }) => appId), ...ports.apps.configured])],
      brand: brands.map(({ slug }) => slug),
      template: [...new Set([...templateKeys, ...own])],
      lang: otpLanguages.map(({ tag }) => tag),
      country: countries(settings.numbers.isCountry),
    }
    const searchedTo = found.rows.length < pageLength ? (found.next?.at ?? null) : null
    const isLater = before !== undefined
    return html(page({ filters, unknown, total, masked, isLater, found, searchedTo, known }))
  }

  get('/admin/deliveries/:requestId', async ({ params: { requestId = '' } }, pageContext) => {
    const found = await explained({ ...ports, ...settings }, requestId, 1000)
    if (!found) {
      return missing(
        pageContext,
        'Request not found',
        'The event log has requests with valid credentials from the last `DELIVERY_LOG_DAYS` days.',
      )
    }
    const { trace, deliveries, explanation } = found
    const ofGuard = guardDecision(trace, trace.end?.error) && trace.country !== null
    const prefixes = ofGuard ? effectivePrefixes(await ports.guard.prefixes(), pageContext.now) : []
    const blockedPrefixes = prefixes
      .filter(
        ({ prefix, action }) =>
          action === 'block' && settings.numbers.countryOfPrefix(prefix) === trace.country,
      )
      .map(({ prefix }) => `+${settings.numbers.formatPrefix(prefix).replace(/^\+/, '')}`)
    const codes = deliveries.flatMap(({ provider, reason }) =>
      explainedCodes(reason ?? '', settings.providerCodes).filter((code) => code.provider === provider),
    )
    return html(tracePage(pageContext, { trace, deliveries, explanation, blockedPrefixes, codes }))
  })
}

let knownCountries: readonly string[] | undefined

function countries(isCountry: (code: string) => boolean): readonly string[] {
  const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ')
  knownCountries ??= letters.flatMap((one) => letters.map((other) => one + other)).filter(isCountry)
  return knownCountries
}

const deliveryColumns: FilterColumns<Delivery> = {
  time: ({ at }) => new Date(at).toISOString(),
  request_id: ({ requestId }) => requestId,
  attempt: ({ attempt }) => attempt,
  app: ({ app }) => app,
  brand: ({ brand }) => brand,
  channel: ({ channel }) => channel,
  recipient: ({ recipient }) => recipient,
  country: ({ country }) => country,
  provider: ({ provider }) => provider,
  route: ({ route }) => route,
  template: ({ template }) => template,
  lang: ({ lang }) => lang,
  segments: ({ segments }) => segments?.count,
  encoding: ({ segments }) => segments?.encoding,
  status: (row) => deliveryStatuses[statusOf(row)].name,
  error_class: ({ errorClass }) => errorClass,
  reason: ({ reason, report }) => reason ?? report?.reason ?? null,
  duration_ms: ({ durationMs }) => durationMs,
}

const callColumns: FilterColumns<LoggedRequest> = {
  time: ({ at }) => new Date(at).toISOString(),
  request_id: ({ requestId }) => requestId,
  app: ({ app }) => app,
  brand: ({ brand }) => brand,
  channel: ({ channel }) => channel,
  recipient: ({ recipient }) => recipient,
  recipients: ({ recipients }) => recipients,
  country: ({ country }) => country,
  operation: ({ operation }) => operation,
  status: ({ end }) => end?.status,
  error: ({ end }) => end?.error,
  result: (call) => resultOf(call).result,
  why: (call) => resultOf(call).why,
  reference: ({ reference }) => reference,
  duration_ms: ({ end }) => end?.durationMs,
}
