import type { EpochMs } from './time.ts'

/** The further ways of a code to a phone (design D54). */
export interface LadderRow {
  /** Of the code. */
  readonly requestId: string
  /** The keyed hash of the recipient. */
  readonly subject: string
  /** What a message needs, with the code: JSON, encrypted. Empty once the ladder has ended. */
  readonly sealed: string
  /** Not used yet, in order, such as `sms,voice`. */
  readonly ways: string
  /** Of the latest message. Null: it has none, or is being sent. */
  readonly reportKey: string | null
  /** Of all messages, separated by spaces. */
  readonly reportKeys: string
  /** When the latest message was accepted. Null: it is being sent. */
  readonly sentAt: EpochMs | null
  /** A line for each step: the number of its first attempt, and why it began, in words for operators. */
  readonly causes: string
  /** Of the code's messages. */
  readonly attempts: number
  /** When a process looks at it next; it has a lease until then while a message is sent. Null: it has ended. */
  readonly dueAt: EpochMs | null
  /** Why. */
  readonly ended: string | null
  /** Of the code. */
  readonly expiresAt: EpochMs
}
