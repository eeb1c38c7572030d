import type { MessageReport } from '../delivery/delivery-reports.ts'
import type { LadderRow } from '../ground/ladder-row.ts'
import { isFromBeforeStep } from '../ground/ports.ts'
import { type PhoneWay, phoneWays } from '../ground/providers.ts'
import { type EpochMs, minuteMs } from '../ground/time.ts'

// The ways of a code to a phone (design D54).

export interface Ladder {
  /** In order. One: there is no ladder. */
  readonly ways: readonly [PhoneWay, ...PhoneWay[]]
  /** For a delivery report, before the next way. 0: a code does not wait. */
  readonly waitSeconds: number
}

export interface DueLadder extends LadderRow {
  /** The end of the lease. */
  readonly dueAt: EpochMs
  readonly reports: readonly MessageReport[]
}

export interface SentByLadder
  extends Pick<LadderRow, 'requestId' | 'ways' | 'reportKey' | 'reportKeys' | 'attempts'> {
  readonly sentAt: EpochMs
  readonly dueAt: EpochMs
}

export interface LadderStore {
  /** No other process gets them before the lease ends. Rows that are due after `latestDueAt` are from before the clock was set back. */
  take(by: {
    readonly now: EpochMs
    readonly latestDueAt: EpochMs
    readonly leaseMs: number
    readonly limit: number
  }): Promise<readonly DueLadder[]>
  /** Unless a report made it due meanwhile. */
  wait(ladder: Pick<DueLadder, 'requestId' | 'dueAt'>, until: EpochMs): Promise<void>
  /** A message was accepted. Unless the ladder has ended or gone on. A final report that came before makes it due. */
  sent(message: SentByLadder): Promise<void>
  end(requestId: string, why: string): Promise<void>
  /** These messages have final reports: ladders whose latest message is one of them are due. */
  reported(keys: readonly string[], now: EpochMs): Promise<void>
}

/** Within this time after a message, its failure begins the next way. */
const failureCountsMs = minuteMs

export function waysIn(text: string): readonly PhoneWay[] {
  return text.split(',').flatMap((name) => phoneWays.find((way) => way === name) ?? [])
}

/** When a ladder is due if no report arrives. */
export function dueAfter({ waitSeconds }: Ladder, sentAt: EpochMs): EpochMs {
  return sentAt + (waitSeconds * 1000 || failureCountsMs)
}

/** What a due ladder does: the next way, an end and its reason, or nothing until then. */
export function stepOf(
  { reportKey, sentAt, reports }: DueLadder,
  ladder: Ladder,
  now: EpochMs,
): 'next' | { readonly end: string } | { readonly waitUntil: EpochMs } {
  if (reports.some(({ status }) => status === 'delivered')) return { end: 'a message was delivered' }
  const report = reports.find(({ key }) => key === reportKey)
  if (sentAt !== null && report?.status === 'failed' && report.at <= sentAt + failureCountsMs) return 'next'
  // Null: the process that sent it has ended. Before a step of the clock: the code cannot be used any more.
  const isOver = sentAt === null || isFromBeforeStep(sentAt, now) || now >= dueAfter(ladder, sentAt)
  if (!isOver) return { waitUntil: dueAfter(ladder, sentAt) }
  return ladder.waitSeconds > 0 ? 'next' : { end: 'no delivery report said that the message failed' }
}
