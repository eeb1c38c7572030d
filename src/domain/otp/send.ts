import { type Body, isGiven, judged } from '../body.ts'
import { approvedBrand, type Brand, type Brands, registrationOf } from '../brands/brand.ts'
import {
  type Channel,
  type Contacts,
  mailboxOf,
  parseChannel,
  type Recipient,
  recipientProblem,
} from '../contact.ts'
import { type Attempt, noteRecipient, type RequestContext } from '../events/request-context.ts'
import { Failure, invalid } from '../failures.ts'
import type { ConversionFeedback } from '../messages/conversion-feedback.ts'
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
import { boundText, loginOtp, renderOtp } from '../messages/templates.ts'
import { optionalWords } from '../messages/words.ts'
import type { Secrets } from '../ports.ts'
import { claim, granted } from './claims.ts'
import { authenticate, type CredentialPorts } from './credentials.ts'
import {
  type Claim,
  cooldownOf,
  furtherAttempt,
  type Grant,
  globalLimit,
  type LimitSettings,
  type Subject,
  sendLimits,
} from './limits.ts'
import type { NewCode, OtpStore } from './store.ts'

export interface SendOtpPorts extends CredentialPorts, DeliveryPorts {
  readonly brands: Brands
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly limits: LimitSettings
  readonly otpTtlSeconds: number
  readonly smsMode: SmsMode
  readonly contacts: Contacts
  /** Undefined: turned off. */
  readonly conversionFeedback: Pick<ConversionFeedback, 'accepts'> | undefined
}

/** Send and resend (spec 4.1, 4.2). Returns the seconds until the code expires. */
export async function sendOtp(
  ports: SendOtpPorts,
  context: RequestContext,
  body: Body,
  { isResend }: { readonly isResend: boolean },
): Promise<{ expiresIn: number }> {
  context.operation = isResend ? 'resend' : 'send'
  const appId = await authenticate(ports, context, body)
  const brand = await approvedBrand(ports.brands, context, body)
  const to = readAddressee(ports, context, body)
  const order = judged(() => readOrder(body, brand, to))
  const global = globalLimit(ports.limits, appId)
  const limits = to ? limitsOf(ports, brand, to) : []
  if (order instanceof Failure) {
    // An invalid request counts only on the global limit, but any limit may reject it.
    await claim(ports, context, [...limits.map((limit) => ({ ...limit, counted: false })), global])
    throw order
  }

  // The code is active from here on: a concurrent verify succeeds (design D15).
  const { code, record } = newCode(ports, brand, order)
  const claims = [...limits, global]
  const decision = await ports.store.beginSend(claims, record, ports.now())
  const { grants, lastProvider } = granted(context, claims, decision)
  ports.eventLog.note(context)
  const outcome = await deliver(ports, context, brand, order, { code, avoid: isResend ? lastProvider : null })
  const cooldown = cooldownOf(grants, brand.slug)
  const possiblySent = context.attempts.filter(mayBeSent)
  const last = possiblySent.at(-1)
  const provider = last?.provider ?? lastProvider
  if (outcome.kind !== 'accepted') {
    // The global limit counts calls, so it is not given back. The others count codes that may have been sent.
    const unused = grants.filter(
      (grant) => grant === cooldown || (possiblySent.length === 0 && grant.subject[0] !== global.subject[0]),
    )
    await ports.store.abandonSend(record, unused, provider, ports.now())
    await countFurther(ports, limits, possiblySent.length)
    throw new Failure('sms_failed')
  }
  try {
    const messageId = last && ports.conversionFeedback?.accepts(last.provider) ? last.providerMessageId : null
    if (provider !== null && (provider !== record.provider || messageId !== null))
      await ports.store.setProvider(record, provider, messageId, ports.now())
    await countFurther(ports, limits, possiblySent.length)
    await startCooldown(ports, cooldown)
  } catch (error) {
    // The code is sent, and the lease replaces the cooldown.
    context.fault = error
  }
  return { expiresIn: ports.otpTtlSeconds }
}

function mayBeSent({ outcome }: Attempt): boolean {
  return outcome === 'accepted' || outcome === 'unknown'
}

