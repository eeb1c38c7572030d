import { type TSchema, Type } from '@sinclair/typebox'
import { capitalized } from '../../../domain/ground/format.ts'
import { notify as notifyRecipients } from '../../../domain/notify/notify.ts'
import { mailFields, notifySizes, smsFields } from '../../../domain/notify/order.ts'
import type { enabledOwnTemplates } from '../../../domain/texts/notify-texts.ts'
import { notifyTemplates, type Template } from '../../../domain/texts/templates.ts'
import { sampleOf, type VariableRule } from '../../../domain/texts/variables.ts'
import {
  answered,
  branded,
  idempotencyKey,
  keyed,
  protectedCall,
  protectedPost,
  success,
} from '../endpoint.ts'
import * as fields from '../fields.ts'
import { confirmed, notBlank, oneOf, optional, without } from '../schema.ts'

const { brandIdText, channel, credentials, demo, demoApp, somePhone } = fields

function recipients(recipient: TSchema) {
  return Type.Unsafe<string[]>(
    Type.Array(recipient, {
      minItems: 1,
      maxItems: notifySizes.to,
      description: `1 to ${notifySizes.to} recipients. A recipient that appears twice gets one message.`,
    }),
  )
}

const both = {
  reference: optional(fields.reference),
  lang: fields.langField(
    'a template SMS',
    'Built-in texts are in English. Of an e-mail with `template`: the language that it is in.',
  ),
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

/** The types of the client do not have this rule. */
const deferral = Type.Unsafe<unknown>(
  Type.Union(
    [
      Type.Object({ async: Type.Literal(true) }),
      Type.Object({
        expiresAt: Type.Optional(Type.Null({ description: 'Must be absent or null without async.' })),
      }),
    ],
    { title: 'Deferral', description: 'expiresAt requires async: true.' },
  ),
)

const sms = {
  ...credentials,
  channel: fields.smsChannel,
  to: recipients(fields.phone),
  ...both,
  brandId: optional(Type.String({ description: brandIdText })),
  ...deferralFields,
  ...without('otp', ...mailFields),
}

const mail = {
  ...credentials,
  channel: fields.emailChannel,
  to: recipients(fields.email),
  ...both,
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
    Type.Object({ brandId: fields.brandId }),
    Type.Object({
      variables: Type.Object({ businessName: Type.String({ ...notBlank, description: businessNameText }) }),
    }),
  ],
  { title: 'SmsBrand', description: 'brandId or variables.businessName selects the brand of an SMS.' },
)

export const textSmsRequest = Type.Intersect(
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
    smsBrand,
    deferral,
  ],
  {
    title: 'TextSmsRequest',
    description: 'An SMS with free text. brandId or variables.businessName selects the brand.',
  },
)

/** @param ownTemplates of the brands of a server; their union is closed, so that no other template is accepted */
export function templateSmsRequest(ownTemplates: readonly Template[]) {
  return Type.Intersect(
    [
      Type.Object({ ...sms, ...without('message') }),
      Type.Union([...notifyTemplates, ...ownTemplates].map(templateFields)),
      smsBrand,
      deferral,
    ],
    {
      title: 'TemplateSmsRequest',
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
    description: `${capitalized(description)}.`,
    ...Object.fromEntries(Object.entries(rules).filter(([, rule]) => rule !== undefined)),
  })
}

export const htmlEmailRequest = Type.Intersect(
  [
    Type.Object({
      ...mail,
      html: Type.String({ ...notBlank, maxLength: notifySizes.html, description: 'The HTML of the e-mail.' }),
      ...without('template', 'data'),
    }),
    deferral,
  ],
  { title: 'HtmlEmailRequest', description: 'An e-mail with your own HTML.' },
)

export const templateEmailRequest = Type.Intersect(
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
    deferral,
  ],
  {
    title: 'TemplateEmailRequest',
    description: 'An e-mail from a text template, in a simple HTML frame with the subject as heading.',
  },
)

export const notified = confirmed(
  'Notified',
  { channel, templateKey: Type.Optional(Type.String({ description: 'Only for a template SMS.' })) },
  'A provider accepted the message to each recipient.',
)

export const notificationAccepted = confirmed(
  'NotificationAccepted',
  {
    channel,
    recipients: Type.Integer({ minimum: 1, description: 'How many messages are stored.' }),
  },
  'The messages are stored. POST /messages/status has their status.',
)

const mostOwnExamples = 20
const bySms = { ...demo, channel: 'SMS', to: [somePhone] } as const
const sent = { success: true, message: 'Notification sent successfully' } as const
const accepted = { success: true, message: 'Notification accepted' } as const

