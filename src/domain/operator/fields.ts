import { InvalidInput } from '../ground/operator-error.ts'
import { dayMs, type EpochMs, parseDuration } from '../ground/time.ts'
import { isRequestId } from '../request/request-context.ts'

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
  /** What an empty value means, in a form with choices. */
  readonly none?: string
  /** Of the fields that a form shows together, and that change together. */
  readonly legend?: string
  /** Text for people, not a code or a name. */
  readonly isProse?: boolean
  readonly placeholder?: string
  /** Characters, at most. The browser accepts no more. */
  readonly max?: number
  /** What the browser checks and completes. */
  readonly inputType?: 'email' | 'url' | 'tel'
  /** A form requires it, though other uses of the action do not. */
  readonly isRequiredInForm?: true
  /** Long text: in a command, that of the file which the argument names. */
  readonly isFile?: true | 'long' | 'secret'
  /** What `--no-…` does, beside `as`. */
  readonly off?: string
  /** Commands do not have it. */
  readonly hasNoOption?: true
  /** Of a text area in a form. A list has one value per line. */
  readonly rows?: number
  /** Of the fields that a form unfolds. */
  readonly fold?: string
}

export interface Field<Value = unknown> extends FieldWords {
  readonly kind: 'text' | 'list' | 'flag'
  readonly isRequired: boolean
  /** By value, what it means. */
  readonly choices?: Readonly<Record<string, string>>
  /** A quantity, not an identifier of digits. */
  readonly isNumber?: boolean
  /** @throws InvalidInput */
  readonly read: (written: Written) => Value
}

/** Throws InvalidInput. */
interface Reader<Text, Value> {
  (text: Text): Value
  readonly choices?: Field['choices']
  readonly isNumber?: boolean | undefined
}

/** One value, which must be written unless it has a default. */
export function field<Value>(read: Reader<string, Value>, words: FieldWords): Field<Value> {
  return {
    ...words,
    ...(read.choices && { choices: read.choices }),
    ...(read.isNumber && { isNumber: true }),
    kind: 'text',
    isRequired: words.byDefault === undefined,
    read: (written) => read(textOf(written) || (words.byDefault ?? '')),
  }
}

/** One value, or undefined. */
export function optional<Value>(read: Reader<string, Value>, words: FieldWords): Field<Value | undefined> {
  const readOr = (text: string) => (text === '' ? undefined : read(text))
  const { choices, isNumber } = read
  return { ...field(Object.assign(readOr, { choices, isNumber }), words), isRequired: false }
}

/** Several values, written apart or separated by commas. */
export function list<Value>(read: Reader<readonly string[], Value>, words: FieldWords): Field<Value> {
  const readAll = (written: Written) => read(wordsIn(written ?? words.byDefault, words))
  const { choices } = read
  return { ...words, ...(choices && { choices }), kind: 'list', isRequired: false, read: readAll }
}

/** Unchanged unless it is written. */
export function change<Value>(read: Reader<string, Value>, words: FieldWords): Field<Value | undefined> {
  const readOr = (written: Written) => (written === undefined ? undefined : read(textOf(written)))
  return { ...field<Value | undefined>(read, words), isRequired: false, read: readOr }
}

/** The same for several values. */
export function changeList<Value>(
  read: Reader<readonly string[], Value>,
  words: FieldWords,
): Field<Value | undefined> {
  const readOr = (written: Written) => (written === undefined ? undefined : read(wordsIn(written, words)))
  return { ...list<Value | undefined>(read, words), read: readOr }
}

/** Unchanged unless it is written. An empty value removes it. */
export function removable<Value>(
  read: Reader<string, Value>,
  words: FieldWords,
): Field<Value | null | undefined> {
  return change((text) => (text === '' ? null : read(text)), words)
}

/** Unchanged unless it is written, as `as` or as `--no-…`. */
export function toggle(words: FieldWords & { readonly as: string }): Field<boolean | undefined> {
  const read = (written: Written) => (written === undefined ? undefined : written === true)
  return { ...words, kind: 'flag', isRequired: false, read }
}

/** Off unless it is written; as `--no-…`, on unless it is written. */
export function flag(words: FieldWords & { readonly as: string }): Field<boolean> {
  const isOn = words.as.startsWith('--no-')
  const read = (written: Written) => (written === undefined ? isOn : written === true)
  return { ...words, kind: 'flag', isRequired: false, read }
}

/** What a field can be, with the words of each. */
type Choices<Choice extends string> = readonly Choice[] | Readonly<Record<Choice, string>>

function isList<Choice extends string>(choices: Choices<Choice>): choices is readonly Choice[] {
  return Array.isArray(choices)
}

export function oneOf<Choice extends string>(name: string, choices: Choices<Choice>) {
  const words: Readonly<Record<string, string>> = isList(choices)
    ? Object.fromEntries(choices.map((each) => [each, each]))
    : choices
  const isChoice = (text: string): text is Choice => Object.hasOwn(words, text)
  const read = (text: string) => {
    if (isChoice(text)) return text
    throw new InvalidInput(`The ${name} must be one of ${Object.keys(words).join(', ')}.`)
  }
  return Object.assign(read, { choices: words })
}

