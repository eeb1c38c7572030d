import { explainedCodes, type ProviderCodes } from '../delivery/provider-codes.ts'
import { capitalized, count, counted, withoutPoint } from '../ground/format.ts'
import { dayMs, type EpochMs, hourMs, minuteMs, periodOf } from '../ground/time.ts'
import type { EventLogReader } from '../log/event-log.ts'
import { type CallFilter, type ErrorClass, figureRows, type LogCount } from '../log/log-search.ts'
import type { Lately } from '../log/statistics.ts'
import { sumWords, unitCurrency } from '../money/amounts.ts'
import { type DaySpend, spendBy } from '../money/spending.ts'
import type { Acknowledgement } from '../policy/policy-store.ts'
import type { Cost } from '../request/request-context.ts'
import { outageWords } from './database-fault.ts'
import type { HealthFacts } from './facts.ts'
import { firstDayAbout } from './first-day.ts'
import { earliest, smsOutage } from './outages.ts'
import type { BudgetCost, Ongoing, Problem } from './problem.ts'
import { problemsOf } from './problems.ts'
import { placeOf } from './pumping-problems.ts'

// What goes on now: the first line of the overview, its incidents, and the notes that are none.

export interface Incident extends Pick<Problem, 'level' | 'text' | 'remedy' | 'see'>, Ongoing {
  /** Operators acknowledge it by this name. */
  readonly about: string
  /** Their latest failures say why. */
  readonly providers: readonly string[]
  /** Null: not acknowledged since it began. */
  readonly acknowledged: Acknowledgement | null
}

/** Text, and times in it. */
export type Words = readonly (string | { readonly at: EpochMs })[]

/** Why most of the latest attempts at a provider failed. */
export interface Cause {
  readonly provider: string
  readonly reason: string | null
  readonly errorClass: ErrorClass | null
  /** Of the code, as the provider documents it. */
  readonly meaning: string | undefined
}

/** What an incident does. */
export interface Impact {
  /** Null: it stops no requests. */
  readonly people: Pick<LogCount, 'recipients' | 'isMore'> | null
  readonly costs: readonly Cost[]
  readonly causes: readonly Cause[]
  readonly spender: Spender | undefined
}

/** What spent most of a budget. */
interface Spender {
  readonly app: string
  readonly words: string
}

export interface FoundIncident {
  readonly incident: Incident
  readonly impact: Impact
}

/** `incidents`: those without an acknowledgement first, the worst before others. `notes`: what is past, permanent or intended. */
export function incidentsOf(facts: HealthFacts): {
  readonly incidents: readonly Incident[]
  readonly notes: readonly Problem[]
} {
  const ongoing = problemsOf({ ...facts, statistics: facts.lately.hour }).flatMap((problem) =>
    problem.ongoing && problem.about !== undefined
      ? [{ ...problem, ...problem.ongoing, about: problem.about }]
      : [],
  )
  const names = new Set(ongoing.map(({ about }) => about))
  const outage = smsOutage(facts)
  const isPart = ({ about }: { readonly about: string }) =>
    outage?.names.some((name) => about === `provider ${name}`) ||
    (outage && about === 'unverified') ||
    // The failures of a provider are why messages fail.
    ((about === 'codes' || about === 'notifications') &&
      [...names].some((name) => name.startsWith('provider ')))
  const all = ongoing
    .filter((problem) => !isPart(problem))
    .map((problem) => {
      const [kind = '', name = ''] = problem.about.split(/ (.*)/)
      const isProvider = kind === 'provider'
      // The alerts about an attack are about all countries. That of a provider already has its start.
      const reported = isProvider ? undefined : facts.open.get(kind === 'pumping' ? kind : problem.about)
      const since = earliest(problem.since, reported)
      return incidentOf({ ...problem, since, providers: isProvider ? [name] : [] }, facts)
    })
  if (outage) {
    const { since } = outage
    const filters = {
      channel: 'SMS',
      ...figureRows.failedOrUnknown,
      ...(since !== undefined && { since }),
    } as const
    const sms = {
      about: 'sms',
      level: 'fail',
      title: 'No SMS',
      text: ongoing
        .filter(isPart)
        .map(({ text }) => text)
        .join(' '),
      remedy: '',
      see: [{ list: 'deliveries', filters, title: 'Failures' }],
      since,
      hit: { channel: 'SMS', result: 'failed' },
      providers: outage.names,
    } as const
    all.unshift(incidentOf(sms, facts))
  }
  return {
    incidents: all.sort(
      (one, other) => Number(one.acknowledged !== null) - Number(other.acknowledged !== null),
    ),
    notes: problemsOf(facts).filter(({ about }) => about === undefined || !names.has(about)),
  }
}

