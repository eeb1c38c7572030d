import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { requestSizes } from '../../domain/integration/integration.ts'
import { mailFields, notifySizes, smsFields } from '../../domain/messages/notify.ts'
import { notifyTemplateKeys, notifyTemplates, type VariableRule } from '../../domain/messages/templates.ts'

// What bodies look like, for the description of the interface alone. Requests are judged by the domain, since the order
// of its checks is part of the contract and a schema has none.

const closed = { additionalProperties: false } as const

function oneOf<T extends readonly string[]>(values: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })
}

function orNull(schema: TSchema, description: string) {
  return Type.Union([schema, Type.Null()], { description })
}

const requestId = Type.String({
  format: 'uuid',
  description: 'Names this answer; the header X-Request-Id and the log of the server have it too.',
})
const success = Type.Literal(true)
const displayed = Type.String({ description: 'Text for people; its wording may change.' })
const channels = ['SMS', 'EMAIL'] as const
const channel = oneOf(channels)

/** An answer: nothing but these fields and a requestId. */
function answer<T extends Record<string, TSchema>>(fields: T, description: string) {
  return Type.Object({ ...fields, requestId }, { ...closed, description })
}

/** A success. */
function succeeded<T extends Record<string, TSchema>>(fields: T, description: string) {
  return answer({ success, ...fields }, description)
}

/** A success with a message for people. */
function confirmed<T extends Record<string, TSchema>>(fields: T, description: string) {
  return succeeded({ message: displayed, ...fields }, description)
}

// --- Requests -------------------------------------------------------------------------------------------------------

const credentials = {
  appId: Type.String({ minLength: 1, description: 'The id that your application was issued.' }),
  apiKey: Type.String({
    minLength: 1,
    format: 'password',
    description: 'The key that was issued with appId. It belongs on a server, not in a page or an app.',
  }),
}
const brandId = Type.String({
  minLength: 1,
  description: 'Slug of an active brand. Upper case and surrounding spaces make no difference.',
})
const chosenChannel = { description: 'SMS or EMAIL, in upper or lower case.' } as const
const phone = Type.String({
  pattern: '^[0-9 +().-]+$',
  description:
    'A phone number with its country code, in any spelling: digits, spaces and + - ( ) . may appear. A leading 00 ' +
    'and a trunk prefix are dropped, and 7 to 15 digits must remain. A server with a default region also accepts ' +
    'national numbers; digits that are a valid E.164 number are read as that.',
})
const email = Type.String({
  format: 'idn-email',
  description:
    'One e-mail address of at most 254 characters, with at most 64 octets before the @. Upper case, surrounding spaces ' +
    'and the spelling of an internationalized domain make no difference.',
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
          'The login that the code is for. The message names it where the brand has that enabled. As for businessName: no invisible characters, no URL, no mixed scripts.',
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
  },
  {
    description: 'Where a code is to go. phone is required by SMS, email by EMAIL.',
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
      description: 'The code as the recipient typed it: six digits.',
    }),
  },
  {
    description: 'A code to check. Give the phone or the email that it was sent to, not both.',
    oneOf: [{ required: ['phone'] }, { required: ['email'] }],
  },
)

/** What every mode of /notify has. */
function notifyCommon(only: 'SMS' | 'EMAIL', recipient: TSchema) {
  return {
    ...credentials,
    channel: oneOf([only], chosenChannel),
    to: Type.Array(recipient, {
      minItems: 1,
      maxItems: notifySizes.to,
      description: `1 to ${notifySizes.to} recipients. Each gets one message, also when ${'`to`'} names it twice.`,
    }),
  }
}

