import type { Role } from '../../domain/operator/accounts.ts'

/** Who may submit a form. */
export interface FormAccess {
  readonly role: Role
  /** Keys, money and accounts: requires a password, code, passkey or link of the last 15 minutes. */
  readonly isSensitive?: boolean
}

const viewer: FormAccess = { role: 'viewer' }
const ownSignIn: FormAccess = { role: 'viewer', isSensitive: true }
const operator: FormAccess = { role: 'operator' }
const sensitive: FormAccess = { role: 'operator', isSensitive: true }
const owner: FormAccess = { role: 'owner', isSensitive: true }

const byPath: Readonly<Record<string, FormAccess>> = {
  '/admin/search': viewer,
  '/admin/preview': viewer,
  '/admin/brands/:id/texts/open': viewer,
  '/admin/brands/:id/texts/preview': viewer,
  '/admin/brands/:id/texts/mail': viewer,
  '/admin/destinations/check': viewer,
  '/admin/logout': viewer,
  '/admin/sessions/:id/revoke': ownSignIn,
  '/admin/account/password': ownSignIn,
  '/admin/account/app': ownSignIn,
  '/admin/account/recovery-codes': ownSignIn,
  '/admin/account/passkey': ownSignIn,
  '/admin/account/passkey/remove': ownSignIn,
  '/admin/operators': owner,
  '/admin/operators/role': owner,
  '/admin/operators/reset': owner,
  '/admin/operators/remove': owner,
  '/admin/apps/scope': sensitive,
  '/admin/apps/issue': sensitive,
  '/admin/apps/rotate': sensitive,
  '/admin/apps/revoke-key': sensitive,
  '/admin/apps/revoke': sensitive,
  '/admin/apps/webhook': sensitive,
  '/admin/apps/webhook/off': sensitive,
  '/admin/requests/:id/approve': sensitive,
  '/admin/review-numbers': sensitive,
  '/admin/money': sensitive,
  '/admin/money/lift': sensitive,
  '/admin/money/remove': sensitive,
}

/**
 * The others, such as those that stop an attack, need only the role.
 *
 * @param path of a form, or of its route
 */
export function accessTo(path: string): FormAccess {
  return byPath[path.replace(/^(\/admin\/(?:brands|requests|sessions))\/[^/]+\//, '$1/:id/')] ?? operator
}

export const pathsWithAccess = Object.keys(byPath)
