import { type TInteger, Type } from '@sinclair/typebox'
import { phoneWays } from '../../../domain/ground/providers.ts'
import { catalog as catalogOf, waysInCountry } from '../../../domain/integration/integration.ts'
import { notifySizes } from '../../../domain/notify/order.ts'
import { variableTypes } from '../../../domain/texts/brand-texts.ts'
import { anyGet, get, parameter, success } from '../endpoint.ts'
import { channel } from '../fields.ts'
import { oneOf, succeeded } from '../schema.ts'

/** By name: the value in the example, and what it limits. */
const limits = {
  globalPerMinute: [10, 'Requests per minute for one application.'],
  phonePerMinute: [3, 'SMS codes per minute for one phone.'],
  phonePerHour: [10, 'SMS codes per hour for one phone.'],
  smsCooldownSeconds: [30, 'Seconds between two SMS codes for one brand and phone.', 0],
  emailPerHour: [30, 'Codes by e-mail per hour for one mailbox; 0 means no limit.', 0],
  otpTtlSeconds: [300, 'Seconds until a code expires.'],
  otpMaxAttempts: [3, 'Wrong attempts that lock a code.'],
  otpLength: [6, 'Digits of a code.'],
  notifyRecipients: [notifySizes.to, 'Maximum number of elements in to.'],
  messageCharacters: [notifySizes.message, 'Maximum length of message.'],
  subjectCharacters: [notifySizes.subject, 'Maximum length of subject.'],
  htmlCharacters: [notifySizes.html, 'Maximum length of html.'],
  templateCharacters: [notifySizes.template, 'Maximum length of an e-mail template.'],
} as const

const limitFields = Object.fromEntries(
  Object.entries(limits).map(([name, [, description, minimum = 1]]) => [
    name,
    Type.Integer({ minimum, description }),
  ]),
) as Record<keyof typeof limits, TInteger>

export const catalog = succeeded(
  'Catalog',
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
    limits: Type.Object(limitFields, { description: 'The limits that this server enforces.' }),
    ways: Type.Optional(
      Type.Array(oneOf(phoneWays), {
        uniqueItems: true,
        description:
          'With the parameter country: the ways by which a code may go to a phone there, that of a send first. A resend chooses one by via.',
      }),
    ),
  },
  'The channels, templates and limits.',
)

export const getCatalog = get({
  path: '/integrations/catalog',
  tag: 'Onboarding',
  id: 'getCatalog',
  client: 'catalog',
  summary: 'Channels, templates and limits',
  description: 'The channels, the variables of each template, and the limits of this server.',
  parameters: [
    parameter(
      'query',
      'country',
      { type: 'string', pattern: '^([A-Za-z]{2}|[0-9]{1,6})$' },
      'A country code (ISO 3166-1), or some first digits of a phone number, at most 6: the answer then has ways.',
    ),
  ],
  answers: {
    200: success(catalog, {
      channels: ['SMS', 'EMAIL'],
      templates: [
        {
          key: 'OUT_FOR_DELIVERY',
          channel: 'SMS',
          variables: [
            {
              name: 'customerName',
              type: 'text',
              description: '1 to 40 characters, no control characters, no URL',
              minLength: 1,
              maxLength: 40,
              required: true,
            },
          ],
        },
      ],
      limits: Object.fromEntries(Object.entries(limits).map(([name, [value]]) => [name, value])),
    }),
  },
  failures: { ...anyGet, validation_error: 'The parameter country is wrong.' },
  reasons: ['field'],
  answer: async ({ ports, context }) => {
    const { limits, otpTtlSeconds, brands } = ports
    // With a wrong Host header, the URL is a path.
    const [, query] = context.request.url.split('?', 2)
    const country = new URLSearchParams(query).get('country')
    return {
      success: true,
      ...catalogOf(limits, otpTtlSeconds, await brands.list()),
      ...(country !== null && { ways: await waysInCountry(ports, country) }),
    }
  },
})
