import type { Failure } from '../ground/failures.ts'
import type { RequestContext } from './request-context.ts'

export interface RequestEnded {
  readonly context: RequestContext
  readonly method: string
  /** The route's pattern, never the path. Undefined: unknown path. */
  readonly route: string | undefined
  readonly status: number
  readonly failure: Failure | undefined
  readonly error: string | undefined
  readonly durationMs: number
}

export type RequestListener = (ended: RequestEnded) => void
