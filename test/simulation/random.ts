/** A small seeded generator (mulberry32) with the same numbers on every machine. */
export class Random {
  private state: number

  constructor(seed: number) {
    // Adjacent seeds must not give similar streams, so the first state mixes all their bits.
    this.state = mixed(mixed(seed >>> 0) ^ 0x9e3779b9)
  }

  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    return Math.floor((mixed(this.state) / 0x100000000) * limit)
  }

  chance(probability: number): boolean {
    return this.below(1_000_000) < probability * 1_000_000
  }

  pick<T>(list: readonly T[]): T {
    const item = list[this.below(list.length)]
    if (item === undefined) throw new RangeError('nothing to pick from')
    return item
  }

  /** One of the values, with a probability by weight. */
  weighted<T>(rows: readonly (readonly [weight: number, value: T])[]): T {
    let rest = this.below(rows.reduce((sum, [weight]) => sum + weight, 0))
    for (const [weight, value] of rows) {
      if (rest < weight) return value
      rest -= weight
    }
    throw new RangeError('nothing to pick from')
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)))
  }
}

function mixed(value: number): number {
  let bits = Math.imul(value ^ (value >>> 15), value | 1)
  bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
  return (bits ^ (bits >>> 14)) >>> 0
}
