import { type Static, Type } from '@sinclair/typebox'

// The format of a provider file (docs/providers/files.md). Keys that it does not name are errors.

const strict = { additionalProperties: false }
const text = Type.String({ maxLength: 2000 })
const scalar = Type.Union([text, Type.Number(), Type.Boolean()], {
  description: 'a text, a number or a flag',
})
const fields = Type.Record(Type.String({ minLength: 1, maxLength: 100 }), scalar)
const json = Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Array(Type.Unknown())], {
  description: 'an object or a list, without quotes around it',
})
const pathPattern = /\$(\.[A-Za-z_][\w-]*|\['[^']+'\]|\[\d+\])*/.source
const path = Type.String({
  pattern: `^${pathPattern}$`,
  description: "a path such as $.messages[0].id or $['error-code']",
})
const reportValue = Type.String({
  pattern: `^(${pathPattern}|[^$'][^']{0,99})$`,
  description: "the name of a field, without ', or a path such as $.status",
})
const statusClass = Type.Union([
  Type.Integer({ minimum: 100, maximum: 599 }),
  Type.String({ pattern: '^[1-5]xx$' }),
])
const statuses = Type.Union([statusClass, Type.Array(statusClass, { minItems: 1 })], {
  description: 'a status such as 202, a class such as "4xx", or a list of these',
})
const values = Type.Array(scalar, { minItems: 1 })
const condition = {
  status: Type.Optional(statuses),
  json: Type.Optional(path),
  equals: Type.Optional(values),
}

/** One of some words. */
function oneOf<const Word extends string>(...words: readonly Word[]) {
  const description = `one of ${words.join(', ')}`
  return Type.Unsafe<Word>(Type.String({ enum: words, pattern: `^(${words.join('|')})$`, description }))
}

const failures = ['recipient', 'account', 'retryable', 'unknown'] as const

const body = {
  query: Type.Optional(fields),
  json: Type.Optional(json),
  form: Type.Optional(fields),
}

export const fileSchema = Type.Object(
  {
    provider: Type.String({
      pattern: '^[a-z][a-z0-9-]{1,30}$',
      description: 'a name of 2 to 31 lower-case letters, digits and hyphens',
    }),
    docs: Type.String({ pattern: '^https?://\\S+$', description: 'the URL of the documentation' }),
    /** The name of the gateway, and what its page says beside the settings. */
    name: Type.Optional(text),
    notes: Type.Optional(Type.Array(text)),
    settings: Type.Record(
      Type.String({ pattern: '^[A-Z][A-Z0-9_]{1,63}$' }),
      Type.Object(
        {
          secret: Type.Optional(Type.Boolean()),
          default: Type.Optional(text),
          meaning: Type.Optional(text),
        },
        strict,
      ),
      strict,
    ),
    from: Type.Optional(text),
    to: Type.Optional(oneOf('plus', 'digits')),
    send: Type.Object(
      {
        method: oneOf('POST', 'GET', 'PUT'),
        url: text,
        headers: Type.Optional(fields),
        basic: Type.Optional(Type.Tuple([text, text])),
        bearer: Type.Optional(text),
        ...body,
      },
      strict,
    ),
    template: Type.Optional(Type.Object(body, strict)),
    accepted: Type.Object({ ...condition, id: Type.Optional(path) }, strict),
    errors: Type.Optional(Type.Array(Type.Object({ ...condition, outcome: oneOf(...failures) }, strict))),
    reports: Type.Optional(
      Type.Object(
        {
          in: oneOf('form', 'json', 'query'),
          id: Type.Optional(reportValue),
          status: reportValue,
          reason: Type.Optional(reportValue),
          delivered: values,
          failed: values,
        },
        strict,
      ),
    ),
    vectors: Type.Array(
      Type.Object(
        {
          settings: Type.Optional(Type.Record(Type.String(), text)),
          message: Type.Record(Type.String(), Type.Unknown()),
          template: Type.Optional(Type.Union([Type.Boolean(), Type.Record(Type.String(), text)])),
          request: Type.Object(
            {
              method: text,
              url: text,
              query: Type.Optional(fields),
              headers: Type.Optional(Type.Record(Type.String(), text)),
              json: Type.Optional(json),
              form: Type.Optional(fields),
            },
            strict,
          ),
          answer: Type.Union(
            [
              Type.Literal('timeout'),
              Type.Object(
                {
                  status: Type.Integer({ minimum: 100, maximum: 599 }),
                  json: Type.Optional(Type.Unknown()),
                  body: Type.Optional(text),
                },
                strict,
              ),
            ],
            { description: 'a status with json or body, or "timeout"' },
          ),
          outcome: oneOf('accepted', ...failures),
          id: Type.Optional(text),
        },
        strict,
      ),
    ),
  },
  strict,
)

export type ProviderFile = Static<typeof fileSchema>
export type Vector = ProviderFile['vectors'][number]
export type FileOutcome = Vector['outcome']
