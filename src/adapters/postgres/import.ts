import { OperatorError } from '../../domain/ground/operator-error.ts'
import { replaceFingerprints } from '../store/key-fingerprints.ts'
import { plainError } from '../store/plain-errors.ts'
import type { Orm } from '../store/statements.ts'
import {
  type ComparedTable,
  columnsByTable,
  comparedKeys,
  type MovedTable,
  movedTables,
  type PlainRow,
  type Transferred,
  type TransferSource,
} from '../store/transfer.ts'
import { raiseRevision } from './changes.ts'
import { serverTime } from './clock.ts'
import { openDatabase, ormOn } from './database.ts'
import {
  DatabaseUnavailable,
  type Pool,
  type PostgresTarget,
  type Queryable,
  StatementError,
} from './pool.ts'
import { tables } from './schema.ts'
import { runAll } from './stores.ts'
import { asJson, storable } from './text.ts'

const { revision } = tables
const columns = columnsByTable(Object.values(tables))
const movedNames = movedTables.map(({ name }) => name)

const batchChars = 1_000_000

/** Counting a long event log is the slowest statement. */
const statementTimeoutMs = 600_000

const idleInTransactionTimeoutMs = 60_000

const lockTimeoutMs = 20_000

/** By then the server has rolled back a transaction whose COMMIT it did not receive. */
const outcomeTimeoutMs = 120_000
const outcomePauseMs = 1000

const outcomeStatementMs = lockTimeoutMs + 5000

/** The reply to COMMIT was lost, and its outcome is unknown. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
}

/** `check` throws if the target notes a key that the source lacks. */
export interface NoteKeys {
  readonly present: string
  readonly check: (noted: readonly string[]) => void
}

/**
 * Copies unexpired rows into an empty database, in one transaction.
 * @param noteKeys undefined: the keys of the source are not known
 * @param beforeCommit called again if the transaction is retried; may throw to roll back
 * @throws OutcomeUnknown; after other errors nothing is changed
 */
export async function importAll(
  target: PostgresTarget,
  source: TransferSource,
  noteKeys: NoteKeys | undefined,
  beforeCommit: () => void,
): Promise<readonly Transferred[]> {
  const { pool, close } = await openDatabase({ ...target, idleInTransactionTimeoutMs }, undefined, () => {})
  let copied: readonly Transferred[] | undefined
  try {
    await requireEmpty(pool)
    source.prepare()
    const expected = countsOf(source)
    return await pool.transaction(
      async (connection) => {
        copied = undefined
        await holdEmpty(connection)
        await connection.rows('DELETE FROM guard_mode', [])
        if (noteKeys) {
          const inside = ormOn(connection) as unknown as Orm
          const { present, check } = noteKeys
          await runAll(replaceFingerprints(inside, tables.keyFingerprints, [present], check))
        }
        const report = await copyAll(connection, source, expected)
        await compare(connection, source, report, expected)
        beforeCommit()
        copied = report
        return report
      },
      { statementTimeoutMs },
    )
  } catch (error) {
    if (copied === undefined || !(error instanceof DatabaseUnavailable)) throw inWords(plainError(error))
    const isThere = copied.every(({ rows }) => rows === 0) || !(await isEmpty(pool, error))
    if (isThere) return copied
    throw error
  } finally {
    await close()
  }
}

function inWords(error: unknown): unknown {
  return error instanceof StatementError && error.code === noRight ? new OperatorError(notOwner) : error
}

const noRight = '42501'
const notOwner =
  'The database user has not all privileges that a move needs. Run `otpost move` as the owner of the tables. Nothing was changed.'

/** Locks out all writers, servers included; throws if a table has rows. The first start of a server stores the mode of the guard. */
async function holdEmpty(connection: Queryable): Promise<void> {
  await connection.rows(`SET LOCAL lock_timeout = ${lockTimeoutMs}`, [])
  // In the order of an operator's change, so that neither waits for the other.
  const lock = async (text: string) => {
    try {
      await connection.rows(text, [])
    } catch (error) {
      throw (error as Partial<StatementError>).code === lockTimeout ? new OperatorError(inUse) : error
    }
  }
  await lock('SELECT number FROM revision WHERE id = 1 FOR UPDATE')
  await lock(`LOCK TABLE ${movedNames.join()} IN SHARE ROW EXCLUSIVE MODE`)
  await requireEmpty(connection)
}

async function requireEmpty(connection: Queryable): Promise<void> {
  const found: string[] = []
  for (const table of movedNames) {
    if (table === 'guard_mode') continue
    const rows = await countOf(connection, table)
    if (rows > 0) found.push(`${table} has ${rows} ${rows === 1 ? 'row' : 'rows'}`)
  }
  if (found.length > 0) throw new NotEmpty(found)
}

const lockTimeout = '55P03'
const inUse =
  'Another process, such as another move, writes to the database. Stop it first. Nothing was changed.'

