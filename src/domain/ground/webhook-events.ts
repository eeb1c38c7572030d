import type { Channel } from './contact.ts'
import type { EpochMs } from './time.ts'

/** What an app can be notified of (design D45). */
export const eventTypes = ['message.delivered', 'message.failed', 'otp.verified', 'otp.locked'] as const
export type EventType = (typeof eventTypes)[number]

/** A secret that a new one replaced. It signs too for 24 hours (design D45). */
export interface PreviousSecret {
  readonly secret: string
  readonly signsUntil: EpochMs
}

/** Where events of an app go (design D45). */
export interface Webhook {
  readonly appId: string
  readonly url: string
  /** `whsec_…`, which signs. */
  readonly secret: string
  /** Newest first. */
  readonly previousSecrets: readonly PreviousSecret[]
  /** Empty: all. */
  readonly eventTypes: readonly EventType[]
  readonly createdAt: EpochMs
  /** Set: switched off, since an event failed at its last try or the receiver answered 410. */
  readonly disabledAt: EpochMs | null
}

/** An event as it is stored with the change. Its app and recipient are read from the event log later. */
export interface NewEvent {
  /** Begins with its time. */
  readonly id: string
  readonly at: EpochMs
  readonly type: EventType
  /** Of the send or notify. Null: known by `reportKey`. */
  readonly requestId: string | null
  readonly reportKey: string | null
  /** Of the recipient in `to`, from 1. Null: the only one. */
  readonly position: number | null
  readonly status: 'delivered' | 'failed' | 'unknown' | null
  readonly reason: string | null
}

/** As it is stored once its message is known. */
export interface StoredEvent extends NewEvent {
  readonly state: 'new' | 'waiting' | 'delivered' | 'failed'
  /** Null in state `new`, with all below. */
  readonly appId: string | null
  readonly brand: string | null
  readonly channel: Channel | null
  /** Masked. */
  readonly recipient: string | null
  /** The caller's. */
  readonly reference: string | null
  /** With the one in progress. */
  readonly tries: number
  /** Of the next try; while a try is in progress, when its lease ends. */
  readonly dueAt: EpochMs
  /** When the latest try began. Null: none. */
  readonly triedAt: EpochMs | null
  /** Of the latest try. Null: none, or no answer. */
  readonly httpStatus: number | null
  /** Why the latest try failed. */
  readonly error: string | null
  /** The body of the answer to it: short, and without secrets. Null: there was none. */
  readonly answer: string | null
  /** When it was delivered or given up. */
  readonly endedAt: EpochMs | null
}

/** `dueAt` of the events of a webhook that is switched off. */
export const whileOff: EpochMs = Number.MAX_SAFE_INTEGER

/** `dueAt` of an event that begins to wait. */
export function firstDueAt({ disabledAt }: Pick<Webhook, 'disabledAt'>, now: EpochMs): EpochMs {
  return disabledAt === null ? now : whileOff
}
