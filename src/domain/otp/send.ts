import type { ConversionFeedback } from '../delivery/conversion-feedback.ts'
import { type DecidedDestination, type DestinationPorts, decideDestination } from '../delivery/decide.ts'
import {
  type DeliveryPorts,
  deliverMail,
  deliverSms,
  isScrubbed,
  longestDeliveryMs,
  orderedSteps,
  type Routing,
  routingOf,
  type SmsMode,
  smsSteps,
  withoutProvider,
} from '../delivery/delivery.ts'
import { messageId } from '../delivery/delivery-reports.ts'
import { attemptsFailed } from '../delivery/message-events.ts'
import { type Body, isGiven, judged, readReference } from '../ground/body.ts'
import { type Channel, type Contacts, mailboxOf, parseChannel, type Recipient } from '../ground/contact.ts'
import { Failure, invalidField } from '../ground/failures.ts'
import { readLang } from '../ground/languages.ts'
import type { Secrets } from '../ground/ports.ts'
import type { Mail, Outcome, SmsMessage } from '../ground/providers.ts'
import { optionalWords } from '../ground/words.ts'
import type { Guard, GuardPass } from '../guard/guard.ts'
import { claim, granted, guardRefusal, isSame, stored, uncounted } from '../limits/claims.ts'
import { authenticate, type CredentialPorts, permitted } from '../limits/credentials.ts'
import type { Effect } from '../limits/effects.ts'
import {
  claimWithKey,
  type IdempotencyKey,
  type IdempotencyPorts,
  idempotencyKeyOf,
} from '../limits/idempotency-key.ts'
import {
  type Claim,
  cooldownOf,
  furtherAttempt,
  type Grant,
  globalLimit,
  type LimitSettings,
  type Subject,
  sendLimits,
} from '../limits/limits.ts'
import { Charge } from '../money/charge.ts'
import type { Policy, ReadPolicy } from '../policy/policy.ts'
import { type ReviewNumber, reviewUseEntry } from '../policy/review-number.ts'
import { mayBeSent, noteFlag, noteRecipient, type RequestContext } from '../request/request-context.ts'
import {
  approvedBrand,
  type BrandList,
  type Brands,
  type BrandWithTexts,
  isNameOfOther,
  registrationOf,
} from '../texts/brand.ts'
import { otpMail } from '../texts/emails.ts'
import { plainOtp, refuseLongLoginId, registeredOtp } from '../texts/otp-sms.ts'
import { type OtpValues, otpKeyOf } from '../texts/templates.ts'
import type { NewCode, OtpStore } from './store.ts'

export interface SendOtpPorts extends CredentialPorts, DeliveryPorts, DestinationPorts, IdempotencyPorts {
  readonly brands: Brands & BrandList
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly limits: LimitSettings
  readonly otpTtlSeconds: number
  readonly smsMode: SmsMode
  readonly contacts: Contacts
  /** Undefined: turned off. */
  readonly conversionFeedback: Pick<ConversionFeedback, 'accepts'> | undefined
  readonly policy: ReadPolicy
  readonly guard: Guard
  /** Whether it verified a code within 180 days (design D41). */
  readonly isVerifiedNumber: (subjects: Subject) => Promise<boolean>
  /** The comparable form of an IP address. Undefined: not an IP address. */
  readonly ipIdentity: (text: string) => string | undefined
}

/** Send and resend (spec 4.1, 4.2). Returns the seconds until the code expires. */
export function sendOtp(
  ports: SendOtpPorts,
  context: RequestContext,
  body: Body,
  { isResend }: { readonly isResend: boolean },
): Promise<Sent> {
  context.operation = isResend ? 'resend' : 'send'
  const key = idempotencyKeyOf<Sent>(ports, context, body, {
    windowMs: ports.otpTtlSeconds * 1000,
    longestMs: longestDeliveryMs(ports.providerTimeoutMs),
    kept: [],
  })
  const sent = send(ports, context, body, { isResend, key })
  return key ? key.ended(sent) : sent
}

interface Sent {
  readonly expiresIn: number
}

