import { Kind, type TSchema, Type } from '@sinclair/typebox'
import { docsAt } from '../../domain/ground/docs.ts'
import {
  Failure,
  type FailureDetails,
  type FailureKind,
  type FailureReason,
  failureMessages,
  failureReasons,
} from '../../domain/ground/failures.ts'
import type { enabledOwnTemplates } from '../../domain/texts/notify-texts.ts'
import { maxBodyBytes, maxCodeBodyBytes } from './body.ts'
import type { Named } from './docs/description.ts'
import {
  type Content,
  type EndpointOperation,
  type Examples,
  idempotencyKey,
  type TextContent,
} from './endpoint.ts'
import { operations } from './endpoints/index.ts'
import { errorAnswer } from './errors.ts'
import { eventOperations } from './events.ts'
import { channel, recipientIndex, someRequestId } from './fields.ts'
import { answer, oneOf } from './schema.ts'

/**
 * The API description, from the declarations of the endpoints. Its schemas have no references.
 * @param ownTemplates of the brands of this server
 */
export function openApi(
  version: string,
  withOutbox: boolean,
  ownTemplates: ReturnType<typeof enabledOwnTemplates> = [],
) {
  const described = operations.filter(({ tag }) => withOutbox || tag !== 'Development')
  const paths = described.map(({ bodyWith, ...operation }) => {
    const own = bodyWith ? { ...operation, body: bodyWith(ownTemplates) } : operation
    return [own.path, { [own.method.toLowerCase()]: operationOf(own) }] as const
  })
  const webhooks = eventOperations.map(({ type, id, description, parameters, body }) => {
    const event = {
      tags: ['Events'],
      operationId: id,
      summary: type,
      description,
      parameters,
      requestBody: { required: true, content: json(body.schema, body.examples) },
      responses: { '2XX': { description: 'Your application has the event.' } },
    }
    return [type, { post: event }] as const
  })
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
    security: [],
    tags: [
      { name: 'OTP', description: 'Send, resend and verify codes of six digits.' },
      { name: 'Notifications', description: 'Transactional SMS and e-mail.' },
      { name: 'Onboarding', description: 'Catalog, active brands and access requests. No credentials.' },
      { name: 'Operation', description: 'Health, version and metrics, for operators.' },
      { name: 'Events', description: 'What otpost sends to the webhook of your application.' },
      ...(withOutbox ? [{ name: 'Development', description: 'Messages in the outbox.' }] : []),
    ],
    paths: Object.fromEntries(paths),
    webhooks: Object.fromEntries(webhooks),
    components: {
      schemas: { Error: anyError },
      headers,
      securitySchemes: {
        appBasic: http('basic', `${insteadOfBody}: appId as the user, the API key as the password.`),
        appKey: http('bearer', `${insteadOfBody}: the API key alone, unless it is one of APP_CREDENTIALS.`),
        ...(withOutbox ? { outboxToken: http('bearer', 'OUTBOX_TOKEN of the server, if it is set.') } : {}),
        metricsToken: http('bearer', 'METRICS_TOKEN of the server.'),
      },
    },
  }
}

