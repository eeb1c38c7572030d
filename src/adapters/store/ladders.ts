import { and, asc, eq, gt, gte, inArray, isNotNull, isNull, lte, sql } from 'drizzle-orm'
import { type DueLadder, failureCountsMs, type LadderStore } from '../../domain/otp/ladder.ts'
import type { StoreDatabase, Tables } from './database.ts'
import type { Orm } from './statements.ts'

/** It has not ended, and is not forgotten. */
export function isClimbing({ requestId, ended }: Tables['ladders'], id: string) {
  return and(eq(requestId, id), isNull(ended))
}

export function ladderEnd(orm: Orm, ladders: Tables['ladders'], id: string, ended: string) {
  const set = { ended, sealed: '', dueAt: null, reportKey: null }
  return orm.update(ladders).set(set).where(isClimbing(ladders, id))
}

/** A cause may have the text of a provider. */
const longestCause = 200

export function createLadderStore({
  orm,
  tables: { ladders, deliveryReports },
  write,
  writeCounted,
}: Pick<StoreDatabase, 'orm' | 'tables' | 'write' | 'writeCounted'>): LadderStore {
  const { requestId, dueAt, reportKey, sentAt, ways, causes } = ladders
  const reportsOf = (keys: readonly string[]) =>
    orm
      .select()
      .from(deliveryReports)
      .where(inArray(deliveryReports.key, [...keys]))
  /** One transaction each, so that no two wait for each other. @returns whether it was still due then */
  const changeDue = async (
    row: { readonly requestId: string; readonly dueAt: number | null },
    at: number,
  ) => {
    const isSame = and(eq(requestId, row.requestId), eq(dueAt, row.dueAt ?? 0))
    const update = orm.update(ladders).set({ dueAt: at }).where(isSame).returning({ requestId })
    return (await writeCounted(update))[0] === 1
  }
  return {
    take: async ({ now, latestDueAt, leaseMs, limit }) => {
      const found = await Promise.all(
        // Each by the index: thousands may wait.
        [lte(dueAt, now), gt(dueAt, latestDueAt)].map((isDue) =>
          orm.select().from(ladders).where(isDue).orderBy(asc(dueAt)).limit(limit),
        ),
      )
      const due = found.flat().slice(0, limit)
      if (due.length === 0) return []
      const isTaken = await Promise.all(due.map((row) => changeDue(row, now + leaseMs)))
      const taken = due.filter((_, index) => isTaken[index])
      const reports = await reportsOf(taken.flatMap((row) => row.reportKeys.split(' ')))
      return taken.map((row): DueLadder => {
        const keys = row.reportKeys.split(' ')
        const own = reports.filter(({ key }) => keys.includes(key))
        return { ...row, reports: own }
      })
    },
    sent: async ({ requestId: id, ...message }) => {
      await write(
        orm
          .update(ladders)
          .set(message)
          .where(and(isClimbing(ladders, id), eq(ways, message.ways))),
      )
      // After the commit: a report that was stored before it has not found the key.
      const known = await reportsOf([message.reportKey ?? ''])
      if (known.some(({ status }) => status !== 'pending'))
        await changeDue({ requestId: id, dueAt: message.dueAt }, message.sentAt)
    },
    endAll: (ended) => {
      const set = { ended, sealed: '', dueAt: null, reportKey: null }
      return write(orm.update(ladders).set(set).where(isNotNull(dueAt)))
    },
    stepped: (id, attempt, cause) => {
      const line = `${attempt} ${cause.replace(/\s+/g, ' ').slice(0, longestCause)}\n`
      return write(
        orm
          .update(ladders)
          .set({ causes: sql`${causes} || ${line}` })
          .where(isClimbing(ladders, id)),
      )
    },
    end: (id, ended) => write(ladderEnd(orm, ladders, id, ended)),
    reported: async (keys, now) => {
      const isOne = and(inArray(reportKey, [...keys]), gt(dueAt, now), gte(sentAt, now - failureCountsMs))
      const found = await orm.select().from(ladders).where(isOne)
      await Promise.all(found.map((row) => changeDue(row, now)))
    },
  }
}
