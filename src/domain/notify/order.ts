import type { Outgoing } from '../delivery/delivery.ts'
import { recipientIndex } from '../delivery/message-status.ts'
import { isScrubbed, smsWay, type WayPorts } from '../delivery/way.ts'
import { type Body, isGiven, isObject, readReference, text } from '../ground/body.ts'
import { type Channel, type Contacts, mask, parseChannel, type Recipient } from '../ground/contact.ts'
import { Failure, invalid, invalidField } from '../ground/failures.ts'
import { preferredTags, readLang } from '../ground/languages.ts'
import type { Secrets } from '../ground/ports.ts'
import type { Segments } from '../ground/providers.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import type { IsTopLevelDomain } from '../ground/words.ts'
import { once } from '../limits/gates.ts'
import { type AppScope, mayUseBrand } from '../limits/scope.ts'
import type { Policy } from '../policy/policy.ts'
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
import { type MailContent, mailOf, mailRoom, renderMail } from '../texts/emails.ts'
import { longestSms, notifySms, notifyTemplateOf } from '../texts/notify-texts.ts'
import { type SmsContent, smsOf } from '../texts/sms.ts'
import { notifyTemplateKeys, type Template, templateOf, templateVariables } from '../texts/templates.ts'
import { readExpiry } from './queue-body.ts'

// What a notification asks for: its brand and its fields (spec 4.4), and a message for each recipient.

