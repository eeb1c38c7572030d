import { type Body, isGiven, isObject, judged, readReference, text } from '../body.ts'
import { type Brand, type Brands, brandIdOf, isNamed, notifyBrand, registrationOf } from '../brands/brand.ts'
import {
  type Channel,
  type Contacts,
  mask,
  parseChannel,
  type Recipient,
  recipientProblem,
} from '../contact.ts'
import { type DestinationPorts, decideDestination } from '../destinations/decide.ts'
import type { Effect } from '../effects.ts'
import { messageFailed } from '../events/message-events.ts'
import type { RequestContext } from '../events/request-context.ts'
import { Failure, failureMessages, invalid, type RecipientStatus } from '../failures.ts'
import { Charge } from '../money/charge.ts'
import { type AppScope, mayUseBrand } from '../operator/scope.ts'
import { claim } from '../otp/claims.ts'
import { authenticate, type CredentialPorts, permitted } from '../otp/credentials.ts'
import { type IdempotencyKey, type IdempotencyPorts, idempotencyKeyOf } from '../otp/idempotency-key.ts'
import { type Grant, globalLimit, type LimitSettings } from '../otp/limits.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Policy, ReadPolicy } from '../policy.ts'
import type { Secrets } from '../ports.ts'
import { dayMs } from '../time.ts'
import {
  type DeliveryPorts,
  deliverMail,
  deliverSms,
  longestDeliveryMs,
  routingOf,
  type SmsMode,
  smsSteps,
  withoutProvider,
} from './delivery.ts'
import { mailRoom, renderMail } from './emails.ts'
import { messageStatus, recipientIndex } from './message-status.ts'
import type { Mail, Outcome, SmsMessage } from './providers.ts'
import { notifyTemplateKeys, render, type Template, templateOf, templateVariables } from './templates.ts'
import type { IsTopLevelDomain } from './words.ts'

export interface NotifyPorts extends CredentialPorts, DeliveryPorts, DestinationPorts, IdempotencyPorts {
  readonly policy: ReadPolicy
  readonly brands: Brands
  readonly store: OtpStore
  readonly secrets: Secrets
  readonly limits: LimitSettings
  readonly smsMode: SmsMode
  readonly contacts: Contacts
  readonly textOf: (html: string, maxBytes: number) => string
  readonly isTopLevelDomain: IsTopLevelDomain
}

export interface Notified {
  readonly channel: Channel
  readonly templateKey?: string
}

/** Design D4 and D11, in characters and elements. */
export const notifySizes = { to: 100, message: 1600, subject: 255, html: 200_000, template: 10_000 } as const

/** Fields of one channel only (design D37). */
export const smsFields = ['message', 'templateKey', 'variables'] as const
export const mailFields = ['subject', 'html', 'template', 'data'] as const

/** Concurrent messages per request (design D12). */
const concurrency = 8

export function longestNotifyMs(providerTimeoutMs: number, recipients: number = notifySizes.to): number {
  return Math.ceil(recipients / concurrency) * longestDeliveryMs(providerTimeoutMs)
}

/** A transactional SMS or e-mail (spec 4.4), with the checks in the order of design 5. */
export function notify(ports: NotifyPorts, context: RequestContext, body: Body): Promise<Notified> {
  context.operation = 'notify'
  const key = idempotencyKeyOf<Notified>(ports, context, body, {
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
  key: IdempotencyKey<Notified> | undefined,
): Promise<Notified> {
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
    readonly key: IdempotencyKey<Notified> | undefined
  },
) => Promise<Notified>

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

  const { content, recipients } = order
  context.recipients = recipients.length
  const { slug: brandSlug, displayName: brandName } = brand
  const unlimited = { validitySeconds: null, expectsFeedback: false }
  const common = { requestId: context.requestId, brandSlug, brandName, ...unlimited, ...content }
  const charge = new Charge(policy, { app: app.appId, brand: brandSlug }, context, ports)
  const messages = recipients.map((to) => ({ ...to, charging: charge.add(to.priced, to.steps) }))
  const grants = await claim(ports, context, [global, ...charge.claims()], key)
  try {
    await deliverToAll(ports, context, 'SMS', policy, messages, (to, subject, position) => {
      const { senderId, priced, steps, charging } = to
      const sms = { ...common, ...priced, id: ports.secrets.newId(), senderId, subject, position }
      return deliverSms(ports, context, sms, steps, { charging })
    })
  } finally {
    await giveBackUnspent(ports, context, charge.unspent(grants))
  }
  return content.template ? { channel: 'SMS', templateKey: content.template.key } : { channel: 'SMS' }
}

