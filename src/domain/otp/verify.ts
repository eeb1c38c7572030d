import type { DestinationOf } from '../delivery/destination.ts'
import { type Body, isGiven } from '../ground/body.ts'
import type { Contacts, Recipient } from '../ground/contact.ts'
import { Failure, failureMessages, invalid, invalidField } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import { minuteMs } from '../ground/time.ts'
import type { IsTopLevelDomain } from '../ground/words.ts'
import type { Guard } from '../guard/guard.ts'
import { authenticate, type CredentialPorts, isAppId, permitted } from '../limits/credentials.ts'
import { pass, ReadFields, retryAfterSeconds, uncounted } from '../limits/gates.ts'
import { type IdempotencyPorts, idempotently } from '../limits/idempotency-key.ts'
import { type Claim, calls, failureBudget, type LimitSettings, type Subject } from '../limits/limits.ts'
import type { AppScope } from '../limits/scope.ts'
import type { Policy, ReadPolicy } from '../policy/policy.ts'
import {
  noteFlag,
  noteRecipient,
  type RequestContext,
  type VerifiedCode,
} from '../request/request-context.ts'
import { approvedBrand, type Brands } from '../texts/brand.ts'
import { type Binding, boundCode, otherParts, readBinding } from './binding.ts'
import type { ProofPorts, ProofStamp } from './proof.ts'
import type { OtpStore, Verdict } from './store.ts'

export interface VerifyOtpPorts extends CredentialPorts, IdempotencyPorts, ProofPorts {
  readonly brands: Brands
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly limits: LimitSettings
  readonly contacts: Contacts
  readonly destinationOf: DestinationOf
  readonly guard: Guard
  readonly policy: ReadPolicy
  readonly isTopLevelDomain: IsTopLevelDomain
  /** Undefined: no code has a ladder. */
  readonly ladders?: object | undefined
}

/** A key is never in progress: its answer is stored with the guess. */
const keySettings = { windowMs: 10 * minuteMs, longestMs: 0 } as const

const proofLifetimeSeconds = 600

const wrongCode = new Failure('mismatch')

interface Verified {
  /** Set: the app asked for a proof. */
  readonly stamp?: ProofStamp
}

/** Design D43: other failures are not kept. */
const keptMismatch = { status: 401, value: wrongCode } as const

/**
 * Spec 4.3: consumes the code if it is right; throws otherwise.
 * @returns the proof, if the app asked for one
 */
export async function verifyOtp(ports: VerifyOtpPorts, context: RequestContext, body: Body) {
  context.operation = 'verify'
  const app = await authenticate(ports, context, body)
  const policy = await ports.policy()
  return verifyCode(ports, context, body, { policy, scope: permitted(policy, app, 'otp') })
}

