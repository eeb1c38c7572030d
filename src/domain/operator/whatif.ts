import { countryRules, countryWords, DestinationRules } from '../delivery/destination.ts'
import type { AuditReader } from '../ground/audit.ts'
import { count, counted, utc } from '../ground/format.ts'
import { type Listing, rowOf } from '../ground/listing.ts'
import { InvalidInput } from '../ground/operator-error.ts'
import { dayMs, type EpochMs, isoTime, periodOf } from '../ground/time.ts'
import type { GuardMode } from '../guard/guard.ts'
import { modeInForce } from '../guard/mode.ts'
import {
  type LoggedCode,
  Replay,
  type ReplayReader,
  type ReplaySum,
  replayStart,
  type SentSegments,
} from '../log/replay.ts'
import { sumWords } from '../money/amounts.ts'
import { budgetName } from '../money/budgets.ts'
import type { PriceList } from '../money/prices.ts'
import { type DaySpend, spendBy } from '../money/spending.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { modeAt } from './guard.ts'

// The question and the answer of `otpost whatif` and its page. domain/log/replay.ts has the replay.

/** Those of the server, unless they are given. */
export interface WhatIfSettings {
  readonly guard?: GuardMode | undefined
  /** SMS_COUNTRIES. */
  readonly countries?: readonly string[] | undefined
  readonly phoneHour?: number | undefined
  /** Instead of what the codes cost. */
  readonly prices?: MobilePrices | undefined
}

type MobilePrices = ReturnType<typeof mobilePrices>

/** Of a mobile number of each country. */
export function mobilePrices(list: PriceList, exampleOf: (country: string | null) => string) {
  return {
    currency: list.currency,
    perSegment: (country: string | null, provider: string) =>
      list.perSegment(exampleOf(country), 'ordinary', provider),
  }
}

export interface WhatIfPorts extends Pick<PolicyPorts, 'policy' | 'now'> {
  readonly audit: AuditReader
  readonly eventLog: ReplayReader & {
    spending(from: EpochMs, until: EpochMs): Promise<readonly DaySpend[]>
  }
}

interface ServerSettings {
  /** GUARD. */
  readonly guard: GuardMode
  readonly smsCountries: readonly string[]
  readonly phonePerHour: number
  /** In force. */
  readonly prices: MobilePrices
}

export type WhatIf = Awaited<ReturnType<typeof whatIf>>

interface NamedSum extends ReplaySum {
  readonly name: string | null
}

const pageLength = 100
const mostModeChanges = 1000

/**
 * What these settings would have done with the codes of the event log (design D58). Other work comes between the pages that it reads.
 * @param most codes that are read
 */
export async function whatIf(
  { eventLog, policy, audit, now: clock }: WhatIfPorts,
  server: ServerSettings,
  given: WhatIfSettings,
  { since, most = Number.POSITIVE_INFINITY }: { readonly since: EpochMs; readonly most?: number },
) {
  const now = clock()
  if (since > now) throw new InvalidInput('since must not be in the future.')
  const from = Math.max(replayStart(since), periodOf('day', (await eventLog.oldest()) ?? now).start)
  const [rows, spending, segments, changes, [erasure]] = await Promise.all([
    policy.rows(),
    eventLog.spending(from - dayMs, now),
    eventLog.smsSegments(from, now),
    audit.list({ actions: ['guard.mode'], since: from, limit: mostModeChanges }),
    audit.list({ actions: ['data.forgotten'], since: from, limit: 1 }),
  ])
  const { mode } = modeInForce(rows.guardMode, server.guard, now)
  const { guard = mode, countries = server.smsCountries, phoneHour = server.phonePerHour, prices } = given
  const oldestFirst = changes.toReversed()
  const spentIn = erasure ? undefined : spendBy(spending, () => '')[0]?.currency
  const currency = prices?.currency ?? spentIn ?? server.prices.currency
  // Of these days, the log may have only a part of what was spent.
  const isCut = spending.some((row) => row.at < from)
  const wholeFrom = erasure ? periodOf('day', erasure.at).end : isCut ? from + dayMs : from
  const listed = server.prices.currency === currency ? server.prices : undefined
  const spent = new Map(
    spending.filter((row) => row.currency === currency).map((row) => [keyOf(row), row.micros]),
  )
  const sent = new Map<string, number>()
  for (const row of segments) sent.set(keyOf(row), (sent.get(keyOf(row)) ?? 0) + row.segments)
  const perSegment = ({ at, country, app, brand }: LoggedCode, provider: string) => {
    const priced = prices ?? (at < wholeFrom ? listed : undefined)
    if (priced) return priced.perSegment(country, provider)
    const key = keyOf({ at: periodOf('day', at).start, country, app, brand: brand ?? '', provider })
    return (spent.get(key) ?? 0) / Math.max(1, sent.get(key) ?? 0)
  }
  const ignored = rows.budgets.filter((each) => each.currency !== currency || each.scope.startsWith('way:'))
  const notes = [
    ignored.length > 0 &&
      `Budgets of a way or in another currency than ${currency} do not count: ${ignored.map(budgetName).join(', ')}.`,
    prices &&
      Object.values({ ...given, prices: undefined }).every((each) => each === undefined) &&
      'Prices alone deny only what exceeds a budget. They change the money of what other options deny, such as --countries.',
  ].filter((line) => typeof line === 'string')
  const settings = {
    guard,
    destinations: new DestinationRules([...countryRules(countries), ...rows.rules]),
    phonePerHour: phoneHour,
    budgets: rows.budgets.filter((budget) => budget.currency === currency),
    costOf: (code: LoggedCode) =>
      code.sends.reduce((sum, send) => sum + send.segments * perSegment(code, send.provider), 0),
    modeAt: (at: EpochMs) => modeAt(oldestFirst, mode, at),
  }
  const replay = new Replay(settings, since, eventLog.verifiedHistory)
  let until = now
  let after: string | EpochMs = from
  for (let read = pageLength; until === now; read += pageLength) {
    const page = await eventLog.codes(after, now + 1, pageLength)
    for (const code of page) await replay.take(code)
    const last = page[pageLength - 1]
    if (!last) break
    if (read >= most) until = last.at
    after = last.requestId
  }
  const { total, byCountry, byApp, byDay, unjudged, undecided } = replay
  const unknown = [
    'A user whose code is denied may try again, or not come back. The log has only what happened.',
    'Requests that were rejected are left out. Limits without an option, and providers, are as they were.',
    'Notifications are not replayed, although destination rules and budgets apply to them too.',
    until < now && `The log is longer: only the codes until ${utc(until)} were read.`,
    guard === 'deny' &&
      unjudged < total.requests &&
      'The verdicts of the guard are those that the log has. Where other settings deny codes before it, it would deny fewer.',
    unjudged > 0 &&
      `The guard was off for ${counted(unjudged, 'code')}. The log has no prefixes, IP addresses and devices: countries and numbers decide, and more may be denied.`,
    undecided > 0 &&
      `A rule for a prefix may apply to ${counted(undecided, 'number')}. The log does not have all digits, so the rule of the country denies none of them.`,
    prices
      ? 'The price is that of a mobile number of the country. Other numbers of it may have another price.'
      : 'A code costs the average of its country, app, brand, provider and day.',
    !prices && spending.some((row) => row.currency !== currency) && `Only costs in ${currency} count.`,
    erasure &&
      `Recipients were erased: their codes are missing.${prices ? '' : ` Until ${utc(wholeFrom)}, a code costs what the prices of the server say.`}`,
    ...notes,
  ]
  return {
    since,
    until,
    currency,
    guard,
    countries,
    phoneHour,
    total,
    byCountry: named(byCountry),
    byApp: named(byApp),
    byDay: Array.from(byDay, ([at, sum]) => ({ name: isoTime(at).slice(0, 10), at, ...sum })),
    notes,
    unknown: unknown.filter((line) => typeof line === 'string'),
  }
}

