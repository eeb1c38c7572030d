import type { MessageReport } from '../delivery/delivery-reports.ts'
import type { LadderRow } from '../ground/ladder-row.ts'
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
  /** A message was accepted. Unless the ladder has ended or gone on. A final report that came before makes it due. */
  sent(message: SentByLadder): Promise<void>
  /** A step begins with this attempt. */
  stepped(requestId: string, attempt: number, cause: string): Promise<void>
  end(requestId: string, why: string): Promise<void>
  /** All that wait. */
  endAll(why: string): Promise<void>
  /** These messages have final reports. A ladder is due if the latest message is one of them, for as long as a failure counts. */
  reported(keys: readonly string[], now: EpochMs): Promise<void>
}

/** Within this time after a message, its failure begins the next way. */
export const failureCountsMs = minuteMs

export function waysIn(text: string): readonly PhoneWay[] {
  return text.split(',').flatMap((name) => phoneWays.find((way) => way === name) ?? [])
}

/** When a ladder is due if no report arrives. */
export function dueAfter({ waitSeconds }: Ladder, sentAt: EpochMs): EpochMs {
  return sentAt + (waitSeconds * 1000 || failureCountsMs)
}

/** What a due ladder does: the next way, or an end; each with its reason. */
export function stepOf(
  { reportKey, sentAt, reports }: DueLadder,
  { waitSeconds }: Ladder,
): { readonly next: string } | { readonly end: string } {
  if (reports.some(({ status }) => status === 'delivered')) return { end: 'a message was delivered' }
  const latest = reports.find(({ key }) => key === reportKey)
  const hasFailed = latest?.status === 'failed' && latest.at <= (sentAt ?? 0) + failureCountsMs
  if (hasFailed) return { next: `the delivery report says failed: ${latest.reason ?? 'without a reason'}` }
  if (waitSeconds > 0 && sentAt === null) return { next: 'the result of the message before it is unknown' }
  if (waitSeconds > 0) return { next: `no delivery report arrived within ${waitSeconds} s` }
  return { end: 'no delivery report said that the message failed' }
}
