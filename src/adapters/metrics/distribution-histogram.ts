import { Histogram, type Registry } from 'prom-client'
import type { Distribution } from '../../domain/events/distribution.ts'

/**
 * A histogram of what was counted elsewhere: in another thread, or where each observation has to cost next to nothing.
 */
export class DistributionHistogram<Label extends string> extends Histogram<Label> {
  /** @param distributions what there is at the time of a scrape, each with its labels */
  constructor(
    registry: Registry,
    private readonly about: { readonly name: string; readonly help: string },
    private readonly distributions: () => Iterable<readonly [Partial<Record<Label, string>>, Distribution]>,
  ) {
    super({ ...about, registers: [registry] })
  }

  /** What the registry asks of histograms, and `get` goes by. */
  async getForPromString() {
    const { name, help } = this.about
    const values = Array.from(this.distributions(), ([labels, each]) => valuesOf(name, labels, each)).flat()
    return { name, help, type: 'histogram', aggregator: 'sum', values }
  }
}

function valuesOf(name: string, labels: object, { bounds, counts, sum }: Distribution) {
  let count = 0
  const buckets = counts.map((more, place) => {
    count += more
    return { metricName: `${name}_bucket`, labels: { le: bounds[place] ?? '+Inf', ...labels }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
