import type { Recipient } from '../contact.ts'
import type { RequestContext } from '../events/request-context.ts'
import { Failure, type FailureKind, failureMessages } from '../failures.ts'
import { type Clock, clockToleranceMs } from '../ports.ts'
import type { OtpStore } from './store.ts'

/** What a limit is on, for whoever asks where it stood. */
export type LimitName =
  | 'app-minute'
  | 'cooldown'
  | 'phone-minute'
  | 'recipient-hour'
  | 'failures'
  | 'credentials'
  | 'integration-requests'
  | 'console-logins'

/**
 * Every limit of the service is the same thing: at most `max` counted requests in a fixed window, which opens with the
 * first one counted (spec 8, design D3). The SMS cooldown is a limit of one.
 */
export interface Claim {
  readonly limit: LimitName
  /** Whom it limits: a keyed hash of a recipient or an address of the network, or an application. */
  readonly subject: string
  /** Which of the subject's limits it is, such as `minute` or `cooldown:acme`. */
  readonly name: string
  readonly max: number
  /** How long the window lasts that this request would open. */
  readonly windowMs: number
  /** False to be refused where the limit is used up and yet not be counted. */
  readonly counted: boolean
  /** What a refused caller is told. */
  readonly failure: FailureKind
  readonly message: string
}

/** A window as a store keeps it. */
export interface Window {
  readonly count: number
  /** Epoch milliseconds; from this instant on the window is over. */
  readonly endsAt: number
}

/** One counted claim: which window counted it, so that it can be given back to that window and to no later one. */
export interface Grant {
  readonly subject: string
  readonly name: string
  readonly endsAt: number
  /** How many the window has counted, this claim included. */
  readonly count: number
}

/** The first claim of a list that is used up, and when its window ends. */
export interface Refusal {
  readonly admitted: false
  readonly refusedBy: Claim
  readonly endsAt: number
}

/** A store's answer to a list of claims: all of them taken, or none. */
export type LimitDecision = { readonly admitted: true; readonly grants: readonly Grant[] } | Refusal

/**
 * Decides a list of claims against the windows of the store, in order, all or nothing: the first claim whose window is
 * open and full refuses the whole. Otherwise it tells the windows as they are to be stored.
 *
 * A window that ends later than one opened now would is from before the clock was set back. It is cut to that, and told
 * to be stored so also by a refusal: else it would stay shut until the clock has caught up.
 */
export function decide(
  claims: readonly Claim[],
  windowOf: (claim: Claim) => Window | undefined,
  now: number,
): { decision: LimitDecision; changes: readonly Grant[] } {
  const cut: Grant[] = []
  const counted: Grant[] = []
  for (const claim of claims) {
    const { subject, name } = claim
    const latest = now + claim.windowMs
    const stored = windowOf(claim)
    const open = stored && stored.endsAt > now ? stored : undefined
    const isCut = open !== undefined && open.endsAt > latest + clockToleranceMs
    const endsAt = open && !isCut ? open.endsAt : latest
    if (isCut) cut.push({ subject, name, count: open.count, endsAt })
    if (open && open.count >= claim.max) {
      return { decision: { admitted: false, refusedBy: claim, endsAt }, changes: cut }
    }
    if (claim.counted) counted.push({ subject, name, count: (open?.count ?? 0) + 1, endsAt })
  }
  return { decision: { admitted: true, grants: counted }, changes: [...cut, ...counted] }
}

/** The takings of an admission; throws the failure of the limit that refused it. */
export function granted(decision: LimitDecision, now: number): readonly Grant[] {
  if (!decision.admitted) throw refused(decision, now)
  return decision.grants
}

/** Takes all claims, or throws the failure of the first that is used up and takes none. */
export async function claim(
  ports: { readonly store: Pick<OtpStore, 'admit'>; readonly now: Clock },
  context: RequestContext,
  claims: readonly Claim[],
): Promise<readonly Grant[]> {
  const now = ports.now()
  const decision = await ports.store.admit(claims, now)
  noteLimitStatuses(context, claims, decision)
  return granted(decision, now)
}

