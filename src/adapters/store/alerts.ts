import { and, asc, count, desc, eq, gt, gte, inArray, lte, or } from 'drizzle-orm'
import type { Alert, AlertChannel } from '../../domain/ground/alert.ts'
import { clockToleranceMs } from '../../domain/ground/ports.ts'
import { type AlertStore, leaseMs, requestIntervalMs, retryDelaysMs } from '../../domain/health/alerts.ts'
import type { Row, StoreDatabase, Tables } from './database.ts'
import { type Orm, run, type StatementSteps } from './statements.ts'

/** More than the alerts of one check of all budgets. */
const mostTaken = 100
/** Alerts about conditions of two months. */
const mostOfKinds = 10_000

export function createAlertStore({
  orm,
  tables,
  write,
  writeCounted,
  serialTransaction,
}: StoreDatabase): AlertStore {
  const { alerts, alertDeliveries } = tables
  const deliveryOf = ({ key, channel }: Pick<Row<'alertDeliveries'>, 'key' | 'channel'>) =>
    and(eq(alertDeliveries.key, key), eq(alertDeliveries.channel, channel))
  /** One condition for each number of tries: of all, the first is for a delivery that was not tried. */
  const waitsTooLong = (now: number, leaseMs: number) =>
    [requestIntervalMs, ...retryDelaysMs.map((delayMs) => Math.max(delayMs, leaseMs))].map(
      (longestMs, tries) =>
        and(eq(alertDeliveries.tries, tries), gt(alertDeliveries.dueAt, now + longestMs + clockToleranceMs)),
    )
  return {
    add: (alert, channels) =>
      serialTransaction(function* (inside) {
        const known = yield* run(inside.select().from(alerts).where(eq(alerts.key, alert.key)))
        if (known.length > 0) return false
        yield* addAlert(inside, tables, alert, channels)
        return true
      }),
    /** One process takes each delivery: the update requires the tries that were read. */
    take: async (channels, now, leaseMs) => {
      const isDue = and(
        inArray(alertDeliveries.channel, [...channels]),
        or(lte(alertDeliveries.dueAt, now), ...waitsTooLong(now, leaseMs)),
      )
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
    ofKinds: async (kinds, since) => {
      const isOf = and(inArray(alerts.kind, [...kinds]), gte(alerts.at, since))
      const newest = await orm.select().from(alerts).where(isOf).orderBy(desc(alerts.at)).limit(mostOfKinds)
      return newest.toReversed()
    },
    // The first try counts when it begins.
    failing: async (now) =>
      orm
        .select({ channel: alertDeliveries.channel, alerts: count() })
        .from(alertDeliveries)
        .where(and(gt(alertDeliveries.tries, 1), gt(alertDeliveries.dueAt, now - leaseMs)))
        .groupBy(alertDeliveries.channel)
        .orderBy(asc(alertDeliveries.channel)),
  }
}

export function* addAlert(
  orm: Orm,
  { alerts, alertDeliveries }: Pick<Tables, 'alerts' | 'alertDeliveries'>,
  alert: Alert,
  channels: readonly AlertChannel[],
): StatementSteps<void> {
  const { key, at: dueAt } = alert
  yield* run(orm.insert(alerts).values(alert))
  for (const channel of channels)
    yield* run(orm.insert(alertDeliveries).values({ key, channel, tries: 0, dueAt }))
}
