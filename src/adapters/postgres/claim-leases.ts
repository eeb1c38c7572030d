import { clockToleranceMs } from '../../domain/ground/ports.ts'
import type { EpochMs } from '../../domain/ground/time.ts'
import type { Grant, LimitCount, StoredClaim } from '../../domain/limits/limits.ts'

// A lease is a part of a limit's window that this node took from the database in advance. The count in the
// database includes the units of all leases, so the nodes together never pass the limit. The unused units of a
// node that is killed stay counted until the window ends.

/** Demand is measured in this time and the one before it. */
const slotMs = 250

/** Demand for fewer requests is not worth a lease. */
const leastRequests = 4

/** A lease is at most this part of what remains. */
const part = 1 / 16

/** If that part is less than this many requests need, each request claims its units in the database. */
const leastPart = 8

/** If a lease is not renewed for this time, its units return to the database. */
const termMs = 1000

/** A lease is not used in the last part of its window, since this node only estimates the server's time. */
const endMarginMs = 100

/** Apps and budgets, whose limits requests to all recipients share. */
export function isShared(subject: string): boolean {
  return /^(app|budget):/.test(subject)
}

/** Calls are few, so the database decides on each: a lease in renewal could reject the last ones too early. */
export function isLeasable({ subject }: Pick<StoredClaim, 'subject'>): boolean {
  return subject.length === 1 && isShared(subject[0]) && subject[0] !== 'budget:way:voice'
}

/**
 * The units that a node should have. 0: too little remains, so each request claims its units in the database.
 * @param count of the window in the database
 * @param demand units that requests of this node have claimed lately
 */
export function leaseSize(
  { max, units = 1 }: Pick<StoredClaim, 'max' | 'units'>,
  count: number,
  demand: number,
): number {
  const most = Math.floor((max - count) * part)
  return most < leastPart * units ? 0 : Math.min(most, demand)
}

interface Lease {
  readonly max: number
  /** Of the window. */
  readonly expiresAt: EpochMs
  readonly renewedAt: EpochMs
  /** Of the window in the database at the renewal, with the units of this lease. */
  readonly count: number
  /** The unused units at the renewal. More are never put back into it. */
  readonly most: number
  unused: number
}

interface Counted {
  requests: number
  units: number
}

type Key = Pick<StoredClaim, 'subject' | 'name'>

interface Entry {
  readonly key: Key
  slot: number
  current: Counted
  previous: Counted
  lease: Lease | undefined
  /** Until then, no lease is worth a try, since too little remained. */
  exactUntil: EpochMs
}

/** The leases of this node. Instants are the server's. */
export class ClaimLeases {
  private readonly entries = new Map<string, Entry>()

  /** Counts a request as demand. */
  note(claim: StoredClaim, now: EpochMs): void {
    const entry = this.entry(claim)
    turn(entry, now)
    entry.current.requests++
    entry.current.units += claim.units ?? 1
  }

  /** Takes the units of a claim, unless it is not counted. Undefined: the database must decide on it. */
  take(claim: StoredClaim, now: EpochMs): LimitCount | undefined {
    const lease = this.usable(claim, now)
    if (!lease) return undefined
    const { units = 1, counted } = claim
    if (counted) lease.unused -= units
    return { count: lease.count - lease.unused, expiresAt: lease.expiresAt }
  }

  /** Whether a new lease would probably grant the claim. */
  isMissing(claim: StoredClaim, now: EpochMs): boolean {
    return this.usable(claim, now) === undefined && this.isWorthwhile(claim, now)
  }

  /** Whether to renew the lease before it is used up or expires. */
  isDue(claim: StoredClaim, now: EpochMs): boolean {
    const lease = this.entry(claim).lease
    if (lease && lease.unused * 2 > lease.most && now - lease.renewedAt < termMs / 2) return false
    return this.isWorthwhile(claim, now)
  }

  /** The units to take from the database. Undefined: too little remains for a lease. */
  unitsToTake(claim: StoredClaim, count: number, now: EpochMs): number | undefined {
    const size = leaseSize(claim, count, this.demand(claim, now).units)
    return size === 0 ? undefined : Math.max(0, size - (this.entry(claim).lease?.unused ?? 0))
  }

