/**
 * How often values fell between bounds, and their sum: what a histogram is made of. Plain data, so that it can cross to
 * another thread.
 */
export interface Distribution {
  /** Ascending; a value falls under the first bound that it is not above. */
  readonly bounds: readonly number[]
  /** One for each bound, and a last one for what is above all of them. */
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
