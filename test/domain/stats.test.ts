import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ActiveLimits } from '../../src/domain/log/active-limits.ts'
import type { SavedRequest } from '../../src/domain/log/event-log.ts'
import { type Period, periodStart, periodSteps, periods, rangeOf } from '../../src/domain/log/ranges.ts'
import { type Figures, type Statistics, StatisticsSum } from '../../src/domain/log/statistics.ts'
import { attemptStat, type Counted, requestStats, type StatKey } from '../../src/domain/log/stats.ts'
import type { Attempt } from '../../src/domain/request/request-context.ts'
import { newContext } from '../support/calls.ts'

const now = Date.UTC(2026, 10, 21, 13, 37, 12, 345)
const hour = 3_600_000

const code: SavedRequest = {
  ...newContext(),
  operation: 'send',
  app: 'shop',
  brand: 'acme',
  channel: 'SMS',
}
const check: SavedRequest = { ...code, operation: 'verify' }
const notification: SavedRequest = { ...code, operation: 'notify' }
const attempt = { channel: 'SMS', provider: 'twilio', outcome: 'accepted', errorClass: null } as Attempt

/** The sum of these. */
function statisticsOf(period: Period, until: number, counted: readonly Counted[]): Statistics {
  const sum = new StatisticsSum(rangeOf(period, until))
  for (const statKey of counted) sum.add(statKey)
  return sum.statistics
}

/** The statistics that count these, and how often. */
function figures(...statCounts: readonly (StatKey | undefined)[]): Partial<Figures> {
  const counted = statCounts
    .filter((statKey) => statKey !== undefined)
    .map((statKey) => ({ ...statKey, at: now, count: 1 }))
  const { totals } = statisticsOf('hour', now, counted)
  return Object.fromEntries(Object.entries(totals).filter(([, value]) => value > 0))
}

describe('statistics count events', () => {
  test.each<[string, readonly StatKey[], Partial<Figures>]>([
    ['a code sent', requestStats({ ...code, attempts: [attempt] }), { sends: 1 }],
    ['a code resent', requestStats({ ...code, operation: 'resend', attempts: [attempt] }), { sends: 1 }],
    ['a code that no provider accepted', requestStats(code, 'sms_failed'), { sendsFailed: 1 }],
    ['the cooldown', requestStats(code, 'cooldown_active'), { limited: 1 }],
    ['a limit', requestStats(check, 'rate_limited'), { limited: 1 }],
    ['three wrong codes', requestStats(check, 'max_attempts'), { wrongCodes: 1 }],
    ['a wrong code', requestStats(check, 'mismatch'), { wrongCodes: 1 }],
    ['a suspended brand', requestStats(code, 'brand_suspended'), { refused: 1 }],
    ['a missing field', requestStats(code, 'validation_error'), {}],
    [
      'a blocked destination',
      requestStats({ ...code, flags: ['destination'] }, 'validation_error'),
      { blocked: 1 },
    ],
    ['a rule that only monitors', requestStats({ ...code, flags: ['destination'] }), { sends: 1 }],
    [
      'a correct code',
      requestStats({ ...check, verified: { provider: null, providerMessageId: null, ageMs: 0 } }),
      { verified: 1 },
    ],
    ['a notification', requestStats(notification), { notified: 1 }],
    ['a notification that failed', requestStats(notification, 'notification_failed'), { notifyFailed: 1 }],
    ['an attempt', [attemptStat(attempt, 'acme')], { accepted: 1 }],
    [
      'a rejected attempt',
      [attemptStat({ ...attempt, outcome: 'rejected', errorClass: 'content' })],
      { failed: 1 },
    ],
    [
      'an attempt with an unknown outcome',
      [attemptStat({ ...attempt, outcome: 'unknown', errorClass: 'unknown' })],
      { unknown: 1 },
    ],
    ['a skipped provider', [attemptStat({ ...attempt, outcome: 'skipped' })], {}],
  ])('%s', (_, statCounts, expected) => {
    expect(figures(...statCounts)).toEqual(expected)
  })

  test('credit a code to the provider that accepted it, or may have', () => {
    const failed = { ...attempt, outcome: 'retryable', errorClass: 'retryable' } as Attempt
    const other = { ...attempt, provider: 'vonage' }
    expect(requestStats({ ...code, attempts: [failed, other] })).toMatchObject([{ provider: 'vonage' }])
    expect(requestStats({ ...code, attempts: [{ ...other, outcome: 'unknown' }, failed] })).toMatchObject([
      { provider: 'vonage' },
    ])
    expect(requestStats({ ...code, attempts: [failed] })).toMatchObject([{ provider: '' }])
  })

  test.each([
    [0, '5'],
    [5, '5'],
    [5.001, '10'],
    [60, '60'],
    [299, '300'],
    [301, 'more'],
  ])('put a verification after %d s in the bin %s', (seconds, bin) => {
    const verified = { provider: 'twilio', providerMessageId: null, ageMs: seconds * 1000 }
    const statCounts = requestStats({ ...check, verified })
    expect(statCounts).toMatchObject([
      { kind: 'verify', provider: 'twilio' },
      { kind: 'verify-time', provider: 'twilio', detail: bin },
    ])
  })
})

