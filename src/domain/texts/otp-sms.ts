import type { Segments } from '../ground/providers.ts'
import { type BrandWithTexts, registrationOf } from './brand.ts'
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

// The SMS of a code, for requests, previews and test messages. `lang` is that of the request, as `readLang` returns it.

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
export function registeredOtp(brand: RegisteredTexts, values: OtpValues, lang: string | undefined) {
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
