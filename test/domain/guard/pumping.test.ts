import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { GuardCount } from '../../../src/domain/guard/counts.ts'
import {
  commonPrefixes,
  isStillSent,
  pumpingRate,
  pumpingState,
  pumpingStatuses,
} from '../../../src/domain/guard/pumping.ts'
import type { GuardPrefix } from '../../../src/domain/guard/store.ts'
import { dayMs, hourMs, minuteMs, ofPrefix, TestGuard } from './support.ts'

const country = 'UZ'
const attack = Array.from({ length: 10 }, (_, digit) => ofPrefix(`9989371${digit}`, 5)).flat()

function count(
  verdict: GuardCount['verdict'],
  total: number,
  properties: Partial<GuardCount> = {},
): GuardCount {
  return { bucket: 'country-hour', verdict, country, app: 'shop', brand: 'acme', count: total, ...properties }
}

/** Of a server whose guard found `counts` in the last hour. */
function statusOf(
  one: TestGuard,
  counts: readonly GuardCount[],
  prefixes: readonly GuardPrefix[] = [],
  recent: readonly GuardCount[] = counts,
) {
  const codes = [{ country, sent: 50, verified: 1 }]
  const flagged = [...one.store.rows.values()].filter(
    ({ kind, updatedAt }) => kind === 'flagged' && updatedAt >= one.clock.now - hourMs,
  )
  const countryOfPrefix = (prefix: string) => (prefix.startsWith('998') ? country : null)
  return pumpingStatuses({ counts, recent, codes, flagged, prefixes, countryOfPrefix }, one.clock.now)
}

/** Codes that the guard recorded or denied. */
async function attacked(mode: 'record' | 'deny', node = 'one', shared?: TestGuard): Promise<TestGuard> {
  const one = new TestGuard(shared?.clock, shared?.store, { mode, node })
  await one.guard.sync()
  one.verdicts(attack.map((to) => ({ to, country })))
  await one.guard.sync()
  return one
}

