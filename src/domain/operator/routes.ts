import { countryWords, type DestinationRule } from '../delivery/destination.ts'
import { wayOf } from '../delivery/way.ts'
import { type Advice, advice, see } from '../ground/advice.ts'
import type { AuditReader } from '../ground/audit.ts'
import { count, percent, utc } from '../ground/format.ts'
import type { Listing } from '../ground/listing.ts'
import { InvalidInput } from '../ground/operator-error.ts'
import type { PhoneWay } from '../ground/providers.ts'
import { dayMs, type EpochMs, hourMs, periodOf } from '../ground/time.ts'
import { type EventLogReader, type LoggedRequest, statusOf } from '../log/event-log.ts'
import type { LogPosition } from '../log/log-search.ts'
import type { ReplayReader } from '../log/replay.ts'
import { type Micros, sumWords } from '../money/amounts.ts'
import type { DaySpend } from '../money/spending.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { mayBeSent } from '../request/request-context.ts'
import { listedRules, providerNames, type RouteSettings as RouteNames } from './destinations.ts'

// What the event log says of the providers of each country. Nothing changes by it.

const z = 1.959964

/** A rate with its Wilson interval of 95 %. Null: of none. */
export function proportion(some: number, of: number) {
  if (of === 0) return null
  const [rate, scale] = [some / of, 1 + z ** 2 / of]
  const middle = (rate + z ** 2 / (2 * of)) / scale
  const half = (z * Math.sqrt((rate * (1 - rate)) / of + z ** 2 / (4 * of ** 2))) / scale
  const low = Math.max(0, Math.min(rate, middle - half))
  return { of, rate, low, high: Math.min(1, Math.max(rate, middle + half)) }
}

export interface RouteFigures {
  readonly country: string | null
  readonly provider: string
  readonly way: PhoneWay
  readonly messages: number
  /** Of those with a final delivery report. */
  readonly delivery: ReturnType<typeof proportion>
  /** Of codes. */
  readonly conversion: RouteFigures['delivery']
  /** Of a message, on average. Null: unknown. */
  readonly cost: { readonly micros: Micros; readonly currency: string } | null
}

interface RoutePorts {
  readonly policy: Pick<PolicyPorts['policy'], 'rows'>
  readonly audit: AuditReader
  readonly eventLog: Pick<EventLogReader, 'findCalls'> &
    Pick<ReplayReader, 'oldest'> & {
      spending(from: EpochMs, until: EpochMs): Promise<readonly DaySpend[]>
    }
}

interface RouteSettings {
  readonly smsCountries: readonly string[]
  readonly routes: RouteNames
}

export type Routes = Awaited<ReturnType<typeof readRoutes>>

const pageLength = 1000

/** By a server: the requests of a second or two of reading. */
export const mostRead = 100_000

/** Of whole days in UTC. @param most of the requests that are read; the day that reaches it is the last */
export async function readRoutes(
  { eventLog, policy, audit }: RoutePorts,
  { smsCountries, routes }: RouteSettings,
  now: EpochMs,
  since: EpochMs,
  most = Number.POSITIVE_INFINITY,
) {
  if (since > now) throw new InvalidInput('since must not be in the future.')
  const first = Math.max(since, (await eventLog.oldest()) ?? now)
  const sum = new RouteSum()
  const { end } = periodOf('day', now)
  let [day, read] = [end, 0]
  do {
    day -= dayMs
    const filter = { channel: 'SMS', since: day, until: day + dayMs } as const
    let before: LogPosition | undefined
    do {
      const { rows, next } = await eventLog.findCalls(filter, { before, limit: pageLength })
      for (const request of rows) sum.add(request, day)
      read += rows.length
      before = next ?? undefined
    } while (before)
  } while (day > first && read < most)
  const [erasure] = await audit.list({ actions: ['data.forgotten'], since: day, limit: 1 })
  const erasedAt = erasure?.at ?? 0
  const rows = sum.rows(await eventLog.spending(day, end), erasedAt)
  const rules = listedRules(smsCountries, (await policy.rows()).rules)
  const orders = routeOrders(rows, rules, providerNames(routes))
  const ladders = ladderOrders(rows)
  const note = erasure
    ? `Recipients were erased at ${utc(erasedAt)}: costs are those of later days, and rates those of the other recipients.`
    : undefined
  return { since: day, rows, orders, ladders, note }
}

