import { type TSchema, Type } from '@sinclair/typebox'
import { type EventType, eventTypes } from '../../domain/ground/webhook-events.ts'
import { parameter } from './endpoint.ts'
import { channel, maskedRecipient, recipientIndex, someRequestId } from './fields.ts'
import { oneOf, orNull } from './schema.ts'

// The requests that otpost sends to the webhook of an application.

interface Event {
  readonly title: string
  readonly description: string
  readonly status: TSchema
  readonly example: { readonly status: string | null; readonly reason: string | null }
}

const ofCode = { status: Type.Null(), example: { status: null, reason: null } }

const events: Readonly<Record<EventType, Event>> = {
  'message.delivered': {
    title: 'MessageDeliveredEvent',
    description: 'A delivery report says that the message reached the recipient.',
    status: Type.Literal('delivered'),
    example: { status: 'delivered', reason: null },
  },
  'message.failed': {
    title: 'MessageFailedEvent',
    description: 'The message was not sent, or a delivery report says that it did not arrive.',
    status: oneOf(['failed', 'unknown'], { description: '`unknown`: the message may have been sent.' }),
    example: { status: 'failed', reason: '30003' },
  },
  'otp.verified': { title: 'OtpVerifiedEvent', description: 'A code was verified.', ...ofCode },
  'otp.locked': {
    title: 'OtpLockedEvent',
    description: 'The third wrong attempt locked a code.',
    ...ofCode,
  },
}

/** In the order of the API description. */
export const eventOperations = eventTypes.map((type) => {
  const { title, description, status, example } = events[type]
  const schema = Type.Object(
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
        to: maskedRecipient,
        index: recipientIndex,
        status,
        reason: orNull(
          Type.String(),
          'With message.failed: the code of the provider, or why otpost did not send. Null if unknown.',
        ),
      }),
    },
    { title, description },
  )
  const value = {
    type,
    timestamp: '2026-03-14T15:09:31.220Z',
    data: {
      requestId: someRequestId,
      reference: 'login-1042',
      brandId: 'acme',
      channel: 'SMS',
      to: '12*******43',
      index: 0,
      ...example,
    },
  }
  return {
    type,
    id: `on${title}`,
    description: `${description} Signed as Standard Webhooks define, with the secret that \`otpost app webhook\` prints. An answer other than 2xx within 20 seconds is a failure. otpost sends a failed event again, with the same webhook-id.`,
    parameters: [
      parameter('header', 'webhook-id', { type: 'string' }, 'The id of the event, the same at each try.'),
      parameter(
        'header',
        'webhook-timestamp',
        { type: 'string', pattern: '^[0-9]+$' },
        'Seconds since 1970, of this try.',
      ),
      parameter(
        'header',
        'webhook-signature',
        { type: 'string' },
        '`v1,` and the HMAC-SHA-256 of id, timestamp and body, in base64.',
      ),
    ],
    body: { schema, examples: { event: [type, value] as const } },
  }
})
