import type { Charging } from '../delivery/delivery.ts'
import type { Clock } from '../ground/time.ts'
import type { ClaimStore } from '../limits/claim-store.ts'
import { grantsOf, isSame, stored } from '../limits/claims.ts'
import type { Claim, Grant } from '../limits/limits.ts'
import type { RequestContext } from '../request/request-context.ts'
import { type Budget, budgetClaim } from './budgets.ts'
import type { PriceList } from './prices.ts'

/** A way to send a message. */
export interface PricedStep {
  readonly provider: { readonly name: string }
  readonly segments: { readonly count: number }
}

export interface PricedMessage {
  /** E.164 digits. */
  readonly to: string
  readonly country: string | null
}

export interface ChargePorts {
  readonly store: Pick<ClaimStore, 'admit'>
  readonly now: Clock
}

/** Prices and budgets, as operators have set them. */
export interface Tariff {
  readonly budgets: readonly Budget[]
  readonly prices: PriceList
  budgetOf(scope: string): Budget | undefined
  /** Budgets of before the first import count in units. */
  pricesIn(currency: string): PriceList
}

/** What was claimed of a budget with one claim, and what was spent of that. */
interface Line {
  readonly budget: Budget
  readonly prices: PriceList
  claimedMicros: number
  spentMicros: number
  claim?: Claim
}

/**
 * What the messages of a request cost each budget (design D42): claimed before the delivery at the dearest price, and given
 * back except for what may have been sent.
 */
export class Charge {
  /** Claimed with the limits of the request, for all its messages. */
  private readonly lines: Line[] = []
  /** Those of every message. */
  private common: readonly Line[] | undefined
  /** Claimed during the delivery. */
  private readonly further: { readonly line: Line; readonly grants: readonly Grant[] }[] = []
  /** The latest price, which the budgets of a message share. */
  private latest:
    | { readonly prices: PriceList; readonly to: string; readonly provider: string; readonly micros: number }
    | undefined

  constructor(
    private readonly policy: Tariff,
    private readonly about: { readonly app: string; readonly brand: string },
    private readonly context: RequestContext,
    private readonly ports: ChargePorts,
  ) {}

  /** A message that will go one of these ways. */
  add(message: PricedMessage, steps: readonly PricedStep[]): Charging {
    const { prices } = this.policy
    let lines = this.linesOf(message)
    for (const line of lines) line.claimedMicros += this.dearest(line, message, steps)
    return {
      mayContinue: async (step) => {
        if (lines.length === 0) return true
        const next = lines.map(({ budget, prices }) => ({ budget, prices, claimedMicros: 0, spentMicros: 0 }))
        for (const line of next) line.claimedMicros = this.dearest(line, message, [step])
        const grants = await this.admit(next)
        if (!grants) return false
        this.further.push(...next.map((line) => ({ line, grants })))
        lines = next
        return true
      },
      spend: (step) => {
        for (const line of lines) line.spentMicros += this.costOf(line, message, step)
        return { micros: this.costOf({ prices }, message, step), currency: prices.currency }
      },
    }
  }

  claims(): Claim[] {
    return claimsOf(this.lines, this.ports.now())
  }

  /** What to give back. @param grants of `claims` */
  unspent(grants: readonly Grant[]): Grant[] {
    const unspent: Grant[] = []
    for (const line of this.lines) addUnspent(line, grants, unspent)
    for (const further of this.further) addUnspent(further.line, further.grants, unspent)
    return unspent
  }

  /** Undefined: a budget is exhausted, or the store failed. The delivery must end, so that what it did not spend is given back. */
  private async admit(lines: readonly Line[]): Promise<readonly Grant[] | undefined> {
    const { store, now } = this.ports
    try {
      const claims = claimsOf(lines, now())
      const decision = await store.admit(claims.map(stored), now())
      return decision.allowed ? grantsOf(claims, decision) : undefined
    } catch (error) {
      this.context.fault = error
      return undefined
    }
  }

  private linesOf({ country }: PricedMessage): readonly Line[] {
    const { budgets, budgetOf } = this.policy
    if (budgets.length === 0) return []
    if (this.common === undefined) {
      const common: Line[] = []
      for (const scope of ['server', `brand:${this.about.brand}`, `app:${this.about.app}`]) {
        const budget = budgetOf(scope)
        if (budget) common.push(this.lineOf(budget))
      }
      this.common = common
    }
    const ofCountry = budgetOf(`country:${country}`)
    return ofCountry ? [...this.common, this.lineOf(ofCountry)] : this.common
  }

  private lineOf(budget: Budget): Line {
    let line = this.lines.find((each) => each.budget === budget)
    if (!line) {
      line = { budget, prices: this.policy.pricesIn(budget.currency), claimedMicros: 0, spentMicros: 0 }
      this.lines.push(line)
    }
    return line
  }

  private dearest(line: Pick<Line, 'prices'>, message: PricedMessage, steps: readonly PricedStep[]): number {
    let most = 0
    for (const step of steps) most = Math.max(most, this.costOf(line, message, step))
    return most
  }

  private costOf(
    { prices }: Pick<Line, 'prices'>,
    { to }: PricedMessage,
    { provider: { name }, segments }: PricedStep,
  ): number {
    let { latest } = this
    if (latest?.prices !== prices || latest.to !== to || latest.provider !== name) {
      latest = { prices, to, provider: name, micros: prices.perSegment(to, name) }
      this.latest = latest
    }
    return latest.micros * segments.count
  }
}

function claimsOf(lines: readonly Line[], now: number): Claim[] {
  return lines.map((line) => {
    line.claim = budgetClaim(line.budget, line.claimedMicros, now)
    return line.claim
  })
}

function addUnspent(
  { claim, claimedMicros, spentMicros }: Line,
  grants: readonly Grant[],
  to: Grant[],
): void {
  const units = claimedMicros - spentMicros
  if (units <= 0 || claim === undefined) return
  const grant = grants.find((each) => isSame(each, claim))
  if (grant) to.push({ ...grant, units })
}
