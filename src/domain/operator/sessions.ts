import type { RequestContext } from '../events/request-context.ts'
import { claim, granted, stored } from '../otp/claims.ts'
import { consoleLinkAttempts, consoleLogins } from '../otp/limits.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Secrets } from '../ports.ts'
import { type Clock, type EpochMs, hourMs, minuteMs } from '../time.ts'
import type { Actor, AuditEntry } from './audit.ts'

export interface ConsoleSession {
  readonly tokenSha256: string
  readonly startedAt: EpochMs
  readonly lastSeenAt: EpochMs
  readonly expiresAt: EpochMs
  readonly by: 'password' | 'link' | 'passkey'
  /** Null: by `otpost admin link`, or by the shared password. */
  readonly operatorId: string | null
  /** Of the last password, code, passkey or link. */
  readonly confirmedAt: EpochMs
  readonly clientIp: string
  /** Such as `Firefox on Linux`. */
  readonly device: string
}

/** Every change is one atomic step with its audit entry. */
export interface ConsoleStore {
  addLink(tokenSha256: string, expiresAt: number, entry: AuditEntry): Promise<void>
  /** Starts a session and removes its link. Returns false if the link is used or expired. */
  useLink(tokenSha256: string, session: ConsoleSession, entry: AuditEntry): Promise<boolean>
  begin(session: ConsoleSession, entry: AuditEntry): Promise<void>
  find(tokenSha256: string, now: number): Promise<ConsoleSession | undefined>
  list(now: number): Promise<readonly ConsoleSession[]>
  prolong(tokenSha256: string, lastSeenAt: number, expiresAt: number): Promise<void>
  /** Returns false if the session had already ended. */
  end(tokenSha256: string, entry: AuditEntry): Promise<boolean>
  endAll(entry: AuditEntry): Promise<number>
}

export const linkMs = 10 * minuteMs

const idleMs = 30 * minuteMs
const sessionMs = 8 * hourMs

const seenMs = minuteMs

export interface ConsoleSecrets {
  /** 256 random bits, and their SHA-256. */
  newToken(): { readonly token: string; readonly sha256: string }
  sha256(token: string): string
  /** Slow on purpose. Accepts any Unicode form. Throws rate_limited if too many checks wait. */
  isPassword(password: string, hash: string): Promise<boolean>
}

export interface ConsolePorts {
  readonly sessions: ConsoleStore
  readonly consoleSecrets: ConsoleSecrets
  readonly passwordHash: string | undefined
  readonly now: Clock
}

/** The part of a session ID that is displayed. It cannot be used as a token. */
export function sessionId({ tokenSha256 }: Pick<ConsoleSession, 'tokenSha256'>): string {
  return tokenSha256.slice(0, 8)
}

export function sessionActor(session: Pick<ConsoleSession, 'tokenSha256'>): Actor {
  return { by: 'console', name: sessionId(session) }
}

export async function makeLink(ports: Omit<ConsolePorts, 'passwordHash'>, actor: Actor): Promise<string> {
  const { token, sha256 } = ports.consoleSecrets.newToken()
  const at = ports.now()
  const target = sessionId({ tokenSha256: sha256 })
  await ports.sessions.addLink(sha256, at + linkMs, {
    at,
    actor,
    action: 'console.link',
    target,
    details: {},
  })
  return token
}

export interface LoginPorts extends ConsolePorts {
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly store: Pick<OtpStore, 'admit' | 'reschedule' | 'giveBack'>
}

/**
 * Returns undefined if the link is used, expired or unknown. An active link is always accepted.
 * @throws Failure rate_limited
 */
export async function enterByLink(
  ports: LoginPorts,
  context: RequestContext,
  linkToken: string,
): Promise<string | undefined> {
  const { token, session, entry } = newSession(ports, context, 'link')
  const linkSha256 = ports.consoleSecrets.sha256(linkToken)
  if (await ports.sessions.useLink(linkSha256, session, entry)) return token
  await claim(ports, context, [consoleLinkAttempts(ports.secrets.subjects('ip', context.clientIp))])
  return undefined
}

