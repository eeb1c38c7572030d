import type { Breakers } from '../delivery/breaker.ts'
import { type Outgoing, orderedSteps } from '../delivery/delivery.ts'
import { isScrubbed, smsWay, type WayPorts, waysOf } from '../delivery/way.ts'
import { type Body, isGiven, readReference } from '../ground/body.ts'
import { type Channel, type Contacts, mailboxOf, parseChannel, type Recipient } from '../ground/contact.ts'
import { invalidField } from '../ground/failures.ts'
import { readLang } from '../ground/languages.ts'
import type { Secrets } from '../ground/ports.ts'
import type { Mailer, PhoneWay, Segments } from '../ground/providers.ts'
import type { Clock } from '../ground/time.ts'
import { type IsTopLevelDomain, optionalWords } from '../ground/words.ts'
import type { Effect } from '../limits/effects.ts'
import type { Subject } from '../limits/limits.ts'
import type { Policy } from '../policy/policy.ts'
import type { ReviewNumber } from '../policy/review-number.ts'
import { noteRecipient, type RequestContext } from '../request/request-context.ts'
import type { BrandWithTexts } from '../texts/brand.ts'
import { mailOf, otpMail } from '../texts/emails.ts'
import { otpSms, refuseLongValues, smsOf } from '../texts/sms.ts'
import { type NamedByOtp, otpTemplateOf } from '../texts/templates.ts'
import { type Binding, boundHash, isBound, readBinding } from './binding.ts'
import type { GuardedCode } from './guarded.ts'
import type { Ladder } from './ladder.ts'
import type { Ladders } from './ladders.ts'
import type { NewCode } from './store.ts'

// What a send asks for: its fields (spec 4.1), and the new code in its message.

export interface OrderPorts extends WayPorts {
  readonly secrets: Secrets
  readonly contacts: Contacts
  readonly now: Clock
  readonly mailer: Mailer
  readonly breakers: Breakers
  readonly segmentsOf: (text: string) => Segments
  readonly isTopLevelDomain: IsTopLevelDomain
  readonly otpTtlSeconds: number
  readonly ladder: Ladder
  /** Undefined: LADDER names one way. */
  readonly ladders?: Pick<Ladders, 'begin'> | undefined
  /** Undefined: turned off. */
  readonly conversionFeedback: object | undefined
  /** The comparable form of an IP address. Undefined: not an IP address. */
  readonly ipIdentity: (text: string) => string | undefined
}

export interface Addressee extends Recipient {
  readonly subject: Subject
  /** Of an e-mail, the hashed mailbox. */
  readonly mailbox: Subject
}

/** What a relay does otherwise (design D53). */
export interface Relayed {
  /** Of the caller, which verifies it. Undefined: otpost makes it. */
  readonly code?: string | undefined
  /** Of the caller, with the placeholder `{{code}}`. Undefined: the brand's. */
  readonly text?: string | undefined
  /** The caller does not report which codes are verified. */
  readonly isUnreported: boolean
  /** What it stores with a code that otpost makes. */
  readonly keep?: (code: NewCode, to: string) => readonly Effect[]
}

export interface Order {
  readonly code: NewCode
  /** Undefined: the code of a review number, which is not sent. */
  readonly message?: Outgoing
  /** Undefined: it has no further way. */
  readonly ladder?: ReturnType<Ladders['begin']> | undefined
  /** Undefined: an e-mail, or a review number. */
  readonly guarded?: GuardedCode
  readonly review?: ReviewNumber
}

/** Undefined: no usable recipient. */
export function readAddressee(
  { secrets, contacts }: OrderPorts,
  context: RequestContext,
  body: Body,
): Addressee | undefined {
  const channel = channelOf(body)
  const recipient = channel && (channel === 'SMS' ? contacts.phone(body.phone) : contacts.email(body.email))
  if (!recipient) return undefined
  const subject = secrets.subjects(recipient.channel, recipient.to)
  noteRecipient(context, recipient)
  context.recipientHash = subject[0]
  const mailbox = channel === 'SMS' ? subject : secrets.subjects('mailbox', mailboxOf(recipient))
  return { ...recipient, subject, mailbox }
}

