import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import fc from 'fast-check'
import { createEventLogWriter as createPostgresWriter } from '../../src/adapters/postgres/event-log.ts'
import { storeDatabase as postgresDatabaseOf } from '../../src/adapters/postgres/stores.ts'
import { createSweep as createPostgresSweep } from '../../src/adapters/postgres/sweep.ts'
import { openDatabase } from '../../src/adapters/sqlite/database.ts'
import { createEventLogWriter } from '../../src/adapters/sqlite/event-log.ts'
import { storeDatabase } from '../../src/adapters/sqlite/stores.ts'
import { createSweep } from '../../src/adapters/sqlite/sweep.ts'
import type { StoreDatabase } from '../../src/adapters/store/database.ts'
import {
  createEventLogReader,
  type EventLogStore,
  type EventLogWriter,
} from '../../src/adapters/store/event-log.ts'
import { createEventLogBuffer } from '../../src/adapters/store/event-log-buffer.ts'
import { eventLogEntry } from '../../src/adapters/store/event-rows.ts'
import type { SearchWindows } from '../../src/adapters/store/log-search.ts'
import { firstIdOf } from '../../src/adapters/store/request-ids.ts'
import type { Storage } from '../../src/adapters/store/store.ts'
import { createStores } from '../../src/adapters/store/stores.ts'
import { type DeliveryReportState, reportRanks } from '../../src/domain/delivery/delivery-reports.ts'
import type { SavedRequest } from '../../src/domain/log/event-log.ts'
import type { DeliveryFilter, Found, LogPosition } from '../../src/domain/log/log-search.ts'
import { rangeBetween } from '../../src/domain/log/ranges.ts'
import { lastFailuresOf } from '../../src/domain/log/statistics.ts'
import type { Attempt } from '../../src/domain/request/request-context.ts'
import type { RequestTrace } from '../../src/domain/request/request-trace.ts'
import { newContext } from '../support/calls.ts'
import { keepAll } from '../support/operator.ts'
import { withoutSharedPostgres } from '../support/postgres.ts'
import { testDatabase } from './postgres-database.ts'

const start = Date.UTC(2026, 0, 1, 12)

function idAt(epochMs: number, number = 0): string {
  return `${firstIdOf(epochMs)}7000-8000-${String(number).padStart(12, '0')}`
}

const ended = { status: 502, error: 'sms_failed', message: 'of the fields', durationMs: 12 }

const whole: RequestTrace = {
  requestId: idAt(start),
  at: start,
  operation: 'send',
  app: 'shop',
  brand: 'acme',
  channel: 'SMS',
  recipient: '12*******43',
  recipients: null,
  recipientHash: 'keyed-hash-of-one-num1',
  country: 'US',
  reference: 'order 17',
  flags: ['destination', 'prefix'],
  unknownFields: ['clientIP', 'colour'],
  limits: [
    {
      limit: 'budget',
      max: 50_000_000,
      used: 75_000,
      endsAt: 7,
      refused: false,
      budget: { scope: 'app:a,b/c', of: 'all', currency: 'EUR' },
    },
    {
      limit: 'budget',
      max: 50_000_000,
      used: 1,
      endsAt: 7,
      refused: false,
      budget: { scope: 'country:*', of: 'codes', country: 'LV', currency: 'units' },
    },
    { limit: 'cooldown', max: 1, used: 1, endsAt: start + 30_000, refused: false },
    { limit: 'phone-minute', max: 3, used: null, endsAt: null, refused: false },
    { limit: 'app-minute', max: 10, used: 10, endsAt: start + 60_000, refused: true },
  ],
  end: ended,
}

const bare: RequestTrace = {
  ...whole,
  requestId: idAt(start, 1),
  operation: 'notify',
  brand: null,
  channel: null,
  recipient: null,
  recipients: 3,
  recipientHash: null,
  country: null,
  reference: null,
  flags: [],
  unknownFields: [],
  limits: [],
  end: null,
}

const ofSms: Attempt = {
  attempt: 1,
  at: start + 5,
  channel: 'SMS',
  route: 'template',
  provider: 'kannel',
  template: 'LOGIN_OTP',
  lang: 'hi',
  recipient: '12*******43',
  position: 3,
  recipientHash: 'keyed-hash-of-one-num1',
  segments: { count: 2, encoding: 'UCS-2' },
  country: 'US',
  cost: null,
  outcome: 'rejected',
  errorClass: 'account',
  reason: 'no credit',
  providerMessageId: 'V 1',
  reportKey: 'R 1',
  durationMs: 123,
}

const ofMail: Attempt = {
  ...ofSms,
  attempt: 2,
  channel: 'EMAIL',
  route: null,
  provider: 'smtp',
  template: null,
  lang: null,
  recipient: 'j***@example.com',
  recipientHash: 'keyed-hash-of-one-mail',
  segments: null,
  outcome: 'accepted',
  errorClass: null,
  reason: null,
  providerMessageId: null,
  reportKey: null,
}