/** What operators can acknowledge. */
export function incidentNames(facts: HealthFacts): readonly string[] {
  return [firstDayAbout, ...incidentsOf(facts).incidents.map(({ about }) => about)]
}

/** What operators did about an attack or a provider, and a guard that is off: no incidents, but each has a line. */
export function standingLines({
  guard,
  providers,
  statistics: { until: now },
}: HealthFacts): readonly Words[] {
  const off = guard.mode === 'off' ? [['The SMS pumping guard is off: it sends every code.']] : []
  const blocks = guard.blocks.filter(({ denied, createdAt }) => denied > 0 || createdAt > now - dayMs)
  const pauses = providers.flatMap(({ name, pausedUntil: at }) =>
    at === null ? [] : [[`${name} is paused until `, { at }, '.']],
  )
  return [
    ...off,
    ...blocks.map(({ prefix, country, expiresAt, denied }) => [
      `Codes to +${prefix}… (${placeOf(country)}) are blocked until `,
      { at: expiresAt },
      `: ${count(denied)} denied in the last hour.`,
    ]),
    ...pauses,
  ]
}

/** Without a known start it is acknowledged for a day. */
function incidentOf(
  incident: Omit<Incident, 'acknowledged'>,
  { acknowledgements, statistics }: HealthFacts,
): Incident {
  const { about, since = statistics.until - dayMs } = incident
  // What began later is another incident.
  const found = acknowledgements.find((each) => each.about === about && each.at >= since)
  return { ...incident, acknowledged: found ?? null }
}

export interface ImpactPorts {
  countFound: EventLogReader['countFound']
  findDeliveries: EventLogReader['findDeliveries']
  /** What SMS to the country cost in the last hour. */
  spentLately(now: EpochMs, country: string): Promise<readonly Cost[]>
  /** By day; `until` is exclusive. */
  spending(from: EpochMs, until: EpochMs): Promise<readonly DaySpend[]>
}

export async function readImpact(
  ports: ImpactPorts,
  incident: Incident,
  codes: ReadonlyMap<string, ProviderCodes>,
  now: EpochMs,
): Promise<FoundIncident> {
  const { hit, outage, cost, providers } = incident
  const hitRows = rowsHit(incident, now)
  const [people, costs, causes, spender] = await Promise.all([
    outage ?? (hit ? ports.countFound('calls', hitRows) : null),
    cost === undefined ? [] : 'country' in cost ? ports.spentLately(now, cost.country) : [cost],
    Promise.all(providers.map((provider) => readCause(ports, provider, codes))),
    cost && 'period' in cost ? readSpender(ports, cost, hitRows, now) : undefined,
  ])
  // Some rows do not count, and some people have verified since.
  const { sent = Number.POSITIVE_INFINITY, verified = 0 } = incident.codes ?? {}
  const hurt = people && { ...people, recipients: Math.max(0, Math.min(people.recipients, sent) - verified) }
  return { incident, impact: { people: hurt, costs, causes, spender } }
}

