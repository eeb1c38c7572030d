import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { fill, isMostlyUnverified, newBucket, unfill } from '../../../src/domain/guard/bucket.ts'
import type { GuardMode } from '../../../src/domain/guard/guard.ts'
import { guardStatus } from '../../../src/domain/guard/status.ts'
import { type CountryHistory, countryThresholds } from '../../../src/domain/guard/thresholds.ts'
import {
  dayMs,
  home,
  hourMs,
  MemoryGuardStore,
  minuteMs,
  ofCountry,
  ofPrefix,
  passesThen,
  settled,
  TestGuard,
} from './support.ts'

const allowed = { isAllowedCountry: true }

function toPrefix(count: number, first = 0) {
  return ofPrefix('37122555', count, first).map((to) => ({ to, ...allowed }))
}

/** Of LV, which is not home. */
function historyOf(counts: Partial<CountryHistory>): readonly CountryHistory[] {
  const none = { bestDay: 0, inFortnight: 0, inDay: 0, inHour: 0 }
  return [
    { country: 'LV', ...none, inFortnight: 1000, ...counts },
    { country: home, ...none, inFortnight: 10_000 },
  ]
}

function toCountry(count: number, first = 0) {
  return ofCountry('371', count, first).map((to) => ({ to }))
}

describe('thresholds of a country (D41)', () => {
  const none = { bestDay: 0, inDay: 0, inHour: 0 }
  const rows = [
    ['without a history', none, false, 20, 3],
    ['without a history, allowed by a rule', none, true, 20, 20],
    ['0.3 × the best day of 14', { ...none, bestDay: 1000 }, false, 300, 10],
    ['0.3 × verified in 24 hours', { ...none, inDay: 2000 }, false, 600, 20],
    ['0.2 × verified in one hour', { ...none, inHour: 300 }, false, 20, 60],
    ['at least 20 an hour if allowed', { ...none, bestDay: 500 }, true, 150, 20],
    ['more than 20 an hour if allowed', { bestDay: 3000, inDay: 90, inHour: 20 }, true, 900, 30],
  ] as const
  test.each(rows)('%s', (_, counts, isAllowed, day, hour) => {
    expect(countryThresholds(counts, isAllowed)).toEqual({ day, hour })
  })
})

describe('most codes of a bucket are unverified', () => {
  const rows = [
    [0, 0, true],
    [6, 3, true],
    [6, 4, false],
    [10, 5, true],
    [12, 5, true],
    [12, 6, false],
    [30, 10, true],
    [30, 11, false],
    [1000, 100, true],
  ] as const
  test.each(rows)('%i sent, %i verified: %p', (sent, verified, expected) => {
    expect(isMostlyUnverified({ ...newBucket('prefix', '', 0), sent, verified })).toBe(expected)
  })

  test('otherwise the bucket stays full, not fuller', () => {
    const bucket = newBucket('prefix', '', 0)
    for (let code = 0; code < 9; code++) fill(bucket, 5)
    expect(bucket).toMatchObject({ level: 5, sent: 9 })
  })

  test('unfill reverts fill', () => {
    for (const codes of [0, 2, 5, 7]) {
      const bucket = newBucket('prefix', '', 0)
      for (let code = 0; code < codes; code++) fill(bucket, 5)
      const before = { ...bucket }
      unfill(bucket, fill(bucket, 5))
      expect(bucket).toEqual(before)
    }
  })
})

describe('unverified codes to one prefix', () => {
  test('five pass, the sixth is denied, and the prefix is blocked for 12 hours', () => {
    const one = new TestGuard()
    expect(one.verdicts(toPrefix(7))).toEqual(passesThen(5, 'prefix', 'blocked-prefix'))
    one.clock.now += 12 * hourMs - 1
    expect(one.verdict({ to: '371225559999', ...allowed })).toBe('blocked-prefix')
    one.clock.now += 1
    expect(one.verdict({ to: '371225559999', ...allowed })).toBe('passes')
  })

  test('the same after some seconds between the codes', () => {
    const one = new TestGuard()
    const verdicts = toPrefix(6).map((send) => {
      one.clock.now += 20_000
      return one.verdict(send)
    })
    expect(verdicts).toEqual(passesThen(5, 'prefix'))
  })

  test('a verified code allows exactly one more, before and during the block', () => {
    const before = new TestGuard()
    before.verdicts(toPrefix(5))
    before.verify({ to: '371225550000', country: 'LV' })
    expect(before.verdicts(toPrefix(2, 10))).toEqual(passesThen(1, 'prefix'))
    before.verify({ to: '371225550001', country: 'LV' })
    expect(before.verdicts(toPrefix(2, 20))).toEqual(passesThen(1, 'blocked-prefix'))
  })

  test('a blocked prefix is open once most of its codes are verified', () => {
    const one = new TestGuard()
    for (const { to } of toPrefix(4)) {
      one.verdict({ to, ...allowed })
      one.verify({ to, country: 'LV' })
    }
    expect(one.verdicts(toPrefix(6, 10))).toEqual(passesThen(5, 'prefix'))
    for (const { to } of toPrefix(2, 10)) one.verify({ to, country: 'LV' })
    expect(one.verdicts(toPrefix(10, 20))).toEqual(passesThen(9, 'blocked-prefix'))
  })

  test('a code that was not sent gives back what it passed with', () => {
    const one = new TestGuard()
    one.verdicts(toPrefix(6))
    one.verify({ to: '371225550000', country: 'LV' })
    const pass = one.enter({ to: '371225559999', ...allowed })
    pass.admitKnown()
    pass.undo()
    pass.undo()
    expect(one.verdicts(toPrefix(2, 10))).toEqual(passesThen(1, 'blocked-prefix'))
  })

  test('an operator who ends the block empties the bucket', async () => {
    const one = new TestGuard()
    one.verdicts(toPrefix(6))
    await one.guard.sync()
    one.clock.now += 1
    one.store.entries.clear()
    await one.guard.sync()
    expect(one.verdicts(toPrefix(6, 10))).toEqual(passesThen(5, 'prefix'))
  })

  test('two an hour pass', () => {
    const one = new TestGuard()
    for (const send of toPrefix(20)) {
      expect(one.verdict(send)).toBe('passes')
      one.clock.now += hourMs / 2
    }
  })

  test('the prefix is the number without its last four digits', () => {
    const one = new TestGuard()
    one.verdicts(toPrefix(6))
    expect(one.verdict({ to: '371225560000', ...allowed })).toBe('passes')
  })
})

