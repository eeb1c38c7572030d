import { Failure } from './failures.ts'

/** A parsed JSON object of a caller: every field may be missing or of any type. */
export type Body = Readonly<Record<string, unknown>>

/** Whether a value is a JSON object (not an array, not null). */
export function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a field was given at all: null counts as absent (design D27). */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/**
 * Text without control characters: safe in an SMS, a header and a log line alike. The characters that turn the
 * direction of what follows are refused too, since they let a name rewrite how the rest of a message reads.
 */
const singleLine = /^[^\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]*$/u

/** Text that may have several lines: tab, line feed and carriage return are its only control characters. */
const multiLine = /^(?:[^\p{Cc}]|[\t\n\r])*$/u

/** Length in characters as a person counts them (code points), the unit of every size in design D4. */
export function characters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

export interface TextRule {
  readonly max: number
  readonly lines?: 'one' | 'many'
}

/**
 * Says what is wrong with a text field, or nothing when it is a string of 1 to `max` characters with no control
 * characters, not blank, and without line breaks unless they are allowed.
 */
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

/** A text field that satisfies its rule; else validation_error. */
export function text(name: string, value: unknown, rule: TextRule): string {
  const problem = textProblem(name, value, rule)
  if (problem !== undefined) throw new Failure('validation_error', problem)
  return value as string
}

/** The same for a field that may be absent. */
export function optionalText(name: string, value: unknown, rule: TextRule): string | undefined {
  return isGiven(value) ? text(name, value, rule) : undefined
}

/** What a reader makes of a body, or the failure it met, for a check whose turn comes later. */
export function judged<T>(read: () => T): T | Failure {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}
