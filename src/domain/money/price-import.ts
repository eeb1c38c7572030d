import type { Actor, AuditEntry } from '../ground/audit.ts'
import { count, counted } from '../ground/format.ts'
import { currencies } from '../ground/words.ts'
import { amountForm, formatMicros, parseMicros } from './amounts.ts'
import type { Budget } from './budgets.ts'
import type { PriceGroup, PriceRow } from './prices.ts'

/** A row of a price file, or why the line is not one. */
export type PriceRecord =
  | { readonly line: number; readonly fields: readonly string[] }
  | { readonly line: number; readonly problem: string }

/** No `rows` if there is a problem. `problems`: sentences, at most 100 for bad lines, then the number of the others. */
export type CheckedPrices = ReturnType<typeof checkPrices>

const mostPrices = 200_000
const mostProblems = 100
const largestPrice = 1000

const columns = ['prefix', 'currency', 'price', 'provider']
const headers = [columns.slice(0, 3), columns]

/** Checks every row of a price file (D42). The first record is the header row. Records without text are skipped. */
export function checkPrices(records: Iterable<PriceRecord>, knownProviders: readonly string[]) {
  const rows: PriceRow[] = []
  const lines = new Map<string, number>()
  const problems: string[] = []
  let bad = 0
  let width = 0
  let currency: { readonly code: string; readonly line: number } | undefined

  const report = (line: number, faults: readonly string[]) => {
    bad += 1
    if (problems.length < mostProblems) problems.push(`Line ${line}: ${faults.join(' ')}`)
  }

  for (const record of records) {
    const { line } = record
    if ('problem' in record) {
      report(line, [record.problem])
      // Without a header row, the other lines have no meaning.
      if (width === 0) break
      continue
    }
    const fields = record.fields.map((field) => field.trim())
    if (fields.every((field) => field === '')) continue
    if (width === 0) {
      const isHeader = (names: readonly string[]) =>
        names.length === fields.length && names.every((name, index) => name === fields[index]?.toLowerCase())
      if (!headers.some(isHeader)) {
        report(line, [
          `The header row must be \`${headers.join('` or `')}\`, separated by commas or semicolons.`,
        ])
        break
      }
      width = fields.length
      continue
    }
    const { row, faults } = checkRow(fields, width, knownProviders)
    if (row) {
      currency ??= { code: row.currency, line }
      if (row.currency !== currency.code)
        faults.push(`\`currency\` must be ${currency.code}, as in line ${currency.line}.`)
      const key = `${row.prefix} ${row.provider ?? ''}`
      const first = lines.get(key)
      if (first === undefined) lines.set(key, line)
      else faults.push(`Line ${first} has the same prefix${row.provider ? ' and provider' : ''}.`)
      rows.push(row)
    }
    if (faults.length > 0) report(line, faults)
  }

  const more = bad - problems.length
  if (more > 0) problems.push(`${more} more ${more === 1 ? 'line is' : 'lines are'} invalid.`)
  if (bad === 0 && rows.length === 0) problems.push('The file has no prices.')
  else if (bad === 0 && rows.every(({ priceMicros }) => priceMicros === 0))
    problems.push('Every price is 0, so no budget would ever stop messages.')
  return { rows: problems.length > 0 ? [] : rows, problems }
}

/** The row, if each of its fields is right, and a sentence for each fault. */
function checkRow(
  fields: readonly string[],
  width: number,
  knownProviders: readonly string[],
): { row: PriceRow | undefined; faults: string[] } {
  // A spreadsheet may omit an empty last column.
  if (fields.length !== width && !(width === 4 && fields.length === 3))
    return { row: undefined, faults: [`The row must have ${width} fields. It has ${fields.length}.`] }
  const [prefixText = '', currencyText = '', priceText = '', providerText = ''] = fields
  const faults: string[] = []

  const prefix = /^\+?([1-9]\d{0,14})$/.exec(prefixText)?.[1]
  if (prefix === undefined)
    faults.push('`prefix` must have 1 to 15 digits and start with the country code, such as +447.')

  const currency = currencyText.toUpperCase()
  if (!currencies.has(currency))
    faults.push('`currency` must be a currency code of three letters, such as EUR.')

  const priceMicros = parseMicros(priceText)
  const isPrice = priceMicros !== undefined && priceMicros <= largestPrice * 1_000_000
  if (!isPrice) faults.push(`\`price\` must be a number from 0 to ${largestPrice}, ${amountForm}.`)

  const provider = providerText === '' ? null : providerText.toLowerCase()
  if (provider !== null && !knownProviders.includes(provider))
    faults.push(`\`provider\` must be empty or one of ${knownProviders.join(', ')}.`)

  const row =
    faults.length === 0 && prefix !== undefined && priceMicros !== undefined
      ? { prefix, provider, priceMicros, currency }
      : undefined
  return { row, faults }
}