describe('unverified codes to one country', () => {
  test('three an hour pass without a history, twenty if a rule allows the country', () => {
    expect(new TestGuard().verdicts(toCountry(4))).toEqual(passesThen(3, 'country-hour'))
    const sends = toCountry(21).map((send) => ({ ...send, ...allowed }))
    expect(new TestGuard().verdicts(sends)).toEqual(passesThen(20, 'country-hour'))
  })

  test('a verified code allows exactly one more', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(4))
    one.verify({ to: '371000000000', country: 'LV' })
    expect(one.verdicts(toCountry(2, 10))).toEqual(passesThen(1, 'country-hour'))
  })

  test('a day has its own threshold', () => {
    const one = new TestGuard()
    const verdicts: string[] = []
    for (let hour = 0; hour < 14; hour++) {
      verdicts.push(...one.verdicts(toCountry(3, hour * 10)))
      one.clock.now += hourMs
    }
    expect(new Set(verdicts)).toEqual(new Set(['passes', 'country-day']))
    expect(verdicts.filter((verdict) => verdict === 'passes').length).toBe(31)
  })

  test('an attacked country does not stop another', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(50))
    const other = ofCountry('44', 3).map((to) => ({ to, country: 'GB' }))
    expect(one.verdicts(other)).toEqual(passesThen(3))
  })

  test('numbers of no country share a bucket', () => {
    const one = new TestGuard()
    const sends = ofCountry('882', 4).map((to) => ({ to, country: null }))
    expect(one.verdicts(sends)).toEqual(passesThen(3, 'country-hour'))
  })

  test('the threshold follows the stored history', async () => {
    const one = new TestGuard()
    one.store.history = historyOf({ bestDay: 1000 })
    await one.guard.sync()
    expect(one.verdicts(toCountry(11))).toEqual(passesThen(10, 'country-hour'))
  })

  function thresholdNow(one: TestGuard): number | undefined {
    const to = ofCountry('371', 300)
    const verdicts = to.map((each) => one.enter({ to: each }).verdict)
    return verdicts.find((verdict) => verdict?.bucket === 'country-hour')?.threshold
  }

  test.each([
    [0, 60],
    [hourMs, 20],
    [dayMs, 3],
  ])('a history that was read %i ms ago gives a threshold of %i an hour', async (ageMs, expected) => {
    const one = new TestGuard()
    one.store.history = historyOf({ inDay: 2000, inHour: 300 })
    await one.guard.sync()
    one.clock.now += ageMs
    expect(thresholdNow(one)).toBe(expected)
  })

  test('codes verified since the history was read count, until it is read again after 60 s', async () => {
    const one = new TestGuard()
    // So that the bucket of all countries abroad is never full.
    const others = { country: 'XF', bestDay: 0, inFortnight: 1000, inDay: 5000, inHour: 5000 }
    one.store.history = [...one.store.history, others]
    await one.guard.sync()
    for (const to of ofCountry('371', 50)) {
      one.enter({ to })
      one.verify({ to, country: 'LV' })
    }
    expect(thresholdNow(one)).toBe(10)
    one.clock.now += 59_999
    await one.guard.sync()
    expect(one.store.historyReads).toBe(1)
    one.clock.now += 1
    await one.guard.sync()
    expect(thresholdNow(one)).toBe(3)
  })

  test('the bucket leaks by the threshold of an allowed country also when a code is verified', async () => {
    const one = new TestGuard()
    one.store.history = historyOf({ bestDay: 500 })
    await one.guard.sync()
    one.verdicts(toCountry(20).map((send) => ({ ...send, ...allowed })))
    one.clock.now += hourMs / 2
    one.verify({ to: '371000000000', country: 'LV' })
    const sends = toCountry(12, 50).map((send) => ({ ...send, ...allowed }))
    expect(one.verdicts(sends)).toEqual(passesThen(11, 'country-hour'))
  })
})

describe('a suspected prefix', () => {
  const [first, second, third] = ofPrefix('37122555', 3)
  const attacked = [first, second].map((to = '') => ({ to }))
  const next = { to: third ?? '' }
  const other = { to: '371999990000' }

  function deniedTwice(mode: GuardMode = 'deny'): TestGuard {
    const one = new TestGuard(undefined, undefined, { mode })
    one.verdicts(toCountry(3))
    expect(one.verdicts(attacked)).toEqual(['country-hour', 'country-hour'])
    one.clock.now += 20 * minuteMs
    return one
  }

  test('may fill two thirds of the country, and other prefixes the rest', () => {
    const one = deniedTwice()
    expect(one.enter(next).verdict).toMatchObject({ threshold: 2, level: 2, resetsInMs: 20 * minuteMs })
    expect(one.verdicts([other, other])).toEqual(passesThen(1, 'country-hour'))
    expect(one.enter(next).verdict?.resetsInMs).toBe(40 * minuteMs)
    one.clock.now += 40 * minuteMs
    expect(one.verdicts([next, next])).toEqual(passesThen(1, 'country-hour'))
  })

  test('has one denied number and a second one, also if that passes within a day', () => {
    const one = new TestGuard()
    one.verdicts([...toCountry(3), next])
    one.clock.now += 20 * minuteMs
    expect(one.verdicts(attacked)).toEqual(passesThen(1, 'country-hour'))
    one.clock.now += 20 * minuteMs
    expect(one.verdicts([next, other])).toEqual(['country-hour', 'passes'])
    const later = new TestGuard()
    later.verdicts([...toCountry(3), next])
    later.clock.now += dayMs + minuteMs
    expect(later.verdicts([...attacked, next])).toEqual(passesThen(3))
  })

  test('is like others after a verified code, and after ten hours without a request', () => {
    const modes = [
      ['deny', 2],
      // The code was not counted, so it drains nothing.
      ['record', 1],
    ] as const
    for (const [mode, passes] of modes) {
      const one = deniedTwice(mode)
      one.verify({ to: '371225550001', country: 'LV' })
      expect(one.verdicts([next, next, next]), mode).toEqual([
        ...passesThen(passes),
        ...Array(3 - passes).fill('country-hour'),
      ])
    }
    const one = deniedTwice()
    one.clock.now += 10 * hourMs
    expect(one.verdicts([...toCountry(2, 10), next])).toEqual(passesThen(3))
  })

  test('does not hide behind the verified codes of others', async () => {
    const one = new TestGuard()
    one.store.history = historyOf({})
    await one.guard.sync()
    one.verdicts(toCountry(20).map((send) => ({ ...send, ...allowed })))
    one.verdicts(attacked.map((send) => ({ ...send, ...allowed })))
    for (const send of toCountry(45, 100)) {
      one.enter({ ...send, ...allowed, isTrustedUser: true })
      one.verify(send)
    }
    expect(one.verdict({ ...next, ...allowed })).toBe('country-hour')
    expect(one.verdict({ ...other, ...allowed })).toBe('passes')
  })

  test('does not follow from one number that was denied twice', () => {
    const one = new TestGuard()
    one.verdicts([...toCountry(3), next, next])
    one.clock.now += 20 * minuteMs
    expect(one.verdict(next)).toBe('passes')
  })
})

