import type { EpochMs } from '../ground/time.ts'
import { advance, type Bucket, type BucketKind, type ClientKind, newBucket, type PairKind } from './bucket.ts'
import { fixedThresholds } from './thresholds.ts'

/** Of codes in the last hour and in the last day. */
export interface Pair {
  readonly hour: Bucket
  readonly day: Bucket
}

/** An IP address or a device. */
export interface Client extends Pair {
  readonly kind: ClientKind
  readonly countries: Map<string, Bucket>
}

type SingleKind = 'number' | 'prefix' | 'flagged' | 'spared' | `known-${'country' | ClientKind}`

const mostBuckets = 50_000

/** The buckets of one process, at most 50,000 of a kind: the emptiest are dropped. */
export class Buckets {
  readonly quiet: Pair
  readonly abroad: Bucket
  private readonly singles = new Map<SingleKind, Map<string, Bucket>>()
  private readonly countries = new Map<string, Pair>()
  private readonly clients = {
    ip: new Map<string, Client>(),
    device: new Map<string, Client>(),
  } as const

  constructor(now: EpochMs) {
    this.quiet = newPair('quiet', '', now)
    this.abroad = newBucket('abroad', '', now)
  }

  find(kind: SingleKind, key: string): Bucket | undefined {
    return this.singles.get(kind)?.get(key)
  }

  get(kind: SingleKind, key: string, now: EpochMs): Bucket {
    let ofKind = this.singles.get(kind)
    if (ofKind === undefined) {
      ofKind = new Map()
      this.singles.set(kind, ofKind)
    }
    return ofKind.get(key) ?? added(ofKind, key, newBucket(kind, key, now), (each) => levelAt(each, now))
  }

  findCountry(country: string): Pair | undefined {
    return this.countries.get(country)
  }

  country(country: string, now: EpochMs): Pair {
    return this.countries.get(country) ?? added(this.countries, country, newPair('country', country, now))
  }

  findClient(kind: ClientKind, key: string): Client | undefined {
    return this.clients[kind].get(key)
  }

  client(kind: ClientKind, key: string, now: EpochMs): Client {
    const known = this.clients[kind].get(key)
    if (known) return known
    const client = { ...newPair(kind, key, now), kind, countries: new Map<string, Bucket>() }
    return added(this.clients[kind], key, client, ({ day }) => levelAt(day, now))
  }

  /** Of a row. Creates it. */
  of(kind: BucketKind, key: string, now: EpochMs): Bucket {
    switch (kind) {
      case 'ip-country':
      case 'device-country': {
        const client = this.client(kind === 'ip-country' ? 'ip' : 'device', clientOfKey(key), now)
        return countryOfClient(client, key.slice(-2), now)
      }
      case 'country-hour':
        return this.country(key, now).hour
      case 'country-day':
        return this.country(key, now).day
      case 'quiet-hour':
        return this.quiet.hour
      case 'quiet-day':
        return this.quiet.day
      case 'abroad':
        return this.abroad
      case 'ip-hour':
        return this.client('ip', key, now).hour
      case 'ip-day':
        return this.client('ip', key, now).day
      case 'device-hour':
        return this.client('device', key, now).hour
      case 'device-day':
        return this.client('device', key, now).day
      default:
        return this.get(kind, key, now)
    }
  }

  *all(): Iterable<Bucket> {
    for (const ofKind of this.singles.values()) yield* ofKind.values()
    yield this.abroad
    for (const { hour, day } of [this.quiet, ...this.countries.values()]) yield* [hour, day]
    for (const clients of Object.values(this.clients))
      for (const { hour, day, countries } of clients.values()) yield* [hour, day, ...countries.values()]
  }
}

function newPair(kind: PairKind, key: string, now: EpochMs): Pair {
  return { hour: newBucket(`${kind}-hour`, key, now), day: newBucket(`${kind}-day`, key, now) }
}

export function countryOfClient({ kind, hour, countries }: Client, country: string, now: EpochMs): Bucket {
  const key = `${hour.key} ${country}`
  return countries.get(country) ?? added(countries, country, newBucket(`${kind}-country`, key, now))
}

/** The client of the key of one of its countries. */
export function clientOfKey(key: string): string {
  return key.slice(0, -3)
}

function added<Entry>(
  entries: Map<string, Entry>,
  key: string,
  entry: Entry,
  levelOf?: (entry: Entry) => number,
): Entry {
  if (levelOf && entries.size >= mostBuckets) dropEmptiest(entries, levelOf)
  entries.set(key, entry)
  return entry
}

function levelAt(bucket: Bucket, now: EpochMs): number {
  advance(bucket, fixedThresholds[bucket.kind] ?? 1, now)
  return bucket.level
}

/** Drops a fifth of a map that is too large: the emptiest, and of equally empty entries the oldest. */
function dropEmptiest<Entry>(entries: Map<string, Entry>, levelOf: (entry: Entry) => number): void {
  let excess = Math.floor(entries.size / 5)
  // Usually enough, and cheaper than to sort.
  for (const [key, entry] of entries) {
    if (excess === 0) return
    if (levelOf(entry) > 0) continue
    entries.delete(key)
    excess--
  }
  const levels = Float64Array.from(entries.values(), levelOf).sort()
  const highest = levels[excess] ?? 0
  for (const [key, entry] of entries) {
    if (excess === 0) return
    if (levelOf(entry) > highest) continue
    entries.delete(key)
    excess--
  }
}