/** After the check of the credentials. @param id of the request that sent the code. Undefined: any */
export async function verifyCode(
  ports: VerifyOtpPorts,
  context: RequestContext,
  body: Body,
  { policy, scope, id }: { readonly policy: Policy; readonly scope: AppScope; readonly id?: string },
): Promise<string | undefined> {
  const app = scope.appId
  const { slug: brandSlug } = await approvedBrand(ports.brands, context, body, scope)
  const answer = new ReadFields(() => readAnswer(ports, context, body, id === undefined ? app : undefined))
  const { stamp } = await idempotently<Verified>(ports, context, body, keySettings, async (key) => {
    // Before the guess, so that a key that cannot be loaded consumes no code.
    const keyId = body.proof === true ? await ports.proofs.keyId() : undefined
    const iat = Math.floor(ports.now() / 1000)
    const stamp = keyId === undefined ? undefined : { iat, keyId, iss: ports.proofIssuer() }
    // The order of the contract, after credentials and brand.
    const gates = [
      // Counted with the answer of the guess.
      key && { claims: uncounted(key.claims) },
      calls(ports.limits, scope),
      answer,
      () => ({ claims: uncounted(answer.value.wrongCodes) }),
    ]
    const { decision } = await pass(ports, context, gates, (claims) => {
      const { recipient, subject, wrongCodes, otp, binding } = answer.value
      const keyedCodes = ports.secrets.keyedCodes({ brandSlug, ...recipient }, otp)
      context.recipientHash = subject[0]
      const now = ports.now()
      const attempt = {
        claims,
        key: key?.ofGuess((verdict) =>
          verdict.kind === 'mismatch' ? keptMismatch : { status: 200, value: verifiedWith(stamp, verdict) },
        ),
        failureBudget: wrongCodes[0],
        subject,
        brandSlug,
        id,
        keyedCodes: keyedCodes.map((keyedCode) => boundCode(keyedCode, binding)),
        // The app that sent the code may be another one.
        eventId: policy.webhooks.size === 0 ? undefined : ports.secrets.newEventId(now),
        hasLadders: ports.ladders !== undefined,
        reviewUse: { operation: 'verify', app, requestId: context.requestId, brandSlug },
      } as const
      return ports.store.guess(attempt, now)
    })
    const { verdict } = decision
    if (verdict.kind === 'mismatch')
      for (const part of otherParts(ports.secrets, answer.value.binding, verdict.sent))
        noteFlag(context, part)
    if (verdict.kind !== 'verified') throw failureOf(verdict)
    noteVerified(ports, context, verdict, answer.value)
    return verifiedWith(stamp, verdict)
  })
  // The guess is durable, now or before a replay.
  if (!stamp) return undefined
  const { keyId, ...more } = stamp
  const jti = context.replayOf ?? context.requestId
  const { recipient, binding } = answer.value
  const about = { aud: app, jti, brandId: brandSlug, ...recipient }
  return ports.proofs.sign({ ...about, ...binding, ...more, exp: more.iat + proofLifetimeSeconds }, keyId)
}

function verifiedWith(
  stamp: ProofStamp | undefined,
  { provider }: { readonly provider: string | null },
): Verified {
  return stamp ? { stamp: provider === null ? { ...stamp, review: true } : stamp } : {}
}

function failureOf(verdict: Exclude<Verdict, { readonly kind: 'verified' }>): Failure {
  if (verdict.kind === 'mismatch') return wrongCode
  if (verdict.kind === 'absent') return new Failure('not_found')
  return new Failure('max_attempts', undefined, { retryAfterSeconds: retryAfterSeconds(verdict.resetsInMs) })
}

export function noteVerified(
  { destinationOf, guard }: Pick<VerifyOtpPorts, 'destinationOf' | 'guard'>,
  context: RequestContext,
  code: VerifiedCode,
  { recipient: { channel, to }, subject: [recipient] }: Pick<Answer, 'recipient' | 'subject'>,
): void {
  context.verified = code
  if (code.provider === null) noteFlag(context, 'review')
  else if (channel === 'EMAIL') guard.verified({ recipient, phone: null })
  else {
    const { country } = destinationOf(to)
    if (country !== null) context.country = country
    context.verified = { ...code, isCredited: guard.verified({ recipient, phone: { to, country } }) }
  }
}

interface Answer {
  readonly recipient: Recipient
  readonly subject: Subject
  /** Their limit, unless it is turned off. */
  readonly wrongCodes: readonly Claim[]
  readonly otp: string
  readonly binding: Binding
}

function readAnswer(
  { contacts, limits, secrets, isTopLevelDomain }: VerifyOtpPorts,
  context: RequestContext,
  body: Body,
  /** Undefined: of a relay. */
  appId: string | undefined,
): Answer {
  const { otp, proof } = body
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
  if (isGiven(proof) && typeof proof !== 'boolean') throw invalidField('proof', 'must be true or false.')
  const binding = readBinding(body, isTopLevelDomain)
  if (appId !== undefined && !isAppId(appId)) throw new Failure('invalid_app_id')
  noteRecipient(context, recipient)
  const subject = secrets.subjects(recipient.channel, recipient.to)
  const budget = failureBudget(limits, subject)
  return { recipient, subject, wrongCodes: budget ? [budget] : [], otp, binding }
}