class RouteSum {
  private readonly counts = new Map<string, ReturnType<typeof newCounts>>()
  /** When the latest code of a recipient and brand was verified. */
  private readonly verified = new Map<string, EpochMs>()
  private oldest = 0

  /** Newest first. */
  add({ operation, at, brand, recipientHash, end, flags, deliveries }: LoggedRequest, day: EpochMs): void {
    this.oldest = day
    const key = `${recipientHash} ${brand}`
    if (operation === 'verify' && end?.status === 200 && flags.length === 0) this.verified.set(key, at)
    const sent = deliveries.filter(mayBeSent)
    for (const each of sent) {
      const { country, provider } = each
      const way = wayOf({ route: each.route ?? 'plain', provider: { name: provider } })
      const own = this.counts.getOrInsertComputed(JSON.stringify([country, provider, way]), newCounts)
      own.days.set(day, (own.days.get(day) ?? 0) + 1)
      const status = statusOf(each)
      if (status === 'delivered') own.delivered++
      if (status === 'delivered' || status === 'failed') own.reported++
      if (operation !== 'send' && operation !== 'resend') continue
      own.codes++
      if (each !== sent.at(-1)) continue
      // No code lives longer than an hour.
      if ((this.verified.get(key) ?? 0) - hourMs < at && this.verified.delete(key)) own.verified++
    }
  }

  /** The most messages first. */
  rows(spending: readonly DaySpend[], erasedAt: EpochMs): readonly RouteFigures[] {
    const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0)
    return Array.from(this.counts, ([key, { days, delivered, reported, codes, verified }]) => {
      const [country, provider, way] = JSON.parse(key) as [string | null, string, PhoneWay]
      // The log may have only a part of its oldest day.
      const paid = new Map(
        [...days].filter(([day]) => day > erasedAt && (day > this.oldest || days.size === 1)),
      )
      const all = spending.filter((each) => each.country === country && each.provider === provider)
      const { currency } = all.at(-1) ?? {}
      const spent = all.filter((each) => each.currency === currency && paid.has(each.at))
      const micros = Math.round(sum(spent.map((each) => each.micros)) / sum([...paid.values()]))
      return {
        ...{ country, provider, way, messages: sum([...days.values()]) },
        delivery: proportion(delivered, reported),
        conversion: proportion(verified, codes),
        cost: currency === undefined || paid.size === 0 ? null : { micros, currency },
      }
    }).sort((one, other) => other.messages - one.messages || (one.provider < other.provider ? -1 : 1))
  }
}

function newCounts() {
  return { days: new Map<EpochMs, number>(), delivered: 0, reported: 0, codes: 0, verified: 0 }
}

type RouteOrder = ReturnType<typeof routeOrders>[number]

/**
 * The order of the providers of each country that an operator could set: by the lower bound of conversion, or of delivery where no codes
 * were sent. Providers without messages come last.
 * @param configured names of the server's providers, in their order
 */
export function routeOrders(
  rows: readonly RouteFigures[],
  rules: readonly DestinationRule[],
  configured: readonly string[],
) {
  return [...Map.groupBy(rows, ({ country }) => country)].flatMap(([country, all]) => {
    const ruleOf = (name: string | null) =>
      rules.findLast(({ rule, brandSlug }) => rule === name && brandSlug === null)
    const { action = 'allow', providers, sender, route } = ruleOf(country) ?? ruleOf('*') ?? {}
    const now = (providers?.length ? providers : [...new Set(configured)]).filter((name) =>
      configured.includes(name),
    )
    const by = all.some(({ conversion }) => conversion) ? 'conversion' : 'delivery'
    const ranked = all
      .filter(({ provider, way }) => now.includes(provider) && way === 'sms')
      .sort((one, other) => (other[by]?.low ?? -1) - (one[by]?.low ?? -1))
    if (country === null || ranked.length < 2 || action === 'block' || !ranked[0]?.[by]) return []
    const order = [...new Set([...ranked.map(({ provider }) => provider), ...now])]
    /** No intervals of two providers that follow each other overlap. */
    const isProven = ranked.every(
      (each, index) => index === 0 || (ranked[index - 1]?.[by]?.low ?? 0) > (each[by]?.high ?? 1),
    )
    /** Fields of the action that sets the order. What else the rule of the country has stays. */
    const rule = { rule: country, action, ...(sender && { sender }), ...(route && { route }) }
    return [{ country, by, providers: order, isProven, isSet: order.join() === now.join(), rule }]
  })
}

