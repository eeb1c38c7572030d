import { Type } from '@sinclair/typebox'
import { requestSizes, requestIntegration as saveRequest } from '../../../domain/integration/integration.ts'
import { anyPost, post, success } from '../endpoint.ts'
import { channel, email } from '../fields.ts'
import { confirmed, notBlank, optional } from '../schema.ts'

export const integrationRequest = Type.Object(
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
  { title: 'IntegrationRequest', description: 'A request for access, with a contact and a brand.' },
)

export const integrationReceived = confirmed(
  'IntegrationReceived',
  {
    integrationRequestId: Type.String({
      format: 'uuid',
      description: 'Give this id to the operator with a question.',
    }),
    status: Type.Literal('pending'),
  },
  'The request is stored. The operator answers by other means.',
)

const message = 'Integration request received'

export const requestIntegration = post({
  path: '/integrations/requests',
  tag: 'Onboarding',
  id: 'requestIntegration',
  client: 'requestAccess',
  summary: 'Request access',
  description:
    'Stores a request for the operator, who decides on it and sends the credentials by other means. At most 5 per hour for an IP address.',
  body: {
    schema: integrationRequest,
    examples: {
      request: [
        'A request',
        {
          companyName: 'Acme Bikes Ltd',
          contactName: 'Sam Rider',
          contactEmail: 'sam@example.com',
          brandName: 'Acme Bikes',
          channels: ['SMS', 'EMAIL'],
          website: 'https://bikes.example.com',
          useCase: 'Codes at sign-in, and a word when a bike is ready.',
        },
      ],
    },
  },
  answers: {
    201: success(integrationReceived, {
      message,
      integrationRequestId: 'b0c6a1de-2f4e-4a0b-8d83-5f1f7f3a9c22',
      status: 'pending',
    }),
  },
  failures: {
    ...anyPost,
    rate_limited:
      'This IP address sent 5 requests within an hour. Without `reason`: too many requests are pending.',
  },
  reasons: ['field', 'client_ip'],
  answer: async ({ ports, context, body }) => {
    const integrationRequestId = await saveRequest(ports, context, body)
    context.status = 201
    return { success: true, message, integrationRequestId, status: 'pending' }
  },
})
