import { and, asc, count, eq, gt, inArray, isNotNull, lte, min, or } from 'drizzle-orm'
import type { NotifyJob, NotifyOrder } from '../../domain/ground/notify-job.ts'
import { queueCounter } from '../../domain/limits/limits.ts'
import {
  attemptsOfLostTry,
  type DueJob,
  keptAfterEndMs,
  type ListedJob,
  type NotifyJobStore,
} from '../../domain/notify/queue.ts'
import { auditRow } from './audit.ts'
import type { StoreDatabase } from './database.ts'
import { eventInsert } from './effects.ts'
import { timeOfId } from './request-ids.ts'
import { type Orm, run, type Statement } from './statements.ts'

type JobKey = Pick<NotifyJob, 'requestId' | 'position'>

type OfQueue = 'status' | 'counts' | 'dueApps' | 'take' | 'end' | 'recover'

export function createNotifyJobStore(database: StoreDatabase): NotifyJobStore {
  return { ...createJobList({ ...database, orm: database.reader }), ...createJobQueue(database) }
}

function isWaitingIn({ notifyJobs: { state } }: StoreDatabase['tables']) {
  return inArray(state, ['queued', 'sending'])
}

function isJobIn({ notifyJobs: jobs }: StoreDatabase['tables']) {
  return ({ requestId, position }: JobKey) => and(eq(jobs.requestId, requestId), eq(jobs.position, position))
}

function ordersOf(
  inside: Orm,
  { notifyOrders: orders }: StoreDatabase['tables'],
  rows: readonly JobKey[],
): Statement<NotifyOrder[]> {
  const ids = [...new Set(rows.map(({ requestId }) => requestId))]
  return inside.select().from(orders).where(inArray(orders.requestId, ids))
}

/** What operators see and change. */
function createJobList({ orm, tables, transaction }: StoreDatabase): Omit<NotifyJobStore, OfQueue> {
  const { audit, events, notifyJobs: jobs, notifyOrders: orders } = tables
  const isJob = isJobIn(tables)
  const returned = { requestId: jobs.requestId }
  const isWaiting = isWaitingIn(tables)
  const isKept = and(inArray(jobs.state, ['failed', 'unknown']), isNotNull(jobs.recipient))
  return {
    failed: async () => {
      const [row] = await orm.select({ failed: count() }).from(jobs).where(isKept)
      return row?.failed ?? 0
    },
    ofRequest: async (requestId) => {
      const [[order], rows] = await Promise.all([
        orm.select().from(orders).where(eq(orders.requestId, requestId)),
        orm.select().from(jobs).where(eq(jobs.requestId, requestId)).orderBy(asc(jobs.position)),
      ])
      return order ? rows.map((job) => listed(job, order)) : []
    },
    list: async ({ appId, limit }) => {
      const ofApp = appId === undefined ? undefined : eq(jobs.appId, appId)
      const rows = await orm
        .select()
        .from(jobs)
        .where(and(or(isWaiting, isKept), ofApp))
        .orderBy(asc(jobs.requestId), asc(jobs.position))
        .limit(limit)
      const found = new Map((await ordersOf(orm, tables, rows)).map((order) => [order.requestId, order]))
      return rows.flatMap((job) => {
        const order = found.get(job.requestId)
        return order ? [listed(job, order)] : []
      })
    },
    change: (requestId, { actor, now }, decide) =>
      transaction(function* (inside) {
        const isRequest = eq(orders.requestId, requestId)
        const [order] = yield* run(inside.select().from(orders).where(isRequest))
        const all = yield* run(
          inside.select().from(jobs).where(eq(jobs.requestId, requestId)).orderBy(asc(jobs.position)),
        )
        const { changes, expiresAt, action } = decide(order ? all.map((job) => listed(job, order)) : [])
        let changed = 0
        for (const { position, change, event } of changes) {
          const job = all.find((each) => each.position === position)
          if (!job) continue
          const isSame = and(isJob(job), eq(jobs.state, job.state), eq(jobs.tries, job.tries))
          const rows = yield* run(inside.update(jobs).set(change).where(isSame).returning(returned))
          if (rows.length === 0) continue
          changed++
          if (event) yield* run(eventInsert(inside, events, event))
        }
        if (changed === 0) return 0
        if (expiresAt !== undefined) yield* run(inside.update(orders).set({ expiresAt }).where(isRequest))
        const details = { jobs: String(changed) }
        yield* run(
          inside.insert(audit).values(auditRow({ at: now, actor, action, target: requestId, details })),
        )
        return changed
      }),
  }
}