async function send(
  ports: SendOtpPorts,
  context: RequestContext,
  body: Body,
  { isResend, key }: { readonly isResend: boolean; readonly key: IdempotencyKey<Sent> | undefined },
): Promise<Sent> {
  const appId = await authenticate(ports, context, body)
  const policy = await ports.policy()
  const app = permitted(policy, appId, 'otp')
  const brand = await approvedBrand(ports.brands, context, body, app)
  const to = readAddressee(ports, context, body)
  const kept = key && (await key.keptAnswer())
  if (kept) return { expiresIn: Math.ceil((kept.expiresAt - ports.now()) / 1000) }
  const isOtherName = await isNameOfOther(ports.brands, app, brand, body.businessName)
  const order = judged(() => readOrder(ports, context, body, { brand, to, policy, isOtherName }))
  const global = globalLimit(ports.limits, app)
  const limits = to ? limitsOf(ports, brand, to, key?.followsCrash ?? false) : []
  if (order instanceof Failure) {
    // An invalid request counts only on the global limit, but any limit may reject it.
    await claim(ports, context, [...uncounted(limits), global])
    throw order
  }

  const review = order.destination && policy.reviewNumberOf(order.subject, brand.slug, ports.now())
  if (review) {
    await beginReview(ports, context, [...limits, global], { review, subject: order.subject, key, appId })
    ports.eventLog.note(context)
    if (policy.webhooks.has(appId)) await ports.eventLog.flush()
    return { expiresIn: ports.otpTtlSeconds }
  }

  const { record, sms, steps, mail } = newCode(ports, context, brand, order)
  const charge = new Charge(policy, { app: appId, brand: brand.slug }, context, ports)
  let deliver: (avoid: string | null) => Promise<Outcome>
  if (sms) {
    const charging = charge.add(sms, steps)
    deliver = (avoid) => deliverSms(ports, context, sms, steps, { avoid, charging })
  } else deliver = () => deliverMail(ports, context, mail)
  ports.guard.applyOperatorPrefixes(policy.prefixes)
  const pass = sms && (await enterGuard(ports, context, order, [...limits, global]))
  const claims = [...limits, global, ...charge.claims()]
  // The code is active from here on: a concurrent verify succeeds (design D15).
  const { grants, lastProvider } = await beginSend(ports, context, claims, { record, key }).catch(
    (error: unknown) => {
      pass?.undo()
      throw error
    },
  )
  if (pass) confirm(context, pass)
  ports.eventLog.note(context)
  const hasWebhook = policy.webhooks.has(appId)
  // Events get the app and the recipient from the event log.
  if (hasWebhook) await ports.eventLog.flush()
  const outcome = await deliver(isResend ? lastProvider : null)
  await settle(ports, context, outcome, { record, limits, grants, lastProvider, charge, pass, hasWebhook })
  return { expiresIn: ports.otpTtlSeconds }
}

/**
 * Design D48: the fixed code becomes the active one, and is not sent. Limits apply; the guard and budgets count SMS, so they do not.
 * @throws the refusal of a limit
 */
async function beginReview(
  ports: SendOtpPorts,
  context: RequestContext,
  claims: readonly Claim[],
  {
    review,
    subject,
    key,
    appId,
  }: {
    readonly review: ReviewNumber
    readonly subject: Subject
    readonly key: IdempotencyKey<Sent> | undefined
    readonly appId: string
  },
): Promise<void> {
  const { secrets, otpTtlSeconds, now } = ports
  const { brandSlug, keyedCode } = review
  const { requestId } = context
  const hash = secrets.saltedHash(requestId, keyedCode)
  const record = { subject, brandSlug, id: requestId, hash, ttlMs: otpTtlSeconds * 1000, provider: null }
  const operation = context.operation === 'resend' ? 'resend' : 'send'
  const use = reviewUseEntry({ operation, app: appId, requestId, brandSlug }, now())
  const { grants } = await beginSend(ports, context, claims, { record, key, effects: [use] })
  noteFlag(context, 'review')
  try {
    await startCooldown(ports, cooldownOf(grants, brandSlug))
  } catch (error) {
    // The code is active, and the lease replaces the cooldown.
    context.fault = error
  }
}

interface Sending {
  readonly record: NewCode
  /** Without the global one. */
  readonly limits: readonly Claim[]
  readonly grants: readonly Grant[]
  readonly lastProvider: string | null
  readonly charge: Charge
  readonly pass: GuardPass | undefined
  /** Whether the app gets events. */
  readonly hasWebhook: boolean
}

