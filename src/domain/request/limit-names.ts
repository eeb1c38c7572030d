export const limitNames = [
  'app-minute',
  'status-minute',
  'cooldown',
  'phone-minute',
  'recipient-hour',
  'failures',
  'credentials',
  'integration-requests',
  'console-logins',
  'budget',
  'queue',
  'new-country',
] as const

export type LimitName = (typeof limitNames)[number]

/** The messages that a budget counts. */
export type BudgetOf = 'all' | 'codes' | 'notifications'

/** Of a claim of money, whose units are millionths of the currency (design D42). */
export interface BudgetName {
  readonly scope: string
  readonly of: BudgetOf
  /** Of a counter of `country:*`. */
  readonly country?: string | undefined
  /** ISO 4217, or `units`. */
  readonly currency: string
}
