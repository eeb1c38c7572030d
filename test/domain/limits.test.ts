import { describe, expect, test } from 'bun:test'
import { Failure } from '../../src/domain/ground/failures.ts'
import { clockToleranceMs } from '../../src/domain/ground/ports.ts'
import { granted, retryAfterSeconds } from '../../src/domain/limits/gates.ts'
import {
  type Claim,
  credentialFailures,
  decide,
  failureBudget,
  type Gate,
  globalLimit,
  integrationRequests,
  type LimitCount,
  type LimitSettings,
  type Subject,
  sendLimits,
} from '../../src/domain/limits/limits.ts'
import { unscoped } from '../../src/domain/limits/scope.ts'
import { newRequestContext } from '../../src/domain/request/request-context.ts'
import { claimOf } from '../support/calls.ts'

const now = 1_000_000
const someone: Subject = ['someone']
const context = newRequestContext({ requestId: 'r', at: now, clientIp: '127.0.0.1' })

function claim(name: string, properties: Partial<Claim> = {}): Claim {
  return claimOf({ subject: someone, name, max: 2, scope: `per minute for ${name}`, ...properties })
}

function decideOn(claims: readonly Claim[], windows: Readonly<Record<string, LimitCount>>) {
  return decide(claims, ({ name }) => windows[name], now)
}

describe('a calendar window', () => {
  const midnight = Date.UTC(2028, 1, 29)
  const nextMidnight = Date.UTC(2028, 2, 1)
  const daily = claim('daily', { period: 'day', max: 10, units: 3 })
  const decideAt = (at: number, open: LimitCount | undefined) => {
    const { decision } = decide([daily], () => open, at)
    return decision.allowed ? decision.counts : decision.resetsInMs
  }
  const counted = (count: number, expiresAt: number) => [{ count, expiresAt }]

  test('ends at midnight UTC, whenever it began', () => {
    expect(decideAt(midnight - 1, undefined)).toEqual(counted(3, midnight))
    expect(decideAt(midnight, undefined)).toEqual(counted(3, nextMidnight))
    expect(decideAt(midnight + 1, { count: 8, expiresAt: nextMidnight })).toBe(86_399_999)
  })

  test('is not ended by a request that began just before it', () => {
    expect(decideAt(midnight - 1, { count: 4, expiresAt: nextMidnight })).toEqual(counted(7, nextMidnight))
  })
})

describe('a calendar window from before the clock was set back', () => {
  const [hour, day] = [3_600_000, 86_400_000]
  const noon = Date.UTC(2028, 1, 29, 12)
  /** Opened at noon of 29 February. */
  const ends = { day: Date.UTC(2028, 2, 1), month: Date.UTC(2028, 2, 1) }

  test.each([
    ['day', 'an hour', hour, ends.day],
    ['day', 'a day', day, ends.day],
    ['day', 'a day and a half', 1.5 * day, ends.day],
    // Farther ahead than the next day: an exhausted budget must not stay so for long.
    ['day', 'two days', 2 * day, Date.UTC(2028, 1, 28)],
    ['month', 'a week', 7 * day, ends.month],
    ['month', 'a month', 31 * day, ends.month],
    ['month', 'a year', 365 * day, Date.UTC(2027, 3, 1)],
  ] as const)('of a %s and by %s keeps its count and does not begin twice', (period, _, byMs, expiresAt) => {
    const budget = claim('budget', { period, max: 10, units: 3 })
    const open = { count: 4, expiresAt: ends[period] }
    const { decision } = decide([budget], () => open, noon - byMs)
    expect(decision).toEqual({ allowed: true, counts: [{ count: 7, expiresAt }] })
  })
})

describe('a window from before the clock was set back', () => {
  test.each([clockToleranceMs + 1, 30_000, 59_999, 60_000, 3_600_000])(
    'that is %p ms ahead is shortened to the end of a window opened now, and keeps counting',
    (byMs) => {
      const open = { count: 1, expiresAt: now + byMs + 60_000 }
      const { decision, changes } = decideOn([claim('minute')], { minute: open })
      const count = { count: 2, expiresAt: now + 60_000 }
      expect(decision).toEqual({ allowed: true, counts: [count] })
      expect(changes.at(-1)).toEqual({ subject: someone, name: 'minute', ...count })
    },
  )

  test('is unchanged if it is ahead only by the time that concurrent requests differ', () => {
    const expiresAt = now + 60_000 + clockToleranceMs
    const { decision, changes } = decideOn([claim('minute')], { minute: { count: 1, expiresAt } })
    expect(decision).toEqual({ allowed: true, counts: [{ count: 2, expiresAt }] })
    expect(changes).toEqual([{ subject: someone, name: 'minute', count: 2, expiresAt }])
  })

  test('is saved shortened even when it rejects, so that it does not stay full for an hour', () => {
    const open = { count: 2, expiresAt: now + 3_600_000 }
    const { decision, changes } = decideOn([claim('minute')], { minute: open })
    expect(decision).toEqual({
      allowed: false,
      refusedBy: 0,
      expiresAt: now + 60_000,
      resetsInMs: 60_000,
    })
    expect(changes).toEqual([{ subject: someone, name: 'minute', count: 2, expiresAt: now + 60_000 }])
  })
})

