export interface Distribution {
  /** Ascending and inclusive. */
  readonly bounds: readonly number[]
  /** One per bound, and one for greater values. */
  readonly counts: number[]
  sum: number
}

export function newDistribution(bounds: readonly number[]): Distribution {
  return { bounds, counts: Array(bounds.length + 1).fill(0), sum: 0 }
}

export function observe(distribution: Distribution, value: number): void {
  const { bounds, counts } = distribution
  let place = 0
  while (place < bounds.length && value > (bounds[place] ?? 0)) place++
  counts[place] = (counts[place] ?? 0) + 1
  distribution.sum += value
}
