import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash, randomInt } from 'node:crypto'
import { temporaryFolder } from '../support/app.ts'
import { Ground, profileOf, type Reached, simulate } from './simulation.ts'

// Random histories of concurrent sends and verifications with failing providers, a failing store, a clock that is set
// and crashes, and rules that must hold after every step. SIMULATION_SEED plays the history of one seed again,
// SIMULATION_RUNS sets how many are played.

const { SIMULATION_SEED, SIMULATION_RUNS = '2000' } = process.env
const firstSeed = SIMULATION_SEED === undefined ? randomInt(1_000_000_000) : Number(SIMULATION_SEED)
const runs = SIMULATION_SEED === undefined ? Number(SIMULATION_RUNS) : 1

/** A simulation that reaches nothing proves nothing: what must come about over all histories. */
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
  ...['database: SQLITE_FULL', 'database: locked', 'clock set back', 'clock set forwards'],
  ...[
    'crash (memory)',
    'crash (shared file)',
    'crash (own file)',
    'crash between delivery and answer',
    'failure of an older send',
  ],
  ...['code used after a crash', 'code used before its send was answered'],
  'code used although its send was answered 500',
]

describe('the simulation of OTP send and verify', () => {
  const folder = temporaryFolder()
  const ground = new Ground(folder.path)

  beforeAll(() => ground.prepare())
  afterAll(async () => {
    await ground.close()
    folder.remove()
  })

  test(
    'every history keeps every promise, whatever fails in it',
    async () => {
      const reached: Reached = new Map()
      for (let run = 0; run < runs; run++) await simulate(firstSeed + run, ground, reached)
      const missing = mustBeReached.filter((what) => !reached.has(what))
      // Fewer histories than are played by default need not reach everything.
      if (runs >= 2000) expect(missing, `from seed ${firstSeed} on`).toEqual([])
    },
    Math.max(60_000, runs * 100),
  )

  test('a seed always gives the same history', async () => {
    const digestOf = async (seed: number) => {
      const events = await simulate(seed, ground, new Map())
      return createHash('sha256').update(events.join('\n')).digest('hex')
    }
    const onSharedGround = Array.from({ length: 20 }, (_, index) => firstSeed + index)
    const onOwnFiles: number[] = []
    for (let seed = firstSeed; onOwnFiles.length < 2; seed++) {
      if (profileOf(seed).storage === 'own file') onOwnFiles.push(seed)
    }
    for (const seed of [...onSharedGround, ...onOwnFiles]) {
      expect(await digestOf(seed), `seed ${seed}`).toBe(await digestOf(seed))
    }
  })
})