/** The request of this trace, with attempts. */
function requestOf(trace: RequestTrace, ...attempts: Attempt[]): SavedRequest {
  const known = Object.fromEntries(Object.entries(trace).filter(([, value]) => value !== null))
  return { ...newContext({ ...known, attempts }), operation: trace.operation, app: trace.app }
}

type Statistics = ReturnType<typeof createStores>['statistics']

/** The functions that the tests need of a database with an event log. */
interface EventLogBackend extends EventLogStore, Statistics {
  keep(...request: Parameters<typeof requestOf>): Promise<void>
  saveReport(key: string, state: DeliveryReportState): Promise<void>
  readonly sweep: Storage['sweep']
  count(table: string): Promise<number>
  close(): Promise<void>
  withWindows(
    windows: SearchWindows,
  ): Pick<EventLogStore, 'findDeliveries' | 'findCalls' | 'countFound' | 'named'>
}

function storeOn(
  database: StoreDatabase,
  writer: EventLogWriter,
  rest: Pick<EventLogBackend, 'sweep' | 'count' | 'close'>,
): EventLogBackend {
  const { eventLog, statistics } = createStores(database)
  return {
    ...eventLog,
    ...writer,
    ...statistics,
    ...rest,
    withWindows: (windows) => createEventLogReader(database, windows),
    keep: (...request) => writer.saveEntries([eventLogEntry(requestOf(...request))], []),
    saveReport: async (key, state) => void (await writer.saveReports('twilio', [{ key, ...state }], false)),
  }
}

/** An SQLite database of its own. */
async function openSqlite(): Promise<EventLogBackend> {
  const database = openDatabase(':memory:')
  return storeOn(storeDatabase(database, Date.now), createEventLogWriter(database), {
    sweep: createSweep(database),
    count: async (table) =>
      database.orm.get<{ n: number }>(sql.raw(`SELECT count(*) AS n FROM ${table}`))?.n ?? 0,
    close: () => database.close(),
  })
}

let postgresDatabase: ReturnType<typeof testDatabase> | undefined
afterAll(async () => (await postgresDatabase)?.remove())

/** The PostgreSQL database shared by these tests, emptied. Its expiry cleanup uses the test's clock. */
async function openPostgres(): Promise<EventLogBackend> {
  postgresDatabase ??= testDatabase()
  const database = await (await postgresDatabase).open(() => start)
  return storeOn(postgresDatabaseOf(database), createPostgresWriter(database, 7), {
    sweep: createPostgresSweep(database, 'this node'),
    count: async (table) => Number((await database.pool.rows(`SELECT count(*) FROM ${table}`, []))[0]?.[0]),
    close: () => database.close(),
  })
}

/** A server would take longer to start than the tests on it. */
const isLeftOut = (name: string) => name === 'PostgreSQL' && withoutSharedPostgres !== undefined