describe('unverified codes of one IP address', () => {
  function fromIp(count: number, first = 0, ip = 'ip') {
    return ofCountry('371', count, first).map((to) => ({ to, ip, ...allowed }))
  }

  test('five an hour and ten a day pass', () => {
    const one = new TestGuard()
    expect(one.verdicts(fromIp(6))).toEqual(passesThen(5, 'ip-hour'))
    one.clock.now += hourMs
    expect(one.verdicts(fromIp(6, 10))).toEqual(passesThen(5, 'ip-hour'))
    one.clock.now += hourMs
    expect(one.verdicts(fromIp(1, 20))).toEqual(['ip-day'])
    expect(one.verdicts(fromIp(1, 20, 'other'))).toEqual(['passes'])
  })

  test('a verified code allows exactly one more', () => {
    const one = new TestGuard()
    one.verdicts(fromIp(6))
    one.verify({ to: '371000000000', country: 'LV' })
    expect(one.verdicts(fromIp(2, 10))).toEqual(passesThen(1, 'ip-hour'))
  })

  test('codes to three countries pass; a verified code frees its country', () => {
    const one = new TestGuard()
    const to = (country: string, to: string) => ({ country, to, ip: 'ip' })
    const sends = [to('LV', '37122555000'), to('GB', '447911123456'), to('FR', '33612345678')]
    expect(one.verdicts([...sends, to('DE', '4915112345678')])).toEqual(passesThen(3, 'ip-countries'))
    one.verify({ to: '33612345678', country: 'FR' })
    expect(one.verdicts([to('DE', '4915112345678'), to('ES', '34612345678')])).toEqual(
      passesThen(1, 'ip-countries'),
    )
    expect(one.verdict(to('GB', '447911123457'))).toBe('passes')
    one.clock.now += dayMs
    expect(one.verdict(to('ES', '34612345678'))).toBe('passes')
  })

  test('a shared IP address that verifies most of its codes may have pending codes to many countries', () => {
    const one = new TestGuard()
    for (const send of fromIp(8)) {
      one.verdict(send)
      one.verify({ to: send.to, country: 'LV' })
    }
    const countries = ['GB', 'FR', 'DE', 'ES']
    const sends = countries.map((country, at) => ({ country, to: `4479111234${at}0`, ip: 'ip' }))
    expect(one.verdicts(sends)).toEqual(passesThen(4))
  })

  test('a code is remembered for ten minutes', () => {
    const one = new TestGuard()
    one.verdicts(fromIp(1, 50, 'other'))
    one.clock.now += 10_000
    one.verdicts(fromIp(5))
    one.clock.now += 590_000
    one.verdicts(fromIp(1, 60, 'other'))
    one.verify({ to: '371000000000', country: 'LV' })
    expect(one.verdicts(fromIp(2, 10))).toEqual(passesThen(1, 'ip-hour'))
  })
})

test('Retry-After ends when the next code passes', () => {
  const one = new TestGuard()
  one.verdicts(toCountry(3))
  const { verdict } = one.enter({ to: '371999990000' })
  expect(verdict).toMatchObject({ bucket: 'country-hour', threshold: 3, level: 3, resetsInMs: 20 * minuteMs })
  one.clock.now += 20 * minuteMs - 500
  expect(one.enter({ to: '371999990000' }).verdict?.resetsInMs).toBe(1000)
  one.clock.now += 500
  expect(one.enter({ to: '371999990000' }).verdict).toBeNull()
})

describe('entries of operators', () => {
  const entry = { createdAt: 0, by: 'operator', expiresAt: Date.UTC(2030, 0, 2) } as const

  test('the longest prefix wins, until it ends', () => {
    const one = new TestGuard()
    one.guard.applyOperatorPrefixes([
      { ...entry, prefix: '371', action: 'block' },
      { ...entry, prefix: '3712', action: 'allow' },
      { ...entry, prefix: '37129', action: 'block' },
    ])
    const sends = ['37110000000', '37129000000', '44791112345'].map((to) => ({ to, ...allowed }))
    expect(one.verdicts(sends)).toEqual(['blocked-prefix', 'blocked-prefix', 'passes'])
    expect(one.verdicts(toPrefix(50))).toEqual(passesThen(50))
    one.clock.now = entry.expiresAt
    expect(one.verdicts(sends)).toEqual(passesThen(3))
    expect(one.verdicts(toPrefix(6))).toEqual(passesThen(5, 'prefix'))
  })

  test('a verified code of an allowed prefix drains nothing', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(3))
    one.guard.applyOperatorPrefixes([{ ...entry, prefix: '3712', action: 'allow' }])
    one.verdicts(toPrefix(1))
    one.verify({ to: '371225550000', country: 'LV' })
    expect(one.verdict({ to: '371999990000' })).toBe('country-hour')
  })

  test('take precedence over blocks of the guard', async () => {
    const one = new TestGuard()
    one.verdicts(toPrefix(6))
    await one.guard.sync()
    one.guard.applyOperatorPrefixes([{ ...entry, prefix: '3712', action: 'allow' }])
    await one.guard.sync()
    expect(one.verdicts(toPrefix(1))).toEqual(['passes'])
  })
})

describe('all countries without a verified code in 14 days', () => {
  const countries = ['AF', 'AL', 'AM', 'AO', 'AZ', 'BF', 'BJ', 'BO', 'CD', 'CI', 'CM']

  function spread(count: number, first = 0) {
    return Array.from({ length: count }, (_, at) => ({
      to: `99${String(first + at).padStart(5, '0')}0000`,
      country: countries[at % countries.length] ?? '',
    }))
  }

  test('share 20 an hour', () => {
    expect(new TestGuard().verdicts(spread(21))).toEqual(passesThen(20, 'quiet-hour'))
  })

  test('are not those with a verified code, which pass', () => {
    const one = new TestGuard()
    one.verdicts(spread(21))
    one.verify({ to: '371000000000', country: 'LV' })
    expect(one.verdicts(toCountry(2))).toEqual(passesThen(2))
  })

  test('send at most 120 codes in a day', () => {
    const one = new TestGuard()
    let passed = 0
    for (let minute = 0; minute < 24 * 60; minute += 5) {
      passed += one.verdicts(spread(3, minute * 10)).filter((verdict) => verdict === 'passes').length
      one.clock.now += 5 * minuteMs
    }
    expect(passed).toBeLessThanOrEqual(120)
    expect(passed).toBeGreaterThan(60)
  })
})

describe('all countries that are not home', () => {
  test('share 30 a day, for countries of which three codes and at least half are unverified', async () => {
    const one = new TestGuard()
    const counts = { bestDay: 0, inFortnight: 1, inDay: 0, inHour: 0 }
    const countries = Array.from({ length: 20 }, (_, at) => `F${at}`)
    one.store.history = [
      ...one.store.history,
      ...['LV', ...countries].map((country) => ({ country, ...counts })),
    ]
    await one.guard.sync()
    const toEach = (count: number, first: number) =>
      countries.flatMap((country, at) =>
        ofCountry(String(990 + at), count, first).map((to) => ({ to, country, ...allowed })),
      )
    // The first three of each country leave a third of the bucket.
    expect(one.verdicts(toEach(3, 0))).toEqual(passesThen(60))
    expect(one.verdicts(toEach(1, 9))).toEqual(passesThen(10, ...Array(10).fill('abroad')))
    expect(one.verdicts(toCountry(3))).toEqual(passesThen(3))
  })

  test('deny also while a third of the codes are verified', async () => {
    const one = new TestGuard()
    one.store.history = historyOf({ bestDay: 1000, inHour: 300 })
    await one.guard.sync()
    for (const send of toCountry(18, 100)) {
      one.enter(send)
      one.verify(send)
    }
    expect(one.verdicts(toCountry(31))).toEqual(passesThen(30, 'abroad'))
  })

  test('leave a third to prefixes without two unverified codes', async () => {
    const one = new TestGuard()
    one.store.history = historyOf({})
    await one.guard.sync()
    const quiet = Array.from({ length: 20 }, (_, at) => ({ to: `99${at + 10}1234567`, country: `Q${at}` }))
    expect(one.verdicts(quiet)).toEqual(passesThen(20))
    expect(one.verdicts(toPrefix(3))).toEqual(passesThen(2, 'abroad'))
    expect(one.verdict({ to: '371999990000', ...allowed })).toBe('passes')
  })

  test('an hour after an attack, the next user of the attacked country passes', () => {
    const one = new TestGuard()
    for (let hour = 0; hour < 12; hour++) {
      one.verdicts(toCountry(100, hour * 100))
      one.clock.now += hourMs
    }
    expect(one.verdict({ to: '371999990000' })).toBe('passes')
  })
})

