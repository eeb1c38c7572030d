import { sql } from 'drizzle-orm'
import type { Database } from './database.ts'

/** Rows removed in one step: few enough that requests beside it don't wait noticeably. */
const batch = 100

/** How long the outbox keeps a message. */
const outboxMs = 86_400_000

/**
 * Removes up to a batch of what is over from each table: codes, windows, old messages of the outbox. Resolves to whether
 * there may be more.
 */
export function sweep({ orm, writer }: Database, now: number): Promise<boolean> {
  return writer.write(() => {
    const removed = [
      sql`DELETE FROM otps WHERE (subject, brand_slug) IN
        (SELECT subject, brand_slug FROM otps WHERE expires_at <= ${now} LIMIT ${batch})`,
      sql`DELETE FROM windows WHERE (subject, name) IN
        (SELECT subject, name FROM windows WHERE ends_at <= ${now} LIMIT ${batch})`,
      sql`DELETE FROM outbox WHERE id IN
        (SELECT id FROM outbox WHERE created_at <= ${now - outboxMs} LIMIT ${batch})`,
    ].map((statement) => orm.run(statement).changes)
    return removed.some((changes) => changes === batch)
  })
}
