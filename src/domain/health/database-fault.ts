import { counted, utc, withoutPoint } from '../ground/format.ts'
import type { EpochMs } from '../ground/time.ts'
import type { RequestListener } from '../request/request-ended.ts'

/** Why the database cannot be used, for operators: without host names, values and statements. */
export interface DatabaseFault {
  readonly text: string
  readonly remedy: string
  /** What was being written may be stored. */
  readonly isUncertain: boolean
}

const faults: readonly (readonly [code: RegExp, text: string, remedy: string, isUncertain?: true])[] = [
  [/^SQLITE_BUSY/, 'Another process has locked the database.', 'End that process, such as an SQLite shell.'],
  [
    /^(SQLITE_FULL|53100)$/,
    'The disk of the database is full.',
    'Free disk space, or lower DELIVERY_LOG_DAYS.',
  ],
  [
    /^(SQLITE_READONLY.*|25006)$/,
    'The database is read-only.',
    'Check its mount, or whether it is a standby.',
  ],
  [
    /^SQLITE_(CORRUPT.*|NOTADB)$/,
    'The database is damaged.',
    'Stop the server, and restore the latest backup.',
  ],
  [/^DISK_TIMEOUT$/, 'The disk of the database does not answer.', 'Check the disk and its mount.', true],
  [/^SQLITE_IOERR/, 'The disk of the database has errors.', 'Check the disk and the kernel log.', true],
  [
    /^DATABASE_MOVED$/,
    'The database file was removed or replaced.',
    'Put the file back, and restart the server.',
  ],
  [/^57014$/, 'PostgreSQL cancelled a statement that took too long.', 'Look for locks in pg_stat_activity.'],
  [/^DATABASE_TIMEOUT$/, 'The database does not answer.', 'Check its server and the network.', true],
]

/** Undefined: the error has another cause than the database. */
export function databaseFault(error: unknown): DatabaseFault | undefined {
  if (error instanceof UnusableDatabase) return error.fault
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error ? String(error.code) : ''
  const [, text, remedy = '', isUncertain = false] = faults.find(([pattern]) => pattern.test(code)) ?? []
  if (text !== undefined) return { text, remedy, isUncertain }
  if (error.name !== 'DatabaseUnavailable') return undefined
  // A refused connection has sent nothing.
  return {
    text: 'PostgreSQL does not answer.',
    remedy: 'Check its server and the network. The server log has the cause.',
    isUncertain: !/^(ECONNREFUSED|ENOTFOUND|DNS_.*)$/.test(code),
  }
}

/** What an operator reads instead of a page. */
export function unreadableWords({ text, remedy }: DatabaseFault, outage: DatabaseOutage | undefined): string {
  const since = outage && ` since ${utc(outage.since).slice(0, 16)} UTC`
  const harm = outage && outageWords(outage)
  return `${withoutPoint(text)}${since ?? ''}${harm ? `: ${harm}` : ''}. Requests to send and verify fail. ${remedy}`
}

/** What an operator reads about a change that failed. */
export function unsavedWords({ text, remedy, isUncertain }: DatabaseFault): string {
  const outcome = isUncertain
    ? 'It is unknown whether the change was saved. When the database works again, reload the page before you repeat the change.'
    : 'The change was not saved. Submit it again when the database works.'
  return `${outcome}\n${text} ${remedy}`
}

/** A change that was not tried, since the database could not be used. */
export class UnusableDatabase extends Error {
  override readonly name = 'UnusableDatabase'
  readonly fault: DatabaseFault

  constructor(fault: DatabaseFault) {
    super(fault.text)
    this.fault = { ...fault, isUncertain: false }
  }
}

/** What the latest failure of the database did, as this process knows. */
export interface DatabaseOutage {
  readonly since: EpochMs
  /** Whose calls failed. */
  readonly recipients: number
  readonly isMore: boolean
  /** Also those that failed before their recipient was known. */
  readonly calls: number
}

/** Bounds memory. */
const mostPeople = 10_000

/** Kept in memory, since the event log cannot be written. */
export class DatabaseFailures {
  latest: DatabaseOutage | undefined
  private people = new Set<string>()
  private isOver = true

  note(isFailing: boolean, at: EpochMs): void {
    if (isFailing && this.isOver) {
      this.people = new Set()
      this.latest = { since: at, recipients: 0, isMore: false, calls: 0 }
    }
    this.isOver = !isFailing
  }

  readonly ended: RequestListener = ({ context, status, failure }) => {
    if (status < 500 || !databaseFault(failure?.details.cause)) return
    this.note(true, context.at)
    const { people, latest } = this
    const person = context.recipientHash ?? context.recipient
    if (person !== undefined && people.size < mostPeople) people.add(person)
    this.latest = latest && {
      since: Math.min(latest.since, context.at),
      recipients: people.size,
      isMore: people.size === mostPeople,
      calls: latest.calls + 1,
    }
  }
}

/** Such as `14 people got an error`. Empty: no call failed. */
export function outageWords({ recipients, isMore, calls }: DatabaseOutage): string {
  const people = `${isMore ? 'more than ' : ''}${counted(recipients, 'person', 'people')} got an error`
  return recipients > 0 ? people : calls > 0 ? `${counted(calls, 'call')} failed` : ''
}

/** For `databaseFault`: the database has neither answered nor failed within a time. */
export function databaseTimeout(): Error {
  return Object.assign(new Error('The database did not answer in time.'), { code: 'DATABASE_TIMEOUT' })
}
