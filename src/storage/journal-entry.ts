import type { Attempt, Standing } from '../domain/call.ts'
import { hashOf, type JournalReader, type Operation, type Story } from '../domain/journal.ts'
import type { ReceiptBook } from '../domain/receipts.ts'
import type { TallyCount } from './tallies.ts'

// How every store keeps the journal: what a request left behind as plain data, by position.

/** What the journal keeps of a request, as plain data that is written as it is: by position, since there are many. */
export type JournalEntry = readonly [
  requestId: string,
  story: StoredStory,
  attempts: readonly (readonly (string | number | null)[])[],
]

/** The journal as a database keeps it. */
export interface JournalBook extends JournalReader, ReceiptBook {
  /**
   * Keeps these requests, or replaces what was kept of them, adds their attempts, and counts what happened; one atomic
   * step. A right code is counted here, with the message that it came by.
   */
  keepEntries(entries: readonly JournalEntry[], counts: readonly TallyCount[]): Promise<void>
}

/** The parts of an attempt by position, by the names of their columns. */
export const attemptColumns = [
  'request_id',
  'attempt',
  'at',
  'app',
  'brand',
  'channel',
  'route',
  'provider',
  'template',
  'recipient_hash',
  'recipient',
  'position',
  'segments',
  'encoding',
  'outcome',
  'error_class',
  'reason',
  'vendor_id',
  'receipt_key',
  'duration_ms',
] as const

/** A request as the journal keeps it. */
export function journalEntry(story: Story, attempts: readonly Attempt[]): JournalEntry {
  const { requestId, app, brand } = story
  const rows = attempts.map((attempt) => [
    requestId,
    attempt.attempt,
    attempt.at,
    app,
    brand,
    attempt.channel,
    attempt.route,
    attempt.provider,
    attempt.template,
    hashOf(attempt.recipientSubject),
    attempt.recipient,
    attempt.position,
    attempt.segments?.count ?? null,
    attempt.segments?.encoding ?? null,
    attempt.outcome,
    attempt.errorClass,
    attempt.reason,
    attempt.vendorId,
    attempt.receiptKey,
    attempt.durationMs,
  ])
  return [requestId, encode(story), rows]
}

/** The least id that a request of this instant may have: the 48 bits of its time, and nothing else. */
export function firstIdOf(epochMs: number): string {
  const hex = Math.max(0, Math.floor(epochMs)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`
}

/** When a request came, by its id: epoch milliseconds. */
export function timeOfId(requestId: string): number {
  return Number.parseInt(requestId.replace('-', '').slice(0, 12), 16)
}

/** A story by position, as it is stored as JSON. */
export type StoredStory = readonly [
  at: number,
  operation: Operation,
  app: string,
  brand: string | null,
  channel: Story['channel'],
  recipient: string | null,
  recipients: number | null,
  limits: readonly (readonly [
    limit: Standing['limit'],
    max: number,
    used: number | null,
    endsAt: number | null,
    0 | 1,
  ])[],
  end: readonly [status: number, error: string | null, message: string | null, durationMs: number] | null,
  /** Missing in those from before it was kept. */
  recipientHash?: string | null,
]

function encode({
  at,
  operation,
  app,
  brand,
  channel,
  recipient,
  recipients,
  recipientSubject,
  limits,
  end,
}: Story): StoredStory {
  return [
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
    limits.map(
      ({ limit, max, used, endsAt, refused }) => [limit, max, used, endsAt, refused ? 1 : 0] as const,
    ),
    end && [end.status, end.error, end.message, end.durationMs],
    recipientSubject && hashOf(recipientSubject),
  ]
}

/** A story as it was kept. */
export function storyOf(
  requestId: string,
  [at, operation, app, brand, channel, recipient, recipients, limits, end, recipientHash]: StoredStory,
): Story {
  return {
    requestId,
    at,
    operation,
    app,
    brand,
    channel,
    recipient,
    recipients,
    recipientSubject: recipientHash ?? null,
    limits: limits.map(
      ([limit, max, used, endsAt, refused]): Standing => ({
        limit,
        max,
        used,
        endsAt,
        refused: refused === 1,
      }),
    ),
    end: end && { status: end[0], error: end[1], message: end[2], durationMs: end[3] },
  }
}
