import type { Grant, LimitCount, LimitDecision, StoredClaim } from '../../domain/limits/limits.ts'
import { type BudgetCounters, counterOf } from '../../domain/money/budgets.ts'
import { otpSteps } from '../../domain/otp/state.ts'
import { ClaimLeases, isLeasable } from './claim-leases.ts'
import type { Database } from './database.ts'

/** Between checks for expired leases. */
const checkMs = 250

export type LeaseDatabase = Pick<Database, 'takeUnits' | 'now' | 'given' | 'beforeClose'>

// No code is compared.
const { admit, giveBack } = otpSteps(() => false)

/**
 * Claims of apps and budgets without their rows, which are changed by all requests. A lease only grants: a claim that it
 * cannot grant is decided in the database, in one transaction with the other claims of its request. So the first exhausted
 * limit rejects the request, as without leases.
 */
export class LeasedClaims {
  private readonly leases = new ClaimLeases()
  private readonly renewals = new Map<string, Promise<void>>()
  private timer: Timer | undefined
  private isClosed = false

  constructor(private readonly database: LeaseDatabase) {
    database.beforeClose(async () => {
      this.isClosed = true
      clearTimeout(this.timer)
      await Promise.allSettled(this.renewals.values())
      const all = this.leases.takeOutExpired('all')
      if (all.length > 0) await this.returned(all)
    })
  }

  /**
   * Takes what the leases of this node have, and the other claims with `step`.
   * @param step first returns `unused` to the database
   */
  async claim<Decision extends LimitDecision>(
    claims: readonly StoredClaim[],
    now: number,
    step: (others: readonly StoredClaim[], unused: readonly Grant[]) => Promise<Decision>,
  ): Promise<Decision> {
    if (this.isClosed || !claims.some(isLeasable)) return step(claims, [])
    const { leases } = this
    const leasable = claims.filter(isLeasable)
    for (const claim of leasable) if (claim.counted) leases.note(claim, this.timeOf(now))
    const missing = leasable.filter((claim) => leases.isMissing(claim, this.timeOf(now)))
    if (missing.length > 0) await Promise.all(missing.map((claim) => this.renewed(claim, now)))

    const held = claims.map((claim) => (isLeasable(claim) ? leases.take(claim, this.timeOf(now)) : undefined))
    const others = claims.filter((_, index) => !held[index])
    const unused = others.filter(isLeasable).flatMap((claim) => leases.takeOut(claim))
    for (const claim of leasable) {
      if (others.includes(claim) || !leases.isDue(claim, this.timeOf(now))) continue
      // A later request that finds no units reports the failure.
      this.renewed(claim, now).catch(() => {})
    }
    const decision = await step(others, unused)
    if (decision.allowed) return { ...decision, counts: countsOf(claims, held, decision.counts) }
    await this.putBack(grantsOf(claims, held), now)
    return { ...decision, refusedBy: placeOf(claims, held, decision.refusedBy) }
  }

  /** Puts grants back into leases, and the others with `step` into the database. */
  async giveBack(
    grants: readonly Grant[],
    now: number,
    step: (others: readonly Grant[]) => Promise<void>,
  ): Promise<void> {
    const own = grants.filter((grant) => isLeasable(grant) && this.leases.accepts(grant, this.timeOf(now)))
    await step(grants.filter((grant) => !own.includes(grant)))
    await this.putBack(own, now)
  }

  /** The counters without the unused units of this node. */
  withoutUnused(counters: BudgetCounters): BudgetCounters {
    return {
      spent: async (budgets, now) => {
        await Promise.allSettled(this.renewals.values())
        const spent = await counters.spent(budgets, now)
        return spent.map(({ budget, micros }) => ({
          budget,
          micros: Math.max(0, micros - this.leases.unused(counterOf(budget), now)),
        }))
      },
    }
  }

  private timeOf(now: number): number {
    return this.database.given(now) ?? this.database.now()
  }

  private renewed(claim: StoredClaim, now: number): Promise<void> {
    const key = `${claim.subject[0]} ${claim.name}`
    let renewal = this.renewals.get(key)
    if (!renewal) {
      renewal = this.renew(claim, now).finally(() => this.renewals.delete(key))
      this.renewals.set(key, renewal)
    }
    return renewal
  }

  /** A short transaction on the row of the limit. */
  private async renew(claim: StoredClaim, now: number): Promise<void> {
    const { leases, database } = this
    const before = this.timeOf(now)
    const unused = leases.takeOut(claim, leases.toKeep(claim, before))
    const { subject, name } = claim
    const taken = await database.takeUnits({
      subjects: [subject],
      run: (state, serverNow) => {
        const at = database.given(now) ?? serverNow
        giveBack(state, unused, at)
        const units = leases.unitsToTake(claim, state.limit(subject, name, at)?.count ?? 0, at)
        if (units === undefined) {
          const rest = leases.takeOut(claim)
          giveBack(state, rest, at)
          // For a second run after a rollback.
          unused.push(...rest)
          return { at }
        }
        const decision = admit(state, [{ ...claim, units, counted: true }], at)
        return { at, units, count: decision.allowed ? decision.counts[0] : undefined }
      },
    })
    if (taken.count === undefined) leases.useDatabase(claim, taken.at)
    else {
      leases.renew(claim, taken.units, taken.count, taken.at)
      this.checkSoon()
    }
  }

  private returned(grants: readonly Grant[]): Promise<void> {
    return this.database.takeUnits({
      subjects: grants.map(({ subject }) => subject),
      run: (state, serverNow) => giveBack(state, grants, serverNow),
    })
  }

  private checkSoon(): void {
    if (this.isClosed) return
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      const expired = this.leases.takeOutExpired(this.database.now())
      // Units of a failed transaction stay counted: it may have been committed.
      if (expired.length > 0) this.returned(expired).catch(() => {})
      if (!this.leases.isEmpty) this.checkSoon()
    }, checkMs)
    this.timer.unref()
  }

  private async putBack(grants: readonly Grant[], now: number): Promise<void> {
    const others = grants.filter((grant) => !this.leases.putBack(grant, this.timeOf(now)))
    if (others.length > 0) await this.returned(others)
  }
}

type Held = readonly (LimitCount | undefined)[]

/** Of each counted claim, in order. */
function countsOf(claims: readonly StoredClaim[], held: Held, ofOthers: readonly LimitCount[]): LimitCount[] {
  const rest = ofOthers.values()
  return claims.flatMap(({ counted }, index) => {
    if (!counted) return []
    const count = held[index] ?? rest.next().value
    return count ? [count] : []
  })
}

function grantsOf(claims: readonly StoredClaim[], held: Held): Grant[] {
  return claims.flatMap(({ subject, name, units, counted }, index) => {
    const count = held[index]
    return counted && count ? [{ subject, name, units, ...count }] : []
  })
}

/** In all claims; `place` is that in the others, and what follows these. */
function placeOf(claims: readonly StoredClaim[], held: Held, place: number): number {
  const places = [...claims.keys()].filter((index) => !held[index])
  return places[place] ?? claims.length + place - places.length
}
