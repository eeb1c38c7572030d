import { expect, test } from 'bun:test'
import { type DaySpend, spendBy, spendingPeriods, spendingSpan } from '../../src/domain/money/spending.ts'

const day = (text: string) => Date.parse(`${text}T00:00Z`)

test('each period has whole days in UTC, and a month is the calendar month', () => {
  const spans = spendingPeriods.map((period) => {
    const { from, until } = spendingSpan(period, day('2028-03-01') + 1)
    return [period, ...[from, until].map((at) => new Date(at).toISOString().slice(0, 10))]
  })
  expect(spans).toEqual([
    ['today', '2028-03-01', '2028-03-02'],
    ['7-days', '2028-02-24', '2028-03-02'],
    ['30-days', '2028-02-01', '2028-03-02'],
    ['this-month', '2028-03-01', '2028-03-02'],
    ['last-month', '2028-02-01', '2028-03-01'],
  ])
})

test('sums are by name and currency, the greatest first', () => {
  const spend = (app: string, micros: number, currency = 'EUR'): DaySpend => ({
    ...{ at: day('2028-03-01'), micros, currency, app },
    ...{ country: 'DE', brand: 'acme', provider: 'twilio' },
  })
  const rows = [spend('shop', 1), spend('till', 4), spend('shop', 2), spend('shop', 9, 'USD')]
  expect(spendBy(rows, ({ app }) => app)).toEqual([
    { name: 'shop', currency: 'USD', micros: 9 },
    { name: 'till', currency: 'EUR', micros: 4 },
    { name: 'shop', currency: 'EUR', micros: 3 },
  ])
})
