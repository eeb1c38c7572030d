import type { DestinationPorts } from '../delivery/decide.ts'
import { type DeliveryPorts, longestDeliveryMs, type SmsMode } from '../delivery/delivery.ts'
import { messageId } from '../delivery/delivery-reports.ts'
import { attemptsFailed } from '../delivery/message-events.ts'
import { messageStatus, recipientIndex } from '../delivery/message-status.ts'
import { type Body, isGiven, isObject, judged, readReference, text } from '../ground/body.ts'
import { type Channel, type Contacts, mask, parseChannel, type Recipient } from '../ground/contact.ts'
import { Failure, failureMessages, invalid, invalidField, type RecipientStatus } from '../ground/failures.ts'
import { preferredTags, readLang } from '../ground/languages.ts'
import type { Sealing, Secrets } from '../ground/ports.ts'
import type { Outcome } from '../ground/providers.ts'
import { dayMs, type EpochMs } from '../ground/time.ts'
import type { IsTopLevelDomain } from '../ground/words.ts'
import { claim, uncounted } from '../limits/claims.ts'
import { authenticate, type CredentialPorts, permitted } from '../limits/credentials.ts'
import type { Effect } from '../limits/effects.ts'
import { type IdempotencyKey, type IdempotencyPorts, idempotencyKeyOf } from '../limits/idempotency-key.ts'
import { type Claim, globalLimit, type LimitSettings } from '../limits/limits.ts'
import { type AppScope, mayUseBrand } from '../limits/scope.ts'
import { Charge } from '../money/charge.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Policy, ReadPolicy } from '../policy/policy.ts'
import type { RequestContext } from '../request/request-context.ts'
import {
  type Brand,
  type Brands,
  type BrandWithTexts,
  brandIdOf,
  isNamed,
  notifyBrand,
  ownTemplateKeys,
} from '../texts/brand.ts'
import { mailRoom, renderMail } from '../texts/emails.ts'
import type { MailContent, SmsContent } from '../texts/message-content.ts'
import { longestSms, notifySms, notifyTemplateOf } from '../texts/notify-texts.ts'
import { notifyTemplateKeys, type Template, templateOf, templateVariables } from '../texts/templates.ts'
import { giveBackUnspent, isScrubbed, sendMail, sendSms, smsParts, smsWay } from './notify-message.ts'
import type { JobQueue } from './queue.ts'
import { readExpiry } from './queue-body.ts'
import { sealedNotification } from './sealed-jobs.ts'

export interface NotifyPorts extends CredentialPorts, DeliveryPorts, DestinationPorts, IdempotencyPorts {
  readonly policy: ReadPolicy
  readonly brands: Brands
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly sealing: Sealing
  readonly limits: LimitSettings
  readonly smsMode: SmsMode
  readonly contacts: Contacts
  readonly textOf: (html: string, maxBytes: number) => string
  readonly isTopLevelDomain: IsTopLevelDomain
  readonly queue: JobQueue
}

export interface Notified {
  readonly channel: Channel
  readonly templateKey?: string
}

/** Of an asynchronous notification (design D46). */
export interface Accepted {
  readonly channel: Channel
  /** How many jobs were stored. */
  readonly recipients: number
}

/** Design D4 and D11, in characters and elements. */
export const notifySizes = {
  to: 100,
  message: longestSms,
  subject: 255,
  html: 200_000,
  template: 10_000,
} as const

/** Fields of one channel only (design D37). */
export const smsFields = ['message', 'templateKey', 'variables'] as const
export const mailFields = ['subject', 'html', 'template', 'data'] as const

/** Concurrent messages per request (design D12). */
const concurrency = 8

export function longestNotifyMs(providerTimeoutMs: number, recipients: number = notifySizes.to): number {
  return Math.ceil(recipients / concurrency) * longestDeliveryMs(providerTimeoutMs)
}

/** A transactional SMS or e-mail (spec 4.4), with the checks in the order of design 5. */
export function notify(
  ports: NotifyPorts,
  context: RequestContext,
  body: Body,
): Promise<Notified | Accepted> {
  context.operation = 'notify'
  const key = idempotencyKeyOf<Notified | Accepted>(ports, context, body, {
    windowMs: dayMs,
    longestMs: longestNotifyMs(ports.providerTimeoutMs),
    kept: ['notification_failed', 'internal_error'],
  })
  const notified = send(ports, context, body, key)
  return key ? key.ended(notified) : notified
}

