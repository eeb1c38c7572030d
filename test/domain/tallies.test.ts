import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Attempt } from '../../src/domain/call.ts'
import type { Story } from '../../src/domain/journal.ts'
import { LimitedNow } from '../../src/domain/limited.ts'
import { type Figures, type Period, periods, type Statistics } from '../../src/domain/statistics.ts'
import {
  attemptTally,
  type Counted,
  periodStart,
  periodSteps,
  requestTallies,
  StatisticsSum,
  type Tally,
  verifiedTallies,
} from '../../src/domain/tallies.ts'

const now = Date.UTC(2026, 10, 21, 13, 37, 12, 345)
const hour = 3_600_000

const story: Story = {
  requestId: '019b796d-d600-7256-a391-52604e6fc76b',
  at: now,
  operation: 'send',
  app: 'shop',
  brand: 'acme',
  channel: 'SMS',
  recipient: null,
  recipients: null,
  recipientSubject: null,
  limits: [],
  end: { status: 200, error: null, message: null, durationMs: 1 },
}
const ended = (error: string) => ({ ...story, end: { status: 400, error, message: null, durationMs: 1 } })
const attempt = {
  channel: 'SMS',
  provider: 'twilio',
  outcome: 'accepted',
  errorClass: null,
} as Attempt

/** The sum of these. */
function statisticsOf(period: Period, until: number, counted: readonly Counted[]): Statistics {
  const sum = new StatisticsSum(period, until)
  for (const tally of counted) sum.add(tally)
  return sum.statistics
}

/** Which figures these are counted in, and how often. */
function figures(...tallies: readonly (Tally | undefined)[]): Partial<Figures> {
  const counted = tallies
    .filter((tally) => tally !== undefined)
    .map((tally) => ({ ...tally, at: now, count: 1 }))
  const { totals } = statisticsOf('hour', now, counted)
  return Object.fromEntries(Object.entries(totals).filter(([, value]) => value > 0))
}