/** Fields that select another mode, or that no mode takes. */
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
    'Slug or display name of an active brand. It names the brand when brandId is absent; when brandId is given, a ' +
    'template SMS must name the same brand with it. The text shows the display name either way.',
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
        { description: 'Read for businessName alone, and only when brandId is absent.' },
      ),
    ),
  },
  {
    description: 'An SMS of free text. The brand is named by brandId or variables.businessName.',
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
      { description: `${requiredVariables()} Others are ignored; otp is refused.`, ...without('otp') },
    ),
  },
  {
    description:
      'An SMS made from a registered template. The brand is named by brandId or variables.businessName.',
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
    html: Type.String({ minLength: 1, maxLength: notifySizes.html, description: 'The mail, as HTML.' }),
  },
  { description: 'An e-mail of your own HTML.', ...without('template', 'data', ...smsFields, 'otp') },
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
        'Plain text. `{{name}}` is replaced by the value of that name in data. The mail has at most 256 KiB.',
    }),
    data: Type.Optional(
      Type.Object(
        {},
        {
          description:
            'Values of the placeholders. What no placeholder uses is shown as a table below the text.',
        },
      ),
    ),
  },
  {
    description:
      'An e-mail made from a text: the service puts it in a simple frame, with the subject as heading.',
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
      description: 'The name that messages would show.',
    }),
    channels: Type.Optional(Type.Array(channel, { description: 'Which channels you mean to use.' })),
    website: Type.Optional(
      Type.String({
        format: 'uri',
        pattern: '^[Hh][Tt]{2}[Pp][Ss]?://',
        minLength: 1,
        maxLength: requestSizes.website,
      }),
    ),
    useCase: Type.Optional(
      Type.String({ minLength: 1, maxLength: requestSizes.useCase, description: 'What you will send.' }),
    ),
  },
  { description: 'Who asks for access, and for which brand.' },
)

function mailBrandId(): TSchema {
  return Type.String({
    description: 'An active brand whose name the sender gets. Any other value is ignored.',
  })
}

/** The rule of a template's variable as a schema. */
function variable({ pattern, minLength, maxLength, description }: VariableRule): TSchema {
  const given = Object.entries({ pattern, minLength, maxLength }).filter(([, value]) => value !== undefined)
  return Type.String({
    description: `${description[0]?.toUpperCase()}${description.slice(1)}.`,
    ...Object.fromEntries(given),
  })
}

function requiredVariables(): string {
  return notifyTemplates
    .map(({ key, variables }) => `${key} needs ${variables.map(({ name }) => name).join(', ')}.`)
    .join(' ')
}

// --- Answers --------------------------------------------------------------------------------------------------------

const otpSent = confirmed(
  {
    expiresIn: Type.Integer({ minimum: 1, description: 'Seconds until the code expires.' }),
  },
  'A new code is on its way.',
)

const otpVerified = confirmed({}, 'The code was right, and is used up now.')

const notified = confirmed(
  {
    channel,
    templateKey: Type.Optional(
      oneOf(notifyTemplateKeys, { description: 'Present for a template SMS alone.' }),
    ),
  },
  "Every recipient's message was accepted by a provider.",
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
        outbox: Type.Optional({ ...path, description: 'Present where this server keeps messages.' }),
        admin: Type.Optional({ ...path, description: 'Present while the console is open.' }),
      },
      closed,
    ),
  },
  'The version and where everything is.',
)

const isLive = answer({ status: Type.Literal('ok') }, 'The process answers.')
const isReady = answer({ status: Type.Literal('ready') }, 'Requests may come here.')
const isNotReady = answer(
  {
    status: oneOf(['draining', 'unavailable'], {
      description:
        '`draining`: the server is about to stop, and serves what still comes. `unavailable`: the database can not be used.',
    }),
  },
  'Requests had better go elsewhere.',
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
                description: Type.String({ description: 'What a value must be, in words.' }),
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
      { description: 'The templates of /notify. Which of them a brand may use is up to the operator.' },
    ),
    limits: Type.Object(
      {
        globalPerMinute: limit('Calls of one application a minute.'),
        phonePerMinute: limit('Codes sent to one phone a minute.'),
        phonePerHour: limit('Codes sent to one phone an hour.'),
        smsCooldownSeconds: limit('Pause after an SMS code, for its brand and phone.', 0),
        emailPerHour: limit('Codes sent to one mail address an hour; 0 means no limit.', 0),
        otpTtlSeconds: limit('Lifetime of a code.'),
        otpMaxAttempts: limit('Wrong guesses after which a code is locked.'),
        otpLength: limit('Digits of a code.'),
        notifyRecipients: limit('Elements of to.'),
        messageCharacters: limit('Length of message.'),
        subjectCharacters: limit('Length of subject.'),
        htmlCharacters: limit('Length of html.'),
        templateCharacters: limit('Length of an e-mail template.'),
      },
      { ...closed, description: 'The limits that this server enforces.' },
    ),
  },
  'What can be sent, and within which limits.',
)

