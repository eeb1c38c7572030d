import { countryRules, countryWords, DestinationRules } from '../delivery/destination.ts'
import type { AuditReader } from '../ground/audit.ts'
import { count, counted, utc } from '../ground/format.ts'
import type { Listing } from '../ground/listing.ts'
import { type EpochMs, isoTime, periodOf } from '../ground/time.ts'
import type { GuardMode } from '../guard/guard.ts'
import { modeInForce } from '../guard/mode.ts'
import {
  type DenialReason,
  historyStart,
  type LoggedCode,
  Replay,
  type ReplayReader,
  type ReplaySum,
  replayStart,
} from '../log/replay.ts'
import { sumWords } from '../money/amounts.ts'
import type { PriceList } from '../money/prices.ts'
import { type DaySpend, type Spend, spendBy } from '../money/spending.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { modeChanges } from './guard.ts'

/** Those of the server, unless they are given. */
export interface WhatIfSettings {
  readonly guard?: GuardMode | undefined
  readonly countries?: readonly string[] | undefined
  readonly phoneHour?: number | undefined
  readonly prices?: PriceList | undefined
}

export interface WhatIfPorts extends Pick<PolicyPorts, 'policy' | 'now'> {
  readonly audit: AuditReader
  readonly eventLog: ReplayReader & {
    spending(from: EpochMs, until: EpochMs): Promise<readonly DaySpend[]>
  }
  /** The digits of a typical mobile number. Empty: of no country. */
  readonly exampleOf: (country: string | null) => string
}

/** Settings of the server. */
interface ServerSettings {
  readonly guard: GuardMode
  readonly smsCountries: readonly string[]
  readonly phonePerHour: number
  /** Of the prices in force. */
  readonly currency: string
}

export type WhatIf = Awaited<ReturnType<typeof whatIf>>

interface NamedSum extends ReplaySum {
  readonly name: string | null
}

const pageLength = 500
const mostModeChanges = 1000

/**
 * What these settings would have done with the codes of the event log (design D58). Reads few rows at a time.
 * @param most of the rows that are read
 */
export async function whatIf(
  ports: WhatIfPorts,
  server: ServerSettings,
  given: WhatIfSettings,
  { since, most = Number.POSITIVE_INFINITY }: { readonly since: EpochMs; readonly most?: number },
) {
  const { eventLog, policy, audit } = ports
  const now = ports.now()
  const from = replayStart(since)
  const [rows, days, spending, segments, changes] = await Promise.all([
    policy.rows(),
    eventLog.verifiedDays(historyStart(since), now),
    eventLog.spending(from, now),
    eventLog.smsSegments(from, now),
    audit.list({ actions: ['guard.mode'], since: from, limit: mostModeChanges }),
  ])
  const { mode } = modeInForce(rows.guardMode, server.guard, now)
  const modes = modeChanges(changes.toReversed(), mode)
  const [spent] = spendBy(spending, () => '')
  const currency = given.prices?.currency ?? spent?.currency ?? server.currency
  const micros = sums(spending.filter((row) => row.currency === currency))
  const counts = sums(segments.map((row) => ({ ...row, micros: row.segments })))
  const perSegment = (code: LoggedCode, provider: string) => {
    const { country, app, brand } = code
    if (given.prices) return given.prices.perSegment(ports.exampleOf(country), 'ordinary', provider)
    const key = keyOf({ at: periodOf('day', code.at).start, country, app, brand: brand ?? '', provider })
    return (micros.get(key) ?? 0) / Math.max(1, counts.get(key) ?? 0)
  }
  const { guard = mode, countries = server.smsCountries, phoneHour = server.phonePerHour } = given
  const budgets = rows.budgets.filter((budget) => budget.currency === currency)
  const settings = {
    guard,
    destinations: new DestinationRules([...countryRules(countries), ...rows.rules]),
    phonePerHour: phoneHour,
    budgets,
    costOf: (code: LoggedCode) =>
      code.sends.reduce((sum, send) => sum + send.segments * perSegment(code, send.provider), 0),
    modeAt: (at: EpochMs) => modes.findLast((change) => change.at <= at)?.mode ?? mode,
  }
  const replay = new Replay(settings, since, days)
  let [read, until]: [number, EpochMs] = [0, now]
  for (let after: string | EpochMs = from; ; ) {
    const page = await eventLog.codes(after, now + 1, pageLength)
    for (const code of page) await replay.take(code)
    const last = page.at(-1)
    if (last === undefined || page.length < pageLength) break
    after = last.requestId
    read += page.length
    if (read < most) continue
    until = last.at
    break
  }
  const { total, byReason } = replay
  const isOfOthers = guard === 'deny' && [...byReason.keys()].some((reason) => reason !== 'guard')
  const unknown = [
    'A user whose code is denied may try again, or not come back. The log has only what happened.',
    'Requests that were rejected then are left out. Limits without an option, and providers, are as they were.',
    'Notifications are not replayed. Destination rules and budgets apply to them too.',
    until < now && `The log is longer: these are the codes until ${utc(until)}. \`otpost whatif\` reads all.`,
    isOfOthers &&
      'The guard would have denied at most these codes: others that are denied first no longer count for it.',
    replay.unjudged > 0 &&
      `The guard was off for ${counted(replay.unjudged, 'code')}. The log has no prefixes, IP addresses and devices, so countries and numbers alone decide, and it may have denied more.`,
    replay.undecided > 0 &&
      `A rule for a prefix may apply to ${counted(replay.undecided, 'number')}. The log does not have all digits, so these codes are not denied.`,
    given.prices
      ? 'The price is that of a typical mobile number of the country.'
      : total.denied > 0 &&
        'A code costs the average of its country, app, brand, provider and day, as it was counted then.',
    spending.some((row) => row.currency !== currency) &&
      `Only costs in ${currency} count; some codes had prices in another currency.`,
  ]
  return {
    since,
    until,
    currency,
    guard,
    countries,
    phoneHour,
    total,
    byReason,
    byCountry: listed(replay.byCountry),
    byApp: listed(replay.byApp),
    byDay: [...replay.byDay].map(([at, sum]) => ({ at, ...sum })),
    unknown: unknown.filter((line) => line !== false),
  }
}

