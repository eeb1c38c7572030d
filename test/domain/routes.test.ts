import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { DestinationRule } from '../../src/domain/delivery/destination.ts'
import { orderWords, proportion, type RouteFigures, routeOrders } from '../../src/domain/operator/routes.ts'

/** Newcombe, Statistics in Medicine 17 (1998), table I, method 3. */
const published = [
  [81, 263, 0.2553, 0.3662],
  [15, 148, 0.0624, 0.1605],
  [0, 20, 0, 0.1611],
  [1, 29, 0.0061, 0.1718],
] as const

test.each(published)('the Wilson interval of %d of %d', (some, of, low, high) => {
  const found = proportion(some, of)
  expect([found?.low.toFixed(4), found?.high.toFixed(4)]).toEqual([low.toFixed(4), high.toFixed(4)])
})

test('none of none has no interval', () => expect(proportion(0, 0)).toBeNull())

test('an interval contains its rate, is within 0 and 1, and narrows with more messages', () => {
  const cases = fc
    .integer({ min: 1, max: 100_000 })
    .chain((of) => fc.tuple(fc.nat({ max: of }), fc.constant(of), fc.integer({ min: 2, max: 50 })))
  fc.assert(
    fc.property(cases, ([some, of, times]) => {
      const found = proportion(some, of)
      const more = proportion(some * times, of * times)
      if (!found || !more) throw new Error('no interval')
      expect(found.low).toBeLessThanOrEqual(found.rate)
      expect(found.high).toBeGreaterThanOrEqual(found.rate)
      expect(found.low).toBeGreaterThanOrEqual(0)
      expect(found.high).toBeLessThanOrEqual(1)
      expect(more.high - more.low).toBeLessThan(found.high - found.low)
    }),
  )
})

describe('an order', () => {
  const row = (
    provider: string,
    conversion: readonly [number, number] | null,
    delivery: readonly [number, number] | null = null,
  ): RouteFigures => ({
    way: 'sms',
    ...{ country: 'GB', provider, messages: 100, cost: null },
    conversion: conversion && proportion(...conversion),
    delivery: delivery && proportion(...delivery),
  })
  const rule = (about: Partial<DestinationRule>): DestinationRule => ({
    ...{ rule: 'GB', brandSlug: null, action: 'allow', providers: [], sender: null, route: null },
    ...about,
  })
  const of = (rows: readonly RouteFigures[], rules: readonly DestinationRule[] = []) =>
    routeOrders(rows, rules, ['a', 'b', 'c'])

  test('is by the lower bound of conversion: many messages count more than a better rate of few', () => {
    const [found] = of([row('a', [3, 3]), row('b', [90, 100])])
    expect(found).toMatchObject({
      by: 'conversion',
      providers: ['b', 'a', 'c'],
      isProven: false,
      isSet: false,
      rule: { rule: 'GB', action: 'allow' },
    })
    expect(found && orderWords(found).join('')).toContain('Intervals overlap, so the order is not proven.')
  })

  test('is proven if no intervals overlap, and by delivery where no codes were sent', () => {
    expect(of([row('a', null, [50, 100]), row('b', null, [95, 100])])).toMatchObject([
      { by: 'delivery', providers: ['b', 'a', 'c'], isProven: true },
    ])
  })

  test('keeps what else the rule has, and only its providers', () => {
    const rules = [rule({ providers: ['b', 'a', 'gone'], sender: 'ACME', route: 'plain', action: 'monitor' })]
    const rows = [row('a', [10, 100]), row('b', [90, 100]), row('c', [99, 100])]
    expect(of(rows, rules)).toMatchObject([
      {
        providers: ['b', 'a'],
        isSet: true,
        rule: { action: 'monitor', sender: 'ACME', route: 'plain' },
      },
    ])
    expect(of(rows, [rule({ rule: '*', providers: ['a', 'b'] })])).toMatchObject([
      { providers: ['b', 'a'], isSet: false, rule: { rule: 'GB' } },
    ])
  })

  test.each([
    ['of one provider', [row('a', [1, 2])], []],
    ['of a provider that the server does not have', [row('a', [1, 2]), row('gone', [1, 2])], []],
    ['to a blocked country', [row('a', [1, 2]), row('b', [1, 2])], [rule({ action: 'block' })]],
    ['to no country', [row('a', [1, 2]), row('b', [1, 2])].map((each) => ({ ...each, country: null })), []],
    ['without codes and reports', [row('a', null), row('b', null)], []],
  ] as const)('is not suggested for messages %s', (_, rows, rules) => expect(of(rows, rules)).toEqual([]))
})