for (const [name, open] of [
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
] as const) {
  describe.skipIf(isLeftOut(name))(`the event log in ${name}`, () => {
    let eventLog: EventLogBackend
    beforeEach(async () => {
      eventLog = await open()
    })
    afterEach(() => eventLog.close())

    describe('counts', () => {
      test('each event in its minute, hour and day, however many steps report it', async () => {
        const sends = (count: number) =>
          eventLog.saveEntries(
            [],
            [
              {
                at: start,
                kind: 'send',
                channel: 'SMS',
                brand: 'acme',
                provider: 'twilio',
                detail: 'ok',
                count,
              },
            ],
          )
        await sends(3)
        await sends(4)
        for (const period of ['hour', 'day', 'month'] as const) {
          const { totals, points } = await eventLog.statistics(period, start + 59_000)
          expect([totals.sends, points.at(-1)?.sends]).toEqual([7, 7])
        }
        const later = (ms: number) => eventLog.statistics('hour', start + ms)
        expect((await later(3_599_999)).totals.sends).toBe(7)
        expect((await later(3_600_000)).totals.sends).toBe(0)
      })

      test('the figures of a chosen time, by step and by provider', async () => {
        const minute = 60_000
        const counted = (at: number, kind: 'send' | 'attempt', provider: string, detail: string) =>
          eventLog.saveEntries([], [{ at, kind, channel: 'SMS', brand: 'acme', provider, detail, count: 3 }])
        await counted(start, 'attempt', 'twilio', 'retryable retryable')
        await counted(start, 'attempt', 'vonage', 'accepted LOGIN_OTP')
        await counted(start, 'send', 'vonage', 'ok')
        await counted(start + 11 * minute, 'send', '', 'sms_failed')
        await counted(start + 12 * minute, 'send', 'vonage', 'ok')
        const later = start + 2 * 86_400_000
        const range = rangeBetween(start, start + 12 * minute, later)
        if (!range) throw new Error('The statistics have no such time')
        const { totals, tries, byBrand } = await eventLog.statisticsIn(range)
        expect([totals.sends, totals.sendsFailed, byBrand[0]?.sends]).toEqual([3, 3, 3])
        const points = await eventLog.pointsIn(range)
        expect(points.map(({ sends, sendsFailed }) => sends - sendsFailed)).toEqual([
          ...[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -3],
        ])
        expect(await eventLog.triesIn(range)).toEqual(tries)
        expect([...(await eventLog.acceptedSms('acme', start - (start % 86_400_000)))]).toEqual([
          ['LOGIN_OTP', 3],
        ])
        expect([...tries].toSorted()).toEqual([
          ['twilio', [{ at: start, failed: 3, all: 3 }]],
          ['vonage', [{ at: start, failed: 0, all: 3 }]],
        ])
      })

      test('the attempts of each provider and route in the last hour', async () => {
        const asked = (at: number, channel: 'SMS' | 'EMAIL', detail: string) =>
          eventLog.saveEntries(
            [],
            [{ at, kind: 'attempt', channel, brand: 'acme', provider: 'outbox', detail, count: 2 }],
          )
        await asked(start, 'SMS', 'accepted')
        await asked(start, 'EMAIL', 'rejected content')
        await asked(start + 60_000, 'SMS', 'unknown unknown')
        await asked(start - 3_600_000, 'SMS', 'accepted')
        expect([...(await eventLog.lately(start + 60_000)).ways].toSorted()).toEqual([
          ['EMAIL outbox', { accepted: 0, failed: 2, unknown: 0 }],
          ['SMS outbox', { accepted: 2, failed: 0, unknown: 2 }],
        ])
      })

      test('the latest failure of the last 10 minutes, of codes and of each provider', async () => {
        const minute = 60_000
        const failed = (at: number, kind: 'attempt' | 'resend', detail: string) =>
          eventLog.saveEntries(
            [],
            [{ at, kind, channel: 'SMS', brand: 'acme', provider: 'one', detail, count: 1 }],
          )
        await failed(start, 'attempt', 'retryable retryable')
        await failed(start + minute, 'attempt', 'unknown unknown')
        await failed(start + 2 * minute, 'attempt', 'accepted')
        await failed(start, 'resend', 'sms_failed')
        const latest = async (at: number) => [...lastFailuresOf((await eventLog.lately(at)).hour)].toSorted()
        expect(await latest(start + 10 * minute)).toEqual([
          ['one', start + minute],
          ['sendsFailed', start],
        ])
        expect(await latest(start + 11 * minute)).toEqual([['one', start + minute]])
        expect(await latest(start + 12 * minute)).toEqual([])
      })

      test('the providers that have accepted a message, on any day', async () => {
        const day = 86_400_000
        const asked = (at: number, provider: string, detail: string) =>
          eventLog.saveEntries(
            [],
            [{ at, kind: 'attempt', channel: 'SMS', brand: '', provider, detail, count: 1 }],
          )
        const accepted = async (at: number) => [...(await eventLog.accepted(at))].toSorted()
        await asked(start - 300 * day, 'kannel', 'accepted LOGIN_OTP')
        await asked(start, 'twilio', 'rejected account')
        expect(await accepted(start)).toEqual(['SMS kannel'])
        // Written after the next day began.
        await asked(start, 'twilio', 'accepted')
        expect(await accepted(start + day)).toEqual(['SMS kannel', 'SMS twilio'])
        await asked(start + 9 * day, 'vonage', 'accepted LOGIN_OTP')
        expect(await accepted(start + 9 * day)).toEqual(['SMS kannel', 'SMS twilio', 'SMS vonage'])
      })

      test('a delivery report once, even if it is repeated', async () => {
        const says = (status: DeliveryReportState['status']) =>
          eventLog.saveReport('R 1', { status, reason: null, at: start })
        for (const status of ['pending', 'delivered', 'delivered', 'failed'] as const) await says(status)
        const { totals, byProvider } = await eventLog.statistics('hour', start)
        expect([totals.delivered, totals.undelivered]).toEqual([1, 0])
        // A network may first report a failure.
        for (const status of ['failed', 'delivered'] as const) {
          await eventLog.saveReport('R 2', { status, reason: null, at: start })
        }
        const after = (await eventLog.statistics('hour', start)).totals
        expect([after.delivered, after.undelivered]).toEqual([2, 0])
        expect(byProvider).toMatchObject([{ name: 'twilio', delivered: 1 }])
      })
    })

    test('returns a request trace as it was saved, with all fields or none', async () => {
      await eventLog.keep(whole)
      await eventLog.keep(bare)
      expect(await eventLog.trace(whole.requestId)).toEqual(whole)
      expect(await eventLog.trace(bare.requestId)).toEqual(bare)
      expect(await eventLog.trace(idAt(start, 2))).toBeUndefined()
    })

    test('returns an attempt as it was saved, with its app and brand', async () => {
      await eventLog.keep(whole, ofSms)
      await eventLog.keep(bare, ofMail)
      const [sms, mail] = await eventLog.deliveries({ limit: 10 })
      const saved = ({ cost: _, ...attempt }: Attempt) => ({ ...attempt, app: 'shop', report: null })
      expect(sms).toEqual({ ...saved(ofSms), requestId: whole.requestId, brand: 'acme' })
      expect(mail).toEqual({ ...saved(ofMail), requestId: bare.requestId, brand: null })
    })

    test('replaces the start of a request by its end', async () => {
      await eventLog.keep({ ...whole, limits: [], end: null })
      await eventLog.keep(whole, ofSms)
      expect(await eventLog.trace(whole.requestId)).toEqual(whole)
      expect(await eventLog.count('requests')).toBe(1)
      await eventLog.keep(whole, ofSms)
      expect(await eventLog.count('attempts')).toBe(0)
    })

    test('finds a delivery report by its key, saved before or after its attempt', async () => {
      await eventLog.saveReport('early', { status: 'delivered', reason: null, at: start })
      await eventLog.keep(whole, { ...ofSms, reportKey: 'early' }, { ...ofMail, reportKey: 'late' })
      await eventLog.saveReport('late', { status: 'failed', reason: 'absent', at: start + 9 })
      await eventLog.saveReport('of nobody', { status: 'failed', reason: null, at: start })
      const rows = await eventLog.deliveries({ limit: 10 })
      expect(rows.map(({ report }) => report)).toEqual([
        { status: 'delivered', reason: null, at: start },
        { status: 'failed', reason: 'absent', at: start + 9 },
      ])
    })
  })
}

