import type { Channel } from '../ground/contact.ts'
import { type Failure, type FailureKind, type FailureReason, failureMessages } from '../ground/failures.ts'
import { clockToleranceMs, type Secrets } from '../ground/ports.ts'
import {
  type CalendarPeriod,
  type Clock,
  dayMs,
  type EpochMs,
  hourMs,
  minuteMs,
  periodOf,
} from '../ground/time.ts'
import type { BudgetName, LimitName } from '../request/limit-names.ts'
import type { Effect } from './effects.ts'
import type { AppScope } from './scope.ts'

/** Of the rejections of each limit (design D50). Undefined: the error says it, or only the console has the limit. */
const reasons: Readonly<Record<LimitName, FailureReason | undefined>> = {
  'app-minute': 'app_minute',
  'status-minute': 'app_minute',
  cooldown: undefined,
  'phone-minute': 'phone_minute',
  'recipient-hour': 'phone_hour',
  failures: 'wrong_codes',
  credentials: 'credentials',
  'integration-requests': 'client_ip',
  'console-logins': undefined,
  budget: 'budget',
  queue: 'queue',
  'new-country': 'guard',
}

/** The key of records: a name, or the hashed identifiers under each secret key, present key first. */
export type Subject = readonly [string, ...string[]]

/** At most `max` units in a fixed window that opens with the first counted claim (spec 8, design D3). */
export interface StoredClaim {
  readonly subject: Subject
  /** Unique within the subject, such as `minute` or `cooldown:acme`. */
  readonly name: string
  readonly max: number
  /** How many of `max` it takes; 1 if left out. Budgets count millionths of their currency. */
  readonly units?: number | undefined
  readonly windowMs: number
  /** The window is this calendar period in UTC instead. */
  readonly period?: CalendarPeriod | undefined
  /** False: checked but not counted. */
  readonly counted: boolean
}

/** With what a store does not need. */
export interface Claim extends StoredClaim {
  /** Null: an Idempotency-Key, which request traces do not name. */
  readonly limit: LimitName | null
  /** Instead of that of the limit. */
  readonly reason?: FailureReason
  readonly budget?: BudgetName
  /** Of jobs that wait. The window does not end, so that this many jobs that ended count in `max` and in the count. */
  readonly ended?: number
  /** For `Retry-After`, instead of when the window ends. */
  readonly retryMs?: number
  readonly failure: FailureKind
  /** Follows `max` in the message, such as `per minute for this phone`. Empty: the message omits `max`. */
  readonly scope: string
}

export interface LimitCount {
  readonly count: number
  /** Exclusive. */
  readonly expiresAt: EpochMs
}

/** A counted claim. It can be given back only to the window that counted it. */
export interface Grant extends LimitCount {
  /** As in its claim. */
  readonly units?: number | undefined
  readonly subject: Subject
  readonly name: string
}

/** One feature of a request: what it claims, why it rejects, what it writes, and what it changes after the delivery. */
export interface Gate {
  /** All gates claim in one step: all claims or none. */
  readonly claims?: readonly Claim[]
  /** Whether the claims also count a request that a later gate finds invalid. */
  readonly countsInvalid?: boolean
  /** Why the request is rejected, unless a limit of an earlier gate rejects it. */
  readonly refusal?: Failure | undefined
  /** Written in the step that claims. */
  readonly effects?: readonly Effect[]
  /**
   * Called when no limit rejects the request, also if this gate does.
   * @param grants of its claims that were counted, in their order
   */
  admitted?(grants: readonly Grant[]): void | Promise<void>
  /** Called when a limit rejects the request. */
  limited?(by: Claim): void
  /** Called after the delivery. Called without grants when the request is rejected; the result is then ignored. */
  settle?(delivered: Delivered, grants: readonly Grant[]): Settlement | Promise<Settlement>
}

export interface Delivered {
  /** How many attempts may have been sent. */
  readonly sent: number
  /** The positions of the recipients whose message no provider accepted. */
  readonly failed: readonly (number | null)[]
}

export interface Settlement {
  readonly back?: readonly Grant[]
  /** Counted for each attempt that may have been sent, except the first. */
  readonly further?: readonly Claim[]
  /** Its window begins now. */
  readonly restart?: { readonly grant: Grant; readonly durationMs: number } | undefined
  readonly effects?: readonly Effect[]
}

export const unchanged: Settlement = {}