/** Lets the story of a request tell where the limits stood that judged it. */
export function noteLimitStatuses(
  context: RequestContext,
  claims: readonly Claim[],
  decision: LimitDecision,
): void {
  for (const claim of claims) {
    const about = { limit: claim.limit, max: claim.max }
    if (!decision.admitted && isSame(decision.refusedBy, claim)) {
      context.limits.push({ ...about, used: claim.max, endsAt: decision.endsAt, refused: true })
      return
    }
    const grant = decision.admitted ? decision.grants.find((taken) => isSame(taken, claim)) : undefined
    context.limits.push({
      ...about,
      used: grant?.count ?? null,
      endsAt: grant?.endsAt ?? null,
      refused: false,
    })
  }
}

function isSame(a: Pick<Claim, 'subject' | 'name'>, b: Pick<Claim, 'subject' | 'name'>): boolean {
  return a.subject === b.subject && a.name === b.name
}

/** What a caller is told who was refused by a limit, with the time until it frees. */
export function refused({ refusedBy, endsAt }: Refusal, now: number): Failure {
  return new Failure(refusedBy.failure, refusedBy.message, { retryAfterSeconds: secondsUntil(endsAt, now) })
}

/** Whole seconds until an instant, rounded up and at least 1: what Retry-After says (RFC 9110 section 10.2.3). */
export function secondsUntil(instant: number, now: number): number {
  return Math.max(1, Math.ceil((instant - now) / 1000))
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

function rateLimit(limit: LimitName, subject: string, name: string, max: number, windowMs: number): Claim {
  const message = failureMessages.rate_limited
  return { limit, subject, name, max, windowMs, counted: true, failure: 'rate_limited', message }
}

/** All calls of one application (spec 8, global). */
export function globalLimit(settings: LimitSettings, appId: string): Claim {
  return rateLimit('app-minute', `app:${appId}`, 'minute', settings.globalPerMinute, minuteMs)
}

/**
 * The limits of a send to one recipient, in the order of spec 4.1: for a phone the cooldown, the minute and the hour;
 * for a mailbox its hour (design D24).
 *
 * The cooldown is taken as a lease of `leaseMs`, long enough for any delivery, and becomes the real cooldown when the
 * SMS has been sent.
 */
export function sendLimits(
  settings: LimitSettings,
  send: { recipient: Recipient; subject: string; brandSlug: string; leaseMs: number },
): Claim[] {
  const { subject } = send
  if (send.recipient.channel === 'EMAIL') {
    return settings.emailPerHour === 0
      ? []
      : [rateLimit('recipient-hour', subject, 'hour', settings.emailPerHour, hourMs)]
  }
  const message = 'Too many OTP requests. Try later.'
  return [
    {
      limit: 'cooldown',
      subject,
      name: cooldownName(send.brandSlug),
      max: 1,
      windowMs: send.leaseMs,
      counted: true,
      failure: 'cooldown_active',
      message: failureMessages.cooldown_active,
    },
    { ...rateLimit('phone-minute', subject, 'minute', settings.phonePerMinute, minuteMs), message },
    { ...rateLimit('recipient-hour', subject, 'hour', settings.phonePerHour, hourMs), message },
  ]
}

/** The taking of the cooldown among those of a send; a mail has none. */
export function cooldownOf(grants: readonly Grant[], brandSlug: string): Grant | undefined {
  return grants.find((grant) => grant.name === cooldownName(brandSlug))
}

function cooldownName(brandSlug: string): string {
  return `cooldown:${brandSlug}`
}

/** Wrong codes of one brand and recipient, over all its codes (design D23); undefined when turned off. */
export function failureBudget(
  settings: LimitSettings,
  subject: string,
  brandSlug: string,
): Claim | undefined {
  if (settings.failureBudgetPerDay === 0) return undefined
  return rateLimit('failures', subject, `failures:${brandSlug}`, settings.failureBudgetPerDay, dayMs)
}

/** Failed credentials of one network address (design D22). */
export function credentialFailures(ipSubject: string): Claim {
  return rateLimit('credentials', ipSubject, 'credentials', 300, minuteMs)
}

/**
 * Tries at the password of the console: of one network address, and of all together, so that many addresses together
 * have not many more.
 */
export function consoleLogins(ipSubject: string): Claim[] {
  return [
    rateLimit('console-logins', ipSubject, 'console-logins', 10, 10 * minuteMs),
    rateLimit('console-logins', 'console', 'console-logins', 100, hourMs),
  ]
}

/** Integration requests of one network address (design D18). */
export function integrationRequests(ipSubject: string): Claim {
  return rateLimit('integration-requests', ipSubject, 'integration-requests', 5, hourMs)
}
