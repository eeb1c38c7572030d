import type { Actor, AuditEntry } from '../ground/audit.ts'
import type { Secrets } from '../ground/ports.ts'
import type { Role } from '../ground/role.ts'
import { type Clock, type EpochMs, hourMs, minuteMs } from '../ground/time.ts'
import { claim, granted } from '../limits/gates.ts'
import {
  byNetwork,
  consoleCodes,
  consoleLinkAttempts,
  consoleLogins,
  type Grant,
  knownBrowserLogins,
} from '../limits/limits.ts'
import type { OtpStore } from '../otp/store.ts'
import type { RequestContext } from '../request/request-context.ts'
import { type Account, isSetUp, type Passkey } from './accounts.ts'

export interface ConsoleSession {
  readonly tokenSha256: string
  readonly startedAt: EpochMs
  readonly lastSeenAt: EpochMs
  readonly expiresAt: EpochMs
  /** `password`: with its second factor. */
  readonly by: 'password' | 'link' | 'passkey'
  /** Null: by `otpost admin link`. */
  readonly operatorId: string | null
  /** Of the last password, code, passkey or link. */
  readonly confirmedAt: EpochMs
  readonly clientIp: string
  /** Such as `Firefox on Linux`. */
  readonly device: string
}

interface ConsoleLink {
  readonly tokenSha256: string
  readonly expiresAt: EpochMs
  /** Of the account that it sets up. Null: of `otpost admin link`. */
  readonly operatorId: string | null
}

/** What a step of the console decides from. */
export interface ConsoleState {
  readonly accounts: readonly Account[]
  readonly sessions: readonly ConsoleSession[]
  /** Undefined if it is used, expired or unknown. */
  readonly link: ConsoleLink | undefined
}

export interface ConsoleDecision {
  /** Also its passkeys and recovery codes. */
  readonly saveAccount?: Account
  /** By ID. Also its links. */
  readonly removeAccount?: string
  /** Replaces the other links of its account. */
  readonly addLink?: ConsoleLink
  /** Removes the link of the state. */
  readonly usesLink?: boolean
  readonly saveSession?: ConsoleSession
  /** By `tokenSha256`. */
  readonly endSessions?: readonly string[]
  readonly entry: AuditEntry | null
}

export interface ConsoleStore {
  accounts(): Promise<readonly Account[]>
  /** The ids of the accounts with a link that still sets them up. */
  invited(now: number): Promise<ReadonlySet<string>>
  find(tokenSha256: string, now: number): Promise<ConsoleSession | undefined>
  list(now: number): Promise<readonly ConsoleSession[]>
  prolong(tokenSha256: string, lastSeenAt: number, expiresAt: number): Promise<void>
  noteFailedSignIn(operatorId: string): Promise<void>
  /** Atomic, and serial with other changes. `decide` may run twice; if it throws, nothing is stored. */
  change<D extends ConsoleDecision>(
    about: { readonly linkSha256?: string; readonly now: number },
    decide: (state: ConsoleState) => D,
  ): Promise<D>
}

export const linkMs = 10 * minuteMs

const idleMs = 30 * minuteMs
const sessionMs = 8 * hourMs

const seenMs = minuteMs

/** How long a password, code, passkey or link counts for sensitive steps. */
const confirmedMs = 15 * minuteMs

/** Between the password and the code, and for the challenge of a passkey. */
const signInMs = 10 * minuteMs