describe('one limit', () => {
  const rows: readonly (readonly [string, LimitCount | undefined, LimitCount | 'refused'])[] = [
    ['opens a window if there is none', undefined, { count: 1, expiresAt: now + 60_000 }],
    [
      'counts in an open window, which ends as before',
      { count: 1, expiresAt: now + 5 },
      { count: 2, expiresAt: now + 5 },
    ],
    ['rejects in a full window', { count: 2, expiresAt: now + 1 }, 'refused'],
    ['rejects in a window above its limit', { count: 9, expiresAt: now + 1 }, 'refused'],
  ]

  test.each(rows)('%s', (_, window, expected) => {
    const { decision, changes } = decideOn([claim('minute')], window ? { minute: window } : {})
    if (expected === 'refused') {
      expect(decision).toEqual({
        allowed: false,
        refusedBy: 0,
        expiresAt: window?.expiresAt ?? 0,
        resetsInMs: 1,
      })
      expect(changes).toEqual([])
      return
    }
    expect(decision).toEqual({ allowed: true, counts: [expected] })
    expect(changes).toEqual([{ subject: someone, name: 'minute', ...expected }])
  })
})

describe('a list of limits', () => {
  const full = { count: 2, expiresAt: now + 1000 }

  test('rejects the claim at the first exhausted limit, in any position', () => {
    const { decision, changes } = decideOn([claim('a'), claim('b'), claim('c')], {
      b: full,
      c: { count: 2, expiresAt: now + 9000 },
    })
    expect(decision).toEqual({
      allowed: false,
      refusedBy: 1,
      expiresAt: now + 1000,
      resetsInMs: 1000,
    })
    expect(changes).toEqual([])
  })

  test('claims all limits in order', () => {
    const claims = [claim('a'), claim('x', { counted: false }), claim('b', { windowMs: 1, units: 2 })]
    expect(granted(context, claims, decideOn(claims, {}).decision)).toEqual([
      { subject: someone, name: 'a', units: undefined, count: 1, expiresAt: now + 60_000 },
      { subject: someone, name: 'b', units: 2, count: 2, expiresAt: now + 1 },
    ])
  })

  test('rejects but does not count with a claim that only checks', () => {
    const uncounted = claim('a', { counted: false })
    expect(decideOn([uncounted], { a: full }).decision.allowed).toBe(false)
    expect(decideOn([uncounted], {})).toEqual({ decision: { allowed: true, counts: [] }, changes: [] })
  })
})

describe('the rejection', () => {
  const rows: readonly (readonly [number, number])[] = [
    [1, 1],
    [999, 1],
    [1000, 1],
    [1001, 2],
    [29_999, 30],
    [60_000, 60],
    [0, 1],
    [-5000, 1],
  ]
  test.each(rows)('rounds %d ms until the window ends to %d s', (ms, seconds) => {
    expect(retryAfterSeconds(ms)).toBe(seconds)
  })

  test('has the error of its limit, and the time until it resets', () => {
    const claims = [claim('b'), claim('a', { failure: 'cooldown_active', scope: '' })]
    let failure: unknown
    try {
      granted(context, claims, { allowed: false, refusedBy: 1, expiresAt: now + 1500, resetsInMs: 1500 })
    } catch (error) {
      failure = error
    }
    expect(failure).toBeInstanceOf(Failure)
    expect(failure).toMatchObject({
      kind: 'cooldown_active',
      message: 'Please wait before requesting another OTP. Try again in 2 seconds.',
      details: { retryAfterSeconds: 2 },
    })
  })
})

