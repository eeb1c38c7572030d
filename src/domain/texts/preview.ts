import { Failure, invalid } from '../ground/failures.ts'
import { readLang } from '../ground/languages.ts'
import type { Segments } from '../ground/providers.ts'
import { type IsTopLevelDomain, optionalWords } from '../ground/words.ts'
import type { BrandWithTexts } from './brand.ts'
import { filledText, ownTemplates } from './notify-texts.ts'
import { isOtpKey, type OtpKey } from './otp-texts.ts'
import { plainOtp, type SmsText, smsText } from './sms.ts'
import { type NamedByOtp, type Template, templates, templateVariables } from './templates.ts'
import type { TextBeforeCode } from './text-problems.ts'
import { readTransaction, transactionRules } from './transaction.ts'
import { sampleOf, type VariableRule } from './variables.ts'

export type Preview = ReturnType<typeof previewOf>

export interface PreviewSettings {
  readonly segmentsOf: (text: string) => Segments
  readonly otpTtlSeconds: number
  readonly isTopLevelDomain: IsTopLevelDomain
  readonly textBeforeCode: TextBeforeCode
}

/** It is stored nowhere, so no request can verify it. */
export const sampleCode = '123456'

const samples: Readonly<Record<string, string>> = {
  otp: sampleCode,
  loginId: 'jane.doe',
  orderId: 'A-1042',
  amount: '1250.00',
  currency: 'INR',
  payee: 'City Water',
}

const loginIdRule: VariableRule = { name: 'loginId', type: 'text', description: '1 to 64 characters' }
const code: VariableRule = { name: 'otp', type: 'text', description: 'six digits' }
const lang: VariableRule = {
  name: 'lang',
  type: 'text',
  description: 'the language that a request asks for, such as hi',
}

/** Declared variables have a maximum, and may have the name of a built-in one with another type. */
export function sampleFor(rule: VariableRule): string {
  return (rule.max === undefined ? samples[rule.name] : undefined) ?? sampleOf(rule)
}

/** What callers choose of the texts of codes. */
export const otpRules: Readonly<Record<OtpKey, readonly VariableRule[]>> = {
  LOGIN_OTP: [],
  LOGIN_OTP_WITH_ID: [loginIdRule],
  TRANSACTION_OTP: Object.values(transactionRules),
}

/** @param values by name. Others get samples. @throws validation_error */
export function namedIn(
  key: OtpKey,
  values: Readonly<Record<string, string>>,
  { isTopLevelDomain }: Pick<PreviewSettings, 'isTopLevelDomain'>,
): NamedByOtp {
  const named = Object.fromEntries(
    otpRules[key].map((rule) => [rule.name, values[rule.name] ?? sampleFor(rule)]),
  )
  return key === 'TRANSACTION_OTP'
    ? { transaction: readTransaction(named, isTopLevelDomain) }
    : { loginId: optionalWords('loginId', named.loginId, { max: 64 }) }
}

export function previewsOf(brand: BrandWithTexts, settings: PreviewSettings): Preview[] {
  return [...templates, ...ownTemplates(brand)]
    .filter(({ key }) => brand.loginIdEnabled || key !== 'LOGIN_OTP_WITH_ID')
    .map((template) => previewOf(brand, template, {}, settings))
}

/** The text of a template with sample values, or the `problem` of a given value. */
export function previewOf(
  brand: BrandWithTexts,
  template: Template,
  given: Readonly<Record<string, string>>,
  settings: PreviewSettings,
) {
  const { key: templateKey } = template
  const otpKey = isOtpKey(templateKey) ? templateKey : undefined
  const rules = otpKey ? [code, ...otpRules[otpKey]] : template.variables
  const hasOwnLang = rules.some(({ name }) => name === lang.name)
  const variables = (hasOwnLang ? rules : [...rules, lang]).map((rule) => {
    const { name, description } = rule
    return { name, value: given[name] ?? (rule === lang ? brand.lang : sampleFor(rule)), description }
  })
  const source = smsText(brand, template, hasOwnLang ? undefined : readLang(given))
  const about = { templateKey, lang: source.lang, isOwn: source.isOwn, variables }
  const values = Object.fromEntries(variables.map(({ name, value }) => [name, value]))
  try {
    const text = otpKey
      ? otpSms(brand, otpKey, values, settings)
      : notifySms(brand, template, source, values, settings)
    return { ...about, text, problem: null, segments: settings.segmentsOf(text) }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { ...about, text: null, problem: error.message, segments: null }
  }
}

function notifySms(
  brand: BrandWithTexts,
  template: Template,
  source: SmsText,
  values: Readonly<Record<string, string>>,
  { isTopLevelDomain }: PreviewSettings,
): string {
  const variables = templateVariables(template, values, isTopLevelDomain)
  return filledText(template, source, variables, brand.displayName).text
}

function otpSms(
  brand: BrandWithTexts,
  key: OtpKey,
  { otp = '', ...values }: Readonly<Record<string, string>>,
  settings: PreviewSettings,
): string {
  const named = namedIn(key, values, settings)
  if (!/^[0-9]{6}$/.test(otp)) throw invalid('otp must be six digits')
  const { segmentsOf, otpTtlSeconds: lifetimeSeconds } = settings
  const about = { code: otp, businessName: brand.displayName, lifetimeSeconds, ...named }
  return plainOtp(brand, about, readLang(values), segmentsOf).text
}