describe('a home country', () => {
  const abroad = { country: 'XF', bestDay: 0, inFortnight: 400, inDay: 0, inHour: 0 }

  async function withHistory(inFortnight: number): Promise<TestGuard> {
    const one = new TestGuard()
    one.store.history = [abroad, { ...abroad, country: 'LV', inFortnight }]
    await one.guard.sync()
    return one
  }

  test('has a fifth of the verified codes of 14 days: its country buckets record, and deny nothing', async () => {
    const one = await withHistory(100)
    const passes = toCountry(30).map((send) => one.enter(send))
    for (const pass of passes) pass.confirm()
    expect(passes.map(({ verdict }) => verdict?.bucket ?? 'none')).toEqual<string[]>([
      ...Array(3).fill('none'),
      ...Array(27).fill('country-hour'),
    ])
    expect(passes.filter(({ verdict }) => verdict?.isDenied)).toEqual([])
    expect((await withHistory(99)).verdicts(toCountry(4))).toEqual(passesThen(3, 'country-hour'))
  })

  test('has limits for prefixes, numbers, IP addresses and devices also while it records', async () => {
    const one = await withHistory(100)
    const denied = (sends: readonly { to: string; ip?: string }[]) =>
      sends.map((send): string => {
        const pass = one.enter(send)
        pass.confirm()
        return pass.verdict?.isDenied ? pass.verdict.bucket : 'passes'
      })
    denied(toCountry(10))
    expect(denied(toPrefix(6))).toEqual(passesThen(5, 'prefix'))
    expect(denied(toCountry(6, 20).map((send) => ({ ...send, ip: 'ip' })))).toEqual(passesThen(5, 'ip-hour'))
    const [number] = toCountry(1, 40)
    const verdicts = Array.from({ length: 6 }, () => {
      one.clock.now += hourMs
      return denied(number ? [number] : [])[0] ?? ''
    })
    expect(verdicts).toEqual(passesThen(5, 'number'))
  })

  test('with fewer than 50 verified codes has 60 unverified codes', async () => {
    const one = await withHistory(49)
    one.store.history = one.store.history.slice(1)
    one.clock.now += minuteMs
    await one.guard.sync()
    expect(one.verdicts(toCountry(61))).toEqual(passesThen(60, 'country-hour'))
  })

  test('has at most 50 blocked prefixes; codes to more are recorded', async () => {
    const one = await withHistory(100)
    const sixth = Array.from({ length: 52 }, (_, at) => {
      const numbers = ofPrefix(`371${20_000 + at}`, 6)
      return numbers
        .map((to) => {
          const pass = one.enter({ to })
          pass.confirm()
          return pass.verdict
        })
        .at(-1)
    })
    expect(sixth.map((verdict) => verdict?.isDenied)).toEqual([...Array(50).fill(true), false, false])
  })

  test('a user of a used prefix with a clean IP address or device passes its block', async () => {
    const one = await withHistory(100)
    one.verdict({ to: '371225550009' })
    one.verify({ to: '371225550009' })
    one.verdicts(toPrefix(7))
    const user = { to: '371225558888', ...allowed }
    expect(one.enter(user).verdict?.bucket).toBe('blocked-prefix')
    expect(one.enter({ ...user, ip: 'clean' }).verdict?.isDenied ?? false).toBe(false)
    one.verdicts(toCountry(2, 50).map((send) => ({ ...send, ip: 'used' })))
    expect(one.enter({ ...user, ip: 'used' }).verdict?.bucket).toBe('blocked-prefix')
    // An attacker may have a clean one for each code.
    const clean = ofPrefix('37122555', 6, 100).map((to, at) => ({ to, ip: `clean ${at}` }))
    expect(
      clean.map((send) => one.enter(send).verdict?.bucket).filter((bucket) => bucket === 'blocked-prefix'),
    ).toHaveLength(2)
  })
})

describe('one number', () => {
  test('has three unverified codes abroad in 24 hours from the first', () => {
    const one = new TestGuard()
    one.clock.now += 20 * hourMs
    const send = { to: '371225550000', ...allowed }
    expect(one.verdicts([send, send, send, send])).toEqual(passesThen(3, 'number'))
    one.clock.now += 5 * hourMs
    expect(one.enter(send).verdict?.resetsInMs).toBe(19 * hourMs)
    one.clock.now += 19 * hourMs
    expect(one.verdict(send)).toBe('passes')
  })

  test('opens its country for others once a day', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(3, 10).map((send) => ({ ...send, ...allowed })))
    for (let code = 0; code < 8; code++) {
      one.enter({ to: '371225550000', ...allowed })
      one.verify({ to: '371225550000' })
    }
    // One credited code of four: still mostly unverified.
    expect(one.verdicts(toCountry(18, 50).map((send) => ({ ...send, ...allowed })))).toEqual(
      passesThen(17, 'country-hour'),
    )
  })
})

