import { type Body, isGiven, judged } from '../body.ts'
import { approvedBrand, type Brands } from '../brands/brand.ts'
import { type Contacts, type Recipient, recipientFault } from '../contact.ts'
import type { DestinationOf } from '../destinations/destination.ts'
import { noteFlag, noteRecipient, type RequestContext } from '../events/request-context.ts'
import { Failure, failureMessages, invalid, invalidField } from '../failures.ts'
import type { Guard } from '../guard/guard.ts'
import type { ReadPolicy } from '../policy.ts'
import type { Secrets } from '../ports.ts'
import { claim, noteLimits, refused, retryAfterSeconds, stored } from './claims.ts'
import { authenticate, type CredentialPorts, isAppId, permitted } from './credentials.ts'
import { failureBudget, globalLimit, type LimitSettings } from './limits.ts'
import type { OtpStore } from './store.ts'

export interface VerifyOtpPorts extends CredentialPorts {
  readonly brands: Brands
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly limits: LimitSettings
  readonly contacts: Contacts
  readonly destinationOf: DestinationOf
  readonly guard: Guard
  readonly policy: ReadPolicy
}

/** Spec 4.3: consumes the code if it is right; throws otherwise. */
export async function verifyOtp(ports: VerifyOtpPorts, context: RequestContext, body: Body): Promise<void> {
  context.operation = 'verify'
  const appId = await authenticate(ports, context, body)
  const policy = await ports.policy()
  const app = permitted(policy, appId, 'otp')
  const brand = await approvedBrand(ports.brands, context, body, app)
  const claims = [globalLimit(ports.limits, app)]
  const answer = judged(() => readAnswer(body, appId, ports.contacts))
  if (answer instanceof Failure) {
    await claim(ports, context, claims)
    throw answer
  }
  const { recipient, otp } = answer
  noteRecipient(context, recipient)
  const { channel, identity } = recipient
  const brandSlug = brand.slug
  const subject = ports.secrets.subjects(channel, identity)
  context.recipientSubject = subject[0]
  const budget = failureBudget(ports.limits, subject)
  const keyedCodes = ports.secrets.keyedCodes({ brandSlug, channel, identity }, otp)
  const now = ports.now()
  const attempt = {
    claims: claims.map(stored),
    failureBudget: budget && stored(budget),
    subject,
    brandSlug,
    keyedCodes,
    // The app that sent the code may be another one.
    eventId: policy.webhooks.size === 0 ? undefined : ports.secrets.newEventId(now),
    reviewUse: { operation: 'verify' as const, app: appId, requestId: context.requestId, brandSlug },
  }
  const verdict = await ports.store.guess(attempt, now)
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
  throw new Failure(verdict.kind === 'absent' ? 'not_found' : 'mismatch')
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
      ? `\`phone\` ${recipientFault(body.phone, 'SMS')}`
      : `\`email\` ${recipientFault(body.email, 'EMAIL')}`
    throw new Failure('invalid_contact', `${failureMessages.invalid_contact} ${problem}`)
  }
  if (!isAppId(appId)) throw new Failure('invalid_app_id')
  return { recipient, otp }
}
