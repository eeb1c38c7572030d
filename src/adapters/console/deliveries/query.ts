import { countryName } from '../../../domain/delivery/destination.ts'
import { channelNames } from '../../../domain/ground/contact.ts'
import { canonicalTag } from '../../../domain/ground/languages.ts'
import {
  callResults,
  calls,
  deliveryStatuses,
  errorClasses,
  type Found,
  type LogFilters,
  type LogList,
  type LogPosition,
  type PageOfLog,
  statusesIn,
  wordOf,
} from '../../../domain/log/log-search.ts'
import { isRequestId } from '../../../domain/request/request-context.ts'

// The filters of the two lists, as the queries of their URLs have them: keyed hashes in place of recipients.

const ofDeliveries = ['requestId', 'statuses', 'template', 'lang', 'errorClass'] as const
const ofCalls = ['call', 'result'] as const

export const callNames: Readonly<Record<keyof typeof calls, string>> = {
  code: 'send or resend a code',
  verify: 'verify a code',
  notify: 'notify',
}

/** Unknown values are left out: `unknownIn` has them. */
export function readLogQuery(query: URLSearchParams): LogFilters {
  const text = (name: string) => query.get(name)?.trim() || undefined
  const requestId = text('request')
  const statuses = statusesIn(query.getAll('status'))
  return {
    requestId: requestId !== undefined && isRequestId(requestId) ? requestId : undefined,
    recipientHashes: text('recipient')?.split('.'),
    since: timeIn(text('from')),
    until: timeIn(text('until')),
    statuses: statuses.length === 0 ? undefined : statuses,
    provider: text('provider'),
    app: text('app'),
    brand: text('brand')?.toLowerCase(),
    channel: knownIn(text('channel'), channelNames),
    country: text('country')?.toUpperCase(),
    template: text('template'),
    lang: canonicalTag(text('lang') ?? ''),
    errorClass: knownIn(text('error'), errorClasses),
    call: knownIn(text('call'), calls),
    result: knownIn(text('result'), callResults),
  }
}

/** Names and values that `readLogQuery` left out, such as `result=lost`. */
export function unknownIn(query: URLSearchParams): string[] {
  const all = [...query].filter(([name, value]) => name !== 'before' && value.trim() !== '')
  return all.flatMap(([name, value]) => {
    const isRead = Object.values(readLogQuery(new URLSearchParams([[name, value]]))).some(
      (each) => each !== undefined,
    )
    return isRead ? [] : [`${name}=${value}`]
  })
}

function knownIn<Name extends string>(
  value: string | undefined,
  names: Readonly<Record<Name, unknown>>,
): Name | undefined {
  return Object.keys(names).find((name): name is Name => name === value)
}

/** In UTC, as the fields send it. */
function timeIn(text = ''): number | undefined {
  const [, time] = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)Z?$/.exec(text) ?? []
  const at = Date.parse(`${time}Z`)
  return Number.isNaN(at) ? undefined : at
}

/** To the minute if it has no seconds. */
export function timeText(at: number): string {
  return new Date(at).toISOString().replace(/(?:(?::00)?\.000)?Z$/, '')
}

export function readPlace(text: string | null): LogPosition | undefined {
  const [, requestId, attempt] = /^([0-9a-f-]{36})\.([0-9]{1,7})$/.exec(text ?? '') ?? []
  return requestId === undefined ? undefined : { requestId, attempt: Number(attempt) }
}

/** @param file `.csv`: the export */
export function logUrl(
  list: LogList,
  filters: LogFilters,
  before: LogPosition | null = null,
  file = '',
): string {
  const query = new URLSearchParams()
  const set = (name: string, value: string | undefined) => value !== undefined && query.append(name, value)
  const own: LogFilters = { ...filters }
  for (const name of list === 'calls' ? ofDeliveries : ofCalls) Object.assign(own, { [name]: undefined })
  set('request', own.requestId)
  set('recipient', own.recipientHashes?.join('.'))
  for (const status of own.statuses ?? []) set('status', wordOf(status))
  set('call', own.call)
  set('result', own.result)
  set('provider', own.provider)
  set('app', own.app)
  set('brand', own.brand)
  set('channel', own.channel)
  set('country', own.country)
  set('template', own.template)
  set('lang', own.lang)
  set('error', own.errorClass)
  set('from', own.since === undefined ? undefined : `${timeText(own.since)}Z`)
  set('until', own.until === undefined ? undefined : `${timeText(own.until)}Z`)
  set('before', before === null ? undefined : `${before.requestId}.${before.attempt}`)
  const text = query.toString()
  return `/admin/${list}${file}${text === '' ? '' : `?${text}`}`
}

