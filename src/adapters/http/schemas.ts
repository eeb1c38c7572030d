import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { requestSizes } from '../../domain/integration/integration.ts'
import { mailFields, notifySizes, smsFields } from '../../domain/messages/notify.ts'
import { notifyTemplateKeys, notifyTemplates, type VariableRule } from '../../domain/messages/templates.ts'

// For the API description only. The domain validates requests, since the order of its checks is part of the contract.

const closed = { additionalProperties: false } as const

function oneOf<T extends readonly string[]>(values: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })
}

function orNull(schema: TSchema, description: string) {
  return Type.Union([schema, Type.Null()], { description })
}

const requestId = Type.String({
  format: 'uuid',
  description: 'The id of this request, also in the header X-Request-Id and in the server log.',
})
const success = Type.Literal(true)
const displayed = Type.String({ description: 'Text for people. Its wording may change.' })
const channels = ['SMS', 'EMAIL'] as const
const channel = oneOf(channels)

function answer<T extends Record<string, TSchema>>(fields: T, description: string) {
  return Type.Object({ ...fields, requestId }, { ...closed, description })
}

function succeeded<T extends Record<string, TSchema>>(fields: T, description: string) {
  return answer({ success, ...fields }, description)
}

function confirmed<T extends Record<string, TSchema>>(fields: T, description: string) {
  return succeeded({ message: displayed, ...fields }, description)
}

// --- Requests -------------------------------------------------------------------------------------------------------

const credentials = {
  appId: Type.String({ minLength: 1, description: 'The id of your application.' }),
  apiKey: Type.String({
    minLength: 1,
    format: 'password',
    description: 'The API key of appId. Use it only on a server, never in a web page or a mobile app.',
  }),
}
const brandId = Type.String({
  minLength: 1,
  description: 'Slug of an active brand. Case and surrounding spaces are ignored.',
})
const chosenChannel = { description: 'SMS or EMAIL, in upper or lower case.' } as const
const phone = Type.String({
  pattern: '^[0-9 +().-]+$',
  description:
    'A phone number with country code. Allowed are digits, spaces and + - ( ) . characters. A leading 00 and a trunk ' +
    'prefix are removed; 7 to 15 digits must remain. A server with PHONE_DEFAULT_REGION also accepts national ' +
    'numbers. Digits that are a valid E.164 number are read as E.164.',
})
const email = Type.String({
  format: 'idn-email',
  description:
    'One e-mail address of at most 254 characters, with at most 64 octets before the @. Case, surrounding spaces ' +
    'and the spelling of an internationalized domain are ignored.',
})

const reference = Type.String({
  minLength: 1,
  maxLength: 64,
  description:
    'Your own id of this request, which the event log shows. No line breaks, no invisible characters.',
})

const otpSendRequest = Type.Object(
  {
    ...credentials,
    brandId,
    channel: Type.Optional(oneOf(channels, { ...chosenChannel, default: 'SMS' })),
    phone: Type.Optional(phone),
    email: Type.Optional(email),
    loginId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          'The login of the recipient. The message contains it if the brand has this enabled. The rules of businessName apply: no invisible characters, no URL, no mixed scripts.',
      }),
    ),
    businessName: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 40,
        description:
          "Replaces the brand's display name in the message, except on the template route, whose registered text has the display name. No line breaks, no invisible characters, no URL, and no word that mixes letters of several alphabets.",
      }),
    ),
    reference: Type.Optional(reference),
    clientIp: Type.Optional(
      Type.String({
        description:
          "The IPv4 or IPv6 address of the end user's device, which the SMS pumping guard counts. Not the IP address of your server. otpost stores only its hash.",
      }),
    ),
  },
  {
    description: 'The recipient of a code. SMS requires phone, EMAIL requires email.',
    if: { required: ['channel'], properties: { channel: { const: 'EMAIL' } } },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
    then: { required: ['email'] },
    else: { required: ['phone'] },
  },
)

const otpVerifyRequest = Type.Object(
  {
    ...credentials,
    brandId,
    phone: Type.Optional(phone),
    email: Type.Optional(email),
    otp: Type.String({
      pattern: '^[0-9]{6}$',
      description: 'The code that the recipient entered: six digits.',
    }),
  },
  {
    description: 'A code to verify, with the phone or the email that it was sent to.',
    oneOf: [{ required: ['phone'] }, { required: ['email'] }],
  },
)

function notifyCommon(only: 'SMS' | 'EMAIL', recipient: TSchema) {
  return {
    ...credentials,
    channel: oneOf([only], chosenChannel),
    to: Type.Array(recipient, {
      minItems: 1,
      maxItems: notifySizes.to,
      description: `1 to ${notifySizes.to} recipients. A recipient that appears twice gets one message.`,
    }),
    reference: Type.Optional(reference),
  }
}

