import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import fc from 'fast-check'
import { type Database, openDatabase } from '../../src/adapters/sqlite/database.ts'
import { forget } from '../../src/adapters/sqlite/forget.ts'
import { storeDatabase } from '../../src/adapters/sqlite/stores.ts'
import type { EventLogEntry } from '../../src/adapters/store/event-rows.ts'
import { firstIdOf } from '../../src/adapters/store/request-ids.ts'
import { createStores } from '../../src/adapters/store/stores.ts'
import type { Delivery } from '../../src/domain/delivery/delivery-reports.ts'
import { temporaryFolder } from '../support/app.ts'
import { keepAll, nobody, sqliteWrites } from '../support/operator.ts'

const start = Date.UTC(2026, 0, 1, 12)
const [ann, bob, eve] = ['hash-of-ann', 'hash-of-bob', 'hash-of-eve']

/** Enough requests for a run. */
const enough = 2000

describe('the index of the event log by recipient', () => {
  let database: Database
  let work: ReturnType<typeof sqliteWrites>
  let shared: ReturnType<typeof storeDatabase>
  let requests = 0
  let now = start
  const folder = temporaryFolder()

  function open(file = ':memory:'): void {
    now = start
    database = openDatabase(file)
    work = sqliteWrites(database)
    shared = storeDatabase(database, () => now)
  }
  beforeEach(() => open())
  afterEach(() => database.close())
  afterAll(() => folder.remove())

  /** A request with an attempt to each of these, the first in its own row. */
  function entry(at: number, recipients: readonly string[]): EventLogEntry {
    const requestId = `${firstIdOf(at)}7000-8000-${String(++requests).padStart(12, '0')}`
    const common = { requestId, at, app: 'shop', channel: 'SMS', recipient: 'masked' } as const
    const rest = { ...common, provider: 'twilio', outcome: 'accepted', durationMs: 1 } as const
    const [first, ...further] = recipients
    return {
      request: {
        ...common,
        operation: 'notify',
        limits: '',
        recipients: recipients.length,
        ...(first === undefined ? {} : { ...rest, recipientHash: first, attemptAt: at }),
      },
      attempts: further.map((recipientHash, index) => ({ ...rest, recipientHash, attempt: index + 2 })),
    }
  }

  const save = (...entries: readonly EventLogEntry[]) => work.saveEntries(entries, [])

  /** Requests without a recipient, which are then old enough for a run. */
  async function fill(times = 1): Promise<void> {
    await save(...Array.from({ length: times * enough }, () => entry(now, [])))
    now += 20_000
    for (let isRound = false; !isRound; ) ({ isRound } = await work.sweep(now, keepAll))
  }

  const count = (condition = sql`true`) =>
    database.orm.get<{ n: number }>(sql`SELECT count(*) AS n FROM recipient_index WHERE ${condition}`)?.n
  const runs = () =>
    database.orm.get<{ n: number }>(sql`SELECT count(DISTINCT indexed_before) AS n FROM recipient_index`)?.n

  const deliveries = (query: Partial<Parameters<typeof read>[0]>) => read({ limit: 1000, ...query })
  const read = (query: Parameters<ReturnType<typeof createStores>['eventLog']['deliveries']>[0]) =>
    createStores(shared).eventLog.deliveries(query)

  async function pages(recipientHashes: readonly string[]): Promise<readonly Delivery[]> {
    const found: Delivery[] = []
    for (;;) {
      const [before] = found
      const page = await deliveries({ recipientHashes, limit: 3, ...(before && { before }) })
      if (page.length === 0) return found
      found.unshift(...page)
    }
  }

  test('finds what a filter of all deliveries finds, whenever requests are saved and indexed', async () => {
    const recipients = fc.array(fc.constantFrom(ann, bob, eve), { maxLength: 4 })
    const request = fc.record({ secondsAgo: fc.constantFrom(0, 1, 15, 30, 90), recipients })
    const steps = fc.array(fc.oneof({ arbitrary: request, weight: 5 }, fc.constant('fill' as const)), {
      minLength: 5,
      maxLength: 20,
    })
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        await database.close()
        open()
        for (const step of all) {
          now += 500
          if (step === 'fill') await fill()
          else await save(entry(now - step.secondsAgo * 1000, step.recipients))
        }
        const whole = await deliveries({})
        for (const hashes of [[ann], [bob, eve], ['hash-of-nobody']]) {
          const own = whole.filter(({ recipientHash }) => hashes.includes(recipientHash))
          expect(await deliveries({ recipientHashes: hashes })).toEqual(own)
          expect(await pages(hashes)).toEqual(own)
          const since = now - 30_000
          expect(await deliveries({ recipientHashes: hashes, since })).toEqual(
            own.filter(({ requestId }) => requestId >= firstIdOf(since)),
          )
        }
      }),
      { numRuns: 15 },
    )
  })

  test('is filled in runs of complete requests, when there are enough that began 10 seconds ago', async () => {
    await save(...Array.from({ length: enough - 1 }, () => entry(now, [ann, ann])))
    now += 20_000
    // Each has two rows: enough for one run, and too few for a second one.
    for (let step = 0; step < 3; step++) await work.sweep(now, keepAll)
    expect([runs(), count(sql`recipient_hash = ${ann}`)]).toEqual([1, enough - 1])
    await save(...Array.from({ length: enough }, () => entry(now, [bob])))
    now += 9000
    await work.sweep(now, keepAll)
    expect(runs()).toBe(1)
    now += 6000
    await work.sweep(now, keepAll)
    expect([runs(), count(sql`recipient_hash = ${bob}`)]).toEqual([2, enough])
  })

  test('receives requests that are saved late, and completed ones, in the same step', async () => {
    const [late, unfinished] = [entry(now, [ann]), entry(now, [bob, eve])]
    const { outcome: _, ...begun } = unfinished.request
    await save({ request: begun, attempts: [] })
    await fill()
    expect(count(sql`recipient_hash <> ''`)).toBe(0)
    await save(late, unfinished)
    await save(late)
    expect(count(sql`recipient_hash IN (${ann}, ${bob}, ${eve})`)).toBe(3)
    const found = await deliveries({ recipientHashes: [ann, bob, eve] })
    expect(found.map(({ recipientHash }) => recipientHash)).toEqual([ann, bob, eve])
  })

  test('loses its oldest runs with their requests', async () => {
    await save(entry(now, [ann]))
    await fill()
    const kept = now
    await save(entry(now, [ann]))
    await fill()
    expect([runs(), count(sql`recipient_hash = ${ann}`)]).toEqual([2, 2])
    for (let isRound = false; !isRound; )
      ({ isRound } = await work.sweep(now, { ...keepAll, eventLog: kept }))
    expect([runs(), count(sql`recipient_hash = ${ann}`)]).toEqual([1, 1])
    expect(await deliveries({ recipientHashes: [ann] })).toHaveLength(1)
  })

  test('loses a person with the requests, in all runs, and keeps the others', async () => {
    await database.close()
    open(join(folder.path, 'otpost.db'))
    for (let run = 0; run < 3; run++) {
      await save(...Array.from({ length: 150 }, () => entry(now, [ann, bob])))
      await fill()
    }
    await save(entry(now, [ann]))
    expect([runs(), count(sql`recipient_hash = ${ann}`)]).toEqual([3, 450])
    const { erased } = await forget(database, shared, nobody, [ann], {
      now,
      actor: { by: 'command', name: 'operator' },
    })
    expect(erased).toMatchObject({ requests: 1, deliveries: 451 })
    expect([count(sql`recipient_hash = ${ann}`), count(sql`recipient_hash = ${bob}`)]).toEqual([0, 450])
    expect(await deliveries({ recipientHashes: [ann] })).toEqual([])
    expect(await deliveries({ recipientHashes: [bob] })).toHaveLength(450)
  })
})