/** Each once, in the order of the choices. */
export function someOf<Choice extends string>(name: string, choices: Choices<Choice>) {
  const readOne = oneOf(name, choices)
  const read = (texts: readonly string[]) => {
    const given = new Map(texts.map((text) => [text, readOne(text)]))
    return Object.keys(readOne.choices).flatMap((each) => given.get(each) ?? [])
  }
  return Object.assign(read, { choices: readOne.choices })
}

/** As it is written. */
export function text(written: string): string {
  return written
}

export function trimmed(written: string): string {
  return written.trim()
}

export function texts(written: readonly string[]): readonly string[] {
  return written
}

export function unique(written: readonly string[]): readonly string[] {
  return [...new Set(written)]
}

function textOf(written: Written): string {
  return typeof written === 'string' ? written : ''
}

function wordsIn(written: Written, { rows }: Pick<FieldWords, 'rows'>): readonly string[] {
  const texts = typeof written === 'string' ? [written] : Array.isArray(written) ? written : []
  return texts.flatMap((each) => each.split(rows ? '\n' : ',')).flatMap((word) => word.trim() || [])
}

export type Fields = Readonly<Record<string, Field>>
export type InputOf<All extends Fields> = { readonly [Name in keyof All]: ReturnType<All[Name]['read']> }

/** The reader of a quantity. */
export function asNumber<Value>(read: Reader<string, Value>): Reader<string, Value> {
  return Object.assign(read, { isNumber: true })
}

/** At most nine digits. */
export function wholeNumber(what: string, least: number, most: number) {
  return asNumber((text: string): number => {
    const number = /^\d{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    throw new InvalidInput(`The ${what} must be a whole number from ${least} to ${most}.`)
  })
}

/** What the fields mean. @throws InvalidInput */
export function inputIn<All extends Fields>(fields: All, entered: Entered): InputOf<All> {
  const read = Object.entries(fields).map(([name, { read }]) => [name, read(entered[name])])
  return Object.fromEntries(read) as InputOf<All>
}

const longestMs = 366 * dayMs

/** In milliseconds. @throws InvalidInput */
export function durationIn(text: string, leastMs = 0): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= leastMs && ms <= longestMs) return ms
  throw new InvalidInput('The duration must be such as 30m, 12h or 7d, and at most 366d.')
}

/** @throws InvalidInput */
export function requestIdIn(text: string): string {
  const id = text.trim().toLowerCase()
  if (isRequestId(id)) return id
  throw new InvalidInput('The request id must be a UUID, as in the response and its X-Request-Id header.')
}

/** A duration ago (`10m`), or a date and time in ISO 8601, in UTC by default. @throws InvalidInput */
export function instantIn(text: string, now: EpochMs, name: string): EpochMs {
  const agoMs = parseDuration(text)
  const time = agoMs === undefined ? isoInstant(text.trim()) : now - agoMs
  if (!Number.isNaN(time)) return time
  throw new InvalidInput(
    `${name} must be a duration such as 30m, 12h or 7d, or a time such as 2026-11-21T14:00Z.`,
  )
}

/** NaN if invalid. */
function isoInstant(text: string): number {
  const [, day = '', time = 'T00:00', zone = 'Z'] =
    /^(\d{4}-\d{2}-\d{2})(?:([T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-]\d{2}:?\d{2})?)?$/.exec(text) ?? []
  // JavaScript turns 30 February into 1 March.
  const isDay = day !== '' && new Date(day).toJSON()?.startsWith(day)
  return isDay ? Date.parse(`${day}${time.replace(' ', 'T')}${zone}`) : Number.NaN
}

export class FieldFault extends InvalidInput {
  /** @param fault the rest of the sentence that begins with the field */
  constructor(
    readonly field: string,
    readonly fault: string,
  ) {
    super(`\`${field}\` ${fault}`)
  }
}

/** The fields of an action, from JSON or YAML: text can be a number, null is nothing. @throws FieldFault */
export function enteredIn(
  body: Readonly<Record<string, unknown>>,
  fields: Fields,
  of = 'this action',
): Entered {
  const entered: Record<string, Written> = {}
  for (const [name, value] of Object.entries(body)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (!field || field.hasNoOption) throw new FieldFault(name, `is no field of ${of}.`)
    if (value !== null) entered[name] = writtenOf(name, field, value)
  }
  for (const [name, { isRequired }] of Object.entries(fields))
    if (isRequired && entered[name] === undefined) throw new FieldFault(name, 'is required.')
  return entered
}

function writtenOf(name: string, { kind }: Field, value: unknown): Written {
  const isText = (each: unknown) => typeof each === 'string' || typeof each === 'number'
  const isRounded = (each: unknown) => typeof each === 'number' && Math.abs(each) > Number.MAX_SAFE_INTEGER
  if ([value].flat().some(isRounded))
    throw new FieldFault(name, 'has a number of more digits than JSON and YAML keep. Give it as a string.')
  if (kind === 'flag' && typeof value === 'boolean') return value
  if (kind === 'text' && isText(value)) return String(value)
  if (kind === 'list' && Array.isArray(value) && value.every(isText)) return value.map(String)
  const type = { flag: 'true or false', text: 'a string', list: 'an array of strings' }[kind]
  throw new FieldFault(name, `must be ${type}.`)
}
