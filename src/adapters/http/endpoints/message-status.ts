import { Type } from '@sinclair/typebox'
import { messageStatuses } from '../../../domain/ground/providers.ts'
import { queryMessages } from '../../../domain/notify/message-query.ts'
import { protectedCall, protectedPost, success } from '../endpoint.ts'
import { channel, credentials, demoApp, maskedRecipient, recipientIndex, someRequestId } from '../fields.ts'
import { confirmed, oneOf, orNull } from '../schema.ts'

export const messageStatusRequest = Type.Object(
  {
    ...credentials,
    messageRequestId: Type.String({
      minLength: 1,
      description: 'The requestId in the answer to a send, resend or notify of this application.',
    }),
  },
  { title: 'MessageStatusRequest', description: 'The request whose messages you ask about.' },
)

export const messageStatus = confirmed(
  'MessageStatus',
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
        to: maskedRecipient,
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

const message = 'Message status retrieved'

export const getMessageStatus = protectedPost({
  path: '/messages/status',
  tag: 'Notifications',
  id: 'getMessageStatus',
  client: 'messageStatus',
  summary: 'Get the status of messages',
  description:
    'What became of the message to each recipient of an earlier send, resend or notify of this application. At most 60 requests a minute, which do not count for the other endpoints. The limit of the application does not apply.',
  body: {
    schema: messageStatusRequest,
    examples: { request: ['A request', { ...demoApp, messageRequestId: someRequestId }] },
  },
  answers: {
    200: success(messageStatus, {
      message,
      request: {
        requestId: someRequestId,
        operation: 'notify',
        channel: 'SMS',
        brandId: 'acme',
        createdAt: '2026-03-14T15:09:26.535Z',
        reference: 'table-7',
      },
      recipients: [
        { index: 0, to: '12*******43', status: 'delivered', updatedAt: '2026-03-14T15:09:31.220Z' },
        { index: 1, to: '12*******44', status: 'accepted', updatedAt: '2026-03-14T15:09:26.918Z' },
      ],
    }),
  },
  failures: {
    ...protectedCall,
    validation_error: 'messageRequestId is missing or not a string, or the body is not a JSON object.',
    message_not_found:
      'No request of this application has this requestId, the request was rejected, or the event log no longer has it.',
    rate_limited:
      'This application sent 60 status requests within a minute, or a limit of the IP address is exhausted.',
  },
  reasons: ['field', 'app_minute', 'credentials'],
  answer: async ({ ports, context, body, server }) => {
    // The event log then has every request whose answer the caller may have.
    server.endAnswered()
    return { success: true, message, ...(await queryMessages(ports, context, body)) }
  },
})
