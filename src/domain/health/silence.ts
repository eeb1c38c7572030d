import { see } from '../ground/advice.ts'
import { count, utc } from '../ground/format.ts'
import { dayMs, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import type { Counted } from '../log/stats.ts'
import type { Condition, ConditionVerdict, MinuteOfAttempts } from './conditions.ts'

// Silence: no calls, or no delivery reports, at an hour that usually has them.

/** Calls, the delivery reports of a provider, or codes by SMS and verified ones, in a step. */
export interface TrafficCount extends Pick<Counted, 'kind' | 'at' | 'count'> {
  readonly stepMs: number
  /** Of the delivery reports. */
  readonly provider: string
  /** Of codes by SMS: the country. */
  readonly detail: string
}

const daysBefore = 7
/** With fewer expected, silence may be chance. */
const leastExpected = 10
/** Delivery reports take longer than calls. */
const reportFactor = 2

/** The hours to compare with: those of the days before at the same time. */
export function hoursBefore(now: EpochMs, minutes: number): readonly EpochMs[] {
  const starts = [now, now - reportFactor * minutes * minuteMs].map((at) => at - (at % hourMs))
  return Array.from({ length: daysBefore }, (_, day) => starts.map((at) => at - (day + 1) * dayMs)).flat()
}

/**
 * How many an hour usually has: the median of the days before, but not more than a week ago, since weekends differ. 0: unknown, because
 * fewer than two days are known.
 */
function usual(own: readonly TrafficCount[], at: EpochMs): number {
  const hour = at - (at % hourMs)
  const all = Array.from({ length: daysBefore }, (_, day) =>
    own.reduce((sum, each) => {
      const isOf = each.stepMs === hourMs && each.at === hour - (day + 1) * dayMs
      return isOf ? sum + each.count : sum
    }, 0),
  )
  const known = all.slice(0, all.findLastIndex((each) => each > 0) + 1)
  if (known.length < 2) return 0
  const median = known.toSorted((one, other) => one - other)[Math.floor((known.length - 1) / 2)] ?? 0
  return Math.min(median, all.at(-1) || median)
}

/**
 * @param minutes of silence. 0: none is a problem
 * @param attempts of the last 30 minutes
 */
export function silenceVerdicts(
  traffic: readonly TrafficCount[],
  attempts: readonly MinuteOfAttempts[],
  minutes: number,
  now: EpochMs,
): readonly ConditionVerdict[] {
  if (minutes === 0) return []
  const calls = traffic.filter(({ kind }) => !kind.startsWith('sms'))
  return [...Map.groupBy(calls, ({ provider }) => provider)].flatMap(
    ([provider, own]): ConditionVerdict[] => {
      const windowMs = minutes * minuteMs * (provider === '' ? 1 : reportFactor)
      const lastAt = Math.max(...own.flatMap(({ stepMs, at }) => (stepMs === minuteMs ? at : [])))
      const since = Number.isFinite(lastAt) ? lastAt + minuteMs : undefined
      if (since !== undefined && since > now - windowMs)
        return [{ condition: silentCondition(provider, since, 0, minutes), lasts: false }]
      const inHour = Math.min(usual(own, now), usual(own, now - windowMs))
      const expected = Math.floor((inHour * windowMs) / hourMs)
      const accepted = attempts.reduce((sum, each) => {
        const isOf = each.provider === provider && each.at > now - windowMs && each.at < now - 5 * minuteMs
        return isOf ? sum + each.accepted : sum
      }, 0)
      if (expected < leastExpected || (provider !== '' && accepted < leastExpected)) return []
      return [{ condition: silentCondition(provider, since, expected, windowMs / minuteMs), lasts: true }]
    },
  )
}

function silentCondition(
  provider: string,
  since: EpochMs | undefined,
  expected: number,
  minutes: number,
): Condition {
  const title = provider === '' ? 'No calls' : `No delivery reports of ${provider}`
  const began = since === undefined ? '' : ` since ${utc(since).slice(0, 16)} UTC`
  return {
    kind: provider === '' ? 'calls.silent' : 'reports.silent',
    about: provider === '' ? 'calls' : `reports ${provider}`,
    data: { ...(provider !== '' && { provider }), expected, minutes },
    what: provider === '' ? 'calls' : 'reports',
    level: 'bad',
    text: `${title}${began}. At this time of the days before, ${minutes} minutes had about ${count(expected)}.`,
    remedy:
      provider === ''
        ? 'Check the proxy, the certificate and the network: the apps may not reach this server.'
        : 'Check that the provider still has the status callback URL of this server, and can reach it.',
    see: [provider === '' ? { list: 'calls', filters: {} } : see('callbacks')],
    ended: provider === '' ? 'Calls arrive again.' : `Delivery reports of ${provider} arrive again.`,
    ongoing: {
      title,
      detail: `${minutes} minutes usually have about ${count(expected)}`,
      ...(since !== undefined && { since }),
    },
  }
}