for (const [name, open, largestStep] of [
  ['SQLite', openSqlite, 200],
  // Other connections write meanwhile.
  ['PostgreSQL', openPostgres, 1000],
] as const) {
  describe.skipIf(isLeftOut(name))(`reads of the event log in ${name}`, () => {
    let eventLog: EventLogBackend
    beforeEach(async () => {
      eventLog = await open()
    })
    afterEach(() => eventLog.close())

    test('delivery reports give the same final status in every order, and when repeated', async () => {
      let keys = 0
      const report = fc.record({
        status: fc.constantFrom<DeliveryReportState['status'][]>('pending', 'failed', 'delivered'),
        at: fc.integer({ min: 0, max: 1000 }),
        reason: fc.constant(null),
      })
      const orders = fc
        .array(report, { minLength: 1, maxLength: 6 })
        .chain((all) =>
          fc.tuple(fc.constant(all), fc.shuffledSubarray([...all, ...all], { minLength: 2 * all.length })),
        )
      await fc.assert(
        fc.asyncProperty(orders, async ([once, shuffled]) => {
          const best = once.reduce((a, b) => (reportRanks[b.status] > reportRanks[a.status] ? b : a))
          for (const order of [once, shuffled]) {
            const key = `key ${++keys}`
            const requestId = idAt(start, keys)
            await Promise.all(order.map((each) => eventLog.saveReport(key, each)))
            await eventLog.keep({ ...whole, requestId }, { ...ofMail, reportKey: key })
            const [row] = await eventLog.deliveries({ requestId, limit: 1 })
            expect(row?.report?.status).toBe(best.status)
          }
        }),
        { numRuns: 60 },
      )
    })

    test('delivered outranks failed, and failed outranks pending; the first report of a rank is kept', async () => {
      const words: readonly DeliveryReportState[] = [
        { status: 'pending', reason: null, at: 1 },
        { status: 'failed', reason: 'first', at: 2 },
        { status: 'failed', reason: 'second', at: 3 },
        { status: 'pending', reason: null, at: 4 },
        { status: 'delivered', reason: null, at: 5 },
        { status: 'failed', reason: 'third', at: 6 },
        { status: 'delivered', reason: null, at: 7 },
      ]
      await eventLog.keep(whole, { ...ofMail, reportKey: 'key' })
      const after: unknown[] = []
      for (const word of words) {
        await eventLog.saveReport('key', word)
        after.push((await eventLog.deliveries({ limit: 1 }))[0]?.report?.at)
      }
      expect(after).toEqual([1, 2, 2, 2, 5, 5, 5])
    })

    test('deliveries are filtered by request, recipient and time: the latest ones, oldest first', async () => {
      const hashes = ['hash-of-first-22-chars', 'hash-of-other-22-chars'] as const
      for (const [index, hash] of [hashes[0], hashes[1], hashes[0], hashes[1]].entries()) {
        const requestId = idAt(start + index * 1000)
        const attempts = [1, 2].map((attempt) => ({
          ...ofSms,
          attempt,
          recipientHash: hash,
        }))
        await eventLog.keep({ ...whole, requestId }, ...attempts)
      }
      type Query = Parameters<typeof eventLog.deliveries>[0]
      const found = async (query: Partial<Query>) =>
        (await eventLog.deliveries({ limit: 100, ...query })).map(
          ({ requestId, attempt }) =>
            `${[0, 1, 2, 3].find((n) => requestId === idAt(start + n * 1000))}.${attempt}`,
        )
      const all = ['0.1', '0.2', '1.1', '1.2', '2.1', '2.2', '3.1', '3.2']
      expect(await found({})).toEqual(all)
      expect(await found({ limit: 3 })).toEqual(all.slice(-3))
      expect(await found({ requestId: idAt(start + 2000) })).toEqual(['2.1', '2.2'])
      expect(await found({ recipientHashes: hashes.slice(0, 1) })).toEqual(['0.1', '0.2', '2.1', '2.2'])
      expect(await found({ recipientHashes: hashes })).toEqual(all)
      expect(await found({ recipientHashes: ['hash of another recipient'] })).toEqual([])
      expect(await found({ since: start + 2000 })).toEqual(all.slice(4))
      expect(await found({ since: start + 2001 })).toEqual(all.slice(6))
      expect(await found({ since: start + 2000, recipientHashes: [hashes[0]], limit: 1 })).toEqual(['2.2'])
      expect(await found({ since: -1 })).toEqual(all)
    })

    test('deliveries and calls are found by each filter, newest first, page by page', async () => {
      const other = {
        ...ofMail,
        attempt: 1,
        errorClass: 'unknown',
        outcome: 'unknown',
        template: 'X',
      } as const
      await eventLog.keep({ ...whole, requestId: idAt(start) }, ofSms, ofMail)
      await eventLog.keep(
        { ...bare, requestId: idAt(start + 1000), app: 'till', brand: 'b', end: null },
        other,
      )
      await eventLog.keep({
        ...whole,
        requestId: idAt(start + 2000),
        operation: 'verify',
        end: { ...ended, error: null },
      })
      for (const [n, status] of [
        [3, 'delivered'],
        [4, 'failed'],
        [5, 'pending'],
      ] as const) {
        const attempt = {
          ...ofSms,
          outcome: 'accepted',
          errorClass: null,
          country: 'GB',
          reportKey: `K ${n}`,
        } as const
        await eventLog.keep({ ...whole, requestId: idAt(start + n * 1000) }, attempt)
        await eventLog.saveReport(`K ${n}`, { status, reason: null, at: start })
      }
      const nameOf = ({ requestId }: { requestId: string }) =>
        [0, 1, 2, 3, 4, 5].findIndex((n) => requestId === idAt(start + n * 1000))
      const found = async (filter: DeliveryFilter) => {
        const { rows, next } = await eventLog.findDeliveries(filter, { limit: 10 })
        expect(next).toBeNull()
        return rows.map((row) => `${nameOf(row)}.${row.attempt}`).join(' ')
      }
      for (const [filter, rows] of [
        [{}, '5.1 4.1 3.1 1.1 0.2 0.1'],
        [{ statuses: ['accepted'] }, '5.1 0.2'],
        [{ statuses: ['delivered', 'failed'] }, '4.1 3.1'],
        [{ statuses: ['rejected', 'retryable', 'skipped'] }, '0.1'],
        [{ statuses: ['unknown'] }, '1.1'],
        [{ provider: 'kannel', country: 'US' }, '0.1'],
        [{ provider: 'smtp' }, '1.1 0.2'],
        [{ app: 'till' }, '1.1'],
        [{ brand: 'acme', channel: 'EMAIL' }, '0.2'],
        [{ template: 'X' }, '1.1'],
        [{ lang: 'hi', country: 'US' }, '0.1'],
        [{ lang: 'en' }, ''],
        [{ errorClass: 'account' }, '0.1'],
        [{ since: start + 1000, until: start + 4000 }, '3.1 1.1'],
        [{ requestId: idAt(start), channel: 'SMS' }, '0.1'],
        [{ recipientHashes: ['keyed-hash-of-one-mail'], brand: 'acme' }, '0.2'],
      ] as const) {
        expect([filter, await found(filter)]).toEqual([filter, rows])
      }
      const pages: string[] = []
      for (let next: LogPosition | null | undefined; next !== null; ) {
        const page = await eventLog.findDeliveries({ brand: 'acme' }, { before: next, limit: 2 })
        pages.push(page.rows.map((row) => `${nameOf(row)}.${row.attempt}`).join(' '))
        next = page.next
      }
      expect(pages).toEqual(['5.1 4.1', '3.1 0.2', '0.1'])
      for (const [filter, rows] of [
        [{}, '5 4 3 2 1 0'],
        [{ call: 'verify', result: 'success' }, '2'],
        [{ call: 'code', result: 'failed' }, '5 4 3 0'],
        [{ result: 'limited' }, ''],
        // The second attempt of 0 was an e-mail.
        [{ recipientHashes: ['keyed-hash-of-one-mail'] }, '1 0'],
        [{ provider: 'smtp' }, '1 0'],
        [{ app: 'shop', until: start + 3000 }, '2 0'],
      ] as const) {
        const calls = (await eventLog.findCalls(filter, { limit: 10 })).rows
        expect([filter, calls.map(nameOf).join(' ')]).toEqual([filter, rows])
      }
      const [oldest] = (await eventLog.findCalls({ provider: 'kannel' }, { limit: 10 })).rows.toReversed()
      expect(oldest?.deliveries.map((row) => `${row.attempt} ${row.provider}`)).toEqual([
        '1 kannel',
        '2 smtp',
      ])
      for (const [list, filters, rows, requests, recipients] of [
        ['calls', {}, 6, 6, 2],
        ['calls', { provider: 'smtp' }, 2, 2, 2],
        ['deliveries', {}, 6, 5, 2],
        ['deliveries', { provider: 'smtp' }, 2, 2, 1],
        ['deliveries', { app: 'nobody' }, 0, 0, 0],
      ] as const) {
        const total = await eventLog.countFound(list, filters)
        expect([list, filters, total]).toEqual([list, filters, { rows, requests, recipients, isMore: false }])
      }
    })

    test('a search reads a limited part of the log, and the next one continues', async () => {
      const windows = { rows: 3, most: 2 }
      for (let n = 0; n < 20; n++) {
        const attempts = [1, 2, 3].map((attempt) => ({ ...ofSms, attempt, country: n === 6 ? 'LU' : 'US' }))
        await eventLog.keep({ ...whole, requestId: idAt(start + n * 1000) }, ...attempts.slice(n % 3))
      }
      const { findDeliveries, findCalls, countFound } = eventLog.withWindows(windows)
      // Of one request, then of three.
      expect(await countFound('calls', {})).toMatchObject({ rows: 4, isMore: true })
      expect((await countFound('deliveries', {})).isMore).toBe(true)
      for (const [find, expected] of [
        [findDeliveries, ['3', '2', '1']],
        [findCalls, ['1']],
      ] as const) {
        const rows: string[] = []
        let searches = 0
        for (let next: LogPosition | null | undefined; next !== null; searches++) {
          const page: Found<object & { attempt?: number }> = await find(
            { country: 'LU' },
            { before: next, limit: 10 },
          )
          rows.push(...page.rows.map(({ attempt = 1 }) => String(attempt)))
          expect(page.next?.at ?? start).toBeGreaterThanOrEqual(start)
          next = page.next
        }
        expect(rows).toEqual([...expected])
        expect(searches).toBeGreaterThan(2)
      }
    })

    test('references and message IDs are found in all parts that are read, newest first', async () => {
      for (let n = 0; n < 6; n++) {
        const second = { ...ofSms, attempt: 2, providerMessageId: n === 3 ? 'V 3' : null }
        const trace = {
          ...whole,
          requestId: idAt(start + n * 1000),
          reference: n === 4 ? 'V 3' : `order ${n}`,
        }
        await eventLog.keep(trace, { ...ofSms, providerMessageId: n === 0 ? 'V 3' : null }, second)
      }
      const found = async (most: number) => {
        const { found, since } = await eventLog.withWindows({ rows: 2, most }).named('V 3')
        return [found.map(({ requestId, isReference }) => `${requestId} ${isReference}`), since]
      }
      const [newest, next, oldest] = [
        `${idAt(start + 4000)} true`,
        `${idAt(start + 3000)} false`,
        `${idAt(start)} false`,
      ]
      expect(await found(4)).toEqual([[newest, next, oldest], null])
      expect(await found(2)).toEqual([[newest, next], start + 3000])
    })

    describe('the expiry cleanup', () => {
      const rows = () =>
        Promise.all(['requests', 'attempts', 'delivery_reports'].map((table) => eventLog.count(table)))
      const from = start

      test('deletes what is older than the given time, to the millisecond, and nothing else', async () => {
        for (const at of [from - 86_400_000, from - 1, from, from + 1]) {
          await eventLog.keep({ ...whole, requestId: idAt(at) }, ofSms, ofMail)
          await eventLog.saveReport(String(at), { status: 'pending', reason: null, at })
        }
        expect(await eventLog.sweep(from, { ...keepAll, eventLog: from })).toEqual({
          isRound: true,
          isBusy: false,
        })
        expect(await rows()).toEqual([2, 2, 2])
        for (const at of [from, from + 1]) expect(await eventLog.trace(idAt(at))).toBeDefined()
        const left = await eventLog.deliveries({ limit: 10 })
        expect(left.map(({ requestId }) => requestId)).toEqual(
          [from, from, from + 1, from + 1].map((at) => idAt(at)),
        )
      })

      test('runs in small steps, and reports that it is busy until it is done', async () => {
        // A request to many recipients has more rows than one step deletes.
        const attempts = Array.from({ length: 1.5 * largestStep }, (_, index) => ({
          ...ofSms,
          attempt: index + 1,
        }))
        const old = Array.from({ length: 4.5 * largestStep }, (_, index) =>
          eventLogEntry(
            requestOf({ ...whole, requestId: idAt(from - 1, index) }, ...(index === 5 ? attempts : [ofSms])),
          ),
        )
        await eventLog.saveEntries(old, [])
        await eventLog.saveReports(
          'twilio',
          old.map((_, index) => ({ key: `${index}`, status: 'pending', reason: null, at: from - 1 })),
          false,
        )
        await eventLog.keep({ ...whole, requestId: idAt(from) }, ofSms)
        let steps = 0
        for (let isRound = false; !isRound; steps++) {
          const before = await rows()
          const step = await eventLog.sweep(from, { ...keepAll, eventLog: from })
          expect(step.isBusy).toBe(!step.isRound)
          for (const [index, after] of (await rows()).entries())
            expect((before[index] ?? 0) - after).toBeWithin(0, largestStep + 1)
          isRound = step.isRound
        }
        expect(await rows()).toEqual([1, 0, 0])
        expect(steps).toBeWithin(5, 10)
      })
    })
  })
}

