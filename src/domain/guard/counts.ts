import type { GuardReason } from './guard.ts'

/** Codes that were denied, and codes that mode `record` sent although the guard would have denied them. */
export interface GuardTotals {
  readonly denied: number
  readonly recorded: number
}

/** Codes by SMS in a period. */
export interface CountryCodes {
  readonly country: string
  readonly sent: number
  readonly verified: number
}

export interface CountrySms extends CountryCodes {
  readonly notifications: number
}

export interface GuardCount {
  readonly bucket: GuardReason
  /** `budget`: the guard found it, and a budget rejected it. */
  readonly verdict: keyof GuardTotals | 'budget'
  /** ISO 3166-1, or `unknownCountry`. */
  readonly country: string
  readonly app: string
  readonly brand: string
  readonly count: number
}

/** `lately`: in the last 2 minutes. */
export type GuardPeriod = 'lately' | 'hour' | 'day'