interface By {
  readonly brand: BrandWithTexts
  readonly relayed?: Relayed | undefined
  readonly policy: Policy
  /** As `readAddressee` returns it. */
  readonly addressee: Addressee | undefined
  /** Whether `businessName` is the name of a brand that is not `brandId`. */
  readonly isOtherName: boolean
}

/** @throws validation_error */
export function readOrder(ports: OrderPorts, context: RequestContext, body: Body, by: By): Order {
  const { brand, addressee, isOtherName } = by
  const channel = channelOf(body)
  if (channel === undefined) throw invalidField('channel', 'must be SMS or EMAIL.')
  const field = channel === 'SMS' ? 'phone' : 'email'
  if (!isGiven(body[field])) throw invalidField(field, `is required when \`channel\` is ${channel}.`)
  if (addressee === undefined) throw invalidField(field, ports.contacts.faultOf(body[field], channel))
  const givenLoginId = optionalWords('loginId', body.loginId, { max: 64 })
  const businessName = optionalWords('businessName', body.businessName, { max: 40 })
  if (isOtherName) throw invalidField('businessName', 'is the name of a brand that is not `brandId`.')
  context.reference = readReference(body)
  const client = readClient(ports, body)
  const binding = readBinding(body, ports.isTopLevelDomain)
  const { transaction } = binding
  const named = transaction ? { transaction } : { loginId: brand.loginIdEnabled ? givenLoginId : undefined }
  const text = { named, businessName, lang: readLang(body), binding }
  const via = by.relayed ? 'sms' : readVia(ports, context, body, channel, binding)
  return channel === 'SMS'
    ? smsOrder(ports, context, by, { addressee, field, client, text, via })
    : mailOrder(ports, context, by, { addressee, client, text })
}

/** Undefined: it is left out. @throws validation_error */
function readVia(
  { phoneRoutes }: OrderPorts,
  { operation }: RequestContext,
  { via }: Body,
  channel: Channel,
  { transaction }: Binding,
): PhoneWay | undefined {
  // The messages of other ways name no transaction.
  if (!isGiven(via)) return transaction && 'sms'
  if (operation !== 'resend') throw invalidField('via', 'is a field of /otp/resend only.')
  if (channel === 'EMAIL') throw invalidField('via', 'is for `channel` SMS only.')
  const ways = waysOf(phoneRoutes)
  const way = ways.find((each) => each === via)
  if (!way) throw invalidField('via', `must be a way that this server has: ${ways.join(', ')}.`)
  if (transaction && way !== 'sms') throw invalidField('via', 'must be sms with `transaction`.')
  return way
}

/** What the caller chooses of the text. */
interface TextChoice {
  readonly named: NamedByOtp
  readonly businessName: string | undefined
  /** As `readLang` returns it. */
  readonly lang: string | undefined
  readonly binding: Binding
}

function smsOrder(
  ports: OrderPorts,
  context: RequestContext,
  by: By,
  {
    addressee,
    field,
    client,
    text,
    via,
  }: { addressee: Addressee; field: string; client: EndUser; text: TextChoice; via: PhoneWay | undefined },
): Order {
  const { brand, policy, relayed } = by
  const isTemplate = relayed?.text === undefined
  const about = { field, brand, policy, isTemplate, way: via ?? ports.ladder.ways[0] }
  const way = smsWay(ports, context, addressee, about)
  const ladders = via === undefined ? ports.ladders : undefined
  const bySms = ladders ? smsWay(ports, context, addressee, { ...about, way: 'sms' }) : way
  const { named, businessName = brand.displayName, lang, binding } = text
  if (isScrubbed(bySms, brand)) refuseLongValues(brand, named, lang)
  const { to, subject } = addressee
  const review = relayed ? undefined : policy.reviewNumberOf(subject, brand.slug, ports.now())
  const { otp, code } = newCode(ports, context, by, addressee, { review, binding })
  if (review) return { review, code }
  const { segmentsOf, otpTtlSeconds: lifetimeSeconds } = ports
  const isRegistered = bySms.providers.some(({ route }) => route === 'template')
  const values = { code: otp, businessName, lifetimeSeconds, ...named }
  const content =
    relayed?.text === undefined
      ? otpSms(brand, values, lang, { segmentsOf, isRegistered })
      : { text: relayed.text.replaceAll('{{code}}', otp), code: otp, template: null }
  const message = smsOf(ports, brand, content, way, {
    ...sendingOf(context, addressee),
    validitySeconds: lifetimeSeconds,
    expectsFeedback: ports.conversionFeedback !== undefined,
  })
  // The provider that is tried first, unless this is a resend, so that `setProvider` is seldom needed.
  const [first] = orderedSteps(ports, message.steps, null)
  const { country, isAllowed: isAllowedCountry } = way
  const { app = '', operation = 'send' } = context
  const waiting = { ...client, to, app, brand: brand.slug, operation, content }
  return {
    code: { ...code, provider: first?.provider.name ?? null },
    message,
    ladder: ladders?.begin(context, subject[0], waiting),
    guarded: {
      ...client,
      ...{ subject, recipient: subject[0], phone: { to, country, isAllowedCountry } },
      ...(relayed?.isUnreported && { isUnreported: true }),
    },
  }
}

