import type { Charging } from '../delivery/delivery.ts'
import type { NumberKind } from '../delivery/destination.ts'
import { wayOf } from '../delivery/way.ts'
import type { Mail, PhoneRoute } from '../ground/providers.ts'
import type { Clock } from '../ground/time.ts'
import type { ClaimStore } from '../limits/claim-store.ts'
import { grantsOf } from '../limits/gates.ts'
import {
  type Claim,
  type Delivered,
  type Gate,
  type Grant,
  type Settlement,
  unchanged,
} from '../limits/limits.ts'
import type { BudgetOf } from '../request/limit-names.ts'
import type { RequestContext } from '../request/request-context.ts'
import { anyCountry, type Budget, budgetClaim, callCap, inCountry, includes, withCallCap } from './budgets.ts'
import type { PriceList } from './prices.ts'

/** A way to send a message. */
interface PricedStep {
  readonly route: PhoneRoute
  readonly provider: { readonly name: string }
  readonly segments: { readonly count: number }
}

interface PricedMessage {
  /** E.164 digits. */
  readonly to: string
  readonly country: string | null
  readonly kind: NumberKind
  /** It will go one of these ways. */
  readonly steps: readonly PricedStep[]
}

interface ChargePorts {
  readonly store: Pick<ClaimStore, 'admit'>
  readonly now: Clock
}

/** Prices and budgets, as operators have set them. */
export interface Tariff {
  readonly budgets: readonly Budget[]
  readonly prices: PriceList
  /** At most one for each kind of messages. */
  budgetsOf(scope: string): readonly Budget[]
  /** Budgets of before the first import count in units. */
  pricesIn(currency: string): PriceList
}

type Prices = Pick<PriceList, 'perSegment'>

/** What was claimed of a budget with one claim, and what was spent of that. */
interface Line {
  readonly budget: Budget
  readonly prices: Prices
  claimedMicros: number
  spentMicros: number
}

const none: readonly Line[] = []

const onePerCall: Prices = { perSegment: () => 1e6 }

/**
 * What the messages of a request cost each budget (design D42): claimed before the delivery at the dearest price, and given
 * back except for what may have been sent.
 */
export class Charge implements Gate, Charging {
  readonly claims: readonly Claim[]
  /** Claimed with the limits of the request, for all its messages. */
  private readonly lines: Line[] = []
  /** By message. */
  private readonly linesOf = new Map<PricedMessage, readonly Line[]>()
  /** Those of every message. */
  private common: readonly Line[] | undefined
  /** Claimed during the delivery. */
  private readonly further: { readonly lines: readonly Line[]; readonly grants: readonly Grant[] }[] = []
  /** The latest price, which the budgets of a message share. */
  private latest:
    | { readonly prices: Prices; readonly to: string; readonly provider: string; readonly micros: number }
    | undefined

  constructor(
    private readonly tariff: Tariff,
    private readonly about: {
      readonly app: string
      readonly brand: string
      readonly of: Exclude<BudgetOf, 'all'>
    },
    private readonly context: RequestContext,
    private readonly ports: ChargePorts,
    messages: readonly (PricedMessage | Mail)[],
  ) {
    const hasBudgets = tariff.budgets.length > 0
    for (const each of messages)
      if ('steps' in each && (hasBudgets || each.steps.some(({ route }) => route === 'voice'))) this.add(each)
    this.claims = this.claimsOf(this.lines)
  }

  async mayContinue(message: PricedMessage, step: PricedStep): Promise<boolean> {
    const lines = this.linesOf.get(message)
    if (!lines || lines.length === 0) return true
    const next = lines.map(({ budget, prices }) => ({ budget, prices, claimedMicros: 0, spentMicros: 0 }))
    for (const line of next) line.claimedMicros = this.costFor(line, message, step)
    const grants = await this.admit(next)
    if (!grants) return false
    this.further.push({ lines: next, grants })
    this.linesOf.set(message, next)
    return true
  }

