import { eq, type SQL, sql } from 'drizzle-orm'
import type { StoreDatabase } from '../store/database.ts'
import type { Orm, Steps } from '../store/statements.ts'
import { raiseRevision } from './changes.ts'
import { type Database, ormOn } from './database.ts'
import type { Queryable } from './pool.ts'
import * as tables from './schema.ts'
import { storableRow } from './text.ts'

/** What PostgreSQL gives the shared stores. */
export function storeDatabase({
  pool,
  orm,
  changes,
  now,
}: Pick<Database, 'pool' | 'orm' | 'changes' | 'now'>): StoreDatabase {
  return {
    orm: orm as unknown as Orm,
    tables,
    now,
    changes,
    write: async (...statements) => {
      const runOn = async (connection: Queryable) => {
        for (const statement of statements) {
          const { sql, params } = statement.toSQL()
          await connection.rows(sql, params)
        }
      }
      await (statements.length === 1 ? runOn(pool) : pool.transaction(runOn))
    },
    transaction: (steps) =>
      pool.transaction((connection) => runAll(steps(ormOn(connection) as unknown as Orm))),
    serialTransaction: (steps) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        await raiseRevision(inside)
        return runAll(steps(inside as unknown as Orm))
      }),
    saveMessage: async (row) => {
      await orm.insert(tables.outbox).values({ ...storableRow(row), id: nextMessageId(orm) })
    },
  }
}

/**
 * The next id of a message, once every message with a lower id is committed. It locks a row that always exists. The insert
 * stays one statement, so a server that stalls does not block the others.
 */
function nextMessageId(orm: Database['orm']): SQL<number> {
  const { id } = tables.revision
  const turn = orm.select({ id }).from(tables.revision).where(eq(id, 1)).for('update')
  return sql`(select nextval(pg_get_serial_sequence('outbox', 'id')) from ${turn.as('turn')})`
}

async function runAll<Result>(steps: Steps<Result>): Promise<Result> {
  let step = steps.next()
  while (!step.done) step = steps.next(await step.value)
  return step.value
}
