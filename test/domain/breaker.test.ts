import { beforeEach, describe, expect, test } from 'bun:test'
import { type BreakerChange, Breakers } from '../../src/domain/delivery/breaker.ts'
import type { Outcome } from '../../src/domain/ground/providers.ts'

const down: Outcome = { kind: 'retryable', reason: 'HTTP 503' }
const accepted: Outcome = { kind: 'accepted' }

let now: number
let breakers: Breakers
beforeEach(() => {
  now = 1000
  breakers = new Breakers(() => now)
})

function fail(provider: string, times: number, outcome: Outcome = down): void {
  for (let time = 0; time < times; time++) breakers.begin(provider)(outcome)
}
const state = () => breakers.states()

describe("the circuit breakers' states", () => {
  test('include only providers with a failure since their last success', () => {
    expect(state()).toEqual([])
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([])
    fail('twilio', 2)
    fail('vonage', 1, { kind: 'unknown', reason: 'time-out' })
    expect(state()).toEqual([
      { provider: 'twilio', state: 'closed', failuresInARow: 2, openMs: 0 },
      { provider: 'vonage', state: 'closed', failuresInARow: 1, openMs: 0 },
    ])
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([{ provider: 'vonage', state: 'closed', failuresInARow: 1, openMs: 0 }])
  })

  test("ignore outcomes that are not the provider's fault", () => {
    fail('twilio', 5, { kind: 'retryable', reason: 'the clock', notCalled: true })
    fail('twilio', 5, { kind: 'rejected', scope: 'recipient', reason: '21614' })
    expect(state()).toEqual([])
  })

  test('have the remaining open time, in agreement with isOpen', () => {
    fail('twilio', 5)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 5, openMs: 10_000 }])
    now += 9999
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 5, openMs: 1 }])
    expect(breakers.isOpen('twilio')).toBe(true)
    now += 1
    expect(state()).toEqual([{ provider: 'twilio', state: 'half-open', failuresInARow: 5, openMs: 0 }])
    expect(breakers.isOpen('twilio')).toBe(false)
  })

  test('are half-open during a probe, and open twice as long after it fails', () => {
    fail('twilio', 5)
    now += 10_000
    const end = breakers.begin('twilio')
    now += 60_000
    expect(state()).toEqual([{ provider: 'twilio', state: 'half-open', failuresInARow: 5, openMs: 0 }])
    expect(breakers.isOpen('twilio')).toBe(true)
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 6, openMs: 20_000 }])
    now += 20_000
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([])
  })

  test('count a probe that ends after another success as one normal failure', () => {
    fail('twilio', 5)
    now += 10_000
    const end = breakers.begin('twilio')
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([])
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'closed', failuresInARow: 1, openMs: 0 }])
  })

  test('ignore a late probe of an earlier open period', () => {
    fail('twilio', 5)
    now += 10_000
    const end = breakers.begin('twilio')
    breakers.begin('twilio')(accepted)
    fail('twilio', 5)
    now += 10_000
    const endNext = breakers.begin('twilio')
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'half-open', failuresInARow: 6, openMs: 0 }])
    expect(breakers.isOpen('twilio')).toBe(true)
    endNext(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 7, openMs: 20_000 }])
  })

  test('are a snapshot: later changes do not affect them', () => {
    fail('twilio', 1)
    const before = state()
    fail('twilio', 4)
    expect(before).toEqual([{ provider: 'twilio', state: 'closed', failuresInARow: 1, openMs: 0 }])
  })
})

describe('a circuit state of another server', () => {
  const shared = { provider: 'twilio', failures: 5, openMs: 10_000 }

  test('opens the circuit here for the same time', () => {
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    expect(breakers.isOpen('twilio')).toBe(true)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 5, openMs: 4000 }])
    now += 4000
    expect(breakers.isOpen('twilio')).toBe(false)
  })

  test('has no effect if it has expired', () => {
    breakers.applyShared([{ ...shared, leftMs: 0 }])
    expect(state()).toEqual([])
  })

  test('ends when it is no longer reported', () => {
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    breakers.applyShared([])
    expect(breakers.isOpen('twilio')).toBe(false)
    expect(state()).toEqual([])
  })

  test('neither shortens nor ends a circuit opened here', () => {
    fail('twilio', 5)
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    breakers.applyShared([])
    expect(state()).toMatchObject([{ provider: 'twilio', state: 'open', openMs: 10_000 }])
  })

  test('extends the open period when a probe there has failed', () => {
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    now += 4000
    breakers.applyShared([{ ...shared, failures: 6, openMs: 20_000, leftMs: 20_000 }])
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 6, openMs: 20_000 }])
  })

  test('that closes during a probe here makes the probe count as a normal message', () => {
    const told: BreakerChange[] = []
    breakers = new Breakers(() => now)
    breakers.onChange((change) => told.push(change))
    breakers.applyShared([{ ...shared, leftMs: 10_000 }])
    now += 10_000
    const end = breakers.begin('twilio')
    breakers.applyShared([])
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'closed', failuresInARow: 1, openMs: 0 }])
    expect(told).toEqual([])
  })

  test('does not override a probe in progress here', () => {
    breakers.applyShared([{ ...shared, leftMs: 10_000 }])
    now += 10_000
    const end = breakers.begin('twilio')
    breakers.applyShared([{ ...shared, failures: 6, openMs: 20_000, leftMs: 20_000 }])
    expect(state()).toEqual([{ provider: 'twilio', state: 'half-open', failuresInARow: 6, openMs: 0 }])
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 7, openMs: 40_000 }])
  })

  test('is reported again after a probe here', () => {
    const changes: BreakerChange[] = []
    const own = new Breakers(() => now)
    own.onChange((change) => changes.push(change))
    own.applyShared([{ ...shared, leftMs: 4000 }])
    now += 4000
    own.begin('twilio')({ kind: 'retryable', reason: 'down' })
    now += 20_000
    own.begin('twilio')(accepted)
    expect(changes).toEqual([
      { provider: 'twilio', state: 'open', openMs: 20_000, failures: 6 },
      { provider: 'twilio', state: 'closed' },
    ])
  })
})
