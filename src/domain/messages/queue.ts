import type { Channel } from '../contact.ts'
import type { EpochMs } from '../time.ts'

/** What the jobs of an asynchronous notification send (design D46). */
export interface NotifyOrder {
  readonly requestId: string
  readonly appId: string
  /** Null: an e-mail without a brand. */
  readonly brandSlug: string | null
  readonly channel: Channel
  readonly reference: string | null
  /** Text, template and variables of an SMS, or subject, text and HTML of a mail, as JSON. */
  readonly content: string
  readonly createdAt: EpochMs
  /** No try begins later. */
  readonly expiresAt: EpochMs
}

export const jobStates = ['queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled'] as const
export type JobState = (typeof jobStates)[number]

/** One recipient of an asynchronous notification. */
export interface NotifyJob {
  readonly requestId: string
  /** Of the recipient in `to`, from 1. */
  readonly position: number
  readonly state: JobState
  /** Readable, to send to. Null once it is not needed. */
  readonly recipient: string | null
  readonly recipientHash: string
  readonly masked: string
  readonly tries: number
  /** Attempts at providers so far. */
  readonly attempts: number
  readonly dueAt: EpochMs
  /** The process that sends it. */
  readonly owner: string | null
  readonly updatedAt: EpochMs
  readonly reason: string | null
}
