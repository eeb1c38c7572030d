import { type Body, isGiven, judged } from '../body.ts'
import { approvedBrand, type Brand, type Brands, registrationOf } from '../brands/brand.ts'
import { type Channel, email, type Nationalize, parseChannel, phone, type Recipient } from '../contact.ts'
import type { EventLogReader } from '../events/event-log.ts'
import { noteRecipient, type RequestContext } from '../events/request-context.ts'
import { Failure } from '../failures.ts'
import {
  type DeliveryPorts,
  deliverMail,
  deliverSms,
  longestDeliveryMs,
  routesOf,
  type SmsMode,
} from '../messages/delivery.ts'
import { otpMail } from '../messages/emails.ts'
import type { Outcome, SmsMessage } from '../messages/providers.ts'
import { boundText, loginOtp, optionalWords, renderOtp } from '../messages/templates.ts'
import type { Secrets } from '../ports.ts'
import { authenticate, type CredentialPorts } from './credentials.ts'
import {
  type Claim,
  claim,
  cooldownOf,
  type Grant,
  globalLimit,
  granted,
  type LimitSettings,
  noteLimitStatuses,
  sendLimits,
} from './limits.ts'
import type { OtpRecord, OtpStore } from './store.ts'
import { subjectOf } from './subject.ts'

export interface SendOtpPorts extends CredentialPorts, DeliveryPorts {
  readonly brands: Brands
  readonly store: OtpStore
  readonly lastProviderOf: EventLogReader['lastProviderOf']
  readonly secrets: Secrets
  readonly limits: LimitSettings
  readonly otpTtlSeconds: number
  readonly smsMode: SmsMode
  readonly nationalize?: Nationalize | undefined
}

/**
 * Send and resend (spec 4.1, 4.2), which are one operation: a send replaces whatever code its brand and recipient had. A
 * resend prefers another provider than the last code went through, since that one may not have arrived.
 * The checks stand in the order of the spec; the fields are read beforehand, since the limits need the recipient, and
 * judged in their turn. Resolves to the lifetime of the code.
 */
export async function sendOtp(
  ports: SendOtpPorts,
  context: RequestContext,
  body: Body,
  { isResend }: { readonly isResend: boolean },
): Promise<{ expiresIn: number }> {
  context.operation = isResend ? 'resend' : 'send'
  const appId = await authenticate(ports, context, body)
  const brand = await approvedBrand(ports.brands, context, body)
  const to = await readAddressee(ports, body)
  if (to) {
    noteRecipient(context, to.recipient)
    context.recipientSubject = to.subject
  }
  const order = judged(() => readOrder(body, brand, to))
  const claims = claimsOf(ports, appId, brand, to, !(order instanceof Failure))
  if (order instanceof Failure) {
    await claim(ports, context, claims)
    throw order
  }

  // From here on the code is alive: a verify that overtakes the end of the delivery succeeds (design D15).
  const now = ports.now()
  const { code, record } = newRecord(ports, brand, order, now)
  const decision = await ports.store.beginSend(claims, record, now)
  noteLimitStatuses(context, claims, decision)
  const grants = granted(decision, now)
  // A process that ends during the delivery leaves a trace of what it was about.
  ports.eventLog.note(context)
  const avoid = isResend ? await lastProvider(ports, context, brand, order) : undefined
  const outcome = await deliver(ports, context, brand, order, { code, avoid })
  if (outcome.kind !== 'accepted') {
    await regain(ports, order)
    // Counted are the codes sent; that a call was made stays true.
    await ports.store.abandonSend(
      record,
      grants.filter(({ subject }) => subject === record.subject),
      ports.now(),
    )
    throw new Failure('sms_failed')
  }
  await startCooldown(ports, order, cooldownOf(grants, brand.slug)).catch((error: unknown) => {
    // The code is out and alive, and the lease holds for as long as the cooldown would: nothing the caller has to know.
    context.fault = error
  })
  return { expiresIn: ports.otpTtlSeconds }
}

/**
 * What the last code went through, where a route has another provider to prefer; where it can't be told, the code is sent
 * all the same.
 */
async function lastProvider(
  { lastProviderOf, secrets, smsMode, smsRoutes }: SendOtpPorts,
  context: RequestContext,
  { slug, dltEnabled }: Brand,
  { recipient: { channel, identity } }: Order,
): Promise<string | undefined> {
  const hasChoice = routesOf(smsMode, dltEnabled).some((route) => smsRoutes[route].length > 1)
  if (channel === 'EMAIL' || !hasChoice) return undefined
  return lastProviderOf(secrets.subjects(channel, identity), slug).catch((error: unknown) => {
    context.fault = error
    return undefined
  })
}

/**
 * The cooldown runs from the end of the delivery (spec 3.2). Taken at admission it is right already where its length
 * outlasts any delivery and this one was quick, which saves most sends a second write.
 */
async function startCooldown(ports: SendOtpPorts, order: Order, cooldown: Grant | undefined): Promise<void> {
  if (!cooldown) return
  const now = ports.now()
  const endsAt = now + ports.limits.smsCooldownSeconds * 1000
  if (Math.abs(endsAt - cooldown.endsAt) > cooldownToleranceMs) {
    await regain(ports, order)
    await ports.store.reschedule(cooldown, endsAt, now)
  }
}

