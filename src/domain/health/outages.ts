import { see } from '../ground/advice.ts'
import { channelNames } from '../ground/contact.ts'
import { ago, capitalized, counted, duration, partOf, utc } from '../ground/format.ts'
import { type EpochMs, minuteMs } from '../ground/time.ts'
import { type CallFilter, errorClasses, figureRows, type Span, spanOf } from '../log/log-search.ts'
import { periodWords } from '../log/ranges.ts'
import {
  isTrouble,
  type LastFailures,
  type LastHour,
  type ProviderHealth,
  type Statistics,
  sumOfTries,
  type Tries,
  troubleSince,
} from '../log/statistics.ts'
import type { IncidentThresholds } from '../policy/policy-store.ts'
import { lasting, type MinuteOfAttempts, providerVerdicts } from './conditions.ts'
import { bad, fail, type LogRows, type Problem, warn } from './problem.ts'

// What failed in a period: when, how much, and whether it goes on.

export interface OutageFacts {
  readonly thresholds: Pick<IncidentThresholds, 'failedPercent'>
  readonly statistics: Statistics
  /** What is not in it has had no failure for 10 minutes. */
  readonly lastFailures: LastFailures
  /** Of the minutes of `attemptsWindowMs`. */
  readonly attempts: readonly MinuteOfAttempts[]
  readonly providers: readonly ProviderHealth[]
  /** When what goes on began, as alerts say. */
  readonly open: ReadonlyMap<string, EpochMs>
}

/** Codes and notifications that no provider accepted, as far as otpost knows. */
export function sendingProblems({ statistics, lastFailures, thresholds }: OutageFacts): Problem[] {
  const { totals, points, period } = statistics
  const share = thresholds.failedPercent / 100
  return (
    [
      ['code', 'sends', 'sendsFailed'],
      ['notification', 'notified', 'notifyFailed'],
    ] as const
  ).flatMap(([noun, success, failure]) => {
    const [failed, all] = [totals[failure], totals[success] + totals[failure]]
    if (failed === 0) return []
    const tries = points.map(({ at, ...figures }) => {
      return { at, failed: figures[failure], all: figures[success] + figures[failure] }
    })
    const latest = lastFailures.get(failure)
    const filters: CallFilter = { ...spanOf(statistics), ...figureRows[failure] }
    const isOngoing = latest !== undefined && isTroubleNow(tries, statistics, share)
    const text = `Sending failed for ${partOf(failed, all, noun)} ${periodWords[period]}. ${whenWords(tries, statistics, latest, share)}`
    const problem = {
      ...(isOngoing ? bad : warn)('messages', text, '', { list: 'calls', filters }),
      about: `${noun}s`,
    }
    if (!isOngoing || isChance(tries, statistics.until - 11 * minuteMs - statistics.stepMs)) return problem
    const since = troubleSince(tries, statistics.stepMs, share)
    return { ...problem, ongoing: { title: `Some ${noun}s fail`, since, hit: figureRows[failure] } }
  })
}

/** Those that operators have paused. */
export function pauseProblems({ providers }: Pick<OutageFacts, 'providers'>): Problem[] {
  return providers.flatMap((provider) => {
    const { name, pausedUntil } = provider
    if (pausedUntil === null) return []
    const hasOther = providers.some((other) => other !== provider && standsIn(other, provider))
    const others = hasOther
      ? 'Other providers send its SMS.'
      : 'No other provider sends its SMS, so they fail.'
    const text = `Provider ${name} is paused until ${utc(pausedUntil)}. ${others}`
    const problem = (hasOther ? warn : fail)('providers', text, '', see('provider resume', { name }))
    const title = `Provider ${name} is paused, and no other sends its SMS`
    const ongoing = { title, act: see('provider resume', { name }) }
    return { ...problem, about: `pause ${name}`, ...(!hasOther && { ongoing }) }
  })
}

