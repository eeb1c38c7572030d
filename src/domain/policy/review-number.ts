import { instant, type Listing } from '../ground/listing.ts'
import type { EpochMs } from '../ground/time.ts'
import type { Effect } from '../limits/effects.ts'
import type { Gate } from '../limits/limits.ts'
import { noteFlag, type RequestContext } from '../request/request-context.ts'

/** A phone number whose codes of one brand are one fixed code that is not sent, for reviewers of app stores (design D48). */
export interface ReviewNumber {
  /** The hashed identifier under the secret key of the time of creation. */
  readonly subject: string
  readonly brandSlug: string
  /** The HMAC of the fixed code under the same secret key. */
  readonly keyedCode: string
  readonly masked: string
  readonly createdAt: EpochMs
  /** Exclusive. */
  readonly expiresAt: EpochMs
}

export function activeReviewNumbers<Number extends Pick<ReviewNumber, 'expiresAt'>>(
  all: readonly Number[],
  now: number,
): readonly Number[] {
  return all.filter(({ expiresAt }) => expiresAt > now)
}

/** A request that sent or verified the fixed code. */
export interface ReviewUse {
  readonly operation: 'send' | 'resend' | 'verify'
  readonly app: string
  readonly requestId: string
  readonly brandSlug: string
}

/** The fixed code becomes the active one, and is not sent (design D48). The guard and budgets count SMS, so they do not apply. */
export function reviewed(
  context: RequestContext,
  { brandSlug }: ReviewNumber,
  operation: ReviewUse['operation'],
  at: EpochMs,
): Gate {
  const { app = '', requestId } = context
  const use = { operation, app, requestId, brandSlug }
  return { effects: [reviewUseEntry(use, at)], admitted: () => noteFlag(context, 'review') }
}

/** The audit entry of each use. */
export function reviewUseEntry({ operation, app, requestId, brandSlug }: ReviewUse, at: EpochMs): Effect {
  return {
    kind: 'audit',
    entry: {
      at,
      actor: { by: 'command', name: 'serve' },
      action: 'review-number.used',
      target: brandSlug,
      details: { operation, app, request: requestId },
    },
  }
}

/** The last day, in UTC. */
export function untilWords({ expiresAt }: Pick<ReviewNumber, 'expiresAt'>): string {
  return new Date(expiresAt - 1).toISOString().slice(0, 10)
}

export const reviewNumberListing = {
  phone: { title: 'Phone number', value: ({ masked }) => masked },
  brand: { title: 'Brand', value: ({ brandSlug }) => brandSlug },
  until: { title: 'Last day (UTC)', value: untilWords },
  createdAt: { title: 'Created', value: ({ createdAt }) => instant(createdAt) },
} satisfies Listing<ReviewNumber>
