import type { RequestContext } from '../events/request-context.ts'
import { claim, granted } from '../otp/claims.ts'
import { consoleLinkAttempts, consoleLogins } from '../otp/limits.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Clock, Secrets } from '../ports.ts'
import type { Actor, AuditEntry } from './audit.ts'

/** Instants are epoch milliseconds. */
export interface ConsoleSession {
  /** Of the token in the cookie. */
  readonly tokenSha256: string
  readonly startedAt: number
  readonly lastSeenAt: number
  readonly expiresAt: number
  readonly by: 'password' | 'link'
}

/** Every change is one atomic step with its audit entry. */
export interface ConsoleStore {
  addLink(tokenSha256: string, expiresAt: number, entry: AuditEntry): Promise<void>
  /** Starts a session and removes its link; false where the link is used or expired. */
  useLink(tokenSha256: string, session: ConsoleSession, entry: AuditEntry): Promise<boolean>
  begin(session: ConsoleSession, entry: AuditEntry): Promise<void>
  /** Undefined for an expired session. */
  find(tokenSha256: string, now: number): Promise<ConsoleSession | undefined>
  /** The active sessions, the last seen first. */
  list(now: number): Promise<readonly ConsoleSession[]>
  prolong(tokenSha256: string, lastSeenAt: number, expiresAt: number): Promise<void>
  /** False where it had ended. */
  end(tokenSha256: string, entry: AuditEntry): Promise<boolean>
  /** Resolves to the number of sessions. */
  endAll(entry: AuditEntry): Promise<number>
}

export const linkMs = 10 * 60_000

/** Unused, and at most. */
const idleMs = 30 * 60_000
const sessionMs = 8 * 3_600_000

/** At most one write of `lastSeenAt` in this time. */
const seenMs = 60_000

export interface ConsoleSecrets {
  /** 256 random bits, and their SHA-256. */
  newToken(): { readonly token: string; readonly sha256: string }
  sha256(token: string): string
  /** Slow on purpose; throws rate_limited while too many wait. The password may be in any Unicode form. */
  isPassword(password: string, hash: string): Promise<boolean>
}

export interface ConsolePorts {
  readonly sessions: ConsoleStore
  readonly consoleSecrets: ConsoleSecrets
  /** Undefined: there is no password. */
  readonly passwordHash: string | undefined
  readonly now: Clock
}

/** The displayed part of a session's id; useless as a token. */
export function sessionId({ tokenSha256 }: Pick<ConsoleSession, 'tokenSha256'>): string {
  return tokenSha256.slice(0, 8)
}

export function sessionActor(session: Pick<ConsoleSession, 'tokenSha256'>): Actor {
  return { by: 'console', name: sessionId(session) }
}

/** `admin link`: resolves to the token of a new link. */
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
  readonly store: Pick<OtpStore, 'admit' | 'reschedule'>
}

/**
 * Resolves to the token of a new session; undefined where the link is used, expired or unknown. An active link is always
 * accepted; only other tokens count on the limit.
 *
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
 * Resolves to the token of a new session; undefined for a wrong password. An attempt counts before it is checked, so that
 * simultaneous ones can't pass a limit; a success clears the counts.
 *
 * @param device the id of a browser that signed in before
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
  // A long password would cost CPU.
  if (password.length > maxPasswordLength) return undefined
  if (!(await ports.consoleSecrets.isPassword(password, passwordHash))) return undefined
  await Promise.all(grants.map((grant) => ports.store.reschedule(grant, 0, now())))
  const { token, session, entry } = newSession(ports, context, 'password')
  await ports.sessions.begin(session, entry)
  return token
}

/** A known browser has a limit of its own, which nobody else can use up. */
async function claimLogin(ports: LoginPorts, context: RequestContext, device: string | undefined) {
  if (device !== undefined) return claim(ports, context, [consoleLogins([`console-device:${device}`]).own])
  const { own, usual, slow } = consoleLogins(ports.secrets.subjects('ip', context.clientIp))
  const decision = await ports.store.admit([own, usual], ports.now())
  const isSlow = !decision.allowed && decision.refusedBy.name === usual.name
  return isSlow ? claim(ports, context, [own, slow]) : granted(context, [own, usual], decision)
}

/** In UTF-16 units; `otpost admin password` accepts 256 characters, which have at most as many in any Unicode form. */
const maxPasswordLength = 2048

function newSession(ports: ConsolePorts, { clientIp }: RequestContext, by: ConsoleSession['by']) {
  const { token } = ports.consoleSecrets.newToken()
  const now = ports.now()
  const tokenSha256 = storedTokens(ports, token)[by]
  const session: ConsoleSession = {
    tokenSha256,
    startedAt: now,
    lastSeenAt: now,
    expiresAt: now + idleMs,
    by,
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

/** The stored hash of a session's token. A password session is bound to the password, and ends when that changes. */
function storedTokens({ consoleSecrets, passwordHash }: ConsolePorts, token: string) {
  const { sha256 } = consoleSecrets
  return { link: sha256(token), password: sha256(`${token} ${passwordHash}`) }
}

/** @param isUse whether a person uses the session now, which prolongs it */
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
    // The console must stay readable while the database is read-only.
    await sessions.prolong(session.tokenSha256, now, endsAt).catch(() => undefined)
  }
  return session
}

/** False where there is no such session. */
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
