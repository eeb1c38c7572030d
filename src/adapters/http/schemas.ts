import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { type FailureReason, failureReasons } from '../../domain/ground/failures.ts'
import { messageStatuses } from '../../domain/ground/providers.ts'
import type { EventType } from '../../domain/ground/webhook-events.ts'
import { requestSizes } from '../../domain/integration/integration.ts'
import { mailFields, notifySizes, smsFields } from '../../domain/notify/notify.ts'
import { variableTypes } from '../../domain/texts/brand-texts.ts'
import { notifyTemplates, type Template } from '../../domain/texts/templates.ts'
import type { VariableRule } from '../../domain/texts/variables.ts'

// For the API description only. The domain validates requests, since the order of its checks is part of the contract.
// Generators ignore `if`, `not` and `patternProperties`, so alternatives are unions of complete objects.

function oneOf<T extends readonly string[]>(values: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })
}

function eitherOf(names: readonly string[], options: object = {}) {
  return { anyOf: names.map(ref), ...options }
}

/** Generators do not support null in an enum, so null is then an alternative. */
function orNull<T extends TSchema>({ description: own, ...schema }: T, description = own) {
  const { type, ...rules } = schema
  return Type.Unsafe<Static<T> | null>({
    ...(schema.enum ? { anyOf: [schema, Type.Null()] } : { type: [type, 'null'].flat(), ...rules }),
    ...(description ? { description } : {}),
  })
}

/** Null counts as absent (design D27). */
function optional<T extends TSchema>(schema: T) {
  return Type.Optional(orNull(schema))
}

/** Fields of another channel or mode, which the endpoint rejects (design D37). */
function without<Name extends string>(...names: readonly Name[]) {
  const absent = Type.Optional(Type.Null({ description: 'Must be absent or null.' }))
  return Object.fromEntries(names.map((name) => [name, absent])) as Record<Name, typeof absent>
}

const requestId = Type.String({
  format: 'uuid',
  description: 'The id of this request, also in the header X-Request-Id and in the server log.',
})
const success = Type.Literal(true)
const displayed = Type.String({ description: 'Text for people. Its wording may change.' })
const channels = ['SMS', 'EMAIL'] as const
const channel = oneOf(channels)
/** With a character that is not a space. */
const notBlank = { minLength: 1, pattern: '\\S' }

/** Open: a later version may add fields (design D20). */
function answer<T extends Record<string, TSchema>>(fields: T, description: string) {
  return Type.Object({ ...fields, requestId }, { description })
}

function succeeded<T extends Record<string, TSchema>>(fields: T, description: string) {
  return answer({ success, ...fields }, description)
}

function confirmed<T extends Record<string, TSchema>>(fields: T, description: string) {
  return succeeded({ message: displayed, ...fields }, description)
}

const refPrefix = '#/components/schemas/'

// --- Requests -------------------------------------------------------------------------------------------------------

const credentials = {
  appId: Type.String({ minLength: 1, description: 'The id of your application.' }),
  apiKey: Type.String({
    minLength: 1,
    format: 'password',
    description: 'The API key of appId. Use it only on a server, never in a web page or a mobile app.',
  }),
}
const brandIdText = 'Slug of an active brand. Case and surrounding spaces are ignored.'
const brandId = Type.String({ ...notBlank, description: brandIdText })

function channelOf<Name extends (typeof channels)[number]>(name: Name) {
  return oneOf([name] as const, {
    description: `${name}. Case is ignored: ${name.toLowerCase()} is accepted too.`,
  })
}
const smsChannel = channelOf('SMS')
const emailChannel = channelOf('EMAIL')
const phone = Type.String({
  pattern: '^[ +().-]*([0-9][ +().-]*){7,20}$',
  description:
    'A phone number with country code. Allowed are digits, spaces and + - ( ) . characters. A leading 00 and a trunk ' +
    'prefix are removed; 7 to 15 digits must remain. A server with PHONE_DEFAULT_REGION also accepts national ' +
    'numbers, and rejects those that are a number of another country too. Send the country code with +.',
})
// Without lookarounds and classes of Unicode, which not all languages have.
const mailAtom = String.raw`[^\s@.()<>[\]:;,"\\]+`
const letterOrDigit = String.raw`[^\x00-\x2F\x3A-\x40\x5B-\x60\x7B-\x7F]+`
const domainLabel = `${letterOrDigit}(-+${letterOrDigit})*`
const email = Type.String({
  pattern: String.raw`^\s*${mailAtom}(\.${mailAtom})*@${domainLabel}(\.${domainLabel})*\.?\s*$`,
  description:
    'One e-mail address of at most 254 characters, with at most 64 octets before the @. Case, surrounding spaces ' +
    'and the spelling of an internationalized domain are ignored.',
})