function without(...names: string[]) {
  return { not: { anyOf: names.map((name) => ({ required: [name] })) } }
}

const subject = Type.String({
  minLength: 1,
  maxLength: notifySizes.subject,
  description: 'No line breaks, no invisible characters.',
})

const businessName = Type.String({
  minLength: 1,
  description:
    'Slug or display name of an active brand. It selects the brand if brandId is absent. With brandId, it must be ' +
    'the same brand. The text has the display name in both cases.',
})

/** brandId or variables.businessName names the brand of an SMS. */
const brandNamed = [
  { required: ['brandId'] },
  { required: ['variables'], properties: { variables: { type: 'object', required: ['businessName'] } } },
]

const textSmsRequest = Type.Object(
  {
    ...notifyCommon('SMS', phone),
    brandId: Type.Optional(brandId),
    message: Type.String({
      minLength: 1,
      maxLength: notifySizes.message,
      description:
        'The text of the SMS. No invisible characters other than U+200C, U+200D and U+FE00 to U+FE0F.',
    }),
    variables: Type.Optional(
      Type.Object(
        { businessName: Type.Optional(businessName) },
        { description: 'Only businessName is used.' },
      ),
    ),
  },
  {
    description: 'An SMS with free text. brandId or variables.businessName selects the brand.',
    ...without('templateKey', ...mailFields, 'otp'),
    anyOf: brandNamed,
  },
)

const templateSmsRequest = Type.Object(
  {
    ...notifyCommon('SMS', phone),
    brandId: Type.Optional(brandId),
    templateKey: oneOf(notifyTemplateKeys, { description: 'A template that the brand has enabled.' }),
    variables: Type.Object(
      {
        ...Object.fromEntries(
          notifyTemplates.flatMap(({ variables }) =>
            variables.map((rule) => [rule.name, Type.Optional(variable(rule))]),
          ),
        ),
        businessName: Type.Optional(businessName),
      },
      {
        description: `${requiredVariables()} Other variables are ignored; otp is rejected.`,
        ...without('otp'),
      },
    ),
  },
  {
    description: 'An SMS from a registered template. brandId or variables.businessName selects the brand.',
    ...without('message', ...mailFields, 'otp'),
    anyOf: brandNamed,
    allOf: notifyTemplates.map(({ key, variables }) => ({
      if: { properties: { templateKey: { const: key } } },
      // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
      then: { properties: { variables: { type: 'object', required: variables.map(({ name }) => name) } } },
    })),
  },
)

const htmlEmailRequest = Type.Object(
  {
    ...notifyCommon('EMAIL', email),
    brandId: Type.Optional(mailBrandId()),
    subject,
    html: Type.String({ minLength: 1, maxLength: notifySizes.html, description: 'The HTML of the e-mail.' }),
  },
  { description: 'An e-mail with your own HTML.', ...without('template', 'data', ...smsFields, 'otp') },
)

const templateEmailRequest = Type.Object(
  {
    ...notifyCommon('EMAIL', email),
    brandId: Type.Optional(mailBrandId()),
    subject,
    template: Type.String({
      minLength: 1,
      maxLength: notifySizes.template,
      description:
        'Plain text. `{{name}}` is replaced by that value of data. The rendered e-mail must have at most 256 KiB.',
    }),
    data: Type.Optional(
      Type.Object(
        {},
        {
          description: 'Values of the placeholders. Other values follow as a table below the text.',
        },
      ),
    ),
  },
  {
    description: 'An e-mail from a text template, in a simple HTML frame with the subject as heading.',
    ...without('html', ...smsFields, 'otp'),
  },
)

const integrationRequest = Type.Object(
  {
    companyName: Type.String({ minLength: 1, maxLength: requestSizes.companyName }),
    contactName: Type.String({ minLength: 1, maxLength: requestSizes.contactName }),
    contactEmail: email,
    brandName: Type.String({
      minLength: 1,
      maxLength: requestSizes.brandName,
      description: 'The display name for messages.',
    }),
    channels: Type.Optional(Type.Array(channel, { description: 'The channels that you want to use.' })),
    website: Type.Optional(
      Type.String({
        format: 'uri',
        pattern: '^[Hh][Tt]{2}[Pp][Ss]?://',
        minLength: 1,
        maxLength: requestSizes.website,
      }),
    ),
    useCase: Type.Optional(
      Type.String({ minLength: 1, maxLength: requestSizes.useCase, description: 'What you want to send.' }),
    ),
  },
  { description: 'A request for access, with a contact and a brand.' },
)

function mailBrandId(): TSchema {
  return Type.String({
    description: 'An active brand, whose name becomes the sender name. Any other value is ignored.',
  })
}

