import { judged } from '../ground/body.ts'
import { Failure, invalid } from '../ground/failures.ts'
import { optionalWords } from '../ground/words.ts'
import type { BrandWithTexts } from './brand.ts'
import { type MailContent, otpMail } from './emails.ts'
import { notifySms, notifyTemplateOf } from './notify-texts.ts'
import { isOtpKey, otpKeysInWords } from './otp-texts.ts'
import { loginIdRule, type PreviewSettings, sampleCode, sampleFor } from './preview.ts'
import { otpSms, refuseLongLoginId, type SmsContent } from './sms.ts'
import { templateOf, templateVariables } from './templates.ts'

interface SampleRequest {
  readonly templateKey: string
  /** As `readLang` returns it. */
  readonly lang: string | undefined
  /** By name. Other variables get samples. */
  readonly values: Readonly<Record<string, string>>
}

/**
 * What a request with these values would send.
 * @returns `tooLong`: why carriers would reject the registered text
 * @throws validation_error, or invalid_template
 */
export function sampleSms(
  brand: BrandWithTexts,
  { templateKey, lang, values }: SampleRequest,
  settings: PreviewSettings,
): { readonly sms: SmsContent; readonly tooLong: Failure | undefined } {
  const template = notifyTemplateOf(brand, templateKey)
  if (template) {
    const { variables: rules } = template
    refuseOthers(values, rules)
    const all = Object.fromEntries(rules.map((rule) => [rule.name, values[rule.name] ?? sampleFor(rule)]))
    const variables = templateVariables(template, all, settings.isTopLevelDomain)
    const { content, tooLong } = notifySms(brand, template, variables, lang)
    return { sms: content, tooLong }
  }
  if (!templateOf(templateKey)) {
    throw new Failure('invalid_template', `Brand ${brand.slug} has no template ${templateKey}.`)
  }
  const { segmentsOf, otpTtlSeconds: lifetimeSeconds } = settings
  const loginId = loginIdOf(templateKey, values)
  const otp = { code: sampleCode, businessName: brand.displayName, lifetimeSeconds, loginId }
  return {
    sms: otpSms(brand, otp, lang, { segmentsOf, isRegistered: true }),
    tooLong:
      brand.dltEnabled && loginId !== undefined
        ? judged(() => {
            refuseLongLoginId(brand, loginId, lang)
            return undefined
          })
        : undefined,
  }
}

/** @throws validation_error */
export function sampleMail(
  brand: BrandWithTexts,
  { templateKey, lang, values }: SampleRequest,
  { otpTtlSeconds: lifetimeSeconds }: Pick<PreviewSettings, 'otpTtlSeconds'>,
): MailContent {
  if (!isOtpKey(templateKey)) throw invalid(`Only ${otpKeysInWords} have e-mail texts.`)
  const loginId = loginIdOf(templateKey, values)
  const otp = {
    ...{ code: sampleCode, businessName: undefined, lifetimeSeconds, loginId },
    to: 'jane@example.com',
  }
  return otpMail(brand, otp, lang)
}

function loginIdOf(templateKey: string, values: SampleRequest['values']): string | undefined {
  const hasLoginId = templateKey === 'LOGIN_OTP_WITH_ID'
  refuseOthers(values, hasLoginId ? [loginIdRule] : [])
  return hasLoginId
    ? optionalWords('loginId', values.loginId ?? sampleFor(loginIdRule), { max: 64 })
    : undefined
}

function refuseOthers(values: SampleRequest['values'], rules: readonly { readonly name: string }[]): void {
  const names = rules.map(({ name }) => name)
  const other = Object.keys(values).find((name) => !names.includes(name))
  if (other === undefined) return
  const known = names.length === 0 ? 'It has no values that can be given.' : `It has ${names.join(', ')}.`
  throw invalid(`The template has no value ${other}. ${known}`)
}