describe('what happened is counted', () => {
  test.each<[string, readonly Tally[], Partial<Figures>]>([
    ['a code sent', requestTallies(story, [attempt]), { sends: 1 }],
    ['a code resent', requestTallies({ ...story, operation: 'resend' }, [attempt]), { sends: 1 }],
    ['a code that nobody took', requestTallies(ended('sms_failed'), []), { sendsFailed: 1 }],
    ['the cooldown', requestTallies(ended('cooldown_active'), []), { limited: 1 }],
    ['a limit', requestTallies({ ...ended('rate_limited'), operation: 'verify' }, []), { limited: 1 }],
    [
      'three wrong codes',
      requestTallies({ ...ended('max_attempts'), operation: 'verify' }, []),
      { wrongCodes: 1 },
    ],
    ['a wrong code', requestTallies({ ...ended('mismatch'), operation: 'verify' }, []), { wrongCodes: 1 }],
    ['a suspended brand', requestTallies(ended('brand_suspended'), []), { refused: 1 }],
    ['a field that is missing', requestTallies(ended('validation_error'), []), {}],
    ['a request under way', requestTallies({ ...story, end: null }, []), {}],
    [
      'a right code, which is counted with its message',
      requestTallies({ ...story, operation: 'verify' }, []),
      {},
    ],
    ['a right code', verifiedTallies(story, undefined), { verified: 1 }],
    ['a notification', requestTallies({ ...story, operation: 'notify' }, []), { notified: 1 }],
    [
      'a notification that failed',
      requestTallies({ ...ended('notification_failed'), operation: 'notify' }, []),
      { notifyFailed: 1 },
    ],
    ['an attempt', [attemptTally(attempt, 'acme')], { accepted: 1 }],
    [
      'a refused attempt',
      [attemptTally({ ...attempt, outcome: 'rejected', errorClass: 'content' }, null)],
      { failed: 1 },
    ],
    [
      'an attempt left open',
      [attemptTally({ ...attempt, outcome: 'unknown', errorClass: 'unknown' }, null)],
      { unknown: 1 },
    ],
    ['a provider passed over', [attemptTally({ ...attempt, outcome: 'skipped' }, null)], {}],
  ])('%s', (_, tallies, expected) => {
    expect(figures(...tallies)).toEqual(expected)
  })

  test('a code counts for the provider that took it, or may have', () => {
    const failed = { ...attempt, outcome: 'retryable', errorClass: 'retryable' } as Attempt
    const other = { ...attempt, provider: 'vonage' }
    expect(requestTallies(story, [failed, other])).toMatchObject([{ provider: 'vonage' }])
    expect(requestTallies(story, [{ ...other, outcome: 'unknown' }, failed])).toMatchObject([
      { provider: 'vonage' },
    ])
    expect(requestTallies(story, [failed])).toMatchObject([{ provider: '' }])
  })

  test.each([
    [0, '5'],
    [5, '5'],
    [5.001, '10'],
    [60, '60'],
    [299, '300'],
    [301, 'more'],
  ])('a person who took %d s is in the bin %s', (seconds, bin) => {
    const tallies = verifiedTallies(story, { provider: 'twilio', at: now - seconds * 1000 })
    expect(tallies).toMatchObject([
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

  test.each(periods)('%s has all its steps, the empty ones too', (period) => {
    const { stepMs, count } = periodSteps[period]
    const { points, from, until } = statisticsOf(period, now, [])
    expect(points.map(({ at }) => at)).toEqual(
      Array.from({ length: count }, (_, index) => from + index * stepMs),
    )
    expect([until, points.at(-1)?.at]).toEqual([now, Math.floor(now / stepMs) * stepMs])
  })

  const tally = fc.record({
    kind: fc.constantFrom('send', 'resend', 'verify', 'notify', 'attempt', 'receipt', 'verify-time' as const),
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

  test('its steps add up to its totals, and its channels to no more', () => {
    fc.assert(
      fc.property(fc.array(tally), (counted) => {
        const { totals, points, byChannel, byBrand, byProvider, verifyTimes } = statisticsOf(
          'hour',
          now,
          counted,
        )
        for (const figure of Object.keys(totals) as (keyof Figures)[]) {
          const sum = (rows: readonly Figures[]) => rows.reduce((all, row) => all + row[figure], 0)
          expect(sum(points)).toBe(totals[figure])
          for (const rows of [byChannel, byBrand, byProvider])
            expect(sum(rows)).toBeLessThanOrEqual(totals[figure])
        }
        expect(verifyTimes.bins.reduce((all, { count }) => all + count, 0)).toBe(verifyTimes.count)
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

describe('who is limited now', () => {
  const refused = (
    limit: 'cooldown' | 'app-minute' | 'phone-minute',
    trail: object,
    endsAt = now + 1000,
  ) => ({
    requestId: '',
    at: now,
    clientIp: '',
    trail: {
      begun: 0,
      attempts: [],
      app: 'shop',
      brand: 'acme',
      limits: [{ limit, max: 1, used: 1, endsAt, refused: true }],
      ...trail,
    },
  })
  const someone = { recipient: '12*******43', recipientSubject: 'a' }

  test('is told once, with how many requests were refused, until the limit frees', () => {
    const limited = new LimitedNow()
    for (let index = 0; index < 3; index++) limited.note(refused('cooldown', someone))
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

  test('people whose masks are alike are two', () => {
    const limited = new LimitedNow()
    limited.note(refused('cooldown', someone))
    limited.note(refused('cooldown', { ...someone, recipientSubject: 'b' }))
    expect(limited.list(now)).toHaveLength(2)
  })

  test('the limit of an app is one, whomever its requests were for; that of a phone is one over all brands', () => {
    const limited = new LimitedNow()
    limited.note(refused('app-minute', someone))
    limited.note(refused('app-minute', { brand: 'globex' }))
    limited.note(refused('app-minute', { app: 'till' }))
    limited.note(refused('phone-minute', someone))
    limited.note(refused('phone-minute', { ...someone, brand: 'globex', app: 'till' }))
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

  test('a request that no limit refused is nothing', () => {
    const limited = new LimitedNow()
    limited.note(refused('cooldown', { limits: [] }))
    expect(limited.list(now)).toEqual([])
  })

  test('callers can not make it remember without end', () => {
    const limited = new LimitedNow()
    for (let index = 0; index < 2000; index++)
      limited.note(refused('cooldown', { recipient: 'x', recipientSubject: `${index}` }))
    expect(limited.list(now)).toHaveLength(500)
  })
})
