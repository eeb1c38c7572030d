import { type Column, type SQL, sql } from 'drizzle-orm'

type RecordColumns = Readonly<
  Record<'count' | 'codeId' | 'codeHash' | 'attempts' | 'createdAt' | 'expiresAt', Column>
>

/**
 * How a stored row of `codes_and_limits` takes in one of `RecordChanges.updates`: the counter of the same window and the
 * attempts at the same code are incremented, everything else is replaced.
 */
export function incremented({ count, codeId, attempts, expiresAt }: RecordColumns) {
  return {
    count: sql`case when ${expiresAt} = excluded.expires_at then ${count} + excluded.count else excluded.count end`,
    codeId: sql`excluded.code_id`,
    codeHash: sql`excluded.code_hash`,
    attempts: sql`case when ${codeId} = excluded.code_id then ${attempts} + excluded.attempts else excluded.attempts end`,
    createdAt: sql`excluded.created_at`,
    expiresAt: sql`excluded.expires_at`,
  } satisfies Record<keyof RecordColumns, SQL>
}