/** Gives back what the delivery did not use. @throws sms_failed if no provider accepted the code */
async function settle(
  ports: SendOtpPorts,
  context: RequestContext,
  outcome: Outcome,
  { record, limits, grants, lastProvider, charge, pass, hasWebhook }: Sending,
): Promise<void> {
  const { store, now } = ports
  const cooldown = cooldownOf(grants, record.brandSlug)
  const possiblySent = context.attempts.filter(mayBeSent)
  const last = possiblySent.at(-1)
  const provider = last?.provider ?? lastProvider
  const unspent = charge.unspent(grants)
  if (outcome.kind !== 'accepted') {
    if (possiblySent.length === 0) pass?.undo()
    // The global limit counts calls, so it is not given back. The others count codes that may have been sent.
    const isUnused = (grant: Grant) =>
      grant === cooldown || (possiblySent.length === 0 && limits.some((each) => isSame(each, grant)))
    const at = now()
    const effects: Effect[] = []
    if (hasWebhook) {
      const message = { id: ports.secrets.newEventId(at), at, requestId: context.requestId, position: null }
      effects.push({ kind: 'event', event: attemptsFailed(message, context.attempts) })
    }
    try {
      // Before the cooldown ends: the next send then meets all counts.
      await countFurther(ports, limits, possiblySent.length)
    } finally {
      await store.abandonSend(record, [...grants.filter(isUnused), ...unspent], provider, at, effects)
    }
    throw new Failure('sms_failed')
  }
  try {
    const messageId = last && ports.conversionFeedback?.accepts(last.provider) ? last.providerMessageId : null
    if (provider !== null && (provider !== record.provider || messageId !== null))
      await store.setProvider(record, provider, messageId, now())
    await countFurther(ports, limits, possiblySent.length)
    await startCooldown(ports, cooldown)
    if (unspent.length > 0) await store.giveBack(unspent, now())
  } catch (error) {
    // The code is sent, and the lease replaces the cooldown.
    context.fault = error
  }
}

async function beginSend(
  { store, now }: SendOtpPorts,
  context: RequestContext,
  claims: readonly Claim[],
  {
    record,
    key,
    effects,
  }: {
    readonly record: NewCode
    readonly key: IdempotencyKey<Sent> | undefined
    readonly effects?: readonly Effect[]
  },
): Promise<{ readonly grants: readonly Grant[]; readonly lastProvider: string | null }> {
  const decision = await claimWithKey(
    key,
    claims.map(stored),
    (all, written) => store.beginSend(all, record, now(), written),
    effects,
  )
  const grants = granted(context, claims, decision)
  return { grants, lastProvider: decision.allowed ? decision.lastProvider : null }
}

/**
 * Design D41. A number that verified a code lately always passes, and its code counts like others.
 * @throws the guard's refusal, unless a limit refuses the request first
 */
async function enterGuard(
  ports: SendOtpPorts,
  context: RequestContext,
  { recipient, subject, destination, ip }: Order,
  limits: readonly Claim[],
): Promise<GuardPass> {
  const { guard } = ports
  const { country = null, isAllowed = false } = destination ?? {}
  const pass = guard.enter({ digits: recipient.identity, country, ip, isAllowedCountry: isAllowed })
  if (pass.verdict === null) return pass
  if (await ports.isVerifiedNumber(subject)) {
    pass.admit()
    return pass
  }
  if (!pass.verdict.isDenied) return pass
  await claim(ports, context, uncounted(limits))
  confirm(context, pass)
  throw guardRefusal(pass.verdict)
}

/** No limit rejects the request. */
function confirm(context: RequestContext, pass: GuardPass): void {
  if (pass.verdict === null) return
  pass.confirm()
  noteFlag(context, pass.verdict.bucket)
}

async function countFurther(
  { store, now }: SendOtpPorts,
  limits: readonly Claim[],
  possiblySent: number,
): Promise<void> {
  for (let time = 2; time <= possiblySent; time++)
    await store.admit(furtherAttempt(limits).map(stored), now())
}

