import { countryRules, DestinationRules } from '../delivery/destination.ts'
import type { WayPolicy } from '../delivery/way.ts'
import type { EpochMs } from '../ground/time.ts'
import type { Webhook } from '../ground/webhook-events.ts'
import type { StoredMode } from '../guard/mode.ts'
import type { GuardPrefix } from '../guard/store.ts'
import { type AppScope, unscoped } from '../limits/scope.ts'
import type { Budget } from '../money/budgets.ts'
import type { Tariff } from '../money/charge.ts'
import type { PriceList } from '../money/prices.ts'
import { relativePrices } from '../money/relative-prices.ts'
import type { IncidentThresholds, ManageToken, PolicyRows } from './policy-store.ts'
import type { Relay } from './relay.ts'
import { activeReviewNumbers, type ReviewNumber } from './review-number.ts'

/** Of the present revision. A call at each request sees every change. */
export type ReadPolicy = () => Policy | Promise<Policy>

const none: readonly Budget[] = []

/** What operators have set, compiled for requests. Immutable. */
export class Policy implements Tariff, WayPolicy {
  readonly destinations: DestinationRules
  readonly prefixes: readonly GuardPrefix[]
  readonly guardMode: StoredMode | null
  readonly thresholds: IncidentThresholds
  readonly budgets: readonly Budget[]
  /** Design D45; also those that are switched off. */
  readonly webhooks: ReadonlyMap<string, Webhook>
  /** Design D57; by hash. */
  readonly manageTokens: ReadonlyMap<string, ManageToken>
  /** Design D53; by name. */
  readonly relays: ReadonlyMap<string, Relay>
  /** Design D48; by `reviewKey`, expired ones included. */
  private readonly reviewNumbers: ReadonlyMap<string, ReviewNumber>
  private readonly budgetsByScope: ReadonlyMap<string, readonly Budget[]>
  private readonly scopes: ReadonlyMap<string, AppScope>
  /** By provider, until when. */
  private readonly pauses: ReadonlyMap<string, EpochMs>

  /** @param smsCountries SMS_COUNTRIES; stored rules take precedence */
  constructor(
    rows: PolicyRows,
    readonly prices: PriceList,
    smsCountries: readonly string[],
  ) {
    const { scopes, rules, prefixes, guardMode, thresholds, budgets, webhooks, reviewNumbers, pauses } = rows
    this.destinations = new DestinationRules([...countryRules(smsCountries), ...rules])
    this.prefixes = prefixes
    this.guardMode = guardMode
    this.thresholds = thresholds
    this.budgets = budgets
    this.budgetsByScope = Map.groupBy(budgets, ({ scope }) => scope)
    this.webhooks = new Map(webhooks.map((webhook) => [webhook.appId, webhook]))
    this.manageTokens = new Map(rows.manageTokens.map((token) => [token.sha256, token]))
    this.relays = new Map(rows.relays.map((relay) => [relay.name, relay]))
    this.reviewNumbers = new Map(reviewNumbers.map((each) => [reviewKey(each.subject, each.brandSlug), each]))
    this.pauses = new Map(pauses.map(({ provider, until }) => [provider, until]))
    this.scopes = new Map(scopes.map((scope) => [scope.appId, scope]))
  }

  readonly budgetsOf = (scope: string): readonly Budget[] => this.budgetsByScope.get(scope) ?? none

  /** @param subjects the hashed identifiers of a phone number, under each secret key */
  reviewNumberOf(subjects: readonly string[], brandSlug: string, now: number): ReviewNumber | undefined {
    if (this.reviewNumbers.size === 0) return undefined
    for (const subject of subjects) {
      const number = this.reviewNumbers.get(reviewKey(subject, brandSlug))
      if (number && number.expiresAt > now) return number
    }
    return undefined
  }

  activeReviewNumbers(now: number): readonly ReviewNumber[] {
    return activeReviewNumbers([...this.reviewNumbers.values()], now)
  }

  isPaused(provider: string, now: EpochMs): boolean {
    return (this.pauses.get(provider) ?? 0) > now
  }

  scopeOf(appId: string): AppScope {
    return this.scopes.get(appId) ?? unscoped(appId)
  }

  readonly pricesIn = (currency: string): PriceList =>
    currency === this.prices.currency ? this.prices : relativePrices
}

function reviewKey(subject: string, brandSlug: string): string {
  return `${subject} ${brandSlug}`
}
