import type { Recipient } from '../contact.ts'
import { type FailureKind, failureMessages } from '../failures.ts'
import { clockToleranceMs } from '../ports.ts'

/** What a limit is on, as the request trace and the metrics name it. */
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
 * What records of a recipient, an application or an IP address are stored under: its name, or its keyed hash under the
 * present secret key followed by those under previous secret keys.
 */
export type Subject = readonly [string, ...string[]]

/**
 * Every limit of the service is the same thing: at most `max` counted requests in a fixed window, which opens with the
 * first one counted (spec 8, design D3). The SMS cooldown is a limit of one.
 */
export interface Claim {
  readonly limit: LimitName
  readonly subject: Subject
  /** The limit's name among those of the subject, such as `minute` or `cooldown:acme`. */
  readonly name: string
  readonly max: number
  /** The length of the window that this request would open. */
  readonly windowMs: number
  /** False: an exhausted limit refuses the request, and the request is not counted. */
  readonly counted: boolean
  /** What a refused caller is answered. */
  readonly failure: FailureKind
  readonly message: string
}

/** The counter of a limit as it is stored. */
export interface LimitCount {
  readonly count: number
  /** Epoch milliseconds: the window is over from this instant on. */
  readonly expiresAt: number
}

/** One counted claim: it can be given back to the window that counted it, and to no later one. */
export interface Grant extends LimitCount {
  readonly subject: Subject
  readonly name: string
}

/** The first exhausted claim of a list. */
export interface Refusal {
  readonly allowed: false
  readonly refusedBy: Claim
  /** Epoch milliseconds at which its window ends. */
  readonly expiresAt: number
  readonly resetsInMs: number
}

/** The answer to a list of claims: all of them are granted, or none. */
export type LimitDecision = { readonly allowed: true; readonly grants: readonly Grant[] } | Refusal

/**
 * Decides a list of claims in order, all or nothing: the first claim whose window is open and full refuses all of them.
 * `changes` are the counters to store.
 *
 * A window that ends later than one opened now is from before the clock was set back. It is shortened to that, also by a
 * refusal: otherwise it would stay closed until the clock has caught up.
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

/** The numbers of spec 8 and of design D22 to D24, as the operator set them. 0 turns off the last two. */
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

/** All calls of one application (spec 8, global). */
export function globalLimit(settings: LimitSettings, appId: string): Claim {
  return rateLimit('app-minute', [`app:${appId}`], 'minute', settings.globalPerMinute, minuteMs)
}

/**
 * The limits of a send to one recipient, in the order of spec 4.1: for a phone the cooldown, the minute and the hour; for a
 * mailbox its hour (design D24).
 *
 * The cooldown is claimed as a lease of `leaseMs`, longer than any delivery, and becomes the real cooldown when the SMS has
 * been sent.
 */
export function sendLimits(
  settings: LimitSettings,
  send: { recipient: Recipient; subject: Subject; brandSlug: string; leaseMs: number },
): Claim[] {
  const { subject, brandSlug } = send
  if (send.recipient.channel === 'EMAIL') {
    return settings.emailPerHour === 0
      ? []
      : [rateLimit('recipient-hour', subject, 'hour', settings.emailPerHour, hourMs)]
  }
  const message = 'Too many OTP requests. Try later.'
  return [
    {
      ...rateLimit('cooldown', subject, cooldownName(brandSlug), 1, send.leaseMs),
      failure: 'cooldown_active',
      message: failureMessages.cooldown_active,
    },
    { ...rateLimit('phone-minute', subject, 'minute', settings.phonePerMinute, minuteMs), message },
    { ...rateLimit('recipient-hour', subject, 'hour', settings.phonePerHour, hourMs), message },
  ]
}

/** The grant of the cooldown among those of a send; a mail has none. */
export function cooldownOf(grants: readonly Grant[], brandSlug: string): Grant | undefined {
  return grants.find((grant) => grant.name === cooldownName(brandSlug))
}

function cooldownName(brandSlug: string): string {
  return `cooldown:${brandSlug}`
}

/** Wrong codes of one brand and recipient, over all its codes (design D23); undefined when turned off. */
export function failureBudget(
  settings: LimitSettings,
  subject: Subject,
  brandSlug: string,
): Claim | undefined {
  if (settings.failureBudgetPerDay === 0) return undefined
  return rateLimit('failures', subject, `failures:${brandSlug}`, settings.failureBudgetPerDay, dayMs)
}

/** Failed credentials of one IP address (design D22). */
export function credentialFailures(ipSubject: Subject): Claim {
  return rateLimit('credentials', ipSubject, 'credentials', 300, minuteMs)
}

/** Tries of the console password: of one IP address, and of all together, so that many addresses have few more. */
export function consoleLogins(ipSubject: Subject): Claim[] {
  return [
    rateLimit('console-logins', ipSubject, 'console-logins', 10, 10 * minuteMs),
    rateLimit('console-logins', ['console'], 'console-logins', 100, hourMs),
  ]
}

/** Integration requests of one IP address (design D18). */
export function integrationRequests(ipSubject: Subject): Claim {
  return rateLimit('integration-requests', ipSubject, 'integration-requests', 5, hourMs)
}
