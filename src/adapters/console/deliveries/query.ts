import { countryName } from '../../../domain/delivery/destination.ts'
import { channelNames } from '../../../domain/ground/contact.ts'
import { canonicalTag } from '../../../domain/ground/languages.ts'
import {
  callResults,
  type calls,
  deliveryStatuses,
  errorClasses,
  type LogFilters,
  type LogList,
  type LogPosition,
  positionText,
  statusesIn,
  wordOf,
} from '../../../domain/log/log-search.ts'
import { isRequestId } from '../../../domain/request/request-context.ts'

// The filters of the two lists, as the queries of their URLs have them: keyed hashes in place of recipients.

interface LogField {
  readonly key: keyof LogFilters
  /** In URLs. */
  readonly name: string
  readonly label: string
  /** Undefined: of both lists. */
  readonly list?: LogList | undefined
  /** Undefined: unknown values. */
  read(texts: readonly string[]): LogFilters[keyof LogFilters]
  write(filters: LogFilters): string | readonly string[] | undefined
  words(filters: LogFilters, masked: string | null): string | undefined
}

export const callNames: Readonly<Record<keyof typeof calls, string>> = {
  code: 'send or resend a code',
  verify: 'verify a code',
  notify: 'notify',
}

export const resultNames: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(callResults).map(([result, { name }]) => [result, name]),
)

const logFields: readonly LogField[] = [
  textField(
    'requestId',
    'request',
    'Request',
    (text) => (isRequestId(text) ? text : undefined),
    'deliveries',
  ),
  {
    key: 'recipientHashes',
    name: 'recipient',
    label: 'Recipient',
    read: ([text]) => text?.split('.'),
    write: ({ recipientHashes }) => recipientHashes?.join('.'),
    words: ({ recipientHashes }, masked) => recipientHashes && (masked ?? 'this recipient'),
  },
  {
    key: 'statuses',
    name: 'status',
    label: 'Status',
    list: 'deliveries',
    read: (texts) => {
      const statuses = statusesIn(texts)
      return statuses.length === 0 ? undefined : statuses
    },
    write: ({ statuses }) => statuses?.map(wordOf),
    words: ({ statuses }) => statuses?.map((status) => deliveryStatuses[status].name).join(' or '),
  },
  choiceField('call', 'call', 'Call', callNames, 'calls'),
  choiceField('result', 'result', 'Result', resultNames, 'calls'),
  textField('provider', 'provider', 'Provider'),
  textField('app', 'app', 'App'),
  textField('brand', 'brand', 'Brand', (text) => text.toLowerCase()),
  choiceField('channel', 'channel', 'Channel', channelNames),
  {
    ...textField('country', 'country', 'Country', (text) => text.toUpperCase()),
    words: ({ country }) => country && nameOfCountry(country),
  },
  textField('template', 'template', 'Template', (text) => text, 'deliveries'),
  textField('lang', 'lang', 'Language', canonicalTag, 'deliveries'),
  choiceField('errorClass', 'error', 'Cause', errorClasses, 'deliveries'),
  timeField('since', 'from', 'From'),
  timeField('until', 'until', 'Until'),
]

function textField(
  key: 'requestId' | 'provider' | 'app' | 'brand' | 'country' | 'template' | 'lang',
  name: string,
  label: string,
  read: (text: string) => string | undefined = (text) => text,
  list?: LogList,
): LogField {
  const own = (filters: LogFilters) => filters[key]
  return { key, name, label, list, read: ([text = '']) => read(text), write: own, words: own }
}

function choiceField(
  key: 'call' | 'result' | 'channel' | 'errorClass',
  name: string,
  label: string,
  words: Readonly<Record<string, string>>,
  list?: LogList,
): LogField {
  return {
    key,
    name,
    label,
    list,
    read: ([text = '']) => (Object.hasOwn(words, text) ? text : undefined),
    write: (filters) => filters[key],
    words: (filters) => words[filters[key] ?? ''],
  }
}

function timeField(key: 'since' | 'until', name: string, label: string): LogField {
  return {
    key,
    name,
    label,
    read: ([text]) => timeIn(text),
    write: ({ [key]: at }) => (at === undefined ? undefined : `${timeText(at)}Z`),
    words: ({ [key]: at }) => (at === undefined ? undefined : `${timeText(at).replace('T', ' ')} UTC`),
  }
}

/** Unknown values are left out: `unknownIn` has them. */
export function readLogQuery(query: URLSearchParams): LogFilters {
  const read = logFields.map(({ key, name, read }) => {
    const texts = query.getAll(name).map((text) => text.trim())
    return [key, texts.every((text) => text === '') ? undefined : read(texts)] as const
  })
  return Object.fromEntries(read.filter(([, value]) => value !== undefined))
}

/** Names and values that `readLogQuery` left out, such as `result=lost`. */
export function unknownIn(query: URLSearchParams): string[] {
  const all = [...query].filter(([name, value]) => name !== 'before' && value.trim() !== '')
  const isRead = (pair: [string, string]) => Object.keys(readLogQuery(new URLSearchParams([pair]))).length > 0
  return all.filter((pair) => !isRead(pair)).map(([name, value]) => `${name}=${value}`)
}

/** In UTC, as the fields send it. */
export function timeIn(text = ''): number | undefined {
  const [, time] = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)Z?$/.exec(text) ?? []
  const at = Date.parse(`${time}Z`)
  return Number.isNaN(at) ? undefined : at
}

/** To the minute if it has no seconds. */
export function timeText(at: number): string {
  return new Date(at).toISOString().replace(/(?:(?::00)?\.000)?Z$/, '')
}

/** @param file `.csv`: the export */
export function logUrl(
  list: LogList,
  filters: LogFilters,
  before: LogPosition | null = null,
  file = '',
): string {
  const query = new URLSearchParams()
  for (const { name, write } of fieldsOf(list)) {
    for (const value of [write(filters) ?? []].flat()) query.append(name, value)
  }
  if (before) query.append('before', positionText(before))
  const text = query.toString()
  return `/admin/${list}${file}${text === '' ? '' : `?${text}`}`
}

function fieldsOf(list: LogList): readonly LogField[] {
  return logFields.filter((field) => field.list === undefined || field.list === list)
}

/** With the filters that are left `without` each. */
export function filtersInForce(list: LogList, filters: LogFilters, masked: string | null) {
  return fieldsOf(list).flatMap(({ key, label, words }) => {
    const value = words(filters, masked)
    const without: LogFilters = { ...filters, [key]: undefined }
    return value === undefined ? [] : [{ name: label, value, without }]
  })
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

export type FilterColumns<Row> = Readonly<Record<string, (row: Row) => string | number | null | undefined>>

/** Rows of a file. */
export const mostExported = 10_000
const exportStep = 200

/** The parts of a CSV file: each is one search. */
export async function* csvOf<Row, Position = LogPosition>(
  columns: FilterColumns<Row>,
  find: (page: { before: Position | undefined; limit: number }) => Promise<{
    readonly rows: readonly Row[]
    readonly next: Position | null
  }>,
  most = mostExported,
): AsyncGenerator<string> {
  yield csvRow(Object.keys(columns))
  let before: Position | undefined
  for (let left = most; left > 0; ) {
    const { rows, next } = await find({ before, limit: Math.min(exportStep, left) })
    yield rows.map((row) => csvRow(Object.values(columns).map((cell) => cell(row)))).join('')
    if (next === null) return
    left -= rows.length
    before = next
  }
  yield csvRow([`More rows match. This file has the latest ${mostExported}. For earlier rows, set "Until".`])
}
