import type { Action } from '../../../domain/operator/action.ts'
import { actions } from '../../../domain/operator/actions.ts'
import { bodyOf } from '../../../domain/operator/json-schema.ts'
import { reads } from '../../../domain/operator/reads.ts'

/** The management API as OpenAPI, from the declarations of actions and reads. */
export function manageApi(version: string) {
  const operations = [...reads.map((read) => ({ ...read, role: 'viewer' as const })), ...actions]
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
      operations.map((operation) => [manageUrl(operation.name), { post: manageOperation(operation) }]),
    ),
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  }
}

export function manageOperation({
  name,
  does,
  role,
  fields,
}: Pick<Action<never>, 'name' | 'does' | 'role' | 'fields'>) {
  return {
    operationId: name.replaceAll(/[ -](\w)/g, (_, letter: string) => letter.toUpperCase()),
    summary: does,
    description: `Requires a token with the role ${role} or a higher one.`,
    requestBody: { content: { 'application/json': { schema: bodyOf(fields) } } },
    responses: {
      200: { description: 'It succeeded.', content: { 'application/json': { schema: { type: 'object' } } } },
      default: { description: 'The error envelope, as of all endpoints.' },
    },
  }
}

export const managePath = '/api/manage'

export function manageUrl(name: string): string {
  return `${managePath}/${name.replaceAll(' ', '.')}`
}
