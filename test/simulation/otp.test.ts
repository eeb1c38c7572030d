import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash, randomInt } from 'node:crypto'
import { temporaryFolder } from '../support/app.ts'
import { freshDatabase, withoutSharedPostgres } from '../support/postgres.ts'
import type { Ground } from './ground.ts'
import { PostgresGround } from './postgres.ts'
import { type Reached, simulate } from './simulation.ts'
import { SqliteGround } from './sqlite.ts'

// Random histories of concurrent sends and verifications with failing providers, a failing store, clock
// changes and crashes, and rules that are checked after every step. SIMULATION_SEED replays the histories of
// one seed on each store. SIMULATION_RUNS sets their number on SQLite, and a tenth of it on PostgreSQL. The
// system tests run 2,000.

const { SIMULATION_SEED, SIMULATION_RUNS = '200' } = process.env
const firstSeed = SIMULATION_SEED === undefined ? randomInt(1_000_000_000) : Number(SIMULATION_SEED)
const runs = SIMULATION_SEED === undefined ? Number(SIMULATION_RUNS) : 1

/** A history takes 10 ms. A test that ends at its time limit goes on with its database, and disturbs the next one. */
const slowestMs = (histories: number) => Math.max(600_000, histories * 100)

const postgresRuns = Math.ceil(runs / 10)

/** The events that must occur in all histories together; otherwise the simulation tests nothing. */
const mustBeReached = [
  ...['send: ok', 'send: sms_failed', 'send: cooldown_active', 'send: rate_limited', 'send: error'],
  ...['verify: ok', 'verify: mismatch', 'verify: max_attempts', 'verify: not_found', 'verify: rate_limited'],
  ...[
    'verify: error',
    'request repeated',
    'request duplicated',
    'request cancelled',
    'calls together',
    'sweep',
  ],
  ...['provider: accepted', 'provider: retryable', 'provider: unknown', 'provider: throws'],
  ...['provider: rejects the recipient', 'provider: rejects the content', 'provider: rejects the account'],
  ...['provider: time-out', 'provider: answer lost', 'provider: accepted, late', 'provider: unknown, late'],
  ...['store: busy', 'store: full', 'store: answer lost', 'store: answer late'],
  ...['database: locked', 'clock set back', 'clock set forwards'],
  ...['crash between delivery and answer', 'failure of an older send'],
  ...['code used after a crash', 'code used before its send was answered'],
  'code used although its send was answered 500',
  ...['send refused by failures', 'verify refused by failures', 'send refused by recipient-hour'],
  'attempt counted after the fact',
]
const onSqlite = ['database: SQLITE_FULL', 'crash (memory)', 'crash (shared file)', 'crash (own file)']
const onPostgres = [
  ...['calls of several servers at once', 'database: terminated', 'database: answer lost'],
  ...['crash (postgres)', 'crash in the middle of a call'],
]

/** @param histories a smaller number need not reach all events */
async function playAll(
  ground: Ground,
  count: number,
  must: readonly string[],
  histories: number,
): Promise<void> {
  const reached: Reached = new Map()
  for (let run = 0; run < count; run++) await simulate(firstSeed + run, ground, reached)
  const missing = must.filter((what) => !reached.has(what))
  if (count >= histories) expect(missing, `from seed ${firstSeed} on`).toEqual([])
}

async function digestOf(seed: number, ground: Ground): Promise<string> {
  const events = await simulate(seed, ground, new Map())
  // The database decides the order within one step, which makes no difference.
  return createHash('sha256').update(events.toSorted().join('\n')).digest('hex')
}

describe('the simulation of OTP send and verify', () => {
  const folder = temporaryFolder()
  const ground = new SqliteGround(folder.path)

  beforeAll(() => ground.prepare())
  afterAll(async () => {
    await ground.close()
    folder.remove()
  })

  test(
    'keeps every rule in every history, with all failures',
    () => playAll(ground, runs, [...mustBeReached, ...onSqlite], 2000),
    slowestMs(runs),
  )

  test(
    'gives the same history for the same seed',
    async () => {
      const onSharedGround = Array.from({ length: 20 }, (_, index) => firstSeed + index)
      const onOwnFiles: number[] = []
      for (let seed = firstSeed; onOwnFiles.length < 2; seed++) {
        if (ground.profileOf(seed).storage === 'own file') onOwnFiles.push(seed)
      }
      for (const seed of [...onSharedGround, ...onOwnFiles]) {
        expect(await digestOf(seed, ground), `seed ${seed}`).toBe(await digestOf(seed, ground))
      }
    },
    slowestMs(runs),
  )
})

describe.skipIf(withoutSharedPostgres !== undefined)(
  `the simulation of OTP send and verify on PostgreSQL${withoutSharedPostgres ? ` (${withoutSharedPostgres})` : ''}`,
  () => {
    let database: Awaited<ReturnType<typeof freshDatabase>>
    let ground: PostgresGround

    beforeAll(async () => {
      database = await freshDatabase()
      ground = await PostgresGround.start(database)
    })
    afterAll(async () => {
      await ground.close()
      await database.remove()
    })

    test(
      'keeps every rule in every history, with all failures',
      () => playAll(ground, postgresRuns, [...mustBeReached, ...onPostgres], 200),
      slowestMs(10 * postgresRuns),
    )

    // The database decides the order of several servers, so histories with concurrent servers are left out.
    test(
      'gives the same history for the same seed, with one server at a time',
      async () => {
        const seeds: number[] = []
        for (let seed = firstSeed; seeds.length < 10; seed++) {
          if (ground.profileOf(seed).isExact) seeds.push(seed)
        }
        for (const seed of seeds) {
          expect(await digestOf(seed, ground), `seed ${seed}`).toBe(await digestOf(seed, ground))
        }
      },
      slowestMs(10),
    )
  },
)
