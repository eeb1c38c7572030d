import { count, utc } from '../ground/format.ts'
import { hourMs, minuteMs } from '../ground/time.ts'
import { leastRate } from '../log/rejections.ts'
import type { HealthFacts } from './facts.ts'
import { bad, type Problem } from './problem.ts'
import { pumpingProblems } from './pumping-problems.ts'
import type { TrafficCount } from './silence.ts'

/** People enter most codes sooner. */
const dueMs = 5 * minuteMs
/** The traffic has two hours: what began earlier has no known start. */
const knownMs = 110 * minuteMs
/** Added to the codes of the days before, so that a new server has a usual share. */
const assumed = { sent: 50, verified: 40 }

const add = ({ sent, verified }: typeof assumed, { kind, count }: TrafficCount) =>
  kind === 'sms' ? { sent: sent + count, verified } : { sent, verified: verified + count }

/**
 * Codes by SMS that few people verify, against the same hours of the days before, without those of an attack. It began when the most
 * are missing since. Few codes have a wide interval (Wilson's, 3 standard deviations): the greatest share that they allow is below
 * half of the least that the days before allow.
 */
export function unverifiedProblems({ traffic, guard, statistics: { until: now } }: HealthFacts): Problem[] {
  const attacks = pumpingProblems(guard, now).flatMap(({ about, ongoing }) => (ongoing ? about : []))
  const codes = traffic.filter(
    ({ kind, detail }) => kind.startsWith('sms') && !attacks.includes(`pumping ${detail}`),
  )
  const before = codes.filter(({ stepMs }) => stepMs === hourMs).reduce(add, assumed)
  const usual = Math.min(1, before.verified / before.sent)
  let [sum, low, since, lately] = [{ sent: 0, verified: 0 }, { sent: 0, verified: 0 }, now, 0]
  // Of three quarters, since a slightly lower share before is no part of it.
  const missing = (of: typeof assumed) => 0.75 * usual * of.sent - of.verified
  // Of a minute the verified codes first, so that each sum with its sent codes is complete.
  codes.sort((one, other) => other.at - one.at || (one.kind > other.kind ? -1 : 1))
  for (const each of codes) {
    if (each.stepMs !== minuteMs || (each.kind === 'sms' && each.at + minuteMs > now - dueMs)) continue
    sum = add(sum, each)
    if (missing(sum) > missing(low)) [low, since] = [sum, each.at]
    if (each.at >= now - 2 * dueMs) lately = missing(sum)
  }
  const { sent, verified } = low
  const most = sent === 0 ? 1 : 1 - leastRate({ sent, rejected: sent - verified })
  const least = leastRate({ sent: before.sent, rejected: usual * before.sent })
  // Lately twice as many minutes of verified codes: it has ended if a third of the codes or more are verified.
  if (most > least / 2 || lately < -1) return []
  const harm = `${verified === 0 ? 'none' : count(verified)} of ${count(sent)}, usually ${Math.round(100 * usual)}%`
  const title = 'Codes are sent, but few are verified'
  const rows = { call: 'code', result: 'success', channel: 'SMS' } as const
  const remedy =
    'Send a test message to your own phone. If it does not arrive, ask the provider. If it does, check the apps.'
  const text = `${title} since ${utc(since).slice(0, 16)} UTC: ${harm}.`
  const known = since > now - knownMs ? since : undefined
  const ongoing = { title, harm, since: known, hit: { ...rows, until: now - dueMs }, codes: low }
  const list = { list: 'calls', filters: { ...rows, since } } as const
  return [{ ...bad('messages', text, remedy, list), about: 'unverified', ongoing }]
}
