import type { Failure } from '../failures.ts'
import type { RequestContext } from './request-context.ts'

/** A request has been answered. */
export interface RequestEnded {
  readonly context: RequestContext
  readonly method: string
  /** The pattern of its route, such as `/otp/send`, never the path, which may contain anything; undefined: unknown path. */
  readonly route: string | undefined
  readonly status: number
  /** Undefined: success. */
  readonly failure: Failure | undefined
  /** The code of the error envelope; undefined: success. */
  readonly error: string | undefined
  /** From its headers to its answer, with fractions. */
  readonly durationMs: number
}

/** Receives every answered request; never throws. */
export type RequestListener = (ended: RequestEnded) => void