const reference = Type.String({
  ...notBlank,
  maxLength: 64,
  description:
    'Your own id of this request, which the event log shows. No line breaks, no invisible characters.',
})

const codeText = {
  loginId: optional(
    Type.String({
      ...notBlank,
      maxLength: 64,
      description:
        'The login of the recipient. The message contains it if the brand has this enabled. The rules of businessName apply: no invisible characters, no URL, no mixed scripts.',
    }),
  ),
  businessName: optional(
    Type.String({
      ...notBlank,
      maxLength: 40,
      description:
        "Replaces the brand's display name in the message, except on the template route, whose registered text has the display name. No line breaks, no invisible characters, no URL other than a bare host name, and no word that mixes letters of several alphabets. An app that is limited to brands cannot use the name of another brand.",
    }),
  ),
  lang: langField(
    'the message',
    "On the template route, only the brand's language and languages with a registration count.",
  ),
  reference: optional(reference),
  clientIp: optional(
    Type.String({
      pattern: '^[0-9A-Fa-f:.]*[:.][0-9A-Fa-f:.]*$',
      description:
        "The IPv4 or IPv6 address of the end user's device, which the SMS pumping guard counts. Not the IP address of your server. otpost stores only its hash.",
    }),
  ),
}

const smsOtpSendRequest = Type.Object(
  {
    ...credentials,
    brandId,
    channel: Type.Optional(orNull(smsChannel, `${smsChannel.description} Absent or null: SMS.`)),
    phone,
    ...codeText,
  },
  { description: 'A code by SMS. A field email is ignored.' },
)

const emailOtpSendRequest = Type.Object(
  { ...credentials, brandId, channel: emailChannel, email, ...codeText },
  { description: 'A code by e-mail. A field phone is ignored.' },
)

const otp = Type.String({
  pattern: '^[0-9]{6}$',
  description: 'The code that the recipient entered: six digits.',
})

const phoneOtpVerifyRequest = Type.Object(
  { ...credentials, brandId, phone, otp, ...without('email') },
  { description: 'A code that was sent by SMS.' },
)

const emailOtpVerifyRequest = Type.Object(
  { ...credentials, brandId, email, otp, ...without('phone') },
  { description: 'A code that was sent by e-mail.' },
)

function recipients(recipient: TSchema) {
  return Type.Unsafe<string[]>(
    Type.Array(recipient, {
      minItems: 1,
      maxItems: notifySizes.to,
      description: `1 to ${notifySizes.to} recipients. A recipient that appears twice gets one message.`,
    }),
  )
}

const deferralFields = {
  async: optional(
    Type.Boolean({
      description:
        'true: the service stores the messages, answers 202, and sends them after that. It sends a message that was certainly not sent again until expiresAt.',
    }),
  ),
  expiresAt: optional(
    Type.String({
      pattern: String.raw`^\s*\d{4}-\d{2}-\d{2}[Tt]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?([Zz]|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)\s*$`,
      description:
        'Only with async: true. An ISO 8601 time with a time zone, at most 24 hours in the future. Absent: one hour from now. No try begins later.',
    }),
  ),
}

const deferral = Type.Union(
  [
    Type.Object({ async: Type.Literal(true) }),
    Type.Object({
      expiresAt: Type.Optional(Type.Null({ description: 'Must be absent or null without async.' })),
    }),
  ],
  { description: 'expiresAt requires async: true.' },
)

const lang = langField(
  'a template SMS',
  'Built-in texts are in English. Of an e-mail with `template`: the language that it is in.',
)