function sums(rows: readonly (Omit<Spend, 'currency'> & { at: EpochMs; micros: number })[]) {
  const found = new Map<string, number>()
  for (const row of rows) found.set(keyOf(row), (found.get(keyOf(row)) ?? 0) + row.micros)
  return found
}

function keyOf({ at, country, app, brand, provider }: Omit<Spend, 'currency'> & { at: EpochMs }): string {
  return JSON.stringify([at, country, app, brand, provider])
}

/** The most denied first. */
function listed(all: ReadonlyMap<string | null, ReplaySum>): readonly NamedSum[] {
  return Array.from(all, ([name, sum]) => ({ name, ...sum })).sort(
    (one, other) => other.denied - one.denied || other.requests - one.requests,
  )
}

/** As `whatif --json`. */
export function whatIfRow({ total, byCountry, byApp, currency }: WhatIf) {
  const row = ({ requests, denied, deniedVerified, savedMicros }: ReplaySum) => ({
    requests,
    denied,
    deniedVerified,
    saved: { amount: Math.round(savedMicros) / 1e6, currency },
  })
  return {
    ...row(total),
    byCountry: byCountry.map(({ name, ...sum }) => ({ country: name, ...row(sum) })),
    byApp: byApp.map(({ name, ...sum }) => ({ app: name, ...row(sum) })),
  }
}

const reasonWords: Partial<Record<DenialReason, string>> = {
  'recipient-hour': 'the limit per phone and hour',
  destination: 'the destination rules',
  guard: 'the guard',
  budget: 'a budget',
}

/** The answer, then the settings, as sentences. */
export function whatIfWords(found: WhatIf): readonly string[] {
  const { total, currency, since, until, guard, countries, phoneHour, byReason } = found
  const span = `from ${utc(since)} to ${utc(until)}`
  if (total.requests === 0) return [`The event log has no codes ${span}.`]
  const { requests, denied, deniedVerified, savedMicros } = total
  const by = [...byReason].map(([reason, codes]) => `${count(codes)} by ${reasonWords[reason]}`)
  return [
    `With these settings, ${count(denied)} of ${counted(requests, 'code')} would have been denied; ${count(deniedVerified)} of them ${deniedVerified === 1 ? 'was' : 'were'} later verified; ${sumWords(Math.round(savedMicros), currency)} saved.`,
    ...(by.length === 0 ? [] : [`Denied: ${by.join(', ')}.`]),
    `Guard ${guard}; countries ${countries.join(', ') || 'as the rules say'}; ${phoneHour} codes per phone and hour; other settings as they are now; ${span}.`,
  ]
}

const figures = (currency: string) =>
  ({
    codes: { title: 'Codes', isNumber: true, value: ({ requests }) => requests },
    denied: { title: 'Denied', isNumber: true, value: ({ denied }) => denied },
    verified: { title: 'Later verified', isNumber: true, value: ({ deniedVerified }) => deniedVerified },
    saved: {
      title: 'Saved',
      isNumber: true,
      value: ({ savedMicros }) => sumWords(Math.round(savedMicros), currency),
    },
  }) satisfies Listing<ReplaySum>

/** The tables of a result. */
export function whatIfTables({ currency, byCountry, byApp, byDay }: WhatIf) {
  const all = figures(currency)
  const place = ({ name }: NamedSum) => (name === null ? 'none, or e-mail' : countryWords(name))
  return [
    { rows: byCountry, listing: { country: { title: 'Country', value: place }, ...all } },
    { rows: byApp, listing: { app: { title: 'App', value: ({ name }: NamedSum) => name }, ...all } },
    {
      rows: byDay.map(({ at, ...sum }) => ({ name: isoTime(at).slice(0, 10), ...sum })),
      listing: { day: { title: 'Day (UTC)', value: ({ name }: NamedSum) => name }, ...all },
    },
  ] satisfies readonly { rows: readonly NamedSum[]; listing: Listing<NamedSum> }[]
}