describe('the event log buffer', () => {
  /** A buffer over a database whose writes the test completes. */
  function buffer() {
    const steps: { ids: readonly string[]; done: PromiseWithResolvers<void> }[] = []
    const asked: (() => void)[] = []
    const failures: number[] = []
    const { add, count, flush, drain, stats } = createEventLogBuffer(
      (entries) => {
        const done = Promise.withResolvers<void>()
        steps.push({
          ids: entries.map(
            ({ request: { requestId, status, outcome }, attempts }) =>
              `${requestId} ${status === undefined ? 'open' : 'ended'}${outcome ? ' 1' : ''}${attempts.map((row) => ` ${row.attempt}`).join('')}`,
          ),
          done,
        })
        for (const resolve of asked.splice(0)) resolve()
        return done.promise
      },
      (_, requests) => void failures.push(requests),
    )
    const requests = new Map<string, SavedRequest>()
    function tell(requestId: string, ...attempts: readonly Attempt[]): SavedRequest {
      const request = requests.get(requestId) ?? requestOf({ ...whole, requestId, end: null })
      requests.set(requestId, request)
      request.attempts.push(...attempts)
      add(request)
      return request
    }
    return {
      steps,
      failures,
      count,
      flush,
      drain,
      stats,
      tell,
      end(requestId: string): void {
        tell(requestId).end = ended
      },
      /** Resolves when the database has got this many writes. */
      async asked(times: number) {
        while (steps.length < times) await new Promise<void>((resolve) => asked.push(resolve))
        return steps[times - 1]
      },
    }
  }

  /** Turns of the event loop's microtasks; no timer fires meanwhile. */
  async function turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) await undefined
  }

  test('writes concurrent requests in one step, and of a short one the end only', async () => {
    const { tell, end, asked, stats } = buffer()
    tell('a')
    tell('b', ofSms, { ...ofSms, attempt: 2 })
    end('a')
    expect(stats()).toEqual({ waiting: 4, lost: 0 })
    const step = await asked(1)
    expect(step?.ids).toEqual(['a ended', 'b open 1 2'])
    expect(stats()).toEqual({ waiting: 0, lost: 0 })
    step?.done.resolve()
  })

  test('writes each attempt of a request once, whether reported together or separately', async () => {
    const { tell, end, asked } = buffer()
    tell('a', ofSms)
    tell('a', { ...ofSms, attempt: 2 }, { ...ofSms, attempt: 3 })
    const first = await asked(1)
    expect(first?.ids).toEqual(['a open 1 2 3'])
    tell('a', { ...ofSms, attempt: 4 })
    end('a')
    first?.done.resolve()
    const second = await asked(2)
    expect(second?.ids).toEqual(['a ended 4'])
    second?.done.resolve()
  })

  test('flushes everything added before, and does not wait for what is added during the write', async () => {
    const { tell, end, asked, flush } = buffer()
    tell('a')
    const first = await asked(1)
    end('a')
    tell('b')
    const flushed = flush().then(() => 'flushed')
    first?.done.resolve()
    const second = await asked(2)
    expect(second?.ids).toEqual(['a ended', 'b open'])
    expect(await Promise.race([flushed, 'waiting'])).toBe('waiting')
    tell('c')
    second?.done.resolve()
    expect(await flushed).toBe('flushed')
    const third = await asked(3)
    expect(third?.ids).toEqual(['c open'])
    third?.done.resolve()
    await flush()
    await flush()
  })

  test("flushes more than one step's worth in several steps", async () => {
    const { end, asked, flush } = buffer()
    for (let number = 0; number < 401; number++) end(`${number}`)
    const flushed = flush().then(() => 'flushed')
    // The last step includes what was added during the others.
    for (const [times, size] of [200, 200, 3].entries()) {
      const step = await asked(times + 1)
      expect(step?.ids).toHaveLength(size)
      expect(await Promise.race([flushed, 'waiting'])).toBe('waiting')
      end(`later ${times}`)
      // A repeated entry keeps its position.
      end('400')
      step?.done.resolve()
    }
    expect(await flushed).toBe('flushed')
  })

  test('flushes counters too', async () => {
    const { count, asked, flush } = buffer()
    count(start, { kind: 'send', channel: 'SMS', brand: 'acme', provider: '', detail: 'ok' })
    const flushed = flush().then(() => 'flushed')
    const step = await asked(1)
    expect(await Promise.race([flushed, 'waiting'])).toBe('waiting')
    step?.done.resolve()
    expect(await flushed).toBe('flushed')
  })

  test('waits for everything on close, including entries added meanwhile', async () => {
    const { tell, asked, drain } = buffer()
    await drain()
    tell('a')
    const drained = drain().then(() => 'drained')
    const first = await asked(1)
    tell('b')
    first?.done.resolve()
    const second = await asked(2)
    expect(second?.ids).toEqual(['b open'])
    expect(await Promise.race([drained, 'waiting'])).toBe('waiting')
    second?.done.resolve()
    expect(await drained).toBe('drained')
  })

  test('does not block when the database fails immediately', async () => {
    const lost: number[] = []
    let isBroken = true
    const { add, flush, stats } = createEventLogBuffer(
      () => {
        if (isBroken) throw new Error('the database is closed')
        return Promise.resolve()
      },
      (_, requests) => void lost.push(requests),
    )
    add(requestOf(whole))
    await flush()
    expect(lost).toEqual([1])
    isBroken = false
    add(requestOf(whole))
    await flush()
    expect([lost, stats()]).toEqual([[1], { waiting: 0, lost: 1 }])
  })

  test('flushes without waiting for further entries', async () => {
    const { tell, steps, asked, flush } = buffer()
    tell('a')
    void flush()
    await turns(10)
    expect(steps).toHaveLength(1)
    tell('b')
    void flush()
    ;(await asked(1))?.done.resolve()
    await turns(10)
    expect(steps.map(({ ids }) => ids)).toEqual([['a open'], ['b open']])
  })

  test('gathers entries that are added during a step', async () => {
    const { tell, asked } = buffer()
    tell('a')
    const first = await asked(1)
    tell('b')
    first?.done.resolve()
    await turns(10)
    tell('c')
    const second = await asked(2)
    expect(second?.ids).toEqual(['b open', 'c open'])
    second?.done.resolve()
  })

  test('reports entries that cannot be written, and writes later ones', async () => {
    const { end, asked, flush, failures, stats } = buffer()
    for (const id of ['a', 'b']) end(id)
    ;(await asked(1))?.done.reject(new Error('the disk is full'))
    await flush()
    expect(failures).toEqual([2])
    expect(stats()).toEqual({ waiting: 0, lost: 2 })
    end('c')
    const step = await asked(2)
    expect(step?.ids).toEqual(['c ended'])
    step?.done.resolve()
    await flush()
    expect(stats()).toEqual({ waiting: 0, lost: 2 })
  })

  test('loses the oldest request if more than 20,000 rows wait', async () => {
    const { tell, end, asked, failures, stats } = buffer()
    tell('a', ofSms)
    for (let number = 0; number < 19_998; number++) tell(`${number}`)
    expect([failures, stats()]).toEqual([[], { waiting: 20_000, lost: 0 }])
    tell('0')
    expect(failures).toEqual([])
    tell('0', ofSms)
    expect([failures, stats()]).toEqual([[1], { waiting: 19_999, lost: 1 }])
    end('0')
    expect((await asked(1))?.ids[0]).toBe('0 ended 1')
  })

  test.each([0, 1, 2, 3, 4, 5, 6])(
    'writes an entry added %p turns after a step, with or without later entries',
    async (count) => {
      const { tell, asked } = buffer()
      tell('a')
      const first = await asked(1)
      first?.done.resolve()
      await turns(count)
      tell('b')
      const second = await asked(2)
      expect(second?.ids).toEqual(['b open'])
      second?.done.resolve()
    },
  )
})
