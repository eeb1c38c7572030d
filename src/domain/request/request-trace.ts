import type { Channel } from '../ground/contact.ts'
import type { LadderRow } from '../ground/ladder-row.ts'
import type { EpochMs } from '../ground/time.ts'
import type { Flag, LimitStatus, Operation, RequestContext, RequestEnd } from './request-context.ts'

/** No API key, code, full recipient or text. */
export interface RequestTrace {
  readonly requestId: string
  readonly at: EpochMs
  readonly operation: Operation
  readonly app: string
  readonly brand: string | null
  readonly channel: Channel | null
  /** Masked. Null: no recipient, or several. */
  readonly recipient: string | null
  readonly recipients: number | null
  readonly recipientHash: string | null
  /** ISO 3166-1. Null: no phone number, several recipients, or a number of no country. */
  readonly country: string | null
  /** The caller's. */
  readonly reference: string | null
  readonly flags: readonly Flag[]
  /** Of the body, as `unknownFieldsOf` returns them. */
  readonly unknownFields: readonly string[]
  readonly limits: readonly LimitStatus[]
  /** Of a code with further ways. */
  readonly ladder?: Pick<LadderRow, 'ways' | 'causes' | 'ended'> | undefined
  /** Null: in progress, or the process ended first. */
  readonly end: RequestEnd | null
}

/** Asynchronous. Never throws: errors are logged. */
export interface EventLog {
  /** Saves the request before and after each attempt, since an attempt may take long. */
  note(context: RequestContext): void
  /** Resolves when all notes so far are stored or lost. */
  flush(): Promise<void>
}
