import { Failure, invalidField } from './failures.ts'

export type Body = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Null counts as absent (design D27). */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/**
 * Bidirectional controls and similar (design D30). Words and emoji need the characters of the first line. The
 * last line lists Prepended_Concatenation_Mark, which is visible.
 */
const invisible = new RegExp(
  String.raw`[[\p{Cf}\p{Default_Ignorable_Code_Point}]--[\u200C\u200D\uFE00-\uFE0F` +
    String.raw`\u0600-\u0605\u06DD\u070F\u0890\u0891\u08E2\u{110BD}\u{110CD}]]`,
  'v',
)

const forbidden = {
  one: new RegExp(`[\\p{Cc}\\p{Zl}\\p{Zp}${invisible.source}]`, 'v'),
  many: new RegExp(`[[\\p{Cc}--[\\t\\n\\r]]${invisible.source}]`, 'v'),
  html: /[\p{Cc}--[\t\n\r]]/v,
} as const

/** In code points, the unit of design D4. */
export function characters(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

export interface TextRule {
  readonly max: number
  /** `many` also allows tabs and line breaks; `html` also allows invisible characters. */
  readonly lines?: keyof typeof forbidden
}

/** A sentence that begins with `name`; undefined: the text is valid. */
export function textProblem(name: string, value: unknown, rule: TextRule): string | undefined {
  const fault = textFault(value, rule)
  return fault === undefined ? undefined : `${name} ${fault}`
}

/** The same without the name. */
export function textFault(value: unknown, rule: TextRule): string | undefined {
  if (!isGiven(value)) return 'is required.'
  if (typeof value !== 'string') return 'must be a string.'
  if (value.trim() === '') return 'must not be empty.'
  if (value.length > rule.max && characters(value) > rule.max) {
    return `must have at most ${rule.max} characters.`
  }
  if (!value.isWellFormed()) return 'must be well-formed Unicode.'
  const [character] = forbidden[rule.lines ?? 'one'].exec(value) ?? []
  return character === undefined ? undefined : `must not contain ${characterName(character)}.`
}

function characterName(character: string): string {
  if (/[\n\r\p{Zl}\p{Zp}]/u.test(character)) return 'line breaks'
  const code = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  return `U+${code}, ${invisible.test(character) ? 'an invisible' : 'a control'} character`
}

export function text(name: string, value: unknown, rule: TextRule): string {
  const fault = textFault(value, rule)
  if (fault !== undefined) throw invalidField(name, fault)
  return value as string
}

export function optionalText(name: string, value: unknown, rule: TextRule): string | undefined {
  return isGiven(value) ? text(name, value, rule) : undefined
}

/** The caller's id of the request (design D44). */
export function readReference({ reference }: Body): string | undefined {
  return optionalText('reference', reference, { max: 64 })
}

/**
 * The names of the fields that are not known, without their values: at most 10 of at most 32 characters. A name can hold data by
 * mistake, so long numbers and all characters that field names do not have are replaced.
 * @returns undefined: all are known
 */
export function unknownFieldsOf(body: Body, known: ReadonlySet<string>): readonly string[] | undefined {
  let unknown: string[] | undefined
  for (const name in body) {
    if (known.has(name)) continue
    unknown ??= []
    if (unknown.push(printableName(name)) === mostUnknown) break
  }
  return unknown
}

const mostUnknown = 10

function printableName(name: string): string {
  return (
    name
      .slice(0, 32)
      .replace(/[^\w.$-]/g, '?')
      .replace(/\d{4,}/g, '#') || '?'
  )
}

export function judged<T>(read: () => T): T | Failure {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}
