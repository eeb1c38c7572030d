import { describe, expect, test } from 'bun:test'
import {
  earlier,
  finerSteps,
  isUnfinished,
  type Range,
  rangeBetween,
  rangeOf,
  rowsIn,
  stepsOf,
} from '../../src/domain/log/ranges.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const now = Date.UTC(2026, 10, 28, 13, 37, 12)

const words = ({ from, until, stepMs, count }: Range) => [
  new Date(from).toISOString().slice(0, 19),
  new Date(until).toISOString().slice(0, 19),
  stepMs / minute,
  count,
]

describe('a range', () => {
  test.each([
    [
      'two hours of today',
      now - 4 * hour,
      now - 2 * hour,
      ['2026-11-28T09:37:00', '2026-11-28T11:38:00', 1, 121],
    ],
    [
      'two hours of the day before yesterday',
      now - 70 * hour,
      now - 68 * hour,
      ['2026-11-25T15:37:00', '2026-11-25T17:38:00', 1, 121],
    ],
    [
      'two hours of the week before',
      now - 7 * day,
      now - 7 * day + 2 * hour,
      ['2026-11-21T13:00:00', '2026-11-21T16:00:00', 60, 3],
    ],
    ['two days until now', now - 2 * day, now, ['2026-11-26T13:00:00', '2026-11-28T13:37:12', 60, 49]],
    [
      'three days of two months ago',
      now - 60 * day,
      now - 57 * day,
      ['2026-09-29T13:00:00', '2026-10-02T14:00:00', 60, 73],
    ],
    ['90 days', now - 90 * day, now, ['2026-08-30T00:00:00', '2026-11-28T13:37:12', 1440, 91]],
    ['the future', now - hour, now + day, ['2026-11-28T12:37:00', '2026-11-28T13:37:12', 1, 61]],
    ['ten years', now - 3650 * day, now, ['2025-10-24T00:00:00', '2026-11-28T13:37:12', 1440, 401]],
  ])('of %s has the shortest steps that the statistics have', (_, from, until, expected) => {
    const range = rangeBetween(from, until, now)
    expect(range && words(range)).toEqual(expected)
  })

  test.each([
    ['that ends before it starts', now, now - hour],
    ['in the future', now + hour, now + day],
    ['without a time', Number.NaN, now],
  ])('%s is none', (_, from, until) => {
    expect(rangeBetween(from, until, now)).toBeUndefined()
  })

  test('has an unfinished step only if it goes on', () => {
    const unfinished = (range: Range) => stepsOf(range).filter((at) => isUnfinished(at, range)).length
    const past = rangeBetween(now - 3 * hour, now - hour, now)
    expect(past && unfinished(past)).toBe(0)
    expect([rangeOf('hour', now), rangeOf('day', now), rangeOf('month', now)].map(unfinished)).toEqual([
      1, 1, 1,
    ])
  })

  test('has the rows of its whole minutes', () => {
    const past = rangeBetween(now - 3 * hour, now - hour, now) ?? rangeOf('day', now)
    expect(rowsIn(past)).toEqual({ since: past.from, until: past.until })
    expect(rowsIn(rangeOf('hour', now)).until).toBe(Date.UTC(2026, 10, 28, 13, 38))
  })

  test.each([
    ['hour', 'Day before', day],
    ['day', 'Day before', day],
    ['week', 'Week before', 7 * day],
    ['month', undefined, 0],
  ] as const)('of the last %s is compared with the %s', (period, expected, ms) => {
    const range = rangeOf(period, now)
    const before = earlier(range)
    expect(before?.words).toBe(expected)
    if (before) expect(stepsOf(before).map((at) => at + ms)).toEqual([...stepsOf(range)])
  })

  test('is read in finer steps as far as there are some', () => {
    const at = (from: number, ms: number, stepMs: number) =>
      finerSteps({ from, until: from + ms }, stepMs, now)?.stepMs
    expect(at(now - 2 * day, 3 * hour, hour)).toBe(minute)
    expect(at(now - 2 * day, 9 * hour, hour)).toBeUndefined()
    expect(at(now - 5 * day, hour, hour)).toBeUndefined()
    expect(at(now - 20 * day, day, day)).toBe(hour)
    expect(at(now - 2 * day, hour, minute)).toBeUndefined()
  })
})
