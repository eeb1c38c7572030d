import { untilWords } from '../../domain/operator/review-numbers.ts'
import { activeReviewNumbers, type ReviewNumber } from '../../domain/policy/review-number.ts'
import { type Finding, found, warn } from './finding.ts'

/** @param all the stored ones */
export function reviewNumberFindings(
  all: readonly Pick<ReviewNumber, 'masked' | 'brandSlug' | 'expiresAt'>[],
  now: number,
): readonly Finding[] {
  const active = activeReviewNumbers(all, now)
  const named = active.map((each) => `${each.masked} (${each.brandSlug}, until ${untilWords(each)})`)
  return found(
    active.length > 0 &&
      warn(
        'review',
        `A fixed code verifies for ${active.length === 1 ? 'a review number' : `${active.length} review numbers`}: ${named.join(', ')}.`,
        'Remove each one after the review with `otpost review-number remove PHONE --brand SLUG`. See docs/review-numbers.md.',
      ),
  )
}
