import { Failure, invalid } from './failures.ts'

/** A JSON object from a caller. */
export type Body = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Null counts as absent (design D27). */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** No control characters, no line breaks, and no bidirectional controls, which change how the rest of a message reads. */
const singleLine = /^[^\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]*$/u

/** Tabs and line breaks are allowed. */
const multiLine = /^(?:[^\p{Cc}]|[\t\n\r])*$/u

/** Code points, the unit of every size in design D4. */
export function characters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

export interface TextRule {
  readonly max: number
  readonly lines?: 'one' | 'many'
}

/** What is wrong with a text field; undefined: nothing. */
export function textProblem(name: string, value: unknown, rule: TextRule): string | undefined {
  if (typeof value !== 'string') return `${name} must be a string`
  if (value.trim() === '') return `${name} must not be empty`
  if (value.length > rule.max && characters(value) > rule.max) {
    return `${name} must be at most ${rule.max} characters`
  }
  if (!value.isWellFormed()) return `${name} must be well-formed Unicode`
  if (rule.lines === 'many' ? !multiLine.test(value) : !singleLine.test(value)) {
    return `${name} must not contain control characters${rule.lines === 'many' ? '' : ' or line breaks'}`
  }
  return undefined
}

export function text(name: string, value: unknown, rule: TextRule): string {
  const problem = textProblem(name, value, rule)
  if (problem !== undefined) throw invalid(problem)
  return value as string
}

export function optionalText(name: string, value: unknown, rule: TextRule): string | undefined {
  return isGiven(value) ? text(name, value, rule) : undefined
}

/** The result of `read`, or the Failure that it threw, for a check whose turn comes later. */
export function judged<T>(read: () => T): T | Failure {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}