/** The cooldown starts after the delivery (spec 3.2), unless the lease is long enough. */
async function startCooldown(
  { store, now, limits }: SendOtpPorts,
  cooldown: Grant | undefined,
): Promise<void> {
  const cooldownMs = limits.smsCooldownSeconds * 1000
  if (cooldown && Math.abs(now() + cooldownMs - cooldown.expiresAt) > cooldownToleranceMs) {
    await store.reschedule(cooldown, cooldownMs, now())
  }
}

interface Addressee {
  readonly recipient: Recipient
  readonly subject: Subject
  readonly mailboxSubject: Subject
}

interface Order extends Addressee {
  readonly loginId: string | undefined
  readonly businessName: string | undefined
  /** As `readLang` returns it. */
  readonly lang: string | undefined
  /** Undefined: an e-mail. */
  readonly destination: DecidedDestination | undefined
  /** The hashed IP address of the end user. */
  readonly ip: string | null
}

function readAddressee(
  { secrets, contacts }: SendOtpPorts,
  context: RequestContext,
  body: Body,
): Addressee | undefined {
  const channel = channelOf(body)
  const recipient = channel && (channel === 'SMS' ? contacts.phone(body.phone) : contacts.email(body.email))
  if (!recipient) return undefined
  const subject = secrets.subjects(recipient.channel, recipient.identity)
  noteRecipient(context, recipient)
  context.recipientSubject = subject[0]
  const mailboxSubject = channel === 'SMS' ? subject : secrets.subjects('mailbox', mailboxOf(recipient))
  return { recipient, subject, mailboxSubject }
}

function readOrder(
  ports: SendOtpPorts,
  context: RequestContext,
  body: Body,
  {
    brand,
    to,
    policy,
    isOtherName,
  }: { brand: BrandWithTexts; to: Addressee | undefined; policy: Policy; isOtherName: boolean },
): Order {
  const channel = channelOf(body)
  if (channel === undefined) throw invalidField('channel', 'must be SMS or EMAIL.')
  const field = channel === 'SMS' ? 'phone' : 'email'
  if (!isGiven(body[field])) throw invalidField(field, `is required when \`channel\` is ${channel}.`)
  if (to === undefined) throw invalidField(field, ports.contacts.faultOf(body[field], channel))
  const givenLoginId = optionalWords('loginId', body.loginId, { max: 64 })
  const loginId = brand.loginIdEnabled ? givenLoginId : undefined
  const businessName = optionalWords('businessName', body.businessName, { max: 40 })
  if (isOtherName) throw invalidField('businessName', 'is the name of a brand that is not `brandId`.')
  context.reference = readReference(body)
  const ip = readClientIp(ports, body)
  const lang = readLang(body)
  const { recipient } = to
  const destination =
    channel === 'SMS' ? decideDestination(ports, context, recipient, { field, brand, policy }) : undefined
  if (destination && loginId !== undefined) {
    const routing = routingTo(ports, brand, recipient, destination)
    if (isScrubbed(routing, brand, destination.country)) refuseLongLoginId(brand, loginId, lang)
  }
  return { ...to, loginId, businessName, lang, destination, ip }
}

function routingTo(
  { smsMode }: SendOtpPorts,
  { dltEnabled }: BrandWithTexts,
  { identity }: Recipient,
  { rule }: DecidedDestination,
): Routing {
  return routingOf({ smsMode, isTemplate: true, dltEnabled }, identity, rule)
}

/** The end user's, not the app's (design D41). */
function readClientIp({ secrets, ipIdentity }: SendOtpPorts, { clientIp }: Body): string | null {
  if (!isGiven(clientIp)) return null
  const identity = typeof clientIp === 'string' ? ipIdentity(clientIp) : undefined
  if (identity === undefined) throw invalidField('clientIp', 'must be an IPv4 or IPv6 address.')
  return secrets.subjects('ip', identity)[0]
}

function channelOf(body: Body): Channel | undefined {
  return isGiven(body.channel) ? parseChannel(body.channel) : 'SMS'
}