const introduction = `
Applications call otpost from their servers. otpost sends a code of six digits by SMS or e-mail, verifies the code that the
recipient enters, and sends transactional SMS and e-mail.

**Bodies** are JSON objects sent as \`application/json\`, at most ${maxBodyBytes / 1024} KiB, on \`/otp/*\` ${maxCodeBodyBytes / 1024} KiB. An optional field that is
null counts as absent; fields that an endpoint does not know are ignored. Use HTTPS outside your own machine: requests have
credentials.

**Credentials.** \`appId\` and \`apiKey\` are fields of the body. The header \`Authorization\` can replace them: \`Basic\` with
appId as the user and the API key as the password, or \`Bearer\` with the API key alone, unless the key is one of
\`APP_CREDENTIALS\`. A body that has one of them too must have the same. OpenAPI cannot describe credentials in the body as
a security scheme: for them, the operations declare an empty one. The operations in the groups Onboarding and Operation need
no credentials, except \`/metrics\`.

**Applications and brands.** \`appId\` and \`apiKey\` identify the application; the operator creates them. \`brandId\`
selects the brand of a message. A brand has a display name, its own codes and its enabled templates. Only an active brand
can send. \`/otp/*\` and SMS on \`/notify\` require a brand; e-mail on \`/notify\` does not.

**Operators** have an API of their own, with tokens of theirs: \`GET /api/manage\` describes it, also with a token.
${docsAt('management.md')} has examples.

**Every response** has a \`requestId\`, in the body and as \`X-Request-Id\`. The public keys have it in the header only. Give it to the operator with a question: the log has it too.

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

const headers = {
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
  WwwAuthenticate: { description: 'With `unauthorized`: the scheme `Bearer`.', schema: { type: 'string' } },
}

function retryAfter(description: string) {
  return { description, required: true, schema: { type: 'integer', minimum: 1 } }
}

const insteadOfBody = 'Instead of `appId` and `apiKey` in the body'

function http(scheme: 'basic' | 'bearer', description: string) {
  return { type: 'http', scheme, description }
}

/** As JSON. A schema with a title becomes a component, to which the others refer. */
export function openApiText(description: ReturnType<typeof openApi>): string {
  const schemas: Record<string, object> = {}
  const referring = (whole: object): object => {
    const text = JSON.stringify(whole, (_, value) => {
      if (value === whole || !isNamed(value)) return value
      schemas[value.title] ??= referring(value)
      return { $ref: `#/components/schemas/${value.title}` }
    })
    return JSON.parse(text)
  }
  const { components, ...rest } = { ...description, ...referring(description) }
  return JSON.stringify({ ...rest, components: { ...components, schemas } })
}

function isNamed(value: unknown): value is { readonly title: string } {
  return typeof value === 'object' && value !== null && Kind in value && 'title' in value
}

function operationOf(operation: EndpointOperation) {
  const { tag, id, summary, description, parameters, security, body, answers } = operation
  const replays: Named<string> = parameters?.includes(idempotencyKey)
    ? { 'Idempotency-Replayed': 'IdempotencyReplayed' }
    : {}
  const answered = Object.entries(answers).map(([status, each]) => [status, successResponse(each, replays)])
  const failed = failureResponses(operation)
  return {
    tags: [tag],
    operationId: id,
    summary,
    description,
    ...(security ? { security } : {}),
    ...(parameters ? { parameters } : {}),
    ...(body ? { requestBody: { required: true, content: json(body.schema, body.examples) } } : {}),
    responses: {
      ...Object.fromEntries(answered),
      ...failed,
      // Every operation can have it. Only these have no other status 4xx, which linters require.
      ...(Object.keys(failed).some((status) => status.startsWith('4')) ? {} : { 431: tooManyHeaders }),
    },
  }
}

const tooManyHeaders = {
  description:
    'The request line and the headers have more than 16 KiB. The answer has no body and no requestId.',
}

function successResponse(answer: Content | TextContent, headers: Named<string>) {
  if ('schema' in answer) {
    const { schema, examples } = answer
    return response(schema.description ?? '', json(schema, examples), headers)
  }
  const { text, description, example } = answer
  return response(description, { [text]: { schema: { type: 'string' }, example } })
}

function failureResponses({ failures, reasons = [] }: EndpointOperation) {
  const kinds = (Object.keys(failureMessages) as FailureKind[]).flatMap((kind) => {
    const when = failures[kind]
    const own = reasons.filter((reason) => kindOf(reason) === kind)
    return when === undefined ? [] : [{ when, own, kind, ...answerOf(kind) }]
  })
  const byStatus = Object.entries(Object.groupBy(kinds, ({ status }) => status))
  return Object.fromEntries(
    byStatus.map(([status, alike = []]) => {
      const description = alike.map(({ code, when }) => `\`${code}\`: ${when}`).join('\n\n')
      const examples = alike.flatMap(({ kind, code, envelope, own }) => [
        [code, [code, envelope]] as const,
        ...own.map((reason) => {
          const field = reason === 'field' ? 'phone' : undefined
          return [reason, [`${code}, ${reason}`, answerOf(kind, { reason, field }).envelope]] as const
        }),
      ])
      const codes = alike.map(({ code }) => code)
      const schema = errorWith(
        codes,
        alike.flatMap(({ own }) => own),
      )
      const content = json(schema, Object.fromEntries(examples))
      return [status, response(description, content, failureHeaders(status, codes))]
    }),
  )
}