/** What the worker takes and ends. */
function createJobQueue({
  orm,
  tables,
  writeCounted,
  transaction,
}: StoreDatabase): Pick<NotifyJobStore, OfQueue> {
  const { codesAndLimits: counters, events, notifyJobs: jobs } = tables
  const isDue = (now: number) => and(eq(jobs.state, 'queued'), lte(jobs.dueAt, now))
  const isJob = isJobIn(tables)
  const returned = { requestId: jobs.requestId }
  return {
    status: async () => {
      const [row] = await orm
        .select({ waiting: count(), oldest: min(jobs.requestId) })
        .from(jobs)
        .where(isWaitingIn(tables))
      const { waiting = 0, oldest = null } = row ?? {}
      return { waiting, oldestAt: oldest === null ? null : timeOfId(oldest) }
    },
    counts: async (appId) => {
      const { subject, name } = queueCounter(appId)
      const isCounter = and(eq(counters.subject, subject[0]), eq(counters.name, name))
      // In this order, a job that is stored in between counts as waiting too, instead of not at all.
      const [counter] = await orm.select({ accepted: counters.count }).from(counters).where(isCounter)
      const isOfApp = and(isWaitingIn(tables), eq(jobs.appId, appId))
      const [row] = await orm.select({ waiting: count() }).from(jobs).where(isOfApp)
      return { accepted: counter?.accepted ?? 0, waiting: row?.waiting ?? 0 }
    },
    dueApps: async (now) => {
      const rows = await orm.select({ appId: jobs.appId }).from(jobs).where(isDue(now)).groupBy(jobs.appId)
      return rows.map(({ appId }) => appId)
    },
    /** One process takes each job: the update requires the state that was read. */
    take: async ({ apps, owner, now, leaseMs, limit }) => {
      const dueOf = (appId: string) =>
        orm
          .select()
          .from(jobs)
          .where(and(isDue(now), eq(jobs.appId, appId)))
          .orderBy(asc(jobs.dueAt), asc(jobs.requestId), asc(jobs.position))
          .limit(limit)
      const due = inTurn(await Promise.all(apps.map(dueOf)), limit)
      if (due.length === 0) return []
      const found = new Map((await ordersOf(orm, tables, due)).map((order) => [order.requestId, order]))
      // In one order on all servers, so that no two wait for each other.
      const rows = due.toSorted(byKey)
      const counts = await writeCounted(
        ...rows.map((job) =>
          orm
            .update(jobs)
            .set({ state: 'sending', owner, tries: job.tries + 1, dueAt: now + leaseMs, updatedAt: now })
            .where(and(isJob(job), eq(jobs.state, 'queued'), eq(jobs.tries, job.tries)))
            .returning(returned),
        ),
      )
      return rows.flatMap((job, index): DueJob[] => {
        const order = found.get(job.requestId)
        const { recipient } = job
        if (counts[index] !== 1 || !order || recipient === null) return []
        return [{ order, job: { ...job, tries: job.tries + 1, recipient, owner } }]
      })
    },
    end: async (job, change, event) => {
      const isOwn = and(isJob(job), eq(jobs.state, 'sending'), eq(jobs.owner, job.owner))
      const ended = (inside: Orm) =>
        inside
          .update(jobs)
          .set({ ...change, owner: null })
          .where(isOwn)
          .returning(returned)
      if (!event) return (await writeCounted(ended(orm)))[0] === 1
      return transaction(function* (inside) {
        const [row] = yield* run(ended(inside))
        if (row) yield* run(eventInsert(inside, events, event))
        return row !== undefined
      })
    },
    recover: async (stateOf, { now, latestDueAt }, eventOf) => {
      const isTooLate = and(eq(jobs.state, 'queued'), gt(jobs.dueAt, latestDueAt))
      const [late] = await orm.select(returned).from(jobs).where(isTooLate).limit(1)
      if (late) await writeCounted(orm.update(jobs).set({ dueAt: now }).where(isTooLate))
      const inFlight = await orm.select().from(jobs).where(eq(jobs.state, 'sending'))
      const lost = inFlight.filter((job) => stateOf(job) !== 'sending').toSorted(byKey)
      if (lost.length === 0) return 0
      return transaction(function* (inside) {
        let unknown = 0
        for (const job of lost) {
          const isSame = and(isJob(job), eq(jobs.state, 'sending'), eq(jobs.tries, job.tries))
          const about = { attempts: job.attempts + attemptsOfLostTry, owner: null, updatedAt: now }
          const isUnknown = stateOf(job) === 'unknown'
          const change = isUnknown
            ? ({ ...about, state: 'unknown', reason: 'process ended', dueAt: now + keptAfterEndMs } as const)
            : ({ ...about, state: 'queued', dueAt: now } as const)
          const rows = yield* run(inside.update(jobs).set(change).where(isSame).returning(returned))
          if (rows.length === 0 || !isUnknown) continue
          unknown++
          const event = eventOf(job)
          if (event) yield* run(eventInsert(inside, events, event))
        }
        return unknown
      })
    },
  }
}

/** The first of each list, then the second of each. */
function inTurn<Each>(lists: readonly (readonly Each[])[], limit: number): readonly Each[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  const rounds = Array.from({ length: longest }, (_, round) =>
    lists.flatMap((list) => list.slice(round, round + 1)),
  )
  return rounds.flat().slice(0, limit)
}

function listed(job: NotifyJob, order: NotifyOrder): ListedJob {
  const { requestId, position, state, masked, tries, attempts, dueAt, updatedAt, reason } = job
  const { appId, brandSlug, channel, reference, createdAt, expiresAt, content } = order
  const about = { appId, brandSlug, channel, reference, createdAt, expiresAt }
  const hasContent = job.recipient !== null && content !== ''
  return {
    requestId,
    position,
    state,
    masked,
    tries,
    attempts,
    dueAt,
    updatedAt,
    reason,
    ...about,
    hasContent,
  }
}

function byKey(a: JobKey, b: JobKey): number {
  if (a.requestId !== b.requestId) return a.requestId < b.requestId ? -1 : 1
  return a.position - b.position
}
