/** The middle one of some numbers, or the mean of the two in the middle. */
export function median(numbers: readonly number[]): number {
  const ascending = [...numbers].sort((a, b) => a - b)
  const half = ascending.length / 2
  const [low, high] = [ascending[Math.ceil(half) - 1], ascending[Math.floor(half)]]
  if (low === undefined || high === undefined) throw new Error('there is no median of nothing')
  return (low + high) / 2
}

/** The number that so many per cent of an ascending list do not exceed (nearest rank). */
export function percentile(ascending: readonly number[], percent: number): number {
  const rank = Math.max(1, Math.ceil((percent / 100) * ascending.length))
  const value = ascending[rank - 1]
  if (value === undefined) throw new Error('there is no percentile of nothing')
  return value
}
