import type { Delivery } from '../delivery/delivery-reports.ts'
import {
  type MessageAttempt,
  messageStatus,
  type RequestProgress,
  recipientIndex,
} from '../delivery/message-status.ts'
import type { Body } from '../ground/body.ts'
import { Failure, invalidField } from '../ground/failures.ts'
import type { NotifyJob } from '../ground/notify-job.ts'
import { clockToleranceMs } from '../ground/ports.ts'
import { authenticate, type CredentialPorts } from '../limits/credentials.ts'
import { claim } from '../limits/gates.ts'
import { statusLimit } from '../limits/limits.ts'
import { isRequestId, type RequestContext } from '../request/request-context.ts'
import type { RequestTrace } from '../request/request-trace.ts'
import { longestNotifyMs } from './notify.ts'

/** What is stored of the messages of a request. */
export interface RequestMessages {
  readonly request: Pick<
    RequestTrace,
    | 'requestId'
    | 'at'
    | 'operation'
    | 'app'
    | 'brand'
    | 'channel'
    | 'recipient'
    | 'recipients'
    | 'reference'
    | 'flags'
    | 'end'
  >
  /** In the order of the attempts. */
  readonly deliveries: readonly Delivery[]
  readonly jobs: readonly RecipientJob[]
  /** A code may be sent again, by a further way. */
  readonly isClimbing: boolean
}

export type RecipientJob = Pick<NotifyJob, 'position' | 'masked' | 'state' | 'updatedAt'>

/** With all that this process has noted so far. Undefined: no such request. */
export type ReadMessages = (requestId: string) => Promise<RequestMessages | undefined>

export interface MessageQueryPorts extends CredentialPorts {
  readonly messages: ReadMessages
  /** A request that this process has not answered yet. */
  readonly runningRequest: (requestId: string) => Pick<RequestContext, 'addressees'> | undefined
  readonly pause: (ms: number) => Promise<void>
  readonly providerTimeoutMs: number
}

/**
 * What became of the messages of a send, resend or notify (design D44). Times are ISO 8601, `to` is masked.
 * `index` counts from 0 in `to` of the request.
 */
export async function queryMessages(ports: MessageQueryPorts, context: RequestContext, body: Body) {
  const appId = await authenticate(ports, context, body)
  await claim(ports, context, [statusLimit(appId)])
  const found = await find(ports, readRequestId(body))
  if (found?.request.app !== appId) throw new Failure('message_not_found')
  const { request } = found
  const running = ports.runningRequest(request.requestId)
  const progress = progressOf(found, ports, running !== undefined)
  const recipients = recipientsOf(found, running?.addressees ?? []).map(({ index, to, attempts, job }) => {
    const { isClimbing } = found
    const { status, updatedAt } = messageStatus({ attempts, job, request: progress, isClimbing })
    return { index, to, status, updatedAt: new Date(updatedAt).toISOString() }
  })
  if (!hasMessages(found, recipients.length)) throw new Failure('message_not_found')
  const { requestId, operation, channel, brand, at, reference } = request
  const createdAt = new Date(at).toISOString()
  return { request: { requestId, operation, channel, brandId: brand, createdAt, reference }, recipients }
}

/** How long another node may take to write what it has answered. */
const settlingMs = 150

/** A request that has no answer yet, or is unknown, is read again: another node may be writing it. */
async function find(
  { messages, runningRequest, pause }: MessageQueryPorts,
  requestId: string,
): Promise<RequestMessages | undefined> {
  const found = await messages(requestId)
  if (found?.request.end || runningRequest(requestId)) return found
  await pause(settlingMs)
  return messages(requestId)
}

function readRequestId({ messageRequestId }: Body): string {
  if (typeof messageRequestId !== 'string' || messageRequestId === '')
    throw invalidField('messageRequestId', 'must be the `requestId` of a send, resend or notify.')
  const requestId = messageRequestId.toLowerCase()
  if (!isRequestId(requestId)) throw new Failure('message_not_found')
  return requestId
}

function progressOf(
  { request: { at, end, recipients } }: RequestMessages,
  { providerTimeoutMs, now }: MessageQueryPorts,
  isRunning: boolean,
): RequestProgress {
  if (!end) {
    const longestMs = longestNotifyMs(providerTimeoutMs, recipients ?? 1) + clockToleranceMs
    return { state: isRunning || now() <= at + longestMs ? 'running' : 'lost', at }
  }
  const answeredAt = at + end.durationMs
  // The jobs of an asynchronous notification are deleted some time after they ended.
  if (end.status === 202) return { state: 'lost', at: answeredAt }
  return { state: end.status < 300 ? 'succeeded' : 'failed', at: answeredAt }
}

/** A rejected request has no messages, and neither has a verify. Those of a replay are of the first request. */
function hasMessages(
  { request: { operation, flags, end, recipients }, deliveries, jobs }: RequestMessages,
  known: number,
): boolean {
  if (operation === 'verify' || operation === 'relay' || flags.includes('replayed')) return false
  if (deliveries.length > 0 || jobs.length > 0) return true
  if (!end) return known > 0 || (recipients ?? 0) > 0
  return known > 0 && (end.status < 300 || end.error === 'sms_failed' || end.error === 'notification_failed')
}

interface KnownRecipient {
  readonly index: number
  readonly to: string
  readonly job: RecipientJob | null
  readonly attempts: MessageAttempt[]
}

/** Every recipient, in the order of `to`. */
function recipientsOf(
  { request, deliveries, jobs }: RequestMessages,
  addressees: NonNullable<RequestContext['addressees']>,
): readonly KnownRecipient[] {
  const known = new Map<number, KnownRecipient>()
  const add = (position: number | null, to: string, job: RecipientJob | null = null): KnownRecipient => {
    const index = recipientIndex(position)
    const recipient = known.get(index) ?? { index, to, job, attempts: [] }
    known.set(index, recipient)
    return recipient
  }
  for (const job of jobs) add(job.position, job.masked, job)
  for (const { position, masked } of addressees) add(position, masked)
  for (const delivery of deliveries) add(delivery.position, delivery.recipient).attempts.push(delivery)
  if (known.size === 0 && request.recipient !== null) add(null, request.recipient)
  return [...known.values()].sort((a, b) => a.index - b.index)
}