/** Gets back what a server that knows the secrets in another order has moved to another name meanwhile. */
async function regain(ports: SendOtpPorts, { recipient }: Order): Promise<void> {
  await subjectOf(ports, recipient.channel, recipient.identity)
}

/** A usable recipient, and what stands for it in the store. */
interface Addressee {
  readonly recipient: Recipient
  readonly subject: string
}

interface Order extends Addressee {
  readonly loginId: string | undefined
  readonly businessName: string | undefined
}

/** The recipient, if the body names a usable one: the limits need it before the fields have their turn. */
async function readAddressee(ports: SendOtpPorts, body: Body): Promise<Addressee | undefined> {
  const recipient = readRecipient(body, ports.nationalize)
  if (!recipient) return undefined
  return { recipient, subject: await subjectOf(ports, recipient.channel, recipient.identity) }
}

function readRecipient(body: Body, nationalize: Nationalize | undefined): Recipient | undefined {
  const channel = channelOf(body)
  if (channel === undefined) return undefined
  return channel === 'SMS' ? phone(body.phone, nationalize) : email(body.email)
}

function readOrder(body: Body, brand: Brand, to: Addressee | undefined): Order {
  const channel = channelOf(body)
  if (channel === undefined) throw new Failure('validation_error', 'channel must be SMS or EMAIL')
  const field = channel === 'SMS' ? 'phone' : 'email'
  if (!isGiven(body[field])) {
    throw new Failure('validation_error', `${field} is required when channel is ${channel}`)
  }
  if (to === undefined) throw new Failure('validation_error', `${field} is not valid`)
  const loginId = brand.loginIdEnabled ? optionalWords('loginId', body.loginId, { max: 64 }) : undefined
  const businessName = optionalWords('businessName', body.businessName, { max: 40 })
  return { ...to, loginId, businessName }
}

function channelOf(body: Body): Channel | undefined {
  return isGiven(body.channel) ? parseChannel(body.channel) : 'SMS'
}

/**
 * The limits of spec 4.1 in their order. A send with a wrong field is refused by each of them as any other, but is
 * counted by the global one alone: the others count what is sent.
 */
function claimsOf(
  ports: SendOtpPorts,
  appId: string,
  brand: Brand,
  to: Addressee | undefined,
  counted: boolean,
): Claim[] {
  const global = globalLimit(ports.limits, appId)
  if (to === undefined) return [global]
  const limits = sendLimits(ports.limits, {
    ...to,
    brandSlug: brand.slug,
    leaseMs: Math.max(
      ports.limits.smsCooldownSeconds * 1000,
      longestDeliveryMs(ports.providerTimeoutMs) + leaseMarginMs,
    ),
  })
  return [...limits.map((limit) => ({ ...limit, counted })), global]
}

/** By how much a cooldown may be shorter than it should: nobody waits for a fraction of a second. */
const cooldownToleranceMs = 500

/** What a delivery may take beyond the time of its provider calls: queueing and a busy machine. */
const leaseMarginMs = 2000

function newRecord(
  { secrets, otpTtlSeconds }: SendOtpPorts,
  { slug: brandSlug }: Brand,
  { recipient: { channel, identity }, subject }: Addressee,
  now: number,
): { code: string; record: OtpRecord } {
  const code = secrets.newCode()
  const id = secrets.newRecordId()
  const [keyedCode] = secrets.keyedCodes({ brandSlug, channel, identity }, code)
  const hash = secrets.saltedHash(id, keyedCode)
  return {
    code,
    record: { subject, brandSlug, id, hash, createdAt: now, expiresAt: now + otpTtlSeconds * 1000 },
  }
}

function deliver(
  ports: SendOtpPorts,
  context: RequestContext,
  brand: Brand,
  order: Order,
  { code, avoid }: { code: string; avoid: string | undefined },
): Promise<Outcome> {
  const { recipient, subject } = order
  const businessName = order.businessName ?? brand.displayName
  const lifetimeSeconds = ports.otpTtlSeconds
  const sender = {
    requestId: context.requestId,
    brandSlug: brand.slug,
    brandName: brand.displayName,
    to: recipient.address,
    position: null,
  }
  if (recipient.channel === 'EMAIL') {
    const content = otpMail({ code, businessName, lifetimeSeconds })
    return deliverMail(ports, context, {
      ...sender,
      recipientSubject: subject,
      template: loginOtp.key,
      ...content,
    })
  }
  const { loginId } = order
  const { templateKey, variables, text } = renderOtp({ code, businessName, lifetimeSeconds, loginId })
  const message: SmsMessage = {
    ...sender,
    id: ports.secrets.newId(),
    subject,
    text: boundText(text, code, brand.domain, ports.segmentsOf),
    template: { key: templateKey, text, variables, registration: registrationOf(brand, templateKey) },
    validitySeconds: lifetimeSeconds,
  }
  return deliverSms(ports, context, message, { routes: routesOf(ports.smsMode, brand.dltEnabled), avoid })
}