export interface MessageOrderPorts extends WayPorts {
  readonly brands: Brands
  readonly contacts: Contacts
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly now: Clock
  readonly segmentsOf: (text: string) => Segments
  readonly textOf: (html: string, maxBytes: number) => string
  readonly isTopLevelDomain: IsTopLevelDomain
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

export interface MessageOrder {
  readonly channel: Channel
  readonly recipients: readonly MessageRecipient[]
  /** Null: text of the caller. */
  readonly templateKey: string | null
  /** Made when it is used: a request that a limit rejects costs no conversion of HTML. */
  readonly content: () => SmsContent | MailContent
  /** One for each recipient. */
  readonly messages: () => readonly Outgoing[]
  /** Undefined: synchronous. */
  readonly expiresAt: EpochMs | undefined
}

export interface MessageRecipient extends Recipient {
  readonly recipientHash: string
  /** In `to`, from 1. */
  readonly position: number
}

/** The brand of an SMS, which may use the template. */
export async function readSmsBrand(
  { brands }: MessageOrderPorts,
  context: RequestContext,
  body: Body,
  app: AppScope,
): Promise<BrandWithTexts> {
  context.channel = 'SMS'
  const brand = await notifyBrand(brands, context, body.brandId, variablesOf(body).businessName, app)
  refuseDisabledTemplate(body, brand)
  return brand
}

/** Mail needs no brand: a brandId that is unknown, inactive or not the app's is ignored. */
export async function readMailBrand(
  { brands }: MessageOrderPorts,
  { brandId }: Body,
  app: AppScope,
): Promise<Brand | undefined> {
  const slug = brandIdOf(brandId)
  const brand = slug === undefined ? undefined : await brands.bySlug(slug)
  return brand?.status === 'active' && mayUseBrand(app, brand.slug) ? brand : undefined
}

export function readSmsOrder(
  ports: MessageOrderPorts,
  context: RequestContext,
  body: Body,
  { brand, policy }: { readonly brand: BrandWithTexts; readonly policy: Policy },
): MessageOrder {
  const { to, ...fields } = readSms(body)
  const { reference, lang, expiresAt } = readCommon(body, ports.now())
  context.reference = reference
  const { businessName } = variablesOf(body)
  if ('message' in fields) {
    refuseOtherBusiness(businessName, brand)
    refuseNoText('variables.businessName', businessName)
  }
  const { content, tooLong } =
    'message' in fields
      ? { content: { text: fields.message, template: null }, tooLong: undefined }
      : templateSms(ports, context, to, { ...fields, lang }, brand)
  const recipients = recipientsOf(ports, context, to, 'SMS')
  const isTemplate = content.template !== null
  const ways = recipients.map((recipient) => {
    const field = `to[${recipient.position - 1}]`
    try {
      return { recipient, way: smsWay(ports, context, recipient, { field, brand, policy, isTemplate }) }
    } catch (error) {
      // The trace names the recipient that is blocked, not their number.
      noteOnly(context, recipient)
      throw error
    }
  })
  if (tooLong && ways.some(({ way }) => isScrubbed(way, brand))) throw tooLong
  if (recipients.length > 1) delete context.country
  return {
    channel: 'SMS',
    recipients,
    templateKey: content.template?.key ?? null,
    content: () => content,
    messages: once(() =>
      ways.map(({ recipient, way }) => smsOf(ports, brand, content, way, addressed(context, recipient))),
    ),
    expiresAt,
  }
}

export function readMailOrder(
  ports: MessageOrderPorts,
  context: RequestContext,
  body: Body,
  brand: Brand | undefined,
): MessageOrder {
  if (!isGiven(body.channel) || body.channel === '')
    throw invalidField('channel', 'is required: SMS or EMAIL.')
  if (parseChannel(body.channel) !== 'EMAIL') throw new Failure('invalid_channel')
  context.channel = 'EMAIL'
  const to = readTo(body.to)
  const { reference, lang, expiresAt } = readCommon(body, ports.now())
  const content = readMail(body, ports.textOf, brand, lang)
  context.reference = reference
  const recipients = recipientsOf(ports, context, to, 'EMAIL')
  if (brand) context.brand = brand.slug
  return {
    channel: 'EMAIL',
    recipients,
    templateKey: null,
    content,
    messages: once(() =>
      recipients.map((recipient) =>
        mailOf(brand, content(), { ...addressed(context, recipient), template: null }),
      ),
    ),
    expiresAt,
  }
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
  ports: MessageOrderPorts,
  context: RequestContext,
  to: readonly string[],
  { templateKey, variables, lang }: { templateKey: string; variables: Body; lang: string | undefined },
  brand: BrandWithTexts,
): ReturnType<typeof notifySms> {
  const template = notifyTemplate(templateKey, brand)
  const { businessName } = variables
  refuseOtherBusiness(businessName, brand)
  const values = templateVariables(template, variables, ports.isTopLevelDomain)
  refuseNoText('variables.businessName', businessName)
  try {
    return notifySms(brand, template, values, lang)
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    const recipients = recipientsOf(ports, context, to, 'SMS').map(
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
  textOf: MessageOrderPorts['textOf'],
  brand: Brand | undefined,
  lang: string | undefined,
): () => MailContent {
  refuseFields(body, smsFields, 'SMS')
  refuseOtp(body)
  const subject = text('subject', body.subject, { max: notifySizes.subject })
  const { html, template, data } = body
  if (isGiven(html) === isGiven(template)) throw invalid('Send exactly one of `html` and `template`.')
  if (isGiven(html)) {
    if (isGiven(data))
      throw invalidField('data', 'is only for `template`. Remove `data`, or replace `html` with `template`.')
    const source = text('html', html, { max: notifySizes.html, lines: 'html' })
    return once(() => ({ subject, html: source, text: textOf(source, mailRoom(source)) }))
  }
  if (isGiven(data) && !isObject(data)) throw invalidField('data', 'must be an object.')
  const source = text('template', template, { max: notifySizes.template, lines: 'many' })
  const [first] = preferredTags(lang, brand?.lang)
  const mail = renderMail(subject, source, isObject(data) ? data : {}, { look: brand, lang: first })
  return () => ({ subject, ...mail })
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

/** Duplicates after normalization become one recipient, at the first position (design D30). */
function recipientsOf(
  { contacts, secrets }: MessageOrderPorts,
  context: RequestContext,
  to: readonly string[],
  channel: Channel,
): readonly MessageRecipient[] {
  const known = new Map<string, MessageRecipient>()
  for (const [index, raw] of to.entries()) {
    const recipient = channel === 'SMS' ? contacts.phone(raw) : contacts.email(raw)
    if (!recipient) throw invalidField(`to[${index}]`, contacts.faultOf(raw, channel))
    if (known.has(recipient.to)) continue
    const [recipientHash] = secrets.subjects(channel, recipient.to)
    known.set(recipient.to, { ...recipient, recipientHash, position: index + 1 })
  }
  const all = [...known.values()]
  const [first] = all
  context.recipients = all.length
  if (first && all.length === 1) noteOnly(context, first)
  else context.addressees = all.map((each) => ({ position: each.position, masked: mask(each) }))
  return all
}

function noteOnly(context: RequestContext, recipient: MessageRecipient): void {
  context.recipients = 1
  context.recipient = mask(recipient)
  context.recipientHash = recipient.recipientHash
  delete context.addressees
}

/** What a message to this recipient has of its own. */
function addressed(
  { requestId, recipients }: RequestContext,
  { to, recipientHash, position }: MessageRecipient,
) {
  return { requestId, to, recipientHash, position: recipients === 1 ? null : position }
}

function excerpt(value: string): string {
  return value.length > 64 ? `${value.slice(0, 64)}…` : value
}

function variablesOf({ variables }: Body): Body {
  return isObject(variables) ? variables : {}
}
