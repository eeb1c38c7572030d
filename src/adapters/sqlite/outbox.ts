import { and, asc, desc, eq, gt } from 'drizzle-orm'
import { email, phone } from '../../domain/contact.ts'
import type { Clock, Outbox, OutboxEntry, OutboxQuery } from '../../domain/ports.ts'
import { outboxEntry, waiting } from '../store/outbox.ts'
import type { Database } from './database.ts'
import { outbox } from './schema.ts'

/** The outbox in SQLite, so that it outlives a restart and commands can read it. */
export function createOutbox({ orm, writer }: Database, now: Clock): Outbox {
  const list = async ({ identity, after, limit }: OutboxQuery): Promise<readonly OutboxEntry[]> =>
    orm
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
      .all()
      .map(outboxEntry)
      .sort((a, b) => a.id - b.id)

  return {
    list,
    add: (message) =>
      writer.write(() => {
        const { to, brandId, ...rest } = message
        const identity = (message.channel === 'SMS' ? phone(to) : email(to))?.identity ?? to
        orm
          .insert(outbox)
          .values({ ...rest, recipient: to, identity, brandSlug: brandId, createdAt: now() })
          .run()
      }),
    get: async (id) => {
      const row = orm.select().from(outbox).where(eq(outbox.id, id)).get()
      return row && outboxEntry(row)
    },
    wait: waiting(list),
  }
}
