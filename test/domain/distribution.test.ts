import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { newDistribution, observe } from '../../src/domain/log/distribution.ts'

test('a value is counted in the first bucket whose bound it does not exceed', () => {
  const distribution = newDistribution([1, 2, 4])
  for (const value of [0, 1, 1.5, 2, 3, 4, 4.1, 100]) observe(distribution, value)
  expect(distribution).toEqual({ bounds: [1, 2, 4], counts: [2, 2, 2, 2], sum: 115.6 })
})

test('each bucket counts the values that do not exceed its bound', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: -50, max: 50 }), { maxLength: 12 }),
      fc.array(fc.integer({ min: -60, max: 60 })),
      (chosen, values) => {
        const bounds = chosen.toSorted((a, b) => a - b)
        const distribution = newDistribution(bounds)
        for (const value of values) observe(distribution, value)
        const upTo = (places: number) =>
          distribution.counts.slice(0, places).reduce((sum, count) => sum + count, 0)
        for (const [place, bound] of bounds.entries()) {
          expect(upTo(place + 1)).toBe(values.filter((value) => value <= bound).length)
        }
        expect(upTo(bounds.length + 1)).toBe(values.length)
        expect(distribution.sum).toBe(values.reduce((sum, value) => sum + value, 0))
      },
    ),
  )
})