async function send(
  ports: NotifyPorts,
  context: RequestContext,
  body: Body,
  key: IdempotencyKey<Notified | Accepted> | undefined,
): Promise<Notified | Accepted> {
  const appId = await authenticate(ports, context, body)
  const policy = await ports.policy()
  const by = { app: permitted(policy, appId, 'notify'), policy, key }
  return parseChannel(body.channel) === 'SMS'
    ? notifyBySms(ports, context, body, by)
    : notifyByMail(ports, context, body, by)
}

type Handler = (
  ports: NotifyPorts,
  context: RequestContext,
  body: Body,
  by: {
    readonly app: AppScope
    readonly policy: Policy
    readonly key: IdempotencyKey<Notified | Accepted> | undefined
  },
) => Promise<Notified | Accepted>

const notifyBySms: Handler = async (ports, context, body, { app, policy, key }) => {
  context.channel = 'SMS'
  const variables = isObject(body.variables) ? body.variables : {}
  const brand = await notifyBrand(ports.brands, context, body.brandId, variables.businessName, app)
  refuseDisabledTemplate(body, brand)
  const kept = key && (await key.keptAnswer())
  if (kept) return kept.result
  const global = globalLimit(ports.limits, app)
  const order = judged(() => readSmsOrder(ports, context, body, { brand, policy, variables }))
  if (order instanceof Failure) {
    await claim(ports, context, [global])
    throw order
  }

  const { content, recipients, expiresAt } = order
  const charge = new Charge(policy, { app: app.appId, brand: brand.slug }, context, ports)
  const messages = recipients.map((to) => ({ ...to, charging: charge.add(to.way.priced, to.way.steps) }))
  if (expiresAt !== undefined) {
    const claims = [global, ...uncounted(charge.claims())]
    return enqueue(ports, context, { channel: 'SMS', brand, content, recipients, expiresAt, claims }, key)
  }
  context.recipients = recipients.length
  const parts = smsParts(context.requestId, brand, content)
  const grants = await claim(ports, context, [global, ...charge.claims()], key)
  try {
    await deliverToAll(ports, context, 'SMS', policy, messages, ({ way, charging }, subject, position) =>
      sendSms(
        ports,
        context,
        { id: messageId(context.requestId, position), parts, way, subject, position },
        charging,
      ),
    )
  } finally {
    await giveBackUnspent(ports, context, charge.unspent(grants))
  }
  return content.template ? { channel: 'SMS', templateKey: content.template.key } : { channel: 'SMS' }
}

function readSmsOrder(
  ports: NotifyPorts,
  context: RequestContext,
  body: Body,
  { brand, policy, variables }: { brand: BrandWithTexts; policy: Policy; variables: Body },
) {
  const { to, ...fields } = readSms(body)
  const { reference, lang, expiresAt } = readCommon(body, ports.now())
  context.reference = reference
  if ('message' in fields) {
    refuseOtherBusiness(variables.businessName, brand)
    refuseNoText('variables.businessName', variables.businessName)
  }
  const { content, tooLong } =
    'message' in fields
      ? { content: { text: fields.message, template: null }, tooLong: undefined }
      : templateSms(ports, to, { ...fields, lang }, brand)
  const recipients = recipientsOf(to, 'SMS', ports.contacts).map(({ recipient, position }) => {
    const field = `to[${position - 1}]`
    return { recipient, position, way: smsWay(ports, context, recipient, { field, brand, policy, content }) }
  })
  if (tooLong && recipients.some(({ way }) => isScrubbed(way))) throw tooLong
  if (recipients.length > 1) delete context.country
  return { content, recipients, expiresAt }
}

const notifyByMail: Handler = async (ports, context, body, { app, policy, key }) => {
  const kept = key && (await key.keptAnswer())
  if (kept) return kept.result
  const global = globalLimit(ports.limits, app)
  // An asynchronous notification is stored with the claim. Any other request that the limit rejects is not read.
  const isRead = body.async === true
  if (!isRead) await claim(ports, context, [global], key)
  const brand = await senderBrand(ports.brands, body.brandId, app)
  const order = judged(() => readMailOrder(ports, context, body, brand))
  if (order instanceof Failure) {
    if (isRead) await claim(ports, context, [global])
    throw order
  }

  const { content, recipients, expiresAt } = order
  if (brand) context.brand = brand.slug
  if (expiresAt !== undefined) {
    const claims = [global]
    return enqueue(ports, context, { channel: 'EMAIL', brand, content, recipients, expiresAt, claims }, key)
  }
  await deliverToAll(ports, context, 'EMAIL', policy, recipients, ({ recipient }, subject, position) =>
    sendMail(ports, context, { brand, content, to: recipient.identity, subject, position }),
  )
  return { channel: 'EMAIL' }
}