  spend(message: PricedMessage, step: PricedStep) {
    for (const line of this.linesOf.get(message) ?? []) line.spentMicros += this.costFor(line, message, step)
    const { prices } = this.tariff
    return { micros: this.costOf({ prices }, message, step), currency: prices.currency }
  }

  settle(_: Delivered, grants: readonly Grant[]): Settlement {
    if (this.lines.length === 0) return unchanged
    return { back: [{ lines: this.lines, grants }, ...this.further].flatMap(unspent) }
  }

  /** Undefined: a budget is exhausted, or the store failed. The delivery must end, so that what it did not spend is given back. */
  private async admit(lines: readonly Line[]): Promise<readonly Grant[] | undefined> {
    const { store, now } = this.ports
    try {
      const claims = this.claimsOf(lines)
      const decision = await store.admit(claims, now())
      return decision.allowed ? grantsOf(claims, decision) : undefined
    } catch (error) {
      this.context.fault = error
      return undefined
    }
  }

  private add(message: PricedMessage): void {
    const { app, brand } = this.about
    this.common ??= ['server', `brand:${brand}`, `app:${app}`].flatMap((scope) => this.linesIn(scope))
    const ownOfCountry = this.linesIn(`country:${message.country}`)
    const ofCountry = ownOfCountry.length > 0 ? ownOfCountry : this.linesIn(anyCountry, message.country)
    const ways = [...new Set(message.steps.map(wayOf))]
    const ofWays = ways.flatMap((way) => this.linesIn(`way:${way}`))
    const lines = [...this.common, ...ofCountry, ...ofWays]
    this.linesOf.set(message, lines)
    for (const line of lines) {
      line.claimedMicros += Math.max(...message.steps.map((step) => this.costFor(line, message, step)), 0)
    }
  }

  /** @param country of `country:*` */
  private linesIn(scope: string, country?: string | null): readonly Line[] {
    const stored = this.tariff.budgetsOf(scope)
    const budgets = scope === callCap.scope ? withCallCap(stored, 'voice') : stored
    if (budgets.length === 0) return none
    return budgets
      .filter((budget) => includes(budget, this.about.of))
      .map((budget) => this.lineOf(country === undefined ? budget : inCountry(budget, country)))
  }

  private lineOf(budget: Budget): Line {
    const { scope, of, country, currency } = budget
    const isSame = ({ budget: other }: Line) =>
      other.scope === scope && other.of === of && other.country === country
    let line = this.lines.find(isSame)
    if (!line) {
      const prices = budget === callCap ? onePerCall : this.tariff.pricesIn(currency)
      line = { budget, prices, claimedMicros: 0, spentMicros: 0 }
      this.lines.push(line)
    }
    return line
  }

  private claimsOf(lines: readonly Line[]): Claim[] {
    return lines.map(({ budget, claimedMicros }) => budgetClaim(budget, claimedMicros, this.ports.now()))
  }

  /** Of the budget, which may be of another way. */
  private costFor(line: Line, message: PricedMessage, step: PricedStep): number {
    const { scope } = line.budget
    return scope.startsWith('way:') && scope !== `way:${wayOf(step)}` ? 0 : this.costOf(line, message, step)
  }

  private costOf(
    { prices }: Pick<Line, 'prices'>,
    { to, kind }: Pick<PricedMessage, 'to' | 'kind'>,
    { provider: { name }, segments }: PricedStep,
  ): number {
    let { latest } = this
    if (latest?.prices !== prices || latest.to !== to || latest.provider !== name) {
      latest = { prices, to, provider: name, micros: prices.perSegment(to, kind, name) }
      this.latest = latest
    }
    return latest.micros * segments.count
  }
}

/** @param grants of the claims of the lines, in their order */
function unspent({ lines, grants }: { readonly lines: readonly Line[]; readonly grants: readonly Grant[] }) {
  return grants.flatMap((grant, index): Grant[] => {
    const { claimedMicros = 0, spentMicros = 0 } = lines[index] ?? {}
    return claimedMicros > spentMicros ? [{ ...grant, units: claimedMicros - spentMicros }] : []
  })
}