/** One for each provider, those with the most failures first. */
export function providerProblems({
  providers,
  statistics,
  lastFailures,
  attempts,
  thresholds,
  open: reported,
}: OutageFacts): Problem[] {
  const share = thresholds.failedPercent / 100
  const { byProvider, failures, period, from: since, stepMs } = statistics
  const failedBy = (name: string) => attemptsOf(byProvider.find((share) => share.name === name)).failed
  const removed = byProvider.filter(({ name }) => providers.every((provider) => provider.name !== name))
  const all = [...providers, ...removed].sort((one, other) => failedBy(other.name) - failedBy(one.name))
  const failing = failingNow(providers, attempts)
  return all.flatMap((provider) => {
    const { name } = provider
    const condition = failing.get(name)
    const circuit = 'state' in provider ? circuitOf(provider, providers) : undefined
    const inHour = 'lastHour' in provider ? attemptsOf(provider.lastHour) : none
    const inPeriod = attemptsOf(byProvider.find((share) => share.name === name))
    const tries = statistics.tries.get(name) ?? []
    const latest = lastFailures.get(name)
    const cause = failures.find((failure) => failure.provider === name)?.errorClass
    const parts = [
      circuit?.text,
      inPeriod.failed > 0 &&
        `${shareOf(inPeriod)} failed or ${inPeriod.failed === 1 ? 'has' : 'have'} an unknown result ${periodWords[period]}${cause ? `, most often: ${errorClasses[cause]}` : ''}.`,
      inPeriod.failed > 0 && whenWords(tries, statistics, latest, share),
      isFailing(inHour, share) && inHour.all !== inPeriod.all && `${shareOf(inHour)} in the last hour.`,
    ].filter(Boolean)
    const { statuses } = figureRows.failedOrUnknown
    const rows: LogRows = { list: 'deliveries', filters: { provider: name, since, statuses } }
    const test = see('test-send', { provider: name })
    const isUntested = 'hasAccepted' in provider && !provider.hasAccepted
    if (parts.length === 0 && !condition) {
      const text = `Provider ${name} has never accepted a message.`
      return isUntested ? warn('providers', text, 'Send a test message to yourself.', test) : []
    }
    const about = `provider ${name}`
    const more = [...parts, ...(isUntested ? ['It has never accepted a message.'] : [])].join(' ')
    const isOngoing =
      latest !== undefined && (isTroubleNow(tries, statistics, share) || isFailing(inHour, share))
    const level = condition ? fail : circuit?.isBad || isOngoing ? bad : warn
    const text = condition ? `${condition.text} ${capitalized(more)}` : `Provider ${name}: ${more}`
    const sees = isUntested ? [rows, test] : [rows]
    const problem = { ...level('providers', text, condition?.remedy ?? '', ...sees), about }
    // Without those that the recipient or the message caused.
    const own = attempts.filter((each) => each.provider === name)
    const isCertain = condition !== undefined || circuit?.isBad
    const isPaused = 'pausedUntil' in provider && provider.pausedUntil !== null
    if (level === warn || isPaused || (isChance(own, 0) && !isCertain)) return problem
    const verb =
      !condition && !isOngoing
        ? 'is skipped'
        : condition || inHour.failed === inHour.all
          ? 'fails'
          : 'fails in part'
    const began = condition
      ? failingSince(attempts, reported.get(about), name)
      : troubleSince(tries, stepMs, share)
    const hit = { provider: name, result: 'failed' } as const
    const isSpare =
      'state' in provider && providers.some((other) => other !== provider && standsIn(other, provider))
    const act = isSpare &&
      provider.channel === 'SMS' && { act: see('provider pause', { name, duration: '1h' }) }
    return { ...problem, ongoing: { title: `Provider ${name} ${verb}`, since: began, hit, ...act } }
  })
}

/** By provider. */
function failingNow(providers: readonly ProviderHealth[], attempts: readonly MinuteOfAttempts[]) {
  const open = new Set(providers.filter(({ state }) => state !== 'closed').map(({ name }) => name))
  return new Map(
    lasting(providerVerdicts(attempts, open, new Map())).map((condition) => [
      condition.data.provider,
      condition,
    ]),
  )
}

/** All providers of SMS fail, so that no SMS is sent. */
export function smsOutage({
  providers,
  attempts,
  open: reported,
}: Pick<OutageFacts, 'providers' | 'attempts' | 'open'>) {
  const sms = providers.filter(({ channel, pausedUntil }) => channel === 'SMS' && pausedUntil === null)
  const failing = failingNow(sms, attempts)
  const names = sms.map(({ name }) => name)
  if (names.length === 0 || !names.every((name) => failing.has(name))) return undefined
  // Since the last of them fails.
  const all = names.flatMap((name) => reported.get(`provider ${name}`) ?? [])
  const last = all.length === names.length ? Math.max(...all) : undefined
  return { names, since: failingSince(attempts, last, ...names) }
}

/**
 * The first failure since one of them accepted a message.
 * @param reported in the first alert. It counts if none of the attempts was accepted
 */
export function failingSince(
  attempts: readonly MinuteOfAttempts[],
  reported: EpochMs | undefined,
  ...names: readonly string[]
): EpochMs | undefined {
  const own = attempts.filter(({ provider }) => names.includes(provider))
  const acceptedAt = Math.max(...own.filter(({ accepted }) => accepted > 0).map(({ at }) => at))
  const failed = own.filter(({ at, failed }) => failed > 0 && at >= acceptedAt).map(({ at }) => at)
  const first = failed.length === 0 ? undefined : Math.min(...failed)
  return Number.isFinite(acceptedAt) ? first : earliest(first, reported)
}