/** The order of the ways of LADDER for each country whose codes used several: by the lower bound of conversion. A call is never first. */
export function ladderOrders(rows: readonly RouteFigures[]) {
  const codes = rows.filter(({ conversion }) => conversion)
  return [...Map.groupBy(codes, ({ country }) => country)].flatMap(([country, all]) => {
    const ways = Array.from(
      Map.groupBy(all, ({ way }) => way),
      ([way, own]) => {
        const sum = (of: (row: RouteFigures) => number) => own.reduce((total, row) => total + of(row), 0)
        const sent = sum(({ conversion }) => conversion?.of ?? 0)
        const verified = sum(({ conversion }) => Math.round((conversion?.of ?? 0) * (conversion?.rate ?? 0)))
        return { way, conversion: proportion(verified, sent) ?? { of: 0, rate: 0, low: 0, high: 1 } }
      },
    ).sort((one, other) => other.conversion.low - one.conversion.low)
    if (ways[0]?.way === 'voice') ways.splice(1, 0, ...ways.splice(0, 1))
    const isProven = ways.every(
      ({ conversion }, index) => index === 0 || (ways[index - 1]?.conversion.low ?? 0) > conversion.high,
    )
    return ways.length < 2 ? [] : [{ country, ways, isProven }]
  })
}

export function ladderWords({ country, ways, isProven }: ReturnType<typeof ladderOrders>[number]): string {
  const figures = ways.map(({ way, conversion }) => `${way} ${rateWords(conversion)}`).join(', ')
  const doubt = isProven ? '' : ' Intervals overlap, so the order is not proven.'
  return `${countryWords(country)}: LADDER=${ways.map(({ way }) => way).join()}, by conversion: ${figures}.${doubt}`
}

export function orderWords({ country, by, providers, isProven, isSet, rule }: RouteOrder): Advice {
  const doubt = isProven ? '' : ' Intervals overlap, so the order is not proven.'
  const words = `${countryWords(country)}: ${providers.join(', ')}, by ${by}.${doubt}`
  return isSet
    ? [`${words} This is the order now.`]
    : advice`${words} To set it, use ${see('destination set', { ...rule, providers: providers.join() })}.`
}

export const routeListing = {
  country: {
    title: 'Country',
    value: ({ country }) => country,
    text: ({ country }) => countryWords(country),
  },
  provider: { title: 'Provider', value: ({ provider }) => provider },
  way: { title: 'Way', value: ({ way }) => way },
  messages: { title: 'Messages', isNumber: true, value: ({ messages }) => messages },
  delivery: rateColumn('Delivered', 'delivery'),
  conversion: rateColumn('Verified', 'conversion'),
  cost: costColumn('Cost of a message', () => 1),
  costOfVerified: costColumn('Of a verified code', ({ conversion }) => conversion?.rate ?? 0),
  currency: { value: ({ cost }) => cost?.currency ?? null },
} satisfies Listing<RouteFigures>

/** Such as `90% (84.2% to 93.8%) of 150`. */
function rateColumn(title: string, name: 'delivery' | 'conversion'): Listing<RouteFigures>[string] {
  return {
    ...{ title, isNumber: true, value: (row) => row[name] },
    text: ({ [name]: found }) => (found ? rateWords(found) : '-'),
  }
}

function rateWords({ of, rate, low, high }: NonNullable<RouteFigures['delivery']>): string {
  return `${percent(rate)} (${percent(low)} to ${percent(high)}) of ${count(of)}`
}

/** @param rateOf how many of these a message is */
function costColumn(title: string, rateOf: (row: RouteFigures) => number): Listing<RouteFigures>[string] {
  const micros = (row: RouteFigures) =>
    row.cost && rateOf(row) > 0 ? Math.round(row.cost.micros / rateOf(row)) : null
  return {
    ...{ title, isNumber: true, value: (row) => (micros(row) ?? Number.NaN) / 1e6 || null },
    text: (row) => (micros(row) === null ? '-' : sumWords(micros(row) ?? 0, row.cost?.currency ?? '')),
  }
}