describe('a number that verified a code within 180 days', () => {
  function known(one: TestGuard, send: Parameters<TestGuard['enter']>[0]): string {
    const pass = one.enter(send)
    if (pass.isOpenToKnown) pass.admitKnown()
    pass.confirm()
    return pass.verdict?.bucket ?? 'passes'
  }

  test('passes full buckets with three unverified codes in a day', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(4))
    const send = { to: '371999990000' }
    expect(Array.from({ length: 4 }, () => known(one, send))).toEqual(passesThen(3, 'number'))
  })

  test('passes them with ten codes in all', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(4))
    const send = { to: '371999990000' }
    const verdicts = Array.from({ length: 11 }, () => {
      const verdict = known(one, send)
      if (verdict === 'passes') one.verify(send)
      // Codes that pass leave the bucket full.
      one.verdicts(toCountry(1, 50))
      return verdict
    })
    expect(verdicts).toEqual(passesThen(10, 'country-hour'))
  })

  test('is trusted again a day later, also while its prefix is blocked', () => {
    const one = new TestGuard()
    const [first = '', ...others] = ofPrefix('37122555', 6)
    const send = { to: first, ...allowed }
    one.verdicts([send, send, send])
    one.clock.now += dayMs
    one.verdicts(others.map((to) => ({ to, ...allowed })))
    one.verdict({ to: '371225559999', ...allowed })
    expect(one.enter(send).verdict?.bucket).toBe('blocked-prefix')
    expect(known(one, send)).toBe('passes')
  })

  test('does not pass an operator', () => {
    const one = new TestGuard()
    const entry = { createdAt: 0, by: 'operator', expiresAt: Date.UTC(2030, 0, 2) } as const
    one.guard.applyOperatorPrefixes([{ ...entry, prefix: '371', action: 'block' }])
    expect(known(one, { to: '371999990000' })).toBe('blocked-prefix')
  })

  test('is one of few that a stranger can find: 20 an hour in a country, three a day from an IP address or device', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(4))
    expect(toCountry(21, 100).map((send) => known(one, send))).toEqual(passesThen(20, 'country-hour'))
    const from = new TestGuard()
    from.verdicts(toCountry(4))
    for (const client of [{ ip: 'ip' }, { device: 'device' }]) {
      const sends = toCountry(4, 200).map((send) => ({ ...send, ...client }))
      expect(sends.map((send) => known(from, send))).toEqual(passesThen(3, 'country-hour'))
    }
  })
})

describe('a user who is signed in', () => {
  test('is judged by IP address and device alone, and counts as all others', () => {
    const one = new TestGuard()
    one.verdicts(toPrefix(6))
    const send = { to: '371225559999', isTrustedUser: true, ...allowed }
    expect(one.verdict(send)).toBe('passes')
    one.verdicts(toCountry(5).map((each) => ({ ...each, ...allowed, device: 'device' })))
    expect(one.verdict({ ...send, to: '371000090000', device: 'device' })).toBe('device-hour')
    const other = new TestGuard()
    other.verdicts(toCountry(3).map((each) => ({ ...each, isTrustedUser: true })))
    expect(other.verdict({ to: '371999990000' })).toBe('country-hour')
  })
})

describe('a code that is denied', () => {
  test('does not fill the buckets, also in mode record', () => {
    for (const mode of ['deny', 'record'] as const) {
      const one = new TestGuard(undefined, undefined, { mode })
      one.verdicts(toCountry(30))
      one.clock.now += 20 * minuteMs
      expect(one.verdicts(toCountry(2, 50)), mode).toEqual(passesThen(1, 'country-hour'))
    }
  })

  test('does not drain the buckets when it is verified in mode record', () => {
    const one = new TestGuard(undefined, undefined, { mode: 'record' })
    one.verdicts(toCountry(4))
    one.verify({ to: '371000030000', country: 'LV' })
    expect(one.verdict({ to: '371999990000' })).toBe('country-hour')
  })

  test('counts if its number is admitted, and its verification drains one', () => {
    const one = new TestGuard()
    one.verdicts(toCountry(3))
    one.enter({ to: '371999990000' }).admitKnown()
    one.verify({ to: '371999990000', country: 'LV' })
    expect(one.verdict({ to: '371999980000' })).toBe('country-hour')
  })

  test('and is admitted and verified does not count its country for the IP address', () => {
    const one = new TestGuard()
    const to = (country: string, to: string) => ({ country, to, ip: 'ip' })
    one.verdicts([to('LV', '37122555000'), to('GB', '447911123456'), to('FR', '33612345678')])
    one.enter(to('DE', '4915112345678')).admitKnown()
    one.enter(to('DE', '4915112345678')).admitKnown()
    one.verify({ to: '4915112345678', country: 'DE' })
    one.verify({ to: '33612345678', country: 'FR' })
    expect(one.enter(to('ES', '34612345678')).verdict).toBeNull()
  })

  test('does not block a prefix if its number is admitted', () => {
    const one = new TestGuard()
    one.verdicts(toPrefix(5))
    one.enter({ to: '371225559999', ...allowed }).admitKnown()
    one.clock.now += hourMs
    expect(one.verdict({ to: '371225558888', ...allowed })).toBe('passes')
  })
})

test('mode off guards nothing', () => {
  const one = new TestGuard(undefined, undefined, { mode: 'off' })
  expect(one.verdicts(toPrefix(50))).toEqual(passesThen(50))
})

test('a clock that is set back for a day stops no more than before', () => {
  const one = new TestGuard()
  one.verdicts(toCountry(3))
  one.clock.now -= dayMs
  expect(one.verdict({ to: '371999990000' })).toBe('country-hour')
  one.clock.now += 21 * minuteMs
  expect(one.verdict({ to: '371999990000' })).toBe('passes')
})

test('a block lasts 12 hours after the clock was set back, also without a request and after a restart', async () => {
  for (const restarts of [false, true]) {
    const before = new TestGuard()
    before.verdicts(toPrefix(6))
    await before.guard.sync()
    before.clock.now -= dayMs
    const one = restarts ? new TestGuard(before.clock, before.store, { node: 'two' }) : before
    if (restarts) await one.guard.sync()
    else one.guard.tick()
    await settled()
    one.clock.now += 12 * hourMs - 1
    expect(one.verdicts(toPrefix(1))).toEqual(['blocked-prefix'])
    one.clock.now += 1
    expect(one.verdicts(toPrefix(1))).toEqual(['passes'])
    // The next process knows it too.
    expect([...one.store.entries.values()].map(({ expiresAt }) => expiresAt)).toEqual([one.clock.now])
  }
})

test("an operator's block keeps its length after the clock was set back, for each process", async () => {
  const one = new TestGuard()
  const { clock, store } = one
  const two = new TestGuard(clock, store, { node: 'two' })
  const entry = {
    prefix: '44740012',
    by: 'operator',
    action: 'block',
    createdAt: clock.now,
    expiresAt: clock.now + 12 * hourMs,
  } as const
  await store.saveBlocks([entry])
  for (const { guard } of [one, two]) guard.applyOperatorPrefixes([entry])
  clock.now -= dayMs
  for (const { guard } of [one, two]) await guard.sync()
  clock.now += 12 * hourMs - 1
  const send = { to: '447400120001' }
  expect([one.verdict(send), two.verdict(send)]).toEqual(['blocked-prefix', 'blocked-prefix'])
  clock.now += 1
  expect([one.verdict(send), two.verdict(send)]).toEqual(['passes', 'passes'])
})

test('processes exchange their buckets also after the clock was set back', async () => {
  const one = new TestGuard()
  const two = new TestGuard(one.clock, one.store, { node: 'two' })
  await two.guard.sync()
  one.verdicts(toPrefix(3))
  for (const { guard } of [one, two]) await guard.sync()
  one.clock.now -= 8 * hourMs
  one.verdicts(toPrefix(2))
  for (const { guard } of [one, two]) await guard.sync()
  expect(two.verdicts(toPrefix(1))).toEqual(['prefix'])
})

