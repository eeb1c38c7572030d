import type { Actor, AuditEntry } from '../ground/audit.ts'
import type { Contacts } from '../ground/contact.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { Role } from '../ground/role.ts'
import { type EpochMs, hourMs } from '../ground/time.ts'
import { type Account, isSetUp } from './accounts.ts'
import {
  type ConsoleDecision,
  type ConsolePorts,
  type ConsoleSession,
  type ConsoleState,
  challengeTime,
  type LoginPorts,
  recoveryCodeIn,
} from './sessions.ts'

export const invitationMs = 72 * hourMs

const maxAccounts = 100
const maxPasskeys = 10
const recoveryCodeCount = 10

export interface AccountPorts extends Pick<ConsolePorts, 'sessions' | 'consoleSecrets' | 'now'> {
  readonly actor: Actor
}

/** @returns the token of a sign-in link, with which the person sets up the account */
export async function inviteOperator(
  ports: AccountPorts & { readonly contacts: Pick<Contacts, 'email'> },
  emailAsGiven: string,
  role: Role,
): Promise<{ readonly email: string; readonly token: string }> {
  const email = ports.contacts.email(emailAsGiven)?.to
  if (email === undefined) throw new InvalidInput('The e-mail address is not valid.')
  const { token, sha256 } = ports.consoleSecrets.newToken()
  const id = ports.consoleSecrets.newId()
  await change(ports, ({ accounts }, now) => {
    if (accounts.some((account) => account.email === email)) {
      throw new OperatorError(
        `${email} already has an account. Reset its sign-in to create a new link, or change its role.`,
      )
    }
    if (accounts.length >= maxAccounts) {
      throw new OperatorError(`There are ${maxAccounts} accounts. Remove one before you add another.`)
    }
    return {
      saveAccount: { ...notSetUp, id, email, role, createdAt: now },
      addLink: { tokenSha256: sha256, expiresAt: now + invitationMs, operatorId: id },
      entry: { action: 'operator.invited', target: email, details: { role } },
    }
  })
  return { email, token }
}

/** Of an account whose person cannot sign in yet. */
export const notSetUp: Omit<Account, 'id' | 'email' | 'role' | 'createdAt'> = {
  passwordHash: null,
  totpSecret: null,
  totpStep: 0,
  signedInAt: null,
  failedSignIns: 0,
  passkeys: [],
  recoveryCodes: [],
}

/**
 * Removes the password, the second factors and the sessions of an account.
 * @returns the token of a sign-in link, with which the person sets up the account again
 */
export async function resetOperator(ports: AccountPorts, email: string): Promise<string> {
  const { token, sha256 } = ports.consoleSecrets.newToken()
  await change(ports, (state, now) => {
    const account = accountOf(state, email)
    // Commands can: their caller has access to the server.
    if (ports.actor.by !== 'command') refuseLastOwner(state, account)
    const { id, role, createdAt } = account
    return {
      saveAccount: { ...notSetUp, id, email, role, createdAt },
      addLink: { tokenSha256: sha256, expiresAt: now + invitationMs, operatorId: id },
      endSessions: sessionsOf(state, account),
      entry: { action: 'operator.reset', target: email, details: {} },
    }
  })
  return token
}

export async function setRole(ports: AccountPorts, email: string, role: Role): Promise<void> {
  await change(ports, (state) => {
    const account = accountOf(state, email)
    if (account.role === role) return { entry: null }
    if (role !== 'owner') refuseLastOwner(state, account)
    return {
      saveAccount: { ...account, role },
      entry: { action: 'operator.role', target: email, details: { role: `${account.role} → ${role}` } },
    }
  })
}

/** Ends its sessions too. */
export async function removeOperator(ports: AccountPorts, email: string): Promise<void> {
  await change(ports, (state) => {
    const account = accountOf(state, email)
    refuseLastOwner(state, account)
    return {
      removeAccount: account.id,
      endSessions: sessionsOf(state, account),
      entry: { action: 'operator.removed', target: email, details: {} },
    }
  })
}

/** Otherwise no operator could invite or remove the others. */
function refuseLastOwner({ accounts }: ConsoleState, { id }: Account): void {
  const isOwner = (account: Account) => account.role === 'owner' && isSetUp(account)
  const owners = accounts.filter(isOwner)
  if (accounts.length > 1 && owners.length === 1 && owners[0]?.id === id)
    throw new OperatorError('This is the only owner who can sign in. Make another account an owner first.')
}

function accountOf({ accounts }: ConsoleState, email: string): Account {
  const account = accounts.find((each) => each.email === email)
  if (account) return account
  throw new OperatorError(`No account has the e-mail address ${email}.`)
}

function sessionsOf({ sessions }: ConsoleState, { id }: Account, except?: ConsoleSession): readonly string[] {
  return sessions
    .filter(({ operatorId, tokenSha256 }) => operatorId === id && tokenSha256 !== except?.tokenSha256)
    .map(({ tokenSha256 }) => tokenSha256)
}

/** A person who changes their own account. */
export interface OwnPorts extends AccountPorts, Pick<LoginPorts, 'passkeys'> {
  readonly session: ConsoleSession
  readonly account: Account
}

