import { beforeEach, describe, expect, test } from 'bun:test'
import { Breakers } from '../../src/domain/breaker.ts'
import type { Outcome } from '../../src/domain/providers.ts'

const down: Outcome = { kind: 'retryable', reason: 'HTTP 503' }
const accepted: Outcome = { kind: 'accepted' }

describe('the states of circuit breakers', () => {
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

  test('are of those alone that have failed since they worked', () => {
    expect(state()).toEqual([])
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([])
    fail('twilio', 2)
    fail('vonage', 1, { kind: 'unknown', reason: 'time-out' })
    expect(state()).toEqual([
      { provider: 'twilio', state: 'works', failuresInARow: 2, restMs: 0 },
      { provider: 'vonage', state: 'works', failuresInARow: 1, restMs: 0 },
    ])
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([{ provider: 'vonage', state: 'works', failuresInARow: 1, restMs: 0 }])
  })

  test('what says nothing against a provider does not count', () => {
    fail('twilio', 5, { kind: 'retryable', reason: 'the clock', unasked: true })
    fail('twilio', 5, { kind: 'rejected', scope: 'recipient', reason: '21614' })
    expect(state()).toEqual([])
  })

  test('tell how long the rest still lasts, and agree with who is passed over', () => {
    fail('twilio', 5)
    expect(state()).toEqual([{ provider: 'twilio', state: 'rests', failuresInARow: 5, restMs: 10_000 }])
    now += 9999
    expect(state()).toEqual([{ provider: 'twilio', state: 'rests', failuresInARow: 5, restMs: 1 }])
    expect(breakers.rests('twilio')).toBe(true)
    now += 1
    expect(state()).toEqual([{ provider: 'twilio', state: 'probed', failuresInARow: 5, restMs: 0 }])
    expect(breakers.rests('twilio')).toBe(false)
  })

  test('are probed while one message is under way, and rest for twice as long after it fails', () => {
    fail('twilio', 5)
    now += 10_000
    const end = breakers.begin('twilio')
    now += 60_000
    expect(state()).toEqual([{ provider: 'twilio', state: 'probed', failuresInARow: 5, restMs: 0 }])
    expect(breakers.rests('twilio')).toBe(true)
    end(down)
    expect(state()).toEqual([{ provider: 'twilio', state: 'rests', failuresInARow: 6, restMs: 20_000 }])
    now += 20_000
    breakers.begin('twilio')(accepted)
    expect(state()).toEqual([])
  })

  test('are a moment, not a view: what comes later does not change them', () => {
    fail('twilio', 1)
    const before = state()
    fail('twilio', 4)
    expect(before).toEqual([{ provider: 'twilio', state: 'works', failuresInARow: 1, restMs: 0 }])
  })
})
