import type { AuditEntry } from '../ground/audit.ts'
import type { LadderRow } from '../ground/ladder-row.ts'
import type { NotifyJob, NotifyOrder } from '../ground/notify-job.ts'
import type { EpochMs } from '../ground/time.ts'
import type { NewEvent } from '../ground/webhook-events.ts'
import type { NewKey } from './idempotency-store.ts'

/** Rows that a step of `OtpStore` writes in its transaction, if the step succeeds. */
export type Effect =
  | { readonly kind: 'event'; readonly event: NewEvent }
  /** A request with an Idempotency-Key begins. Replaces an expired row. */
  | { readonly kind: 'key'; readonly key: NewKey }
  /** It ended with an answer that is kept. */
  | {
      readonly kind: 'answer'
      readonly hash: string
      readonly requestId: string
      readonly status: number
      /** JSON. */
      readonly answer: string
      readonly expiresAt: EpochMs
    }
  /** It ended with an answer that is not kept. */
  | { readonly kind: 'free-key'; readonly hash: string; readonly requestId: string }
  | { readonly kind: 'audit'; readonly entry: AuditEntry }
  | { readonly kind: 'ladder'; readonly row: LadderRow }
  /** Before a message by another way. */
  | ({ readonly kind: 'ladder-way' } & Pick<LadderRow, 'requestId' | 'ways' | 'attempts' | 'dueAt'>)
  | { readonly kind: 'ladder-end'; readonly requestId: string; readonly ended: string }
  | { readonly kind: 'queue'; readonly order: NotifyOrder; readonly jobs: readonly NotifyJob[] }
