import type { Channel } from './contact.ts'
import type { EpochMs } from './time.ts'

/** What the jobs of an asynchronous notification send (design D46). */
export interface NotifyOrder {
  readonly requestId: string
  readonly appId: string
  /** Null: an e-mail without a brand. */
  readonly brandSlug: string | null
  readonly channel: Channel
  readonly reference: string | null
  /** Encrypted: text, template and variables of an SMS, or subject, text and HTML of a mail, as JSON. */
  readonly content: string
  readonly createdAt: EpochMs
  /** No try begins later. */
  readonly expiresAt: EpochMs
}

export type JobState = 'queued' | 'sending' | 'accepted' | 'failed' | 'unknown' | 'cancelled'

/** One recipient of an asynchronous notification. */
export interface NotifyJob {
  readonly requestId: string
  readonly appId: string
  /** Of the recipient in `to`, from 1. */
  readonly position: number
  readonly state: JobState
  /** Encrypted. Null once the job was accepted or cancelled, and 24 hours after it failed. */
  readonly recipient: string | null
  readonly recipientHash: string
  readonly masked: string
  readonly tries: number
  /** Attempts at providers so far. */
  readonly attempts: number
  /**
   * `queued`: of the next try. `sending`: when the lease of its owner ends. Any other state: when the cleanup deletes
   * recipient and content; `erasedAt` once it did.
   */
  readonly dueAt: EpochMs
  /** The process that sends it. */
  readonly owner: string | null
  readonly updatedAt: EpochMs
  readonly reason: string | null
}
