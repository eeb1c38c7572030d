import { Counter, type Registry } from 'prom-client'
import { type Distribution, newDistribution, observe } from '../../domain/log/distribution.ts'
import { DistributionHistogram } from './distribution-histogram.ts'

// Counted without prom-client until a scrape, since it sorts and hashes the labels of each observation.

type Labels<Name extends string> = Readonly<Record<Name, string | number>>

/** A map in a map for each label, which takes less time than a key of all labels. */
class ByLabels<Name extends string, Value> {
  private readonly root = new Branch<Value>()
  readonly entries: (readonly [labels: Labels<Name>, value: Value])[] = []

  constructor(
    private readonly names: readonly Name[],
    private readonly start: () => Value,
  ) {}

  of(labels: Labels<Name>): Value {
    let branch = this.root
    for (const name of this.names) branch = branch.at(labels[name])
    if (branch.value === undefined) {
      branch.value = this.start()
      this.entries.push([labels, branch.value])
    }
    return branch.value
  }
}

class Branch<Value> {
  private readonly branches = new Map<string | number, Branch<Value>>()
  value: Value | undefined

  at(label: string | number): Branch<Value> {
    const known = this.branches.get(label)
    if (known) return known
    const branch = new Branch<Value>()
    this.branches.set(label, branch)
    return branch
  }
}

interface Named<Name extends string> {
  readonly name: string
  readonly help: string
  readonly labelNames: Name[]
}

export class LabelledCounter<Name extends string> {
  private readonly counts: ByLabels<Name, { count: number }>

  constructor(registry: Registry, about: Named<Name>) {
    const counts = new ByLabels(about.labelNames, () => ({ count: 0 }))
    this.counts = counts
    new Counter({
      ...about,
      registers: [registry],
      collect() {
        this.reset()
        for (const [labels, { count }] of counts.entries) this.inc({ ...labels }, count)
      },
    })
  }

  inc(labels: Labels<Name>, by = 1): void {
    this.counts.of(labels).count += by
  }
}

export class LabelledHistogram<Name extends string> {
  private readonly distributions: ByLabels<Name, Distribution>

  constructor(
    registry: Registry,
    { labelNames, bounds, ...about }: Named<Name> & { readonly bounds: readonly number[] },
  ) {
    const distributions = new ByLabels(labelNames, () => newDistribution(bounds))
    this.distributions = distributions
    new DistributionHistogram(registry, about, () => distributions.entries)
  }

  observe(labels: Labels<Name>, value: number): void {
    observe(this.distributions.of(labels), value)
  }

  /** Reports the labels with 0 observations. */
  zero(labels: Labels<Name>): void {
    this.distributions.of(labels)
  }
}
