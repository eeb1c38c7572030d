import type { Role } from '../../domain/ground/role.ts'
import type { DatabaseFault } from '../../domain/health/database-fault.ts'
import type { Entered } from '../../domain/operator/fields.ts'

export interface PageContext {
  readonly version: string
  readonly csrfToken: string
  /** Who is signed in. Without an account the e-mail address is null. */
  readonly person: { readonly email: string | null; readonly role: Role; readonly isSetUp: boolean }
  readonly pendingRequests: number
  readonly hasOutbox: boolean
  /** Active ones. */
  readonly reviewNumbers: number
  /** Null: the database can be used. */
  readonly fault: DatabaseFault | null
  readonly now: number
  readonly flash: Flash | null
  /** What the form of an action had that was rejected, or that would be done. */
  readonly rejected?: Rejected
}

export interface Rejected {
  readonly action: string
  readonly values: Entered
  /** What a partial form showed, as JSON. */
  readonly was: string | null
  readonly problem: string | null
  /** What the action would do, as sentences. */
  readonly foretold: readonly string[]
}

export interface Flash {
  readonly tone: 'good' | 'bad'
  readonly text: string
}