/**
 * Counts attempts before the check, so that simultaneous ones cannot exceed the limit. Gives them back if the
 * queue is full.
 *
 * @param device the ID of a browser that signed in before
 * @throws Failure rate_limited
 */
export async function enterByPassword(
  ports: LoginPorts,
  context: RequestContext,
  password: string,
  device: string | undefined,
): Promise<string | undefined> {
  const { passwordHash, now } = ports
  if (passwordHash === undefined) return undefined
  const grants = await claimLogin(ports, context, device)
  if (password.length > maxPasswordLength) return undefined
  const isRight = await ports.consoleSecrets.isPassword(password, passwordHash).catch(async (error) => {
    await ports.store.giveBack(grants, now())
    throw error
  })
  if (!isRight) return undefined
  const [own] = grants
  if (own) await ports.store.reschedule(own, 0, now())
  const { token, session, entry } = newSession(ports, context, 'password')
  await ports.sessions.begin(session, entry)
  return token
}

/** A known browser has its own limit, so that other clients cannot lock it out. The first grant is the sender's. */
async function claimLogin(ports: LoginPorts, context: RequestContext, device: string | undefined) {
  if (device !== undefined)
    return claim(ports, context, [consoleLogins([`console-device:${device}`]).ofSender])
  const { ofSender, ofAllHourly, ofAllSlow } = consoleLogins(ports.secrets.subjects('ip', context.clientIp))
  const claims = [ofSender, ofAllHourly]
  const decision = await ports.store.admit(claims.map(stored), ports.now())
  const isSlow = !decision.allowed && claims[decision.refusedBy] === ofAllHourly
  return isSlow ? claim(ports, context, [ofSender, ofAllSlow]) : granted(context, claims, decision)
}

/** In UTF-16 units. `otpost admin password` accepts 256 characters, which fit in any Unicode form. */
const maxPasswordLength = 2048

function newSession(ports: ConsolePorts, { clientIp }: RequestContext, by: 'password' | 'link') {
  const { token } = ports.consoleSecrets.newToken()
  const now = ports.now()
  const tokenSha256 = storedTokens(ports, token)[by]
  const session: ConsoleSession = {
    tokenSha256,
    startedAt: now,
    lastSeenAt: now,
    expiresAt: now + idleMs,
    by,
    operatorId: null,
    confirmedAt: now,
    clientIp,
    device: '',
  }
  const actor = sessionActor(session)
  const target = sessionId(session)
  const entry: AuditEntry = {
    at: now,
    actor,
    action: 'console.login',
    target,
    details: { by, from: clientIp },
  }
  return { token, session, entry }
}

/** A password session ends when the password changes, since its stored hash includes the password hash. */
function storedTokens({ consoleSecrets, passwordHash }: ConsolePorts, token: string) {
  const { sha256 } = consoleSecrets
  return { link: sha256(token), password: sha256(`${token} ${passwordHash}`) }
}

/** @param isUse whether a person uses the session now, which extends it */
export async function currentSession(
  ports: ConsolePorts,
  token: string | undefined,
  isUse: boolean,
): Promise<ConsoleSession | undefined> {
  if (token === undefined) return undefined
  const { sessions } = ports
  const now = ports.now()
  const { link, password } = storedTokens(ports, token)
  const session = (await sessions.find(link, now)) ?? (await sessions.find(password, now))
  if (!session) return undefined
  if (isUse && now - session.lastSeenAt >= seenMs) {
    const endsAt = Math.min(now + idleMs, session.startedAt + sessionMs)
    // The console stays readable while the database is read-only.
    await sessions.prolong(session.tokenSha256, now, endsAt).catch(() => undefined)
  }
  return session
}

export async function endSession(
  ports: ConsolePorts,
  { clientIp }: RequestContext,
  by: ConsoleSession,
  id: string,
): Promise<boolean> {
  const at = ports.now()
  const session = (await ports.sessions.list(at)).find((each) => sessionId(each) === id)
  if (!session) return false
  const action = session.tokenSha256 === by.tokenSha256 ? 'console.logout' : 'console.session-revoked'
  const entry: AuditEntry = { at, actor: sessionActor(by), action, target: id, details: { from: clientIp } }
  return ports.sessions.end(session.tokenSha256, entry)
}