describe('stories', () => {
  /** Uniform in [0, 1), from a seed. */
  function seeded(seed: number): () => number {
    let state = seed
    return () => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
      return state / 2_147_483_648
    }
  }

  interface Stream {
    readonly name: string
    readonly fromMs: number
    readonly toMs: number
    readonly perHour: number
    readonly conversion: number
    readonly country: string
    readonly isAllowedCountry: boolean
    /** Number of prefixes that the numbers have. */
    readonly prefixes: number
  }

  const atHome = { country: 'GB', isAllowedCountry: true, prefixes: 5000 }
  const attack = { name: 'attack', country: 'LV', isAllowedCountry: false, conversion: 0, prefixes: 5000 }

  /** The share of refused codes of each stream. Codes are verified 30 s after they are sent. */
  async function refusedShares(streams: readonly Stream[], bestDay = 0): Promise<Record<string, number>> {
    const one = new TestGuard()
    const start = one.clock.now
    one.store.history = [
      { country: 'GB', bestDay, inFortnight: Math.max(1000, 14 * bestDay), inDay: bestDay, inHour: 0 },
    ]
    await one.guard.sync()
    const events: { at: number; stream: Stream; to: string; isVerified: boolean }[] = []
    for (const stream of streams) {
      const random = seeded(stream.perHour)
      for (let at = stream.fromMs; ; ) {
        at -= (Math.log(1 - random()) * hourMs) / stream.perHour
        if (at >= stream.toMs) break
        const prefix = Math.floor(random() * stream.prefixes)
        const to = `44${String(prefix).padStart(6, '0')}${String(events.length % 10_000).padStart(4, '0')}`
        events.push({ at, stream, to, isVerified: random() < stream.conversion })
      }
    }
    const counts = new Map(streams.map(({ name }) => [name, { sent: 0, refused: 0 }]))
    const passed = new Set<(typeof events)[number]>()
    const steps = events.flatMap((event) => [
      { at: event.at, event, isVerify: false },
      ...(event.isVerified ? [{ at: event.at + 30_000, event, isVerify: true }] : []),
    ])
    for (const { at, event, isVerify } of steps.sort((a, b) => a.at - b.at)) {
      one.clock.now = start + at
      const { to, stream } = event
      if (isVerify) {
        if (passed.has(event)) one.verify({ to, country: stream.country })
        continue
      }
      const { verdict } = one.enter({ ...stream, to })
      const count = counts.get(stream.name)
      if (!count) continue
      count.sent++
      if (verdict) count.refused++
      else passed.add(event)
    }
    return Object.fromEntries(Array.from(counts, ([name, { sent, refused }]) => [name, refused / sent]))
  }

  const launch = { name: 'launch', fromMs: 0, toMs: 3 * hourMs, perHour: 600, ...atHome }

  test('a launch is not blocked, even during an attack on another country', async () => {
    const attacked = { ...attack, fromMs: 0, toMs: 3 * hourMs, perHour: 2000 }
    const shares = await refusedShares([{ ...launch, conversion: 0.8 }, attacked])
    expect(shares.launch).toBe(0)
    expect(shares.attack).toBeGreaterThan(0.99)
  })

  test('a marketing spike with 60 % conversion is not blocked', async () => {
    const usual = { name: 'usual', fromMs: 0, toMs: 12 * hourMs, perHour: 60, conversion: 0.8, ...atHome }
    const from = { fromMs: 8 * hourMs, toMs: 10 * hourMs }
    const spike = { ...usual, ...from, name: 'spike', perHour: 1500, conversion: 0.6 }
    expect(await refusedShares([usual, spike], 1200)).toEqual({ usual: 0, spike: 0 })
  })

  test('a busy prefix with 70 % conversion is not blocked', async () => {
    const busy = {
      name: 'busy',
      fromMs: 0,
      toMs: 2 * dayMs,
      perHour: 20,
      conversion: 0.7,
      ...atHome,
      prefixes: 1,
    }
    expect(await refusedShares([busy], 1000)).toEqual({ busy: 0 })
  })

  test('few users during a night are not blocked', async () => {
    const night = { name: 'night', fromMs: 0, toMs: 8 * hourMs, perHour: 4, conversion: 0.6, ...atHome }
    const attacked = { ...attack, fromMs: hourMs, toMs: 6 * hourMs, perHour: 1000 }
    const shares = await refusedShares([night, attacked], 1000)
    expect(shares.night).toBe(0)
    expect(shares.attack).toBeGreaterThan(0.99)
  })

  test('an attacker that verifies 10 % of its codes is stopped', async () => {
    const attacked = { ...attack, fromMs: 0, toMs: 12 * hourMs, perHour: 300, conversion: 0.1 }
    expect((await refusedShares([attacked])).attack).toBeGreaterThan(0.98)
    expect(
      (await refusedShares([{ ...attacked, prefixes: 10, isAllowedCountry: true }])).attack,
    ).toBeGreaterThan(0.97)
  })

  test('an attacker hides behind genuine traffic for a short time only', async () => {
    const usual = { name: 'usual', fromMs: 0, toMs: dayMs, perHour: 60, conversion: 0.8, ...atHome }
    const hidden = { ...attack, ...atHome, fromMs: 14 * hourMs, toMs: dayMs, perHour: 600 }
    expect((await refusedShares([usual, hidden], 1000)).attack).toBeGreaterThan(0.85)
  })

  test('a country with few users is not blocked by several of them at once after an idle night', async () => {
    const few = { name: 'few', ...atHome, isAllowedCountry: false, perHour: 6, conversion: 0.8 }
    const day = { ...few, fromMs: 0, toMs: 8 * hourMs }
    const burst = { ...few, name: 'burst', fromMs: 20 * hourMs, toMs: 20 * hourMs + minuteMs, perHour: 1500 }
    expect(await refusedShares([day, burst])).toEqual({ few: 0, burst: 0 })
  })
})

