import {
  and,
  asc,
  count,
  desc,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  min,
  ne,
  or,
  type SQL,
  sql,
} from 'drizzle-orm'
import { requestIdOfKey } from '../../domain/delivery/delivery-reports.ts'
import type { NotifyJob } from '../../domain/ground/notify-job.ts'
import { clockToleranceMs } from '../../domain/ground/ports.ts'
import { dayMs, type EpochMs, minuteMs } from '../../domain/ground/time.ts'
import { type NewEvent, type StoredEvent, whileOff } from '../../domain/ground/webhook-events.ts'
import { resolveWithinMs } from '../../domain/integration/event-delivery.ts'
import type {
  EventMessage,
  EventReader,
  EventStore,
  FailingEvents,
} from '../../domain/integration/event-store.ts'
import { auditRow } from './audit.ts'
import type { StoreDatabase } from './database.ts'
import { type AttemptRow, deliveryOf, firstAttemptOf, type RequestRow } from './event-rows.ts'
import { earlyWindowsMs, reportSearch } from './report-search.ts'
import { run } from './statements.ts'

/** Late reports are searched in more windows, once. */
const lateWindowsMs = Array.from({ length: (3 * dayMs) / (10 * minuteMs) }, () => 10 * minuteMs)

type Resolving = 'unresolved' | 'messagesOf' | 'resolve'

type EventDatabase = Pick<
  StoreDatabase,
  'orm' | 'reader' | 'tables' | 'write' | 'writeCounted' | 'transaction'
>

export function createEventStore(database: EventDatabase): EventStore & EventReader {
  return {
    ...createResolver(database),
    ...createDeliveryStore(database),
    ...createEventReader({ ...database, orm: database.reader }),
  }
}

/** Finds the messages of new events in the event log. */
function createResolver({
  orm,
  reader,
  tables: { attempts, deliveryReports, events, ladders, notifyJobs, requests },
  write,
}: EventDatabase): Pick<EventStore, Resolving> {
  const search = reportSearch({ orm: reader, tables: { attempts, requests } })
  const isNew = (id: string) => and(eq(events.id, id), eq(events.state, 'new'))
  return {
    unresolved: async (now, limit) =>
      orm
        .select()
        .from(events)
        .where(and(eq(events.state, 'new'), lte(events.dueAt, now)))
        .orderBy(asc(events.dueAt), asc(events.id))
        .limit(limit),
    messagesOf: async (given, now) => {
      const requestIds = await requestIdsOf(search, given, now)
      const ids = [...new Set(requestIds.values())]
      if (ids.length === 0) return new Map()
      const [rows, further, jobs, climbing] = await Promise.all([
        orm.select().from(requests).where(inArray(requests.requestId, ids)),
        orm.select().from(attempts).where(inArray(attempts.requestId, ids)),
        orm.select().from(notifyJobs).where(inArray(notifyJobs.requestId, ids)),
        orm
          .select({ requestId: ladders.requestId })
          .from(ladders)
          .where(and(inArray(ladders.requestId, ids), isNull(ladders.ended))),
      ])
      const ofRequest = Map.groupBy(
        [...rows.flatMap((row) => firstAttemptOf(row) ?? []), ...further],
        ({ requestId }) => requestId,
      )
      const keys = ofRequest.values().flatMap((all) => all.flatMap(({ reportKey }) => reportKey ?? []))
      const reports = await orm
        .select()
        .from(deliveryReports)
        .where(inArray(deliveryReports.key, [...keys]))
      const reportOf = new Map(reports.map((report) => [report.key, report]))
      return new Map(
        given.flatMap((event) => {
          const row = rows.find(({ requestId }) => requestId === requestIds.get(event.id))
          if (!row) return []
          const isLate = now - event.at > lateMs
          const message = messageOf(event, row, ofRequest.get(row.requestId) ?? [], jobs, isLate)
          if (!message) return []
          const deliveries = message.attempts.map((each) =>
            deliveryOf(each, reportOf.get(each.reportKey ?? '')),
          )
          const isClimbing = climbing.some(({ requestId }) => requestId === row.requestId)
          return [[event.id, { ...message, attempts: deliveries, isClimbing }]]
        }),
      )
    },
    resolve: async ({ resolved, dropped, later }) => {
      const changes = [
        ...resolved.map(({ id, type, app: appId, ...message }) => ({
          id,
          statements: [
            orm
              .update(events)
              .set({ ...message, appId, state: 'waiting' })
              .where(and(isNew(id), isFirst(message.requestId, message.position, type))),
            orm.delete(events).where(isNew(id)),
          ],
        })),
        ...later.map(({ id, dueAt }) => ({
          id,
          statements: [orm.update(events).set({ dueAt }).where(isNew(id))],
        })),
        ...dropped.map((id) => ({ id, statements: [orm.delete(events).where(isNew(id))] })),
      ]
      const statements = inOneOrder(changes).flatMap((change) => change.statements)
      if (statements.length > 0) await write(...statements)
    },
  }
}