function mailOrder(
  ports: OrderPorts,
  context: RequestContext,
  by: By,
  {
    addressee,
    client,
    text: { named, businessName, lang, binding },
  }: { addressee: Addressee; client: EndUser; text: TextChoice },
): Order {
  const { brand, relayed } = by
  const { otp, code } = newCode(ports, context, by, addressee, { binding })
  // The page of the link knows neither the code of a relay nor what a code is for.
  const to = relayed || isBound(binding) ? undefined : addressee.to
  const values = { code: otp, businessName, lifetimeSeconds: ports.otpTtlSeconds, ...named, to }
  const message = mailOf(brand, otpMail(brand, values, lang), {
    ...sendingOf(context, addressee),
    template: otpTemplateOf(named).key,
  })
  const { subject } = addressee
  const isGuarded = client.ip !== null || client.device !== null
  return {
    code: { ...code, provider: ports.mailer.name },
    message,
    ...(isGuarded && { guarded: { ...client, subject, recipient: subject[0], phone: null } }),
  }
}

function sendingOf({ requestId }: RequestContext, { to, subject }: Addressee) {
  return { requestId, to, recipientHash: subject[0], position: null }
}

/** Without its provider. @param review has a fixed one */
function newCode(
  { secrets, otpTtlSeconds, ladders }: OrderPorts,
  { requestId: id }: RequestContext,
  { brand: { slug: brandSlug }, relayed }: By,
  { channel, to, subject }: Addressee,
  { review, binding }: { readonly review?: ReviewNumber | undefined; readonly binding: Binding },
): { readonly otp: string; readonly code: NewCode } {
  const otp = relayed?.code ?? secrets.newCode()
  const keyedCode = review?.keyedCode ?? secrets.keyedCodes({ brandSlug, channel, to }, otp)[0]
  const hash = boundHash(secrets, id, keyedCode, binding)
  const hasLadders = ladders !== undefined
  return {
    otp,
    code: { subject, brandSlug, id, hash, ttlMs: otpTtlSeconds * 1000, provider: null, hasLadders },
  }
}

/** What the app says of the end user (design D41). */
type EndUser = Pick<GuardedCode, 'ip' | 'device' | 'isTrustedUser'>

function readClient({ secrets, ipIdentity }: OrderPorts, body: Body): EndUser {
  const { clientIp, deviceId, trustedUser } = body
  const identity = typeof clientIp === 'string' ? ipIdentity(clientIp) : undefined
  if (isGiven(clientIp) && identity === undefined)
    throw invalidField('clientIp', 'must be an IPv4 or IPv6 address.')
  const isDeviceId = typeof deviceId === 'string' && /^[!-~]{1,128}$/.test(deviceId)
  if (isGiven(deviceId) && !isDeviceId)
    throw invalidField('deviceId', 'must be 1 to 128 visible ASCII characters without spaces.')
  if (isGiven(trustedUser) && typeof trustedUser !== 'boolean')
    throw invalidField('trustedUser', 'must be true or false.')
  return {
    ip: identity === undefined ? null : secrets.subjects('ip', identity)[0],
    device: isDeviceId ? secrets.subjects('device', deviceId)[0] : null,
    isTrustedUser: trustedUser === true,
  }
}

function channelOf(body: Body): Channel | undefined {
  return isGiven(body.channel) ? parseChannel(body.channel) : 'SMS'
}
