import { Type } from '@sinclair/typebox'
import { phoneWays } from '../../../domain/ground/providers.ts'
import { sendOtp } from '../../../domain/otp/send.ts'
import { maxCodeBodyBytes } from '../body.ts'
import {
  branded,
  type Endpoint,
  idempotencyKey,
  keyed,
  protectedCall,
  protectedPost,
  success,
} from '../endpoint.ts'
import * as fields from '../fields.ts'
import { confirmed, notBlank, oneOf, optional, orNull, without } from '../schema.ts'

const { brandId, credentials, demo, emailChannel, phone, smsChannel, somePayment, somePhone } = fields

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
  lang: fields.langField(
    'the message',
    "On the template route, only the brand's language and languages with a registration count.",
  ),
  reference: optional(fields.reference),
  ...fields.binding,
  clientIp: optional(
    Type.String({
      pattern: '^[0-9A-Fa-f:.]*[:.][0-9A-Fa-f:.]*$',
      description:
        "The IPv4 or IPv6 address of the end user's device, which the SMS pumping guard counts. Not the IP address of your server. otpost stores only its hash.",
    }),
  ),
  deviceId: optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: '^[!-~]+$',
      description:
        "Your own random id of the end user's browser or app installation, which the SMS pumping guard counts. No spaces. Never a value that many devices share. otpost stores only its hash.",
    }),
  ),
  trustedUser: optional(
    Type.Boolean({
      description:
        'Whether the end user is already signed in to your application: the SMS pumping guard then judges the code by clientIp and deviceId alone. Never take it from the end user.',
    }),
  ),
}

const bySms = {
  ...credentials,
  brandId,
  channel: Type.Optional(orNull(smsChannel, `${smsChannel.description} Absent or null: SMS.`)),
  phone,
  ...codeText,
}

const byEmail = Type.Object(
  { ...credentials, brandId, channel: emailChannel, email: fields.email, ...codeText, ...without('via') },
  { title: 'EmailOtpSendRequest', description: 'A code by e-mail. A field phone is ignored.' },
)

const eitherChannel = 'The recipient of a code. SMS requires phone, EMAIL requires email.'

export const otpSendRequest = Type.Union(
  [
    Type.Object(
      { ...bySms, ...without('via') },
      { title: 'SmsOtpSendRequest', description: 'A code to a phone. A field email is ignored.' },
    ),
    byEmail,
  ],
  { title: 'OtpSendRequest', description: eitherChannel },
)

const via = optional(
  oneOf(phoneWays, {
    description:
      'The way of the new code to the phone. The server must have it. Absent or null: the first way of the server, usually sms.',
  }),
)

export const otpResendRequest = Type.Union(
  [
    Type.Object(
      { ...bySms, via },
      {
        title: 'SmsOtpResendRequest',
        description: 'Another code to a phone. A field email is ignored.',
      },
    ),
    byEmail,
  ],
  { title: 'OtpResendRequest', description: eitherChannel },
)

export const otpSent = confirmed(
  'OtpSent',
  { expiresIn: Type.Integer({ minimum: 1, description: 'Seconds until the code expires.' }) },
  'A provider accepted the new code.',
)

const message = { send: 'OTP sent successfully', resend: 'OTP resent successfully' } as const

const examples = {
  sms: ['By SMS', { ...demo, phone: somePhone }],
  email: ['By e-mail', { ...demo, channel: 'EMAIL', email: 'pat@example.com' }],
  named: ['With a login', { ...demo, phone: somePhone, loginId: 'pat-07', businessName: 'Acme Bikes' }],
  forUser: [
    'For an end user',
    {
      ...{ ...demo, phone: somePhone, lang: 'hi', reference: 'login-1042' },
      ...{ clientIp: '198.51.100.7', deviceId: 'Zr0kTqXo1mWc7uYb', trustedUser: false },
    },
  ],
  payment: ['For a payment', { ...demo, phone: somePhone, ...somePayment }],
} as const

export const otpSend = protectedPost({
  path: '/otp/send',
  tag: 'OTP',
  id: 'sendOtp',
  client: 'send',
  summary: 'Send a code',
  description:
    'Creates a code of six digits and delivers it by SMS or e-mail. It replaces any earlier code of the same brand and recipient. The checks are, in this order: credentials, brand, cooldown, limits of the phone or mailbox, wrong codes for the recipient, limit of the application, fields.',
  maxBytes: maxCodeBodyBytes,
  parameters: [idempotencyKey],
  body: { schema: otpSendRequest, examples },
  answers: { 200: success(otpSent, { message: message.send, expiresIn: 300 }) },
  failures: {
    ...protectedCall,
    ...branded,
    ...keyed,
    cooldown_active: 'The SMS cooldown for this brand and phone is active.',
    rate_limited:
      'A limit of the phone, the mailbox, the application or the IP address is exhausted, or the recipient had too many wrong codes within a day.',
    sms_failed: 'No provider accepted the SMS or e-mail. The code is revoked.',
  },
  reasons: [
    ...(['destination', 'field', 'phone_minute', 'phone_hour', 'mailbox_hour', 'app_minute'] as const),
    ...(['wrong_codes', 'guard', 'budget', 'credentials'] as const),
  ],
  answer: async ({ ports, context, body }) => {
    const { expiresIn } = await sendOtp(ports, context, body, 'send')
    return { success: true, message: message.send, expiresIn }
  },
})

export const otpResend: Endpoint = {
  ...otpSend,
  path: '/otp/resend',
  id: 'resendOtp',
  client: 'resend',
  summary: 'Send a new code',
  description:
    'The same as send, with the same limits. The earlier code of the brand and recipient is revoked, and a new code is delivered.',
  body: {
    schema: otpResendRequest,
    examples: { ...examples, via: ['By another way', { ...demo, phone: somePhone, via: 'sms' }] },
  },
  answers: { 200: success(otpSent, { message: message.resend, expiresIn: 300 }) },
  answer: async ({ ports, context, body }) => {
    const { expiresIn } = await sendOtp(ports, context, body, 'resend')
    return { success: true, message: message.resend, expiresIn }
  },
}
