import type { Delivery } from '../delivery/delivery-reports.ts'
import type { Actor } from '../ground/audit.ts'
import type { EpochMs } from '../ground/time.ts'
import type { NewEvent, StoredEvent } from '../ground/webhook-events.ts'
import type { RequestTrace } from '../request/request-trace.ts'

/** What the event log has of the message of an event. */
export interface EventMessage extends Pick<RequestTrace, 'requestId' | 'app' | 'brand' | 'reference'> {
  readonly channel: NonNullable<RequestTrace['channel']>
  readonly position: number | null
  /** Masked. */
  readonly recipient: string
  /** The attempts at this recipient, with their delivery reports. */
  readonly attempts: readonly Pick<Delivery, 'outcome' | 'report' | 'reportKey'>[]
  /** A code may be sent again, by a further way. */
  readonly isClimbing: boolean
}

export interface ResolvedEvent
  extends Pick<EventMessage, 'requestId' | 'app' | 'brand' | 'channel' | 'reference'> {
  readonly id: string
  readonly type: NewEvent['type']
  readonly position: number | null
  readonly recipient: string
  readonly dueAt: EpochMs
}

export interface Resolution {
  readonly resolved: readonly ResolvedEvent[]
  /** IDs. */
  readonly dropped: readonly string[]
  /** Their messages are not in the event log yet. */
  readonly later: readonly Pick<StoredEvent, 'id' | 'dueAt'>[]
}

export type TryResult = Pick<StoredEvent, 'httpStatus' | 'error' | 'answer'>

/** The table `events` (design D45). Any process may take any step; one of them resolves an event or takes a try. */
export interface EventStore {
  /** State `new` and due, oldest first. */
  unresolved(now: EpochMs, limit: number): Promise<readonly NewEvent[]>
  /** By the ID of the event. Without those that the event log does not have. */
  messagesOf(events: readonly NewEvent[], now: EpochMs): Promise<ReadonlyMap<string, EventMessage>>
  /** One transaction. Deletes an event whose message already has one of its type. */
  resolve(resolution: Resolution): Promise<void>
  /**
   * Due events, oldest first, with their tries counted: a lease that ends after `leaseMs`. Without an event whose message has an
   * earlier event that is not delivered or given up, or that is of the same type.
   * @param turns how many to take at most, by app
   * @param most how many to take at most, in all
   */
  take(
    turns: ReadonlyMap<string, number>,
    most: number,
    now: EpochMs,
    leaseMs: number,
  ): Promise<readonly StoredEvent[]>
  /** Does nothing if another process took the event after its lease. */
  retryAt(event: StoredEvent, dueAt: EpochMs, result: TryResult): Promise<void>
  end(event: StoredEvent, state: 'delivered' | 'failed', endedAt: EpochMs, result: TryResult): Promise<void>
  /** Makes events due that wait longer than they should, since the clock was set back. */
  recover(now: EpochMs): Promise<void>
  /** The numbers of events that wait, by app. */
  waiting(): Promise<ReadonlyMap<string, number>>
}

export interface FailingEvents {
  readonly events: number
  /** When the oldest of them happened. */
  readonly since: EpochMs
  /** Of the latest try. */
  readonly error: string
  readonly triedAt: EpochMs
  readonly answer: string | null
}

/** For operators. */
export interface EventReader {
  /** By app, the events that wait and whose latest try failed. */
  failing(): Promise<ReadonlyMap<string, FailingEvents>>
  /** Events of an app, newest first. */
  latest(appId: string, limit: number): Promise<readonly StoredEvent[]>
  /**
   * Makes events of an app due now, with all their tries, and adds an audit entry: one event, or all whose latest try failed, also those that
   * were given up. Resolves to their number.
   */
  sendAgain(
    appId: string,
    which: { readonly id: string } | 'failed',
    by: { readonly actor: Actor; readonly now: EpochMs },
  ): Promise<number>
  /** Stores an event that waits, and adds an audit entry. */
  add(
    event: StoredEvent & { readonly appId: string },
    by: { readonly actor: Actor; readonly now: EpochMs },
  ): Promise<void>
}
