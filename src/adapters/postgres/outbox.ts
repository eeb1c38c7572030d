import { and, asc, desc, eq, gt } from 'drizzle-orm'
import { email, phone } from '../../domain/contact.ts'
import type { Outbox, OutboxEntry, OutboxQuery } from '../../domain/ports.ts'
import { outboxEntry, waiting } from '../store/outbox.ts'
import type { Database } from './database.ts'
import { outbox } from './schema.ts'
import { asJson } from './text.ts'

const saveMessage = { name: 'otpost_keep_message', text: 'SELECT otpost_keep_message($1::jsonb)' }

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
    // In one statement: a node that is held up between two would hold up every message of all nodes.
    add: async ({ to, brandId, brandName, templateKey, requestId, ...row }) => {
      const message = {
        ...row,
        recipient: to,
        identity: (row.channel === 'SMS' ? phone(to) : email(to))?.identity ?? to,
        brand_slug: brandId,
        brand_name: brandName,
        template_key: templateKey,
        request_id: requestId,
        created_at: now(),
      }
      await pool.query(saveMessage, [asJson(message)])
    },
    get: async (id) => {
      const [row] = await orm.select().from(outbox).where(eq(outbox.id, id))
      return row && outboxEntry(row)
    },
    wait: waiting(list),
  }
}
