import type { Grant, LimitCount, LimitDecision, StoredClaim } from '../../domain/limits/limits.ts'
import { type BudgetCounters, counterOf } from '../../domain/money/budgets.ts'
import { otpSteps } from '../../domain/otp/state.ts'
import { ClaimLeases, isLeasable } from './claim-leases.ts'
import type { Database } from './database.ts'

/** Between checks for expired leases. */
const checkMs = 250

export type LeaseDatabase = Pick<Database, 'takeUnits' | 'now' | 'given' | 'beforeClose'>

export interface LeasedClaims {
  /**
   * Takes what the leases of this node have, and the other claims with `step`.
   * @param step first returns `unused` to the database
   */
  claim<Decision extends LimitDecision>(
    claims: readonly StoredClaim[],
    now: number,
    step: (others: readonly StoredClaim[], unused: readonly Grant[]) => Promise<Decision>,
  ): Promise<Decision>
  /** Puts grants back into leases, and the others with `step` into the database. */
  giveBack(
    grants: readonly Grant[],
    now: number,
    step: (others: readonly Grant[]) => Promise<void>,
  ): Promise<void>
  /** The counters without the unused units of this node. */
  withoutUnused(counters: BudgetCounters): BudgetCounters
}

/**
 * Claims of apps and budgets without their rows, which are changed by all requests. A lease only grants: a claim that it
 * cannot grant is decided in the database, in one transaction with the other claims of its request. So the first exhausted
 * limit rejects the request, as without leases.
 */
export function createLeasedClaims({
  takeUnits,
  now: serverTime,
  given,
  beforeClose,
}: LeaseDatabase): LeasedClaims {
  // No code is compared.
  const { admit, giveBack } = otpSteps(() => false)
  const leases = new ClaimLeases()
  const renewals = new Map<string, Promise<void>>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  const timeOf = (now: number) => given(now) ?? serverTime()

  function renewed(claim: StoredClaim, now: number): Promise<void> {
    const key = `${claim.subject[0]} ${claim.name}`
    let renewal = renewals.get(key)
    if (!renewal) {
      renewal = renew(claim, now).finally(() => renewals.delete(key))
      renewals.set(key, renewal)
    }
    return renewal
  }

  /** A short transaction on the row of the limit. */
  async function renew(claim: StoredClaim, now: number): Promise<void> {
    const before = timeOf(now)
    const unused = leases.takeOut(claim, leases.toKeep(claim, before))
    const { subject, name } = claim
    const taken = await takeUnits({
      subjects: [subject],
      run: (state, serverNow) => {
        const at = given(now) ?? serverNow
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
      checkSoon()
    }
  }

  const returned = (grants: readonly Grant[]): Promise<void> =>
    takeUnits({
      subjects: grants.map(({ subject }) => subject),
      run: (state, serverNow) => giveBack(state, grants, serverNow),
    })

  function checkSoon(): void {
    if (isClosed) return
    timer ??= setTimeout(() => {
      timer = undefined
      const expired = leases.takeOutExpired(serverTime())
      // Units of a failed transaction stay counted: it may have been committed.
      if (expired.length > 0) returned(expired).catch(() => {})
      if (!leases.isEmpty) checkSoon()
    }, checkMs)
    timer.unref()
  }

  beforeClose(async () => {
    isClosed = true
    clearTimeout(timer)
    await Promise.allSettled(renewals.values())
    const all = leases.takeOutExpired('all')
    if (all.length > 0) await returned(all)
  })

  async function putBack(grants: readonly Grant[], now: number): Promise<void> {
    const others = grants.filter((grant) => !leases.putBack(grant, timeOf(now)))
    if (others.length > 0) await returned(others)
  }

  return {
    claim: async (claims, now, step) => {
      if (isClosed || !claims.some(isLeasable)) return step(claims, [])
      const leasable = claims.filter(isLeasable)
      for (const claim of leasable) if (claim.counted) leases.note(claim, timeOf(now))
      const missing = leasable.filter((claim) => leases.isMissing(claim, timeOf(now)))
      if (missing.length > 0) await Promise.all(missing.map((claim) => renewed(claim, now)))

      const held = claims.map((claim) => (isLeasable(claim) ? leases.take(claim, timeOf(now)) : undefined))
      const others = claims.filter((_, index) => !held[index])
      const unused = others.filter(isLeasable).flatMap((claim) => leases.takeOut(claim))
      for (const claim of leasable) {
        if (others.includes(claim) || !leases.isDue(claim, timeOf(now))) continue
        // A later request that finds no units reports the failure.
        renewed(claim, now).catch(() => {})
      }
      const decision = await step(others, unused)
      if (decision.allowed) return { ...decision, counts: countsOf(claims, held, decision.counts) }
      await putBack(grantsOf(claims, held), now)
      return { ...decision, refusedBy: placeOf(claims, held, decision.refusedBy) }
    },
    giveBack: async (grants, now, step) => {
      const own = grants.filter((grant) => isLeasable(grant) && leases.accepts(grant, timeOf(now)))
      await step(grants.filter((grant) => !own.includes(grant)))
      await putBack(own, now)
    },
    withoutUnused: (counters) => ({
      spent: async (budgets, now) => {
        await Promise.allSettled(renewals.values())
        const spent = await counters.spent(budgets, now)
        return budgets.map((budget, index) =>
          Math.max(0, (spent[index] ?? 0) - leases.unused(counterOf(budget), now)),
        )
      },
    }),
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