export interface Refusal {
  readonly allowed: false
  /** Index of the first exhausted claim. */
  readonly refusedBy: number
  readonly expiresAt: EpochMs
  readonly resetsInMs: number
}

export interface Granted {
  readonly allowed: true
  /** Of each counted claim, in order. */
  readonly counts: readonly LimitCount[]
}

export type LimitDecision = Granted | Refusal

/**
 * All or nothing. A window that ends too late (clock set back) is shortened.
 * @param openWindow the stored counter of a claim; undefined if missing or expired
 */
export function decide(
  claims: readonly StoredClaim[],
  openWindow: (claim: StoredClaim) => LimitCount | undefined,
  now: number,
): { decision: LimitDecision; changes: readonly Grant[] } {
  const shortened: Grant[] = []
  const counted: Grant[] = []
  const counts: LimitCount[] = []
  let index = 0
  for (const claim of claims) {
    const { subject, name } = claim
    const open = openWindow(claim)
    const isTooLong = open !== undefined && open.expiresAt > latestEnd(claim, now)
    const expiresAt = open && !isTooLong ? open.expiresAt : windowEnd(claim, now)
    if (isTooLong) shortened.push({ subject, name, count: open.count, expiresAt })
    const count = (open?.count ?? 0) + (claim.units ?? 1)
    if (count > claim.max) {
      const decision = { allowed: false, refusedBy: index, expiresAt, resetsInMs: expiresAt - now } as const
      return { decision, changes: shortened }
    }
    index++
    if (!claim.counted) continue
    counts.push({ count, expiresAt })
    counted.push({ subject, name, count, expiresAt })
  }
  const changes = shortened.length === 0 ? counted : [...shortened, ...counted]
  return { decision: { allowed: true, counts }, changes }
}

/**
 * Of an open window. A calendar period that has begun stays the present one if the clock is set back to the period before it: it would
 * otherwise begin twice, with a new budget. A clock that was further ahead cannot keep a budget exhausted for long.
 */
function latestEnd(claim: StoredClaim, now: EpochMs): EpochMs {
  const end = windowEnd(claim, now + clockToleranceMs)
  return claim.period === undefined ? end : periodOf(claim.period, end).end
}

function windowEnd({ period, windowMs }: StoredClaim, now: number): EpochMs {
  return period === undefined ? now + windowMs : periodOf(period, now).end
}

/** Spec 8 and design D22 to D24. 0 turns off the last two. */
export interface LimitSettings {
  readonly globalPerMinute: number
  readonly phonePerMinute: number
  readonly phonePerHour: number
  readonly smsCooldownSeconds: number
  readonly failureBudgetPerDay: number
  readonly emailPerHour: number
}

function rateLimit(
  limit: LimitName,
  subject: Subject,
  name: string,
  max: number,
  windowMs: number,
  scope = '',
): Claim {
  return { limit, subject, name, max, windowMs, counted: true, failure: 'rate_limited', scope }
}

/** The typical message of spec 7, then the limit and when it resets. */
export function refusalMessage({ limit, budget, failure, max, scope }: Claim, time: string): string {
  const isOfSends = limit === 'phone-minute' || limit === 'recipient-hour'
  const opening = isOfSends ? 'Too many OTP requests. Try later.' : failureMessages[failure]
  const messages = budget?.scope === 'way:voice' ? 'calls' : 'SMS'
  if (limit === 'budget') return `${opening} The budget for ${messages} is spent; it resets in ${time}.`
  if (limit === 'queue') {
    return `${opening} The queue of asynchronous notifications of this app is full. Try again in ${time}.`
  }
  // The wrong codes may be of another app, which this caller must not learn of.
  const isHidden = limit === 'failures' || scope === ''
  return `${opening} ${isHidden ? `Try again in ${time}.` : `At most ${max} ${scope}; resets in ${time}.`}`
}

export function reasonOf({ limit, reason }: Claim): FailureReason | undefined {
  return reason ?? (limit === null ? undefined : reasons[limit])
}

/** The app's own limit, or else GLOBAL_LIMIT_PER_MINUTE (design D38). */
export function globalLimit(
  settings: LimitSettings,
  { appId, perMinute }: Pick<AppScope, 'appId' | 'perMinute'>,
): Claim {
  const max = perMinute ?? settings.globalPerMinute
  return rateLimit('app-minute', [`app:${appId}`], 'minute', max, minuteMs, 'per minute for this app')
}

