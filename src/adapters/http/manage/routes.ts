import { type AnyElysia, Elysia } from 'elysia'
import type { Actor } from '../../../domain/ground/audit.ts'
import { Failure, invalidField } from '../../../domain/ground/failures.ts'
import { OperatorError } from '../../../domain/ground/operator-error.ts'
import { hasRole } from '../../../domain/ground/role.ts'
import type { Clock } from '../../../domain/ground/time.ts'
import type { CredentialPorts } from '../../../domain/limits/credentials.ts'
import { claim } from '../../../domain/limits/gates.ts'
import { manageLimit } from '../../../domain/limits/limits.ts'
import { actionOf } from '../../../domain/operator/actions.ts'
import type { StoredPorts } from '../../../domain/operator/dry-run.ts'
import { enteredIn, FieldFault } from '../../../domain/operator/fields.ts'
import { type ReadPorts, reads } from '../../../domain/operator/reads.ts'
import type { ReadPolicy } from '../../../domain/policy/policy.ts'
import type { ManageToken } from '../../../domain/policy/policy-store.ts'
import type { RequestContext } from '../../../domain/request/request-context.ts'
import { parseAuthorization } from '../authorization.ts'
import { jsonOf } from '../body.ts'
import { manageApi, managePath } from './description.ts'

export interface ManagePorts extends Omit<CredentialPorts, 'apps'> {
  readonly policy: ReadPolicy
  readonly now: Clock
  /** As stored with a token. */
  readonly sha256: (token: string) => string
  readonly actionPorts: (actor: Actor, requestId: string) => ReadPorts & StoredPorts
  readonly version: string
}

/** The management API (design D57): declared actions and reads, with a token. */
export function manageRoutes(ports: ManagePorts, contextOf: (request: Request) => RequestContext): AnyElysia {
  return new Elysia({ strictPath: true, normalize: false })
    .get(managePath, async ({ request }) => {
      await tokenOf(ports, contextOf(request), request)
      return manageApi(ports.version)
    })
    .post(`${managePath}/:action`, ({ request, params, body }) =>
      answer(request, params.action, body as Uint8Array),
    )

  async function answer(request: Request, path: string, bytes: Uint8Array): Promise<object> {
    const context = contextOf(request)
    const token = await tokenOf(ports, context, request)
    const body = bytes.length === 0 ? {} : jsonOf(bytes)
    const name = path.replaceAll('.', ' ')
    const { requestId } = context
    const own = ports.actionPorts({ by: 'token', name: token.name }, requestId)
    try {
      const read = reads.find((each) => each.name === name)
      if (read) return { success: true, ...(await read.run(own, enteredIn(body, read.fields))), requestId }
      const action = actionOf(name)
      if (!action)
        throw new Failure('route_not_found', `No action ${path}. GET /api/manage lists the actions.`)
      if (!hasRole(token.role, action.role))
        throw new Failure(
          'forbidden',
          `This requires a token with the role ${action.role}; this one has ${token.role}.`,
        )
      const { text, secret, row, warnings = [] } = await action.perform(own, enteredIn(body, action.fields))
      const words = warnings.map((each) => each.text)
      return { success: true, message: text, secret, row, warnings: words, requestId }
    } catch (error) {
      if (error instanceof FieldFault) throw invalidField(error.field, error.fault)
      if (!(error instanceof OperatorError)) throw error
      throw new Failure('validation_error', error.message)
    }
  }
}

/** @throws Failure unauthorized, forbidden or rate_limited */
async function tokenOf(
  ports: ManagePorts,
  context: RequestContext,
  { headers }: Request,
): Promise<ManageToken> {
  const given = parseAuthorization(headers.get('authorization'))
  const policy = await ports.policy()
  const token =
    given && given !== 'malformed' && given.scheme === 'bearer'
      ? policy.manageTokens.get(ports.sha256(given.token))
      : undefined
  const { now } = ports
  if (!token || (token.expiresAt !== null && token.expiresAt <= now())) {
    await ports.rejections.count(ports, context)
    throw given === undefined || given === 'malformed'
      ? new Failure(
          'unauthorized',
          'Send `Authorization: Bearer TOKEN`. `otpost admin token create` prints a token.',
        )
      : new Failure('forbidden', 'The token is unknown, revoked or expired.')
  }
  await claim(ports, context, [manageLimit(token.name)])
  return token
}