export interface ConsoleSecrets {
  newId(): string
  /** 256 random bits, and their SHA-256. */
  newToken(): { readonly token: string; readonly sha256: string }
  sha256(token: string): string
  /** 120 random bits, such as `K5FD-2Q7A-9MXC-W3RT-HJ8N-6BPV`. */
  newRecoveryCode(): string
  /** The text with its keyed hash. */
  sign(purpose: string, text: string): string
  /** The text that was signed for this purpose; undefined for any other. */
  signedText(purpose: string, signed: string): string | undefined
  /**
   * Slow on purpose. Without a hash it does the same work, with `standIn`, and returns false. Accepts any Unicode form. Throws
   * rate_limited if too many checks wait: those of known browsers wait apart from all others.
   */
  isPassword(
    password: string,
    hash: string | undefined,
    browser: 'known' | 'unknown',
    /** The hash of another account. Undefined: a constant one. */
    standIn?: string,
  ): Promise<boolean>
  passwordHash(password: string): Promise<string>
  /** Why a new password is refused. `context`: the person's e-mail address and the server's host name. */
  passwordProblem(password: string, context: readonly string[]): Promise<string | undefined>
  /** A new secret of an authenticator app, encrypted for this account. */
  newTotpSecret(accountId: string): string
  /** For the QR code of an app. Undefined if no secret key decrypts it. */
  totpUri(account: Pick<Account, 'id' | 'email'>, totpSecret: string, host: string): string | undefined
  /** Undefined for a wrong code. `totpSecret` is the same secret, encrypted with the present secret key. */
  totpStep(
    account: Pick<Account, 'id' | 'totpSecret'>,
    code: string,
    now: number,
  ): { readonly totpStep: number; readonly totpSecret: string } | undefined
}

/** Of one server name. The last three return undefined for a response that is not valid. */
export interface Passkeys {
  /** Options for `navigator.credentials.create`, in JSON. */
  forNew(account: Account, challenge: string): string
  /** Options for `navigator.credentials.get`, in JSON. */
  forUse(challenge: string, allowed?: readonly Passkey[]): string
  /** The challenge as `newChallenge` returned it. */
  read(response: string): { readonly credentialId: string; readonly challenge: string } | undefined
  check(
    response: string,
    challenge: string,
    passkey: Passkey,
  ): Promise<Pick<Passkey, 'signCount'> | undefined>
  checkNew(
    response: string,
    challenge: string,
  ): Promise<Pick<Passkey, 'credentialId' | 'publicKey' | 'signCount' | 'transports'> | undefined>
}

export interface ConsolePorts {
  readonly sessions: ConsoleStore
  readonly consoleSecrets: ConsoleSecrets
  readonly now: Clock
}

/** The part of a session ID that is displayed. It cannot be used as a token. */
export function sessionId({ tokenSha256 }: Pick<ConsoleSession, 'tokenSha256'>): string {
  return tokenSha256.slice(0, 8)
}

/** The person, or the session if it has no account. */
export function sessionActor(
  session: Pick<ConsoleSession, 'tokenSha256'>,
  account: Pick<Account, 'email'> | undefined,
): Actor {
  return { by: 'console', name: account?.email ?? sessionId(session) }
}

export async function makeLink(
  { sessions, consoleSecrets, now }: ConsolePorts,
  actor: Actor,
): Promise<string> {
  const { token, sha256 } = consoleSecrets.newToken()
  const at = now()
  const target = sessionId({ tokenSha256: sha256 })
  await sessions.change({ now: at }, () => ({
    addLink: { tokenSha256: sha256, expiresAt: at + linkMs, operatorId: null },
    entry: { at, actor, action: 'console.link', target, details: {} },
  }))
  return token
}

export interface LoginPorts extends ConsolePorts {
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly store: Pick<OtpStore, 'admit' | 'reschedule' | 'giveBack'>
  readonly passkeys: Passkeys
}

/** A browser at the sign-in form. */
export interface Visitor {
  readonly context: RequestContext
  readonly device: string
  /** Its signed cookie, if it signed in before. */
  readonly known: string | undefined
}

/**
 * Returns undefined if the link is used, expired or unknown. An active link is always accepted.
 * @throws Failure rate_limited
 */
export async function enterByLink(
  ports: LoginPorts,
  visitor: Visitor,
  linkToken: string,
): Promise<SignedIn | undefined> {
  const linkSha256 = ports.consoleSecrets.sha256(linkToken)
  const entered = await begin(ports, visitor, 'link', { linkSha256 }, ({ link, accounts }) => {
    if (!link) return undefined
    const account = accounts.find(({ id }) => id === link.operatorId)
    return link.operatorId !== null && !account ? undefined : { account, usesLink: true }
  })
  if (!entered) await claimUnknown(ports, visitor)
  return entered
}

