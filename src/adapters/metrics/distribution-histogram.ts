import { Histogram, type Registry } from 'prom-client'
import type { Distribution } from '../../domain/log/distribution.ts'

/** For values counted at almost no cost per observation. */
export class DistributionHistogram extends Histogram {
  constructor(
    registry: Registry,
    private readonly about: { readonly name: string; readonly help: string },
    private readonly distributions: () => Iterable<readonly [labels: object, Distribution]>,
  ) {
    super({ ...about, registers: [registry] })
  }

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
