import type { Role } from '../../domain/accounts/accounts.ts'
import { isOtpKey } from '../../domain/texts/otp-texts.ts'

/** Who may submit a form. */
export interface FormAccess {
  readonly role: Role
  /**
   * Keys, money, accounts, texts of codes, and what lets SMS through: requires a password, code, passkey or link of the last
   * 15 minutes. What stops an attack does not.
   */
  readonly isSensitive?: (form: URLSearchParams) => boolean
}

const always = () => true

const viewer: FormAccess = { role: 'viewer' }
const ownSignIn: FormAccess = { role: 'viewer', isSensitive: always }
const operator: FormAccess = { role: 'operator' }
const sensitive: FormAccess = { role: 'operator', isSensitive: always }
const unlessBlock: FormAccess = {
  role: 'operator',
  isSensitive: (form) => form.get('action') !== 'block',
}
const ifOfCode: FormAccess = {
  role: 'operator',
  isSensitive: (form) => isOtpKey(form.get('templateKey')?.trim() ?? ''),
}
const owner: FormAccess = { role: 'owner', isSensitive: always }

const byPath: Readonly<Record<string, FormAccess>> = {
  '/admin/search': viewer,
  '/admin/preview': viewer,
  '/admin/brands/:id/texts': ifOfCode,
  '/admin/brands/:id/texts/open': viewer,
  '/admin/brands/:id/texts/preview': viewer,
  '/admin/brands/:id/texts/mail': viewer,
  '/admin/destinations': unlessBlock,
  '/admin/destinations/check': viewer,
  '/admin/destinations/remove': sensitive,
  '/admin/guard': unlessBlock,
  '/admin/guard/remove': sensitive,
  '/admin/test': sensitive,
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
  '/admin/review-numbers': owner,
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