/** Any value, since none is an error (design D47). */
function langField(what: string, more: string) {
  return Type.Optional(
    Type.Unsafe<string | null>({
      anyOf: [{ type: 'string' }, { description: 'Any other value is ignored.' }],
      description: `The language of ${what}, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language header. The text is that of the tag, else of its base language, of the language of the brand, English. An unknown or malformed tag is no error. ${more}`,
    }),
  )
}

const sms = {
  ...credentials,
  channel: smsChannel,
  to: recipients(phone),
  reference: optional(reference),
  lang,
  brandId: optional(Type.String({ description: brandIdText })),
  ...deferralFields,
  ...without('otp', ...mailFields),
}

const mail = {
  ...credentials,
  channel: emailChannel,
  to: recipients(email),
  reference: optional(reference),
  lang,
  brandId: optional(
    Type.String({
      description: 'An active brand, whose name becomes the sender name. Any other value is ignored.',
    }),
  ),
  subject: Type.String({
    ...notBlank,
    maxLength: notifySizes.subject,
    description: 'No line breaks, no invisible characters.',
  }),
  ...deferralFields,
  ...without('otp', ...smsFields),
}

const businessNameText =
  'Slug or display name of an active brand. It selects the brand if brandId is absent. With brandId, it must be ' +
  'the same brand. The text has the display name in both cases.'
const businessName = Type.String({ description: businessNameText })

const smsBrand = Type.Union(
  [
    Type.Object({ brandId }),
    Type.Object({
      variables: Type.Object({ businessName: Type.String({ ...notBlank, description: businessNameText }) }),
    }),
  ],
  { description: 'brandId or variables.businessName selects the brand of an SMS.' },
)

const textSmsRequest = Type.Intersect(
  [
    Type.Object({
      ...sms,
      message: Type.String({
        ...notBlank,
        maxLength: notifySizes.message,
        description:
          'The text of the SMS. No invisible characters other than U+200C, U+200D and U+FE00 to U+FE0F.',
      }),
      variables: optional(
        Type.Object({ businessName: optional(businessName) }, { description: 'Only businessName is used.' }),
      ),
      ...without('templateKey'),
    }),
    ref('SmsBrand'),
    ref('Deferral'),
  ],
  { description: 'An SMS with free text. brandId or variables.businessName selects the brand.' },
)

const templateSmsRequest = templateSms([])

/** @param ownTemplates of the brands of a server; their union is closed, so that no other template is accepted */
function templateSms(ownTemplates: readonly Template[]) {
  return Type.Intersect(
    [
      Type.Object({ ...sms, ...without('message') }),
      Type.Unsafe<Static<ReturnType<typeof templateFields>>>({
        anyOf: [...notifyTemplates, ...ownTemplates].map(templateFields),
      }),
      ref('SmsBrand'),
      ref('Deferral'),
    ],
    {
      description: 'An SMS from a registered template. brandId or variables.businessName selects the brand.',
    },
  )
}

function templateFields({ key, variables }: Template) {
  const names = variables.map(({ name }) => name).join(', ') || 'no variables'
  return Type.Object({
    // Not `const`, which some generators ignore.
    templateKey: oneOf([key], { description: 'A template that the brand has enabled.' }),
    variables: Type.Object(
      {
        ...Object.fromEntries(variables.map((rule) => [rule.name, variable(rule)])),
        businessName: optional(businessName),
        ...without('otp'),
      },
      { description: `${key} requires ${names}. Other variables are ignored; otp is rejected.` },
    ),
  })
}

const htmlEmailRequest = Type.Intersect(
  [
    Type.Object({
      ...mail,
      html: Type.String({ ...notBlank, maxLength: notifySizes.html, description: 'The HTML of the e-mail.' }),
      ...without('template', 'data'),
    }),
    ref('Deferral'),
  ],
  { description: 'An e-mail with your own HTML.' },
)

