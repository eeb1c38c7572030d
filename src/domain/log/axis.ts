// Where the axes of a chart end.

/** Of the steps, those that may be a peak. */
const mostPeaks = 3
/** Less does not flatten the rest. */
const leastPeak = 4
/** Of a step without a peak: with less there is no curve to see. */
const leastUsual = 5
const least = 4

/**
 * A short peak is above the top, so that it does not flatten the rest. A few failures are not as high as all messages.
 *
 * @param counts the steps of each line
 */
export function axisTops(counts: readonly (readonly number[])[], failures: readonly number[]) {
  const top = withMargin(Math.max(0, ...counts.map(topOf)))
  return { counts: top, failures: Math.max(withMargin(Math.max(0, ...failures)), top / 10) }
}

function topOf(counts: readonly number[]): number {
  const sorted = counts.filter((value) => value > 0).sort((one, other) => other - one)
  const [highest = 0] = sorted
  const usual = sorted[Math.min(mostPeaks, Math.floor(sorted.length / 8))] ?? 0
  return usual >= leastUsual && highest > leastPeak * usual ? 1.5 * usual : highest
}

/** Amounts of money can be less than 1, counts cannot. */
function withMargin(highest: number): number {
  return 1.08 * (highest > 0 && highest < 1 ? highest : Math.max(least, highest))
}
