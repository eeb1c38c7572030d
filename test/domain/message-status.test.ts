import { describe, expect, test } from 'bun:test'
import {
  type MessageAttempt,
  type MessageFacts,
  messageStatus,
} from '../../src/domain/delivery/message-status.ts'

// Each attempt takes 5 ms, and ends at 105, 205 and so on; reports follow at 1105, 1205 and so on.

function attempts(text: string): MessageAttempt[] {
  return text
    .split(', ')
    .filter(Boolean)
    .map((words, index) => {
      const [kind = '', report] = words.split(' + ')
      const at = 100 * (index + 1)
      const isRejected = kind === 'rejected'
      return {
        outcome: kind as MessageAttempt['outcome'],
        errorClass: isRejected ? 'recipient' : null,
        at,
        durationMs: 5,
        report: report
          ? { status: report as 'pending' | 'failed' | 'delivered', reason: null, at: at + 1005 }
          : null,
      }
    })
}

const requests = {
  running: { state: 'running', at: 10 },
  ok: { state: 'succeeded', at: 900 },
  failed: { state: 'failed', at: 900 },
  lost: { state: 'lost', at: 10 },
} as const

type State = NonNullable<MessageFacts['job']>['state']

describe('the status of a message', () => {
  test.each<[attempts: string, request: keyof typeof requests, job: State | '', expected: string]>([
    // Of a synchronous request.
    ['', 'running', '', 'queued 10'],
    ['retryable', 'running', '', 'queued 105'],
    ['unknown', 'running', '', 'queued 105'],
    ['accepted', 'running', '', 'accepted 105'],
    ['accepted + failed', 'running', '', 'failed 1105'],
    ['accepted', 'ok', '', 'accepted 105'],
    ['accepted + pending', 'ok', '', 'accepted 105'],
    ['accepted + delivered', 'ok', '', 'delivered 1105'],
    ['accepted + failed', 'ok', '', 'failed 1105'],
    ['retryable, accepted', 'ok', '', 'accepted 205'],
    ['unknown, accepted', 'ok', '', 'accepted 205'],
    ['unknown + delivered, accepted', 'ok', '', 'delivered 1105'],
    ['unknown + delivered, accepted + failed', 'ok', '', 'delivered 1105'],
    ['unknown + failed, accepted', 'ok', '', 'accepted 205'],
    ['unknown + failed, accepted + failed', 'ok', '', 'failed 1205'],
    ['unknown, accepted + failed', 'ok', '', 'unknown 105'],
    ['unknown', 'failed', '', 'unknown 105'],
    ['unknown, rejected', 'failed', '', 'unknown 105'],
    ['unknown + failed', 'failed', '', 'failed 1105'],
    ['unknown + delivered', 'failed', '', 'delivered 1105'],
    ['retryable + delivered', 'failed', '', 'delivered 1105'],
    ['retryable, rejected', 'failed', '', 'failed 205'],
    ['skipped, skipped', 'failed', '', 'failed 205'],
    ['', 'failed', '', 'failed 900'],
    ['', 'ok', '', 'accepted 900'],
    // The process ended, and the attempt that was in progress is not recorded.
    ['', 'lost', '', 'unknown 10'],
    ['retryable', 'lost', '', 'unknown 105'],
    ['unknown + failed', 'lost', '', 'unknown 105'],
    ['rejected', 'lost', '', 'failed 105'],
    ['retryable, accepted', 'lost', '', 'accepted 205'],
    ['accepted + failed', 'lost', '', 'failed 1105'],
    // Of a job, which last changed at 500.
    ['', 'ok', 'queued', 'queued 500'],
    ['', 'ok', 'sending', 'queued 500'],
    ['retryable', 'ok', 'queued', 'queued 500'],
    ['accepted', 'ok', 'sending', 'accepted 105'],
    ['', 'ok', 'accepted', 'accepted 500'],
    ['retryable, accepted', 'ok', 'accepted', 'accepted 205'],
    ['accepted + failed', 'ok', 'accepted', 'failed 1105'],
    ['accepted + delivered', 'ok', 'accepted', 'delivered 1105'],
    ['', 'ok', 'unknown', 'unknown 500'],
    ['retryable', 'ok', 'unknown', 'unknown 500'],
    ['unknown', 'ok', 'unknown', 'unknown 105'],
    ['unknown + failed', 'ok', 'unknown', 'failed 1105'],
    ['unknown + delivered', 'ok', 'unknown', 'delivered 1105'],
    ['retryable, retryable', 'ok', 'failed', 'failed 500'],
    ['', 'ok', 'cancelled', 'failed 500'],
  ])('attempts [%s], request %s, job [%s]: %s', (given, request, job, expected) => {
    const { status, updatedAt } = messageStatus({
      attempts: attempts(given),
      job: job === '' ? null : { state: job, updatedAt: 500 },
      request: requests[request],
    })
    expect(`${status} ${updatedAt}`).toBe(expected)
  })
})
