import type { ReportedMessage } from '../delivery/delivery-reports.ts'
import { dayMs, type EpochMs, hourMs } from '../ground/time.ts'
import { periodStart } from './ranges.ts'
import type { Counted } from './stats.ts'

// Carriers reject a registered text that they do not recognize only in delivery reports.

export type RejectionRate = ReturnType<typeof rateOf>

/** `sent`: attempts that a provider accepted. */
interface Rejected {
  readonly sent: number
  readonly rejected: number
}

export type RejectionCount = Pick<Counted, 'kind' | 'brand' | 'provider' | 'detail' | 'count'> & {
  readonly stepMs: number
}

/** The first steps that count: hours of the last day, and days of that day and the seven before. */
export function rejectionSteps(now: number): readonly { readonly stepMs: number; readonly from: EpochMs }[] {
  const hours = periodStart('day', now)
  const days = hours - 7 * dayMs
  return [
    { stepMs: hourMs, from: hours },
    { stepMs: dayMs, from: days - (days % dayMs) },
  ]
}

/** @param counts of the kinds `attempt` and `rejected`, in `rejectionSteps` */
export function risingRejections(counts: readonly RejectionCount[]): readonly RejectionRate[] {
  return [...Map.groupBy(counts.flatMap(partOf), ({ brand, template }) => `${brand} ${template}`).values()]
    .map(rateOf)
    .filter(isRising)
    .sort((one, other) => other.day.rejected - one.day.rejected)
}

interface Part extends ReportedMessage, Rejected {
  readonly provider: string
  readonly reason: string
  readonly isDay: boolean
}

function partOf({ kind, brand, provider, detail, count, stepMs }: RejectionCount): Part[] {
  const [first = '', second = '', ...rest] = detail.split(' ')
  const about = { brand, provider, isDay: stepMs === hourMs }
  if (kind === 'rejected') {
    const reason = [second, ...rest].join(' ')
    return [{ ...about, template: first, reason, sent: 0, rejected: count }]
  }
  const isSent = kind === 'attempt' && first === 'accepted' && second !== ''
  return isSent ? [{ ...about, template: second, reason: '', sent: count, rejected: 0 }] : []
}

/** Of one template of a brand. */
function rateOf(parts: readonly Part[]) {
  const { brand, template } = parts[0] ?? { brand: '', template: '' }
  const inDay = parts.filter(({ isDay }) => isDay)
  const day = sumOf(inDay)
  const all = sumOf(parts.filter(({ isDay }) => !isDay))
  const causes = Map.groupBy(inDay, ({ provider, reason }) => `${provider} ${reason}`)
  const [most] = [...causes.values()].sort((one, other) => sumOf(other).rejected - sumOf(one).rejected)
  return {
    brand,
    template,
    day,
    /** The 7 to 8 days before that day. */
    before: { sent: all.sent - day.sent, rejected: all.rejected - day.rejected },
    /** The most frequent ones of the day. No reason: the delivery reports have none. */
    provider: most?.[0]?.provider ?? '',
    reason: most?.[0]?.reason || null,
  }
}

function sumOf(parts: readonly Rejected[]): Rejected {
  const total = { sent: 0, rejected: 0 }
  for (const { sent, rejected } of parts) {
    total.sent += sent
    total.rejected += rejected
  }
  return total
}

/** Fewer rejections are chance: phones that are off, and wrong numbers. */
const fewestRejections = 5

/** The rate is this many times the earlier one. A smaller rise is not a changed text or registration. */
const rise = 2

/** What a template without history counts as: it lets a new one fail as other SMS do. */
const assumed: Rejected = { sent: 20, rejected: 2 }

/**
 * The least rate that the day's messages allow (Wilson's interval, 3 standard deviations) is twice the rate before. Few
 * messages have a wide interval, so that they alarm only if most are rejected: 5 of 5, but not 5 of 20.
 */
export function isRising({ day, before }: Pick<RejectionRate, 'day' | 'before'>): boolean {
  if (day.rejected < fewestRejections) return false
  const earlier = (before.rejected + assumed.rejected) / (before.sent + assumed.sent)
  return leastRate(day) >= rise * earlier
}

/** What so few messages allow. */
export function leastRate({ sent, rejected }: Rejected): number {
  const all = allOf({ sent, rejected })
  const [rate, z] = [rejected / all, 3]
  const spread = z * Math.sqrt((rate * (1 - rate)) / all + z ** 2 / (4 * all ** 2))
  return (rate + z ** 2 / (2 * all) - spread) / (1 + z ** 2 / all)
}

/** A report may arrive the day after its message was sent. */
function allOf({ sent, rejected }: Rejected): number {
  return Math.max(sent, rejected)
}
