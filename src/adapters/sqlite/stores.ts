import type Driver from 'better-sqlite3'
import { inArray, sql } from 'drizzle-orm'
import { ExecuteResultSync } from 'drizzle-orm/sqlite-core'
import type { Clock } from '../../domain/ground/time.ts'
import type { StoreChanges, StoreDatabase } from '../store/database.ts'
import { type Orm, run, type StatementSteps } from '../store/statements.ts'
import { verifiedAt } from '../store/verified-at.ts'
import type { Database } from './database.ts'
import { jsonElements } from './prepared.ts'
import { ofRecipient } from './recipient-index.ts'
import { tables } from './schema.ts'

/** @param reader that of a server, or else this connection */
export function storeDatabase(
  database: Pick<Database, 'orm' | 'driver' | 'statement' | 'writer' | 'changes'>,
  now: Clock,
  reader?: Orm,
): StoreDatabase {
  const { orm: drizzle, driver, statement, writer, changes } = database
  const orm = drizzle as unknown as Orm
  const writeCounted: StoreDatabase['writeCounted'] = (...statements) => {
    const queries = statements.map((each) => each.toSQL())
    return writer.write((): readonly number[] =>
      queries.map(({ sql, params }) => {
        const prepared = statement(sql)
        if (prepared.reader) return prepared.all(...params).length
        prepared.run(...params)
        return 0
      }),
    )
  }
  const verified = driver.prepare<[string], { subject: string; at: number }>(
    'SELECT subject, verified_at AS at FROM verified_numbers WHERE subject IN (SELECT value FROM json_each(?))',
  )
  const transaction: StoreDatabase['transaction'] = async (steps) => {
    const { result } = await writer.write(() => ({ result: runAll(steps(orm)) }))
    return result
  }
  return {
    orm,
    reader: reader ?? orm,
    tables,
    now,
    changes,
    policyChanges: policyChanges(driver, changes),
    write: async (...statements) => {
      await writeCounted(...statements)
    },
    writeCounted,
    transaction,
    serialTransaction: (steps) =>
      transaction(function* (inside) {
        const { revision } = tables
        yield* run<unknown>(drizzle.update(revision).set({ number: sql`${revision.number} + 1` }))
        return yield* steps(inside)
      }),
    ofRecipient,
    hasReport: (reportKey, statuses) => {
      const { deliveryReports: reports } = tables
      const isOne = inArray(sql`${reports.status}`, [...statuses])
      return sql`EXISTS (SELECT 1 FROM ${reports} WHERE ${reports.key} = ${reportKey} AND ${isOne})`
    },
    jsonElements,
    durable: () => writer.durable(),
    verifiedAt: verifiedAt((subjects) => verified.all(JSON.stringify(subjects))),
    saveMessage: async (row) => {
      await writeCounted(orm.insert(tables.outbox).values(row))
    },
  }
}

/** The number of the table `revision`, since every commit of another connection changes `changes`. */
function policyChanges(driver: Driver.Database, changes: StoreChanges): StoreChanges {
  const read = driver.prepare<[], number>('SELECT number FROM revision').pluck()
  let seen: ReturnType<StoreChanges['token']> = -1
  let number = -1
  return {
    token: () => {
      const token = changes.token()
      if (token !== seen) number = read.get() ?? -1
      seen = token
      return number
    },
    invalidate: () => changes.invalidate(),
  }
}

/** Synchronous, since a transaction of SQLite can't wait. */
function runAll<Result>(steps: StatementSteps<Result>): Result {
  let step = steps.next()
  while (!step.done) {
    const answer = step.value.prepare('').execute()
    if (!(answer instanceof ExecuteResultSync)) throw new TypeError('not a statement of SQLite')
    step = steps.next(answer.sync())
  }
  return step.value
}
