import type { EpochMs } from './time.ts'

export interface Alert {
  /** Unique for what it is about, so that each alert is stored once. */
  readonly key: string
  readonly at: EpochMs
  /** The `type` of the webhook. */
  readonly kind: string
  /** One line. */
  readonly title: string
  /** The `data` of the webhook as JSON, such as a `BudgetAlert`. A `RequestAlert` is stored empty. */
  readonly text: string
}

export const budgetKind = 'budget.threshold'
export const reviewNumberKind = 'review-number.added'

/** About a phone number with a fixed code (design D48). */
interface ReviewNumberAlert {
  /** Masked. */
  readonly phone: string
  readonly brandId: string
  /** The last day, in UTC. */
  readonly until: string
  /** An operator, or a user of the server. */
  readonly addedBy: string
}

/** @param id a new one */
export function reviewNumberAlert(id: string, data: ReviewNumberAlert, at: EpochMs): Alert {
  return {
    key: `${reviewNumberKind} ${id}`,
    at,
    kind: reviewNumberKind,
    title: `A review number of brand ${data.brandId} was added`,
    text: JSON.stringify(data),
  }
}

export const alertChannels = ['email', 'webhook'] as const
export type AlertChannel = (typeof alertChannels)[number]
