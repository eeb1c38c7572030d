import { sql } from 'drizzle-orm'
import type { EpochMs } from '../../domain/ground/time.ts'
import { type VerifiedAt, verifiedAt } from '../store/verified-at.ts'
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

export function verifiedAtIn(pool: Queryable): VerifiedAt {
  return verifiedAt((subjects) => statement.query(pool, { subjects }))
}
