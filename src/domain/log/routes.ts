import { countryWords, type DestinationRule } from '../delivery/destination.ts'
import { type Advice, advice, see } from '../ground/advice.ts'
import { count, percent } from '../ground/format.ts'
import type { Listing } from '../ground/listing.ts'
import { dayMs, type EpochMs, hourMs, periodOf } from '../ground/time.ts'
import { type Micros, sumWords } from '../money/amounts.ts'
import type { DaySpend } from '../money/spending.ts'
import { mayBeSent } from '../request/request-context.ts'
import { type EventLogReader, type LoggedRequest, statusOf } from './event-log.ts'
import type { LogPosition } from './log-search.ts'

// What the event log says of the providers of each country. Nothing changes by it.

interface Proportion {
  /** Of how many. */
  readonly of: number
  readonly rate: number
  readonly low: number
  readonly high: number
}

const z = 1.959964

/** With the Wilson interval of 95 %. Null: of none. */
export function proportion(some: number, of: number): Proportion | null {
  if (of === 0) return null
  const rate = some / of
  const scale = 1 + z ** 2 / of
  const middle = (rate + z ** 2 / (2 * of)) / scale
  const half = (z * Math.sqrt((rate * (1 - rate)) / of + z ** 2 / (4 * of ** 2))) / scale
  return {
    of,
    rate,
    low: Math.max(0, Math.min(rate, middle - half)),
    high: Math.min(1, Math.max(rate, middle + half)),
  }
}

export interface RouteFigures {
  readonly country: string | null
  readonly provider: string
  readonly messages: number
  /** Of those with a final delivery report. */
  readonly delivery: Proportion | null
  /** Of codes. */
  readonly conversion: Proportion | null
  /** Of a message, on average. Null: unknown. */
  readonly cost: { readonly micros: Micros; readonly currency: string } | null
}

export interface Routes {
  /** The start of a day in UTC. */
  readonly since: EpochMs
  readonly rows: readonly RouteFigures[]
}

type RoutePorts = {
  readonly eventLog: Pick<EventLogReader, 'findCalls'> & {
    spending(from: EpochMs, until: EpochMs): Promise<readonly DaySpend[]>
  }
}

const pageLength = 1000

/** Of whole days. @param most of the requests that are read; the day that reaches it is the last */
export async function readRoutes(
  { eventLog }: RoutePorts,
  now: EpochMs,
  since: EpochMs,
  most = Number.POSITIVE_INFINITY,
): Promise<Routes> {
  const sum = new RouteSum()
  const first = periodOf('day', since).start
  const { end } = periodOf('day', now)
  let day = end
  do {
    day -= dayMs
    const filter = { channel: 'SMS', since: day, until: day + dayMs } as const
    let before: LogPosition | undefined
    do {
      const { rows, next } = await eventLog.findCalls(filter, { before, limit: pageLength })
      for (const request of rows) sum.add(request, day)
      before = next ?? undefined
    } while (before)
  } while (day > first && sum.read < most)
  return { since: day, rows: sum.rows(await eventLog.spending(day, end)) }
}

class RouteSum {
  read = 0
  private readonly counts = new Map<string, ReturnType<typeof newCounts>>()
  /** When the latest code of a recipient and brand was verified. */
  private readonly verified = new Map<string, EpochMs>()
  private oldest = Number.POSITIVE_INFINITY

  /** Newest first. */
  add({ operation, at, brand, recipientHash, end, flags, deliveries }: LoggedRequest, day: EpochMs): void {
    this.read++
    this.oldest = Math.min(this.oldest, day)
    const key = `${recipientHash} ${brand}`
    if (operation === 'verify') {
      if (end?.status === 200 && flags.length === 0) this.verified.set(key, at)
      return
    }
    const sent = deliveries.filter(mayBeSent)
    const isCode = operation === 'send' || operation === 'resend'
    for (const each of sent) {
      const { country, provider } = each
      const own = this.counts.getOrInsertComputed(JSON.stringify([country, provider]), newCounts)
      own.days.set(day, (own.days.get(day) ?? 0) + 1)
      const status = statusOf(each)
      if (status === 'delivered') own.delivered++
      if (status === 'delivered' || status === 'failed') own.reported++
      if (!isCode) continue
      own.codes++
      if (each !== sent.at(-1)) continue
      // No code lives longer than an hour.
      if ((this.verified.get(key) ?? 0) > at && (this.verified.get(key) ?? 0) < at + hourMs) own.verified++
      this.verified.delete(key)
    }
  }

  rows(spending: readonly DaySpend[]): readonly RouteFigures[] {
    return Array.from(this.counts, ([key, { days, delivered, reported, codes, verified }]) => {
      const [country, provider] = JSON.parse(key) as [string | null, string]
      // The log may have only a part of its oldest day.
      const whole = [...days].filter(([day]) => days.size === 1 || day > this.oldest)
      const spent = spending.filter(
        (each) =>
          each.country === country && each.provider === provider && whole.some(([day]) => day === each.at),
      )
      const { currency } = spent.at(-1) ?? {}
      const paid = whole.reduce((total, [, messages]) => total + messages, 0)
      const micros = spent.reduce((total, each) => total + (each.currency === currency ? each.micros : 0), 0)
      return {
        ...{ country, provider, messages: [...days.values()].reduce((total, each) => total + each, 0) },
        delivery: proportion(delivered, reported),
        conversion: proportion(verified, codes),
        cost: currency === undefined ? null : { micros: Math.round(micros / paid), currency },
      }
    }).sort((one, other) => other.messages - one.messages || (one.provider < other.provider ? -1 : 1))
  }
}