/** The first passkey or authenticator app sets the account up. */
export const own = {
  /** Ends the other sessions of the account. */
  async setPassword(ports: OwnPorts, passwordHash: string): Promise<void> {
    await changeOwn(ports, 'operator.password-set', (account) => ({ ...account, passwordHash }), {
      endsOthers: true,
    })
  },

  /**
   * Sets up an authenticator app, with a password unless the account has one.
   * @param totpSecret encrypted, as the form had it
   * @returns new recovery codes
   */
  async setApp(
    ports: OwnPorts,
    {
      totpSecret,
      code,
      passwordHash,
    }: { totpSecret: string; code: string; passwordHash?: string | undefined },
  ): Promise<readonly string[]> {
    const { consoleSecrets, now } = ports
    const found = consoleSecrets.totpStep({ id: ports.account.id, totpSecret }, code, now())
    if (!found) {
      throw new OperatorError(
        'The code is wrong. Enter the code that the app shows now. If it stays wrong, compare the clocks of phone and server.',
      )
    }
    const codes = newRecoveryCodes(ports)
    const save = (account: Account) => {
      const password = passwordHash ?? account.passwordHash
      if (password === null) throw new OperatorError('Choose a password too.')
      return { ...account, ...found, passwordHash: password, recoveryCodes: codes.sha256s }
    }
    await changeOwn(ports, 'operator.app-set', save, { endsOthers: true })
    return codes.codes
  },

  async renewRecoveryCodes(ports: OwnPorts): Promise<readonly string[]> {
    const codes = newRecoveryCodes(ports)
    const save = (account: Account) => {
      if (account.totpSecret === null)
        throw new OperatorError('Recovery codes replace an authenticator app, and this account has none.')
      return { ...account, recoveryCodes: codes.sha256s }
    }
    await changeOwn(ports, 'operator.recovery-codes-renewed', save)
    return codes.codes
  },

  async addPasskey(ports: OwnPorts, response: string, nameAsGiven: string): Promise<void> {
    const { passkeys, account, now } = ports
    const name = nameAsGiven.trim().slice(0, 40) || 'Passkey'
    const read = passkeys.read(response)
    const isFresh = read && challengeTime(ports, `new ${account.id}`, read.challenge) !== undefined
    const found = isFresh ? await passkeys.checkNew(response, read.challenge) : undefined
    if (!found)
      throw new OperatorError('The browser did not create a passkey. Reload the page and try again.')
    const passkey = { ...found, operatorId: account.id, name, createdAt: now(), usedAt: 0 }
    const save = (current: Account, { accounts }: ConsoleState) => {
      const isKnown = accounts.some((each) =>
        each.passkeys.some((one) => one.credentialId === found.credentialId),
      )
      if (isKnown) throw new OperatorError('This passkey is registered already.')
      if (current.passkeys.length >= maxPasskeys) {
        throw new OperatorError(`An account has at most ${maxPasskeys} passkeys. Remove one first.`)
      }
      return { ...current, passkeys: [...current.passkeys, passkey] }
    }
    await changeOwn(ports, 'operator.passkey-added', save, { details: { name } })
  },

  async removePasskey(ports: OwnPorts, credentialId: string): Promise<void> {
    const save = (account: Account) => {
      const passkeys = account.passkeys.filter((each) => each.credentialId !== credentialId)
      const after = { ...account, passkeys }
      if (!isSetUp(after))
        throw new OperatorError('This is the only way to sign in to the account. Add another first.')
      return after
    }
    const name = ports.account.passkeys.find((each) => each.credentialId === credentialId)?.name ?? '-'
    await changeOwn(ports, 'operator.passkey-removed', save, { details: { name } })
  },
}

function newRecoveryCodes({ consoleSecrets }: OwnPorts) {
  const codes = Array.from({ length: recoveryCodeCount }, () => consoleSecrets.newRecoveryCode())
  return { codes, sha256s: codes.map((code) => consoleSecrets.sha256(recoveryCodeIn(code))) }
}

async function changeOwn(
  ports: OwnPorts,
  action: string,
  save: (account: Account, state: ConsoleState) => Account,
  {
    endsOthers = false,
    details = {},
  }: { endsOthers?: boolean; details?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const { session, account } = ports
  await change(ports, (state) => ({
    saveAccount: save(accountOf(state, account.email), state),
    ...(endsOthers && { endSessions: sessionsOf(state, account, session) }),
    entry: { action, target: account.email, details },
  }))
}

type AccountDecision = Omit<ConsoleDecision, 'entry'> & {
  readonly entry: Pick<AuditEntry, 'action' | 'target' | 'details'> | null
}

async function change(
  { sessions, now, actor }: AccountPorts,
  decide: (state: ConsoleState, now: EpochMs) => AccountDecision,
): Promise<void> {
  const at = now()
  await sessions.change({ now: at }, (state) => {
    const { entry, ...decision } = decide(state, at)
    return { ...decision, entry: entry && { at, actor, ...entry } }
  })
}
