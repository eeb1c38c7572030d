import { InvalidInput } from '../ground/operator-error.ts'
import { dayMs, parseDuration } from '../ground/time.ts'

// The fields of actions: how an operator writes each, and what it means.

/** What an operator wrote for a field: in a command, or in a form. Undefined: nothing. */
export type Written = string | boolean | readonly string[] | undefined

/** By name of the field. */
export type Entered = Readonly<Record<string, Written>>

interface FieldWords {
  /** Of the control in a form. */
  readonly label: string
  /** A phrase for `--help`. */
  readonly help: string
  /** Sentences below the control in a form. Default: `help`. */
  readonly hint?: string
  /** How a command takes it: `--per <period>`, or `<scope>`. Default: the argument `<NAME>`. */
  readonly as?: string
  /** If nothing is written. */
  readonly byDefault?: string
  /** Text for people, not a code or a name. */
  readonly isProse?: boolean
  readonly placeholder?: string
}

export interface Field<Value = unknown> extends FieldWords {
  readonly kind: 'text' | 'list' | 'flag'
  readonly isRequired: boolean
  /** By value, what it means. */
  readonly choices?: Readonly<Record<string, string>>
  /** @throws InvalidInput */
  readonly read: (written: Written) => Value
}

/** One value, which must be written unless it has a default. @param read throws InvalidInput */
export function field<Value>(read: (text: string) => Value, words: FieldWords): Field<Value> {
  const { byDefault = '' } = words
  return {
    ...words,
    kind: 'text',
    isRequired: words.byDefault === undefined,
    read: (written) => read(textOf(written) || byDefault),
  }
}

/** One value, or undefined. */
export function optional<Value>(read: (text: string) => Value, words: FieldWords): Field<Value | undefined> {
  const readOr = (text: string) => (text === '' ? undefined : read(text))
  return { ...words, kind: 'text', isRequired: false, read: (written) => readOr(textOf(written)) }
}

/** Several values, written apart or separated by commas. @param read throws InvalidInput */
export function list<Value>(
  read: (texts: readonly string[]) => Value,
  words: FieldWords & Pick<Field, 'choices'>,
): Field<Value> {
  const readAll = (written: Written) => read(wordsIn(written ?? words.byDefault))
  return { ...words, kind: 'list', isRequired: false, read: readAll }
}

/** Off unless it is written; as `--no-…`, on unless it is written. */
export function flag(words: FieldWords & { readonly as: string }): Field<boolean> {
  const isOn = words.as.startsWith('--no-')
  const read = (written: Written) => (written === undefined ? isOn : written === true)
  return { ...words, kind: 'flag', isRequired: false, read }
}

/** One of the keys of `choices`, whose values say what each means. */
export function choice<Choice extends string>(
  name: string,
  choices: Readonly<Record<Choice, string>>,
  words: FieldWords,
): Field<Choice> {
  const isChoice = (text: string): text is Choice => Object.hasOwn(choices, text)
  const read = (text: string) => {
    if (isChoice(text)) return text
    throw new InvalidInput(`The ${name} must be one of ${Object.keys(choices).join(', ')}.`)
  }
  return { ...field(read, words), choices }
}

/** As it is written. */
export function text(written: string): string {
  return written
}

function textOf(written: Written): string {
  return typeof written === 'string' ? written : ''
}

function wordsIn(written: Written): readonly string[] {
  const texts = typeof written === 'string' ? [written] : Array.isArray(written) ? written : []
  return texts.flatMap((each) => each.split(',')).flatMap((word) => word.trim() || [])
}

export type Fields = Readonly<Record<string, Field>>
export type InputOf<All extends Fields> = { readonly [Name in keyof All]: ReturnType<All[Name]['read']> }

const longestMs = 366 * dayMs

/** In milliseconds. @throws InvalidInput */
export function durationIn(text: string, leastMs = 0): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= leastMs && ms <= longestMs) return ms
  throw new InvalidInput('The duration must be such as 30m, 12h or 7d, and at most 366d.')
}