/**
 * Why `next`, the result of `checkPrices`, cannot replace the prices of each provider that it names; the rows without provider are one
 * group (D42). The prices that stay must have its currency.
 */
export function importProblems(current: readonly PriceGroup[], next: readonly PriceRow[]): readonly string[] {
  const groups = new Set(next.map(({ provider }) => provider))
  const kept = current.filter(({ provider }) => !groups.has(provider))
  const currency = next[0]?.currency
  const others = kept.filter((row) => row.currency !== currency)
  const problems: string[] = []
  const [other] = others
  if (currency === undefined) problems.push('The file has no prices.')
  else if (other) {
    const names = [...new Set(others.map(({ provider }) => provider ?? 'rows without a provider'))]
    problems.push(
      `The file has prices in ${currency}, but prices that stay are in ${other.currency}: ${names.join(', ')}. All prices must have one currency. Add rows that replace these prices.`,
    )
  }
  const total = next.length + kept.reduce((sum, { count }) => sum + count, 0)
  if (total > mostPrices)
    problems.push(`The import would store ${total} prices. At most ${mostPrices} can be stored.`)
  return problems
}

export interface PriceStore {
  rows(): Promise<readonly PriceRow[]>
  /** All or nothing for readers. `decide` must be synchronous and runs several times; if it throws, nothing is stored. */
  change<Change extends PriceChange>(
    by: { readonly actor: Actor; readonly now: number },
    decide: (current: readonly PriceGroup[], budgets: readonly Budget[]) => Change,
  ): Promise<Change>
}

/** Replaces the prices of each provider that `save` names. */
interface PriceChange {
  readonly save: readonly PriceRow[]
  readonly entry: Pick<AuditEntry, 'target' | 'details'>
}

const mostChanges = 20

const keyOf = ({ prefix, provider }: PriceRow) => `${prefix} ${provider ?? ''}`

/** By prefix and provider. */
function replacedBy(current: readonly PriceRow[], next: readonly PriceRow[]): ReadonlyMap<string, PriceRow> {
  const providers = new Set(next.map(({ provider }) => provider))
  const replaced = current.filter(({ provider }) => providers.has(provider))
  return new Map(replaced.map((row) => [keyOf(row), row]))
}

/** Whether an import of `next` would change nothing. */
export function isStored(current: readonly PriceRow[], next: readonly PriceRow[]): boolean {
  const before = replacedBy(current, next)
  if (before.size !== next.length) return false
  return next.every((row) => {
    const { priceMicros, currency } = before.get(keyOf(row)) ?? {}
    return priceMicros === row.priceMicros && currency === row.currency
  })
}

/** What an import of `next` would change, as sentences: the sums, then each change, at most 20. */
export function priceChanges(current: readonly PriceRow[], next: readonly PriceRow[]): readonly string[] {
  const before = replacedBy(current, next)
  const after = new Map(next.map((row) => [keyOf(row), row]))
  const priceOf = (row: PriceRow | undefined) => row && formatMicros(row.priceMicros, row.currency)
  const changes = [...new Set([...after.keys(), ...before.keys()])].flatMap((key) => {
    const [old, now] = [before.get(key), after.get(key)]
    const [from, to] = [priceOf(old), priceOf(now)]
    return from === to ? [] : { row: now ?? old, from, to }
  })
  const isNew = changes.filter(({ from }) => from === undefined).length
  const removed = changes.filter(({ to }) => to === undefined).length
  const kept = after.size - (changes.length - removed)
  const { currency = '' } = next[0] ?? {}
  const sums = [
    `${count(isNew)} new`,
    `${count(changes.length - isNew - removed)} changed`,
    `${count(removed)} removed`,
    `${count(kept)} as before`,
  ]
  const more = changes.length - mostChanges
  return [
    `The file has ${counted(next.length, 'price')} in ${currency}: ${sums.join(', ')}.`,
    ...changes
      .slice(0, mostChanges)
      .map(
        ({ row, from = 'new', to = 'removed' }) =>
          `+${row?.prefix}${row?.provider ? ` through ${row.provider}` : ''}: ${from} → ${to}.`,
      ),
    ...(more > 0 ? [`${counted(more, 'more price changes', 'more prices change')}.`] : []),
  ]
}
