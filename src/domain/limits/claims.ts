import { Failure } from '../ground/failures.ts'
import type { Clock } from '../ground/time.ts'
import type { GuardReason, GuardVerdict } from '../guard/guard.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { ClaimStore } from './claim-store.ts'
import type { Effect } from './effects.ts'
import { claimWithKey, type IdempotencyKey } from './idempotency-key.ts'
import {
  type Claim,
  type Grant,
  type Granted,
  type LimitDecision,
  type Refusal,
  reasonOf,
  refusalMessage,
  type StoredClaim,
} from './limits.ts'

/**
 * Takes all claims, or throws the failure of the first exhausted limit and takes none.
 * @param key is claimed before them
 * @param effects are written with the claims
 */
export async function claim(
  ports: { readonly store: Pick<ClaimStore, 'admit'>; readonly now: Clock },
  context: RequestContext,
  claims: readonly Claim[],
  key?: IdempotencyKey<object>,
  effects?: readonly Effect[],
): Promise<readonly Grant[]> {
  if (claims.length === 0) return []
  const { store, now } = ports
  const step = (all: readonly StoredClaim[], written?: readonly Effect[]) => store.admit(all, now(), written)
  const decision = await claimWithKey(key, claims.map(stored), step, effects)
  return granted(context, claims, decision)
}

/** Without what only this process needs, since claims may cross to a thread. */
export function stored({ subject, name, max, units, windowMs, period, counted }: Claim): StoredClaim {
  return { subject, name, max, units, windowMs, period, counted }
}

export function granted(
  context: RequestContext,
  claims: readonly Claim[],
  decision: LimitDecision,
): readonly Grant[] {
  noteLimits(context, claims, decision)
  if (!decision.allowed) throw refused(claims, decision)
  return grantsOf(claims, decision)
}

export function grantsOf(claims: readonly Claim[], { counts }: Granted): readonly Grant[] {
  const counted = claims.filter((claim) => claim.counted)
  return counts.flatMap(({ count, expiresAt }, index) => {
    const { subject, name, units } = counted[index] ?? {}
    return subject === undefined || name === undefined ? [] : { subject, name, units, count, expiresAt }
  })
}

export function noteLimits(context: RequestContext, claims: readonly Claim[], decision: LimitDecision): void {
  let place = 0
  for (const [index, { limit, max, budget, queue, counted }] of claims.entries()) {
    const isRefused = !decision.allowed && decision.refusedBy === index
    const known = counted && decision.allowed ? decision.counts[place++] : undefined
    const used = isRefused ? max : (known?.count ?? null)
    const endsAt = isRefused ? decision.expiresAt : (known?.expiresAt ?? null)
    context.limits.push(
      queue
        ? {
            limit,
            max: max - queue.ended,
            used: used && used - queue.ended,
            endsAt: context.at + queue.retryMs,
            refused: isRefused,
          }
        : { limit, max, used, endsAt, refused: isRefused, budget },
    )
    if (isRefused) return
  }
}

export function isSame(a: Pick<Claim, 'subject' | 'name'>, b: Pick<Claim, 'subject' | 'name'>): boolean {
  return a.subject[0] === b.subject[0] && a.name === b.name
}

/** Checked, but not counted. */
export function uncounted(claims: readonly Claim[]): readonly Claim[] {
  return claims.map((claim) => ({ ...claim, counted: false }))
}

/** Design D41. */
export function guardRefusal({ bucket, resetsInMs, byOperator }: GuardVerdict): Failure {
  const seconds = retryAfterSeconds(resetsInMs)
  const cause = byOperator
    ? 'The operator of this server has blocked numbers of this range.'
    : `Too many codes ${codesOf[bucket]} were not verified.`
  const message = `Too many OTP requests. Try later. ${cause} Try again in ${durationInWords(seconds)}.`
  return new Failure('rate_limited', message, { retryAfterSeconds: seconds, reason: 'guard' })
}

const codesOf: Readonly<Record<GuardReason, string>> = {
  prefix: 'to numbers of this range',
  'blocked-prefix': 'to numbers of this range',
  'country-hour': 'to numbers of this country',
  'country-day': 'to numbers of this country',
  'ip-hour': 'requested from this IP address',
  'ip-day': 'requested from this IP address',
  'ip-countries': 'requested from this IP address for several countries',
}

/** @param claims those of the refusal */
export function refused(claims: readonly Claim[], { refusedBy, resetsInMs }: Refusal): Failure {
  const claim = claims[refusedBy]
  const seconds = retryAfterSeconds(claim?.queue?.retryMs ?? resetsInMs)
  const message = claim && refusalMessage(claim, durationInWords(seconds))
  const reason = claim && reasonOf(claim)
  return new Failure(claim?.failure ?? 'rate_limited', message, { retryAfterSeconds: seconds, reason })
}

/** Rounded up: 90 is "90 seconds", 200 is "4 minutes". */
function durationInWords(seconds: number): string {
  const [count, unit] =
    seconds < 120
      ? [seconds, 'second']
      : seconds < 7200
        ? [Math.ceil(seconds / 60), 'minute']
        : [Math.ceil(seconds / 3600), 'hour']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** Retry-After: rounded up, at least 1 (RFC 9110 section 10.2.3). */
export function retryAfterSeconds(resetsInMs: number): number {
  return Math.max(1, Math.ceil(resetsInMs / 1000))
}
