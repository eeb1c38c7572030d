import { DatabaseError as ServerError } from 'pg'

/** A pending statement may or may not have run. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'

  constructor(
    message: string,
    readonly code: string | undefined = undefined,
  ) {
    super(message)
  }
}

/** The server rejected a statement and did not run it. The message contains no values. */
export class StatementError extends Error {
  override readonly name = 'StatementError'
  readonly constraint: string | undefined

  constructor(
    message: string,
    readonly code: string,
    constraint: string | undefined = undefined,
    /** Whether a retry of the statement or its transaction may succeed. */
    readonly isPassing: boolean = false,
  ) {
    super(message)
    this.constraint = constraint
  }
}

export interface Place {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
}

export function connectProblem(place: Place, cause: unknown): DatabaseUnavailable {
  const code = codeOf(cause)
  return new DatabaseUnavailable(
    `PostgreSQL at ${nameOf(place)} can not be reached: ${connectReason(place, code, cause)}`,
    code,
  )
}

export function silence(place: Place, what: string, waitedMs: number): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `PostgreSQL at ${nameOf(place)} ${what} within ${waitedMs} ms: look at that server, and at the network and firewalls on the way`,
  )
}

export function noneFree(place: Place, poolSize: number, waitedMs: number): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `none of the ${poolSize} connections to PostgreSQL at ${nameOf(place)} was free within ${waitedMs} ms: look for what is slow or waits for locks there (pg_stat_activity), or allow more`,
  )
}

export function brokenOff(place: Place, cause: unknown): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `the connection to PostgreSQL at ${nameOf(place)} broke off before it answered (${messageOf(cause)}): was that server stopped, or the network cut?`,
    codeOf(cause),
  )
}

/** Leaves out possible values: detail, context and messages of class 22. `what` names the statement. */
export function statementProblem(place: Place, what: string, cause: unknown): Error {
  if (!(cause instanceof ServerError) || cause.code === undefined) {
    return new Error(`${what} can not be sent: ${namesOnly(cause)}`)
  }
  const { code, constraint, routine } = cause
  if (isAway(code)) {
    return new DatabaseUnavailable(`PostgreSQL at ${nameOf(place)} ${awayReason(code, cause)}`, code)
  }
  const said = code.startsWith('22') ? 'a value that it can not take' : cause.message
  // A migration changed its result type; preparing it again helps.
  const isStale = code === '0A000' && routine === 'RevalidateCachedQuery'
  return new StatementError(
    `${what}: ${said} (${code})${hint(code)}`,
    code,
    constraint,
    isStale || code === '40001' || code === '40P01',
  )
}

export function endsConnection(cause: unknown): boolean {
  if (!(cause instanceof ServerError)) return false
  const { code = '' } = cause
  return (isAway(code) && code !== '57014') || code === '0A000' || isLostStatement(code)
}

/** Shutdown, lost or refused connection, standby, cancelled statement. */
function isAway(code: string): boolean {
  return (
    code.startsWith('57') || code.startsWith('08') || code === '25006' || code === '25P03' || code === '25P04'
  )
}

/** A prepared statement that is missing or exists already: a pooler shares the connection. */
function isLostStatement(code: string): boolean {
  return code === '26000' || code === '42P05'
}

function awayReason(code: string, cause: Error): string {
  switch (code) {
    case '57014':
      return 'cancelled a statement that took too long: look for load and for locks there (pg_stat_activity)'
    case '57P01':
    case '57P02':
      return 'ended the connection: it is being stopped, or somebody has cut it off'
    case '25006':
      return 'can only be read: it is a standby, or was made read-only, as for a full disk. Name the primary, or make room'
    case '25P03':
    case '25P04':
      return 'ended a transaction that waited for this process too long: is this machine overloaded?'
    default:
      return `ended the connection: ${cause.message}`
  }
}

function hint(code: string): string {
  return isLostStatement(code)
    ? '; a pooler in transaction mode seems to stand before the database, which must be said: DATABASE_PGBOUNCER=1'
    : ''
}

function connectReason({ user, database }: Place, code: string | undefined, cause: unknown): string {
  switch (code) {
    case 'ECONNREFUSED':
      return 'nothing listens there. Is PostgreSQL running, and are host and port right?'
    case 'ECONNRESET':
      return 'it ends connections as soon as they are made. Is it being stopped, or is something else at that port?'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'DNS_ENOTFOUND':
    case 'DNS_ESERVFAIL':
      return 'there is no such host. Is its name right, and does the name server answer?'
    case '28P01':
    case '28000':
      return `it does not let ${user} in (${messageOf(cause)}). Are user, password, TLS and its pg_hba.conf right?`
    case '3D000':
      return `it has no database ${database}. Create it: createdb -O ${user} ${database}`
    case '42501':
      return `${user} may not connect to ${database}: grant that`
    case '53300':
      return 'it has as many connections as it may have. Lower the connections of each server, or raise max_connections'
    case '57P03':
      return `it is starting or stopping (${messageOf(cause)})`
    case '08P01':
      return `${messageOf(cause)}${/startup parameter/.test(messageOf(cause)) ? '. It is a pooler, which must be said: DATABASE_PGBOUNCER=1' : ''}`
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'its certificate is of another host name'
    case 'CERT_HAS_EXPIRED':
      return 'its certificate has expired'
    default:
      return `${messageOf(cause)}${isOfCertificate(code) ? '. Is the file of the authority (CA) the one that signed its certificate?' : ''}`
  }
}

function isOfCertificate(code: string | undefined): boolean {
  return code !== undefined && /CERT|SELF_SIGNED|ISSUER|LEAF_SIGNATURE/.test(code)
}

/** Messages of the driver may quote values, except these. */
function namesOnly(cause: unknown): string {
  const message = messageOf(cause)
  return /^(?:Prepared statements must be unique|A query must have)/.test(message)
    ? message
    : cause instanceof Error
      ? cause.name
      : 'unknown'
}

function nameOf({ host, port }: Place): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

function codeOf(cause: unknown): string | undefined {
  const code = (cause as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
