import { Failure, invalid } from '../ground/failures.ts'
import { readLang } from '../ground/languages.ts'
import type { Registration, Segments } from '../ground/providers.ts'
import { type IsTopLevelDomain, optionalWords } from '../ground/words.ts'
import { type BrandWithTexts, registrationOf } from './brand.ts'
import { filledText, notifyTextOf, ownTemplates } from './notify-texts.ts'
import { isOtpKey, type OtpKey, otpTextOf, smsTextOf } from './otp-texts.ts'
import { plainOtp } from './sms.ts'
import { type Template, templates, templateVariables } from './templates.ts'
import type { TextBeforeCode } from './text-problems.ts'
import { sampleOf, type VariableRule } from './variables.ts'

export interface Preview {
  readonly templateKey: string
  readonly audience: Template['audience']
  readonly template: string
  /** Of `template`. */
  readonly lang: string
  /** Whether `template` is a text of the brand, and not a built-in one. */
  readonly isOwn: boolean
  readonly variables: readonly {
    readonly name: string
    readonly value: string
    readonly description: string
  }[]
  /** Null: a value is invalid, as `problem` describes. */
  readonly text: string | null
  readonly problem: string | null
  readonly segments: Segments | null
  readonly characters: number
  readonly registration: Registration
}

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
}

export const loginIdRule: VariableRule = { name: 'loginId', type: 'text', description: '1 to 64 characters' }
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

export function previewsOf(brand: BrandWithTexts, settings: PreviewSettings): Preview[] {
  return [...templates, ...ownTemplates(brand)]
    .filter(({ key }) => brand.loginIdEnabled || key !== 'LOGIN_OTP_WITH_ID')
    .map((template) => previewOf(brand, template, {}, settings))
}

export function previewOf(
  brand: BrandWithTexts,
  template: Template,
  given: Readonly<Record<string, string>>,
  settings: PreviewSettings,
): Preview {
  const { segmentsOf, isTopLevelDomain } = settings
  const { key: templateKey, audience } = template
  const otpRules = templateKey === 'LOGIN_OTP' ? [code, lang] : [code, loginIdRule, lang]
  const hasOwnLang = template.variables.some(({ name }) => name === lang.name)
  const notifyRules = hasOwnLang ? template.variables : [...template.variables, lang]
  const isOtp = isOtpKey(templateKey)
  const variables = (isOtp ? otpRules : notifyRules).map((rule) => {
    const { name, description } = rule
    return { name, value: given[name] ?? (rule === lang ? brand.lang : sampleFor(rule)), description }
  })
  const registration = registrationOf(brand, templateKey)
  const source = isOtp
    ? otpSource(brand, templateKey, given)
    : notifyTextOf(brand, template, hasOwnLang ? undefined : readLang(given))
  const { lang: textLang, text: wording, isOwn } = source
  const about = { templateKey, audience, template: wording, lang: textLang, isOwn, variables, registration }
  const values = Object.fromEntries(variables.map(({ name, value }) => [name, value]))
  try {
    const text = isOtp
      ? otpSms(brand, values, settings)
      : filledText(template, source, templateVariables(template, values, isTopLevelDomain), brand.displayName)
          .text
    return { ...about, text, problem: null, segments: segmentsOf(text), characters: [...text].length }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { ...about, text: null, problem: error.message, segments: null, characters: 0 }
  }
}

function otpSource(brand: BrandWithTexts, key: OtpKey, given: Readonly<Record<string, string>>) {
  const chosen = otpTextOf(brand, key, readLang(given))
  return { text: smsTextOf(chosen, key), lang: chosen.lang, isOwn: chosen.own !== undefined }
}

function sixDigits(otp = ''): string {
  if (!/^[0-9]{6}$/.test(otp)) throw invalid('otp must be six digits')
  return otp
}

function otpSms(
  brand: BrandWithTexts,
  values: Readonly<Record<string, string>>,
  { segmentsOf, otpTtlSeconds: lifetimeSeconds }: PreviewSettings,
): string {
  const loginId = optionalWords('loginId', values.loginId, { max: 64 })
  const about = { code: sixDigits(values.otp), businessName: brand.displayName, lifetimeSeconds }
  return plainOtp(brand, { ...about, loginId }, readLang(values), segmentsOf).text
}