function failureHeaders(status: string, codes: readonly string[]): Named<string> {
  const limit = codes.includes('max_attempts') ? 'RetryAfterOrExpiry' : 'RetryAfter'
  return {
    ...(status === '429' ? { 'Retry-After': limit } : {}),
    ...(status === '409' || status === '503' ? { 'Retry-After': 'RetryAfterRequest' } : {}),
    ...(codes.includes('notification_failed') || codes.includes('mismatch')
      ? { 'Idempotency-Replayed': 'IdempotencyReplayed' }
      : {}),
    ...(codes.includes('unauthorized') ? { 'WWW-Authenticate': 'WwwAuthenticate' } : {}),
  }
}

function kindOf(reason: FailureReason): FailureKind {
  return reason === 'field' || reason === 'destination' ? 'validation_error' : 'rate_limited'
}

const notificationFailure = {
  channel: 'SMS',
  recipients: [
    { index: 0, status: 'accepted' },
    { index: 1, status: 'failed' },
  ],
} as const

/** Uses the real error handler. */
function answerOf(
  kind: FailureKind,
  details: FailureDetails = kind === 'notification_failed' ? notificationFailure : {},
) {
  const { status, envelope } = errorAnswer(new Failure(kind, undefined, details), someRequestId)
  return { status, code: envelope.error, envelope }
}

function json(schema: TSchema, examples: Examples) {
  const shown = Object.entries(examples).map(([name, [summary, value]]) => [name, { summary, value }])
  return { 'application/json': { schema, examples: Object.fromEntries(shown) } }
}

/** @param headers the component of each header */
function response(description: string, content: object, headers: Named<string> = {}) {
  const all = Object.entries({ 'X-Request-Id': 'RequestId', ...headers })
  return {
    description,
    headers: Object.fromEntries(
      all.map(([name, component]) => [name, { $ref: `#/components/headers/${component}` }]),
    ),
    content,
  }
}

// --- Schemas of errors ----------------------------------------------------------------------------------------------

const errorText = Type.String({ description: 'Text for people. Its wording may change: do not parse it.' })

const allCodes = new Set((Object.keys(failureMessages) as FailureKind[]).map((kind) => answerOf(kind).code))

const anyError = answer(
  'Error',
  {
    success: Type.Literal(false),
    error: oneOf([...allCodes], { description: 'The error code, for programs. Codes are stable.' }),
    message: errorText,
    reason: Type.Optional(
      oneOf(failureReasons, {
        description:
          'Which limit rejected the request (rate_limited), or why it is invalid (validation_error). Absent if none of them is the reason.',
      }),
    ),
    field: Type.Optional(
      Type.String({
        description:
          'With the reason field: the field at fault, as its path in the body, such as phone, variables.orderDate or to[3]. Elements count from 0.',
      }),
    ),
  },
  'The body of every error.',
)

const notificationFailed = answer(
  'NotificationFailed',
  {
    success: Type.Literal(false),
    error: Type.Literal('notification_failed'),
    message: errorText,
    channel,
    recipients: Type.Array(
      Type.Object({
        index: recipientIndex,
        status: oneOf(['accepted', 'failed', 'unknown'], {
          description: '`unknown`: the provider did not answer, and may or may not send the message.',
        }),
      }),
      { description: 'Every recipient, in the order of to.' },
    ),
  },
  'At least one message of a notification was not accepted by a provider.',
)

/** With one of these codes and, if it has a reason, one of these reasons. */
function errorWith(codes: readonly string[], reasons: readonly FailureReason[]): TSchema {
  const others = codes.filter((code) => code !== 'notification_failed')
  const reason = reasons.length === 0 ? {} : { reason: Type.Optional(oneOf(reasons)) }
  const plain = Type.Unsafe({ allOf: [anyError, Type.Object({ error: oneOf(others), ...reason })] })
  if (others.length === codes.length) return plain
  return others.length === 0 ? notificationFailed : Type.Union([notificationFailed, plain])
}
