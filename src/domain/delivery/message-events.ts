import type { NewEvent, StoredEvent } from '../ground/webhook-events.ts'
import { type Attempt, mayBeSent } from '../request/request-context.ts'
import { recipientIndex } from './message-status.ts'

/** In characters: a reason may be the text of a provider. */
export const longestReason = 200

type FailedMessage = Pick<NewEvent, 'id' | 'at' | 'requestId' | 'position'>

/** `message.failed` (design D45). */
export function messageFailed(
  { id, at, requestId, position }: FailedMessage,
  status: 'failed' | 'unknown',
  reason: string | null,
): NewEvent {
  const about = { position, status, reason: reason?.slice(0, longestReason) ?? null }
  return { id, at, type: 'message.failed', requestId, reportKey: null, ...about }
}

/**
 * Of a message that the caller's answer reports as failed.
 * @param attempts at this recipient
 */
export function attemptsFailed(message: FailedMessage, attempts: readonly Attempt[]): NewEvent {
  const status = attempts.some(mayBeSent) ? 'unknown' : 'failed'
  return messageFailed(message, status, attempts.at(-1)?.reason ?? 'no provider')
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
    index: recipientIndex(position),
    status,
    reason,
  }
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
}
