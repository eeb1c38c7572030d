import type { DestinationRule } from '../delivery/destination.ts'
import type { Alert } from '../ground/alert.ts'
import type { Actor, AuditEntry } from '../ground/audit.ts'
import { instant, type Listing } from '../ground/listing.ts'
import type { Role } from '../ground/role.ts'
import type { Clock, EpochMs } from '../ground/time.ts'
import type { Webhook } from '../ground/webhook-events.ts'
import type { StoredMode } from '../guard/mode.ts'
import type { GuardPrefix } from '../guard/store.ts'
import type { AppScope } from '../limits/scope.ts'
import type { Budget } from '../money/budgets.ts'
import type { Relay } from './relay.ts'
import type { ReviewNumber } from './review-number.ts'

/** What operators set for all requests. A running server sees a change at its next request. */
export interface PolicyRows {
  readonly scopes: readonly AppScope[]
  readonly rules: readonly DestinationRule[]
  /** Expired ones included. `rows` returns the operators' only. */
  readonly prefixes: readonly GuardPrefix[]
  /** Null: no server has stored GUARD yet. */
  readonly guardMode: StoredMode | null
  readonly budgets: readonly Budget[]
  readonly webhooks: readonly Webhook[]
  /** Expired ones included. */
  readonly reviewNumbers: readonly ReviewNumber[]
  /** Expired ones included. */
  readonly pauses: readonly ProviderPause[]
  readonly thresholds: IncidentThresholds
  readonly acknowledgements: readonly Acknowledgement[]
  readonly relays: readonly Relay[]
  /** Expired ones included. */
  readonly manageTokens: readonly ManageToken[]
}

/** Of the management API (design D57). */
export interface ManageToken {
  readonly name: string
  readonly sha256: string
  readonly role: Role
  readonly createdAt: EpochMs
  /** Exclusive. Null: it does not expire. */
  readonly expiresAt: EpochMs | null
}

export const manageTokenListing = {
  name: { title: 'Name', value: ({ name }) => name },
  role: { title: 'Role', value: ({ role }) => role },
  createdAt: { title: 'Created', value: ({ createdAt }) => instant(createdAt) },
  expiresAt: { title: 'Expires', value: ({ expiresAt }) => instant(expiresAt) },
} satisfies Listing<ManageToken>

/** Until then, otpost does not call the provider. */
export interface ProviderPause {
  readonly provider: string
  /** Exclusive. */
  readonly until: EpochMs
}

/** From when on something is an incident. */
export interface IncidentThresholds {
  /** Of the messages of a few minutes that fail. */
  readonly failedPercent: number
  /** Without calls or delivery reports. 0: silence is no incident. */
  readonly silentMinutes: number
}

export const defaultThresholds: IncidentThresholds = {
  failedPercent: 10,
  silentMinutes: 15,
}

/** An operator knows of the incident. It is in force for what began before it. */
export interface Acknowledgement {
  /** The name of the incident, such as `provider twilio`. */
  readonly about: string
  readonly at: EpochMs
  readonly by: string
}

export interface PolicyChange {
  readonly saveRules?: readonly DestinationRule[]
  readonly removeRules?: readonly Pick<DestinationRule, 'rule' | 'brandSlug'>[]
  readonly savePrefixes?: readonly GuardPrefix[]
  readonly removePrefixes?: readonly Pick<GuardPrefix, 'prefix' | 'by'>[]
  readonly saveGuardMode?: StoredMode
  readonly saveBudgets?: readonly Budget[]
  readonly removeBudgets?: readonly Pick<Budget, 'scope' | 'of'>[]
  readonly saveWebhooks?: readonly Webhook[]
  readonly removeWebhooks?: readonly Pick<Webhook, 'appId'>[]
  readonly saveReviewNumbers?: readonly ReviewNumber[]
  readonly removeReviewNumbers?: readonly Pick<ReviewNumber, 'subject' | 'brandSlug'>[]
  readonly savePauses?: readonly ProviderPause[]
  readonly removePauses?: readonly Pick<ProviderPause, 'provider'>[]
  readonly saveThresholds?: IncidentThresholds
  readonly saveAcknowledgements?: readonly Acknowledgement[]
  readonly removeAcknowledgements?: readonly Pick<Acknowledgement, 'about'>[]
  readonly saveRelays?: readonly Relay[]
  readonly saveManageTokens?: readonly ManageToken[]
  readonly removeManageTokens?: readonly Pick<ManageToken, 'name'>[]
  readonly removeRelays?: readonly Pick<Relay, 'name'>[]
  /** About the change. A running server delivers and logs it. */
  readonly alert?: Alert
  /** Null: nothing changes. */
  readonly entry: Pick<AuditEntry, 'action' | 'target' | 'details'> | null
}

export interface PolicyStore {
  rows(): Promise<PolicyRows>
  /** Atomic. `decide` must be synchronous and may run twice; if it throws, nothing is stored. */
  change<Change extends PolicyChange>(
    by: { readonly actor: Actor; readonly now: number },
    decide: (current: Omit<PolicyRows, 'scopes'>) => Change,
  ): Promise<Change>
}

export interface PolicyPorts {
  readonly policy: PolicyStore
  readonly now: Clock
  readonly actor: Actor
}