async function countFurther(
  { store, now }: SendOtpPorts,
  limits: readonly Claim[],
  possiblySent: number,
): Promise<void> {
  for (let time = 2; time <= possiblySent; time++) await store.admit(furtherAttempt(limits), now())
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

function readOrder(body: Body, brand: Brand, to: Addressee | undefined): Order {
  const channel = channelOf(body)
  if (channel === undefined) throw invalid('`channel` must be SMS or EMAIL.')
  const field = channel === 'SMS' ? 'phone' : 'email'
  if (!isGiven(body[field])) throw invalid(`\`${field}\` is required when \`channel\` is ${channel}.`)
  if (to === undefined) throw invalid(recipientProblem(field, body[field], channel))
  const loginId = brand.loginIdEnabled ? optionalWords('loginId', body.loginId, { max: 64 }) : undefined
  const businessName = optionalWords('businessName', body.businessName, { max: 40 })
  return { ...to, loginId, businessName }
}

function channelOf(body: Body): Channel | undefined {
  return isGiven(body.channel) ? parseChannel(body.channel) : 'SMS'
}

/** Spec 4.1, in order, before the global limit. */
function limitsOf(
  { limits, providerTimeoutMs }: SendOtpPorts,
  brand: Brand,
  { recipient, subject, mailboxSubject }: Addressee,
): Claim[] {
  return sendLimits(limits, {
    channel: recipient.channel,
    subject,
    mailboxSubject,
    brandSlug: brand.slug,
    leaseMs: Math.max(limits.smsCooldownSeconds * 1000, longestDeliveryMs(providerTimeoutMs) + leaseMarginMs),
  })
}

const cooldownToleranceMs = 500

const leaseMarginMs = 2000

function newCode(
  ports: SendOtpPorts,
  brand: Brand,
  { recipient: { channel, identity }, subject }: Addressee,
): { code: string; record: NewCode } {
  const { secrets, otpTtlSeconds } = ports
  const brandSlug = brand.slug
  const code = secrets.newCode()
  const id = secrets.newRecordId()
  const [keyedCode] = secrets.keyedCodes({ brandSlug, channel, identity }, code)
  const hash = secrets.saltedHash(id, keyedCode)
  const provider = channel === 'EMAIL' ? ports.mailer.name : firstProvider(ports, brand)
  return { code, record: { subject, brandSlug, id, hash, ttlMs: otpTtlSeconds * 1000, provider } }
}

/** The provider that a send usually tries first, so that `setProvider` is seldom needed. */
function firstProvider({ smsMode, smsRoutes, breakers }: SendOtpPorts, { dltEnabled }: Brand): string | null {
  const providers = routesOf(smsMode, dltEnabled).flatMap((route) => smsRoutes[route])
  return (providers.find(({ name }) => !breakers.isOpen(name)) ?? providers[0])?.name ?? null
}

function deliver(
  ports: SendOtpPorts,
  context: RequestContext,
  brand: Brand,
  order: Order,
  { code, avoid }: { code: string; avoid: string | null },
): Promise<Outcome> {
  const { recipient, subject } = order
  const businessName = order.businessName ?? brand.displayName
  const lifetimeSeconds = ports.otpTtlSeconds
  const { requestId } = context
  const { slug: brandSlug, displayName: brandName } = brand
  const to = recipient.identity
  if (recipient.channel === 'EMAIL') {
    const content = otpMail({ code, businessName, lifetimeSeconds })
    const about = { requestId, brandSlug, brandName, to, recipientSubject: subject[0], position: null }
    return deliverMail(ports, context, { ...about, template: loginOtp.key, ...content })
  }
  const { loginId } = order
  const render = (name: string) => renderOtp({ code, businessName: name, lifetimeSeconds, loginId })
  const plain = render(businessName)
  // The registered text contains the brand's name (design D31).
  const registered = order.businessName === undefined ? plain : render(brand.displayName)
  const { templateKey: key, text, variables } = registered
  const message: SmsMessage = {
    id: ports.secrets.newId(),
    requestId,
    brandSlug,
    brandName,
    to,
    position: null,
    subject: subject[0],
    text: boundText(plain.text, code, brand.domain, ports.segmentsOf),
    template: { key, text, variables, registration: registrationOf(brand, key) },
    validitySeconds: lifetimeSeconds,
    expectsFeedback: ports.conversionFeedback !== undefined,
  }
  return deliverSms(ports, context, message, { routes: routesOf(ports.smsMode, brand.dltEnabled), avoid })
}