function readMailOrder(ports: NotifyPorts, context: RequestContext, body: Body, brand: Brand | undefined) {
  if (!isGiven(body.channel) || body.channel === '')
    throw invalidField('channel', 'is required: SMS or EMAIL.')
  if (parseChannel(body.channel) !== 'EMAIL') throw new Failure('invalid_channel')
  context.channel = 'EMAIL'
  const to = readTo(body.to)
  const { reference, lang, expiresAt } = readCommon(body, ports.now())
  const content = readMail(body, ports.textOf, brand, lang)
  context.reference = reference
  return { content, recipients: recipientsOf(to, 'EMAIL', ports.contacts), expiresAt }
}

function refuseDisabledTemplate(body: Body, brand: BrandWithTexts): void {
  if (isGiven(body.message) || typeof body.templateKey !== 'string') return
  const template = notifyTemplateOf(brand, body.templateKey)
  if (template && !brand.notifyTemplates.includes(template.key)) {
    throw new Failure(
      'template_not_allowed',
      `Template not enabled for brand. The operator of this server can enable ${template.key}.`,
    )
  }
}

function readSms(
  body: Body,
): { to: readonly string[] } & ({ message: string } | { templateKey: string; variables: Body }) {
  const to = readTo(body.to)
  refuseFields(body, mailFields, 'EMAIL')
  refuseOtp(body)
  const { message, templateKey, variables } = body
  if (isGiven(message) && isGiven(templateKey))
    throw invalid('Send either `message` or `templateKey`, not both.')
  if (isGiven(variables) && !isObject(variables)) throw invalidField('variables', 'must be an object.')
  if (isGiven(templateKey)) {
    if (typeof templateKey !== 'string' || templateKey === '')
      throw invalidField('templateKey', 'must be a non-empty string.')
    if (!isObject(variables)) throw invalidField('variables', 'is required with `templateKey`.')
    return { to, templateKey, variables }
  }
  if (!isGiven(message)) throw invalidField('message', 'is required, or `templateKey` with `variables`.')
  return { to, message: text('message', message, { max: notifySizes.message, lines: 'many' }) }
}

/** Spec 4.4 rules 5 to 7, in the order of design 5. */
function templateSms(
  { isTopLevelDomain, contacts }: NotifyPorts,
  to: readonly string[],
  { templateKey, variables, lang }: { templateKey: string; variables: Body; lang: string | undefined },
  brand: BrandWithTexts,
): ReturnType<typeof notifySms> {
  const template = notifyTemplate(templateKey, brand)
  const { businessName } = variables
  refuseOtherBusiness(businessName, brand)
  const values = templateVariables(template, variables, isTopLevelDomain)
  refuseNoText('variables.businessName', businessName)
  try {
    return notifySms(brand, template, values, lang)
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    const recipients = recipientsOf(to, 'SMS', contacts).map(
      ({ position }) => ({ index: recipientIndex(position), status: 'failed' }) as const,
    )
    throw new Failure('notification_failed', undefined, { channel: 'SMS', recipients, cause })
  }
}

function refuseOtherBusiness(businessName: unknown, brand: Brand): void {
  if (typeof businessName !== 'string' || businessName.trim() === '' || isNamed(brand, businessName)) return
  throw new Failure(
    'unsupported_business',
    `Unsupported business: ${excerpt(businessName)}. It must name the same brand as \`brandId\`.`,
  )
}

function notifyTemplate(templateKey: string, brand: BrandWithTexts): Template {
  if (templateOf(templateKey)?.audience === 'otp') throw new Failure('otp_template_not_supported')
  const template = notifyTemplateOf(brand, templateKey)
  if (!template) {
    const known = [...notifyTemplateKeys, ...ownTemplateKeys(brand)].join(', ')
    throw new Failure(
      'invalid_template',
      `Unknown templateKey: ${excerpt(templateKey)}. The templates are ${known}.`,
    )
  }
  return template
}

