import { setTimeout as pause } from 'node:timers/promises'
import { and, asc, desc, eq, gt } from 'drizzle-orm'
import type { Outbox, OutboxEntry, OutboxQuery } from '../../domain/ground/ports.ts'
import type { Row, StoreDatabase } from './database.ts'

/** Messages may come from other processes, so a waiting reader polls. */
const pollMs = 100

export function createOutbox({ orm, tables: { outbox }, now, saveMessage, write }: StoreDatabase): Outbox {
  const list = async ({ to, after, limit }: OutboxQuery): Promise<readonly OutboxEntry[]> => {
    const rows = await orm
      .select()
      .from(outbox)
      .where(
        and(
          to === undefined ? undefined : eq(outbox.identity, to),
          after === undefined ? undefined : gt(outbox.id, after),
        ),
      )
      .orderBy(after === undefined ? desc(outbox.id) : asc(outbox.id))
      .limit(limit)
    return rows.map(entryOf).sort((a, b) => a.id - b.id)
  }
  return {
    list,
    add: ({ to, brandId, ...message }) =>
      saveMessage({ ...message, recipient: to, identity: to, brandSlug: brandId, createdAt: now() }),
    get: async (id) => {
      const [row] = await orm.select().from(outbox).where(eq(outbox.id, id))
      return row && entryOf(row)
    },
    clear: async () => {
      await write(orm.delete(outbox))
    },
    wait: async (query, waitMs, signal) => {
      const until = performance.now() + waitMs
      for (;;) {
        const entries = await list(query)
        const left = until - performance.now()
        if (entries.length > 0 || left <= 0 || signal.aborted) return entries
        await pause(Math.min(pollMs, left), undefined, { signal }).catch(() => undefined)
      }
    },
  }
}

function entryOf({ recipient, identity: _, brandSlug, createdAt, ...row }: Row<'outbox'>): OutboxEntry {
  return { ...row, to: recipient, brandId: brandSlug, createdAt: new Date(createdAt).toISOString() }
}