export const notify = protectedPost({
  path: '/notify',
  tag: 'Notifications',
  id: 'notify',
  client: 'notify',
  summary: 'Send an SMS or an e-mail',
  description: `Sends one message to each of 1 to ${notifySizes.to} recipients, in one of four modes: SMS with message, SMS with templateKey and variables, e-mail with html, e-mail with template and data. All recipients are tried, and the request succeeds only if providers accepted all messages. With async, the messages are stored and sent after the answer. otp and the OTP templates are rejected: use the OTP endpoints for codes.`,
  parameters: [idempotencyKey],
  body: bodyWith([]),
  bodyWith,
  answers: {
    200: answered(notified, {
      template: ['Template SMS', { ...sent, channel: 'SMS', templateKey: 'ORDER_DELIVERED' }],
      other: ['Anything else', { ...sent, channel: 'EMAIL' }],
    }),
    202: success(notificationAccepted, { ...accepted, channel: 'SMS', recipients: 1 }),
  },
  failures: {
    ...protectedCall,
    ...branded,
    ...keyed,
    brand_id_required: 'SMS: neither brandId nor variables.businessName.',
    brand_not_approved: 'SMS: the brand is unknown or pending, or the app may not use it.',
    brand_suspended: 'SMS: the brand is suspended.',
    template_not_allowed: 'SMS: the brand has not enabled this template.',
    invalid_channel: 'channel is neither SMS nor EMAIL.',
    otp_template_not_supported:
      'SMS: LOGIN_OTP, LOGIN_OTP_WITH_ID and TRANSACTION_OTP are only for the OTP endpoints.',
    invalid_template: 'SMS: the template does not exist.',
    unsupported_business: 'SMS: variables.businessName is not the brand of brandId.',
    missing_variable: 'A variable of the template, or the data of a placeholder, is missing.',
    rate_limited:
      'A limit of the application or the IP address is exhausted. With async: too many messages wait.',
    notification_failed:
      'At least one message was not accepted by a provider. recipients has the status of each.',
  },
  reasons: ['destination', 'field', 'app_minute', 'budget', 'queue', 'credentials'],
  answer: async ({ ports, context, body }) => {
    const result = await notifyRecipients(ports, context, body)
    if (!('recipients' in result)) return { ...sent, ...result }
    context.status = 202
    return { ...accepted, ...result }
  },
})

type OwnTemplates = ReturnType<typeof enabledOwnTemplates>

function bodyWith(templates: OwnTemplates) {
  const ownTemplates = templates.map(({ template }) => template)
  return {
    schema: Type.Union(
      [textSmsRequest, templateSmsRequest(ownTemplates), htmlEmailRequest, templateEmailRequest],
      { title: 'NotifyRequest', description: 'A message to each of some recipients, in one of four modes.' },
    ),
    examples: {
      textSms: ['SMS, free text', { ...bySms, message: 'Your table is ready.', reference: 'table-7' }],
      async: [
        'SMS, asynchronous',
        { ...bySms, message: 'Your table is ready.', async: true, reference: 'table-8' },
      ],
      templateSms: [
        'SMS, template',
        {
          ...bySms,
          templateKey: 'ORDER_DELIVERED',
          variables: { customerName: 'Pat', orderId: 'A-1042', deliveryDateTime: '2026-03-14T15:09Z' },
        },
      ],
      ...ownExamples(templates),
      htmlEmail: [
        'E-mail, HTML',
        {
          ...demoApp,
          channel: 'EMAIL',
          to: ['pat@example.com', 'sam@example.com'],
          subject: 'Opening hours',
          html: '<h1>We open at nine</h1><p>From Monday on.</p>',
        },
      ],
      templateEmail: [
        'E-mail, template',
        {
          ...demo,
          channel: 'EMAIL',
          to: ['pat@example.com'],
          subject: 'Your receipt',
          template: 'Hi {{name}},\n\nthank you for your order.',
          data: { name: 'Pat', order: 'A-1042', total: '19.90 EUR' },
        },
      ],
    },
  } as const
}

function ownExamples(templates: OwnTemplates) {
  const examples = templates.slice(0, mostOwnExamples).map(({ slug, template: { key, variables } }) => {
    const values = Object.fromEntries(variables.map((rule) => [rule.name, sampleOf(rule)]))
    const body = { ...bySms, brandId: slug, templateKey: key, variables: values }
    return [`${slug}.${key}`, [`SMS, template ${key} of ${slug}`, body]] as const
  })
  return Object.fromEntries(examples)
}
