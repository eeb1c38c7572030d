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
    `PostgreSQL at ${nameOf(place)} cannot be reached: ${connectReason(place, code, cause)}`,
    code,
  )
}

export function silence(place: Place, what: string, waitedMs: number): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `PostgreSQL at ${nameOf(place)} ${what} within ${waitedMs} ms. Check that server, the network and the firewalls.`,
  )
}

export function noneFree(place: Place, poolSize: number, waitedMs: number): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `None of the ${poolSize} connections to PostgreSQL at ${nameOf(place)} was free within ${waitedMs} ms. Look for slow statements and locks in pg_stat_activity, or raise DATABASE_POOL_SIZE.`,
  )
}

export function brokenOff(place: Place, cause: unknown): DatabaseUnavailable {
  return new DatabaseUnavailable(
    `The connection to PostgreSQL at ${nameOf(place)} was lost before it answered (${messageOf(cause)}). Check that server and the network.`,
    codeOf(cause),
  )
}

/** Leaves out possible values: detail, context and messages of class 22. `what` names the statement. */
export function statementProblem(place: Place, what: string, cause: unknown): Error {
  if (!(cause instanceof ServerError) || cause.code === undefined) {
    return new Error(`${what} cannot be sent: ${namesOnly(cause)}`)
  }
  const { code, constraint, routine } = cause
  if (isAway(cause)) {
    return new DatabaseUnavailable(`PostgreSQL at ${nameOf(place)} ${awayReason(code, cause)}`, code)
  }
  const said = code.startsWith('22') ? 'invalid value' : cause.message
  // A migration changed its result type; preparing it again helps.
  const isStale = code === '0A000' && routine === 'RevalidateCachedQuery'
  return new StatementError(
    `${what}: ${said} (${code})${hint(code)}`,
    code,
    constraint,
    isStale || code === '40001' || code === '40P01',
  )
}

/** A transaction that has failed also rejects a preparation, which a later statement then misses. */
export function endsConnection(cause: unknown, isInFailedTransaction: boolean): boolean {
  if (!(cause instanceof ServerError)) return false
  const { code = '' } = cause
  const isShared = isLostStatement(code) && !isInFailedTransaction
  return (isAway(cause) && code !== '57014') || code === '0A000' || isShared
}

/**
 * Shutdown, lost or refused connection, standby, cancelled statement. An ERROR does not end the connection: with a code of
 * a lost connection it is about another server, such as a worker of Citus, and other rows can still be used.
 */
function isAway({ code = '', severity }: ServerError): boolean {
  if (code === '57014' || code === '25006') return true
  return severity !== 'ERROR' && (/^(?:08|57)/.test(code) || code === '25P03' || code === '25P04')
}

/** A prepared statement that is missing or exists already: a pooler shares the connection. */
function isLostStatement(code: string): boolean {
  return code === '26000' || code === '42P05'
}

function awayReason(code: string, cause: Error): string {
  switch (code) {
    case '57014':
      return 'cancelled a statement that took too long. Look for load and locks in pg_stat_activity.'
    case '57P01':
    case '57P02':
      return 'ended the connection, because it is stopping or an administrator ended it.'
    case '25006':
      return 'is read-only. It is a standby, or its disk is full. Set DATABASE_URL to the primary, or free disk space.'
    case '25P03':
    case '25P04':
      return 'ended a transaction that waited too long for this process. Check the load of this machine.'
    default:
      return `ended the connection: ${cause.message}`
  }
}

function hint(code: string): string {
  return isLostStatement(code)
    ? '. If DATABASE_URL is a pooler in transaction mode, set DATABASE_PGBOUNCER=1.'
    : ''
}

function connectReason({ user, database }: Place, code: string | undefined, cause: unknown): string {
  switch (code) {
    case 'ECONNREFUSED':
      return 'connection refused. Check that PostgreSQL is running, and the host and port.'
    case 'ECONNRESET':
      return 'it closes new connections. It is stopping, or another program uses that port.'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'DNS_ENOTFOUND':
    case 'DNS_ESERVFAIL':
      return 'the host name is not in the DNS. Check the name and the DNS servers.'
    case '28P01':
    case '28000':
      return `it rejected user ${user} (${messageOf(cause)}). Check the user, the password, TLS and pg_hba.conf.`
    case '3D000':
      return `database ${database} does not exist. Create it with \`createdb -O ${user} ${database}\`.`
    case '42501':
      return `user ${user} has no CONNECT privilege on database ${database}. Grant it.`
    case '53300':
      return 'all its connections are in use. Lower DATABASE_POOL_SIZE, or raise max_connections.'
    case '57P03':
      return `it is starting or stopping (${messageOf(cause)})`
    case '08P01':
      return `${messageOf(cause)}${/startup parameter/.test(messageOf(cause)) ? '. It is a pooler: set DATABASE_PGBOUNCER=1.' : ''}`
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'its certificate is for another host name.'
    case 'CERT_HAS_EXPIRED':
      return 'its certificate has expired.'
    default:
      return `${messageOf(cause)}${isOfCertificate(code) ? '. Check that sslrootcert is the CA that signed its certificate.' : ''}`
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