const integrationReceived = confirmed(
  {
    integrationRequestId: Type.String({
      format: 'uuid',
      description: 'Name it when you ask the operator about it.',
    }),
    status: Type.Literal('pending'),
  },
  'The request is kept for the operator, who answers by other means.',
)

const brands = succeeded(
  {
    brands: Type.Array(Type.Object({ brandId: Type.String(), displayName: Type.String() }, closed)),
  },
  'The active brands.',
)

const outboxMessage = Type.Object(
  {
    id: Type.Integer({ minimum: 1, description: 'Grows with each message.' }),
    createdAt: Type.String({ format: 'date-time' }),
    channel,
    to: Type.String({ description: 'The digits of a phone number, or a mail address.' }),
    route: orNull(oneOf(['plain', 'template']), 'How the SMS would have gone; null for a mail.'),
    brandId: orNull(Type.String(), "Null for a mail in no brand's name."),
    brandName: orNull(Type.String(), "Null for a mail in no brand's name."),
    subject: orNull(Type.String(), 'Null for an SMS.'),
    text: Type.String({ description: 'The SMS, or the plain text of the mail.' }),
    html: orNull(Type.String(), 'Null for an SMS.'),
    templateKey: orNull(Type.String(), 'Null but on the template route.'),
    variables: orNull(Type.Record(Type.String(), Type.String()), 'Null but on the template route.'),
    requestId: Type.String({ format: 'uuid', description: 'The requestId of the call that sent it.' }),
  },
  { ...closed, description: 'A message that was kept instead of sent.' },
)

const outboxMessages = succeeded(
  { messages: Type.Array(ref('OutboxMessage')) },
  'The messages, oldest first.',
)

/** The error envelope with any of the service's codes. */
export function errorSchema(codes: readonly string[]) {
  return answer(
    {
      success: Type.Literal(false),
      error: oneOf(codes, { description: 'The code to decide by. Codes are stable.' }),
      message: Type.String({ description: 'Text for people; its wording may change, so never parse it.' }),
      channel: Type.Optional(oneOf(channels, { description: 'Present with notification_failed alone.' })),
    },
    'What every refusal and failure looks like.',
  )
}

/** The same, narrowed to the codes of one answer. */
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
  Health: health('ok', 'The service can work.'),
  Unhealthy: health('unavailable', 'The database can not be used, so nothing else will work.'),
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

/** The values that each schema describes, as far as types can tell, for whoever has types of their own. */
export type Described = { [Name in SchemaName]: Static<(typeof named)[Name]> }

export const schemas: Readonly<Record<SchemaName, TSchema>> = titled(named)

/** Each with its name as title, which a page shows where it has no room for the whole. */
function titled<Name extends string>(schemas: Readonly<Record<Name, TSchema>>): Record<Name, TSchema> {
  const pairs = Object.entries<TSchema>(schemas).map(([name, schema]) => [name, { title: name, ...schema }])
  return Object.fromEntries(pairs)
}

/** A pointer to a named schema. */
export function ref(name: string) {
  return Type.Unsafe<unknown>({ $ref: `#/components/schemas/${name}` })
}
