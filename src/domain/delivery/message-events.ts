import type { Secrets } from '../ground/ports.ts'
import type { Clock } from '../ground/time.ts'
import type { NewEvent, StoredEvent } from '../ground/webhook-events.ts'
import type { Effect } from '../limits/effects.ts'
import { type Delivered, type Gate, unchanged } from '../limits/limits.ts'
import { mayBeSent, type RequestContext } from '../request/request-context.ts'
import type { EventLog } from '../request/request-trace.ts'
import { recipientIndex } from './message-status.ts'

/** In characters: a reason may be the text of a provider. */
export const longestReason = 200

type FailedMessage = Pick<NewEvent, 'id' | 'at' | 'requestId' | 'position'>

export interface EventPorts {
  readonly eventLog: EventLog
  readonly secrets: Pick<Secrets, 'newEventId'>
  readonly now: Clock
}

/** `message.failed` (design D45). */
export function messageFailed(
  { id, at, requestId, position }: FailedMessage,
  status: 'failed' | 'unknown',
  reason: string | null,
): NewEvent {
  const about = { position, status, reason: reason?.slice(0, longestReason) ?? null }
  return { id, at, type: 'message.failed', requestId, reportKey: null, ...about }
}

/** Saves the request before its delivery. An app with a webhook gets `message.failed` of each message that the answer reports as failed. */
export function events(ports: EventPorts, context: RequestContext, hasWebhook: boolean): Gate {
  const { eventLog } = ports
  return {
    admitted: () => {
      eventLog.note(context)
      // Events get the app and the recipients from the event log.
      return hasWebhook ? eventLog.flush() : undefined
    },
    settle: ({ failed }) => {
      if (!hasWebhook || failed.length === 0) return unchanged
      // The masked recipients are in the attempts.
      return eventLog.flush().then(() => ({ effects: failuresOf(ports, context, failed) }))
    },
  }
}

function failuresOf(
  { secrets, now }: EventPorts,
  { requestId, attempts }: RequestContext,
  positions: Delivered['failed'],
): readonly Effect[] {
  const at = now()
  return positions.map((position) => {
    const message = { id: secrets.newEventId(at), at, requestId, position }
    const own = attempts.filter((attempt) => attempt.position === position)
    const status = own.some(mayBeSent) ? 'unknown' : 'failed'
    return { kind: 'event', event: messageFailed(message, status, own.at(-1)?.reason ?? 'no provider') }
  })
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
