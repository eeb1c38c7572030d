import type { Setting } from '../../config/setting.ts'
import type { Settings } from '../../config/settings.ts'
import type { Outcome, RejectionScope, SmsProvider, SmsRoute } from '../../domain/messages/providers.ts'
import type { Outbox } from '../../domain/ports.ts'
import type { Clock } from '../../domain/time.ts'

export interface ProviderTools {
  readonly now: Clock
  readonly outbox: Outbox
}

/** An SMS provider by its name in SMS_PLAIN and SMS_TEMPLATE. */
export interface SmsProviderSpec {
  readonly name: string
  readonly routes: readonly SmsRoute[]
  /** Declares every setting that `configure` reads. */
  readonly settings: Readonly<Record<string, Setting>>
  /** Its messages reach nobody, so it is refused in production (design 7). */
  readonly developmentOnly?: true
  /** Reads and checks the provider's settings for a route at start; the returned function creates the provider. */
  configure(settings: Settings, route: SmsRoute): (tools: ProviderTools) => SmsProvider
}

/** What an error code of a provider means in the domain. */
export type Meaning = RejectionScope | 'retryable' | 'unknown'

/** A table from words to what they mean; each text has the words of one meaning, separated by white space. */
export function wordTable<M extends string>(
  words: Readonly<Partial<Record<M, string>>>,
): ReadonlyMap<string, M> {
  const table = new Map<string, M>()
  for (const meaning in words) {
    for (const word of words[meaning]?.match(/\S+/g) ?? []) table.set(word, meaning)
  }
  return table
}

/** @param reason the provider's code */
export function failure(meaning: Meaning, reason: string): Outcome {
  return meaning === 'retryable' || meaning === 'unknown'
    ? { kind: meaning, reason }
    : { kind: 'rejected', scope: meaning, reason }
}
