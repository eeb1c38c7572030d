import { type Brand, registrationOf } from '../brands/brand.ts'
import { Failure, invalid } from '../failures.ts'
import { readLang } from './languages.ts'
import { otpLanguageOf, otpTextFor } from './otp-texts.ts'
import type { Registration, Segments } from './providers.ts'
import {
  boundText,
  render,
  renderOtp,
  type Template,
  templates,
  templateVariables,
  type VariableRule,
} from './templates.ts'
import { type IsTopLevelDomain, optionalWords } from './words.ts'

export interface Preview {
  readonly templateKey: string
  readonly audience: Template['audience']
  readonly template: string
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
}

const samples: Readonly<Record<string, string>> = {
  otp: '493027',
  loginId: 'jane.doe',
  customerName: 'Jane Doe',
  orderId: 'A-1042',
  orderDate: '2026-11-21',
  deliveryDateTime: '2026-11-21T14:30',
  lang: 'en',
}

const loginId: VariableRule = { name: 'loginId', description: '1 to 64 characters' }
const code: VariableRule = { name: 'otp', description: 'six digits' }
const lang: VariableRule = { name: 'lang', description: 'the language that a request asks for, such as hi' }

export function previewsOf(brand: Brand, settings: PreviewSettings): Preview[] {
  return templates
    .filter(({ key }) => brand.loginIdEnabled || key !== 'LOGIN_OTP_WITH_ID')
    .map((template) => previewOf(brand, template, {}, settings))
}

export function previewOf(
  brand: Brand,
  template: Template,
  given: Readonly<Record<string, string>>,
  settings: PreviewSettings,
): Preview {
  const { segmentsOf, isTopLevelDomain } = settings
  const { key: templateKey, audience } = template
  const otpKey = templateKey === 'LOGIN_OTP_WITH_ID' ? templateKey : 'LOGIN_OTP'
  const otpRules = otpKey === 'LOGIN_OTP' ? [code, lang] : [code, loginId, lang]
  const source = audience === 'notify' ? template.text : otpTextFor(readLang(given), otpKey)
  const variables = (audience === 'notify' ? template.variables : otpRules).map(({ name, description }) => {
    return { name, value: given[name] ?? samples[name] ?? '', description }
  })
  const registration = registrationOf(brand, templateKey)
  const about = { templateKey, audience, template: source, variables, registration }
  const values = Object.fromEntries(variables.map(({ name, value }) => [name, value]))
  try {
    const text =
      audience === 'notify'
        ? render(template, {
            ...templateVariables(template, values, isTopLevelDomain),
            businessName: brand.displayName,
          }).text
        : otpText(brand, values, settings)
    return { ...about, text, problem: null, segments: segmentsOf(text), characters: [...text].length }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { ...about, text: null, problem: error.message, segments: null, characters: 0 }
  }
}

function otpText(
  brand: Brand,
  values: Readonly<Record<string, string>>,
  { segmentsOf, otpTtlSeconds }: PreviewSettings,
): string {
  const { otp = '', loginId: login } = values
  if (!/^[0-9]{6}$/.test(otp)) throw invalid('otp must be six digits')
  const loginIdGiven = optionalWords('loginId', login, { max: 64 })
  const about = { code: otp, businessName: brand.displayName, lifetimeSeconds: otpTtlSeconds }
  const { text } = renderOtp({ ...about, loginId: loginIdGiven }, otpLanguageOf(readLang(values)))
  return boundText(text, otp, brand.domain, segmentsOf)
}
