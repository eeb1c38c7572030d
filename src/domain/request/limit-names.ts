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

/** Of a claim of money, whose units are millionths of the currency (design D42). */
export interface BudgetName {
  readonly scope: string
  /** ISO 4217, or `units`. */
  readonly currency: string
}
