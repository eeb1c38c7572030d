import { and, asc, desc, eq, inArray, lte, sql } from 'drizzle-orm'
import type { AlertStore } from '../../domain/money/alerts.ts'
import type { AlertDeliveryRow, StoreDatabase } from './database.ts'

/** More than the alerts of one check of all budgets. */
const mostTaken = 100

export function createAlertStore({
  orm,
  tables,
  write,
  writeCounted,
  jsonElements,
}: StoreDatabase): AlertStore {
  const { alerts, alertDeliveries } = tables
  const deliveryOf = ({ key, channel }: Pick<AlertDeliveryRow, 'key' | 'channel'>) =>
    and(eq(alertDeliveries.key, key), eq(alertDeliveries.channel, channel))
  return {
    /**
     * The alert has no title until its deliveries are stored. So only the transaction that stores the alert stores deliveries, also
     * if another one stores the same alert at the same time.
     */
    add: async ({ title, ...alert }, channels) => {
      const isNew = and(eq(alerts.key, alert.key), eq(alerts.title, ''))
      const elements = jsonElements(JSON.stringify(channels.map((channel) => [channel])))
      const [, , added] = await writeCounted(
        orm
          .insert(alerts)
          .values({ ...alert, title: '' })
          .onConflictDoNothing(),
        orm
          .insert(alertDeliveries)
          .select(
            sql`SELECT ${alerts.key}, value ->> 0, 0, ${alerts.at} FROM ${alerts}, ${elements} WHERE ${isNew}`,
          ),
        orm.update(alerts).set({ title }).where(isNew).returning({ key: alerts.key }),
      )
      return added === 1
    },
    /** One process takes each delivery: the update requires the tries that were read. */
    take: async (channels, now, leaseMs) => {
      const isDue = and(inArray(alertDeliveries.channel, [...channels]), lte(alertDeliveries.dueAt, now))
      const due = await orm
        .select()
        .from(alertDeliveries)
        .where(isDue)
        .orderBy(asc(alertDeliveries.key), asc(alertDeliveries.channel))
        .limit(mostTaken)
      if (due.length === 0) return []
      const counts = await writeCounted(
        ...due.map((row) =>
          orm
            .update(alertDeliveries)
            .set({ tries: row.tries + 1, dueAt: now + leaseMs })
            .where(and(deliveryOf(row), eq(alertDeliveries.tries, row.tries)))
            .returning({ key: alertDeliveries.key }),
        ),
      )
      const taken = due.filter((_, index) => counts[index] === 1)
      const keys = taken.map(({ key }) => key)
      const found = await orm.select().from(alerts).where(inArray(alerts.key, keys))
      return taken.flatMap(({ key, channel, tries }) => {
        const alert = found.find((each) => each.key === key)
        return alert ? [{ alert, channel, tries: tries + 1 }] : []
      })
    },
    retryAt: ({ alert: { key }, channel }, dueAt) =>
      write(orm.update(alertDeliveries).set({ dueAt }).where(deliveryOf({ key, channel }))),
    end: ({ alert: { key }, channel }) =>
      write(orm.delete(alertDeliveries).where(deliveryOf({ key, channel }))),
    latest: async (limit) =>
      orm.select().from(alerts).orderBy(desc(alerts.at), desc(alerts.key)).limit(limit),
  }
}
