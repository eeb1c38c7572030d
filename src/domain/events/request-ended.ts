import type { Failure } from '../failures.ts'
import type { RequestContext } from './request-context.ts'

export interface RequestEnded {
  readonly context: RequestContext
  readonly method: string
  /** The route's pattern, such as `/otp/send`, never the path; undefined: unknown path. */
  readonly route: string | undefined
  readonly status: number
  /** Undefined: success. */
  readonly failure: Failure | undefined
  /** The code of the error envelope; undefined: success. */
  readonly error: string | undefined
  /** With fractions. */
  readonly durationMs: number
}

/** Never throws. */
export type RequestListener = (ended: RequestEnded) => void