function readMail(
  body: Body,
  textOf: NotifyPorts['textOf'],
  brand: Brand | undefined,
  lang: string | undefined,
): MailContent {
  refuseFields(body, smsFields, 'SMS')
  refuseOtp(body)
  const subject = text('subject', body.subject, { max: notifySizes.subject })
  const { html, template, data } = body
  if (isGiven(html) === isGiven(template)) throw invalid('Send exactly one of `html` and `template`.')
  if (isGiven(html)) {
    if (isGiven(data))
      throw invalidField('data', 'is only for `template`. Remove `data`, or replace `html` with `template`.')
    const source = text('html', html, { max: notifySizes.html, lines: 'html' })
    return { subject, html: source, text: textOf(source, mailRoom(source)) }
  }
  if (isGiven(data) && !isObject(data)) throw invalidField('data', 'must be an object.')
  const source = text('template', template, { max: notifySizes.template, lines: 'many' })
  const [first] = preferredTags(lang, brand?.lang)
  return { subject, ...renderMail(subject, source, isObject(data) ? data : {}, { look: brand, lang: first }) }
}

/** The optional fields of every mode. */
function readCommon(body: Body, now: EpochMs) {
  // The brand is already chosen: there, any other value counts as absent (design D7).
  refuseNoText('brandId', body.brandId)
  return { reference: readReference(body), lang: readLang(body), expiresAt: readExpiry(body, now) }
}

function refuseNoText(name: string, value: unknown): void {
  if (isGiven(value) && typeof value !== 'string') throw invalidField(name, 'must be a string.')
}

function refuseFields(body: Body, names: readonly string[], channel: Channel): void {
  for (const name of names) {
    if (isGiven(body[name]))
      throw invalidField(name, `is only for channel ${channel}. Remove it, or change \`channel\`.`)
  }
}

function refuseOtp(body: Body): void {
  if (isGiven(body.otp)) throw invalidField('otp', 'is not accepted on /notify.')
}

function readTo(to: unknown): readonly string[] {
  if (!Array.isArray(to) || to.length === 0) throw invalidField('to', 'must be a non-empty array.')
  if (to.length > notifySizes.to) throw invalidField('to', `must have at most ${notifySizes.to} elements.`)
  for (const [index, element] of to.entries()) {
    if (typeof element !== 'string') throw invalidField(`to[${index}]`, 'must be a string.')
  }
  return to
}

interface Addressee {
  readonly recipient: Recipient
  readonly position: number
}

/** Duplicates after normalization become one recipient, at the first position (design D30). */
function recipientsOf(to: readonly string[], channel: Channel, contacts: Contacts): Addressee[] {
  const normalize = channel === 'SMS' ? contacts.phone : contacts.email
  const byIdentity = new Map<string, Addressee>()
  for (const [index, raw] of to.entries()) {
    const recipient = normalize(raw)
    if (!recipient) throw invalidField(`to[${index}]`, contacts.faultOf(raw, channel))
    if (byIdentity.has(recipient.identity)) continue
    byIdentity.set(recipient.identity, { recipient, position: index + 1 })
  }
  return [...byIdentity.values()]
}

/** Mail needs no brand: a brandId that is unknown, inactive or not the app's is ignored. */
async function senderBrand(brands: Brands, brandId: unknown, app: AppScope): Promise<Brand | undefined> {
  const slug = brandIdOf(brandId)
  const brand = slug === undefined ? undefined : await brands.bySlug(slug)
  return brand?.status === 'active' && mayUseBrand(app, brand.slug) ? brand : undefined
}

interface NewOrder {
  readonly channel: Channel
  readonly brand: Brand | undefined
  readonly content: SmsContent | MailContent
  readonly recipients: readonly Addressee[]
  readonly expiresAt: EpochMs
  readonly claims: readonly Claim[]
}

/** Stores a job for each recipient with the claims (design D46). */
async function enqueue(
  ports: NotifyPorts,
  context: RequestContext,
  order: NewOrder,
  key: IdempotencyKey<Notified | Accepted> | undefined,
): Promise<Accepted> {
  const { channel, recipients } = order
  const accepted = { channel, recipients: recipients.length }
  const { app = '' } = context
  noteRecipients(ports, context, channel, recipients)
  key?.answerWithClaim(202, accepted)
  const claims = [...order.claims, await ports.queue.claimOf(app, recipients.length)]
  await claim(ports, context, claims, key, [queueEffect(ports, context, order)])
  ports.eventLog.note(context)
  // The request is in the event log before its first attempt.
  await ports.eventLog.flush()
  ports.queue.wake(app)
  return accepted
}

