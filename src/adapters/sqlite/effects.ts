import type { Effect } from '../../domain/limits/effects.ts'
import { effectStatements } from '../store/effects.ts'
import type { Orm } from '../store/statements.ts'
import type { Database } from './database.ts'
import { jsonElements } from './prepared.ts'
import { tables } from './schema.ts'

/** Inside the transaction of the writer. */
export function writeEffect({ orm, statement }: Pick<Database, 'orm' | 'statement'>, effect: Effect): void {
  for (const each of effectStatements(orm as unknown as Orm, tables, effect, jsonElements)) {
    const { sql: text, params } = each.toSQL()
    statement(text).run(...params)
  }
}