async function requestIdsOf(
  search: ReturnType<typeof reportSearch>,
  given: readonly NewEvent[],
  now: number,
): Promise<ReadonlyMap<string, string>> {
  const early = new Set<string>()
  const late = new Set<string>()
  for (const { at, requestId, reportKey } of given) {
    if (requestId !== null || reportKey === null || requestIdOfKey(reportKey) !== undefined) continue
    if (now - at > resolveWithinMs) late.add(reportKey)
    else early.add(reportKey)
  }
  // Their messages are from before them, also if the clock was set back since.
  const until = Math.max(now, ...given.map(({ at }) => at))
  const found = new Map([
    ...(await search(early, until, earlyWindowsMs)),
    ...(await search(late, until, lateWindowsMs)),
  ])
  return new Map(
    given.flatMap(({ id, requestId, reportKey }) => {
      const known = requestId ?? requestIdOfKey(reportKey ?? '') ?? found.get(reportKey ?? '')?.requestId
      return known === undefined ? [] : [[id, known]]
    }),
  )
}

/** Delivers events that wait. */
function createDeliveryStore({
  orm,
  tables: { events },
  write,
  writeCounted,
}: EventDatabase): Omit<EventStore, Resolving> {
  const isTaken = ({ id, tries }: StoredEvent) =>
    and(eq(events.id, id), eq(events.state, 'waiting'), eq(events.tries, tries))

  return {
    take: async (turns, most, now, leaseMs) => {
      const { state, dueAt, appId, id } = events
      const due = await orm
        .select()
        .from(events)
        .where(and(eq(state, 'waiting'), lte(dueAt, now), inArray(appId, [...turns.keys()]), isNext))
        // By the index alone: thousands may be due.
        .orderBy(asc(dueAt))
        .limit(most)
      const left = new Map(turns)
      const chosen = inOneOrder(
        due.filter((event) => {
          const turn = left.get(event.appId ?? '') ?? 0
          left.set(event.appId ?? '', turn - 1)
          return turn > 0
        }),
      )
      if (chosen.length === 0) return []
      const counts = await writeCounted(
        ...chosen.map((event) =>
          orm
            .update(events)
            .set({ tries: event.tries + 1, dueAt: now + leaseMs, triedAt: now })
            .where(and(isTaken(event), eq(dueAt, event.dueAt)))
            .returning({ id }),
        ),
      )
      return chosen
        .filter((_, index) => counts[index] === 1)
        .map((event) => ({ ...event, tries: event.tries + 1, triedAt: now }))
    },
    retryAt: (event, dueAt, result) =>
      write(
        orm
          .update(events)
          .set({ ...result, dueAt })
          .where(isTaken(event)),
      ),
    end: (event, state, endedAt, result) =>
      write(
        orm
          .update(events)
          .set({ ...result, state, endedAt })
          .where(isTaken(event)),
      ),
    recover: async (now) => {
      const latest = now + clockToleranceMs
      const isBeyond = gt(sql`coalesce(${events.triedAt}, ${events.dueAt})`, latest)
      const isStuck = or(
        and(eq(events.state, 'waiting'), gt(events.dueAt, latest), lt(events.dueAt, whileOff), isBeyond),
        and(eq(events.state, 'new'), gt(events.dueAt, latest + resolveWithinMs)),
      )
      const [stuck] = await orm.select({ id: events.id }).from(events).where(isStuck).limit(1)
      if (stuck) await write(orm.update(events).set({ dueAt: now }).where(isStuck))
    },
    waiting: async () => {
      const { appId, state } = events
      const rows = await orm
        .select({ appId, rows: count() })
        .from(events)
        .where(eq(state, 'waiting'))
        .groupBy(appId)
      return new Map(rows.flatMap((row) => (row.appId === null ? [] : [[row.appId, row.rows]])))
    },
  }
}