describe('a period', () => {
  test.each([
    ['hour', '2026-11-21T12:38:00.000Z'],
    ['day', '2026-11-20T14:00:00.000Z'],
    ['month', '2026-10-23T00:00:00.000Z'],
  ] as const)('%s begins with its first step', (period, from) => {
    expect(new Date(periodStart(period, now)).toISOString()).toBe(from)
  })

  test.each(periods)('%s has all its steps, including the empty ones', (period) => {
    const { stepMs, count } = periodSteps[period]
    const { points, from, until } = statisticsOf(period, now, [])
    expect(points.map(({ at }) => at)).toEqual(
      Array.from({ length: count }, (_, index) => from + index * stepMs),
    )
    expect([until, points.at(-1)?.at]).toEqual([now, Math.floor(now / stepMs) * stepMs])
  })

  const statKey = fc.record({
    kind: fc.constantFrom('send', 'resend', 'verify', 'notify', 'attempt', 'report', 'verify-time' as const),
    channel: fc.constantFrom('SMS', 'EMAIL', '' as const),
    brand: fc.constantFrom('acme', 'globex', ''),
    provider: fc.constantFrom('twilio', 'smtp', ''),
    detail: fc.constantFrom(
      'ok',
      'sms_failed',
      'rate_limited',
      'mismatch',
      'accepted',
      'unknown unknown',
      'delivered',
      '5',
      'more',
    ),
    at: fc.integer({ min: 0, max: 59 }).map((minute) => periodStart('hour', now) + minute * 60_000),
    count: fc.integer({ min: 1, max: 1000 }),
  }) as fc.Arbitrary<Counted>

  test('has steps that add up to its totals, and brands and providers that do not exceed them', () => {
    fc.assert(
      fc.property(fc.array(statKey), (counted) => {
        const { totals, points, byBrand, byProvider } = statisticsOf('hour', now, counted)
        for (const figure of Object.keys(totals) as (keyof Figures)[]) {
          const sum = (rows: readonly Figures[]) => rows.reduce((all, row) => all + row[figure], 0)
          expect(sum(points)).toBe(totals[figure])
          for (const rows of [byBrand, byProvider]) expect(sum(rows)).toBeLessThanOrEqual(totals[figure])
        }
      }),
    )
  })

  test('the time to verify has a median and a 90th percentile', () => {
    const timed = (detail: string, count: number): Counted => ({
      kind: 'verify-time',
      channel: 'SMS',
      brand: 'acme',
      provider: 'twilio',
      detail,
      at: now - hour,
      count,
    })
    const of = (...counted: Counted[]) => {
      const { count, medianSeconds, p90Seconds } = statisticsOf('day', now, counted).verifyTimes
      return [count, medianSeconds, p90Seconds]
    }
    expect(of()).toEqual([0, null, null])
    expect(of(timed('5', 1))).toEqual([1, 5, 5])
    expect(of(timed('10', 5), timed('30', 4), timed('more', 1))).toEqual([10, 10, 30])
    expect(of(timed('10', 4), timed('30', 4), timed('more', 2))).toEqual([10, 30, null])
  })
})

describe('active rate limits', () => {
  const ended = {
    method: 'POST',
    route: '/otp/send',
    status: 429,
    failure: undefined,
    error: 'rate_limited',
    durationMs: 1,
  }
  const refused = (
    limit: 'cooldown' | 'app-minute' | 'phone-minute',
    context: object,
    endsAt = now + 1000,
  ) => ({
    ...ended,
    context: newContext({
      at: now,
      app: 'shop',
      brand: 'acme',
      limits: [{ limit, max: 1, used: 1, endsAt, refused: true }],
      ...context,
    }),
  })
  const someone = { recipient: '12*******43', recipientHash: 'a' }

  test('have one entry per limit, with the number of rejected requests, until the limit resets', () => {
    const limited = new ActiveLimits()
    for (let index = 0; index < 3; index++) limited.ended(refused('cooldown', someone))
    expect(limited.list(now)).toEqual([
      {
        limit: 'cooldown',
        app: null,
        brand: 'acme',
        recipient: '12*******43',
        refusals: 3,
        endsAt: now + 1000,
      },
    ])
    expect(limited.list(now + 1000)).toEqual([])
  })

  test('have separate entries for recipients with equal masks', () => {
    const limited = new ActiveLimits()
    limited.ended(refused('cooldown', someone))
    limited.ended(refused('cooldown', { ...someone, recipientHash: 'b' }))
    expect(limited.list(now)).toHaveLength(2)
  })

  test('have one entry per app for all recipients, and one per phone for all brands', () => {
    const limited = new ActiveLimits()
    limited.ended(refused('app-minute', someone))
    limited.ended(refused('app-minute', { brand: 'globex' }))
    limited.ended(refused('app-minute', { app: 'till' }))
    limited.ended(refused('phone-minute', someone))
    limited.ended(refused('phone-minute', { ...someone, brand: 'globex', app: 'till' }))
    expect(
      limited
        .list(now)
        .map(({ limit, app, brand, refusals }) => [limit, app, brand, refusals])
        .sort(),
    ).toEqual([
      ['app-minute', 'shop', null, 2],
      ['app-minute', 'till', null, 1],
      ['phone-minute', null, null, 2],
    ])
  })

  test('have no entry for a request that no limit rejected', () => {
    const limited = new ActiveLimits()
    limited.ended(refused('cooldown', { limits: [] }))
    expect(limited.list(now)).toEqual([])
  })

  test('have a bounded number of entries', () => {
    const limited = new ActiveLimits()
    for (let index = 0; index < 2000; index++)
      limited.ended(refused('cooldown', { recipient: 'x', recipientHash: `${index}` }))
    expect(limited.list(now)).toHaveLength(500)
  })
})