/** Spec 4.1, in order, before the global limit. */
function limitsOf(
  { limits, providerTimeoutMs }: SendOtpPorts,
  brand: BrandWithTexts,
  { recipient, subject, mailboxSubject }: Addressee,
  followsCrash: boolean,
): Claim[] {
  const claims = sendLimits(limits, {
    channel: recipient.channel,
    subject,
    mailboxSubject,
    brandSlug: brand.slug,
    leaseMs: Math.max(limits.smsCooldownSeconds * 1000, longestDeliveryMs(providerTimeoutMs) + leaseMarginMs),
  })
  if (!followsCrash) return claims
  // The cooldown of the request that has no answer does not count (spec 3.2).
  return claims.map((each) => (each.limit === 'cooldown' ? { ...each, max: 2 } : each))
}

const cooldownToleranceMs = 500

const leaseMarginMs = 2000

/** A new code and its message. */
function newCode(ports: SendOtpPorts, context: RequestContext, brand: BrandWithTexts, order: Order) {
  const { secrets, otpTtlSeconds } = ports
  const { recipient, subject } = order
  const { channel, identity } = recipient
  const code = secrets.newCode()
  const id = context.requestId
  const [keyedCode] = secrets.keyedCodes({ brandSlug: brand.slug, channel, identity }, code)
  const hash = secrets.saltedHash(id, keyedCode)
  const about = { subject, brandSlug: brand.slug, id, hash, ttlMs: otpTtlSeconds * 1000 }
  if (order.destination === undefined) {
    const mail = codeMail(ports, context, brand, order, code)
    return { mail, record: { ...about, provider: ports.mailer.name } }
  }
  const routing = routingTo(ports, brand, recipient, order.destination)
  const sms = codeSms(ports, context, brand, order, { code, routing })
  const steps = smsSteps(ports, sms, routing)
  if (steps.length === 0) context.fault = withoutProvider(order.destination.rule)
  // The provider that is tried first, unless this is a resend, so that `setProvider` is seldom needed.
  const [first] = orderedSteps(ports, steps, null)
  return { sms, steps, record: { ...about, provider: first?.provider.name ?? null } }
}

function codeMail(
  ports: SendOtpPorts,
  { requestId }: RequestContext,
  brand: BrandWithTexts,
  { recipient, subject, businessName, loginId, lang }: Order,
  code: string,
): Mail {
  const about = { code, businessName, lifetimeSeconds: ports.otpTtlSeconds, loginId }
  const mail = otpMail(brand, about, lang)
  return {
    requestId,
    brandSlug: brand.slug,
    brandName: brand.displayName,
    to: recipient.identity,
    recipientSubject: subject[0],
    position: null,
    template: otpKeyOf(loginId),
    subject: mail.subject,
    html: mail.html,
    text: mail.text,
    lang: mail.lang,
  }
}

function codeSms(
  ports: SendOtpPorts,
  { requestId }: RequestContext,
  brand: BrandWithTexts,
  { recipient, subject, businessName = brand.displayName, loginId, lang, destination }: Order,
  { code, routing: { routes } }: { readonly code: string; readonly routing: Routing },
): SmsMessage {
  const { segmentsOf, otpTtlSeconds: lifetimeSeconds } = ports
  const plain = plainOtp(brand, { code, businessName, lifetimeSeconds, loginId }, lang, segmentsOf)
  const { templateKey: key, text, variables } = plain.rendered
  return {
    id: messageId(requestId, null),
    requestId,
    brandSlug: brand.slug,
    brandName: brand.displayName,
    to: recipient.identity,
    country: destination?.country ?? null,
    senderId: destination?.rule?.sender ?? null,
    position: null,
    subject: subject[0],
    text: plain.text,
    lang: plain.lang,
    template: routes.includes('template')
      ? registeredSms(brand, { code, businessName: brand.displayName, lifetimeSeconds, loginId }, lang)
      : { key, text, lang: plain.lang, variables, registration: registrationOf(brand, key) },
    validitySeconds: lifetimeSeconds,
    expectsFeedback: ports.conversionFeedback !== undefined,
  }
}

/** @param values `businessName` is the brand's, as in the registered text (design D31) */
function registeredSms(
  brand: BrandWithTexts,
  values: OtpValues,
  lang: string | undefined,
): NonNullable<SmsMessage['template']> {
  const { registrationKey, ...registered } = registeredOtp(brand, values, lang)
  return { ...registered, registration: registrationOf(brand, registrationKey) }
}
