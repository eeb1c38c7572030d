import type { ConversionFeedback } from '../delivery/conversion-feedback.ts'
import { type DeliveryPorts, deliver, longestDeliveryMs } from '../delivery/delivery.ts'
import { events } from '../delivery/message-events.ts'
import type { Body } from '../ground/body.ts'
import { Failure } from '../ground/failures.ts'
import type { Secrets } from '../ground/ports.ts'
import type { EpochMs } from '../ground/time.ts'
import { authenticate, type CredentialPorts, permitted } from '../limits/credentials.ts'
import { once, pass, ReadFields, type Settle } from '../limits/gates.ts'
import { type IdempotencyPorts, idempotently } from '../limits/idempotency-key.ts'
import { calls, type Gate, type Granted, type LimitSettings, sendLimits } from '../limits/limits.ts'
import type { AppScope } from '../limits/scope.ts'
import { Charge } from '../money/charge.ts'
import type { Policy, ReadPolicy } from '../policy/policy.ts'
import { reviewed } from '../policy/review-number.ts'
import { mayBeSent, type RequestContext } from '../request/request-context.ts'
import { approvedBrand, type BrandList, type Brands, isNameOfOther } from '../texts/brand.ts'
import { type GuardedPorts, guarded } from './guarded.ts'
import { type OrderPorts, type Relayed, readAddressee, readOrder } from './order.ts'
import type { NewCode, OtpStore, SendDecision } from './store.ts'

export interface SendOtpPorts
  extends CredentialPorts,
    IdempotencyPorts,
    OrderPorts,
    GuardedPorts,
    DeliveryPorts {
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly brands: Brands & BrandList
  readonly policy: ReadPolicy
  readonly limits: LimitSettings
  /** Undefined: turned off. */
  readonly conversionFeedback: Pick<ConversionFeedback, 'accepts'> | undefined
}

interface Sent {
  /** In seconds. */
  readonly expiresIn: number
}

/** Send and resend (spec 4.1, 4.2). */
export async function sendOtp(
  ports: SendOtpPorts,
  context: RequestContext,
  body: Body,
  operation: 'send' | 'resend',
): Promise<Sent> {
  context.operation = operation
  const app = await authenticate(ports, context, body)
  const policy = await ports.policy()
  const scope = permitted(policy, app, 'otp')
  return sendCode(ports, context, body, { policy, scope })
}

/** Who sends: an app with the operation, or a relay. */
export interface Sender {
  readonly policy: Policy
  readonly scope: AppScope
  readonly relayed?: Relayed
}

/** After the check of the credentials. */
export async function sendCode(
  ports: SendOtpPorts,
  context: RequestContext,
  body: Body,
  { policy, scope, relayed }: Sender,
): Promise<Sent> {
  const { store, now, limits, otpTtlSeconds: expiresIn } = ports
  const app = scope.appId
  const operation = context.operation === 'resend' ? 'resend' : 'send'
  // The caller of a relay keeps and verifies its own code.
  const isKept = relayed?.code === undefined
  const longestMs = longestDeliveryMs(ports.providerTimeoutMs)
  const keySettings = {
    windowMs: expiresIn * 1000,
    longestMs,
    again: (_: Sent, expiresAt: EpochMs) => ({ expiresIn: Math.ceil((expiresAt - now()) / 1000) }),
  }
  const brand = await approvedBrand(ports.brands, context, body, scope)
  const addressee = readAddressee(ports, context, body)
  return idempotently(ports, context, body, keySettings, async (key) => {
    const brandSlug = brand.slug
    const isOtherName = await isNameOfOther(ports.brands, scope, brand, body.businessName)
    const order = new ReadFields(() =>
      readOrder(ports, context, body, { brand, policy, addressee, isOtherName, relayed }),
    )
    const charge = once(() => {
      const { message } = order.value
      const about = { app, brand: brandSlug, of: 'codes' } as const
      return new Charge(policy, about, context, ports, message ? [message] : [])
    })
    const lease = { brandSlug, longestMs, followsCrash: key?.followsCrash }
    // The order of the contract, after credentials and brand.
    const gates = [
      key,
      ...(addressee ? sendLimits(ports, addressee, lease).filter(appliesTo(relayed)) : []),
      calls(limits, scope),
      order,
      () => order.value.review && reviewed(context, order.value.review, operation, now()),
      () => order.value.guarded && guarded(ports, context, order.value.guarded, policy.prefixes),
      charge,
      events(ports, context, policy.webhooks.has(app)),
      () => order.value.ladder && { effects: [{ kind: 'ladder', row: order.value.ladder.row } as const] },
      () => relayed?.keep && addressee && { effects: relayed.keep(order.value.code, addressee.to) },
    ]
    // The code is active from here on: a concurrent verify succeeds (design D15).
    const { decision, settle } = await pass<Extract<SendDecision, Granted>>(
      ports,
      context,
      gates,
      async (claims, effects) => {
        if (isKept) return store.beginSend(claims, order.value.code, now(), effects)
        return { lastProvider: null, ...(await store.admit(claims, now(), effects)) }
      },
    )
    const { lastProvider } = decision
    const { code, message, ladder } = order.value
    const avoid = operation === 'resend' ? lastProvider : null
    const deadline = ports.stopwatch() + longestMs
    const options = { charging: charge(), avoid, deadline, isFollowed: ladder !== undefined }
    const outcome = message && (await deliver(ports, context, message, options))
    const isFirstAccepted = outcome === undefined || outcome.kind === 'accepted'
    const isAccepted = ladder ? await ladder.goOn(isFirstAccepted, deadline) : isFirstAccepted
    await end(ports, context, { code: isKept ? code : null, isAccepted, lastProvider, settle })
    return { expiresIn }
  })
}

/** A relay has no cooldown. Its caller counts the wrong ones of its own codes. */
function appliesTo(relayed: Relayed | undefined) {
  const exempt =
    relayed === undefined ? [] : relayed.code === undefined ? ['cooldown'] : ['cooldown', 'failures']
  return ({ claims = [] }: Gate): boolean => !claims.some(({ limit }) => exempt.includes(limit ?? ''))
}

/** @throws sms_failed if no provider accepted the code, which is then revoked */
async function end(
  { store, now, conversionFeedback }: SendOtpPorts,
  context: RequestContext,
  {
    code,
    isAccepted,
    lastProvider,
    settle,
  }: {
    /** Null: of the caller. */
    readonly code: NewCode | null
    readonly isAccepted: boolean
    readonly lastProvider: string | null
    readonly settle: Settle
  },
): Promise<void> {
  const last = context.attempts.findLast(mayBeSent)
  if (!isAccepted) {
    const provider = last?.provider ?? lastProvider
    if (code) await settle([null], (back, effects) => store.abandonSend(code, back, provider, now(), effects))
    else await settle([null])
    throw new Failure('sms_failed')
  }
  try {
    if (last && code) {
      const { provider, providerMessageId } = last
      const messageId = conversionFeedback?.accepts(provider) ? providerMessageId : null
      if (provider !== code.provider || messageId !== null)
        await store.setProvider(code, provider, messageId, now())
    }
    await settle([])
  } catch (error) {
    // The code is sent, and the lease replaces the cooldown.
    context.fault = error
  }
}