/** The app and the country that spent most of a budget. */
async function readSpender(
  ports: ImpactPorts,
  { period, currency }: BudgetCost,
  hit: CallFilter,
  now: EpochMs,
): Promise<Spender | undefined> {
  const { start, end } = periodOf(period, now)
  const isOf = (row: DaySpend) =>
    row.currency === currency &&
    (['app', 'brand', 'country'] as const).every((each) => (hit[each] ?? row[each]) === row[each])
  const rows = (await ports.spending(start, end)).filter(isOf)
  const [most] = spendBy(rows, (row) => `${row.app} ${placeOf(row.country)}`)
  if (!most) return undefined
  const [, app = '', place] = /^(\S+) (.*)/.exec(most.name) ?? []
  return { app, words: `app ${app} spent ${sumWords(most.micros, currency)} on SMS to ${place}` }
}

/** The rows of the people who got no message. An hour, if it is unknown when the incident began. */
export function rowsHit({ hit, since }: Pick<Incident, 'hit' | 'since'>, now: EpochMs): CallFilter {
  const at = since ?? now - hourMs
  return { ...hit, since: at - (at % minuteMs) }
}

const attemptsOfCause = 20

async function readCause(
  ports: ImpactPorts,
  provider: string,
  codes: ReadonlyMap<string, ProviderCodes>,
): Promise<Cause> {
  const { statuses } = figureRows.failedOrUnknown
  const { rows } = await ports.findDeliveries({ provider, statuses }, { limit: attemptsOfCause })
  const byReason = [...Map.groupBy(rows, ({ reason }) => reason).values()]
  const [same = []] = byReason.sort((one, other) => other.length - one.length)
  const [{ reason = null, errorClass = null } = {}] = same
  const code = explainedCodes(reason ?? '', codes).find((each) => each.provider === provider)
  const meaning = code && withoutPoint(code.meaning).replace(/^./, (first) => first.toLowerCase())
  return { provider, reason, errorClass, meaning }
}

/** The incident of the first line: one that hits people now, if there is one. Undefined: operators know of all. */
export function leading(found: readonly FoundIncident[]): FoundIncident | undefined {
  const unknown = found.filter(({ incident }) => incident.acknowledged === null)
  return unknown.find(hitsPeople) ?? unknown[0]
}

export function hitsPeople({ impact: { people } }: FoundIncident): boolean {
  return people !== null && people.recipients > 0
}

/** What goes on, and since when. */
export function startWords({ title, since }: Pick<Incident, 'title' | 'since'>): Words {
  return since === undefined ? [title] : [title, ' since ', { at: since }]
}

/** With the harm to people. */
export function headline({ incident, impact: { people, costs } }: FoundIncident): Words {
  const { about, providers, outage, codes } = incident
  const spent = costs.flatMap(({ micros, currency }) =>
    currency === unitCurrency ? [] : `${sumWords(micros, currency)} in the last hour`,
  )
  const harm = outage
    ? outageWords(outage)
    : people && people.recipients > 0
      ? codes
        ? `${incident.harm}; ${peopleWords(people)} ${people.recipients === 1 ? 'waits' : 'wait'}`
        : `${peopleWords(people)} got ${about === 'sms' ? 'none' : 'no message'}`
      : people && providers.length > 0
        ? 'other providers sent its messages'
        : [...(about.startsWith('pumping ') ? spent : []), incident.harm ?? []].flat().join(', ')
  return [...startWords(incident), harm === '' ? '.' : `: ${harm}.`]
}

/** Why, and what to do: at most two short sentences. */
export function adviceOf({ incident, impact: { causes, spender } }: FoundIncident): string {
  const { detail, advice, remedy, about, text } = incident
  const cause = about === 'sms' ? causeWords(causes) : `it ${answer(causes[0], false)}`
  const why = causes.some(({ reason }) => reason !== null) ? cause : (detail ?? spender?.words)
  const words = [why && `${capitalized(why)}.`, remedyOf(causes) ?? advice ?? remedy]
  return words.filter(Boolean).join(' ') || text
}