/**
 * The first step of a sign-in by password.
 * @returns the proof for the second step; undefined if e-mail address or password are wrong
 * @throws Failure rate_limited
 */
export async function enterByPassword(
  ports: LoginPorts,
  visitor: Visitor,
  { email, password }: { readonly email: string; readonly password: string },
): Promise<string | undefined> {
  const accounts = await ports.sessions.accounts()
  const account = accounts.find((each) => each.email === email && isSetUp(each))
  const hash = account?.passwordHash ?? undefined
  const person = account ?? { id: email, email }
  // An unknown person's answer must not come earlier or later than a known one's.
  const standIn = accounts.find(({ passwordHash }) => passwordHash !== null)?.passwordHash ?? undefined
  const grants = await checkPassword(ports, visitor, person, password, { hash, standIn })
  if (!account || !grants || !hash) {
    // Nothing waits for it, so the answer takes as long as for an unknown account.
    if (account) void ports.sessions.noteFailedSignIn(account.id).catch(() => undefined)
    return undefined
  }
  return ports.consoleSecrets.sign(`code ${hash}`, `${account.id} ${ports.now() + signInMs}`)
}

/**
 * The second step of a sign-in by password: with the code of the authenticator app, or with a recovery code.
 * @param next of the first step
 * @returns the token of a session, `wrong`, or undefined if the first step is too long ago
 * @throws Failure rate_limited
 */
export async function enterByCode(
  ports: LoginPorts,
  visitor: Visitor,
  { next, code }: { readonly next: string; readonly code: string },
): Promise<SignedIn | 'wrong' | undefined> {
  const account = (await ports.sessions.accounts()).find((each) => isNext(ports, each, next))
  if (!account) return undefined
  const grants = await claimCode(ports, visitor, account.id)
  const entered = await begin(ports, visitor, 'password', {}, (state, now) => {
    const current = state.accounts.find(({ id }) => id === account.id)
    const used = current && withoutCode(ports, current, code, now)
    return used && { account: used }
  })
  if (!entered) {
    await ports.sessions.noteFailedSignIn(account.id)
    return 'wrong'
  }
  await forgive(ports, grants)
  return entered
}

function isNext({ consoleSecrets, now }: ConsolePorts, { id, passwordHash }: Account, next: string): boolean {
  if (passwordHash === null) return false
  const [accountId, expiresAt] = consoleSecrets.signedText(`code ${passwordHash}`, next)?.split(' ') ?? []
  return accountId === id && Number(expiresAt) > now()
}

/** The account after a code of its app or a recovery code was used; undefined for a wrong or used one. */
function withoutCode(
  { consoleSecrets }: ConsolePorts,
  account: Account,
  code: string,
  now: number,
): Account | undefined {
  const found = consoleSecrets.totpStep(account, code, now)
  if (found) return found.totpStep > account.totpStep ? { ...account, ...found } : undefined
  const sha256 = consoleSecrets.sha256(recoveryCodeIn(code))
  if (!account.recoveryCodes.includes(sha256)) return undefined
  return { ...account, recoveryCodes: account.recoveryCodes.filter((each) => each !== sha256) }
}

/** As it was printed, however it is typed. */
export function recoveryCodeIn(text: string): string {
  return text
    .slice(0, 64)
    .toUpperCase()
    .replaceAll(/[^A-Z2-9]/g, '')
}

/** What an authenticator signs. It can be used once, within 10 minutes. */
export function newChallenge({ consoleSecrets, now }: ConsolePorts, purpose: PasskeyPurpose): string {
  return consoleSecrets.sign(`passkey ${purpose}`, `${now()} ${consoleSecrets.newToken().token}`)
}

/** `new` with the ID of the account. */
type PasskeyPurpose = 'sign-in' | 'confirm' | `new ${string}`

/** The creation time of the challenge of this purpose; undefined for another purpose, and after 10 minutes. */
export function challengeTime(
  { consoleSecrets, now }: ConsolePorts,
  purpose: PasskeyPurpose,
  challenge: string,
): EpochMs | undefined {
  const madeAt = Number.parseInt(consoleSecrets.signedText(`passkey ${purpose}`, challenge) ?? '', 10)
  return madeAt > now() - signInMs ? madeAt : undefined
}