/** The providers that only failed. */
export function withoutAccepted(attempts: readonly MinuteOfAttempts[]): readonly string[] {
  const names = (of: 'accepted' | 'failed') =>
    new Set(attempts.flatMap((minute) => (minute[of] > 0 ? minute.provider : [])))
  return [...names('failed').difference(names('accepted'))]
}

export function earliest(...times: readonly (EpochMs | undefined)[]): EpochMs | undefined {
  const all = times.filter((at) => at !== undefined)
  return all.length === 0 ? undefined : Math.min(...all)
}

/** In UTC. */
function spanWords({ from, until }: Span): string {
  const [day, time] = minuteWords(from)
  const [lastDay, lastTime] = minuteWords(until)
  return `from ${day} ${time} to ${day === lastDay ? '' : `${lastDay} `}${lastTime} UTC`
}

function minuteWords(at: number): readonly [day: string, time: string] {
  return [utc(at).slice(0, 10), utc(at).slice(11, 16)]
}

/** When, and whether it goes on. @param latest the minute of it. Undefined: not in the last 10 minutes */
function whenWords(
  tries: readonly Tries[],
  statistics: Statistics,
  latest: EpochMs | undefined,
  share: number,
): string {
  const { stepMs, until: now } = statistics
  if (latest !== undefined)
    return `${isTroubleNow(tries, statistics, share) ? 'It goes on: the' : 'The'} latest failure was ${ago(Math.min(latest + minuteMs, now), now)}.`
  const failing = tries.filter(({ failed }) => failed > 0)
  const [from, last] = [failing[0]?.at ?? now, failing.at(-1)?.at ?? now]
  const until = Math.min(last + stepMs, now - 10 * minuteMs)
  if (from < until) return `They failed ${spanWords({ from, until })}.`
  return `None failed since ${utc(until).slice(0, 16)} UTC.`
}

/** Fewer may be chance. */
const leastFailures = 3

function isChance(
  failures: readonly { readonly at: EpochMs; readonly failed: number }[],
  since: EpochMs,
): boolean {
  return failures.reduce((sum, { at, failed }) => (at >= since ? sum + failed : sum), 0) < leastFailures
}

/** In this step and the one before, or in the last minutes. */
function isTroubleNow(tries: readonly Tries[], { stepMs, until }: Statistics, share: number): boolean {
  const recent = tries.filter(({ at }) => at + stepMs + Math.max(stepMs, 5 * minuteMs) > until)
  return isFailing(sumOfTries(recent), share)
}

const none = { failed: 0, all: 0 }

/** Unknown results count as failed. */
function attemptsOf(figures: LastHour | undefined): typeof none {
  if (!figures) return none
  const failed = figures.failed + figures.unknown
  return { failed, all: figures.accepted + failed }
}

function isFailing({ failed, all }: typeof none, share: number): boolean {
  return isTrouble(failed, all, share)
}

function shareOf({ failed, all }: typeof none): string {
  return partOf(failed, all, 'attempt')
}

export function isIdle({ lastHour }: Pick<ProviderHealth, 'lastHour'>): boolean {
  return attemptsOf(lastHour).all === 0
}

function circuitOf(
  provider: ProviderHealth,
  all: readonly ProviderHealth[],
): { readonly isBad: boolean; readonly text: string } | undefined {
  const { channel, state, failuresInARow, openMs } = provider
  const inARow = `${counted(failuresInARow, 'failure')} in a row`
  if (state === 'open') {
    const others = all.some((other) => other !== provider && standsIn(other, provider))
    const meanwhile = others
      ? `Other providers send its ${channelNames[channel]}.`
      : `No other provider sends its ${channelNames[channel]}, so otpost still uses it.`
    return { isBad: true, text: `circuit open for ${duration(openMs)} after ${inARow}. ${meanwhile}` }
  }
  if (state === 'half-open') {
    const next = isIdle(provider)
      ? 'It had no attempts in the last hour, so nothing tests it.'
      : 'The next message to it decides whether it closes.'
    return { isBad: true, text: `circuit half-open after ${inARow}. ${next}` }
  }
  return failuresInARow === 0 ? undefined : { isBad: false, text: `${inARow}.` }
}

function standsIn(other: ProviderHealth, { channel, routes }: ProviderHealth): boolean {
  if (other.state !== 'closed' || other.pausedUntil !== null || other.channel !== channel) return false
  return routes.length === 0 || routes.some((route) => other.routes.includes(route))
}
