import { utc } from '../ground/format.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import { roles } from '../ground/role.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { action, type Group } from './action.ts'
import { durationIn, field, oneOf, optional, text } from './fields.ts'

interface TokenPorts extends PolicyPorts {
  readonly secrets: Pick<Secrets, 'newApiKey'>
}

export const tokenGroup: Group = {
  name: 'admin token',
  does: 'manage the tokens of the management API',
  entries: 'tokens of the management API',
  target: 'token',
}

/** Design D57. */
export const tokenCreate = action(tokenGroup, 'create', {
  role: 'owner',
  isSensitive: true,
  does: 'create a token of the management API, and print it',
  note: 'otpost prints the token only once, and stores its hash. The audit log names the token with each change.',
  fields: {
    name: field(nameIn, { label: 'Name', help: 'the name of the token in the audit log', max: 63 }),
    role: field(oneOf('role', roles), {
      label: 'Role',
      as: '--role <role>',
      help: `what the token may do: ${roles.join(', ')}, as accounts of the console`,
    }),
    duration: optional((text) => durationIn(text, 1), {
      label: 'Valid for',
      as: '--for <duration>',
      help: 'how long the token is valid, such as 30m, 12h or 90d; without it, until it is revoked',
    }),
  },
  audit: { 'token.created': 'Token created' },
  form: { path: 'operators/tokens' },
  run: async (ports: TokenPorts, { name, role, duration }) => {
    const { key, sha256 } = ports.secrets.newApiKey()
    const createdAt = ports.now()
    const expiresAt = duration === undefined ? null : createdAt + duration
    const token = { name, sha256, role, createdAt, expiresAt }
    await ports.policy.change({ actor: ports.actor, now: createdAt }, ({ manageTokens }) => {
      const { expired = [], valid = [] } = Object.groupBy(manageTokens, ({ expiresAt }) =>
        expiresAt !== null && expiresAt <= createdAt ? 'expired' : 'valid',
      )
      if (valid.some((each) => each.name === name))
        throw new OperatorError(`There is already a token ${name}. Revoke it first, or choose another name.`)
      if (valid.length >= mostTokens)
        throw new OperatorError(`There are already ${mostTokens} tokens. Revoke one first.`)
      const details = { role, until: expiresAt === null ? 'revoked' : utc(expiresAt) }
      const entry = { action: 'token.created', target: name, details }
      return { removeManageTokens: expired, saveManageTokens: [token], entry }
    })
    return key
  },
  said: (key, { name }) => ({ text: `Token ${name} of the management API`, secret: key }),
})

export const tokenRevoke = action(tokenGroup, 'revoke', {
  role: 'owner',
  isSensitive: false,
  does: 'revoke a token of the management API',
  fields: { name: field(text, { label: 'Name', help: 'the name of the token' }) },
  audit: { 'token.revoked': 'Token revoked' },
  form: { path: 'operators/tokens/revoke' },
  run: async (ports: PolicyPorts, { name }) => {
    await ports.policy.change({ actor: ports.actor, now: ports.now() }, ({ manageTokens }) => {
      const token = manageTokens.find((each) => each.name === name)
      if (!token) throw new OperatorError(`There is no token ${name}.`)
      const entry = { action: 'token.revoked', target: name, details: { role: token.role } }
      return { removeManageTokens: [token], entry }
    })
  },
  said: (_, { name }) => `Token ${name} is revoked.`,
})

export const tokenActions = [tokenCreate, tokenRevoke] as const

const mostTokens = 100

function nameIn(text: string): string {
  if (/^[a-z0-9][a-z0-9-]{0,62}$/.test(text)) return text
  throw new InvalidInput('The name must be 1 to 63 lower-case letters, digits and hyphens.')
}