describe('the limits of spec 8 and design D18 and D22 to D24', () => {
  const settings: LimitSettings = {
    globalPerMinute: 10,
    phonePerMinute: 3,
    phonePerHour: 10,
    smsCooldownSeconds: 30,
    failureBudgetPerDay: 100,
    emailPerHour: 30,
  }
  const mailbox: Subject = ['mailbox']
  const numbers = ({ max, windowMs, failure }: Claim) => [max, windowMs / 1000, failure]
  const gates = (channel: 'SMS' | 'EMAIL', changed: Partial<LimitSettings> = {}, brandSlug = 'acme') => {
    const ports = { limits: { ...settings, ...changed }, now: () => now }
    return sendLimits(ports, { channel, subject: someone, mailbox }, { brandSlug, longestMs: 8000 })
  }
  const send = (...given: Parameters<typeof gates>) => gates(...given).flatMap(({ claims = [] }) => claims)

  test("of an SMS are the cooldown, as a lease, then the phone's minute and hour, then wrong codes", () => {
    expect(send('SMS', { smsCooldownSeconds: 5 }).map(numbers)).toEqual([
      [1, 10, 'cooldown_active'],
      [3, 60, 'rate_limited'],
      [10, 3600, 'rate_limited'],
      [100, 86_400, 'rate_limited'],
    ])
    expect(send('SMS').map(({ counted }) => counted)).toEqual([true, true, true, false])
    expect(send('SMS', { failureBudgetPerDay: 0 })).toHaveLength(3)
  })

  test('have a cooldown per brand, and a minute and hour for all brands together', () => {
    const [acme, globex] = [send('SMS'), send('SMS', {}, 'globex')]
    const same = acme.map(({ subject, name }, index) => {
      const other = globex[index]
      return subject === other?.subject && name === other.name
    })
    expect(same).toEqual([false, true, true, true])
  })

  test("of a mail are the mailbox's hour only, or none if it is off", () => {
    const [hour, budget] = send('EMAIL')
    expect(hour && numbers(hour)).toEqual([30, 3600, 'rate_limited'])
    expect([hour?.subject, budget?.subject]).toEqual([mailbox, someone])
    expect(budget?.counted).toBe(false)
    expect(send('EMAIL', { emailPerHour: 0, failureBudgetPerDay: 0 })).toEqual([])
  })

  describe('after the delivery', () => {
    /** What each gate changes, in words. */
    const changes = async (all: readonly Gate[], sent: number, isAccepted: boolean) => {
      const words = all.map(async ({ claims = [], settle }) => {
        const grants = granted(context, claims, decide(claims, () => undefined, now).decision)
        const settled = await settle?.({ sent, failed: isAccepted ? [] : [null] }, grants)
        const { back = [], further = [], restart } = settled ?? {}
        if (restart) return `starts for ${restart.durationMs / 1000} s`
        if (back.length > 0) return 'is given back'
        const isFree = further[0]?.max === Number.MAX_SAFE_INTEGER
        return isFree ? 'counts each further attempt' : 'stays'
      })
      return Promise.all(words)
    }
    const counts = 'counts each further attempt'
    const back = 'is given back'
    const rows = [
      ['SMS', 1, true, ['starts for 5 s', 'stays', 'stays', 'stays']],
      ['SMS', 2, true, ['starts for 5 s', counts, counts, 'stays']],
      ['SMS', 2, false, [back, counts, counts, 'stays']],
      ['SMS', 1, false, [back, 'stays', 'stays', 'stays']],
      ['SMS', 0, false, [back, back, back, 'stays']],
      ['EMAIL', 1, false, ['stays', 'stays']],
      ['EMAIL', 0, false, [back, 'stays']],
    ] as const
    test.each(rows)(
      'of %s with %p attempts that may have been sent, accepted: %p',
      async (channel, sent, isAccepted, expected) => {
        expect(await changes(gates(channel, { smsCooldownSeconds: 5 }), sent, isAccepted)).toEqual([
          ...expected,
        ])
      },
    )

    test('the cooldown stays if its lease is as long', async () => {
      expect(await changes(gates('SMS'), 1, true)).toEqual(Array(4).fill('stays'))
    })
  })

  test('the other limits', () => {
    expect(numbers(globalLimit(settings, unscoped('shop')))).toEqual([10, 60, 'rate_limited'])
    expect(numbers(globalLimit(settings, { appId: 'shop', perMinute: 60 }))).toEqual([60, 60, 'rate_limited'])
    expect(numbers(credentialFailures(['ip']))).toEqual([300, 60, 'rate_limited'])
    expect(numbers(integrationRequests(['ip']))).toEqual([5, 3600, 'rate_limited'])
    const budget = failureBudget(settings, someone)
    expect(budget && numbers(budget)).toEqual([100, 86_400, 'rate_limited'])
    expect(failureBudget({ ...settings, failureBudgetPerDay: 0 }, someone)).toBeUndefined()
  })

  test('no two limits share a window', () => {
    const claims = [
      ...send('SMS'),
      ...send('SMS', {}, 'globex').slice(0, 1),
      globalLimit(settings, unscoped('someone')),
      credentialFailures(someone),
      integrationRequests(someone),
    ]
    expect(new Set(claims.map(({ subject, name }) => JSON.stringify([subject, name]))).size).toBe(
      claims.length,
    )
  })
})
