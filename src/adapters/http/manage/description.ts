import { actions } from '../../../domain/operator/actions.ts'
import type { Field, Fields } from '../../../domain/operator/fields.ts'
import { reads } from '../../../domain/operator/reads.ts'

/** The management API as OpenAPI, from the declarations of actions and reads. */
export function manageApi(version: string) {
  const operations = [
    ...reads.map((read) => ({ ...read, role: 'viewer', answer: 'The rows.' })),
    ...actions.map((action) => ({ ...action, answer: 'The change and its audit entry are stored.' })),
  ]
  return {
    openapi: '3.1.1',
    info: {
      title: 'otpost management API',
      version,
      description: 'What operators do and read, with a token of `otpost admin token create`.',
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths: Object.fromEntries(
      operations.map(({ name, does, role, fields, answer }) => [
        manageUrl(name),
        {
          post: {
            operationId: name.replaceAll(/[ -](\w)/g, (_, letter: string) => letter.toUpperCase()),
            summary: does,
            description: `Requires a token with the role ${role} or a higher one.`,
            requestBody: { content: { 'application/json': { schema: bodyOf(fields) } } },
            responses: {
              200: { description: answer, content: { 'application/json': { schema: { type: 'object' } } } },
              default: { description: 'The error envelope, as of all endpoints.' },
            },
          },
        },
      ]),
    ),
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  }
}

export const managePath = '/api/manage'

export function manageUrl(name: string): string {
  return `${managePath}/${name.replaceAll(' ', '.')}`
}

export function bodyOf(fields: Fields) {
  const own = Object.entries(fields).filter(([, { hasNoOption }]) => !hasNoOption)
  return {
    type: 'object',
    properties: Object.fromEntries(own.map(([name, field]) => [name, schemaOf(field)])),
    required: own.filter(([, { isRequired }]) => isRequired).map(([name]) => name),
    additionalProperties: false,
  }
}

function schemaOf({ kind, help, choices, byDefault, max }: Field) {
  const values = choices && { enum: Object.keys(choices) }
  if (kind === 'flag') return { type: 'boolean', description: help }
  if (kind === 'list') return { type: 'array', items: { type: 'string', ...values }, description: help }
  const given = byDefault === undefined ? {} : { default: byDefault }
  return { type: 'string', description: help, ...values, ...given, ...(max && { maxLength: max }) }
}