describe('several processes', () => {
  function nodes(count: number): TestGuard[] {
    const clock = { now: Date.UTC(2030, 0, 1) }
    const store = new MemoryGuardStore()
    return Array.from({ length: count }, (_, at) => new TestGuard(clock, store, { node: `node ${at}` }))
  }

  async function syncAll(guards: readonly TestGuard[]): Promise<void> {
    for (const { guard } of guards) await guard.sync()
    for (const { guard } of guards) await guard.sync()
  }

  test('send at most threshold codes each before they know of each other', async () => {
    const three = nodes(3)
    await syncAll(three)
    for (const [at, one] of three.entries()) {
      expect(one.verdicts(toPrefix(6, at * 10))).toEqual(passesThen(5, 'prefix'))
    }
    const fresh = nodes(3)
    await syncAll(fresh)
    for (const one of fresh) expect(one.verdicts(toPrefix(2))).toEqual(passesThen(2))
    fresh[0]?.verdicts(toPrefix(1, 10))
    await syncAll(fresh)
    for (const one of fresh) expect(one.verdict({ to: '371225559999', ...allowed })).toBe('prefix')
  })

  test('that exchange after each code judge like one process', async () => {
    const step = fc.record({
      node: fc.nat(1),
      isVerify: fc.boolean(),
      waitMs: fc.constantFrom(0, 1000, minuteMs, 25 * minuteMs),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
        const two = nodes(2)
        const single = new TestGuard(two[0]?.clock)
        await syncAll([...two, single])
        const sent: string[] = []
        for (const [at, { node, isVerify, waitMs }] of steps.entries()) {
          single.clock.now += waitMs
          const one = two[node]
          const to = `371${String(at).padStart(5, '0')}0000`
          const verified = isVerify ? sent.pop() : undefined
          if (verified !== undefined) {
            for (const each of [one, single]) each?.verify({ to: verified, country: 'LV' })
          } else {
            const verdict = single.verdict({ to })
            expect(one?.verdict({ to })).toBe(verdict)
            if (verdict === 'passes') sent.push(to)
          }
          await syncAll([...two, single])
          single.clock.now += 1
        }
      }),
      { numRuns: 60 },
    )
  })

  test('a restarted process knows the buckets and blocks of the process that ended', async () => {
    const [before] = nodes(1)
    if (!before) throw new Error('no node')
    await before.guard.sync()
    before.verdicts(toPrefix(6))
    before.verdicts(toCountry(3).map((send) => ({ ...send, country: 'GB' })))
    await before.guard.sync()
    before.clock.now += minuteMs
    const after = new TestGuard(before.clock, before.store, { node: 'after' })
    await after.guard.sync()
    expect(after.verdict({ to: '371225559999', ...allowed })).toBe('blocked-prefix')
    expect(after.verdict({ to: '441234567890', country: 'GB' })).toBe('country-hour')
    before.clock.now += 20 * minuteMs
    expect(after.verdict({ to: '441234567890', country: 'GB' })).toBe('passes')
  })

  test('a restarted process leaks what leaked before its start', async () => {
    const [before] = nodes(1)
    if (!before) throw new Error('no node')
    before.verdicts(toCountry(3))
    await before.guard.sync()
    before.clock.now += 21 * minuteMs
    const after = new TestGuard(before.clock, before.store, { node: 'after' })
    await after.guard.sync()
    expect(after.verdicts(toCountry(2, 10))).toEqual(passesThen(1, 'country-hour'))
  })

  test('a restarted process knows how many codes were verified', async () => {
    const [before] = nodes(1)
    if (!before) throw new Error('no node')
    for (const { to } of toCountry(20)) {
      before.enter({ to })
      before.verify({ to, country: 'LV' })
    }
    before.verdicts(toCountry(3, 50))
    await before.guard.sync()
    const after = new TestGuard(before.clock, before.store, { node: 'after' })
    await after.guard.sync()
    expect(after.verdicts(toCountry(3, 60))).toEqual(passesThen(3))
  })

  test('a restarted process knows the countries of an IP address', async () => {
    const [before] = nodes(1)
    if (!before) throw new Error('no node')
    const to = (country: string, at: number) => ({ country, to: `44791112345${at}`, ip: 'ip' })
    before.verdicts([to('LV', 0), to('GB', 1), to('FR', 2)])
    await before.guard.sync()
    const after = new TestGuard(before.clock, before.store, { node: 'after' })
    await after.guard.sync()
    expect(after.verdict(to('DE', 3))).toBe('ip-countries')
  })

  test('learn that a bucket is empty again', async () => {
    const [first, second] = nodes(2)
    if (!first || !second) throw new Error('no node')
    await syncAll([first, second])
    first.verdicts(toPrefix(3))
    await syncAll([first, second])
    for (const { to } of toPrefix(3)) first.verify({ to, country: 'LV' })
    await syncAll([first, second])
    expect(second.verdicts(toPrefix(6, 10))).toEqual(passesThen(5, 'prefix'))
  })

  test('the order in which rows are read does not matter', async () => {
    const three = nodes(3)
    const [first, second, third] = three
    if (!first || !second || !third) throw new Error('no node')
    await syncAll(three)
    first.verdicts(toCountry(2))
    second.verdicts(toCountry(1, 10))
    await first.guard.sync()
    await third.guard.sync()
    await second.guard.sync()
    await third.guard.sync()
    await first.guard.sync()
    for (const one of [first, third]) expect(one.verdict({ to: '371999990000' })).toBe('country-hour')
  })

  test('a code that another process verified drains country and prefix', async () => {
    const [first, second] = nodes(2)
    if (!first || !second) throw new Error('no node')
    await syncAll([first, second])
    first.verdicts(toCountry(3))
    await syncAll([first, second])
    second.verify({ to: '371000000000', country: 'LV' })
    await syncAll([first, second])
    expect(first.verdicts(toCountry(2, 10))).toEqual(passesThen(1, 'country-hour'))
  })
})

describe('the exchange with the store', () => {
  test('starts with a code every 5 s, one at a time', async () => {
    const one = new TestGuard()
    one.verdicts(toCountry(3))
    await settled()
    expect(one.store.savedCounts).toEqual([7])
    one.verdict({ to: '371999990000' })
    one.clock.now += 4999
    one.verify({ to: '371000000000', country: 'LV' })
    await settled()
    expect(one.store.savedCounts.length).toBe(1)
    one.clock.now += 1
    one.verify({ to: '371000010000', country: 'LV' })
    one.verify({ to: '371000020000', country: 'LV' })
    await settled()
    expect(one.store.savedCounts.length).toBe(2)
    one.clock.now -= dayMs
    one.verdict({ to: '371999990000' })
    one.verify({ to: '371999990000', country: 'LV' })
    await settled()
    expect(one.store.savedCounts.length).toBe(3)
  })

  test('is not what a block waits for, since a crash must not end it', async () => {
    const one = new TestGuard()
    await one.guard.sync()
    one.verdicts(toPrefix(6))
    expect([...one.store.entries.values()]).toMatchObject([{ by: 'guard', action: 'block' }])
  })

  test('happens without further requests', async () => {
    const one = new TestGuard()
    await one.guard.sync()
    one.store.rows.clear()
    one.verdicts(toPrefix(3))
    one.guard.tick()
    expect(one.store.rows.size).toBe(0)
    one.clock.now += 5000
    one.guard.tick()
    await one.guard.sync()
    expect([...one.store.rows.values()].filter(({ kind }) => kind === 'prefix')).toHaveLength(1)
    const { length } = one.store.savedCounts
    one.clock.now += 5000
    one.guard.tick()
    await one.guard.sync()
    expect(one.store.savedCounts).toHaveLength(length)
  })

  test('keeps a block that began during it', async () => {
    const one = new TestGuard()
    await one.guard.sync()
    one.store.prefixes = async () => {
      one.verdicts(toPrefix(6))
      return []
    }
    await one.guard.sync()
    one.clock.now += 2 * hourMs
    expect(one.verdict({ to: '371225559999', ...allowed })).toBe('blocked-prefix')
  })

  test('writes buckets with two or more codes, the 1,000 fullest first, and the rest next time', async () => {
    const one = new TestGuard()
    await one.guard.sync()
    for (let prefix = 0; prefix < 1500; prefix++) {
      for (const to of ofPrefix(`44${String(prefix).padStart(6, '0')}`, 2)) {
        const pass = one.enter({ to, country: String(prefix) })
        if (pass.verdict) pass.admitKnown()
      }
    }
    one.verdict({ to: '371225550000' })
    await one.guard.sync()
    await one.guard.sync()
    expect(one.store.savedCounts.slice(1, 3)).toEqual([1000, 1000])
    while ((one.store.savedCounts.at(-1) ?? 0) === 1000) await one.guard.sync()
    const prefixes = [...one.store.rows.values()].filter(({ kind }) => kind === 'prefix')
    expect(prefixes.length).toBe(1500)
    expect(prefixes.every(({ level }) => level === 2)).toBe(true)
  })

  test('is retried after a failure, which is logged', async () => {
    const one = new TestGuard()
    one.store.fault = new Error('no database')
    one.verdicts(toCountry(3))
    await one.guard.sync()
    expect(one.warnings.length).toBe(2)
    one.store.fault = undefined
    await one.guard.sync()
    const rows = [...one.store.rows.values()].filter(({ key }) => key === 'LV')
    expect(rows.map(({ kind, level }) => [kind, level])).toEqual([
      ['country-hour', 3],
      ['country-day', 3],
    ])
  })

  test('keeps the fullest of too many buckets in memory', async () => {
    const one = new TestGuard()
    await one.guard.sync()
    const full = ofCountry('371', 5).map((to) => ({ to, ip: 'full', ...allowed }))
    one.verdicts(full)
    for (let at = 0; at < 60_000; at++) {
      const to = `44${String(at).padStart(6, '0')}0000`
      one.enter({ to, country: 'GB', ip: `ip ${at}`, ...allowed })
      one.verify({ to, country: 'GB' })
    }
    expect(one.verdict({ to: '371999990000', ip: 'full', ...allowed })).toBe('ip-hour')
  })
})