describe('a pumped country', () => {
  test.each(['record', 'deny'] as const)('has its prefix and apps, in mode %s', async (mode) => {
    const verdict = mode === 'record' ? 'recorded' : 'denied'
    const one = await attacked(mode)
    const other = count(verdict, 7, { app: 'till', brand: 'globex' })
    const [status, ...others] = statusOf(one, [other, count(verdict, 40)])
    expect(others).toEqual([])
    expect(status).toEqual({
      country,
      sent: 50,
      verified: 1,
      denied: mode === 'deny' ? 47 : 0,
      recorded: mode === 'deny' ? 0 : 47,
      recordedLately: mode === 'deny' ? 0 : 47,
      stopped: 0,
      stoppedLately: 0,
      deniedLately: mode === 'deny' ? 47 : 0,
      hasBlock: false,
      prefixes: [{ prefix: '+9989371', share: 1, isBlocked: false }],
      apps: [
        { app: 'shop', brand: 'acme', codes: 40 },
        { app: 'till', brand: 'globex', codes: 7 },
      ],
    })
    expect(status && isStillSent(status)).toBe(mode === 'record')
  })

  test('has the codes of all processes', async () => {
    const one = await attacked('record')
    const rest = ofPrefix('99890555', 100).map((to) => ({ to, country }))
    const two = new TestGuard(one.clock, one.store, { mode: 'record', node: 'two' })
    await two.guard.sync()
    two.verdicts(rest)
    await two.guard.sync()
    const prefixes = statusOf(one, [count('recorded', 1)])[0]?.prefixes
    expect(prefixes?.map(({ prefix }) => prefix)).toEqual(['+99890555', '+9989371'])
  })

  test('has no codes that were verified, and none of a prefix that an operator blocked', async () => {
    const one = await attacked('record')
    for (const to of attack) one.verify({ to, country })
    await one.guard.sync()
    expect(statusOf(one, [count('recorded', 1)])[0]?.prefixes).toEqual([])
    const createdAt = one.clock.now
    const entry = { by: 'operator', action: 'block', createdAt, expiresAt: createdAt + dayMs } as const
    one.guard.applyOperatorPrefixes([{ ...entry, prefix: '99899' }])
    one.verdicts(ofPrefix('99899111', 9).map((to) => ({ to, country })))
    await one.guard.sync()
    expect(statusOf(one, [count('recorded', 1)])[0]?.prefixes).toEqual([])
  })

  test('is stopped when its prefix is blocked, or when no code was sent lately', async () => {
    const one = await attacked('record')
    const block = {
      prefix: '99893',
      by: 'operator',
      action: 'block',
      createdAt: 0,
      expiresAt: one.clock.now + hourMs,
    } as const
    const counts = [count('recorded', 40)]
    const [blocked] = statusOf(one, counts, [block])
    expect(blocked?.prefixes).toMatchObject([{ isBlocked: true }])
    expect(blocked && isStillSent(blocked)).toBe(false)
    const denied = [count('denied', 3, { bucket: 'blocked-prefix' })]
    const states = [
      ['record', [], counts, 'sent'],
      ['record', [block], counts, 'blocked'],
      ['record', [block], denied, 'blocked'],
      ['record', [], denied, 'unblocked'],
      ['record', [{ ...block, prefix: '99890' }], denied, 'denied'],
      ['record', [], [], 'none'],
      ['deny', [], denied, 'denied'],
      ['deny', [], [], 'none'],
    ] as const
    for (const [mode, prefixes, recent, state] of states) {
      const [status] = statusOf(one, counts, prefixes, recent)
      expect(status && pumpingState(status, mode)).toBe(state)
    }
    const [fast] = statusOf(one, counts, [], [count('recorded', 70), ...denied])
    expect(fast && [pumpingRate(fast, 0), pumpingRate(fast, minuteMs / 2)]).toEqual([73, 49])
    const [quiet] = statusOf(one, counts, [], [])
    expect(quiet && isStillSent(quiet)).toBe(false)
    expect(statusOf(one, counts, [{ ...block, by: 'guard' }])[0]?.prefixes).toMatchObject([
      { isBlocked: false },
    ])
  })

  test('forgets the prefixes of an earlier attack', async () => {
    const one = await attacked('record')
    one.clock.now += 6 * hourMs
    const again = [...ofPrefix('99890555', 20), ...ofPrefix('99893710', 1)]
    one.verdicts(again.map((to) => ({ to, country })))
    one.clock.now += minuteMs
    await one.guard.sync()
    expect(statusOf(one, [count('recorded', 1)])[0]?.prefixes).toMatchObject([{ prefix: '+99890555' }])
  })

  test('has no prefix if its numbers have only the calling code in common', async () => {
    const one = new TestGuard(undefined, undefined, { mode: 'record' })
    await one.guard.sync()
    const numbers = Array.from({ length: 10 }, (_, digit) => ofPrefix(`998${digit}1234`, 5)).flat()
    one.verdicts(numbers.map((to) => ({ to, country })))
    await one.guard.sync()
    expect(statusOf(one, [count('recorded', 1)])[0]?.prefixes).toEqual([])
  })

  test('is not one of which the guard only denied a blocked prefix', async () => {
    const one = await attacked('deny')
    expect(statusOf(one, [count('denied', 9, { bucket: 'blocked-prefix' })])).toEqual([])
  })
})

describe('common prefixes', () => {
  const rows = [
    ['one number range', { '99893710': 9, '99893714': 9, '99893715': 9, '99893719': 9 }, ['9989371']],
    ['one prefix', { '99893710': 9 }, ['99893710']],
    ['two ranges', { '99893710': 9, '99890555': 9 }, ['99893710', '99890555']],
    ['a range among others', { '99893710': 90, '99890555': 1, '99891444': 1 }, ['99893710']],
    ['none', {}, []],
    ['only verified codes', { '99893710': 0 }, []],
  ] as const
  test.each(rows)('of %s', (_, codes, prefixes) => {
    const found = commonPrefixes(new Map(Object.entries(codes)))
    expect(found.map(({ prefix }) => prefix).toSorted()).toEqual([...prefixes].toSorted())
  })

  test('are at most three, have at least 30% each, and do not overlap', () => {
    const codes = fc.dictionary(fc.stringMatching(/^[1-9][0-4]{1,4}$/), fc.integer({ min: 0, max: 50 }))
    fc.assert(
      fc.property(codes, (given) => {
        const entries = Object.entries(given)
        const total = entries.reduce((sum, [, each]) => sum + each, 0)
        const found = commonPrefixes(new Map(entries))
        expect(found.length).toBeLessThanOrEqual(3)
        for (const { prefix, share } of found) {
          const own = entries
            .filter(([key]) => key.startsWith(prefix))
            .reduce((sum, [, each]) => sum + each, 0)
          expect(share).toBeCloseTo(own / total, 9)
          expect(share).toBeGreaterThanOrEqual(0.3)
          const overlaps = found.filter((other) => other.prefix.startsWith(prefix))
          expect(overlaps).toHaveLength(1)
        }
      }),
    )
  })
})