/**
 * A passkey replaces password and code, since the authenticator verifies the person.
 * @throws Failure rate_limited
 */
export async function enterByPasskey(
  ports: LoginPorts,
  visitor: Visitor,
  response: string,
): Promise<SignedIn | undefined> {
  const used = await checkedPasskey(ports, 'sign-in', response)
  const entered =
    used &&
    (await begin(ports, visitor, 'passkey', {}, (state) => {
      const account = withUse(state, used)
      return account && { account }
    }))
  if (!entered) await claimUnknown(ports, visitor)
  return entered
}

async function checkedPasskey(
  ports: LoginPorts,
  purpose: PasskeyPurpose,
  response: string,
): Promise<Passkey | undefined> {
  const { passkeys, sessions } = ports
  const read = passkeys.read(response)
  const usedAt = read && challengeTime(ports, purpose, read.challenge)
  if (!read || usedAt === undefined) return undefined
  const all = (await sessions.accounts()).flatMap((account) => account.passkeys)
  const passkey = all.find(({ credentialId }) => credentialId === read.credentialId)
  const found = passkey && (await passkeys.check(response, read.challenge, passkey))
  return found && { ...passkey, ...found, usedAt }
}

/** The account after the use of its passkey; undefined if the challenge was used, or the passkey removed. */
function withUse({ accounts }: ConsoleState, used: Passkey): Account | undefined {
  const account = accounts.find(({ id }) => id === used.operatorId)
  const current = account?.passkeys.find(({ credentialId }) => credentialId === used.credentialId)
  if (!account || !current || used.usedAt <= current.usedAt) return undefined
  return { ...account, passkeys: account.passkeys.map((each) => (each === current ? used : each)) }
}

/** At the sign-in form. Without an account, the ID is the e-mail address. */
type Person = Pick<Account, 'id' | 'email'>

/** A known browser has its own limit, so that other clients cannot lock it out. The first grant is the sender's. */
async function claimLogin(
  ports: LoginPorts,
  visitor: Visitor,
  { id, email }: Person,
): Promise<readonly Grant[]> {
  const { context, known } = visitor
  if (isKnown(ports, known, id)) return claim(ports, context, [claimOfBrowser(ports, known)])
  const { ofSender, ofAllHourly, ofAllSlow } = consoleLogins(ports.secrets.subjects('operator', email))
  const ofSenders = byNetwork(ports.secrets, context.clientIp, ofSender)
  const claims = [...ofSenders, ofAllHourly]
  const decision = await ports.store.admit(claims, ports.now())
  const isSlow = !decision.allowed && claims[decision.refusedBy] === ofAllHourly
  return isSlow ? claim(ports, context, [...ofSenders, ofAllSlow]) : granted(context, claims, decision)
}

/**
 * Undefined for a wrong password. Otherwise the grants, which a success forgives.
 * Counts before the check, so that simultaneous attempts cannot exceed the limit. Gives them back if the queue is full.
 */
async function checkPassword(
  ports: LoginPorts,
  visitor: Visitor,
  person: Person,
  password: string,
  { hash, standIn }: { readonly hash: string | undefined; readonly standIn?: string | undefined },
): Promise<readonly Grant[] | undefined> {
  const grants = await claimLogin(ports, visitor, person)
  if (password.length > maxPasswordLength) return undefined
  const browser = isKnown(ports, visitor.known, person.id) ? 'known' : 'unknown'
  const isRight = await ports.consoleSecrets
    .isPassword(password, hash, browser, standIn)
    .catch(async (error) => {
      await ports.store.giveBack(grants, ports.now())
      throw error
    })
  return isRight ? grants : undefined
}

/** Of someone who knows the password. */
function claimCode(ports: LoginPorts, visitor: Visitor, accountId: string): Promise<readonly Grant[]> {
  const { context, known } = visitor
  const isOwn = isKnown(ports, known, accountId)
  return claim(ports, context, [isOwn ? claimOfBrowser(ports, known) : consoleCodes(accountId)])
}