function readSmsOrder(
  ports: NotifyPorts,
  context: RequestContext,
  body: Body,
  { brand, policy, variables }: { brand: Brand; policy: Policy; variables: Body },
) {
  const { to, ...fields } = readSms(body)
  context.reference = readReference(body)
  if ('message' in fields) refuseOtherBusiness(variables.businessName, brand)
  const content =
    'message' in fields ? { text: fields.message, template: null } : templateSms(ports, to, fields, brand)
  const about = {
    smsMode: ports.smsMode,
    isTemplate: content.template !== null,
    dltEnabled: brand.dltEnabled,
  }
  const recipients = recipientsOf(to, 'SMS', ports.contacts.phone).map(({ recipient, position }) => {
    const field = `to[${position - 1}]`
    const { country, rule } = decideDestination(ports, context, recipient, { field, brand, policy })
    const steps = smsSteps(ports, content, routingOf(about, rule))
    if (steps.length === 0) context.fault = withoutProvider(rule)
    const priced = { to: recipient.identity, country }
    return { recipient, position, senderId: rule?.sender ?? null, priced, steps }
  })
  if (recipients.length > 1) delete context.country
  return { content, recipients }
}

const notifyByMail: Handler = async (ports, context, body, { app, policy, key }) => {
  const kept = key && (await key.keptAnswer())
  if (kept) return kept.result
  await claim(ports, context, [globalLimit(ports.limits, app)], key)
  if (!isGiven(body.channel) || body.channel === '') throw invalid('`channel` is required: SMS or EMAIL.')
  if (parseChannel(body.channel) !== 'EMAIL') throw new Failure('invalid_channel')
  context.channel = 'EMAIL'
  const to = readTo(body.to)
  const content = readMail(body, ports.textOf)
  context.reference = readReference(body)
  const recipients = recipientsOf(to, 'EMAIL', ports.contacts.email)

  const brand = await senderBrand(ports.brands, body.brandId, app)
  if (brand) context.brand = brand.slug
  const { slug: brandSlug = null, displayName: brandName = null } = brand ?? {}
  const common = { requestId: context.requestId, brandSlug, brandName, template: null, ...content }
  await deliverToAll(
    ports,
    context,
    'EMAIL',
    policy,
    recipients,
    ({ recipient }, recipientSubject, position) =>
      deliverMail(ports, context, { ...common, to: recipient.identity, recipientSubject, position }),
  )
  return { channel: 'EMAIL' }
}

