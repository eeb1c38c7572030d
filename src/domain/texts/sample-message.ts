import { judged } from '../ground/body.ts'
import { Failure, invalid } from '../ground/failures.ts'
import type { BrandWithTexts } from './brand.ts'
import { type MailContent, otpMail } from './emails.ts'
import { notifySms, notifyTemplateOf } from './notify-texts.ts'
import { isOtpKey, otpKeysInWords } from './otp-texts.ts'
import { namedIn, otpRules, type PreviewSettings, sampleCode, sampleFor } from './preview.ts'
import { otpSms, refuseLongValues, type SmsContent } from './sms.ts'
import { templateVariables } from './templates.ts'

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
  if (!isOtpKey(templateKey)) {
    throw new Failure('invalid_template', `Brand ${brand.slug} has no template ${templateKey}.`)
  }
  const { segmentsOf, otpTtlSeconds: lifetimeSeconds } = settings
  refuseOthers(values, otpRules[templateKey])
  const named = namedIn(templateKey, values, settings)
  const otp = { code: sampleCode, businessName: brand.displayName, lifetimeSeconds, ...named }
  return {
    sms: otpSms(brand, otp, lang, { segmentsOf, isRegistered: true }),
    tooLong: brand.dltEnabled
      ? judged(() => {
          refuseLongValues(brand, named, lang)
          return undefined
        })
      : undefined,
  }
}

/** @throws validation_error */
export function sampleMail(
  brand: BrandWithTexts,
  { templateKey, lang, values }: SampleRequest,
  settings: Pick<PreviewSettings, 'otpTtlSeconds' | 'isTopLevelDomain'>,
): MailContent {
  if (!isOtpKey(templateKey)) throw invalid(`Only ${otpKeysInWords} have e-mail texts.`)
  refuseOthers(values, otpRules[templateKey])
  const named = namedIn(templateKey, values, settings)
  const about = { code: sampleCode, businessName: undefined, lifetimeSeconds: settings.otpTtlSeconds }
  return otpMail(brand, { ...about, ...named, to: named.transaction ? undefined : 'jane@example.com' }, lang)
}

function refuseOthers(values: SampleRequest['values'], rules: readonly { readonly name: string }[]): void {
  const names = rules.map(({ name }) => name)
  const other = Object.keys(values).find((name) => !names.includes(name))
  if (other === undefined) return
  const known = names.length === 0 ? 'It has no values that can be given.' : `It has ${names.join(', ')}.`
  throw invalid(`The template has no value ${other}. ${known}`)
}
