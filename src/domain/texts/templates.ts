import { type Body, isGiven } from '../ground/body.ts'
import { Failure, invalidField } from '../ground/failures.ts'
import type { Registration, Segments } from '../ground/providers.ts'
import { remembered } from '../ground/remember.ts'
import type { IsTopLevelDomain } from '../ground/words.ts'
import { english, isOtpKey, languageByTag, type OtpKey, otpLanguageOf } from './otp-texts.ts'
import { amountIn, type NamedTransaction } from './transaction.ts'
import { dateRule, datetimeRule, readValue, textRule, type VariableRule } from './variables.ts'

export interface Template {
  readonly key: string
  readonly audience: 'otp' | 'notify'
  /** Of `text`; BCP 47. Absent: English. */
  readonly lang?: string
  /** Of a brand's own template its first text. */
  readonly text: string
  readonly variables: readonly VariableRule[]
}

const customerName: VariableRule = { name: 'customerName', ...textRule(40) }
const orderId: VariableRule = {
  name: 'orderId',
  type: 'text',
  description: '1 to 40 letters, digits and . _ / # -, beginning with a letter or digit, no URL',
  minLength: 1,
  maxLength: 40,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._/#-]{0,39}$',
}
const orderDate: VariableRule = { name: 'orderDate', ...dateRule }
const deliveryDateTime: VariableRule = { name: 'deliveryDateTime', ...datetimeRule }

const otpTemplate = <Key extends OtpKey>(key: Key) => ({
  key,
  audience: 'otp' as const,
  text: english[key],
  variables: [],
})
const loginOtp = otpTemplate('LOGIN_OTP')
const loginOtpWithId = otpTemplate('LOGIN_OTP_WITH_ID')
const transactionOtp = otpTemplate('TRANSACTION_OTP')

export const templates: readonly Template[] = [
  loginOtp,
  loginOtpWithId,
  transactionOtp,
  {
    key: 'ORDER_PLACED',
    audience: 'notify',
    text: 'Hi {{customerName}}, we received your {{businessName}} order {{orderId}} on {{orderDate}}. Thank you!',
    variables: [customerName, orderId, orderDate],
  },
  {
    key: 'OUT_FOR_DELIVERY',
    audience: 'notify',
    text: 'Hi {{customerName}}, your {{businessName}} order {{orderId}} is out for delivery.',
    variables: [customerName, orderId],
  },
  {
    key: 'ORDER_DELIVERED',
    audience: 'notify',
    text: 'Hi {{customerName}}, your {{businessName}} order {{orderId}} was delivered at {{deliveryDateTime}}.',
    variables: [customerName, orderId, deliveryDateTime],
  },
]

// Not an object literal, in which a key such as "constructor" exists.
const byKey = new Map(templates.map((template) => [template.key, template]))

export const notifyTemplates = templates.filter((template) => template.audience === 'notify')
export const notifyTemplateKeys: readonly string[] = notifyTemplates.map((template) => template.key)
export const templateKeys: readonly string[] = templates.map((template) => template.key)

export function templateOf(key: string): Template | undefined {
  return byKey.get(key)
}

/** The text that otpost has of a template in a language; of a brand's own template, its first text. */
export function builtInText({ key, lang = english.tag, text }: Template, tag: string): string | undefined {
  if (isOtpKey(key)) return languageByTag.get(tag)?.[key]
  return tag === lang ? text : undefined
}

export interface Rendered {
  readonly templateKey: string
  readonly text: string
  readonly variables: Readonly<Record<string, string>>
}

export const businessNameRule: VariableRule = {
  name: 'businessName',
  type: 'text',
  description: "filled from the brand; when given, the brand's slug or display name",
}

/** Spec 4.4 rule 7: missing_variable, then validation_error. */
export function templateVariables(
  template: Template,
  given: Body,
  isTopLevelDomain: IsTopLevelDomain,
): Record<string, string> {
  for (const { name } of template.variables) {
    if (!isGiven(own(given, name))) {
      const names = template.variables.map((each) => `\`${each.name}\``).join(', ')
      throw new Failure(
        'missing_variable',
        `Missing required variable: ${name}. ${template.key} requires ${names}.`,
      )
    }
  }
  if (isGiven(own(given, 'otp'))) throw invalidField('variables.otp', 'is not accepted on /notify.')
  const values: Record<string, string> = {}
  for (const rule of template.variables) {
    const value = readValue(rule, own(given, rule.name), isTopLevelDomain)
    if (value === undefined) throw invalidField(`variables.${rule.name}`, `must be ${rule.description}.`)
    values[rule.name] = value
  }
  return values
}

/** Carriers reject an SMS with a value that is longer than the registered text allows (India's DLT). */
export function refuseLongValue(
  field: string,
  value: string,
  { maxLength }: Pick<Registration, 'maxLength'>,
): void {
  const max = maxLength ?? 30
  if (Array.from(value).length <= max) return
  throw invalidField(field, `must have at most ${max} characters in the registered text of this template.`)
}