describe('any history of codes', () => {
  const steps = fc.array(
    fc.record({
      kind: fc.constantFrom('send', 'send', 'verify', 'undo'),
      prefix: fc.nat(2),
      ip: fc.constantFrom(null, 'a', 'b'),
      waitMs: fc.constantFrom(0, 1000, minuteMs, hourMs),
    }),
    { maxLength: 60 },
  )

  test('has no negative level; denied codes fill nothing, and undo restores what a code filled', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const one = new TestGuard()
        const other = new TestGuard(one.clock)
        await one.guard.sync()
        await other.guard.sync()
        const sent: { to: string; country: string; at: number }[] = []
        for (const [at, { kind, prefix, ip, waitMs }] of history.entries()) {
          one.clock.now += waitMs
          // A number that requested a code stays a suspect of its prefix, also if the code was not sent.
          const own = kind === 'undo' ? 9 : prefix
          const send = { to: `3712255${own}${String(at).padStart(4, '0')}`, country: 'LV', ip }
          const last = kind === 'verify' ? sent.pop() : undefined
          const code = last && one.clock.now - last.at < 10 * minuteMs ? last : undefined
          if (code) {
            one.verify(code)
            other.verify(code)
          } else if (kind === 'undo') {
            // Only `one` begins this code.
            one.enter(send).undo()
          } else {
            const verdict = one.verdict(send)
            expect(other.verdict(send)).toBe(verdict)
            if (verdict !== 'passes') one.enter(send)
            if (verdict === 'passes') sent.push({ ...send, at: one.clock.now })
          }
        }
        await one.guard.sync()
        await other.guard.sync()
        for (const [name, row] of other.store.rows) {
          const { level = -1, sent = -1, verified = -1 } = one.store.rows.get(name) ?? {}
          expect(Math.min(level, sent, verified)).toBeGreaterThanOrEqual(0)
          expect(level, name).toBeCloseTo(row.level, 6)
          expect(sent).toBeCloseTo(row.sent, 6)
        }
      }),
      { numRuns: 100 },
    )
  })
})

test('guardStatus returns what `guard status --json` prints', async () => {
  const one = new TestGuard()
  await one.guard.sync()
  one.verdicts(toPrefix(6))
  await one.guard.sync()
  const until = one.clock.now + hourMs
  const entries = [
    ...(await one.store.prefixes()),
    { prefix: '44', by: 'operator', action: 'allow', createdAt: 0, expiresAt: until } as const,
    { prefix: '447', by: 'guard', action: 'block', createdAt: 0, expiresAt: until } as const,
    { prefix: '33', by: 'guard', action: 'block', createdAt: 0, expiresAt: one.clock.now } as const,
  ]
  const ofApp = { app: 'shop', brand: 'acme' }
  const status = guardStatus(
    {
      mode: { mode: 'deny', until, next: 'record' },
      prefixes: entries,
      rows: [...(await one.store.bucketsSince(0, ''))],
      pumping: [],
      history: historyOf({ bestDay: 1000 }),
      countries: [
        { country: 'DE', sent: 100, verified: 90 },
        { country: 'LV', sent: 5, verified: 0 },
      ],
      counts: {
        lastHour: [{ ...ofApp, bucket: 'prefix', verdict: 'denied', country: 'LV', count: 7 }],
        lastDay: [
          { ...ofApp, bucket: 'prefix', verdict: 'denied', country: 'LV', count: 9 },
          { ...ofApp, bucket: 'country-hour', verdict: 'recorded', country: 'ZZ', count: 3 },
        ],
      },
      isAllowedCountry: () => false,
      countryOfPrefix: (prefix) => (prefix === '44' ? 'GB' : 'LV'),
    },
    one.clock.now,
  )
  expect(status).toEqual({
    mode: 'deny',
    homeCountries: [home],
    modeUntil: '2030-01-01T01:00:00.000Z',
    nextMode: 'record',
    blocked: [
      {
        prefix: '+37122555',
        country: 'LV',
        by: 'guard',
        since: '2030-01-01T00:00:00.000Z',
        until: '2030-01-01T12:00:00.000Z',
        unverified: 5,
      },
    ],
    allowed: [
      {
        prefix: '+44',
        country: 'GB',
        by: 'operator',
        since: '1970-01-01T00:00:00.000Z',
        until: '2030-01-01T01:00:00.000Z',
        unverified: null,
      },
    ],
    buckets: [
      { kind: 'prefix', key: '+37122555', level: 5, threshold: 5 },
      { kind: 'country-hour', key: 'LV', level: 5, threshold: 10 },
      { kind: 'quiet-hour', key: '', level: 5, threshold: 20 },
      { kind: 'abroad', key: '', level: 5, threshold: 30 },
      { kind: 'quiet-day', key: '', level: 5, threshold: 60 },
      { kind: 'country-day', key: 'LV', level: 5, threshold: 300 },
    ],
    pumping: [],
    countries: [
      { country: 'LV', sent: 5, verified: 0, conversion: 0, denied: 9, recorded: 0 },
      { country: 'DE', sent: 100, verified: 90, conversion: 0.9, denied: 0, recorded: 0 },
      { country: 'ZZ', sent: 0, verified: 0, conversion: null, denied: 0, recorded: 3 },
    ],
    lastHour: { denied: 7, recorded: 0 },
    last24Hours: { denied: 9, recorded: 3 },
  })
})
