/** How an SMS goes: as free text, or as a registered template. */
export const smsRoutes = ['plain', 'template'] as const
export type SmsRoute = (typeof smsRoutes)[number]

/** Ways to a phone other than SMS (design D54). Each is a route of its own. */
export const otherWays = ['whatsapp', 'telegram', 'voice'] as const
export type OtherWay = (typeof otherWays)[number]
export const phoneWays = ['sms', ...otherWays] as const
export type PhoneWay = (typeof phoneWays)[number]

/** How a message reaches a phone. */
export type PhoneRoute = SmsRoute | OtherWay
export const phoneRouteNames: readonly PhoneRoute[] = [...smsRoutes, ...otherWays]

/** By route, in the order of the settings. An absent way is not set up. */
export type PhoneRoutes<Provider = SmsProvider> = Readonly<
  Record<SmsRoute, readonly Provider[]> & Partial<Record<OtherWay, readonly Provider[]>>
>

export function mapRoutes<From, To>(
  { plain, template, ...ways }: PhoneRoutes<From>,
  change: (providers: readonly From[], route: PhoneRoute) => readonly To[],
): PhoneRoutes<To> {
  const changed: Partial<Record<OtherWay, readonly To[]>> = {}
  for (const way of otherWays) {
    const providers = ways[way]
    if (providers) changed[way] = change(providers, way)
  }
  return { plain: change(plain, 'plain'), template: change(template, 'template'), ...changed }
}

export interface SmsMessage {
  readonly id: string
  readonly requestId: string
  readonly brandSlug: string
  readonly brandName: string
  /** E.164 digits without `+`. */
  readonly to: string
  readonly recipientHash: string
  readonly text: string
  /** Of `text`. Absent: text of the caller. */
  readonly lang?: string | undefined
  /** As the request names it: tags in order. */
  readonly askedLang?: string | undefined
  /** Of the brand. */
  readonly brandLang?: string
  /** The digits of a one-time code. Null: a notification. */
  readonly code: string | null
  readonly template: {
    readonly key: string
    readonly text: string
    /** Of the registered text. */
    readonly lang: string
    /** As the caller sent them. */
    readonly variables: Readonly<Record<string, string>>
    /** By variable, as in the text. Absent: `variables`. */
    readonly values?: Readonly<Record<string, string>>
    readonly registration: Registration
  } | null
  /** ISO 3166-1. Null: a number of no country. */
  readonly country: string | null
  /** Of the destination. Null: the provider's default sender. */
  readonly senderId: string | null
  /** Null: unlimited. */
  readonly validitySeconds: number | null
  /** The provider gets conversion feedback if the recipient uses the message. */
  readonly expectsFeedback: boolean
  /** The recipient's number within the request, from 1. Null: the only recipient. */
  readonly position: number | null
}

export interface Registration {
  readonly id: string | null
  readonly ids: Readonly<Record<string, string>>
  /** Null: the provider's default sender. */
  readonly senderId: string | null
  /** The greatest length of a variable's value in the registered text, 30 to 40. Null: 30. */
  readonly maxLength: number | null
  /** The brand's principal entity ID. */
  readonly entityId: string | null
}

export interface Sms
  extends Pick<
    SmsMessage,
    'id' | 'requestId' | 'brandSlug' | 'brandName' | 'to' | 'expectsFeedback' | 'code' | 'askedLang'
  > {
  readonly route: PhoneRoute
  readonly text: string
  /** Of `text`. Undefined: text of the caller. */
  readonly lang?: string | undefined
  /** Not on the plain route. Providers that render use `id` and `values`, or `variables` without them; others use `id` and `entityId`. */
  readonly template: {
    readonly key: string
    readonly variables: Readonly<Record<string, string>>
    readonly values?: Readonly<Record<string, string>> | undefined
    readonly id: string | null
    readonly entityId: string | null
  } | null
  readonly senderId: string | null
  readonly validitySeconds: number | null
  readonly callbackUrl: string | null
}

/**
 * - `rejected`: a retry would not help, because of the recipient, the content or the account.
 * - `retryable`: not sent; another provider may succeed.
 * - `unknown`: may have been sent, as after a time-out.
 * `lang`: a BCP 47 tag, if the provider chose the language. `reason` has no secrets, text or recipient. `notCalled`: the provider was not called.
 */
export type Outcome =
  | { readonly kind: 'accepted'; readonly providerMessageId?: string; readonly lang?: string }
  | {
      readonly kind: 'rejected'
      readonly scope: RejectionScope
      readonly reason: string
      readonly notCalled?: true
    }
  | { readonly kind: 'retryable'; readonly reason: string; readonly notCalled?: true }
  | { readonly kind: 'unknown'; readonly reason: string; readonly providerMessageId?: string }

/** What became of a message to one recipient (design D44). */
export const messageStatuses = ['queued', 'accepted', 'delivered', 'failed', 'unknown'] as const
export type MessageStatus = (typeof messageStatuses)[number]

export type RejectionScope = 'recipient' | 'content' | 'account'

/** `send` and `reportConversion` resolve within `timeoutMs` and never throw. */
export interface SmsProvider {
  readonly name: string
  readonly endpoint?: string
  send(sms: Sms, timeoutMs: number): Promise<Outcome>
  /** Of a call, which speaks a text of its own. */
  languageOf?(message: Pick<SmsMessage, 'lang' | 'brandLang'>): string
  /** Reports that the recipient used a message with `expectsFeedback`. Undefined: the provider has no such call. */
  reportConversion?(providerMessageId: string, timeoutMs: number): Promise<Outcome>
  readonly deliveryReports?: DeliveryReportReader
  /** Its delivery reports name the message ID, and come from this process. */
  readonly reportsItself?: true
}

export interface DeliveryReportReader {
  /** `attempt`: each message has its own callback URL. `providerMessageId`: one URL for all messages. */
  readonly namedBy: 'attempt' | 'providerMessageId'
  /** @throws Failure `forbidden` for a wrong signature, `validation_error` for anything but a report */
  read(call: CallbackRequest): readonly DeliveryReport[]
  /** The response that the provider requires: JSON, or a string as plain text. Undefined: the usual envelope. */
  answer?(call: CallbackRequest, now: number): unknown
}

export interface CallbackRequest {
  /** As the provider called it: under PUBLIC_URL, with the query. */
  readonly url: string
  readonly fields: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
}

/** `pending`: any status that is not final. */
export interface DeliveryReport {
  readonly providerMessageId?: string
  readonly status: 'delivered' | 'failed' | 'pending'
  /** The provider's failure code, without text or recipient. */
  readonly reason: string | null
  /** The digits of the number, if the provider refunds the message. Only of a provider whose messages have their own callback URLs. */
  readonly refundedTo?: string
}

export interface Mail {
  readonly requestId: string
  readonly brandSlug: string | null
  readonly brandName: string | null
  readonly to: string
  readonly recipientHash: string
  readonly template: string | null
  readonly subject: string
  readonly html: string
  readonly text: string
  /** Absent: text of the caller. */
  readonly lang?: string | undefined
  readonly position: number | null
}

/** `send` resolves within `timeoutMs` and never throws. `attempt` counts within the request. */
export interface Mailer {
  readonly name: string
  /** Its connections. Undefined: it needs none. */
  readonly mostCalls?: number
  send(mail: Mail, attempt: number, timeoutMs: number): Promise<Outcome>
}

export interface Segments {
  readonly count: number
  readonly encoding: 'GSM-7' | 'UCS-2'
}