function refuseDisabledTemplate(body: Body, brand: Brand): void {
  if (isGiven(body.message) || typeof body.templateKey !== 'string') return
  const template = templateOf(body.templateKey)
  if (template?.audience === 'notify' && !brand.notifyTemplates.includes(template.key)) {
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
  if (isGiven(templateKey)) {
    if (typeof templateKey !== 'string' || templateKey === '')
      throw invalid('`templateKey` must be a non-empty string.')
    if (!isGiven(variables)) throw invalid('`variables` is required with `templateKey`.')
    if (!isObject(variables)) throw invalid('`variables` must be an object.')
    return { to, templateKey, variables }
  }
  if (!isGiven(message)) throw invalid('`message` is required, or `templateKey` with `variables`.')
  return { to, message: text('message', message, { max: notifySizes.message, lines: 'many' }) }
}

/** Spec 4.4 rules 5 to 7, in the order of design 5. */
function templateSms(
  { isTopLevelDomain, contacts }: NotifyPorts,
  to: readonly string[],
  content: { templateKey: string; variables: Body },
  brand: Brand,
): Pick<SmsMessage, 'text' | 'template'> {
  const template = notifyTemplate(content.templateKey)
  refuseOtherBusiness(content.variables.businessName, brand)
  const values = templateVariables(template, content.variables, isTopLevelDomain)
  const { businessName } = content.variables
  if (isGiven(businessName) && typeof businessName !== 'string') {
    throw invalid('`variables.businessName` must be a string.')
  }
  const { key } = template
  try {
    const { text, variables } = render(template, { ...values, businessName: brand.displayName })
    return { text, template: { key, text, variables, registration: registrationOf(brand, key) } }
  } catch (cause) {
    const recipients = recipientsOf(to, 'SMS', contacts.phone).map(
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

function notifyTemplate(templateKey: string): Template {
  const template = templateOf(templateKey)
  if (template?.audience === 'otp') throw new Failure('otp_template_not_supported')
  if (!template) {
    const known = notifyTemplateKeys.join(', ')
    throw new Failure(
      'invalid_template',
      `Unknown templateKey: ${excerpt(templateKey)}. The templates are ${known}.`,
    )
  }
  return template
}

function readMail(body: Body, textOf: NotifyPorts['textOf']): Pick<Mail, 'subject' | 'html' | 'text'> {
  refuseFields(body, smsFields, 'SMS')
  refuseOtp(body)
  const subject = text('subject', body.subject, { max: notifySizes.subject })
  const { html, template, data } = body
  if (isGiven(html) === isGiven(template)) throw invalid('Send exactly one of `html` and `template`.')
  if (isGiven(html)) {
    if (isGiven(data))
      throw invalid('`data` is only for `template`. Remove `data`, or replace `html` with `template`.')
    const source = text('html', html, { max: notifySizes.html, lines: 'html' })
    return { subject, html: source, text: textOf(source, mailRoom(source)) }
  }
  if (isGiven(data) && !isObject(data)) throw invalid('`data` must be an object.')
  const source = text('template', template, { max: notifySizes.template, lines: 'many' })
  return { subject, ...renderMail(subject, source, isObject(data) ? data : {}) }
}

function refuseFields(body: Body, names: readonly string[], channel: Channel): void {
  for (const name of names) {
    if (isGiven(body[name]))
      throw invalid(`\`${name}\` is only for channel ${channel}. Remove it, or change \`channel\`.`)
  }
}

function refuseOtp(body: Body): void {
  if (isGiven(body.otp)) throw invalid('`otp` is not accepted on /notify.')
}

function readTo(to: unknown): readonly string[] {
  if (!Array.isArray(to) || to.length === 0) throw invalid('`to` must be a non-empty array.')
  if (to.length > notifySizes.to) throw invalid(`\`to\` must have at most ${notifySizes.to} elements.`)
  if (!to.every((element) => typeof element === 'string')) {
    throw invalid('Each element of `to` must be a string.')
  }
  return to
}

interface Addressee {
  readonly recipient: Recipient
  readonly position: number
}

/** Duplicates after normalization become one recipient, at the first position (design D30). */
function recipientsOf(
  to: readonly string[],
  channel: Channel,
  normalize: (raw: string) => Recipient | undefined,
): Addressee[] {
  const byIdentity = new Map<string, Addressee>()
  for (const [index, raw] of to.entries()) {
    const recipient = normalize(raw)
    if (!recipient) throw invalid(recipientProblem(`to[${index}]`, raw, channel))
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

/** The messages are sent, so a fault of the store does not change the answer. */
async function giveBackUnspent(
  { store, now }: NotifyPorts,
  context: RequestContext,
  unspent: readonly Grant[],
): Promise<void> {
  if (unspent.length === 0) return
  await store.giveBack(unspent, now()).catch((error: unknown) => {
    context.fault = error
  })
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
  const subjectOf = ({ identity }: Recipient) => ports.secrets.subjects(channel, identity)[0]
  context.recipients = recipients.length
  const [first] = recipients
  const only = first && recipients.length === 1 ? first.recipient : undefined
  if (only) {
    context.recipient = mask(only)
    context.recipientSubject = subjectOf(only)
  } else {
    context.addressees = recipients.map(({ recipient, position }) => ({ position, masked: mask(recipient) }))
  }
  ports.eventLog.note(context)
  const hasWebhook = context.app !== undefined && policy.webhooks.has(context.app)
  // Events get the app and the recipients from the event log.
  if (hasWebhook) await ports.eventLog.flush()
  const waiting = recipients.values()
  const failed: (number | null)[] = []
  const work = async () => {
    for (const to of waiting) {
      const subject = context.recipientSubject ?? subjectOf(to.recipient)
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
    const event = messageFailed({ id: secrets.newEventId(at), at, requestId, position }, attempts)
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