export function calls(settings: LimitSettings, app: Pick<AppScope, 'appId' | 'perMinute'>): Gate {
  return { claims: [globalLimit(settings, app)], countsInvalid: true }
}

/** Of the management API (design D57). */
export function manageLimit(token: string): Claim {
  const limit = rateLimit(
    'app-minute',
    [`token:${token}`],
    'manage',
    120,
    minuteMs,
    'calls per minute for this token',
  )
  return { ...limit, limit: null, reason: 'app_minute' }
}

/** Of /messages/status, apart from the limit of all other requests (design D44). */
export function statusLimit(appId: string): Claim {
  const scope = 'status requests per minute for this app'
  return rateLimit('status-minute', [`app:${appId}`], 'status-minute', 60, minuteMs, scope)
}

/** Spec 4.1, design D23 and D24, in the order of the checks. */
export function sendLimits(
  { limits: settings, now }: { readonly limits: LimitSettings; readonly now: Clock },
  to: { readonly channel: Channel; readonly subject: Subject; readonly mailbox: Subject },
  {
    brandSlug,
    longestMs,
    followsCrash = false,
  }: {
    readonly brandSlug: string
    /** Of a delivery. */
    readonly longestMs: number
    /** The cooldown of the request that has no answer does not count (spec 3.2). */
    readonly followsCrash?: boolean | undefined
  },
): readonly Gate[] {
  const { channel, subject, mailbox } = to
  const wrongCodes = failureBudget(settings, subject)
  const checked = wrongCodes ? [{ claims: [{ ...wrongCodes, counted: false }] }] : []
  if (channel === 'EMAIL') {
    const max = settings.emailPerHour
    if (max === 0) return checked
    const scope = 'per hour for this mailbox'
    const hour = rateLimit('recipient-hour', mailbox, 'hour', max, hourMs, scope)
    return [sends({ ...hour, reason: 'mailbox_hour' }), ...checked]
  }
  const { phonePerMinute, phonePerHour, smsCooldownSeconds } = settings
  const cooldownMs = smsCooldownSeconds * 1000
  const leaseMs = Math.max(cooldownMs, longestMs + leaseMarginMs)
  const lease = rateLimit('cooldown', subject, `cooldown:${brandSlug}`, followsCrash ? 2 : 1, leaseMs)
  return [
    cooldown({ ...lease, failure: 'cooldown_active' }, cooldownMs, now),
    sends(
      rateLimit('phone-minute', subject, 'minute', phonePerMinute, minuteMs, 'per minute for this phone'),
    ),
    phoneHour(subject, phonePerHour),
    ...checked,
  ]
}

export function phoneHour(subject: Subject, max: number): Gate {
  return sends(rateLimit('recipient-hour', subject, 'hour', max, hourMs, 'per hour for this phone'))
}

const leaseMarginMs = 2000
const cooldownToleranceMs = 500

/** Starts after the delivery (spec 3.2), unless the lease is long enough. A failed delivery has none. */
function cooldown(lease: Claim, cooldownMs: number, now: Clock): Gate {
  return {
    claims: [lease],
    settle: ({ failed }, [grant]) => {
      if (!grant) return unchanged
      if (failed.length > 0) return { back: [grant] }
      const isExact = Math.abs(now() + cooldownMs - grant.expiresAt) <= cooldownToleranceMs
      return isExact ? unchanged : { restart: { grant, durationMs: cooldownMs } }
    },
  }
}

/** Counts each attempt that may have been sent. No limit rejects a further attempt, since its message is already sent (design D26). */
function sends(claim: Claim): Gate {
  return {
    claims: [claim],
    settle: ({ sent, failed }, grants) => {
      if (sent === 0 && failed.length > 0) return { back: grants }
      return sent > 1 ? { further: [{ ...claim, max: Number.MAX_SAFE_INTEGER }] } : unchanged
    },
  }
}

/** Wrong codes of one recipient over all brands and codes (design D23). Undefined: turned off. */
export function failureBudget(settings: LimitSettings, subject: Subject): Claim | undefined {
  if (settings.failureBudgetPerDay === 0) return undefined
  return rateLimit('failures', subject, 'failures', settings.failureBudgetPerDay, dayMs)
}

/** How often a claim by IP address is counted for the /48 of an IPv6 client, in which one customer may have 65,536 of /64. */
export const wideFactor = 10

