import { judged } from '../body.ts'
import type { Brands, BrandWithTexts } from '../brands/brand.ts'
import { type Channel, type Contacts, mask, type Recipient } from '../contact.ts'
import type { DestinationPorts } from '../destinations/decide.ts'
import { newRequestContext, noteRecipient, type RequestContext } from '../events/request-context.ts'
import type { RequestEnded } from '../events/request-ended.ts'
import { Failure } from '../failures.ts'
import { type DeliveryPorts, deliverMail, type SmsMode } from '../messages/delivery.ts'
import {
  giveBackUnspent,
  isScrubbed,
  type MailContent,
  type SmsContent,
  sendSms,
  smsParts,
  smsWay,
} from '../messages/notify-message.ts'
import type { PreviewSettings } from '../messages/preview.ts'
import type { Outcome } from '../messages/providers.ts'
import { sampleMail, sampleSms } from '../messages/sample-message.ts'
import { Charge } from '../money/charge.ts'
import { claim } from '../otp/claims.ts'
import type { OtpStore } from '../otp/store.ts'
import type { ReadPolicy } from '../policy.ts'
import type { Secrets } from '../ports.ts'
import type { Actor } from './audit.ts'
import { OperatorError, type OperatorStore, requiredBrand } from './operator.ts'
import { tagOf } from './texts.ts'

/** A text as a request with these values would send it. */
export interface Sample {
  readonly key: string
  /** A BCP 47 tag. Undefined: the brand's language. */
  readonly lang?: string | undefined
  /** By variable. The others get samples. */
  readonly values?: Readonly<Record<string, string>> | undefined
}

export interface TextTestPorts extends DeliveryPorts, DestinationPorts, PreviewSettings {
  readonly operator: Pick<OperatorStore, 'note'>
  readonly brands: Pick<Brands, 'bySlug'>
  readonly store: Pick<OtpStore, 'admit' | 'giveBack'>
  readonly secrets: Pick<Secrets, 'newId' | 'subjects'>
  readonly contacts: Contacts
  readonly policy: ReadPolicy
  readonly smsMode: SmsMode
  readonly ended: (ended: RequestEnded) => void
}

export interface TextTest extends Sample {
  /** The slug. */
  readonly brand: string
  /** A phone number or an e-mail address. */
  readonly to: string
}

export interface TextTested {
  readonly requestId: string
  /** Masked. */
  readonly recipient: string
  readonly outcome: Outcome
  /** The last one that was tried. */
  readonly provider: string | undefined
}

type SampleMessage =
  | {
      readonly sms: SmsContent
      /** Why carriers would reject it on the registered route. */
      readonly tooLong: Failure | undefined
    }
  | { readonly mail: MailContent }

/** `text preview` (design D47). @throws OperatorError */
export function sampleMessage(
  brand: BrandWithTexts,
  channel: Channel,
  { key: templateKey, lang, values = {} }: Sample,
  settings: PreviewSettings,
): SampleMessage {
  const sample = { templateKey, lang: tagOf(lang, brand), values }
  const message = judged(() =>
    channel === 'SMS' ? sampleSms(brand, sample, settings) : { mail: sampleMail(brand, sample, settings) },
  )
  if (message instanceof Failure) throw new OperatorError(message.message)
  return message
}

/** In the delivery log. It has a colon, so it is no app's. */
const testAppId = 'otpost:test'

/**
 * `text send` (design D47). Destination rules and budgets apply as to `/notify`. Limits and the guard count codes, so they
 * do not apply.
 * @throws OperatorError
 */
export async function testText(ports: TextTestPorts, actor: Actor, test: TextTest): Promise<TextTested> {
  const brand = await requiredBrand(ports.brands, test.brand)
  const recipient = recipientIn(ports, test.to)
  const { channel, identity } = recipient
  const message = sampleMessage(brand, channel, test, ports)
  const { secrets, now, stopwatch } = ports
  const startedAt = stopwatch()
  const context = newRequestContext({ requestId: secrets.newId(), at: now(), clientIp: '' })
  const { requestId, at } = context
  context.operation = 'notify'
  context.app = testAppId
  context.brand = brand.slug
  context.recipients = 1
  context.recipientSubject = secrets.subjects(channel, identity)[0]
  noteRecipient(context, recipient)
  const audit = () =>
    ports.operator.note({
      at,
      actor,
      action: 'text.tested',
      target: brand.slug,
      details: {
        template: test.key,
        lang: tagOf(test.lang, brand),
        channel,
        recipient: mask(recipient),
        request: requestId,
      },
    })
  const ended = (status: number, failure?: Failure) => {
    const about = { context, method: 'TEST', route: undefined, status, failure, error: failure?.kind }
    ports.ended({ ...about, durationMs: stopwatch() - startedAt })
  }
  try {
    const order = { brand, recipient, templateKey: test.key, audit }
    const outcome = await deliver(ports, context, message, order)
    const failure = outcome.kind === 'accepted' ? undefined : new Failure('notification_failed')
    ended(failure ? 500 : 200, failure)
    return { requestId, recipient: mask(recipient), outcome, provider: context.attempts.at(-1)?.provider }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    ended(error.kind === 'rate_limited' ? 429 : 400, error)
    throw new OperatorError(error.message)
  }
}

/** @param order `audit` is called before a provider. @throws validation_error or rate_limited */
async function deliver(
  ports: TextTestPorts,
  context: RequestContext,
  message: SampleMessage,
  order: {
    readonly brand: BrandWithTexts
    readonly recipient: Recipient
    readonly templateKey: string
    readonly audit: () => Promise<void>
  },
): Promise<Outcome> {
  const { brand, recipient, templateKey, audit } = order
  const { requestId, recipientSubject: subject = '' } = context
  if ('mail' in message) {
    await audit()
    const about = { requestId, brandSlug: brand.slug, brandName: brand.displayName, template: templateKey }
    const to = { to: recipient.identity, recipientSubject: subject, position: null }
    return deliverMail(ports, context, { ...about, ...to, ...message.mail })
  }
  const { sms: content, tooLong } = message
  const policy = await ports.policy()
  const way = smsWay(ports, context, recipient, { field: 'to', brand, policy, content })
  if (tooLong && isScrubbed(way)) throw tooLong
  const charge = new Charge(policy, { app: testAppId, brand: brand.slug }, context, ports)
  const charging = charge.add(way.priced, way.steps)
  const grants = await claim(ports, context, charge.claims())
  try {
    await audit()
    const parts = smsParts(requestId, brand, content)
    return await sendSms(ports, context, { id: requestId, parts, way, subject, position: null }, charging)
  } finally {
    await giveBackUnspent(ports, context, charge.unspent(grants))
  }
}

function recipientIn({ contacts }: Pick<TextTestPorts, 'contacts'>, to: string): Recipient {
  const recipient = to.includes('@') ? contacts.email(to) : contacts.phone(to)
  if (recipient) return recipient
  throw new OperatorError('The recipient must be a phone number of 7 to 15 digits, or an e-mail address.')
}
