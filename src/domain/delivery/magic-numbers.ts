import type { DeliveryReport, Outcome } from '../ground/providers.ts'

export interface MagicNumber {
  readonly means: string
  readonly outcome?: Outcome
  /** After some seconds. */
  readonly report?: Pick<DeliveryReport, 'status' | 'reason'>
}

/** By E.164 digits, for the provider `outbox` alone. The prefix +1 500 555 is of no person. */
export const magicNumbers: Readonly<Record<string, MagicNumber>> = {
  '15005550001': {
    means: 'The provider rejects the number.',
    outcome: { kind: 'rejected', scope: 'recipient', reason: 'magic number' },
  },
  '15005550002': {
    means: 'The provider has a temporary failure.',
    outcome: { kind: 'retryable', reason: 'magic number' },
  },
  '15005550003': {
    means: 'The result is unknown, as after a time-out. The message arrives, but its code is revoked.',
    outcome: { kind: 'unknown', reason: 'magic number' },
  },
  '15005550004': {
    means: 'The provider accepts the message, and reports its delivery after 10 s.',
    report: { status: 'delivered', reason: null },
  },
  '15005550005': {
    means: 'The provider accepts the message, and reports a failure after 10 s.',
    report: { status: 'failed', reason: 'magic number' },
  },
}
