import type { Settings } from '../../config/settings.ts'
import type { Outcome, RejectionScope, SmsProvider, SmsRoute } from '../../domain/messages/providers.ts'
import type { Clock, Outbox } from '../../domain/ports.ts'

/** What a provider may use of the process around it. */
export interface ProviderTools {
  readonly now: Clock
  readonly outbox: Outbox
}

/** One SMS vendor: its name in SMS_PLAIN and SMS_TEMPLATE, and how it is made from its settings. */
export interface SmsProviderSpec {
  readonly name: string
  /** The routes it can carry messages on. */
  readonly routes: readonly SmsRoute[]
  /** Whether messages reach nobody, so that it is refused in production (design 7). */
  readonly developmentOnly?: true
  /** Reads and checks the vendor's settings for a route, at start; the returned function makes the provider. */
  configure(settings: Settings, route: SmsRoute): (tools: ProviderTools) => SmsProvider
}

/** What a vendor's code means, in the domain's words: an entry of a vendor's table. */
export type Meaning = RejectionScope | 'retryable' | 'unknown'

/** The outcome of a failure that means this; `reason` is the vendor's code. */
export function failure(meaning: Meaning, reason: string): Outcome {
  return meaning === 'retryable' || meaning === 'unknown'
    ? { kind: meaning, reason }
    : { kind: 'rejected', scope: meaning, reason }
}
