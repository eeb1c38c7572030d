import { expect, test } from 'bun:test'
import { watchLag } from '../../src/adapters/metrics/lag.ts'

test('a stall of the event loop is measured, less up to one period, and the time after it is not', async () => {
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
  // Blocks the thread, and with it all that is due on it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs)
  const stalled = await next()
  expect(stalled).toBeGreaterThan((stallMs - 25) / 1000)
  // A busy machine may stall it again; the smallest of several samples is one without a stall.
  const after: number[] = []
  while (after.length < 10) after.push(await next())
  expect(Math.min(...after)).toBeLessThan(stalled)
  expect(seen.every((seconds) => seconds >= 0)).toBe(true)
  stop()
})
