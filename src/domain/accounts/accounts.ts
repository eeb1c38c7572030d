import { instant, type Listing } from '../ground/listing.ts'
import type { Role } from '../ground/role.ts'
import type { EpochMs } from '../ground/time.ts'

export interface Passkey {
  /** In base64url. */
  readonly credentialId: string
  readonly operatorId: string
  readonly name: string
  /** COSE, in base64url. */
  readonly publicKey: string
  readonly signCount: number
  /** Comma-separated. */
  readonly transports: string
  readonly createdAt: EpochMs
  /** A challenge that is not newer cannot be used. 0: not used yet. */
  readonly usedAt: EpochMs
}

export interface AccountRow {
  readonly id: string
  readonly email: string
  readonly role: Role
  readonly passwordHash: string | null
  /** Encrypted with the secret key. */
  readonly totpSecret: string | null
  /** RFC 6238: the time step of the last accepted code. */
  readonly totpStep: number
  readonly createdAt: EpochMs
  readonly signedInAt: EpochMs | null
  /** Since the last sign-in. */
  readonly failedSignIns: number
}

/** Of one person. */
export interface Account extends AccountRow {
  readonly passkeys: readonly Passkey[]
  /** SHA-256 of each unused one. */
  readonly recoveryCodes: readonly string[]
}

/** Whether it can sign in: with a passkey, or with a password and an authenticator app. */
export function isSetUp({ passkeys, passwordHash, totpSecret }: Account): boolean {
  return passkeys.length > 0 || (passwordHash !== null && totpSecret !== null)
}

export const accountListing = {
  email: { title: 'E-mail address', value: ({ email }) => email },
  role: { title: 'Role', value: ({ role }) => role },
  status: { title: 'Status', value: (account) => (isSetUp(account) ? 'active' : 'invited') },
  passkeys: { title: 'Passkeys', value: ({ passkeys }) => passkeys.length },
  hasApp: { title: 'App', value: ({ totpSecret }) => totpSecret !== null },
  signedInAt: { title: 'Last sign-in', value: ({ signedInAt }) => instant(signedInAt) },
} satisfies Listing<Account>