/** The database has only a hash of the cookie. */
function claimOfBrowser({ consoleSecrets }: LoginPorts, known: string) {
  return knownBrowserLogins(consoleSecrets.sha256(known))
}

/** Of wrong links and passkeys, which no client can guess. */
async function claimUnknown(ports: LoginPorts, visitor: Visitor): Promise<void> {
  const { context } = visitor
  await claim(ports, context, byNetwork(ports.secrets, context.clientIp, consoleLinkAttempts))
}

/** A success ends the window of the sender, which is the first grant. */
async function forgive({ store, now }: LoginPorts, [own]: readonly Grant[]): Promise<void> {
  if (own) await store.reschedule(own, 0, now())
}

/** The cookie of a browser that signed in to this account. */
export function newKnownBrowser(ports: ConsolePorts, accountId: string): string {
  return ports.consoleSecrets.sign(knownPurpose(accountId), ports.consoleSecrets.newId())
}

function isKnown(ports: ConsolePorts, known: string | undefined, accountId: string): known is string {
  return known !== undefined && ports.consoleSecrets.signedText(knownPurpose(accountId), known) !== undefined
}

function knownPurpose(accountId: string): string {
  return `browser ${accountId}`
}

/** In UTF-16 units. A new password has at most 256 characters, which fit in any Unicode form. */
const maxPasswordLength = 2048

/** A new session, and the account as it was before. */
export interface SignedIn {
  readonly token: string
  readonly account: Account | undefined
}

/** Undefined if `decide` returns it. */
async function begin(
  ports: ConsolePorts,
  { context: { clientIp }, device }: Visitor,
  by: ConsoleSession['by'],
  about: { readonly linkSha256?: string },
  decide: (
    state: ConsoleState,
    now: EpochMs,
  ) => { readonly account: Account | undefined; readonly usesLink?: boolean } | undefined,
): Promise<SignedIn | undefined> {
  const { token } = ports.consoleSecrets.newToken()
  const now = ports.now()
  const { entered } = await ports.sessions.change({ ...about, now }, (state) => {
    const decision = decide(state, now)
    if (!decision) return { entered: undefined, entry: null }
    const { account, usesLink = false } = decision
    const session: ConsoleSession = {
      tokenSha256: ports.consoleSecrets.sha256(token),
      startedAt: now,
      lastSeenAt: now,
      expiresAt: now + idleMs,
      by,
      operatorId: account?.id ?? null,
      confirmedAt: now,
      clientIp,
      device,
    }
    const details = { by, from: clientIp, ...(device === '' ? {} : { device }) }
    return {
      entered: { token, account },
      usesLink,
      ...(account && { saveAccount: { ...account, signedInAt: now, failedSignIns: 0 } }),
      saveSession: session,
      entry: {
        at: now,
        actor: sessionActor(session, account),
        action: 'console.login',
        target: sessionId(session),
        details,
      },
    }
  })
  return entered
}

export interface CurrentSession {
  readonly session: ConsoleSession
  /** Undefined: of `otpost admin link`. */
  readonly account: Account | undefined
}

/** Sessions without an account are those of the server's administrator. */
export function roleOf({ account }: CurrentSession): Role {
  return account?.role ?? 'owner'
}

/** @param isUse whether a person uses the session now, which extends it */
export async function currentSession(
  ports: ConsolePorts,
  token: string | undefined,
  isUse: boolean,
): Promise<CurrentSession | undefined> {
  if (token === undefined) return undefined
  const { sessions } = ports
  const now = ports.now()
  const session = await sessions.find(ports.consoleSecrets.sha256(token), now)
  if (!session) return undefined
  const account = (await sessions.accounts()).find(({ id }) => id === session.operatorId)
  if (session.operatorId !== null && !account) return undefined
  if (isUse && now - session.lastSeenAt >= seenMs) {
    const endsAt = Math.min(now + idleMs, session.startedAt + sessionMs)
    // The console stays readable while the database cannot be written.
    void sessions.prolong(session.tokenSha256, now, endsAt).catch(() => undefined)
  }
  return { session, account }
}

/**
 * Before a person changes it. Counts like a sign-in.
 * @throws Failure rate_limited
 */
