import {
  Failure,
  type FailureDetails,
  type FailureKind,
  type FailureReason,
  failureMessages,
} from '../../domain/ground/failures.ts'
import { type EventType, eventTypes } from '../../domain/ground/webhook-events.ts'
import { notifySizes } from '../../domain/notify/notify.ts'
import type { enabledOwnTemplates } from '../../domain/texts/notify-texts.ts'
import { sampleOf } from '../../domain/texts/variables.ts'
import { maxBodyBytes, maxCodeBodyBytes } from './body.ts'
import type { Named, Parameter } from './docs/description.ts'
import { errorAnswer } from './errors.ts'
import { errorOf, errorSchema, ref, type SchemaName, schemas, schemasWith } from './schemas.ts'

/** @param ownTemplates of the brands of this server */
export function openApi(
  version: string,
  withOutbox: boolean,
  ownTemplates: ReturnType<typeof enabledOwnTemplates> = [],
) {
  return {
    openapi: '3.1.1',
    info: {
      title: 'otpost',
      version,
      summary: 'Verification codes and notifications by SMS and e-mail.',
      description: introduction,
      contact: { name: 'The operator of this server' },
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server' }],
    // OpenAPI has no scheme for credentials in the body.
    security: [],
    tags: [
      { name: 'OTP', description: 'Send, resend and verify codes of six digits.' },
      { name: 'Notifications', description: 'Transactional SMS and e-mail.' },
      { name: 'Onboarding', description: 'Catalog, active brands and access requests. No credentials.' },
      { name: 'Operation', description: 'Health, version and metrics, for operators.' },
      { name: 'Events', description: 'What otpost sends to the webhook of your application.' },
      ...(withOutbox ? [{ name: 'Development', description: 'Messages in the outbox.' }] : []),
    ],
    paths: {
      '/otp/send': { post: sendOperation('send') },
      '/otp/resend': { post: sendOperation('resend') },
      '/otp/verify': { post: verifyOperation },
      '/notify': { post: notifyOperation(ownTemplates) },
      '/messages/status': { post: statusOperation },
      '/integrations/catalog': { get: catalogOperation },
      '/integrations/requests': { post: requestOperation },
      '/platform/brands': { get: brandsOperation },
      '/': { get: rootOperation },
      '/health': { get: healthOperation },
      '/health/live': { get: liveOperation },
      '/health/ready': { get: readyOperation },
      '/metrics': { get: metricsOperation },
      ...(withOutbox ? { '/outbox/messages': { get: outboxOperation } } : {}),
    },
    webhooks: Object.fromEntries(eventTypes.map((type) => [type, { post: eventOperation(type) }])),
    components: {
      schemas: {
        ...schemasWith(ownTemplates.map(({ template }) => template)),
        Error: { title: 'Error', ...errorSchema(allCodes()) },
      },
      headers: {
        RequestId: {
          description:
            'The id of this request. The body has it as requestId, unless `Idempotency-Replayed` is `true`.',
          required: true,
          schema: { type: 'string', format: 'uuid' },
        },
        RetryAfter: retryAfter(
          'Seconds until the exhausted limit resets. Another limit may reject the request then.',
        ),
        RetryAfterOrExpiry: retryAfter(
          'With `rate_limited`: seconds until the exhausted limit resets. With `max_attempts`: seconds until the locked code expires. No verification of that code succeeds, before or after. A new code can be sent earlier.',
        ),
        RetryAfterRequest: retryAfter('Seconds to wait. The first request is then usually answered.'),
        IdempotencyReplayed: {
          description:
            '`true`: the first answer to this Idempotency-Key again, with the requestId of the first request. Otherwise absent.',
          schema: { type: 'string', const: 'true' },
        },
        WwwAuthenticate: { description: 'The scheme `Bearer`.', required: true, schema: { type: 'string' } },
      },
      securitySchemes: {
        ...(withOutbox ? { outboxToken: bearer('OUTBOX_TOKEN of the server.') } : {}),
        metricsToken: bearer('METRICS_TOKEN of the server.'),
      },
    },
  }
}

const introduction = `
Applications call otpost from their servers. otpost sends a code of six digits by SMS or e-mail, verifies the code that the
recipient enters, and sends transactional SMS and e-mail.

**Bodies** are JSON objects sent as \`application/json\`, at most ${maxBodyBytes / 1024} KiB, on \`/otp/*\` ${maxCodeBodyBytes / 1024} KiB. An optional field that is
null counts as absent; fields that an endpoint does not know are ignored. Use HTTPS outside your own machine: credentials
are in the body.

**Credentials.** \`appId\` and \`apiKey\` are fields of the body. OpenAPI cannot describe such credentials as a security
scheme, so these operations declare none. The operations in the groups Onboarding and Operation need no credentials, except
\`/metrics\`.

**Applications and brands.** \`appId\` and \`apiKey\` identify the application; the operator creates them. \`brandId\`
selects the brand of a message. A brand has a display name, its own codes and its enabled templates. Only an active brand
can send. \`/otp/*\` and SMS on \`/notify\` require a brand; e-mail on \`/notify\` does not.

**Every response** has a \`requestId\`, in the body and as \`X-Request-Id\`. Give it to the operator with a question: the log has it too.

**Errors** are \`{"success": false, "error", "message", "requestId"}\`. Use \`error\` in programs; \`message\` is for people
and may change. A \`rate_limited\` has \`reason\`: which limit rejected the request. A \`validation_error\` has the reason
\`destination\` if the operator blocks the number, or \`field\` if one field is at fault, which the member \`field\` names. An unknown path answers 404 \`not_found\`, a wrong method 405 \`method_not_allowed\` with \`Allow\`.

**Safe retries.** Send, resend, verify and notify take the header \`Idempotency-Key\`. Repeat a request that had no answer with the
same key and body: if the first one succeeded, its answer comes again, with \`Idempotency-Replayed: true\` and the \`requestId\` of the
first request. Nothing is sent twice, and no second attempt at a code is counted. The key is valid for 24 hours, on send and resend
until the code expires, on verify for 10 minutes.

**Limits.** Unless the operator chose others: 10 calls a minute for an application, 3 SMS codes a minute and 10 an hour
for a phone over all brands, 30 seconds between two SMS codes for a brand and phone, 30 codes by e-mail an hour for a
mailbox, 3 attempts at a code, 300 seconds until a code expires. \`GET /integrations/catalog\` returns the limits of this server.
A rejected or failed send does not count against the phone. Every 429 has \`Retry-After\` in seconds: until the limit
resets, or with \`max_attempts\` until the locked code expires.

**When to try again**

| error | what to do |
| --- | --- |
| \`rate_limited\` | Wait for \`Retry-After\`, then longer each time. |
| \`cooldown_active\` | Wait for \`Retry-After\` before the next code. |
| \`sms_failed\` | The code is revoked. Offer the recipient a new code. |
| \`max_attempts\`, \`not_found\` on verify | Resend. |
| \`notification_failed\` | Send again to the recipients whose status is \`failed\`. Those with \`unknown\` may have the message. |
| \`internal_error\` | Try again later. Report the \`requestId\` to the operator. |
| \`unavailable\` | With an \`Idempotency-Key\`: repeat the request with the same key after \`Retry-After\`. Without one, the request may have had its effect. |
| \`idempotency_in_progress\` | Repeat the request with the same key after \`Retry-After\`. |
| all others | The request is invalid or not allowed. Do not retry it unchanged. |
`.trim()

// --- Operations -----------------------------------------------------------------------------------------------------

type Failures = Partial<Record<FailureKind, string>>

const anyCall: Failures = { internal_error: 'An unexpected error occurred.' }

const anyGet: Failures = { ...anyCall, unavailable: 'The proxy before the server got no answer.' }

const unavailable =
  'The server has no room for the request, or the proxy before it got no answer. The request may have had its effect.'

const anyPost: Failures = {
  validation_error: 'The body is not a JSON object, or a field is missing or wrong.',
  body_too_large: largerThan(maxBodyBytes),
  unavailable,
  ...anyCall,
}

function largerThan(most: number): string {
  return `The body is larger than ${most / 1024} KiB.`
}

const protectedCall: Failures = {
  ...anyPost,
  unauthorized: 'appId or apiKey is missing.',
  forbidden:
    'The pair of appId and apiKey is not valid, or the app may not use this operation. Do not retry.',
}

const branded: Failures = {
  brand_id_required: 'brandId is missing.',
  brand_not_approved: 'The brand is unknown or pending, or the app may not use it.',
  brand_suspended: 'The brand is suspended.',
}

const keyed: Failures = {
  validation_error:
    'The body is not a JSON object, a field is missing or wrong, or Idempotency-Key is not 1 to 255 visible ASCII characters.',
  idempotency_in_progress: 'The first request with this Idempotency-Key has no answer yet.',
  idempotency_key_reused: 'The Idempotency-Key was used with another body. A new request needs a new key.',
  unavailable: `${unavailable} Repeat it only with the same Idempotency-Key.`,
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Unique for this request of your application, such as a UUID. A repetition with the same key and body gets the first answer. Failures with status 4xx and 502 are not kept, except `mismatch` of verify: the key can be used again.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
}

const tooManyHeaders = {
  description:
    'The request line and the headers have more than 16 KiB. The answer has no body and no requestId.',
}

const demo = { appId: 'demo', apiKey: 'otp_example_key', brandId: 'acme' } as const
const { brandId: _, ...demoApp } = demo
const somePhone = '+1 202 555 0143'
const someRequestId = '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7'
const notificationFailure = {
  channel: 'SMS',
  recipients: [
    { index: 0, status: 'accepted' },
    { index: 1, status: 'failed' },
  ],
} as const

function sendOperation(verb: 'send' | 'resend') {
  return operation({
    tag: 'OTP',
    id: verb === 'send' ? 'sendOtp' : 'resendOtp',
    summary: verb === 'send' ? 'Send a code' : 'Send a new code',
    description:
      verb === 'send'
        ? 'Creates a code of six digits and delivers it by SMS or e-mail. It replaces any earlier code of the same brand and recipient. The checks are, in this order: credentials, brand, cooldown, limits of the phone or mailbox, wrong codes for the recipient, limit of the application, fields.'
        : 'The same as send, with the same limits. The earlier code of the brand and recipient is revoked, and a new code is delivered.',
    body: {
      schema: 'OtpSendRequest',
      examples: {
        sms: ['By SMS', { ...demo, phone: somePhone }],
        email: ['By e-mail', { ...demo, channel: 'EMAIL', email: 'pat@example.com' }],
        named: ['With a login', { ...demo, phone: somePhone, loginId: 'pat-07', businessName: 'Acme Bikes' }],
        forUser: [
          'For an end user',
          { ...demo, phone: somePhone, lang: 'hi', clientIp: '198.51.100.7', reference: 'login-1042' },
        ],
      },
    },
    parameters: [idempotencyKey],
    answers: {
      200: success('OtpSent', {
        message: verb === 'send' ? 'OTP sent successfully' : 'OTP resent successfully',
        expiresIn: 300,
      }),
    },
    failures: {
      ...protectedCall,
      ...branded,
      ...keyed,
      body_too_large: largerThan(maxCodeBodyBytes),
      cooldown_active: 'The SMS cooldown for this brand and phone is active.',
      rate_limited:
        'A limit of the phone, the mailbox, the application or the IP address is exhausted, or the recipient had too many wrong codes within a day.',
      sms_failed: 'No provider accepted the SMS or e-mail. The code is revoked.',
    },
    reasons: [
      ...['destination', 'field', 'phone_minute', 'phone_hour', 'mailbox_hour', 'app_minute'],
      ...['wrong_codes', 'guard', 'budget', 'credentials'],
    ] as const,
  })
}

const verifyOperation = operation({
  tag: 'OTP',
  id: 'verifyOtp',
  summary: 'Verify a code',
  description:
    'Verifies the code that the recipient entered. A correct code is consumed. The third wrong attempt locks the code. The limits of the phone and the cooldown do not apply. For an expired code the answer is not_found.',
  body: {
    schema: 'OtpVerifyRequest',
    examples: {
      phone: ['Sent by SMS', { ...demo, phone: somePhone, otp: '123456' }],
      email: ['Sent by e-mail', { ...demo, email: 'pat@example.com', otp: '123456' }],
    },
  },
  parameters: [idempotencyKey],
  answers: { 200: success('OtpVerified', { message: 'OTP verified successfully' }) },
  failures: {
    ...protectedCall,
    ...branded,
    ...keyed,
    body_too_large: largerThan(maxCodeBodyBytes),
    validation_error:
      'otp is missing, not exactly one of phone and email is given, the body is not a JSON object, or Idempotency-Key is not 1 to 255 visible ASCII characters.',
    invalid_input: 'otp is not a string.',
    invalid_otp_format: 'otp is not six digits.',
    invalid_contact: 'The phone or email is invalid.',
    invalid_app_id: 'appId has a colon, or is not 1 to 64 visible ASCII characters.',
    mismatch: 'The code is wrong. The third wrong attempt has this answer too.',
    not_found: 'There is no active code: never sent, expired, consumed or replaced.',
    max_attempts: 'The code is locked after three wrong attempts, also for the correct code. Resend.',
    rate_limited:
      'A limit of the application or the IP address is exhausted, or the recipient had too many wrong codes within a day.',
  },
  reasons: ['field', 'app_minute', 'wrong_codes', 'credentials'],
})

const notified = { success: true, message: 'Notification sent successfully' } as const

function notifyOperation(ownTemplates: ReturnType<typeof enabledOwnTemplates>) {
  return operation({
    tag: 'Notifications',
    id: 'notify',
    summary: 'Send an SMS or an e-mail',
    description: `Sends one message to each of 1 to ${notifySizes.to} recipients, in one of four modes: SMS with message, SMS with templateKey and variables, e-mail with html, e-mail with template and data. All recipients are tried, and the request succeeds only if providers accepted all messages. With async, the messages are stored and sent after the answer. otp and the OTP templates are rejected: use the OTP endpoints for codes.`,
    body: {
      schema: 'NotifyRequest',
      examples: {
        textSms: [
          'SMS, free text',
          {
            ...demo,
            channel: 'SMS',
            to: [somePhone],
            message: 'Your table is ready.',
            reference: 'table-7',
          },
        ],
        async: [
          'SMS, asynchronous',
          {
            ...demo,
            channel: 'SMS',
            to: [somePhone],
            message: 'Your table is ready.',
            async: true,
            reference: 'table-8',
          },
        ],
        templateSms: [
          'SMS, template',
          {
            ...demo,
            channel: 'SMS',
            to: [somePhone],
            templateKey: 'ORDER_DELIVERED',
            variables: { customerName: 'Pat', orderId: 'A-1042', deliveryDateTime: '2026-03-14T15:09Z' },
          },
        ],
        ...ownExamples(ownTemplates),
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
    },
    parameters: [idempotencyKey],
    answers: {
      200: answered('Notified', {
        template: ['Template SMS', { ...notified, channel: 'SMS', templateKey: 'ORDER_DELIVERED' }],
        other: ['Anything else', { ...notified, channel: 'EMAIL' }],
      }),
      202: success('NotificationAccepted', {
        message: 'Notification accepted',
        channel: 'SMS',
        recipients: 1,
      }),
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
      otp_template_not_supported: 'SMS: LOGIN_OTP and LOGIN_OTP_WITH_ID are only for the OTP endpoints.',
      invalid_template: 'SMS: the template does not exist.',
      unsupported_business: 'SMS: variables.businessName is not the brand of brandId.',
      missing_variable: 'A variable of the template, or the data of a placeholder, is missing.',
      rate_limited:
        'A limit of the application or the IP address is exhausted. With async: too many messages wait.',
      notification_failed:
        'At least one message was not accepted by a provider. recipients has the status of each.',
    },
    reasons: ['destination', 'field', 'app_minute', 'budget', 'queue', 'credentials'],
  })
}

const mostOwnExamples = 20

function ownExamples(ownTemplates: ReturnType<typeof enabledOwnTemplates>): Examples {
  const examples = ownTemplates.slice(0, mostOwnExamples).map(({ slug, template: { key, variables } }) => {
    const values = Object.fromEntries(variables.map((rule) => [rule.name, sampleOf(rule)]))
    const body = {
      ...demo,
      brandId: slug,
      channel: 'SMS',
      to: [somePhone],
      templateKey: key,
      variables: values,
    }
    return [`${slug}.${key}`, [`SMS, template ${key} of ${slug}`, body]] as const
  })
  return Object.fromEntries(examples)
}

const statusOperation = operation({
  tag: 'Notifications',
  id: 'getMessageStatus',
  summary: 'Get the status of messages',
  description:
    'What became of the message to each recipient of an earlier send, resend or notify of this application. At most 60 requests a minute, which do not count for the other endpoints. The limit of the application does not apply.',
  body: {
    schema: 'MessageStatusRequest',
    examples: { request: ['A request', { ...demoApp, messageRequestId: someRequestId }] },
  },
  answers: {
    200: success('MessageStatus', {
      message: 'Message status retrieved',
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
})

const catalogOperation = operation({
  tag: 'Onboarding',
  id: 'getCatalog',
  summary: 'Channels, templates and limits',
  description: 'The channels, the variables of each template, and the limits of this server.',
  answers: {
    200: success('Catalog', {
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
      limits: {
        globalPerMinute: 10,
        phonePerMinute: 3,
        phonePerHour: 10,
        smsCooldownSeconds: 30,
        emailPerHour: 30,
        otpTtlSeconds: 300,
        otpMaxAttempts: 3,
        otpLength: 6,
        notifyRecipients: notifySizes.to,
        messageCharacters: notifySizes.message,
        subjectCharacters: notifySizes.subject,
        htmlCharacters: notifySizes.html,
        templateCharacters: notifySizes.template,
      },
    }),
  },
  failures: anyGet,
})

const requestOperation = operation({
  tag: 'Onboarding',
  id: 'requestIntegration',
  summary: 'Request access',
  description:
    'Stores a request for the operator, who decides on it and sends the credentials by other means. At most 5 per hour for an IP address.',
  body: {
    schema: 'IntegrationRequest',
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
    201: success('IntegrationReceived', {
      message: 'Integration request received',
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
})

const brandsOperation = operation({
  tag: 'Onboarding',
  id: 'listBrands',
  summary: 'Active brands',
  description: 'The brands that can send messages.',
  answers: { 200: success('Brands', { brands: [{ brandId: 'acme', displayName: 'Acme' }] }) },
  failures: anyGet,
})

const rootOperation = operation({
  tag: 'Operation',
  id: 'getRoot',
  summary: 'Version and links',
  description: 'Returns an HTML page with the same links to a browser (`Accept: text/html`).',
  answers: {
    200: success('Root', {
      service: 'otpost',
      version: '0.1.0',
      links: {
        docs: '/docs',
        openapi: '/openapi.json',
        health: '/health',
        outbox: '/outbox',
        admin: '/admin',
      },
    }),
  },
  failures: anyCall,
})

const healthOf = (status: string) => ({ status, version: '0.1.0', checks: { database: status } })

const healthOperation = operation({
  tag: 'Operation',
  id: 'getHealth',
  summary: 'Whether the service works',
  description: 'For load balancers and monitoring. No credentials, and no limit counts it.',
  answers: {
    200: answered('Health', { ok: ['Works', healthOf('ok')] }),
    503: answered('Unhealthy', { unavailable: ['Does not work', healthOf('unavailable')] }),
  },
  failures: anyCall,
})

const liveOperation = operation({
  tag: 'Operation',
  id: 'getLiveness',
  summary: 'Whether the process answers',
  description:
    'For a supervisor that restarts a process that hangs. It does not check the database, since a restart does not repair it.',
  answers: {
    200: answered('Live', { ok: ['Answers', { status: 'ok' }] }),
  },
  failures: anyCall,
})

const readyOperation = operation({
  tag: 'Operation',
  id: 'getReadiness',
  summary: 'Whether the server accepts requests',
  description:
    'For load balancers. Returns 503 when a shutdown begins. The server still serves requests for SHUTDOWN_DELAY_SECONDS.',
  answers: {
    200: answered('Ready', { ready: ['Ready', { status: 'ready' }] }),
    503: answered('NotReady', {
      draining: ['Stopping', { status: 'draining' }],
      unavailable: ['Does not work', { status: 'unavailable' }],
    }),
  },
  failures: anyCall,
})

const metricsOperation = operation({
  tag: 'Operation',
  id: 'getMetrics',
  summary: 'Metrics in the Prometheus text format',
  description:
    'Served on this port if METRICS_TOKEN is set. With METRICS_PORT, that port serves the same metrics, and requires the token only if METRICS_TOKEN is set.',
  security: [{ metricsToken: [] }],
  answers: {
    200: {
      text: 'text/plain',
      description: 'The metrics.',
      example: '# HELP otpost_build_info The running version.\n',
    },
  },
  failures: {
    unauthorized: 'The request does not have METRICS_TOKEN as Authorization: Bearer.',
    route_not_found: 'METRICS_TOKEN is not set, so this port serves no metrics.',
    ...anyCall,
  },
})

const outboxOperation = operation({
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
    200: success('OutboxMessages', {
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
})

// --- Events ---------------------------------------------------------------------------------------------------------

const eventSchemas = {
  'message.delivered': 'MessageDeliveredEvent',
  'message.failed': 'MessageFailedEvent',
  'otp.verified': 'OtpVerifiedEvent',
  'otp.locked': 'OtpLockedEvent',
} as const satisfies Readonly<Record<EventType, SchemaName>>

const eventExamples = {
  'message.delivered': { status: 'delivered', reason: null },
  'message.failed': { status: 'failed', reason: '30003' },
  'otp.verified': { status: null, reason: null },
  'otp.locked': { status: null, reason: null },
} as const satisfies Readonly<Record<EventType, object>>

function eventOperation(type: EventType) {
  const name = eventSchemas[type]
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
      ...eventExamples[type],
    },
  }
  return {
    tags: ['Events'],
    operationId: `on${name}`,
    summary: type,
    description: `${schemas[name].description} Signed as Standard Webhooks define, with the secret that \`otpost app webhook\` prints. An answer other than 2xx within 20 seconds is a failure. otpost sends a failed event again, with the same webhook-id.`,
    parameters: [
      header('webhook-id', { type: 'string' }, 'The id of the event, the same at each try.'),
      header(
        'webhook-timestamp',
        { type: 'string', pattern: '^[0-9]+$' },
        'Seconds since 1970, of this try.',
      ),
      header(
        'webhook-signature',
        { type: 'string' },
        '`v1,` and the HMAC-SHA-256 of id, timestamp and body, in base64.',
      ),
    ],
    requestBody: { required: true, content: json(ref(name), { event: [type, value] }) },
    responses: { '2XX': { description: 'Your application has the event.' } },
  }
}

// --- How an operation is put together -------------------------------------------------------------------------------

type Examples = Readonly<Record<string, readonly [summary: string, value: object]>>

interface Success {
  readonly schema: SchemaName
  readonly examples: Examples
}

interface TextSuccess {
  readonly text: string
  readonly description: string
  readonly example: string
}

interface Operation {
  readonly tag: string
  readonly id: string
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly Parameter[]
  readonly body?: { readonly schema: SchemaName; readonly examples: Examples }
  readonly security?: readonly Named<readonly string[]>[]
  readonly answers: Readonly<Record<number, Success | TextSuccess>>
  readonly failures: Failures
  /** Of `rate_limited` and `validation_error`. */
  readonly reasons?: readonly FailureReason[]
}

function success(schema: SchemaName, fields: object): Success {
  return answered(schema, { success: ['Success', { success: true, ...fields }] })
}

function answered(schema: SchemaName, examples: Examples): Success {
  const completed = Object.entries(examples).map(([name, [summary, value]]) => {
    return [name, [summary, { ...value, requestId: someRequestId }]] as const
  })
  return { schema, examples: Object.fromEntries(completed) }
}

function operation({ tag, id, summary, description, answers, failures, ...optional }: Operation) {
  const { parameters, body, security, reasons = [] } = optional
  const failed = failureResponses(failures, reasons, security !== undefined)
  const replays: Record<string, string> = parameters?.includes(idempotencyKey)
    ? { 'Idempotency-Replayed': 'IdempotencyReplayed' }
    : {}
  return {
    tags: [tag],
    operationId: id,
    summary,
    description,
    ...(security ? { security } : {}),
    ...(parameters ? { parameters } : {}),
    ...(body ? { requestBody: { required: true, content: json(ref(body.schema), body.examples) } } : {}),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [status, responseOf(answer, replays)]),
      ),
      ...failed,
      // Every operation can have it. Only these have no other status 4xx, which linters require.
      ...(Object.keys(failed).some((status) => status.startsWith('4')) ? {} : { 431: tooManyHeaders }),
    },
  }
}

function responseOf(answer: Success | TextSuccess, headers: Readonly<Record<string, string>>) {
  if ('schema' in answer) {
    const { schema, examples } = answer
    return response(schemas[schema].description ?? '', json(ref(schema), examples), headers)
  }
  const { text, description, example } = answer
  return response(description, { [text]: { schema: { type: 'string' }, example } })
}

function failureResponses(failures: Failures, reasons: readonly FailureReason[], hasToken: boolean) {
  const byStatus = Object.groupBy(
    (Object.keys(failureMessages) as FailureKind[]).flatMap((kind) => {
      const when = failures[kind]
      const own = reasons.filter((reason) => kindOf(reason) === kind)
      return when === undefined ? [] : [{ when, own, kind, ...answerOf(kind) }]
    }),
    ({ status }) => status,
  )
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, alike = []]) => {
      const description = alike.map(({ code, when }) => `\`${code}\`: ${when}`).join('\n\n')
      const examples = alike.flatMap(({ kind, code, envelope, own }) => [
        [code, [code, envelope]] as const,
        ...own.map((reason) => {
          const field = reason === 'field' ? 'phone' : undefined
          return [reason, [`${code}, ${reason}`, answerOf(kind, { reason, field }).envelope]] as const
        }),
      ])
      const reasonsOfStatus = alike.flatMap(({ own }) => own)
      const codes = alike.map(({ code }) => code)
      const headers: Record<string, string> = {}
      if (status === '429') {
        headers['Retry-After'] = codes.includes('max_attempts') ? 'RetryAfterOrExpiry' : 'RetryAfter'
      }
      if (status === '409' || status === '503') headers['Retry-After'] = 'RetryAfterRequest'
      if (codes.includes('notification_failed') || codes.includes('mismatch')) {
        headers['Idempotency-Replayed'] = 'IdempotencyReplayed'
      }
      if (status === '401' && hasToken) headers['WWW-Authenticate'] = 'WwwAuthenticate'
      return [
        status,
        response(description, json(errorOf(codes, reasonsOfStatus), Object.fromEntries(examples)), headers),
      ]
    }),
  )
}

function kindOf(reason: FailureReason): FailureKind {
  return reason === 'field' || reason === 'destination' ? 'validation_error' : 'rate_limited'
}

/** Uses the real error handler. */
function answerOf(
  kind: FailureKind,
  details: FailureDetails = kind === 'notification_failed' ? notificationFailure : {},
) {
  const { status, envelope } = errorAnswer(new Failure(kind, undefined, details), someRequestId)
  return { status, code: envelope.error, envelope }
}

function allCodes(): string[] {
  return [...new Set((Object.keys(failureMessages) as FailureKind[]).map((kind) => answerOf(kind).code))]
}

/** @param headers the component of each header */
function response(description: string, content: object, headers: Readonly<Record<string, string>> = {}) {
  const all = Object.entries({ 'X-Request-Id': 'RequestId', ...headers })
  return {
    description,
    headers: Object.fromEntries(
      all.map(([name, component]) => [name, { $ref: `#/components/headers/${component}` }]),
    ),
    content,
  }
}

function json(schema: object, examples: Examples) {
  return {
    'application/json': {
      schema,
      examples: Object.fromEntries(
        Object.entries(examples).map(([name, [summary, value]]) => [name, { summary, value }]),
      ),
    },
  }
}

function retryAfter(description: string) {
  return { description, required: true, schema: { type: 'integer', minimum: 1 } }
}

function bearer(description: string) {
  return { type: 'http', scheme: 'bearer', description }
}

function header(name: string, schema: object, description: string) {
  return { name, in: 'header', required: true, description, schema }
}

function query(name: string, schema: object, description: string) {
  return { name, in: 'query', description, schema }
}
