import { eq, getTableColumns, inArray, type SQL, sql } from 'drizzle-orm'
import type { StoreDatabase } from '../store/database.ts'
import type { Orm, StatementSteps } from '../store/statements.ts'
import { raiseRevision } from './changes.ts'
import { type Database, ormOn } from './database.ts'
import type { Queryable } from './pool.ts'
import { tables } from './schema.ts'
import { jsonElements, storableRow } from './text.ts'
import { verifiedAtIn } from './verified-at.ts'

export function storeDatabase({
  pool,
  orm,
  changes,
  now,
}: Pick<Database, 'pool' | 'orm' | 'changes' | 'now'>): StoreDatabase {
  const writeCounted: StoreDatabase['writeCounted'] = async (...statements) => {
    const runOn = async (connection: Queryable) => {
      const counts: number[] = []
      for (const statement of statements) {
        const { sql, params } = statement.toSQL()
        counts.push((await connection.rows(sql, params)).length)
      }
      return counts
    }
    return statements.length === 1 ? runOn(pool) : pool.transaction(runOn)
  }
  return {
    orm: orm as unknown as Orm,
    reader: orm as unknown as Orm,
    tables,
    now,
    changes,
    policyChanges: changes,
    write: async (...statements) => {
      await writeCounted(...statements)
    },
    writeCounted,
    transaction: (steps) =>
      pool.transaction((connection) => runAll(steps(ormOn(connection) as unknown as Orm))),
    serialTransaction: (steps) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        await raiseRevision(inside)
        return runAll(steps(inside as unknown as Orm))
      }),
    ofRecipient: ({ recipientHash }, hashes) => inArray(recipientHash, [...hashes]),
    // Citus rejects a correlated subquery here. PostgreSQL finds the keys of an array by the index.
    hasReport: (reportKey, statuses, keys) => {
      const { deliveryReports: reports } = tables
      const isOne = inArray(sql`${reports.status}`, [...statuses])
      return sql`${reportKey} IN (SELECT ${reports.key} FROM ${reports} WHERE ${isOne} AND ${reports.key} = ANY (ARRAY(${keys})))`
    },
    jsonElements,
    verifiedAt: verifiedAtIn(pool),
    durable: () => undefined,
    saveMessage: async (row) => {
      await orm.execute(messageInsert(orm, storableRow(row)))
    },
  }
}

/** Readers continue from the last ID they have seen, so a message waits for the commit of lower IDs. */
function messageInsert(orm: Database['orm'], row: Readonly<Record<string, unknown>>): SQL {
  const { outbox, revision } = tables
  const turn = orm.select({ id: revision.id }).from(revision).where(eq(revision.id, 1)).for('update')
  const fields = Object.entries(getTableColumns(outbox)).filter(([field]) => field !== 'id')
  const names = fields.map(([, column]) => sql.identifier(column.name))
  const values = fields.map(([field, column]) => {
    const value = row[field] ?? null
    return sql`${value === null ? null : sql.param(value, column)}::${sql.raw(column.getSQLType())}`
  })
  return sql`insert into ${outbox} (${sql.join(names, sql`, `)})
    select ${sql.join(values, sql`, `)} from ${turn.as('turn')}`
}

export async function runAll<Result>(steps: StatementSteps<Result>): Promise<Result> {
  let step = steps.next()
  while (!step.done) step = steps.next(await step.value)
  return step.value
}
