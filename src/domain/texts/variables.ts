import { textFault } from '../ground/body.ts'
import { remembered } from '../ground/remember.ts'
import { hasUrl, type IsTopLevelDomain } from '../ground/words.ts'
import type { DeclaredVariable, VariableType } from './brand-texts.ts'

/** What a variable of a template on /notify may be (design D10, D47). */
export interface VariableRule {
  readonly name: string
  readonly type: VariableType
  /** What a value must be, as the end of a sentence. */
  readonly description: string
  readonly minLength?: number
  /** In code points, of the value as given. */
  readonly maxLength?: number
  readonly pattern?: string
  /** As declared: the greatest length of the value in the text, in code points; of a number, the greatest value. */
  readonly max?: number
}

const digitsOfNumber = 15
const longestMoment = 40

const numberPattern = `^(?!(?:[^0-9]*[0-9]){${digitsOfNumber + 1}})-?(0|[1-9][0-9]*)(\\.[0-9]+)?$`

export const dateRule = {
  type: 'date',
  description: 'a date that exists, YYYY-MM-DD',
  pattern: '^\\d{4}-\\d{2}-\\d{2}$',
} as const

export const datetimeRule = {
  type: 'datetime',
  description: 'an ISO 8601 date and time that exist, with minutes at least',
  pattern:
    '^\\d{4}-\\d{2}-\\d{2}T([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d([.,]\\d{1,9})?)?(Z|[+-]([01]\\d|2[0-3])(:?[0-5]\\d)?)?$',
} as const

export function ruleOf({ name, type, max }: DeclaredVariable): VariableRule {
  switch (type) {
    case 'text':
      return { name, ...textRule(max), max }
    case 'number':
      return {
        name,
        type,
        description: `a number of at most ${max} with at most ${digitsOfNumber} digits, such as 1250 or "19.90"`,
        pattern: numberPattern,
        max,
      }
    case 'date':
      return { name, ...dateRule, max }
    case 'datetime':
      return { name, ...datetimeRule, max }
    case 'url':
      return {
        name,
        type,
        description: `an https URL of at most ${max} characters, without user name and password`,
        maxLength: max,
        pattern: '^https://[^\\s"\'<>\\\\]+$',
        max,
      }
  }
}

export function textRule(maxLength: number) {
  const description = `1 to ${maxLength} characters, no control or invisible characters, no URL`
  return { type: 'text', description, minLength: 1, maxLength } as const
}

/** A value that the rule allows, as far as its maximum lets it. */
export function sampleOf({ type, max = Number.POSITIVE_INFINITY }: VariableRule): string {
  switch (type) {
    case 'text':
      return 'Jane Doe'.slice(0, max).trim()
    case 'number':
      return String(Math.min(1250, max))
    case 'date':
      return '2026-11-21'
    case 'datetime':
      return '2026-11-21T14:30'
    case 'url':
      return max < 21 ? 'https://a' : 'https://example.com/a'
  }
}

/** The value as text. Undefined: it is not what the rule allows. */
export function readValue(
  rule: VariableRule,
  given: unknown,
  isTopLevelDomain: IsTopLevelDomain,
): string | undefined {
  const value = rule.type === 'number' && typeof given === 'number' ? String(given) : given
  if (typeof value !== 'string') return undefined
  if (textFault(value, { max: rule.maxLength ?? longestMoment }) !== undefined) return undefined
  if (rule.pattern !== undefined && !new RegExp(rule.pattern).test(value)) return undefined
  return isOfType(rule, value, isTopLevelDomain) ? value : undefined
}

function isOfType({ type, max }: VariableRule, value: string, isTopLevelDomain: IsTopLevelDomain): boolean {
  switch (type) {
    case 'text':
      return !hasUrl(value, isTopLevelDomain)
    case 'number':
      return max === undefined || Number(value) <= max
    case 'date':
    case 'datetime':
      return isDay(value.slice(0, 10))
    case 'url':
      return isUrlWithoutUser(value)
  }
}

function isDay(value: string): boolean {
  const [year = 0, month = 0, day = 0] = value.split('-').map(Number)
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

function isUrlWithoutUser(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { username, password } = new URL(value)
  return username === '' && password === ''
}

/**
 * A valid value as a text in a language has it: dates, times and numbers in the form of the language, with European digits
 * and without invisible characters. A time is not converted to another time zone.
 * @param lang BCP 47
 */
export function formatted(type: VariableType, value: string, lang: string): string {
  switch (type) {
    case 'text':
    case 'url':
      return value
    case 'number': {
      const [, fraction = ''] = value.split('.')
      return withPlainCharacters(numberFormats(`${lang} ${fraction.length}`).format(Number(value)))
    }
    case 'date':
    case 'datetime':
      return withPlainCharacters(
        momentIn(lang, type, Date.parse(`${value.slice(0, 16).padEnd(16, 'T00:00')}Z`)),
      )
  }
}

/** The length of the longest date or time of a year in a language. */
export function longestMomentIn(lang: string, type: 'date' | 'datetime'): number {
  const months = Array.from({ length: 12 }, (_, month) => String(month + 1).padStart(2, '0'))
  const values = months.flatMap((month) => [`2026-${month}-28T10:30`, `2026-${month}-28T22:30`])
  return Math.max(...values.map((value) => formatted(type, value, lang).length))
}

/**
 * Without marks of the writing direction (design D30). No-break spaces, the minus sign and the apostrophe of Swiss numbers would need UCS-2, which has half
 * of the characters in a segment.
 */
function withPlainCharacters(text: string): string {
  if (/^[ -~]*$/.test(text)) return text
  return text
    .replaceAll(/[\p{Cf}--[\u200C\u200D]]/gv, '')
    .replaceAll(/\p{Zs}/gu, ' ')
    .replaceAll('\u2212', '-')
    .replaceAll('\u2019', "'")
}

/** As in "21 November 2026, 14:30": without words between date and time, which not every sentence can have. */
function momentIn(lang: string, type: 'date' | 'datetime', at: number): string {
  const tag = lang === 'en' ? 'en-GB' : lang
  const date = momentFormats(`${tag} date`).format(at)
  if (type === 'date') return date
  const separator = /^(ja|ko|zh)\b/.test(tag) ? ' ' : ', '
  return `${date}${separator}${momentFormats(`${tag} time`).format(at)}`
}

const momentStyles = {
  date: { dateStyle: 'long' },
  time: { timeStyle: 'short' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>

/** Building a format takes about 0.1 ms. @param key a language and a style */
const momentFormats = remembered(200, (key) => {
  const [lang = '', style = 'date'] = key.split(' ') as [string, keyof typeof momentStyles]
  const options = { ...momentStyles[style], timeZone: 'UTC', calendar: 'gregory', numberingSystem: 'latn' }
  return new Intl.DateTimeFormat([lang, 'en-GB'], options)
})

/** @param key a language and how many digits follow the decimal point */
const numberFormats = remembered(200, (key) => {
  const [lang = '', digits] = key.split(' ')
  const fraction = { minimumFractionDigits: Number(digits), maximumFractionDigits: Number(digits) }
  return new Intl.NumberFormat([lang, 'en-GB'], { ...fraction, numberingSystem: 'latn' })
})
