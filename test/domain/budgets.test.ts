import { describe, expect, test } from 'bun:test'
import { parseDuration, periodOf } from '../../src/domain/ground/time.ts'
import { parseMicros } from '../../src/domain/money/amounts.ts'
import {
  type Budget,
  budgetClaim,
  counterStatus,
  percentagesReached,
  usedUpWords,
} from '../../src/domain/money/budgets.ts'

const at = (text: string) => Date.parse(`${text}Z`)
const micros = (text: string) => parseMicros(text) ?? 0
const hourMs = 3_600_000

function budget(changes: Partial<Budget> = {}): Budget {
  return {
    scope: 'server',
    of: 'all',
    period: 'day',
    amountMicros: micros('50'),
    currency: 'EUR',
    alertAt: [50, 80, 100],
    stops: true,
    liftedUntil: null,
    countsFrom: 0,
    ...changes,
  }
}

test.each([
  ['20,50', 20.5],
  ['20.50', 20.5],
  [' 0,075 ', 0.075],
  ['1.000', 1],
  ['1,000', undefined],
  ['1.000,50', undefined],
  ['1 000', undefined],
  ['0,1234567', undefined],
  ['-1', undefined],
])('the amount %p is %p', (text, amount) => {
  expect(parseMicros(text)).toBe(amount && amount * 1e6)
})

describe('the period of a budget is a day or month in UTC', () => {
  test.each([
    ['day', '2026-11-22T00:00', '2026-11-22T00:00', '2026-11-23T00:00'],
    ['day', '2026-12-31T23:59:59.999', '2026-12-31T00:00', '2027-01-01T00:00'],
    ['month', '2028-02-29T12:00', '2028-02-01T00:00', '2028-03-01T00:00'],
    ['month', '2026-12-31T23:59', '2026-12-01T00:00', '2027-01-01T00:00'],
  ] as const)('%s at %s', (period, now, start, end) => {
    expect(periodOf(period, at(now))).toEqual({ start: at(start), end: at(end) })
  })
})

test('a budget is a claim of money that stops unless it is lifted or only sends alerts', () => {
  const now = at('2026-11-22T10:00')
  const max = (changes: Partial<Budget>) => budgetClaim(budget(changes), 75_000, now).max
  expect(max({})).toBe(50_000_000)
  expect(max({ stops: false })).toBe(Number.MAX_SAFE_INTEGER)
  expect(max({ liftedUntil: now + 1 })).toBe(Number.MAX_SAFE_INTEGER)
  expect(max({ liftedUntil: now })).toBe(50_000_000)
})

describe('the status of a budget', () => {
  test.each([
    // A quarter of the day, so four times as much.
    ['a day from its start', {}, '2026-11-22T06:00', '12', '38', '48'],
    // Two hours of counting, then ten hours as before.
    ['set at noon', { countsFrom: at('2026-11-22T12:00') }, '2026-11-22T14:00', '2', '48', '12'],
    ['overspent', { stops: false }, '2026-11-22T12:00', '60', '0', '120'],
    ['nothing spent', {}, '2026-11-22T12:00', '0', '50', '0'],
    ['a month', { period: 'month' }, '2026-11-11T00:00', '10', '40', '30'],
    ['the first hour', {}, '2026-11-22T00:59', '1', '49', null],
  ] as const)('%s', (_, changes, now, spent, remaining, forecast) => {
    const status = counterStatus(budget(changes), micros(spent), at(now))
    expect(status.remainingMicros).toBe(micros(remaining))
    expect(status.forecastMicros).toBe(forecast === null ? null : micros(forecast))
  })

  const eveningOf = '2026-11-22T23:00'
  const lifted = { liftedUntil: at('2026-11-22T23:30') }
  const refused = (text: string) => ({ micros: micros(text), until: at('2026-11-23T00:00') })
  test.each([
    ['little is spent', {}, eveningOf, '1', undefined, 2, 'ok', undefined],
    ['the first alert', {}, eveningOf, '25', undefined, 50, 'near', undefined],
    ['80%, with a later alert', { alertAt: [100] }, eveningOf, '40', undefined, 80, 'near', undefined],
    [
      'the forecast is above the amount',
      {},
      '2026-11-22T06:00',
      '20',
      undefined,
      40,
      'will be used up',
      'at 2026-11-22 15:00 UTC',
    ],
    [
      'of a month',
      { period: 'month' },
      '2026-11-21T00:00',
      '40',
      undefined,
      80,
      'will be used up',
      'on 26 Nov',
    ],
    ['the first hour', {}, '2026-11-22T00:30', '20', undefined, 40, 'ok', undefined],
    [
      'a bit is left',
      {},
      eveningOf,
      '49.999999',
      undefined,
      99,
      'will be used up',
      'at 2026-11-22 23:00 UTC',
    ],
    ['less is left than a message costs', {}, eveningOf, '49.5', refused('0.6'), 99, 'exhausted', undefined],
    ['a message costs what is left', {}, '2026-11-22T23:59', '49.5', refused('0.5'), 99, 'near', undefined],
    ['a message of the day before', {}, '2026-11-23T23:59', '49.5', refused('0.6'), 99, 'near', undefined],
    ['nothing is left', {}, eveningOf, '50', undefined, 100, 'exhausted', undefined],
    [
      'lifted, and a message was rejected',
      lifted,
      '2026-11-22T23:29',
      '48',
      refused('2.5'),
      96,
      'near',
      undefined,
    ],
    ['spent, but only alerts', { stops: false }, eveningOf, '75', undefined, 150, 'exhausted', undefined],
  ] as const)('as people see it: %s', (_, changes, now, spent, rejected, percent, state, end) => {
    const status = counterStatus(budget(changes), micros(spent), at(now), rejected)
    expect([status.percent, status.state, usedUpWords(status)]).toEqual([
      percent,
      state,
      end && `used up ${end}`,
    ])
  })
})

test.each([
  ['24.99', []],
  ['25', [50]],
  ['40', [50, 80]],
  ['50', [50, 80, 100]],
] as const)('%s of 50 reaches the alerts %p', (spent, percentages) => {
  expect(percentagesReached(budget(), micros(spent))).toEqual([...percentages])
})

test.each([
  ['30m', 30 * 60_000],
  [' 12h ', 12 * hourMs],
  ['7d', 7 * 24 * hourMs],
  ['0s', 0],
  ['1.5h', undefined],
  ['-1h', undefined],
  ['1w', undefined],
  ['h', undefined],
  ['', undefined],
  ['1000000d', undefined],
] as const)('the duration %p', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})
