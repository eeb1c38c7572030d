import { Type } from '@sinclair/typebox'
import { anyCall, type EndpointOperation, parameter, success } from '../endpoint.ts'
import { channel, someRequestId } from '../fields.ts'
import { oneOf, orNull, succeeded } from '../schema.ts'

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
  { title: 'OutboxMessage', description: 'A message in the outbox.' },
)

const outboxMessages = succeeded(
  'OutboxMessages',
  { messages: Type.Array(outboxMessage) },
  'The messages, oldest first.',
)

const query = parameter.bind(undefined, 'query')

/** The description alone: src/adapters/outbox answers it. */
export const listOutboxMessages: EndpointOperation = {
  method: 'GET',
  path: '/outbox/messages',
  tag: 'Development',
  id: 'listOutboxMessages',
  summary: 'List the messages in the outbox',
  description:
    'The newest messages that match, oldest first. With wait, the server waits for a first message, so that a test needs no polling loop.',
  // The token is required only if OUTBOX_TOKEN is set.
  security: [{}, { outboxToken: [] }],
  parameters: [
    query('to', { type: 'string' }, 'Only messages to this phone number or e-mail address, in any spelling.'),
    query('after', { type: 'integer', minimum: 0 }, 'Only messages with an id greater than this.'),
    query(
      'limit',
      { type: 'integer', minimum: 0, maximum: 500, default: 500 },
      'The maximum number of messages.',
    ),
    query(
      'wait',
      { type: 'integer', minimum: 0, maximum: 60, default: 0 },
      'Seconds to wait for a first message. Without one the answer is empty.',
    ),
  ],
  answers: {
    200: success(outboxMessages, {
      messages: [
        {
          id: 17,
          createdAt: '2026-03-14T15:09:26.535Z',
          channel: 'SMS',
          to: '12025550143',
          route: 'plain',
          brandId: 'acme',
          brandName: 'Acme',
          subject: null,
          text: '123456 is your Acme verification code. It expires in 5 minutes. Do not share it with anyone.',
          html: null,
          templateKey: null,
          variables: null,
          requestId: someRequestId,
        },
      ],
    }),
  },
  failures: {
    validation_error: 'A parameter is invalid.',
    unauthorized: 'OUTBOX_TOKEN is set, and the request does not have it as Authorization: Bearer.',
    route_not_found:
      'This server has no outbox, listens beyond its own machine without OUTBOX_TOKEN, or does not know the Host name of the request.',
    ...anyCall,
  },
  reasons: ['field'],
}
