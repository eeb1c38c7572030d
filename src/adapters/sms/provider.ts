import type { Setting } from '../../config/setting.ts'
import type { Settings } from '../../config/settings.ts'
import type { Meaning, ProviderCodes } from '../../domain/delivery/provider-codes.ts'
import type { Outbox } from '../../domain/ground/ports.ts'
import type { DeliveryReport, Outcome, PhoneRoute, SmsProvider } from '../../domain/ground/providers.ts'
import type { Clock } from '../../domain/ground/time.ts'

export interface ProviderTools {
  readonly now: Clock
  readonly outbox: Outbox
  /** Of a provider that `reportsItself`. */
  readonly reportLater: (provider: string, report: DeliveryReport, ms: number) => void
}

export interface SmsProviderSpec {
  readonly name: string
  readonly routes: readonly PhoneRoute[]
  readonly settings: Readonly<Record<string, Setting>>
  /** Delivers no messages, so it is rejected in production (design 7). */
  readonly developmentOnly?: true
  readonly codes?: ProviderCodes
  /** Reads the provider's settings for a route at start; the returned function creates the provider. */
  configure(settings: Settings, route: PhoneRoute): (tools: ProviderTools) => SmsProvider
}

/** Of a setting. */
export const apiUrl = {
  format: 'https URL',
  meaning: 'The URL of the API.',
} as const

/** Each text has the words of one meaning, separated by white space. */
export function wordTable<M extends string>(
  words: Readonly<Partial<Record<M, string>>>,
): ReadonlyMap<string, M> {
  const table = new Map<string, M>()
  for (const meaning in words) {
    for (const word of words[meaning]?.match(/\S+/g) ?? []) table.set(word, meaning)
  }
  return table
}

export function failure(meaning: Meaning, reason: string): Outcome {
  return meaning === 'retryable' || meaning === 'unknown'
    ? { kind: meaning, reason }
    : { kind: 'rejected', scope: meaning, reason }
}
