import { sql } from 'drizzle-orm'
import type { EpochMs } from '../../domain/ground/time.ts'
import type { StoreDatabase } from '../store/database.ts'
import type { Queryable } from './pool.ts'
import { orm, prepared } from './record-statements.ts'
import { tables } from './schema.ts'

const { subject, verifiedAt: at } = tables.verifiedNumbers

const statement = prepared<{ readonly subject: string; readonly at: EpochMs }>(
  'otpost_verified_at',
  orm
    .select({ subject, at: sql`${at}`.as('at') })
    .from(tables.verifiedNumbers)
    .where(sql`${subject} = any(${sql.placeholder('subjects')}::text[])`),
)

/** Questions of one turn of the event loop share a statement. */
export function verifiedAt(pool: Queryable): StoreDatabase['verifiedAt'] {
  const read = async (subjects: readonly string[]) => {
    const rows = await statement.query(pool, { subjects })
    return new Map(rows.map((row) => [row.subject, row.at]))
  }
  let next: { readonly subjects: string[]; readonly answers: ReturnType<typeof read> } | undefined
  const begin = () => {
    const subjects: string[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    setImmediate(() => {
      next = undefined
      resolve()
    })
    return { subjects, answers: promise.then(() => read(subjects)) }
  }
  return async (subject) => {
    next ??= begin()
    next.subjects.push(subject)
    return (await next.answers).get(subject)
  }
}
