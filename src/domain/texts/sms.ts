import type { OutgoingSms } from '../delivery/delivery.ts'
import { messageId } from '../delivery/delivery-reports.ts'
import { type SmsWay, smsSteps } from '../delivery/way.ts'
import type { Segments, SmsMessage } from '../ground/providers.ts'
import { type Brand, type BrandWithTexts, registrationOf } from './brand.ts'
import type { RegisteredTexts, TextsOfBrand } from './brand-texts.ts'
import { otpTextOf, registeredOtpText } from './otp-texts.ts'
import {
  type AutofillTargets,
  boundText,
  type OtpValues,
  otpKeyOf,
  type Rendered,
  refuseLongValue,
  renderOtp,
} from './templates.ts'

// SMS of codes, notifications, queued jobs and test messages. `lang` is that of the request, as `readLang` returns it.

/** What an SMS says. */
export interface SmsContent {
  readonly text: string
  readonly lang?: SmsMessage['lang']
  /** Null: text of the caller. */
  readonly template:
    | (Omit<NonNullable<SmsMessage['template']>, 'registration'> & {
        readonly registrationKey: string
      })
    | null
}

type Sending = Pick<SmsMessage, 'requestId' | 'to' | 'recipientHash' | 'position'> &
  Partial<Pick<SmsMessage, 'validitySeconds' | 'expectsFeedback'>>

/** An SMS with this content, which goes this way. */
export function smsOf(
  { segmentsOf }: { readonly segmentsOf: (text: string) => Segments },
  brand: Pick<Brand, 'slug' | 'displayName' | 'entityId' | 'registrations'>,
  { text, lang, template }: SmsContent,
  { country, rule, providers }: SmsWay,
  { requestId, to, recipientHash, position, validitySeconds = null, expectsFeedback = false }: Sending,
): OutgoingSms {
  return {
    id: messageId(requestId, position),
    requestId,
    brandSlug: brand.slug,
    brandName: brand.displayName,
    to,
    recipientHash,
    position,
    text,
    lang,
    template: template && {
      ...template,
      registration: registrationOf(brand, template.registrationKey),
    },
    country,
    senderId: rule?.sender ?? null,
    validitySeconds,
    expectsFeedback,
    rule,
    steps: smsSteps(segmentsOf, { text, template }, providers),
  }
}

/** @param isRegistered whether it may go as a registered template, which has the name of the brand (design D31) */
export function otpSms(
  brand: BrandWithTexts,
  values: OtpValues,
  lang: string | undefined,
  { segmentsOf, isRegistered }: { segmentsOf: (text: string) => Segments; isRegistered: boolean },
): SmsContent {
  const { rendered, ...plain } = plainOtp(brand, values, lang, segmentsOf)
  const { templateKey: key, text, variables } = rendered
  const template = isRegistered
    ? registeredOtp(brand, { ...values, businessName: brand.displayName }, lang)
    : { key, registrationKey: key, lang: plain.lang, text, variables }
  return { ...plain, template }
}

/** On the direct route. @returns `text` with its last line */
export function plainOtp(
  brand: TextsOfBrand & AutofillTargets,
  values: OtpValues,
  lang: string | undefined,
  segmentsOf: (text: string) => Segments,
): { readonly rendered: Rendered; readonly text: string; readonly lang: string } {
  const chosen = otpTextOf(brand, otpKeyOf(values.loginId), lang)
  const rendered = renderOtp(values, chosen)
  const mayShorten = chosen.own === undefined
  const text = boundText(rendered.text, values.code, brand, { segmentsOf, mayShorten })
  return { rendered, text, lang: chosen.lang }
}

/** On the registered-template route. */
function registeredOtp(brand: RegisteredTexts, values: OtpValues, lang: string | undefined) {
  const { registrationKey, text: chosen } = registeredOtpText(brand, otpKeyOf(values.loginId), lang)
  const { templateKey: key, text, variables } = renderOtp(values, chosen)
  return { key, registrationKey, lang: chosen.lang, text, variables }
}

/** @throws validation_error if carriers would reject the registered text with it */
export function refuseLongLoginId(brand: BrandWithTexts, loginId: string, lang: string | undefined): void {
  const { registrationKey, text } = registeredOtpText(brand, otpKeyOf(loginId), lang)
  if (text.own && !text.own.text.includes('{{loginId}}')) return
  refuseLongValue('loginId', loginId, registrationOf(brand, registrationKey))
}