/**
 * Variables inside values are not replaced.
 * @param variables by placeholder
 */
export function render(
  { key, text }: Pick<Template, 'key' | 'text'>,
  variables: Rendered['variables'],
): Rendered {
  return { templateKey: key, text: filled(key, partsOf(text), variables), variables }
}

/** @param parts as `splitText` returns them */
export function filled(key: string, parts: readonly string[], variables: Rendered['variables']): string {
  let text = ''
  let isName = false
  for (const part of parts) {
    const value = isName ? variables[part] : part
    if (value === undefined)
      throw new Error(`The text of ${key} has {{${part}}}, but no variable has that name.`)
    text += value
    isName = !isName
  }
  return text
}

/** As `splitText`. A text is split once, not for each message. */
export const partsOf = remembered(1000, splitText)

/** Text and names of variables, in turn. */
export function splitText(text: string): readonly string[] {
  return text.split(/\{\{(\w+(?::raw)?)\}\}/)
}

export interface OtpValues extends NamedByOtp {
  readonly code: string
  readonly businessName: string
  readonly lifetimeSeconds: number
}

/** What the text of a code names. At most one is set. Undefined: the template is LOGIN_OTP. */
export interface NamedByOtp {
  readonly loginId?: string | undefined
  readonly transaction?: NamedTransaction | undefined
}

export function otpTemplateOf({ loginId, transaction }: NamedByOtp): Template & { readonly key: OtpKey } {
  return transaction ? transactionOtp : loginId === undefined ? loginOtp : loginOtpWithId
}

/** The value of `{{minutes}}`. */
export function wholeMinutes(seconds: number): string {
  return String(Math.max(1, Math.floor(seconds / 60)))
}

/** @param chosen text of the template that `otpTemplateOf` returns. @param numbers the language tag of an amount */
export function renderOtp(
  values: OtpValues,
  chosen: { readonly lang: string; readonly text: string },
  numbers = chosen.lang,
): Rendered {
  const variables = otpVariables(values, chosen.lang, numbers)
  return render({ key: otpTemplateOf(values).key, text: chosen.text }, variables)
}

/** By placeholder. @param lang of the text. @param numbers the language tag of an amount */
export function otpVariables(
  { code, businessName, lifetimeSeconds, loginId, transaction }: OtpValues,
  lang: string,
  numbers = lang,
): Record<string, string> {
  const lifetime = otpLanguageOf(lang).lifetime(lifetimeSeconds)
  const minutes = wholeMinutes(lifetimeSeconds)
  const variables: Record<string, string> = { otp: code, businessName, lifetime, minutes }
  if (loginId !== undefined) variables.loginId = loginId
  if (transaction) Object.assign(variables, { ...transaction, amount: amountIn(numbers, transaction) })
  return variables
}

/**
 * Adds the last line by which browsers and an Android app find the code: `@host #code`, the app hash, or both. Browsers
 * ignore what follows the code in that line (WICG origin-bound codes). SMS Retriever requires at most 140 bytes, and its
 * older versions the hash at the end.
 * A text of the brand may have that line already.
 * @param mayShorten whether the text drops its last sentences if that line needs a second segment
 */
export function boundText(
  text: string,
  code: string,
  { domain, androidHash }: AutofillTargets,
  { segmentsOf, mayShorten }: { segmentsOf: (text: string) => Segments; mayShorten: boolean },
): string {
  const marks = marksOf({ domain, androidHash }, code)
  if (marks === undefined || text.endsWith(`\n${marks}`)) return text
  const lastLine = `\n\n${marks}`
  const fits = (message: string) =>
    segmentsOf(message).count === 1 && (androidHash === null || message.length <= longestForRetriever)
  const whole = text + lastLine
  if (!mayShorten || fits(whole) || segmentsOf(text).count > 1) return whole
  for (const { index } of [...text.matchAll(betweenSentences)].slice(-2).reverse()) {
    const shorter = text.slice(0, index) + lastLine
    if (fits(shorter)) return shorter
  }
  return whole
}

/** The last line of `boundText`. Undefined: there is none. */
export function marksOf({ domain, androidHash }: AutofillTargets, code: string): string | undefined {
  if (domain === null) return androidHash ?? undefined
  return [`@${domain}`, `#${code}`, ...(androidHash === null ? [] : [androidHash])].join(' ')
}

export interface AutofillTargets {
  readonly domain: string | null
  readonly androidHash: string | null
}

/** Its documentation does not say whether GSM-7 counts 7 or 8 bits a character. */
const longestForRetriever = 140

/** @param text of a code */
export function firstSentence(text: string): string {
  const [first = text] = text.split(betweenSentences)
  return first
}

/** Thai has no full stop: its sentences are lines. */
const betweenSentences = /(?<=[.।۔]) |(?<=。)(?!$)|\n/g

function own(object: Body, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}
