import type { RequestContext } from '../events/request-context.ts'
import { Failure } from '../failures.ts'
import { claim } from '../otp/claims.ts'
import { consoleLogins } from '../otp/limits.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Clock, Secrets } from '../ports.ts'
import type { Actor, AuditEntry } from './audit.ts'

// Who may use the operator's console: whoever knows its password, or holds a link made on the server itself.

/** A session of the console; instants are epoch milliseconds. */
export interface ConsoleSession {
  /** Of the token in the cookie. */
  readonly tokenSha256: string
  readonly startedAt: number
  readonly lastSeenAt: number
  readonly expiresAt: number
  readonly by: 'password' | 'link'
}

/** Where sessions and links are kept; what changes them is in the audit log with them, in one atomic step. */
export interface ConsoleStore {
  addLink(tokenSha256: string, expiresAt: number, entry: AuditEntry): Promise<void>
  /** Whether some link could still be used. */
  hasLink(now: number): Promise<boolean>
  /** Begins a session by a link, which is used up; false where there is no such link any more. */
  useLink(tokenSha256: string, session: ConsoleSession, entry: AuditEntry): Promise<boolean>
  begin(session: ConsoleSession, entry: AuditEntry): Promise<void>
  /** The session of a token, unless it is over. */
  find(tokenSha256: string, now: number): Promise<ConsoleSession | undefined>
  /** Those that are not over, the last seen first. */
  list(now: number): Promise<readonly ConsoleSession[]>
  prolong(tokenSha256: string, lastSeenAt: number, expiresAt: number): Promise<void>
  /** False where it was over already. */
  end(tokenSha256: string, entry: AuditEntry): Promise<boolean>
  /** Ends all; resolves to how many there were. */
  endAll(entry: AuditEntry): Promise<number>
}

/** How long a link can be used. */
export const linkMs = 10 * 60_000

/** How long a session lasts unused, and how long at most. */
const idleMs = 30 * 60_000
const sessionMs = 8 * 3_600_000

/** How often it is kept that a session was used. */
const seenMs = 60_000

/** Hard to guess, and how it is stored; made and checked by an adapter. */
export interface ConsoleSecrets {
  /** A new token of 256 random bits, and its SHA-256. */
  newToken(): { readonly token: string; readonly sha256: string }
  sha256(token: string): string
  /** Whether this is the password that a hash was made of; slow on purpose. */
  isPassword(password: string, hash: string): Promise<boolean>
}

export interface ConsolePorts {
  readonly sessions: ConsoleStore
  readonly consoleSecrets: ConsoleSecrets
  /** Of the password of the console; undefined: there is none. */
  readonly passwordHash: string | undefined
  readonly now: Clock
}

/** The part of a session's id that is shown: enough to tell it from others, and worth nothing as a token. */
export function sessionId({ tokenSha256 }: Pick<ConsoleSession, 'tokenSha256'>): string {
  return tokenSha256.slice(0, 8)
}

/** Who a session is, for the audit log. */
export function sessionActor(session: Pick<ConsoleSession, 'tokenSha256'>): Actor {
  return { by: 'console', name: sessionId(session) }
}

/** `admin link`: resolves to the token of a new link. */
export async function makeLink(ports: Omit<ConsolePorts, 'passwordHash'>, actor: Actor): Promise<string> {
  const { token, sha256 } = ports.consoleSecrets.newToken()
  const now = ports.now()
  await ports.sessions.addLink(sha256, now + linkMs, {
    at: now,
    actor,
    action: 'console.link',
    target: sha256.slice(0, 8),
    details: {},
  })
  return token
}

/** Begins a session by a link's token; resolves to the session's, or undefined where the link is used up or over. */
export async function enterByLink(ports: ConsolePorts, linkToken: string): Promise<string | undefined> {
  const { token, session } = newSession(ports, 'link')
  const hasBegun = await ports.sessions.useLink(
    ports.consoleSecrets.sha256(linkToken),
    session,
    loginEntry(session),
  )
  return hasBegun ? token : undefined
}

/** What a log-in by password needs beside. */
export interface LoginPorts extends ConsolePorts {
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly store: Pick<OtpStore, 'admit'>
}

/**
 * Begins a session by the password; resolves to its token, or undefined where the password is wrong. Tries are limited by
 * network address before the password is looked at.
 *
 * @throws Failure rate_limited
 */
export async function enterByPassword(
  ports: LoginPorts,
  context: RequestContext,
  password: string,
): Promise<string | undefined> {
  const { passwordHash } = ports
  if (passwordHash === undefined) return undefined
  await claim(ports, context, consoleLogins(ports.secrets.subjects('ip', context.clientIp)))
  // Longer ones are a way to make the server work.
  if (password.length > 1000) throw new Failure('validation_error', 'the password is at most 1000 characters')
  if (!(await ports.consoleSecrets.isPassword(password, passwordHash))) return undefined
  const { token, session } = newSession(ports, 'password')
  await ports.sessions.begin(session, loginEntry(session))
  return token
}

function newSession(ports: ConsolePorts, by: ConsoleSession['by']) {
  const { token } = ports.consoleSecrets.newToken()
  const now = ports.now()
  const session: ConsoleSession = {
    tokenSha256: storedTokens(ports, token)[by],
    startedAt: now,
    lastSeenAt: now,
    expiresAt: now + idleMs,
    by,
  }
  return { token, session }
}

/**
 * What may be stored of a session's token. One that a password began is bound to that: with another password, or none,
 * it is over.
 */
function storedTokens(
  { consoleSecrets, passwordHash }: ConsolePorts,
  token: string,
): Record<ConsoleSession['by'], string> {
  return {
    link: consoleSecrets.sha256(token),
    password: consoleSecrets.sha256(`${token} ${passwordHash}`),
  }
}

function loginEntry(session: ConsoleSession): AuditEntry {
  return {
    at: session.startedAt,
    actor: sessionActor(session),
    action: 'console.login',
    target: sessionId(session),
    details: { by: session.by },
  }
}

/**
 * The session of a token; undefined where there is none.
 *
 * @param isUse whether a person asks, so that it goes on for a while from now
 */
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
    // Where the database can't be written, somebody has to be able to look at what is wrong.
    await sessions.prolong(session.tokenSha256, now, endsAt).catch(() => undefined)
  }
  return session
}

/** Ends a session, one's own or another; false where there is no such session. */
export async function endSession(ports: ConsolePorts, by: ConsoleSession, id: string): Promise<boolean> {
  const now = ports.now()
  const session = (await ports.sessions.list(now)).find((each) => sessionId(each) === id)
  if (!session) return false
  const isOwn = session.tokenSha256 === by.tokenSha256
  return ports.sessions.end(session.tokenSha256, {
    at: now,
    actor: sessionActor(by),
    action: isOwn ? 'console.logout' : 'console.session-revoked',
    target: id,
    details: {},
  })
}
