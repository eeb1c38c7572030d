import { type DeliveryPorts, deliver } from '../delivery/delivery.ts'
import {
  isScrubbed,
  providersOf,
  type RoutedProvider,
  type SmsWay,
  smsWay,
  type WayPorts,
} from '../delivery/way.ts'
import type { Actor } from '../ground/audit.ts'
import { judged } from '../ground/body.ts'
import { type Channel, type Contacts, mask, type Recipient } from '../ground/contact.ts'
import { Failure } from '../ground/failures.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import { type Outcome, otherWays, smsRoutes } from '../ground/providers.ts'
import type { ClaimStore } from '../limits/claim-store.ts'
import { admitting, pass, settling } from '../limits/gates.ts'
import { calls, type LimitSettings } from '../limits/limits.ts'
import { providerHealth } from '../log/provider-health.ts'
import { Charge } from '../money/charge.ts'
import type { Policy, ReadPolicy } from '../policy/policy.ts'
import {
  newRequestContext,
  noteRecipient,
  type RequestContext,
  testAppId,
} from '../request/request-context.ts'
import type { RequestEnded } from '../request/request-ended.ts'
import type { Brand, Brands, BrandWithTexts } from '../texts/brand.ts'
import { type MailContent, mailOf, renderMail } from '../texts/emails.ts'
import type { PreviewSettings } from '../texts/preview.ts'
import { sampleMail, sampleSms } from '../texts/sample-message.ts'
import { type SmsContent, smsOf } from '../texts/sms.ts'
import { freshBrand, requiredBrand } from './brands.ts'
import type { OperatorStore } from './changes.ts'
import { asPublished, tagOf } from './texts.ts'

/** A text as a request with these values would send it. */
export interface Sample {
  readonly key: string
  /** A BCP 47 tag. Undefined: the brand's language. */
  readonly lang?: string | undefined
  /** By variable. The others get samples. */
  readonly values?: Readonly<Record<string, string>> | undefined
  /** The draft of the text, not the published one. */
  readonly isDraft?: boolean | undefined
}

interface TestPorts extends DeliveryPorts, WayPorts, PreviewSettings {
  readonly operator: Pick<OperatorStore, 'note'>
  readonly brands: Pick<Brands, 'bySlug'>
  readonly store: ClaimStore
  readonly secrets: Pick<Secrets, 'newRequestId' | 'subjects'>
  readonly contacts: Contacts
  readonly policy: ReadPolicy
  readonly limits: LimitSettings
  readonly ended: (ended: RequestEnded) => void
}

export interface TestSend extends Omit<Sample, 'key'> {
  /** Undefined: the text says that it is a test. */
  readonly key?: string | undefined
  /** A phone number or an e-mail address. */
  readonly to: string
  /** Its name. It alone is called, also while its circuit is open or it is paused. Undefined: as for `/notify`. */
  readonly provider?: string | undefined
  /** The slug. */
  readonly brand?: string | undefined
}

export interface TestSent {
  readonly requestId: string
  /** Masked. */
  readonly recipient: string
  readonly outcome: Outcome
  /** The last one that was tried. */
  readonly provider: string | undefined
}

/** For operators. */
export function testResult({ recipient, outcome, provider = 'no provider' }: TestSent): string {
  if (outcome.kind === 'accepted') return `Accepted by ${provider}: the test message to ${recipient}.`
  const reason = `(${provider}: ${outcome.reason})`
  return outcome.kind === 'unknown'
    ? `The test message to ${recipient} may or may not have been sent ${reason}.`
    : `The test message to ${recipient} was not accepted ${reason}.`
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
  published: BrandWithTexts,
  channel: Channel,
  { key: templateKey, lang, values = {}, isDraft }: Sample,
  settings: PreviewSettings,
): SampleMessage {
  const sample = { templateKey, lang: tagOf(lang, published), values }
  const brand = isDraft ? asPublished(published, { ...sample, channel }) : published
  const message = judged(() =>
    channel === 'SMS' ? sampleSms(brand, sample, settings) : { mail: sampleMail(brand, sample, settings) },
  )
  if (message instanceof Failure) throw new OperatorError(message.message)
  return message
}

/**
 * `test-send`. Destination rules, budgets and the calls per minute apply as to `/notify`. The other limits
 * and the guard count codes, so they do not apply.
 * @throws OperatorError
 */
