/** send, resend and verify are `otp`. */
export const appOperations = ['otp', 'notify'] as const
export type AppOperation = (typeof appOperations)[number]

/** What an app may do (design D38). */
export interface AppScope {
  readonly appId: string
  /** Slugs. Empty: every brand. */
  readonly brands: readonly string[]
  readonly allowsOtp: boolean
  readonly allowsNotify: boolean
  /** Calls per minute. Null: GLOBAL_LIMIT_PER_MINUTE. */
  readonly perMinute: number | null
  /** SMS notifications a day to each country that is new to the app. Null: no limit. */
  readonly newCountrySmsPerDay: number | null
}

export function unscoped(appId: string): AppScope {
  return {
    appId,
    brands: [],
    allowsOtp: true,
    allowsNotify: true,
    perMinute: null,
    newCountrySmsPerDay: null,
  }
}

export function isUnscoped(scope: AppScope): boolean {
  const { brands, allowsOtp, allowsNotify, perMinute, newCountrySmsPerDay } = scope
  const isUnlimited = perMinute === null && newCountrySmsPerDay === null
  return brands.length === 0 && allowsOtp && allowsNotify && isUnlimited
}

export function operationsOf(app: AppScope): readonly AppOperation[] {
  return appOperations.filter((operation) => allows(app, operation))
}

export function allows({ allowsOtp, allowsNotify }: AppScope, operation: AppOperation): boolean {
  return operation === 'otp' ? allowsOtp : allowsNotify
}

export function mayUseBrand({ brands }: AppScope, slug: string): boolean {
  return brands.length === 0 || brands.includes(slug)
}