class NotEmpty extends OperatorError {
  constructor(found: readonly string[]) {
    super(
      `The database is not empty: ${found.join(', ')}. Nothing was changed. Move to an empty database; createdb creates one.`,
    )
  }
}

/** Whether a transaction with a lost COMMIT was rolled back. Its locks last until it has ended. */
async function isEmpty(pool: Pool, lost: DatabaseUnavailable): Promise<boolean> {
  for (const startedAt = performance.now(); performance.now() - startedAt < outcomeTimeoutMs; ) {
    try {
      await pool.transaction(holdEmpty, { statementTimeoutMs: outcomeStatementMs })
      return true
    } catch (error) {
      if (error instanceof NotEmpty) return false
      await Bun.sleep(outcomePauseMs)
    }
  }
  throw new OutcomeUnknown(lost.message, { cause: lost })
}

type Counts = ReadonlyMap<string, number>

function countsOf(source: TransferSource): Counts {
  return new Map(movedNames.map((table) => [table, source.count(table)]))
}

async function copyAll(
  connection: Queryable,
  source: TransferSource,
  expected: Counts,
): Promise<readonly Transferred[]> {
  const shiftMs = await aheadOf(connection, source)
  const done: Transferred[] = []
  for (const table of movedTables) {
    const { name, called, isNumbered } = table
    const names = columns(name).map((column) => column.name)
    const rows = await copyRows(connection, name, names, movedRows(source, table, shiftMs))
    done.push({ name, called, rows, leftOut: (expected.get(name) ?? 0) - rows })
    if (!isNumbered) continue
    // Sequences are not rolled back: then some numbers stay unused.
    await connection.rows(`SELECT setval(pg_get_serial_sequence($1, 'id'), $2::bigint + 1, false)`, [
      name,
      source.lastNumber(name),
    ])
  }
  await raiseRevision(ormOn(connection))
  // Without statistics, long tables would be searched as if they were short.
  await connection.rows(`ANALYZE ${movedNames.join()}`, [])
  return done
}

/** In milliseconds; 0 if the difference may be due to the round trip. */
async function aheadOf(connection: Queryable, { now }: TransferSource): Promise<number> {
  const sentAt = now()
  const [row] = await ormOn(connection).select({ at: serverTime }).from(revision)
  const receivedAt = now()
  const at = Number(row?.at)
  return Math.min(Math.max(0, at - receivedAt), at + 1 - sentAt)
}

function* movedRows(
  source: TransferSource,
  { name: table, shifted }: MovedTable,
  shiftMs: number,
): Generator<PlainRow> {
  const now = source.now()
  for (const row of source.rows(table)) {
    if (table === 'codes_and_limits' && Number(row.expires_at) <= now) continue
    const own: Record<string, unknown> = table === 'stats' ? { ...row, part: 0 } : { ...row }
    for (const name of shifted) if (own[name] !== null) own[name] = Number(own[name]) + shiftMs
    yield own
  }
}

/** Builds the next batch while the server inserts the last one. */
async function copyRows(
  connection: Queryable,
  table: string,
  names: readonly string[],
  rows: Iterable<PlainRow>,
): Promise<number> {
  const list = names.map((name) => `"${name}"`).join()
  const text = `INSERT INTO ${table} (${list}) SELECT ${list} FROM jsonb_populate_recordset(NULL::${table}, $1::jsonb)`
  let count = 0
  let batch: string[] = []
  let chars = 0
  let sent: Promise<unknown> = Promise.resolve()
  const send = async () => {
    await sent
    sent = connection.rows(text, [`[${batch.join()}]`])
    // `await sent` reports the error; without this it would be unhandled until then.
    sent.catch(() => {})
    batch = []
    chars = 0
  }
  for (const row of rows) {
    const json = asJson(row)
    batch.push(json)
    chars += json.length
    count++
    if (chars >= batchChars) await send()
  }
  if (batch.length > 0) await send()
  await sent
  return count
}

async function compare(
  connection: Queryable,
  source: TransferSource,
  report: readonly Transferred[],
  expected: Counts,
): Promise<void> {
  for (const { name: table, leftOut } of report) {
    const [theirs, ours] = [(expected.get(table) ?? 0) - leftOut, await countOf(connection, table)]
    if (theirs !== ours) throw new Error(`${ours} of ${theirs} rows of table ${table} were copied${undone}`)
  }
  for (const table of Object.keys(comparedKeys) as ComparedTable[]) {
    const rows = await connection.rows(`SELECT ${comparedKeys[table]} FROM ${table}`, [])
    const arrived = new Set(rows.map(([key]) => key))
    const missing = source.keys(table).filter((key) => !arrived.has(storable(key)))
    if (missing.length > 0)
      throw new Error(`${missing.length} rows of table ${table} were not copied${undone}`)
  }
}

const undone = '. Nothing was changed.'

async function countOf(connection: Queryable, table: string): Promise<number> {
  const [[count] = []] = await connection.rows(`SELECT count(*) FROM ${table}`, [])
  return Number(count)
}
