import type { Effect } from '../../domain/limits/effects.ts'
import { effectStatements } from '../store/effects.ts'
import type { Orm } from '../store/statements.ts'
import type { Database } from './database.ts'
import { jsonElements } from './prepared.ts'
import { tables } from './schema.ts'

/** Inside the transaction of the writer. */
export function writeEffect({ orm, driver }: Pick<Database, 'orm' | 'driver'>, effect: Effect): void {
  for (const statement of effectStatements(orm as unknown as Orm, tables, effect, jsonElements)) {
    const { sql: text, params } = statement.toSQL()
    driver.prepare(text).run(...params)
  }
}
