import { type DestinationPorts, decideDestination } from '../delivery/decide.ts'
import {
  type Charging,
  type DeliveryPorts,
  deliverMail,
  deliverSms,
  routingOf,
  type SmsMode,
  type Step,
  smsSteps,
  withoutProvider,
} from '../delivery/delivery.ts'
import type { Recipient } from '../ground/contact.ts'
import type { Outcome, SmsMessage } from '../ground/providers.ts'
import type { Clock } from '../ground/time.ts'
import type { Grant } from '../limits/limits.ts'
import type { PricedMessage } from '../money/charge.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Policy } from '../policy/policy.ts'
import type { RequestContext } from '../request/request-context.ts'
import { type Brand, registrationOf } from '../texts/brand.ts'
import type { MailContent, SmsContent } from '../texts/message-content.ts'

// How one message of /notify is sent. A request and the jobs of an asynchronous notification share it.

/** How an SMS goes to a recipient. */
export interface SmsWay {
  readonly senderId: string | null
  readonly priced: PricedMessage
  readonly steps: readonly Step[]
}

/** @throws validation_error if the destination is blocked; `field` names it in the message */
export function smsWay(
  ports: DestinationPorts & Pick<DeliveryPorts, 'smsRoutes' | 'segmentsOf'> & { readonly smsMode: SmsMode },
  context: RequestContext,
  recipient: Recipient,
  {
    field,
    brand,
    policy,
    content,
  }: {
    readonly field: string
    readonly brand: Pick<Brand, 'slug' | 'dltEnabled'>
    readonly policy: Policy
    readonly content: SmsContent
  },
): SmsWay {
  const { country, rule } = decideDestination(ports, context, recipient, { field, brand, policy })
  const about = {
    smsMode: ports.smsMode,
    isTemplate: content.template !== null,
    dltEnabled: brand.dltEnabled,
  }
  const steps = smsSteps(ports, content, routingOf(about, recipient.identity, rule))
  if (steps.length === 0) context.fault = withoutProvider(rule)
  return { senderId: rule?.sender ?? null, priced: { to: recipient.identity, country }, steps }
}

/** Whether carriers compare the SMS of a brand with DLT with the registered text. */
export function isScrubbed({ priced, steps }: SmsWay): boolean {
  return priced.country === 'IN' && steps.some(({ route }) => route === 'template')
}

/** What the SMS of a request have in common. */
export type SmsParts = ReturnType<typeof smsParts>

export function smsParts(requestId: string, brand: Brand, { text, lang, template }: SmsContent) {
  return {
    requestId,
    brandSlug: brand.slug,
    brandName: brand.displayName,
    text,
    lang,
    template: template && {
      ...template,
      registration: registrationOf(brand, template.registrationKey),
    },
    validitySeconds: null,
    expectsFeedback: false,
  }
}

export function sendSms(
  ports: DeliveryPorts,
  context: RequestContext,
  {
    parts,
    way,
    id,
    subject,
    position,
  }: { readonly parts: SmsParts; readonly way: SmsWay } & Pick<SmsMessage, 'id' | 'subject' | 'position'>,
  charging: Charging,
): Promise<Outcome> {
  const { priced, senderId, steps } = way
  const sms = { ...parts, ...priced, id, senderId, subject, position }
  return deliverSms(ports, context, sms, steps, { charging })
}

export function sendMail(
  ports: DeliveryPorts,
  context: RequestContext,
  {
    brand,
    content,
    to,
    subject,
    position,
  }: {
    readonly brand: Brand | undefined
    readonly content: MailContent
    /** An e-mail address. */
    readonly to: string
    /** Its hash. */
    readonly subject: string
    readonly position: number | null
  },
): Promise<Outcome> {
  const { slug: brandSlug = null, displayName: brandName = null } = brand ?? {}
  const about = { requestId: context.requestId, brandSlug, brandName, template: null, position }
  return deliverMail(ports, context, { ...about, ...content, to, recipientSubject: subject })
}

/** The messages are sent, so a fault of the store does not change the answer. */
export async function giveBackUnspent(
  { store, now }: { readonly store: Pick<OtpStore, 'giveBack'>; readonly now: Clock },
  context: RequestContext,
  unspent: readonly Grant[],
): Promise<void> {
  if (unspent.length === 0) return
  await store.giveBack(unspent, now()).catch((error: unknown) => {
    context.fault = error
  })
}