  /** @param units that the database has granted with the claim's subject, name and `max` */
  renew(claim: StoredClaim, units: number, { count, expiresAt }: LimitCount, now: EpochMs): void {
    const entry = this.entry(claim)
    const { lease } = entry
    const isSame = lease?.expiresAt === expiresAt && lease.max === claim.max
    const unused = (isSame ? lease.unused : 0) + units
    entry.lease = { max: claim.max, expiresAt, renewedAt: now, count, most: unused, unused }
    entry.exactUntil = 0
  }

  /** Too little remained for a lease. */
  useDatabase(claim: StoredClaim, now: EpochMs): void {
    this.entry(claim).exactUntil = now + termMs
  }

  /** Removes the unused units above `keep`. The caller returns them to the database. */
  takeOut(key: Key, keep = 0): Grant[] {
    const lease = this.entry(key).lease
    if (!lease || lease.unused <= keep) return []
    const units = lease.unused - keep
    lease.unused = keep
    return [{ subject: key.subject, name: key.name, units, count: lease.count, expiresAt: lease.expiresAt }]
  }

  /** What `takeOut` must leave for the claim: nothing of a lease that cannot grant it. */
  toKeep(claim: StoredClaim, now: EpochMs): number {
    const lease = this.entry(claim).lease
    return lease && isOpen(lease, claim, now) ? this.demand(claim, now).units : 0
  }

  /** Whether `putBack` would accept the grant now. */
  accepts({ subject, name, units = 1, expiresAt }: Grant, now: EpochMs): boolean {
    const lease = this.entry({ subject, name }).lease
    if (!lease || lease.expiresAt !== expiresAt || isExpired(lease, now)) return false
    return lease.unused + units <= lease.most
  }

  /** False: the caller must return the grant to the database. */
  putBack(grant: Grant, now: EpochMs): boolean {
    if (!this.accepts(grant, now)) return false
    const lease = this.entry(grant).lease
    if (lease) lease.unused += grant.units ?? 1
    return true
  }

  /** Takes out all units of expired leases, or of all leases. */
  takeOutExpired(now: EpochMs | 'all'): Grant[] {
    const units: Grant[] = []
    for (const entry of this.entries.values()) {
      if (!entry.lease || (now !== 'all' && !isExpired(entry.lease, now))) continue
      units.push(...this.takeOut(entry.key))
      entry.lease = undefined
    }
    return units
  }

  /** The units that the database counts and no request has claimed. */
  unused(key: Key, now: EpochMs): number {
    const { lease } = this.entry(key)
    return lease && now < lease.expiresAt ? lease.unused : 0
  }

  get isEmpty(): boolean {
    return !this.entries.values().some(({ lease }) => lease)
  }

  private usable(claim: StoredClaim, now: EpochMs): Lease | undefined {
    const lease = this.entry(claim).lease
    return lease && isOpen(lease, claim, now) && lease.unused >= (claim.units ?? 1) ? lease : undefined
  }

  private isWorthwhile(claim: StoredClaim, now: EpochMs): boolean {
    const { requests, units } = this.demand(claim, now)
    if (requests < leastRequests || leaseSize(claim, 0, units) === 0) return false
    const { exactUntil } = this.entry(claim)
    return now >= exactUntil || now < exactUntil - termMs - clockToleranceMs
  }

  private demand(key: Key, now: EpochMs): Counted {
    const entry = this.entry(key)
    turn(entry, now)
    const { current, previous } = entry
    return { requests: current.requests + previous.requests, units: current.units + previous.units }
  }

  private entry({ subject, name }: Key): Entry {
    const text = `${subject[0]} ${name}`
    let entry = this.entries.get(text)
    if (!entry) {
      entry = {
        key: { subject, name },
        slot: 0,
        current: none(),
        previous: none(),
        lease: undefined,
        exactUntil: 0,
      }
      this.entries.set(text, entry)
    }
    return entry
  }
}

function none(): Counted {
  return { requests: 0, units: 0 }
}

function turn(entry: Entry, now: EpochMs): void {
  const slot = Math.floor(now / slotMs)
  if (slot === entry.slot) return
  entry.previous = slot === entry.slot + 1 ? entry.current : none()
  entry.current = none()
  entry.slot = slot
}

function isOpen(lease: Lease, { max }: StoredClaim, now: EpochMs): boolean {
  return lease.max === max && !isExpired(lease, now)
}

/** Also if the clock was set back. */
function isExpired({ renewedAt, expiresAt }: Lease, now: EpochMs): boolean {
  return now >= Math.min(renewedAt + termMs, expiresAt - endMarginMs) || now < renewedAt - clockToleranceMs
}