function keyOf({ at, country, app, brand, provider }: Omit<SentSegments, 'segments'>): string {
  return JSON.stringify([at, country, app, brand, provider])
}

/** The most denied first. */
function named(sums: ReadonlyMap<string | null, ReplaySum>): readonly NamedSum[] {
  return Array.from(sums, ([name, sum]) => ({ name, ...sum })).sort(
    (one, other) => other.denied - one.denied || other.requests - one.requests,
  )
}

function figures(currency: string) {
  return {
    requests: { title: 'Codes', isNumber: true, value: ({ requests }) => requests },
    denied: { title: 'Denied', isNumber: true, value: ({ denied }) => denied },
    deniedVerified: {
      title: 'Later verified',
      isNumber: true,
      value: ({ deniedVerified }) => deniedVerified,
    },
    saved: {
      title: 'Saved',
      isNumber: true,
      value: ({ savedMicros }) => ({ amount: Math.round(savedMicros) / 1e6, currency }),
      text: ({ savedMicros }) => sumWords(Math.round(savedMicros), currency),
    },
  } satisfies Listing<ReplaySum>
}

export interface SumTable {
  readonly rows: readonly NamedSum[]
  readonly listing: Listing<NamedSum>
}

/** The tables of a result, also for `--json`. */
export function whatIfTables({
  currency,
  byCountry,
  byApp,
  byDay,
}: WhatIf): Record<'byCountry' | 'byApp' | 'byDay', SumTable> {
  const all = figures(currency)
  const value = ({ name }: NamedSum) => name
  const text = ({ name }: NamedSum) => (name === null ? 'none, or e-mail' : countryWords(name))
  return {
    byCountry: { rows: byCountry, listing: { country: { title: 'Country', value, text }, ...all } },
    byApp: { rows: byApp, listing: { app: { title: 'App', value }, ...all } },
    byDay: { rows: byDay, listing: { day: { title: 'Day (UTC)', value }, ...all } },
  }
}

/** As `whatif --json`. */
export function whatIfRow(found: WhatIf): Readonly<Record<string, unknown>> {
  const { byCountry, byApp } = whatIfTables(found)
  return {
    ...rowOf(figures(found.currency), found.total),
    byCountry: byCountry.rows.map((row) => rowOf(byCountry.listing, row)),
    byApp: byApp.rows.map((row) => rowOf(byApp.listing, row)),
  }
}

/** The answer, then the settings, as sentences. */
export function whatIfWords(found: WhatIf): readonly string[] {
  const { total, currency, since, until, guard, countries, phoneHour, notes } = found
  const { requests, denied, deniedVerified, savedMicros } = total
  const span = `from ${utc(since)} to ${utc(until)}`
  if (requests === 0) return [`The event log has no codes ${span}.`]
  const verified = `${count(deniedVerified)} of them ${deniedVerified === 1 ? 'was' : 'were'} later verified`
  return [
    `With these settings, ${count(denied)} of ${counted(requests, 'code')} would have been denied; ${verified}; ${sumWords(Math.round(savedMicros), currency)} saved.`,
    `Guard ${guard}, countries ${countries.join(', ') || 'by the stored rules'}, ${counted(phoneHour, 'code')} per phone and hour, and the other settings of now; ${span}.`,
    ...notes,
  ]
}
