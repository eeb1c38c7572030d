import { setTimeout as pause } from 'node:timers/promises'
import type { Outbox, OutboxEntry, OutboxMessage } from '../../domain/ports.ts'

/** How often a waiting reader looks: messages may come from another process, so it can't just be told. */
const pollMs = 100

/** `Outbox.wait`, for a store that can list. */
export function waiting(list: Outbox['list']): Outbox['wait'] {
  return async (query, waitMs, signal) => {
    const until = performance.now() + waitMs
    for (;;) {
      const entries = await list(query)
      const left = until - performance.now()
      if (entries.length > 0 || left <= 0 || signal.aborted) return entries
      await pause(Math.min(pollMs, left), undefined, { signal }).catch(() => undefined)
    }
  }
}

/** A message as a store has it. */
export interface StoredMessage extends Omit<OutboxMessage, 'to' | 'brandId'> {
  readonly id: number
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly recipient: string
  readonly identity: string
  readonly brandSlug: string | null
}

/** A message as it is read. */
export function outboxEntry({
  recipient,
  identity: _,
  brandSlug,
  createdAt,
  ...row
}: StoredMessage): OutboxEntry {
  return { ...row, to: recipient, brandId: brandSlug, createdAt: new Date(createdAt).toISOString() }
}
