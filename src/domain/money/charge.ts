import type { RequestContext } from '../events/request-context.ts'
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

/** What was claimed of a budget with one claim, and what was spent of that. */
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
  /** Claimed with the limits of the request, for all its messages. */
  private readonly lines: Line[] = []
  /** Claimed during the delivery. */
  private readonly further: (Line & { readonly grant: Grant | undefined })[] = []

  constructor(
    private readonly policy: {
      readonly budgets: readonly Budget[]
      readonly budgetOf: (scope: string) => Budget | undefined
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
    return this.lines.map((line) => claimOf(line, now))
  }

  /** For the delivery of one of its messages. */
  of(message: PricedMessage, context: RequestContext, { store, now }: ChargePorts): Charging {
    const { prices } = this.policy
    let lines: readonly Line[] = this.linesOf(message)
    return {
      mayContinue: async (step) => {
        if (lines.length === 0) return true
        const next = lines.map((line) => ({
          ...line,
          claimedMicros: dearest(line, message, [step]),
          spentMicros: 0,
        }))
        const claims = next.map((line) => claimOf(line, now()))
        try {
          const decision = await store.admit(claims, now())
          if (!decision.allowed) return false
          lines = next.map((line) => ({ ...line, grant: grantOf(line, decision.grants) }))
        } catch (error) {
          // The delivery must end, so that what it did not spend is given back.
          context.fault = error
          return false
        }
        this.further.push(...(lines as typeof this.further))
        return true
      },
      spend: (step) => {
        for (const line of lines) line.spentMicros += costOf(line, message, step)
        return { micros: costOf({ prices }, message, step), currency: prices.currency }
      },
    }
  }

  /** What to give back. @param grants of `claims` */
  unspent(grants: readonly Grant[]): Grant[] {
    const first = this.lines.map((line) => ({ ...line, grant: grantOf(line, grants) }))
    return [...first, ...this.further].flatMap(({ grant, claimedMicros, spentMicros }) => {
      const units = claimedMicros - spentMicros
      return grant && units > 0 ? [{ ...grant, units }] : []
    })
  }

  private linesOf({ country }: PricedMessage): readonly Line[] {
    const { budgets, budgetOf } = this.policy
    if (budgets.length === 0) return []
    const { app, brand } = this.about
    return ['server', `brand:${brand}`, `app:${app}`, `country:${country}`].flatMap((scope) => {
      const budget = budgetOf(scope)
      return budget ? [this.lineOf(budget)] : []
    })
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

function claimOf({ budget, claimedMicros }: Line, now: number): Claim {
  return budgetClaim(budget, claimedMicros, now)
}

function grantOf({ budget }: Line, grants: readonly Grant[]): Grant | undefined {
  const counter = counterOf(budget)
  return grants.find(({ subject, name }) => subject[0] === counter.subject[0] && name === counter.name)
}

function dearest(line: Pick<Line, 'prices'>, message: PricedMessage, steps: readonly PricedStep[]): number {
  return steps.reduce((most, step) => Math.max(most, costOf(line, message, step)), 0)
}

function costOf(
  { prices }: Pick<Line, 'prices'>,
  { to }: PricedMessage,
  { provider, segments }: PricedStep,
): number {
  return prices.perSegment(to, provider.name) * segments.count
}
