import type { Channel } from '../contact.ts'
import { type FailureKind, failureMessages } from '../failures.ts'
import { clockToleranceMs } from '../ports.ts'

/** As in the request trace and the metrics. */
export const limitNames = [
  'app-minute',
  'cooldown',
  'phone-minute',
  'recipient-hour',
  'failures',
  'credentials',
  'integration-requests',
  'console-logins',
] as const

export type LimitName = (typeof limitNames)[number]

/**
 * The key of the records of a recipient, app or IP address: its name, or its keyed hashes under the present and each previous
 * secret key.
 */
export type Subject = readonly [string, ...string[]]

/**
 * At most `max` counted requests in a fixed window, which opens with the first counted one (spec 8, design D3). The SMS
 * cooldown is a limit of one.
 */
export interface Claim {
  readonly limit: LimitName
  readonly subject: Subject
  /** The limit's name within its subject, such as `minute` or `cooldown:acme`. */
  readonly name: string
  readonly max: number
  /** The length of a window that this request opens. */
  readonly windowMs: number
  /** False: the request is checked, and not counted. */
  readonly counted: boolean
  readonly failure: FailureKind
  readonly message: string
}

export interface LimitCount {
  readonly count: number
  /** Epoch milliseconds; exclusive. */
  readonly expiresAt: number
}

/** One counted claim. It can only be given back to the window that counted it. */
export interface Grant extends LimitCount {
  readonly subject: Subject
  readonly name: string
}

export interface Refusal {
  readonly allowed: false
  readonly refusedBy: Claim
  /** Epoch milliseconds. */
  readonly expiresAt: number
  readonly resetsInMs: number
}

export type LimitDecision = { readonly allowed: true; readonly grants: readonly Grant[] } | Refusal

/**
 * Decides claims in order, all or nothing: the first one whose window is full refuses all of them. `changes` are the counters
 * to store. A window that ends too late is from before the clock was set back, and is shortened, also by a refusal.
 *
 * @param openWindow the stored counter of a claim; undefined where there is none or it has expired
 */
export function decide(
  claims: readonly Claim[],
  openWindow: (claim: Claim) => LimitCount | undefined,
  now: number,
): { decision: LimitDecision; changes: readonly Grant[] } {
  const shortened: Grant[] = []
  const grants: Grant[] = []
  for (const claim of claims) {
    const { subject, name } = claim
    const latest = now + claim.windowMs
    const open = openWindow(claim)
    const isTooLong = open !== undefined && open.expiresAt > latest + clockToleranceMs
    const expiresAt = open && !isTooLong ? open.expiresAt : latest
    if (isTooLong) shortened.push({ subject, name, count: open.count, expiresAt })
    if (open && open.count >= claim.max) {
      const decision = { allowed: false, refusedBy: claim, expiresAt, resetsInMs: expiresAt - now } as const
      return { decision, changes: shortened }
    }
    if (claim.counted) grants.push({ subject, name, count: (open?.count ?? 0) + 1, expiresAt })
  }
  return { decision: { allowed: true, grants }, changes: [...shortened, ...grants] }
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

const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 86_400_000

function rateLimit(limit: LimitName, subject: Subject, name: string, max: number, windowMs: number): Claim {
  const message = failureMessages.rate_limited
  return { limit, subject, name, max, windowMs, counted: true, failure: 'rate_limited', message }
}

/** All calls of one app (spec 8, global). */
export function globalLimit(settings: LimitSettings, appId: string): Claim {
  return rateLimit('app-minute', [`app:${appId}`], 'minute', settings.globalPerMinute, minuteMs)
}

/**
 * The limits of a send to one recipient, in the order of spec 4.1, then the failure budget, which is checked only (design
 * D23). E-mail is counted per mailbox (design D24). The cooldown is first a lease of `leaseMs`, longer than any delivery, and
 * becomes the real cooldown after it.
 */
export function sendLimits(
  settings: LimitSettings,
  send: {
    channel: Channel
    subject: Subject
    mailboxSubject: Subject
    brandSlug: string
    leaseMs: number
  },
): Claim[] {
  const { channel, subject, mailboxSubject, brandSlug } = send
  const budget = failureBudget(settings, subject)
  const checked = budget ? [{ ...budget, counted: false }] : []
  if (channel === 'EMAIL') {
    return settings.emailPerHour === 0
      ? checked
      : [rateLimit('recipient-hour', mailboxSubject, hourName, settings.emailPerHour, hourMs), ...checked]
  }
  const message = 'Too many OTP requests. Try later.'
  return [
    {
      ...rateLimit('cooldown', subject, cooldownName(brandSlug), 1, send.leaseMs),
      failure: 'cooldown_active',
      message: failureMessages.cooldown_active,
    },
    { ...rateLimit('phone-minute', subject, 'minute', settings.phonePerMinute, minuteMs), message },
    { ...rateLimit('recipient-hour', subject, hourName, settings.phonePerHour, hourMs), message },
    ...checked,
  ]
}

/** The name of the hour's count of a phone or mailbox. */
export const hourName = 'hour'

export function cooldownOf(grants: readonly Grant[], brandSlug: string): Grant | undefined {
  return grants.find((grant) => grant.name === cooldownName(brandSlug))
}

/** The limits that count codes sent, for one more attempt of a send. It went out already, so nothing refuses it (design D26). */
export function furtherAttempt(claims: readonly Claim[]): Claim[] {
  return claims
    .filter(({ limit }) => limit === 'phone-minute' || limit === 'recipient-hour')
    .map((claim) => ({ ...claim, max: Number.MAX_SAFE_INTEGER }))
}

function cooldownName(brandSlug: string): string {
  return `cooldown:${brandSlug}`
}

/** Wrong codes of one recipient, over all brands and codes (design D23); undefined when turned off. */
export function failureBudget(settings: LimitSettings, subject: Subject): Claim | undefined {
  if (settings.failureBudgetPerDay === 0) return undefined
  return rateLimit('failures', subject, 'failures', settings.failureBudgetPerDay, dayMs)
}

/** Of one IP address (design D22). */
export function credentialFailures(ipSubject: Subject): Claim {
  return rateLimit('credentials', ipSubject, 'credentials', 300, minuteMs)
}

/**
 * Attempts at the console password: of one IP address or known browser, and of all others together. Those are 200 an hour, and
 * then one in 20 s: at most 9,120 a day, and nobody locks operators out for long.
 */
export function consoleLogins(subject: Subject) {
  const all = (name: string, max: number, windowMs: number) =>
    rateLimit('console-logins', ['console'], name, max, windowMs)
  return {
    own: rateLimit('console-logins', subject, 'console-logins', 10, 10 * minuteMs),
    usual: all('console-hour', 200, hourMs),
    slow: all('console-slow', 1, 20_000),
  }
}

/** Wrong tokens of sign-in links, of one IP address. */
export function consoleLinkAttempts(ipSubject: Subject): Claim {
  return rateLimit('console-logins', ipSubject, 'console-links', 10, 10 * minuteMs)
}

/** Of one IP address (design D18). */
export function integrationRequests(ipSubject: Subject): Claim {
  return rateLimit('integration-requests', ipSubject, 'integration-requests', 5, hourMs)
}
