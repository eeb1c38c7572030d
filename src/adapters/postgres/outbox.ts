import { and, asc, desc, eq, gt, sql } from 'drizzle-orm'
import { email, phone } from '../../domain/contact.ts'
import type { Outbox, OutboxEntry, OutboxQuery } from '../../domain/ports.ts'
import { outboxEntry, waiting } from '../../storage/outbox.ts'
import { type Database, ormOn } from './database.ts'
import { outbox } from './schema.ts'
import { storableRow } from './text.ts'

/** The outbox in PostgreSQL: every node shows the messages of all. */
export function createOutbox({ orm, pool, now }: Pick<Database, 'orm' | 'pool' | 'now'>): Outbox {
  const list = async ({ identity, after, limit }: OutboxQuery): Promise<readonly OutboxEntry[]> => {
    const rows = await orm
      .select()
      .from(outbox)
      .where(
        and(
          identity === undefined ? undefined : eq(outbox.identity, identity),
          after === undefined ? undefined : gt(outbox.id, after),
        ),
      )
      // Whoever asks for what came after an id reads on from there; whoever does not wants the last.
      .orderBy(after === undefined ? desc(outbox.id) : asc(outbox.id))
      .limit(limit)
    return rows.map(outboxEntry).sort((a, b) => a.id - b.id)
  }

  return {
    list,
    add: ({ to, brandId, ...rest }) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        // An id is seen only after every lower one: who reads on from an id must not miss a message.
        await inside.execute(sql`LOCK TABLE outbox IN SHARE ROW EXCLUSIVE MODE`)
        const identity = (rest.channel === 'SMS' ? phone(to) : email(to))?.identity ?? to
        const row = { ...rest, recipient: to, identity, brandSlug: brandId, createdAt: now() }
        await inside.insert(outbox).values(storableRow(row))
      }),
    get: async (id) => {
      const [row] = await orm.select().from(outbox).where(eq(outbox.id, id))
      return row && outboxEntry(row)
    },
    wait: waiting(list),
  }
}
