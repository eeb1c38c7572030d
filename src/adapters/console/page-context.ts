import type { Role } from '../../domain/accounts/accounts.ts'

export interface PageContext {
  readonly version: string
  readonly csrfToken: string
  /** Who is signed in. Without an account the e-mail address is null. */
  readonly person: { readonly email: string | null; readonly role: Role; readonly isSetUp: boolean }
  readonly pendingRequests: number
  readonly hasOutbox: boolean
  /** Active ones. */
  readonly reviewNumbers: number
  readonly now: number
  readonly flash: Flash | null
}

export interface Flash {
  readonly tone: 'good' | 'bad'
  readonly text: string
}