interface FilterInForce {
  readonly name: string
  readonly value: string
  /** The list without it. */
  readonly without: LogFilters
}

export function filtersInForce(list: LogList, filters: LogFilters, masked: string | null): FilterInForce[] {
  const { requestId, since, until, statuses, provider, app, brand, channel, country } = filters
  const { template, lang, errorClass, call, result } = filters
  const values: readonly (readonly [keyof LogFilters, string, string | undefined])[] = [
    ['requestId', 'Request', requestId],
    ['recipientHashes', 'Recipient', filters.recipientHashes && (masked ?? 'this recipient')],
    ['statuses', 'Status', statuses?.map((status) => deliveryStatuses[status].name).join(' or ')],
    ['call', 'Call', call && callNames[call]],
    ['result', 'Result', result && callResults[result].name],
    ['provider', 'Provider', provider],
    ['app', 'App', app],
    ['brand', 'Brand', brand],
    ['channel', 'Channel', channel && channelNames[channel]],
    ['country', 'Country', country && nameOfCountry(country)],
    ['template', 'Template', template],
    ['lang', 'Language', lang],
    ['errorClass', 'Cause', errorClass && errorClasses[errorClass]],
    ['since', 'From', since === undefined ? undefined : `${timeText(since).replace('T', ' ')} UTC`],
    ['until', 'Until', until === undefined ? undefined : `${timeText(until).replace('T', ' ')} UTC`],
  ]
  const others: readonly (keyof LogFilters)[] = list === 'calls' ? ofDeliveries : ofCalls
  return values.flatMap(([key, name, value]) =>
    value === undefined || others.includes(key)
      ? []
      : [{ name, value, without: { ...filters, [key]: undefined } }],
  )
}

function nameOfCountry(code: string): string {
  return /^[A-Z]{2}$/.test(code) ? countryName(code) : code
}

const formulaStart = /^\s*[=+\-@＝＋－＠]|^[\t\r\n]/

/** Spreadsheets in some languages separate cells at `;`, also within quotation marks that a comma precedes. */
const formulaInside = /[;\t][\s"]*(?=[=+\-@＝＋－＠])/g

/** One row, as RFC 4180 says. A spreadsheet does not read a cell, or a part of it, as a formula. */
export function csvRow(cells: readonly (string | number | null | undefined)[]): string {
  const text = cells.map((cell) => {
    const value = String(cell ?? '')
    const isFormula = typeof cell === 'string' && (formulaStart.test(value) || value.startsWith('\0'))
    const safe = `${isFormula ? "'" : ''}${value}`.replace(formulaInside, "$&'")
    return /[",;\t\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  })
  return `${text.join(',')}\r\n`
}

export type Columns<Row> = Readonly<Record<string, (row: Row) => string | number | null | undefined>>

/** Rows of a file. */
export const mostExported = 10_000
const exportStep = 1000

/** The parts of a CSV file: each is one search. */
export async function* csvOf<Row>(
  columns: Columns<Row>,
  find: (page: PageOfLog) => Promise<Found<Row>>,
): AsyncGenerator<string> {
  yield csvRow(Object.keys(columns))
  let before: LogPosition | undefined
  for (let left = mostExported; left > 0; ) {
    const { rows, next } = await find({ before, limit: Math.min(exportStep, left) })
    yield rows.map((row) => csvRow(Object.values(columns).map((cell) => cell(row)))).join('')
    if (next === null) return
    left -= rows.length
    before = next
  }
  yield csvRow([`More rows match. This file has the latest ${mostExported}. For earlier rows, set "Until".`])
}