export function peopleWords({ recipients, isMore }: Pick<LogCount, 'recipients' | 'isMore'>): string {
  return `${isMore ? 'more than ' : ''}${counted(recipients, 'person', 'people')}`
}

/** Such as `both providers answer HTTP 401`. */
function causeWords(causes: readonly Cause[]): string {
  const [first, ...others] = causes
  if (!first) return ''
  const isSame = others.every(({ reason }) => reason === first.reason)
  if (others.length === 0) return `provider ${first.provider} ${answer(first, false)}`
  if (!isSame) {
    const all = causes.map((cause) => `${cause.provider} ${answer({ ...cause, meaning: undefined }, false)}`)
    return `provider ${all.join(' and ')}`
  }
  return `${others.length === 1 ? 'both' : `all ${count(causes.length)}`} providers ${answer(first, true)}`
}

function answer(cause: Cause | undefined, isPlural: boolean): string {
  const verb = (word: string) => (isPlural ? word : `${word}s`)
  const { reason = null, meaning } = cause ?? {}
  if (reason === null) return verb('fail')
  if (reason === 'time-out') return `${isPlural ? 'do' : 'does'} not answer in time`
  if (isUnreachable(reason)) return `cannot be reached (${reason})`
  return `${verb('answer')} ${reason}${meaning === undefined ? '' : `: ${meaning}`}`
}

function isUnreachable(reason: string | null): boolean {
  return /^(?:E[A-Z]+|[A-Z]\w+Error|\w*(?:Refused|Reset|Closed)\w*)$/.test(reason ?? '')
}

/** Undefined: the causes do not say what to do. */
function remedyOf(causes: readonly Cause[]): string | undefined {
  const names = causes.map(({ provider }) => provider).join(' and ')
  const is = (test: (cause: Cause) => boolean) => causes.length > 0 && causes.every(test)
  if (is(({ reason }) => /\b40[13]\b/.test(reason ?? ''))) return `Check the credentials of ${names}.`
  if (is(({ errorClass }) => errorClass === 'account'))
    return `Check the credentials and the balance of ${names}.`
  if (is(({ errorClass }) => errorClass === 'unknown' || errorClass === 'retryable')) {
    const hasAnswered = is(({ reason }) => reason !== 'time-out' && !isUnreachable(reason))
    return `Check the status page of ${names}${hasAnswered ? '' : ', and the network of this server'}.`
  }
  return undefined
}

/** The first line if nothing is wrong. */
export function calmVerdict({ providers, lately }: Pick<HealthFacts, 'providers' | 'lately'>) {
  const isReady = providers.some(({ channel, isForDevelopment }) => channel === 'SMS' && !isForDevelopment)
  return isReady
    ? { tone: 'good', text: `All well: ${calmWords(lately)} in the last five minutes.` }
    : { tone: 'warn', text: 'SMS reach no phone: `SMS_PLAIN` names no provider that delivers them.' }
}

/** What happened in the last five minutes, if nothing is wrong. */
export function calmWords({ fiveMinutes }: Pick<Lately, 'fiveMinutes'>): string {
  const { totals, verifyTimes } = fiveMinutes
  const { sends, sendsFailed, verified, notified, notifyFailed } = totals
  const failed = sendsFailed + notifyFailed
  const codes =
    sends + verified === 0 ? [] : [`${counted(sends, 'code')} sent`, `${count(verified)} verified`]
  const time = verifyTimes.count > 0 && `p95 to verify ${boundWords(verifyTimes.p95Seconds)}`
  const all = [
    ...codes,
    time,
    notified > 0 && `${counted(notified, 'notification')} sent`,
    failed > 0 && `${count(failed)} failed`,
  ].filter(Boolean)
  return all.length === 0 ? 'no codes and notifications' : all.join(', ')
}

/** Of the times to verify, the upper bounds of bins are known. */
export function boundWords(seconds: number | null): string {
  return seconds === null ? 'more than 5 min' : `at most ${seconds} s`
}
