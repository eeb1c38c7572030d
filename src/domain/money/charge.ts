import type { Charging } from '../messages/delivery.ts'
import type { Claim, Grant } from '../otp/limits.ts'
import type { OtpStore } from '../otp/store.ts'
import type { Clock } from '../time.ts'
import { type Budget, budgetClaim, counterOf } from './budgets.ts'
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
  readonly store: Pick<OtpStore, 'admit'>
  readonly now: Clock
}

interface Line {
  readonly budget: Budget
  readonly prices: PriceList
  claimedMicros: number
  spentMicros: number
}

/**
 * What the messages of a request cost each budget (design D42): claimed before the delivery at the dearest price, and given
 * back except for what may have been sent.
 */
export class Charge {
  private readonly lines: Line[] = []

  constructor(
    private readonly policy: {
      readonly budgets: readonly Budget[]
      readonly prices: PriceList
      readonly pricesIn: (currency: string) => PriceList
    },
    private readonly about: { readonly app: string; readonly brand: string },
  ) {}

  /** A message that will go one of these ways. */
  add(message: PricedMessage, steps: readonly PricedStep[]): void {
    for (const line of this.linesOf(message)) line.claimedMicros += dearest(line, message, steps)
  }

  claims(now: number): Claim[] {
    return this.lines.map(({ budget, claimedMicros }) => budgetClaim(budget, claimedMicros, now))
  }

  /** For the delivery of one of its messages. */
  of(message: PricedMessage, { store, now }: ChargePorts): Charging {
    const { prices } = this.policy
    return {
      mayContinue: async (steps) => {
        const costs = this.linesOf(message).map((line) => ({ line, micros: dearest(line, message, steps) }))
        if (costs.length === 0) return true
        const claims = costs.map(({ line, micros }) => budgetClaim(line.budget, micros, now()))
        const { allowed } = await store.admit(claims, now())
        if (allowed) for (const { line, micros } of costs) line.claimedMicros += micros
        return allowed
      },
      spend: (step) => {
        for (const line of this.linesOf(message)) line.spentMicros += costOf(line, message, step)
        return { micros: costOf({ prices }, message, step), currency: prices.currency }
      },
    }
  }

  /** What to give back of the grants. */
  unspent(grants: readonly Grant[]): Grant[] {
    return this.lines.flatMap(({ budget, claimedMicros, spentMicros }) => {
      const counter = counterOf(budget)
      const units = claimedMicros - spentMicros
      const isOwn = ({ subject, name }: Grant) => subject[0] === counter.subject[0] && name === counter.name
      const grant = units > 0 ? grants.find(isOwn) : undefined
      return grant ? [{ ...grant, units }] : []
    })
  }

  private linesOf({ country }: PricedMessage): readonly Line[] {
    const { budgets } = this.policy
    if (budgets.length === 0) return []
    const { app, brand } = this.about
    return budgets
      .filter(
        ({ scope }) =>
          scope === 'server' ||
          scope === `brand:${brand}` ||
          scope === `app:${app}` ||
          scope === `country:${country}`,
      )
      .map((budget) => this.lineOf(budget))
  }

  private lineOf(budget: Budget): Line {
    let line = this.lines.find((each) => each.budget === budget)
    if (!line) {
      line = { budget, prices: this.policy.pricesIn(budget.currency), claimedMicros: 0, spentMicros: 0 }
      this.lines.push(line)
    }
    return line
  }
}

function dearest(line: Line, message: PricedMessage, steps: readonly PricedStep[]): number {
  return steps.reduce((most, step) => Math.max(most, costOf(line, message, step)), 0)
}

function costOf(
  { prices }: Pick<Line, 'prices'>,
  { to }: PricedMessage,
  { provider, segments }: PricedStep,
): number {
  return prices.perSegment(to, provider.name) * segments.count
}
