import { beforeEach, describe, expect, test } from 'bun:test'
import { type BreakerChange, Breakers } from '../../src/domain/messages/breaker.ts'
import type { Outcome } from '../../src/domain/messages/providers.ts'

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

describe('the states of circuit breakers', () => {
  test('are of those alone that have failed since they worked', () => {
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

  test('what says nothing against a provider does not count', () => {
    fail('twilio', 5, { kind: 'retryable', reason: 'the clock', notCalled: true })
    fail('twilio', 5, { kind: 'rejected', scope: 'recipient', reason: '21614' })
    expect(state()).toEqual([])
  })

  test('tell how long the rest still lasts, and agree with who is passed over', () => {
    fail('twilio', 5)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 5, openMs: 10_000 }])
    now += 9999
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 5, openMs: 1 }])
    expect(breakers.isOpen('twilio')).toBe(true)
    now += 1
    expect(state()).toEqual([{ provider: 'twilio', state: 'half-open', failuresInARow: 5, openMs: 0 }])
    expect(breakers.isOpen('twilio')).toBe(false)
  })

  test('are probed while one message is under way, and rest for twice as long after it fails', () => {
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

  test('a probe that ends after another message was accepted is one failure as any other', () => {
    fail('twilio', 5)
    now += 10_000
    const end = breakers.begin('twilio')
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([])
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'closed', failuresInARow: 1, openMs: 0 }])
  })

  test('a probe of a rest that is over says nothing new about the next rest', () => {
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

  test('are a moment, not a view: what comes later does not change them', () => {
    fail('twilio', 1)
    const before = state()
    fail('twilio', 4)
    expect(before).toEqual([{ provider: 'twilio', state: 'closed', failuresInARow: 1, openMs: 0 }])
  })
})

describe('what another server has found', () => {
  const shared = { provider: 'twilio', failures: 5, openMs: 10_000 }

  test('lets a provider rest here for as long as there', () => {
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    expect(breakers.isOpen('twilio')).toBe(true)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 5, openMs: 4000 }])
    now += 4000
    expect(breakers.isOpen('twilio')).toBe(false)
  })

  test('that is over counts for nothing', () => {
    breakers.applyShared([{ ...shared, leftMs: 0 }])
    expect(state()).toEqual([])
  })

  test('is over when nobody says so any more', () => {
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    breakers.applyShared([])
    expect(breakers.isOpen('twilio')).toBe(false)
    expect(state()).toEqual([])
  })

  test('neither cuts nor ends a rest that was found here', () => {
    fail('twilio', 5)
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    breakers.applyShared([])
    expect(state()).toMatchObject([{ provider: 'twilio', state: 'open', openMs: 10_000 }])
  })

  test('lengthens a rest when a probe there has failed', () => {
    breakers.applyShared([{ ...shared, leftMs: 4000 }])
    now += 4000
    breakers.applyShared([{ ...shared, failures: 6, openMs: 20_000, leftMs: 20_000 }])
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 6, openMs: 20_000 }])
  })

  test('that a provider works again, while this one probes it, makes the probe a message as any other', () => {
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

  test('while this one probes leaves the probe its say', () => {
    breakers.applyShared([{ ...shared, leftMs: 10_000 }])
    now += 10_000
    const end = breakers.begin('twilio')
    breakers.applyShared([{ ...shared, failures: 6, openMs: 20_000, leftMs: 20_000 }])
    expect(state()).toEqual([{ provider: 'twilio', state: 'half-open', failuresInARow: 6, openMs: 0 }])
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'open', failuresInARow: 7, openMs: 40_000 }])
  })

  test('is told anew by the probe of this one', () => {
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
