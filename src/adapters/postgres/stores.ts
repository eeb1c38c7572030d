import { getTableColumns, sql } from 'drizzle-orm'
import type { StoreDatabase } from '../store/database.ts'
import type { Orm, Steps } from '../store/statements.ts'
import { type Database, ormOn } from './database.ts'
import type { Queryable } from './pool.ts'
import * as tables from './schema.ts'
import { asJson } from './text.ts'

const saveMessage = { name: 'otpost_keep_message', text: 'SELECT otpost_keep_message($1::jsonb)' }

/** What PostgreSQL gives the shared stores. */
export function storeDatabase({
  pool,
  orm,
  changes,
  now,
}: Pick<Database, 'pool' | 'orm' | 'changes' | 'now'>): StoreDatabase {
  const columns = Object.entries(getTableColumns(tables.outbox))
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
        // A change increments this number anyway, so the lock adds no wait.
        await inside.execute(sql`SELECT number FROM revision WHERE id = 1 FOR UPDATE`)
        return runAll(steps(inside as unknown as Orm))
      }),
    // One statement, as a server that stalls between two would block the messages of all servers.
    saveMessage: async (row) => {
      const values = new Map<string, unknown>(Object.entries(row))
      const message = columns.map(([field, { name }]) => [name, values.get(field)])
      await pool.query(saveMessage, [asJson(Object.fromEntries(message))])
    },
  }
}

async function runAll<Result>(steps: Steps<Result>): Promise<Result> {
  let step = steps.next()
  while (!step.done) step = steps.next(await step.value)
  return step.value
}
