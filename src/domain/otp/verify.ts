import type { DestinationOf } from '../delivery/destination.ts'
import { type Body, isGiven, judged } from '../ground/body.ts'
import type { Contacts, Recipient } from '../ground/contact.ts'
import { Failure, failureMessages, invalid, invalidField } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import { minuteMs } from '../ground/time.ts'
import type { Guard } from '../guard/guard.ts'
import { claim, noteLimits, refused, retryAfterSeconds, stored } from '../limits/claims.ts'
import { authenticate, type CredentialPorts, isAppId, permitted } from '../limits/credentials.ts'
import type { GuessKey } from '../limits/idempotency-key.ts'
import { type IdempotencyPorts, idempotencyKeyOf } from '../limits/idempotency-key.ts'
import { failureBudget, globalLimit, type LimitSettings, type StoredClaim } from '../limits/limits.ts'
import type { ReadPolicy } from '../policy/policy.ts'
import { noteFlag, noteRecipient, type RequestContext } from '../request/request-context.ts'
import { approvedBrand, type Brands } from '../texts/brand.ts'
import type { OtpStore } from './store.ts'

export interface VerifyOtpPorts extends CredentialPorts, IdempotencyPorts {
  readonly brands: Brands
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly limits: LimitSettings
  readonly contacts: Contacts
  readonly destinationOf: DestinationOf
  readonly guard: Guard
  readonly policy: ReadPolicy
}

/** A key is never in progress: its answer is stored with the guess. */
const keySettings = { windowMs: 10 * minuteMs, longestMs: 0, kept: [] } as const

const wrongCode = new Failure('mismatch')

/** Design D43: other answers are not kept. */
const keptAnswers = {
  verified: { status: 200, value: {} },
  mismatch: { status: 401, value: wrongCode },
} as const

/** Spec 4.3: consumes the code if it is right; throws otherwise. */
export async function verifyOtp(ports: VerifyOtpPorts, context: RequestContext, body: Body): Promise<void> {
  context.operation = 'verify'
  const appId = await authenticate(ports, context, body)
  const policy = await ports.policy()
  const app = permitted(policy, appId, 'otp')
  const brand = await approvedBrand(ports.brands, context, body, app)
  const claims = [globalLimit(ports.limits, app)]
  const answer = judged(() => readAnswer(body, appId, ports.contacts))
  if (!(answer instanceof Failure)) noteRecipient(context, answer.recipient)
  const key = idempotencyKeyOf(ports, context, body, keySettings)
  if (await key?.keptAnswer()) return
  if (answer instanceof Failure) {
    await claim(ports, context, claims)
    throw answer
  }
  const { recipient, otp } = answer
  const { channel, identity } = recipient
  const brandSlug = brand.slug
  const subject = ports.secrets.subjects(channel, identity)
  context.recipientSubject = subject[0]
  const budget = failureBudget(ports.limits, subject)
  const keyedCodes = ports.secrets.keyedCodes({ brandSlug, channel, identity }, otp)
  const now = ports.now()
  const attempt = {
    failureBudget: budget && stored(budget),
    subject,
    brandSlug,
    keyedCodes,
    // The app that sent the code may be another one.
    eventId: policy.webhooks.size === 0 ? undefined : ports.secrets.newEventId(now),
    reviewUse: { operation: 'verify' as const, app: appId, requestId: context.requestId, brandSlug },
  }
  const guess = (all: readonly StoredClaim[], own?: GuessKey) =>
    ports.store.guess({ ...attempt, claims: all, key: own }, now)
  const limits = claims.map(stored)
  const verdict = await (key ? key.guess(limits, keptAnswers, guess) : guess(limits))
  if (!('kind' in verdict)) return
  const decision = verdict.kind === 'refused' ? verdict.refusal : ({ allowed: true, counts: [] } as const)
  const all = budget ? [...claims, budget] : claims
  noteLimits(context, all, decision)
  if (verdict.kind === 'verified') {
    context.verified = verdict
    if (verdict.provider === null) noteFlag(context, 'review')
    else if (channel === 'SMS') {
      const { country } = ports.destinationOf(identity)
      if (country !== null) context.country = country
      ports.guard.verified({ digits: identity, country })
    }
    return
  }
  if (verdict.kind === 'refused') throw refused(all, verdict.refusal)
  if (verdict.kind === 'locked') {
    const details = { retryAfterSeconds: retryAfterSeconds(verdict.resetsInMs) }
    throw new Failure('max_attempts', undefined, details)
  }
  throw verdict.kind === 'absent' ? new Failure('not_found') : wrongCode
}

function readAnswer(body: Body, appId: string, contacts: Contacts): { recipient: Recipient; otp: string } {
  const { otp } = body
  if (!isGiven(otp)) throw invalidField('otp', 'is required.')
  if (isGiven(body.phone) === isGiven(body.email)) throw invalid('Send exactly one of `phone` and `email`.')
  if (typeof otp !== 'string') throw new Failure('invalid_input')
  if (!/^[0-9]{6}$/.test(otp)) throw new Failure('invalid_otp_format')
  const recipient = isGiven(body.phone) ? contacts.phone(body.phone) : contacts.email(body.email)
  if (recipient === undefined) {
    const problem = isGiven(body.phone)
      ? `\`phone\` ${contacts.faultOf(body.phone, 'SMS')}`
      : `\`email\` ${contacts.faultOf(body.email, 'EMAIL')}`
    throw new Failure('invalid_contact', `${failureMessages.invalid_contact} ${problem}`)
  }
  if (!isAppId(appId)) throw new Failure('invalid_app_id')
  return { recipient, otp }
}