const templateEmailRequest = Type.Intersect(
  [
    Type.Object({
      ...mail,
      template: Type.String({
        ...notBlank,
        maxLength: notifySizes.template,
        description:
          'Plain text. `{{name}}` is replaced by that value of data. The rendered e-mail must have at most 256 KiB.',
      }),
      data: optional(
        Type.Object(
          {},
          {
            additionalProperties: true,
            description: 'Values of the placeholders. Other values follow as a table below the text.',
          },
        ),
      ),
      ...without('html'),
    }),
    ref('Deferral'),
  ],
  { description: 'An e-mail from a text template, in a simple HTML frame with the subject as heading.' },
)

const messageStatusRequest = Type.Object(
  {
    ...credentials,
    messageRequestId: Type.String({
      minLength: 1,
      description: 'The requestId in the answer to a send, resend or notify of this application.',
    }),
  },
  { description: 'The request whose messages you ask about.' },
)

const integrationRequest = Type.Object(
  {
    companyName: Type.String({ ...notBlank, maxLength: requestSizes.companyName }),
    contactName: Type.String({ ...notBlank, maxLength: requestSizes.contactName }),
    contactEmail: email,
    brandName: Type.String({
      ...notBlank,
      maxLength: requestSizes.brandName,
      description: 'The display name for messages.',
    }),
    channels: optional(
      Type.Array(channel, {
        description: 'The channels that you want to use. Case is ignored.',
      }),
    ),
    website: optional(
      Type.String({
        pattern: '^[Hh][Tt]{2}[Pp][Ss]?://[^\\s/]+',
        maxLength: requestSizes.website,
        description: 'An http or https URL.',
      }),
    ),
    useCase: optional(
      Type.String({ ...notBlank, maxLength: requestSizes.useCase, description: 'What you want to send.' }),
    ),
  },
  { description: 'A request for access, with a contact and a brand.' },
)

function variable({
  type,
  pattern = type === 'text' ? notBlank.pattern : undefined,
  minLength,
  maxLength,
  max,
  description,
}: VariableRule): TSchema {
  const isNumber = type === 'number'
  const rules = { pattern, minLength, maxLength, ...(isNumber ? { maximum: max } : {}) }
  return Type.Unsafe({
    type: isNumber ? ['number', 'string'] : 'string',
    description: `${description[0]?.toUpperCase()}${description.slice(1)}.`,
    ...Object.fromEntries(Object.entries(rules).filter(([, rule]) => rule !== undefined)),
  })
}

// --- Answers --------------------------------------------------------------------------------------------------------

const otpSent = confirmed(
  {
    expiresIn: Type.Integer({ minimum: 1, description: 'Seconds until the code expires.' }),
  },
  'A provider accepted the new code.',
)

const otpVerified = confirmed({}, 'The code was correct and is consumed.')

const notified = confirmed(
  {
    channel,
    templateKey: Type.Optional(Type.String({ description: 'Only for a template SMS.' })),
  },
  'A provider accepted the message to each recipient.',
)

const notificationAccepted = confirmed(
  {
    channel,
    recipients: Type.Integer({ minimum: 1, description: 'How many messages are stored.' }),
  },
  'The messages are stored. POST /messages/status has their status.',
)

function health(state: 'ok' | 'unavailable', description: string) {
  return answer(
    {
      status: Type.Literal(state),
      version: Type.String({ description: 'The version of the service.' }),
      checks: Type.Object({ database: Type.Literal(state) }),
    },
    description,
  )
}

const path = Type.String({ description: 'A path of this server.' })
const root = succeeded(
  {
    service: Type.Literal('otpost'),
    version: Type.String({ description: 'The version of the service.' }),
    links: Type.Object({
      docs: path,
      openapi: path,
      health: path,
      outbox: Type.Optional({ ...path, description: 'Present if this server has an outbox.' }),
      admin: Type.Optional({ ...path, description: 'Present if the console is enabled.' }),
    }),
  },
  'The version and the links of this server.',
)

const isLive = answer({ status: Type.Literal('ok') }, 'The process is running.')
const isReady = answer({ status: Type.Literal('ready') }, 'The server accepts requests.')
const isNotReady = answer(
  {
    status: oneOf(['draining', 'unavailable'], {
      description:
        '`draining`: the server is stopping and still serves requests. `unavailable`: the database cannot be used.',
    }),
  },
  'Send requests to another server.',
)

