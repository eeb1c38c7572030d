import { InvalidInput } from '../ground/operator-error.ts'
import { dayMs, parseDuration } from '../ground/time.ts'

const longestMs = 366 * dayMs

/** In milliseconds. @throws OperatorError */
export function durationIn(text: string, leastMs = 0): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= leastMs && ms <= longestMs) return ms
  throw new InvalidInput('The duration must be such as 30m, 12h or 7d, and at most 366d.')
}