export async function sendTest(ports: TestPorts, actor: Actor, test: TestSend): Promise<TestSent> {
  const brand = test.brand === undefined ? undefined : await requiredBrand(ports.brands, test.brand)
  const recipient = recipientIn(ports, test.to)
  const { channel, to } = recipient
  if (test.provider !== undefined) requireProvider(ports, test.provider, channel)
  const message = messageOf(brand, channel, test, ports)
  const { secrets, now, stopwatch } = ports
  const startedAt = stopwatch()
  const at = now()
  const context = newRequestContext({ requestId: secrets.newRequestId(at), at, clientIp: '' })
  const { requestId } = context
  context.operation = 'notify'
  context.app = testAppId
  if (brand) context.brand = brand.slug
  context.recipients = 1
  context.recipientHash = secrets.subjects(channel, to)[0]
  noteRecipient(context, recipient)
  const audit = () =>
    ports.operator.note({
      at,
      actor,
      action: 'message.tested',
      target: test.provider ?? brand?.slug ?? channel,
      details: {
        ...(test.provider !== undefined && { provider: test.provider }),
        ...(brand && { brand: brand.slug }),
        ...(brand && test.key !== undefined && { template: test.key, lang: tagOf(test.lang, brand) }),
        ...(test.isDraft && { draft: 'yes' }),
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
    const order = { brand, recipient, templateKey: test.key, provider: test.provider, audit }
    const outcome = await deliverTest(ports, context, message, order)
    const failure = outcome.kind === 'accepted' ? undefined : new Failure('notification_failed')
    ended(failure ? 500 : 200, failure)
    const tried = context.attempts.findLast((attempt) => attempt.outcome !== 'skipped')
    return { requestId, recipient: mask(recipient), outcome, provider: tried?.provider }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    ended(error.kind === 'rate_limited' ? 429 : 400, error)
    throw new OperatorError(error.message)
  }
}

/** @param order `audit` is called before a provider. @throws validation_error or rate_limited */
async function deliverTest(
  ports: TestPorts,
  context: RequestContext,
  content: SampleMessage,
  order: {
    readonly brand: BrandWithTexts | undefined
    readonly recipient: Recipient
    readonly templateKey: string | undefined
    readonly provider: string | undefined
    readonly audit: () => Promise<void>
  },
): Promise<Outcome> {
  const { brand, recipient, templateKey = null, audit } = order
  const { requestId, recipientHash = '' } = context
  const policy = await ports.policy()
  const addressed = { requestId, to: recipient.to, recipientHash, position: null }
  const message =
    'mail' in content
      ? mailOf(brand, content.mail, { ...addressed, template: templateKey })
      : smsOf(
          ports,
          brand ?? noBrand,
          content.sms,
          wayOf(ports, context, content, { ...order, policy }),
          addressed,
        )
  const app = { appId: testAppId, perMinute: null }
  const about = { app: testAppId, brand: message.brandSlug ?? '', of: 'notifications' } as const
  const charge = new Charge(policy, about, context, ports, [message])
  const { settle } = await pass(ports, context, [calls(ports.limits, app), charge], admitting(ports))
  return settling(context, settle, async () => {
    await audit()
    return deliver(ports, context, message, { charging: charge })
  })
}

/** As of a request, or by the chosen provider. */
function wayOf(
  ports: TestPorts,
  context: RequestContext,
  { sms, tooLong }: Extract<SampleMessage, { readonly sms: SmsContent }>,
  {
    brand = noBrand,
    recipient,
    provider,
    policy,
  }: {
    readonly brand: Brand | undefined
    readonly recipient: Recipient
    readonly provider: string | undefined
    readonly policy: Policy
  },
): SmsWay {
  const isTemplate = sms.template !== null
  const isCall = ports.phoneRoutes.voice?.some(({ name }) => name === provider)
  const about = { field: 'to', brand, policy, isTemplate, way: isCall ? ('voice' as const) : undefined }
  const routed = smsWay(ports, context, recipient, about)
  const way =
    provider === undefined
      ? routed
      : { ...routed, providers: [providerOf(ports, provider, sms, routed)], paused: [] }
  if (tooLong && isScrubbed(way, brand)) throw tooLong
  return way
}

/** Of SMS without a brand. */
const noBrand = { ...freshBrand(testAppId), displayName: 'otpost' }

function messageOf(
  brand: BrandWithTexts | undefined,
  channel: Channel,
  { key, lang, values, isDraft }: TestSend,
  settings: PreviewSettings,
): SampleMessage {
  if (key !== undefined) {
    if (brand) return sampleMessage(brand, channel, { key, lang, values, isDraft }, settings)
    throw new InvalidInput(`The template ${key} needs a brand, whose name and texts the message has.`)
  }
  if (lang !== undefined || Object.keys(values ?? {}).length > 0) {
    throw new InvalidInput(
      'A language and values need a template. The text of a test without one is in English.',
    )
  }
  const from = brand?.displayName ?? 'otpost'
  const text = `Test message from ${from}. An operator sent it to test the delivery. You do not need to do anything.`
  if (channel === 'SMS') return { sms: { text, template: null }, tooLong: undefined }
  const subject = `Test message from ${from}`
  return { mail: { subject, ...renderMail(subject, text, {}, { look: brand }) } }
}

function requireProvider(ports: TestPorts, name: string, channel: Channel): void {
  const all = providerHealth(ports)
  const own = all.filter((each) => each.name === name)
  const names = [...new Set(all.map((each) => each.name))].join(', ')
  if (own.length === 0) throw new OperatorError(`This server has no provider ${name}. It has ${names}.`)
  if (own.some((each) => each.channel === channel)) return
  const wanted =
    channel === 'SMS'
      ? 'e-mail. The recipient must be an e-mail address'
      : 'SMS. The recipient must be a phone number'
  throw new OperatorError(`The provider ${name} sends ${wanted}.`)
}

/** By the route that a request would take, if the provider has it. */
function providerOf(
  ports: TestPorts,
  name: string,
  { template, code }: SmsContent,
  way: SmsWay,
): RoutedProvider {
  const others = providersOf(ports, [
    ...(template ? smsRoutes : (['plain'] as const)),
    ...(code ? otherWays : []),
  ])
  const found = [...way.providers, ...way.paused, ...others].find(({ provider }) => provider.name === name)
  if (found) return found
  throw new OperatorError(
    `The provider ${name} sends only codes or registered templates. Choose a brand and a template, such as LOGIN_OTP.`,
  )
}

function recipientIn({ contacts }: Pick<TestPorts, 'contacts'>, to: string): Recipient {
  const recipient = contacts.phone(to) ?? contacts.email(to)
  if (recipient) return recipient
  throw new InvalidInput(`The recipient ${contacts.faultOf(to)}`)
}