function queueEffect(
  ports: NotifyPorts,
  { requestId, app = '', reference }: RequestContext,
  { channel, brand, content, recipients, expiresAt }: NewOrder,
): Effect {
  const createdAt = ports.now()
  const brandSlug = brand?.slug ?? null
  const named = { brandSlug, reference: reference ?? null }
  const about = { requestId, appId: app, ...named, channel, createdAt, expiresAt }
  const jobs = recipients.map(({ recipient, position }) => ({
    requestId,
    appId: app,
    position,
    state: 'queued' as const,
    recipient: recipient.identity,
    recipientHash: subjectOf(ports, recipient),
    masked: mask(recipient),
    tries: 0,
    attempts: 0,
    dueAt: createdAt,
    owner: null,
    updatedAt: createdAt,
    reason: null,
  }))
  const order = { ...about, content: JSON.stringify(content) }
  return { kind: 'queue', ...sealedNotification(ports.sealing, { order, jobs }) }
}

function subjectOf({ secrets }: NotifyPorts, { channel, identity }: Recipient): string {
  return secrets.subjects(channel, identity)[0]
}

/** @returns the only recipient */
function noteRecipients(
  ports: NotifyPorts,
  context: RequestContext,
  channel: Channel,
  recipients: readonly Addressee[],
): Recipient | undefined {
  context.channel = channel
  context.recipients = recipients.length
  const [first] = recipients
  const only = first && recipients.length === 1 ? first.recipient : undefined
  if (only) {
    context.recipient = mask(only)
    context.recipientSubject = subjectOf(ports, only)
  } else {
    context.addressees = recipients.map(({ recipient, position }) => ({ position, masked: mask(recipient) }))
  }
  return only
}

/** Tries every recipient, then throws notification_failed if any failed (design D12). */
async function deliverToAll<To extends Addressee>(
  ports: NotifyPorts,
  context: RequestContext,
  channel: Channel,
  policy: Policy,
  recipients: readonly To[],
  deliver: (to: To, subject: string, position: number | null) => Promise<Outcome>,
): Promise<void> {
  const only = noteRecipients(ports, context, channel, recipients)
  ports.eventLog.note(context)
  const hasWebhook = context.app !== undefined && policy.webhooks.has(context.app)
  // Events get the app and the recipients from the event log.
  if (hasWebhook) await ports.eventLog.flush()
  const waiting = recipients.values()
  const failed: (number | null)[] = []
  const work = async () => {
    for (const to of waiting) {
      const subject = context.recipientSubject ?? subjectOf(ports, to.recipient)
      const position = only ? null : to.position
      const outcome = await deliver(to, subject, position)
      if (outcome.kind !== 'accepted') failed.push(position)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, recipients.length) }, work))
  if (failed.length === 0) return
  if (hasWebhook) await writeFailures(ports, context, failed)
  const which = recipients.length === 1 ? 'the message' : `${failed.length} of ${recipients.length} messages`
  const message = `${failureMessages.notification_failed} No provider accepted ${which}.`
  throw new Failure('notification_failed', message, { channel, recipients: statusesOf(context, recipients) })
}

function statusesOf(
  { attempts, at }: RequestContext,
  recipients: readonly Addressee[],
): readonly RecipientStatus[] {
  const of = Map.groupBy(attempts, ({ position }) => recipientIndex(position))
  const request = { state: 'failed', at } as const
  return recipients.map(({ position }) => {
    const index = recipientIndex(position)
    const { status } = messageStatus({ attempts: of.get(index) ?? [], job: null, request })
    return { index, status }
  })
}

/** `message.failed` for each of these recipients (design D45). A fault of the store does not change the answer. */
async function writeFailures(
  { store, eventLog, secrets, now }: NotifyPorts,
  context: RequestContext,
  positions: readonly (number | null)[],
): Promise<void> {
  const { requestId } = context
  const at = now()
  const effects = positions.map((position): Effect => {
    const attempts = context.attempts.filter((attempt) => attempt.position === position)
    const event = attemptsFailed({ id: secrets.newEventId(at), at, requestId, position }, attempts)
    return { kind: 'event', event }
  })
  // The masked recipients are in the attempts.
  await eventLog.flush()
  await store.giveBack([], at, effects).catch((error: unknown) => {
    context.fault = error
  })
}

function excerpt(value: string): string {
  return value.length > 64 ? `${value.slice(0, 64)}…` : value
}