const limit = (description: string, minimum = 1) => Type.Integer({ minimum, description })

const catalog = succeeded(
  {
    channels: Type.Array(channel, { uniqueItems: true }),
    templates: Type.Array(
      Type.Object({
        key: Type.String({ description: 'The templateKey.' }),
        channel: Type.Literal('SMS'),
        brandId: Type.Optional(
          Type.String({ description: 'The brand that has this template. Absent: the template is built in.' }),
        ),
        variables: Type.Array(
          Type.Object({
            name: Type.String(),
            required: Type.Boolean(),
            type: oneOf(variableTypes, {
              description:
                'A number is a JSON number or its digits as a string. All other values are strings.',
            }),
            description: Type.String({ description: 'The rule for a value, as text.' }),
            minLength: Type.Optional(Type.Integer({ minimum: 0 })),
            maxLength: Type.Optional(Type.Integer({ minimum: 1 })),
            pattern: Type.Optional(Type.String({ format: 'regex' })),
            max: Type.Optional(
              Type.Integer({
                minimum: 1,
                description:
                  "Only of a brand's own template: the greatest length of the value in the text; of a number, the greatest value.",
              }),
            ),
          }),
        ),
      }),
      {
        description:
          'The built-in templates of /notify, which the operator enables for each brand, and the enabled templates of the active brands.',
      },
    ),
    limits: Type.Object(
      {
        globalPerMinute: limit('Requests per minute for one application.'),
        phonePerMinute: limit('SMS codes per minute for one phone.'),
        phonePerHour: limit('SMS codes per hour for one phone.'),
        smsCooldownSeconds: limit('Seconds between two SMS codes for one brand and phone.', 0),
        emailPerHour: limit('Codes by e-mail per hour for one mailbox; 0 means no limit.', 0),
        otpTtlSeconds: limit('Seconds until a code expires.'),
        otpMaxAttempts: limit('Wrong attempts that lock a code.'),
        otpLength: limit('Digits of a code.'),
        notifyRecipients: limit('Maximum number of elements in to.'),
        messageCharacters: limit('Maximum length of message.'),
        subjectCharacters: limit('Maximum length of subject.'),
        htmlCharacters: limit('Maximum length of html.'),
        templateCharacters: limit('Maximum length of an e-mail template.'),
      },
      { description: 'The limits that this server enforces.' },
    ),
  },
  'The channels, templates and limits.',
)

const recipientIndex = Type.Integer({
  minimum: 0,
  description: 'The position of the recipient in to, from 0. A recipient that appears twice has the first.',
})

const messageStatus = confirmed(
  {
    request: Type.Object({
      requestId: Type.String({ format: 'uuid', description: 'The messageRequestId of the request.' }),
      operation: oneOf(['send', 'resend', 'notify']),
      channel,
      brandId: orNull(Type.String(), 'Null for an e-mail without a brand.'),
      createdAt: Type.String({ format: 'date-time' }),
      reference: orNull(Type.String(), 'The reference of the request; null without one.'),
    }),
    recipients: Type.Array(
      Type.Object({
        index: recipientIndex,
        to: Type.String({ description: 'The recipient, masked.' }),
        status: oneOf(messageStatuses, {
          description:
            '`queued`: not sent yet. `accepted`: a provider accepted the message. `delivered`: a provider ' +
            'reported the delivery. `failed`: not sent, or a provider reported a failure. `unknown`: it may or ' +
            'may not have been sent.',
        }),
        updatedAt: Type.String({ format: 'date-time', description: 'Since when it has this status.' }),
      }),
      { description: 'Every recipient, in the order of to.' },
    ),
  },
  'The status of each message of the request.',
)

const integrationReceived = confirmed(
  {
    integrationRequestId: Type.String({
      format: 'uuid',
      description: 'Give this id to the operator with a question.',
    }),
    status: Type.Literal('pending'),
  },
  'The request is stored. The operator answers by other means.',
)

const brands = succeeded(
  {
    brands: Type.Array(Type.Object({ brandId: Type.String(), displayName: Type.String() })),
  },
  'The active brands.',
)

