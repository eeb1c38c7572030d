import { expect, test } from 'bun:test'
import { type ClockStep, ClockWatch } from '../../src/domain/ground/clock-watch.ts'

test('a clock that was set back or forward is reported once; a slow correction is not', () => {
  const time = { wall: Date.UTC(2026, 0, 1, 12), elapsed: 100.25 }
  const steps: ClockStep[] = []
  const watch = new ClockWatch(
    () => time.wall,
    () => time.elapsed,
    (step) => steps.push(step),
  )
  const pass = (elapsedMs: number, wallMs = elapsedMs) => {
    time.elapsed += elapsedMs
    time.wall += wallMs
    watch.tick()
    return steps.splice(0).map(({ byMs }) => byMs)
  }
  const hourMs = 3_600_000
  expect(pass(1000)).toEqual([])
  // NTP corrects by at most 500 ppm.
  for (let second = 0; second < 20_000; second++) expect(pass(1000, 1000.5)).toEqual([])
  // The process had no turn, for example while its machine had too much to do.
  expect(pass(60_000)).toEqual([])
  expect(pass(1000, 1000 - 8 * hourMs)).toEqual([-8 * hourMs])
  expect(pass(1000)).toEqual([])
  expect(pass(1000, 1000 + 8 * hourMs)).toEqual([8 * hourMs])
})