/** The /48 of an IPv6 client, whose IP address counts as its /64 (design D21). Undefined: IPv4. */
export function wideNetworkOf(clientIp: string): string | undefined {
  const start = /^((?:[0-9a-f]{1,4}:){3})[0-9a-f]{1,4}::\/64$/.exec(clientIp)?.[1]
  return start && `${start}:/48`
}

/** The network of a client, as coarse as operators need it: its /24 or /48. Null: unknown. */
export function coarseNetworkOf(clientIp: string): string | null {
  const start = /^(\d+\.\d+\.\d+)\.\d+$/.exec(clientIp)?.[1]
  return start === undefined ? (wideNetworkOf(clientIp) ?? null) : `${start}.0/24`
}

/** The claim of the IP address and, for IPv6, that of its /48 with ten times as much. */
export function byNetwork(
  secrets: Pick<Secrets, 'subjects'>,
  clientIp: string,
  claimOf: (ipSubject: Subject) => Claim,
): readonly [Claim, ...Claim[]] {
  const own = claimOf(secrets.subjects('ip', clientIp))
  const wide = wideNetworkOf(clientIp)
  return wide === undefined ? [own] : [own, widened(claimOf(secrets.subjects('ip', wide)))]
}

export function widened(claim: Claim): Claim {
  return { ...claim, max: claim.max * wideFactor, scope: claim.scope.replace('IP address', 'IPv6 network') }
}

export function credentialFailures(ipSubject: Subject): Claim {
  const scope = 'requests with wrong credentials per minute for this IP address'
  return rateLimit('credentials', ipSubject, 'credentials', 300, minuteMs, scope)
}

/**
 * For all clients: 200 an hour, then one in 20 s, so that attackers cannot lock operators out for long.
 * @param person the hashed e-mail address, whether or not it has an account
 */
export function consoleLogins(person: Subject) {
  const all = (name: string, max: number, windowMs: number) =>
    rateLimit('console-logins', person, name, max, windowMs)
  return {
    ofSender: (ipSubject: Subject) =>
      rateLimit('console-logins', ipSubject, 'console-logins', 10, 10 * minuteMs),
    ofAllHourly: all('console-hour', 200, hourMs),
    ofAllSlow: all('console-slow', 1, 20_000),
  }
}

export function knownBrowserLogins(cookieSha256: string): Claim {
  return rateLimit('console-logins', [`console-device:${cookieSha256}`], 'console-logins', 10, 10 * minuteMs)
}

/** Of an account, by browsers that know its password and have not signed in to it. */
export function consoleCodes(accountId: string): Claim {
  return rateLimit('console-logins', [`console ${accountId}`], 'console-codes', 20, dayMs)
}

export function consoleLinkAttempts(ipSubject: Subject): Claim {
  return rateLimit('console-logins', ipSubject, 'console-links', 10, 10 * minuteMs)
}

export function integrationRequests(ipSubject: Subject): Claim {
  const scope = 'per hour for this IP address'
  return rateLimit('integration-requests', ipSubject, 'integration-requests', 5, hourMs, scope)
}

/** SMS notifications of an app to a country that is new to it. */
export function newCountrySms(appId: string, country: string, sms: number, most: number): Claim {
  const scope = `notifications by SMS per day to ${country} for this app`
  const claim = rateLimit('new-country', [`app:${appId}`], `sms:${country}`, most, dayMs, scope)
  return { ...claim, units: sms, period: 'day' }
}

/** Of the jobs of asynchronous notifications that an app ever had. */
export function queueCounter(appId: string): Pick<StoredClaim, 'subject' | 'name'> {
  return { subject: [`queue:${appId}`], name: 'queue' }
}

/**
 * Design D46. Concurrent requests cannot exceed `most`, since each counts the jobs that were accepted after `counts`, and jobs
 * that ended since then only make room.
 */
export function waitingJobs(
  appId: string,
  jobs: number,
  { accepted, waiting }: { readonly accepted: number; readonly waiting: number },
  most: number,
): Claim {
  const ended = accepted - waiting
  return {
    ...queueCounter(appId),
    limit: 'queue',
    units: jobs,
    max: most + ended,
    windowMs: 100 * 365 * dayMs,
    counted: true,
    ended,
    retryMs: 30_000,
    failure: 'rate_limited',
    scope: '',
  }
}