const outboxMessage = Type.Object(
  {
    id: Type.Integer({ minimum: 1, description: 'Increases with each message.' }),
    createdAt: Type.String({ format: 'date-time' }),
    channel,
    to: Type.String({ description: 'The digits of a phone number, or an e-mail address.' }),
    route: orNull(oneOf(['plain', 'template']), 'The route of the SMS; null for an e-mail.'),
    brandId: orNull(Type.String(), 'Null for an e-mail without a brand.'),
    brandName: orNull(Type.String(), 'Null for an e-mail without a brand.'),
    subject: orNull(Type.String(), 'Null for an SMS.'),
    text: Type.String({ description: 'The SMS, or the plain text of the e-mail.' }),
    html: orNull(Type.String(), 'Null for an SMS.'),
    templateKey: orNull(Type.String(), 'Null except on the template route.'),
    variables: orNull(
      Type.Object({}, { additionalProperties: Type.String() }),
      'Null except on the template route.',
    ),
    requestId: Type.String({ format: 'uuid', description: 'The requestId of the request that sent it.' }),
  },
  { description: 'A message in the outbox.' },
)

const outboxMessages = succeeded(
  { messages: Type.Array(ref('OutboxMessage')) },
  'The messages, oldest first.',
)

// --- Events ---------------------------------------------------------------------------------------------------------

function event(type: EventType, status: TSchema, description: string) {
  return Type.Object(
    {
      type: Type.Literal(type),
      timestamp: Type.String({ format: 'date-time', description: 'When it happened.' }),
      data: Type.Object({
        requestId: Type.String({
          format: 'uuid',
          description:
            'The requestId of the send, resend or notify. For a code: of the request that sent it.',
        }),
        reference: orNull(Type.String(), 'The reference of that request. Null without one.'),
        brandId: orNull(Type.String(), 'Null for an e-mail without a brand.'),
        channel,
        to: Type.String({ description: 'The recipient, masked.' }),
        index: recipientIndex,
        status,
        reason: orNull(
          Type.String(),
          'With message.failed: the code of the provider, or why otpost did not send. Null if unknown.',
        ),
      }),
    },
    { description },
  )
}

const errorText = Type.String({ description: 'Text for people. Its wording may change: do not parse it.' })

export function errorSchema(codes: readonly string[]) {
  return answer(
    {
      success: Type.Literal(false),
      error: oneOf(codes, { description: 'The error code, for programs. Codes are stable.' }),
      message: errorText,
      reason: Type.Optional(
        oneOf(failureReasons, {
          description:
            'Which limit rejected the request (rate_limited), or why it is invalid (validation_error). Absent if none of them is the reason.',
        }),
      ),
      field: Type.Optional(
        Type.String({
          description:
            'With the reason field: the field at fault, as its path in the body, such as phone, variables.orderDate or to[3]. Elements count from 0.',
        }),
      ),
    },
    'The body of every error.',
  )
}

const notificationFailed = answer(
  {
    success: Type.Literal(false),
    error: Type.Literal('notification_failed'),
    message: errorText,
    channel,
    recipients: Type.Array(
      Type.Object({
        index: recipientIndex,
        status: oneOf(['accepted', 'failed', 'unknown'], {
          description: '`unknown`: the provider did not answer, and may or may not send the message.',
        }),
      }),
      { description: 'Every recipient, in the order of to.' },
    ),
  },
  'At least one message of a notification was not accepted by a provider.',
)

/** An error with one of these codes and, if it has a reason, one of these reasons. */
export function errorOf(codes: readonly string[], reasons: readonly FailureReason[] = []): object {
  const others = codes.filter((code) => code !== 'notification_failed')
  const reason = reasons.length === 0 ? {} : { reason: Type.Optional(oneOf(reasons)) }
  const plain = { allOf: [ref('Error'), Type.Object({ error: oneOf(others), ...reason })] }
  if (others.length === codes.length) return plain
  return others.length === 0 ? ref('NotificationFailed') : { anyOf: [ref('NotificationFailed'), plain] }
}

