import type { SmsMode } from '../../src/domain/delivery/way.ts'
import type { FailureKind } from '../../src/domain/ground/failures.ts'
import type { Outcome, PhoneRoute } from '../../src/domain/ground/providers.ts'
import type { LimitSettings } from '../../src/domain/limits/limits.ts'

// The record of one history, seen from outside the domain: requests and responses of clients, messages to
// providers and their outcomes, and the step of each port call. Nothing here depends on how a code or a limit
// is stored.

export const people = {
  /** Only Indian numbers get registered texts. */
  ann: { channel: 'SMS', to: '919812345678', spellings: ['+91 (98123) 45678', '919812345678'] },
  ben: { channel: 'SMS', to: '447911123456', spellings: ['447911123456', '+44 7911 123456'] },
  cat: { channel: 'EMAIL', to: 'cat@example.com', spellings: ['cat@example.com', 'Cat@Example.COM'] },
  dan: { channel: 'EMAIL', to: 'dan@example.com', spellings: ['dan@example.com'] },
  /** Has the same mailbox as cat. */
  eve: { channel: 'EMAIL', to: 'cat+eve@example.com', spellings: ['cat+eve@example.com'] },
} as const
export type Person = keyof typeof people

/** The mailbox whose codes share the minute and hour limits. */
export const mailboxes: Readonly<Record<Person, string>> = {
  ann: 'ann',
  ben: 'ben',
  cat: 'cat',
  dan: 'dan',
  eve: 'cat',
}

/** `acme` and `hooli` have a registered template, so that the modes differ. */
export const brands = { acme: true, globex: false, hooli: true } as const
export type BrandSlug = keyof typeof brands

/** The settings of one history, beside its events. */
export interface Profile {
  /** A separate file can be copied as a crash leaves it, and most of its faults are SQLite's own. */
  readonly storage: 'memory' | 'shared file' | 'own file' | 'postgres'
  /** The number of servers on one database; memory has one. */
  readonly servers: 1 | 2 | 4
  /**
   * Whether the scheduler decides everything. Otherwise calls of several servers run concurrently, in the
   * database's order.
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
  /** The probability that a store call fails. */
  readonly storeFaults: number
  /** The probability that a provider call fails. */
  readonly providerFaults: number
  /** Whether providers respond slowly. */
  readonly isSlow: boolean
  /** Whether the clock is also set forwards and back. */
  readonly clockIsSet: boolean
  readonly crashes: boolean
  /** The probability that a guess is wrong, as a weight. */
  readonly wrongGuesses: number
}

/** One store call that was executed, or may have been. */
export interface StoreCall {
  /** Such as `store.admit`. */
  readonly what: string
  /** Increases with each call of the history. */
  readonly order: number
  readonly step: number
  /** The last time the operation read from its clock before the call. */
  readonly reading: number
  /** The time when the store executed it. Expired records may have been deleted in between. */
  readonly timeMs: number
}

/** One provider call, with its outcome. */
export interface Handover {
  readonly step: number
  readonly messageId: string
  readonly route: PhoneRoute | 'mail'
  readonly provider: string
  readonly to: string
  readonly brandSlug: string | null
  readonly code: string
  readonly startedAtMs: number
  readonly timeoutMs: number
  /** Whether the message reached the recipient, independent of the caller's response. */
  arrived: boolean
  answer: { readonly elapsedMs: number; readonly outcome: Outcome | 'threw' } | undefined
}

export type Answer = { readonly step: number } & (
  | { readonly kind: 'ok' }
  | { readonly kind: 'refused'; readonly failure: FailureKind }
  /** Any other error: the caller gets a 500, and the request may have taken effect. */
  | { readonly kind: 'error'; readonly error: unknown }
)

/** One client request. */
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
  /** The code created for it. */
  code: string | undefined
  /** The number of executed calls when the message was first sent to a provider. */
  callsBefore: number
  /** The last time it read from its clock. */
  reading: number
  /** The store faults it had. */
  faults: number
  answer: Answer | undefined
  /** The step at which its server crashed. */
  lostAtStep: number | undefined
}

/** One history in progress. */
export interface History {
  readonly profile: Profile
  readonly operations: Operation[]
  /** The time of day from each step on, oldest first. */
  readonly clock: { readonly step: number; readonly timeMs: number }[]
  /** The first step at which the clock was set back; windows are not exact from then on. */
  firstSetBack: number
}

export const otpTtlMs = 300_000
export const providerTimeoutMs = 4000

export function name({ id, kind, brand, person, guess }: Operation): string {
  return `${kind} ${id} (${brand}, ${person}${guess === undefined ? '' : `, ${guess}`})`
}
