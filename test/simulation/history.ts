import type { FailureKind } from '../../src/domain/failures.ts'
import type { SmsMode } from '../../src/domain/messages/delivery.ts'
import type { Outcome, SmsRoute } from '../../src/domain/messages/providers.ts'
import type { LimitSettings } from '../../src/domain/otp/limits.ts'

// What was seen of one history from outside the domain: what clients asked for and were told, what providers were handed
// and answered, and at which step each call of a port was carried out. Nothing here knows how a code or a limit is kept.

export const people = {
  ann: { channel: 'SMS', identity: '12025550143', spellings: ['+1 (202) 555-0143', '12025550143'] },
  ben: { channel: 'SMS', identity: '447911123456', spellings: ['447911123456', '+44 7911 123456'] },
  cat: { channel: 'EMAIL', identity: 'cat@example.com', spellings: ['cat@example.com', 'Cat@Example.COM'] },
  dan: { channel: 'EMAIL', identity: 'dan@example.com', spellings: ['dan@example.com'] },
  /** Of the mailbox of cat. */
  eve: { channel: 'EMAIL', identity: 'cat+eve@example.com', spellings: ['cat+eve@example.com'] },
} as const
export type Person = keyof typeof people

/** Whose codes are counted together by the minute and the hour. */
export const mailboxes: Readonly<Record<Person, string>> = {
  ann: 'ann',
  ben: 'ben',
  cat: 'cat',
  dan: 'dan',
  eve: 'cat',
}

/** `acme` and `hooli` are on a registered template, so that the modes differ. */
export const brands = { acme: true, globex: false, hooli: true } as const
export type BrandSlug = keyof typeof brands

/** How one history differs from another, beside its events. */
export interface Profile {
  /** A file of its own can be copied as a crash leaves it, and its faults are mostly those of SQLite itself. */
  readonly storage: 'memory' | 'shared file' | 'own file' | 'postgres'
  /** Servers at work on the one database; memory has one. */
  readonly servers: 1 | 2 | 4
  /**
   * Whether the scheduler decides everything. Otherwise calls of several servers go on at once, and which is first is up to
   * the database.
   */
  readonly isExact: boolean
  readonly steps: number
  readonly clients: number
  readonly apps: readonly string[]
  readonly brands: readonly BrandSlug[]
  readonly people: readonly Person[]
  readonly limits: LimitSettings
  readonly smsMode: SmsMode
  readonly plainProviders: 1 | 2
  /** How likely a call of the store is to meet a fault. */
  readonly storeFaults: number
  /** How likely a call of a provider is to fail. */
  readonly providerFaults: number
  /** Whether providers take long to answer. */
  readonly isSlow: boolean
  /** Whether the clock is set, forwards and back, beside going on. */
  readonly clockIsSet: boolean
  readonly crashes: boolean
  /** How likely a guess is to be wrong, as a weight. */
  readonly wrongGuesses: number
}

/** One call of the store that was carried out, or that may have been. */
export interface StoreCall {
  /** Such as `store.admit`. */
  readonly what: string
  /** Increases with each call of the history. */
  readonly order: number
  readonly step: number
  /** The time that the operation had last read from its clock when it made the call. */
  readonly reading: number
  /** The time when the store carried it out, a little later: in between, what is over may have been removed. */
  readonly timeMs: number
}

/** One call of a provider, with what the provider did. */
export interface Handover {
  readonly step: number
  readonly messageId: string
  readonly route: SmsRoute | 'mail'
  readonly provider: string
  readonly to: string
  readonly brandSlug: string | null
  readonly code: string
  readonly startedAtMs: number
  readonly timeoutMs: number
  /** Whether the message reached the recipient, whatever the caller was told. */
  arrived: boolean
  answer: { readonly elapsedMs: number; readonly outcome: Outcome | 'threw' } | undefined
}

export type Answer = { readonly step: number } & (
  | { readonly kind: 'ok' }
  | { readonly kind: 'refused'; readonly failure: FailureKind }
  /** Anything that is not a Failure: the caller gets a 500, and what was asked for may have happened. */
  | { readonly kind: 'error'; readonly error: unknown }
)

/** One request of a client. */
export interface Operation {
  readonly id: number
  readonly kind: 'send' | 'verify'
  readonly app: string
  readonly brand: BrandSlug
  readonly person: Person
  /** The submitted code of a verification. */
  readonly guess: string | undefined
  readonly startedAtStep: number
  readonly calls: StoreCall[]
  readonly handovers: Handover[]
  /** The code that was made for it. */
  code: string | undefined
  /** How many calls had been carried out when the message was first handed to a provider. */
  callsBefore: number
  /** The last time that it read from its clock. */
  reading: number
  /** Faults of the store that it met. */
  faults: number
  answer: Answer | undefined
  /** The step at which its server crashed. */
  lostAtStep: number | undefined
}

/** One history as it unfolds. */
export interface History {
  readonly profile: Profile
  readonly operations: Operation[]
  /** The time of day from a step on, oldest first. */
  readonly clock: { readonly step: number; readonly timeMs: number }[]
  /** The first step at which the clock was set back; windows say nothing exact from then on. */
  firstSetBack: number
}

export const otpTtlMs = 300_000
export const providerTimeoutMs = 4000

export function name({ id, kind, brand, person, guess }: Operation): string {
  return `${kind} ${id} (${brand}, ${person}${guess === undefined ? '' : `, ${guess}`})`
}
