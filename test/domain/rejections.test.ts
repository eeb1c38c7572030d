import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { dltWords } from '../../src/domain/delivery/dlt-codes.ts'
import { dayMs, hourMs } from '../../src/domain/ground/time.ts'
import { isRising, type RejectionCount, risingRejections } from '../../src/domain/log/rejections.ts'

describe('a rate of rejections', () => {
  test.each<[before: [rejected: number, sent: number], day: [rejected: number, sent: number], boolean]>([
    // Few messages.
    [[0, 0], [0, 0], false],
    [[0, 0], [4, 4], false],
    [[0, 0], [5, 5], true],
    [[0, 0], [5, 10], false],
    [[0, 0], [6, 10], true],
    [[0, 100], [5, 50], false],
    [[0, 100], [6, 50], true],
    // A usual rate, whether low or high.
    [[20, 1000], [5, 150], false],
    [[20, 1000], [20, 150], true],
    [[300, 1000], [60, 150], false],
    [[300, 1000], [100, 150], false],
    [[300, 1000], [150, 150], true],
    // A rise that is certain, but small.
    [[1400, 70_000], [250, 10_000], false],
    [[1400, 70_000], [600, 10_000], true],
    // A text that changed an hour ago.
    [[70, 7000], [30, 1000], false],
    [[70, 7000], [45, 1000], true],
    // Reports about messages of the day before.
    [[0, 100], [8, 0], true],
  ])('after %p of these is %p: %p', ([rejectedBefore, sentBefore], [rejected, sent], expected) => {
    const before = { rejected: rejectedBefore, sent: sentBefore }
    expect(isRising({ day: { rejected, sent }, before })).toBe(expected)
  })

  test('rises with rejections, and less with earlier rejections', () => {
    const rates = fc.record({
      day: fc.record({ rejected: fc.nat(50), sent: fc.integer({ min: 50, max: 500 }) }),
      before: fc.record({ rejected: fc.nat(500), sent: fc.integer({ min: 500, max: 5000 }) }),
    })
    fc.assert(
      fc.property(rates, ({ day, before }) => {
        if (!isRising({ day, before })) return
        expect(isRising({ day: { ...day, rejected: day.rejected + 1 }, before })).toBe(true)
        const fewer = { ...before, rejected: Math.floor(before.rejected / 2) }
        expect(isRising({ day, before: fewer })).toBe(true)
      }),
    )
  })
})

test('counts are by brand and template, and the days before are without the last 24 hours', () => {
  const row = (stepMs: number, kind: 'attempt' | 'rejected', detail: string, count: number, brand = 'acme') =>
    ({ stepMs, kind, brand, provider: 'kannel', detail, count }) satisfies RejectionCount
  const counts = [
    row(dayMs, 'attempt', 'accepted LOGIN_OTP', 120),
    row(dayMs, 'attempt', 'accepted', 900),
    row(dayMs, 'attempt', 'rejected content', 900),
    row(dayMs, 'attempt', 'accepted LOGIN_OTP', 120, 'beta'),
    row(dayMs, 'rejected', 'LOGIN_OTP err 633', 12),
    row(dayMs, 'rejected', 'LOGIN_OTP ', 3),
    row(hourMs, 'attempt', 'accepted LOGIN_OTP', 20),
    row(hourMs, 'rejected', 'LOGIN_OTP err 633', 4),
    row(hourMs, 'rejected', 'LOGIN_OTP err 633', 4),
    row(hourMs, 'rejected', 'LOGIN_OTP err 12', 5),
    row(hourMs, 'rejected', 'LOGIN_OTP ', 2),
  ]
  const [rate, ...others] = risingRejections(counts)
  expect(others).toEqual([])
  expect(rate).toEqual({
    brand: 'acme',
    template: 'LOGIN_OTP',
    day: { sent: 20, rejected: 15 },
    before: { sent: 100, rejected: 0 },
    provider: 'kannel',
    reason: 'err 633',
  })
})

test.each([
  ['err 633', 'the text differs from the registered template'],
  ['633', 'the text differs from the registered template'],
  ['err 639', 'the template was rejected'],
  ['604', 'the entity ID is missing or has a wrong form'],
  ['err-code 52', 'the template ID or the text is wrong'],
  ['61a', undefined],
  ['constructor', undefined],
  ['err 12', undefined],
  ['err 699', undefined],
  ['30007', undefined],
  ['', undefined],
])('the reason %p means %p', (reason, words) => {
  expect(dltWords(reason)).toBe(words)
})

test('the page about rejections has the meanings of the codes', () => {
  const page = readFileSync(new URL('../../docs/dlt.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^- (6\d\d), (.+?): /gm)]
  expect(rows.length).toBeGreaterThan(20)
  for (const [, code = '', meaning] of rows) expect(dltWords(code)).toBe(meaning)
})