function createEventReader({
  orm,
  tables: { audit, events },
  write,
  transaction,
}: EventDatabase): EventReader {
  return {
    failing: async () => {
      const { appId, at, state, triedAt, error, answer } = events
      const isFailing = and(eq(state, 'waiting'), isNotNull(error))
      const rows = await orm
        .select({ appId, events: count(), since: min(at) })
        .from(events)
        .where(isFailing)
        .groupBy(appId)
      const found = new Map<string, FailingEvents>()
      for (const { appId: app, events: number, since } of rows) {
        const [latest] = await orm
          .select({ error, answer, triedAt })
          .from(events)
          .where(and(isFailing, eq(appId, app ?? '')))
          .orderBy(desc(triedAt))
          .limit(1)
        if (app === null || !latest) continue
        const { error: why, triedAt: tried } = latest
        found.set(app, {
          ...latest,
          events: number,
          since: since ?? 0,
          error: why ?? '',
          triedAt: tried ?? 0,
        })
      }
      return found
    },
    latest: async (appId, limit) =>
      orm.select().from(events).where(eq(events.appId, appId)).orderBy(desc(events.id)).limit(limit),
    sendAgain: (app, one, { actor, now }) =>
      transaction(function* (inside) {
        const { appId, id, state, error } = events
        const hasFailed = or(eq(state, 'failed'), and(eq(state, 'waiting'), isNotNull(error)))
        const isOf = one === 'failed' ? hasFailed : and(eq(id, one.id), ne(state, 'new'))
        const isOwn = and(eq(appId, app), isOf)
        const { length } = yield* run(inside.update(events).set(againAt(now)).where(isOwn).returning({ id }))
        if (length === 0) return 0
        const about =
          one === 'failed'
            ? { action: 'app.events-sent', details: { events: String(length) } }
            : { action: 'app.event-sent', details: { event: one.id } }
        yield* run(inside.insert(audit).values(auditRow({ at: now, actor, target: app, ...about })))
        return length
      }),
    add: (event, { actor, now }) => {
      const details = { event: event.id, test: 'yes' }
      const entry = auditRow({ at: now, actor, action: 'app.event-sent', target: event.appId, details })
      return write(orm.insert(events).values(event), orm.insert(audit).values(entry))
    },
  }
}

/** With all its tries, as if there had been none. */
function againAt(now: EpochMs) {
  const noTry = { tries: 0, triedAt: null, httpStatus: null, error: null, answer: null, endedAt: null }
  return { state: 'waiting', dueAt: now, ...noTry } as const
}

/** So that no two servers wait for each other. */
function inOneOrder<Row extends { readonly id: string }>(rows: readonly Row[]): readonly Row[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** Whether the message has no event of this type. */
function isFirst(requestId: string, position: number | null, type: NewEvent['type']): SQL {
  return sql`NOT EXISTS (SELECT 1 FROM events AS other WHERE other.request_id = ${requestId}
    AND coalesce(other.position, 0) = ${position ?? 0} AND other.type = ${type} AND other.state <> 'new')`
}

/**
 * In order per message. Two nodes may have resolved two events of one type at the same time; the later one is never due. With OFFSET,
 * PostgreSQL looks up each row until it has enough, instead of joining all events.
 */
const isNext = sql`NOT EXISTS (SELECT 1 FROM events AS earlier WHERE earlier.request_id = events.request_id
  AND coalesce(earlier.position, 0) = coalesce(events.position, 0) AND earlier.id < events.id
  AND (earlier.state IN ('new', 'waiting') OR earlier.type = events.type) LIMIT 1 OFFSET 0)`

/** An attempt that is not in the event log after this time is not expected: a crash can lose the last ones. */
const lateMs = 10_000

/** Undefined: the attempt is not in the event log yet. */
function messageOf(
  { position: given, reportKey }: NewEvent,
  { requestId, app, brand, channel, recipient, recipients, reference }: RequestRow,
  attempts: readonly AttemptRow[],
  jobs: readonly NotifyJob[],
  isLate: boolean,
):
  | (Omit<EventMessage, 'attempts' | 'isClimbing'> & { readonly attempts: readonly AttemptRow[] })
  | undefined {
  const own = attempts.find((attempt) => reportKey !== null && attempt.reportKey === reportKey)
  const isOnly = (recipients ?? 1) === 1
  if (channel === null || (reportKey !== null && !own && !(isLate && isOnly))) return undefined
  const position = own ? own.position : given
  const ofRecipient = attempts.filter((attempt) => attempt.position === position)
  const job = jobs.find((each) => each.requestId === requestId && each.position === (position ?? 1))
  const masked = ofRecipient[0]?.recipient ?? job?.masked ?? (position === null ? recipient : null)
  if (masked === null) return undefined
  return { requestId, app, brand, channel, reference, position, recipient: masked, attempts: ofRecipient }
}