/** The schemas that the description names. */
const named = {
  OtpSendRequest: Type.Unsafe<Static<typeof smsOtpSendRequest> | Static<typeof emailOtpSendRequest>>(
    eitherOf(['SmsOtpSendRequest', 'EmailOtpSendRequest'], {
      description: 'The recipient of a code. SMS requires phone, EMAIL requires email.',
    }),
  ),
  SmsOtpSendRequest: smsOtpSendRequest,
  EmailOtpSendRequest: emailOtpSendRequest,
  OtpVerifyRequest: Type.Unsafe<Static<typeof phoneOtpVerifyRequest> | Static<typeof emailOtpVerifyRequest>>(
    eitherOf(['PhoneOtpVerifyRequest', 'EmailOtpVerifyRequest'], {
      description: 'A code to verify, with the phone or the email that it was sent to.',
    }),
  ),
  PhoneOtpVerifyRequest: phoneOtpVerifyRequest,
  EmailOtpVerifyRequest: emailOtpVerifyRequest,
  NotifyRequest: Type.Unsafe<unknown>(
    eitherOf(['TextSmsRequest', 'TemplateSmsRequest', 'HtmlEmailRequest', 'TemplateEmailRequest'], {
      description: 'A message to each of some recipients, in one of four modes.',
    }),
  ),
  TextSmsRequest: textSmsRequest,
  TemplateSmsRequest: templateSmsRequest,
  HtmlEmailRequest: htmlEmailRequest,
  TemplateEmailRequest: templateEmailRequest,
  SmsBrand: smsBrand,
  Deferral: deferral,
  MessageStatusRequest: messageStatusRequest,
  IntegrationRequest: integrationRequest,
  OtpSent: otpSent,
  OtpVerified: otpVerified,
  Notified: notified,
  NotificationAccepted: notificationAccepted,
  NotificationFailed: notificationFailed,
  MessageStatus: messageStatus,
  Health: health('ok', 'The service works.'),
  Unhealthy: health('unavailable', 'The database cannot be used, so no other request works.'),
  Root: root,
  Live: isLive,
  Ready: isReady,
  NotReady: isNotReady,
  Catalog: catalog,
  IntegrationReceived: integrationReceived,
  Brands: brands,
  OutboxMessages: outboxMessages,
  OutboxMessage: outboxMessage,
  MessageDeliveredEvent: event(
    'message.delivered',
    Type.Literal('delivered'),
    'A delivery report says that the message reached the recipient.',
  ),
  MessageFailedEvent: event(
    'message.failed',
    oneOf(['failed', 'unknown'], { description: '`unknown`: the message may have been sent.' }),
    'The message was not sent, or a delivery report says that it did not arrive.',
  ),
  OtpVerifiedEvent: event('otp.verified', Type.Null(), 'A code was verified.'),
  OtpLockedEvent: event('otp.locked', Type.Null(), 'The third wrong attempt locked a code.'),
} as const

export type SchemaName = keyof typeof named

export type Described = { [Name in SchemaName]: Static<(typeof named)[Name]> }

export const schemas: Readonly<Record<SchemaName, TSchema>> = titled(named)

/** The schemas of a server whose brands have these templates. */
export function schemasWith(ownTemplates: readonly Template[]): typeof schemas {
  return ownTemplates.length === 0
    ? schemas
    : { ...schemas, ...titled({ TemplateSmsRequest: templateSms(ownTemplates) }) }
}

/** The names of the fields at the top of a request, in all of its forms. */
export function fieldsOf(name: SchemaName): ReadonlySet<string> {
  const fields = ({ $ref, properties = {}, anyOf = [], allOf = [] }: TSchema): readonly string[] => [
    ...($ref === undefined ? [] : fields(schemas[$ref.slice(refPrefix.length) as SchemaName])),
    ...Object.keys(properties),
    ...[...anyOf, ...allOf].flatMap(fields),
  ]
  return new Set(fields(schemas[name]))
}

function titled<Name extends string>(schemas: Readonly<Record<Name, TSchema>>): Record<Name, TSchema> {
  const pairs = Object.entries<TSchema>(schemas).map(([name, schema]) => [name, { title: name, ...schema }])
  return Object.fromEntries(pairs)
}

export function ref(name: string) {
  return Type.Unsafe<unknown>({ $ref: `${refPrefix}${name}` })
}