function newCounts() {
  return { days: new Map<EpochMs, number>(), delivered: 0, reported: 0, codes: 0, verified: 0 }
}

export interface RouteOrder {
  readonly country: string
  readonly by: 'conversion' | 'delivery'
  readonly providers: readonly string[]
  /** No intervals of two providers that follow each other overlap. */
  readonly isProven: boolean
  /** It is the order now. */
  readonly isSet: boolean
  /** Fields of the action that sets it: what else the rule of the country has stays. */
  readonly rule: { readonly rule: string; readonly action: string; readonly providers: string } & Readonly<
    Record<string, string>
  >
}

/**
 * The order of the providers of each country that an operator could set: by the lower bound of conversion, or of delivery where no codes
 * were sent. Providers without messages come last.
 * @param configured names of the server's providers, in their order
 */
export function routeOrders(
  rows: readonly RouteFigures[],
  rules: readonly DestinationRule[],
  configured: readonly string[],
): readonly RouteOrder[] {
  return [...Map.groupBy(rows, ({ country }) => country)].flatMap(([country, all]): RouteOrder[] => {
    const ruleOf = (name: string | null) =>
      rules.findLast(({ rule, brandSlug }) => rule === name && brandSlug === null)
    const {
      action = 'allow',
      providers = [],
      sender = null,
      route = null,
    } = ruleOf(country) ?? ruleOf('*') ?? {}
    const now = (providers.length > 0 ? providers : [...new Set(configured)]).filter((name) =>
      configured.includes(name),
    )
    const by = all.some(({ conversion }) => conversion) ? 'conversion' : 'delivery'
    const ranked = all
      .filter(({ provider }) => now.includes(provider))
      .sort((one, other) => (other[by]?.low ?? -1) - (one[by]?.low ?? -1))
    if (country === null || ranked.length < 2 || action === 'block' || !ranked[0]?.[by]) return []
    const names = ranked.map(({ provider }) => provider)
    const order = [...names, ...now.filter((name) => !names.includes(name))]
    const isProven = ranked.every((each, index) => {
      const [better, own] = [ranked[index - 1]?.[by], each[by]]
      return index === 0 || (better && own && better.low > own.high)
    })
    const kept = { ...(sender !== null && { sender }), ...(route !== null && { route }) }
    return [
      {
        ...{ country, by, providers: order, isProven, isSet: order.join() === now.join() },
        rule: { rule: country, action, providers: order.join(','), ...kept },
      },
    ]
  })
}

export function orderWords({ country, by, providers, isProven, isSet, rule }: RouteOrder): Advice {
  const doubt = isProven ? '' : ' Intervals overlap, so the order is not proven.'
  const words = `${countryWords(country)}: ${providers.join(', ')}, by ${by}.${doubt}`
  return isSet
    ? advice`${words} This is the order now.`
    : advice`${words} To set it, use ${see('destination set', rule)}.`
}

export const routeListing = {
  country: {
    title: 'Country',
    value: ({ country }) => country,
    text: ({ country }) => countryWords(country),
  },
  provider: { title: 'Provider', value: ({ provider }) => provider },
  messages: { title: 'Messages', isNumber: true, value: ({ messages }) => messages },
  delivery: {
    title: 'Delivered',
    isNumber: true,
    value: ({ delivery }) => delivery,
    text: ({ delivery }) => proportionWords(delivery),
  },
  conversion: {
    title: 'Verified',
    isNumber: true,
    value: ({ conversion }) => conversion,
    text: ({ conversion }) => proportionWords(conversion),
  },
  currency: { value: ({ cost }) => cost?.currency ?? null },
  cost: {
    title: 'Cost of a message',
    isNumber: true,
    value: ({ cost }) => (cost ? cost.micros / 1e6 : null),
    text: ({ cost }) => (cost ? sumWords(cost.micros, cost.currency) : '-'),
  },
  costOfVerified: {
    title: 'Of a verified code',
    isNumber: true,
    value: (row) => (row.cost ? (perVerified(row) ?? 0) / 1e6 || null : null),
    text: (row) => {
      const micros = perVerified(row)
      return row.cost && micros !== null ? sumWords(micros, row.cost.currency) : '-'
    },
  },
} satisfies Listing<RouteFigures>

function perVerified({ cost, conversion }: RouteFigures): Micros | null {
  return cost && conversion && conversion.rate > 0 ? Math.round(cost.micros / conversion.rate) : null
}

/** Such as `90% (84.2% to 93.8%) of 150`. */
function proportionWords(found: Proportion | null): string {
  if (!found) return '-'
  const { of, rate, low, high } = found
  return `${percent(rate)} (${percent(low)} to ${percent(high)}) of ${count(of)}`
}
