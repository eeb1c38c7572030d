import { type Attempt, mayBeSent } from './request-context.ts'
import type { NewEvent, StoredEvent } from './webhook-events.ts'

const longestReason = 200

/**
 * `message.failed` of a message that the caller's answer reports as failed (design D45).
 * @param attempts at this recipient
 */
export function messageFailed(
  { id, at, requestId, position }: Pick<NewEvent, 'id' | 'at' | 'requestId' | 'position'>,
  attempts: readonly Attempt[],
): NewEvent {
  return {
    id,
    at,
    type: 'message.failed',
    requestId,
    reportKey: null,
    position,
    status: attempts.some(mayBeSent) ? 'unknown' : 'failed',
    reason: (attempts.at(-1)?.reason ?? 'no provider').slice(0, longestReason),
  }
}

/** The body of an event, as receivers get it (Standard Webhooks). Never a code. */
export function eventBody(event: StoredEvent): string {
  const { type, at, requestId, reference, brand, channel, recipient, position, status, reason } = event
  const data = {
    requestId,
    reference,
    brandId: brand,
    channel,
    to: recipient,
    // Counts from 0 in `to`.
    index: (position ?? 1) - 1,
    status,
    reason,
  }
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
}
