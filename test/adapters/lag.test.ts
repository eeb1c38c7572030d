import { expect, test } from 'bun:test'
import { watchLag } from '../../src/adapters/metrics/lag.ts'

test('a stall of the event loop is seen, but for less than a period, and what follows it is not', async () => {
  const seen: number[] = []
  let waiting = Promise.withResolvers<void>()
  const stop = watchLag((seconds) => {
    seen.push(seconds)
    waiting.resolve()
  })
  const next = async () => {
    waiting = Promise.withResolvers()
    await waiting.promise
    return seen.at(-1) ?? Number.NaN
  }
  await next()
  const stallMs = 300
  // The thread sleeps, with all that is due on it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs)
  const stalled = await next()
  expect(stalled).toBeGreaterThan((stallMs - 25) / 1000)
  // A busy machine may stall it again: of some looks the least is of one that it did not.
  const after: number[] = []
  while (after.length < 10) after.push(await next())
  expect(Math.min(...after)).toBeLessThan(stalled)
  expect(seen.every((seconds) => seconds >= 0)).toBe(true)
  stop()
})
