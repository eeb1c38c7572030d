import { expect, test } from 'bun:test'
import { shareCircuits } from '../../src/adapters/store/shared-circuits.ts'
import type { OpenCircuits } from '../../src/adapters/store/store.ts'
import { Breakers } from '../../src/domain/delivery/breaker.ts'

test('what was read before an own change was stored does not open the circuit again', async () => {
  const breakers = new Breakers(() => 0)
  const written: (() => void)[] = []
  let changed: Parameters<OpenCircuits['listen']>[0] = () => {}
  const openCircuits: OpenCircuits = {
    share: () => new Promise((resolve) => written.push(resolve)),
    listen: (listener) => {
      changed = listener
    },
  }
  shareCircuits(openCircuits, breakers, () => 0)
  const open = [{ provider: 'twilio', failures: 5, openMs: 10_000, openUntil: 10_000 }]
  const store = async () => {
    for (const resolve of written.splice(0)) resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (let time = 0; time < 5; time++) breakers.begin('twilio')({ kind: 'retryable', reason: 'HTTP 503' })
  await store()
  changed(open)
  breakers.begin('twilio')({ kind: 'accepted' })
  changed(open)
  expect(breakers.isOpen('twilio')).toBe(false)
  await store()
  // Another server opened it since.
  changed(open)
  expect(breakers.isOpen('twilio')).toBe(true)
})