function variable({ pattern, minLength, maxLength, description }: VariableRule): TSchema {
  const given = Object.entries({ pattern, minLength, maxLength }).filter(([, value]) => value !== undefined)
  return Type.String({
    description: `${description[0]?.toUpperCase()}${description.slice(1)}.`,
    ...Object.fromEntries(given),
  })
}

function requiredVariables(): string {
  return notifyTemplates
    .map(({ key, variables }) => `${key} requires ${variables.map(({ name }) => name).join(', ')}.`)
    .join(' ')
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
    templateKey: Type.Optional(oneOf(notifyTemplateKeys, { description: 'Only for a template SMS.' })),
  },
  'A provider accepted the message to each recipient.',
)

function health(state: 'ok' | 'unavailable', description: string) {
  return answer(
    {
      status: Type.Literal(state),
      version: Type.String({ description: 'The version of the service.' }),
      checks: Type.Object({ database: Type.Literal(state) }, closed),
    },
    description,
  )
}

const path = Type.String({ description: 'A path of this server.' })
const root = succeeded(
  {
    service: Type.Literal('otpost'),
    version: Type.String({ description: 'The version of the service.' }),
    links: Type.Object(
      {
        docs: path,
        openapi: path,
        health: path,
        outbox: Type.Optional({ ...path, description: 'Present if this server has an outbox.' }),
        admin: Type.Optional({ ...path, description: 'Present if the console is enabled.' }),
      },
      closed,
    ),
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
      Type.Object(
        {
          key: oneOf(notifyTemplateKeys),
          channel: Type.Literal('SMS'),
          variables: Type.Array(
            Type.Object(
              {
                name: Type.String(),
                required: Type.Boolean(),
                description: Type.String({ description: 'The rule for a value, as text.' }),
                minLength: Type.Optional(Type.Integer({ minimum: 0 })),
                maxLength: Type.Optional(Type.Integer({ minimum: 1 })),
                pattern: Type.Optional(Type.String({ format: 'regex' })),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
      { description: 'The templates of /notify. The operator enables them for each brand.' },
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
      { ...closed, description: 'The limits that this server enforces.' },
    ),
  },
  'The channels, templates and limits.',
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
    brands: Type.Array(Type.Object({ brandId: Type.String(), displayName: Type.String() }, closed)),
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
    variables: orNull(Type.Record(Type.String(), Type.String()), 'Null except on the template route.'),
    requestId: Type.String({ format: 'uuid', description: 'The requestId of the request that sent it.' }),
  },
  { ...closed, description: 'A message in the outbox.' },
)

const outboxMessages = succeeded(
  { messages: Type.Array(ref('OutboxMessage')) },
  'The messages, oldest first.',
)

export function errorSchema(codes: readonly string[]) {
  return answer(
    {
      success: Type.Literal(false),
      error: oneOf(codes, { description: 'The error code, for programs. Codes are stable.' }),
      message: Type.String({ description: 'Text for people. Its wording may change: do not parse it.' }),
      channel: Type.Optional(oneOf(channels, { description: 'Only with notification_failed.' })),
    },
    'The body of every error.',
  )
}

export function errorOf(codes: readonly string[]) {
  const failed = codes.includes('notification_failed')
  const others = codes.filter((code) => code !== 'notification_failed')
  const plain = { properties: { error: { enum: others }, channel: false } }
  const withChannel = { properties: { error: { const: 'notification_failed' } }, required: ['channel'] }
  if (!failed) return { allOf: [ref('Error'), plain] }
  return { allOf: [ref('Error'), others.length === 0 ? withChannel : { oneOf: [withChannel, plain] }] }
}

/** The schemas that the description names; a request of /notify is one of four. */
const named = {
  OtpSendRequest: otpSendRequest,
  OtpVerifyRequest: otpVerifyRequest,
  TextSmsRequest: textSmsRequest,
  TemplateSmsRequest: templateSmsRequest,
  HtmlEmailRequest: htmlEmailRequest,
  TemplateEmailRequest: templateEmailRequest,
  IntegrationRequest: integrationRequest,
  OtpSent: otpSent,
  OtpVerified: otpVerified,
  Notified: notified,
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
} as const

export type SchemaName = keyof typeof named

export type Described = { [Name in SchemaName]: Static<(typeof named)[Name]> }

export const schemas: Readonly<Record<SchemaName, TSchema>> = titled(named)

function titled<Name extends string>(schemas: Readonly<Record<Name, TSchema>>): Record<Name, TSchema> {
  const pairs = Object.entries<TSchema>(schemas).map(([name, schema]) => [name, { title: name, ...schema }])
  return Object.fromEntries(pairs)
}

export function ref(name: string) {
  return Type.Unsafe<unknown>({ $ref: `#/components/schemas/${name}` })
}