export async function isOwnPassword(
  ports: LoginPorts,
  visitor: Visitor,
  account: Account,
  password: string,
): Promise<boolean> {
  const hash = account.passwordHash ?? undefined
  const grants = await checkPassword(ports, visitor, account, password, { hash })
  if (grants) await forgive(ports, grants)
  return grants !== undefined
}

/** Whether a sensitive step needs no new password, code, passkey or link. */
export function isConfirmed({ confirmedAt }: ConsoleSession, now: EpochMs): boolean {
  return now - confirmedAt < confirmedMs
}

/** One of them, by the kind of session. */
export interface Confirmation {
  /** Of an authenticator app, or a recovery code. */
  readonly code: string
  readonly passkey: string
  /** The token of a new sign-in link. */
  readonly link: string
}

/**
 * Confirms that the person of a session is still there.
 * @throws Failure rate_limited
 */
export async function confirm(
  ports: LoginPorts,
  visitor: Visitor,
  { session, account }: CurrentSession,
  { code, passkey, link }: Confirmation,
): Promise<boolean> {
  const now = ports.now()
  const save = async (
    about: { readonly linkSha256?: string },
    decide: (state: ConsoleState) => Pick<ConsoleDecision, 'saveAccount' | 'usesLink'> | undefined,
  ) => {
    const { isDone } = await ports.sessions.change({ ...about, now }, (state) => {
      const current = state.sessions.find(({ tokenSha256 }) => tokenSha256 === session.tokenSha256)
      const decision = current && decide(state)
      if (!decision) return { isDone: false, entry: null }
      return { isDone: true, ...decision, saveSession: { ...current, confirmedAt: now }, entry: null }
    })
    return isDone
  }
  if (account && passkey !== '') {
    const used = await checkedPasskey(ports, 'confirm', passkey)
    if (!used || used.operatorId !== account.id) return false
    return save({}, (state) => {
      const saveAccount = withUse(state, used)
      return saveAccount && { saveAccount }
    })
  }
  if (account) {
    const grants = await claimCode(ports, visitor, account.id)
    const isDone = await save({}, ({ accounts }) => {
      const current = accounts.find(({ id }) => id === account.id)
      const saveAccount = current && withoutCode(ports, current, code, now)
      return saveAccount && { saveAccount }
    })
    if (isDone) await forgive(ports, grants)
    return isDone
  }
  const isDone = await save({ linkSha256: ports.consoleSecrets.sha256(link) }, (state) =>
    state.link?.operatorId === null ? { usesLink: true } : undefined,
  )
  if (!isDone) await claimUnknown(ports, visitor)
  return isDone
}

/** Returns false if the session had already ended, or belongs to another person and `by` is not an owner. */
export async function endSession(
  ports: ConsolePorts,
  { clientIp }: RequestContext,
  by: CurrentSession,
  id: string,
): Promise<boolean> {
  const at = ports.now()
  const { isDone } = await ports.sessions.change({ now: at }, ({ sessions }) => {
    const session = sessions.find((each) => sessionId(each) === id)
    const isOwn = session && session.operatorId === by.session.operatorId
    if (!session || !(isOwn || roleOf(by) === 'owner')) return { isDone: false, entry: null }
    const isSelf = session.tokenSha256 === by.session.tokenSha256
    return {
      isDone: true,
      endSessions: [session.tokenSha256],
      entry: {
        at,
        actor: sessionActor(by.session, by.account),
        action: isSelf ? 'console.logout' : 'console.session-revoked',
        target: id,
        details: { from: clientIp },
      },
    }
  })
  return isDone
}

/** @returns how many there were */
export async function endAllSessions(
  { sessions, now }: Pick<ConsolePorts, 'sessions' | 'now'>,
  actor: Actor,
): Promise<number> {
  const at = now()
  const { endSessions } = await sessions.change({ now: at }, (state) => {
    const endSessions = state.sessions.map(({ tokenSha256 }) => tokenSha256)
    const entry = { at, actor, action: 'console.session-revoked', target: 'all', details: {} } as const
    return { endSessions, entry: endSessions.length === 0 ? null : entry }
  })
  return endSessions.length
}
