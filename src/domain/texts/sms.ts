import type { OutgoingSms } from '../delivery/delivery.ts'
import { type SmsWay, smsSteps } from '../delivery/way.ts'
import { preferredTags, regionalTag } from '../ground/languages.ts'
import type { Segments, SmsMessage } from '../ground/providers.ts'
import { type Brand, type BrandWithTexts, registrationOf } from './brand.ts'
import { type RegisteredTexts, registrationKeyOf, type TextsOfBrand } from './brand-texts.ts'
import { english } from './otp-texts.ts'
import {
  type AutofillTargets,
  boundText,
  builtInText,
  type NamedByOtp,
  type OtpValues,
  otpTemplateOf,
  type Rendered,
  refuseLongValue,
  renderOtp,
  type Template,
} from './templates.ts'
import { amountIn, isolated } from './transaction.ts'

// SMS of codes, notifications, queued jobs and test messages. `lang` is that of the request, as `readLang` returns it.

/** A text of an SMS. */
export interface SmsText {
  readonly lang: string
  readonly text: string
  /** Whether it is a text of the brand, and not a built-in one. */
  readonly isOwn: boolean
}

/**
 * The text of an SMS (design D47): for each preferred language the brand's, else the built-in one.
 * @param lang of the request, as `readLang` returns it
 */
export function smsText(brand: TextsOfBrand, template: Template, lang: string | undefined): SmsText {
  for (const tag of preferredTags(lang, brand.lang)) {
    const text = smsTextIn(tag, brand, template)
    if (text) return text
  }
  return { lang: template.lang ?? english.tag, text: template.text, isOwn: false }
}

function smsTextIn(lang: string, { texts }: TextsOfBrand, template: Template): SmsText | undefined {
  const own = texts.get({ templateKey: template.key, channel: 'SMS', lang })
  const text = own?.text ?? builtInText(template, lang)
  return text === undefined ? undefined : { lang, text, isOwn: own !== undefined }
}

/**
 * The text of an SMS on the registered-template route, and the key of its registration. Carriers compare the text with
 * the registered one, so a language other than the brand's counts only if it has a registration.
 */
export function registeredSmsText(
  brand: RegisteredTexts,
  template: Template,
  lang: string | undefined,
): SmsText & { readonly registrationKey: string } {
  for (const tag of preferredTags(lang, brand.lang)) {
    const registrationKey = registrationKeyOf(template.key, tag)
    if (Object.hasOwn(brand.registrations, registrationKey)) {
      const text = smsTextIn(tag, brand, template)
      if (text) return { registrationKey, ...text }
    }
    if (tag === brand.lang) break
  }
  return { registrationKey: template.key, ...smsText(brand, template, undefined) }
}

/** What an SMS says. */
export interface SmsContent {
  readonly text: string
  readonly lang?: SmsMessage['lang']
  readonly askedLang?: SmsMessage['askedLang']
  /** The digits of a one-time code. Absent: a notification. */
  readonly code?: string | null
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
  brand: Pick<Brand, 'slug' | 'displayName' | 'lang' | 'entityId' | 'registrations'>,
  { text, lang, askedLang, code = null, template }: SmsContent,
  { country, kind, rule, providers, paused }: SmsWay,
  { requestId, to, recipientHash, position, validitySeconds = null, expectsFeedback = false }: Sending,
): OutgoingSms {
  return {
    // Providers that report on it by this ID: reports then find the request.
    id: position === null ? requestId : `${requestId}.${position}`,
    requestId,
    brandSlug: brand.slug,
    brandName: brand.displayName,
    brandLang: brand.lang,
    to,
    recipientHash,
    position,
    text,
    lang,
    askedLang,
    code,
    template: template && {
      ...template,
      registration: registrationOf(brand, template.registrationKey),
    },
    country,
    kind,
    senderId: rule?.sender ?? null,
    validitySeconds,
    expectsFeedback,
    rule,
    steps: smsSteps(segmentsOf, { text, template }, providers),
    paused,
  }
}

/** @param isRegistered whether it may go as a registered template, which has the name of the brand (design D31) */
export function otpSms(
  brand: BrandWithTexts,
  values: OtpValues,
  lang: string | undefined,
  { segmentsOf, isRegistered }: { segmentsOf: (text: string) => Segments; isRegistered: boolean },
): SmsContent {
  const plain = plainOtp(brand, values, lang, segmentsOf)
  const { templateKey: key, text, variables } = plain.rendered
  const template = isRegistered
    ? registeredOtp(brand, { ...values, businessName: brand.displayName }, lang)
    : { key, registrationKey: key, lang: plain.lang, text, variables }
  return { text: plain.text, lang: plain.lang, askedLang: lang, code: values.code, template }
}

/** On the direct route. @returns `text` with its last line */
export function plainOtp(
  brand: TextsOfBrand & AutofillTargets,
  values: OtpValues,
  lang: string | undefined,
  segmentsOf: (text: string) => Segments,
): { readonly rendered: Rendered; readonly text: string; readonly lang: string } {
  const chosen = smsText(brand, otpTemplateOf(values), lang)
  const { transaction } = values
  const shown = transaction ? { ...values, transaction: isolated(transaction, chosen.text) } : values
  const rendered = renderOtp(shown, chosen, regionalTag(chosen.lang, lang, brand.lang))
  const text = boundText(rendered.text, values.code, brand, { segmentsOf, mayShorten: !chosen.isOwn })
  return { rendered, text, lang: chosen.lang }
}

/** On the registered-template route. */
function registeredOtp(brand: RegisteredTexts, values: OtpValues, lang: string | undefined) {
  const { registrationKey, ...chosen } = registeredSmsText(brand, otpTemplateOf(values), lang)
  const numbers = regionalTag(chosen.lang, lang, brand.lang)
  const { templateKey: key, text, variables } = renderOtp(values, chosen, numbers)
  return { key, registrationKey, lang: chosen.lang, text, variables }
}

/** @throws validation_error if carriers would reject the registered text with one of the values */
export function refuseLongValues(brand: BrandWithTexts, named: NamedByOtp, lang: string | undefined): void {
  const { loginId, transaction } = named
  if (loginId === undefined && !transaction) return
  const { registrationKey, text, lang: textLang } = registeredSmsText(brand, otpTemplateOf(named), lang)
  const numbers = regionalTag(textLang, lang, brand.lang)
  const values = { loginId, ...(transaction && { ...transaction, amount: amountIn(numbers, transaction) }) }
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || !text.includes(`{{${name}}}`)) continue
    const field = transaction ? `transaction.${name}` : name
    refuseLongValue(field, value, registrationOf(brand, registrationKey))
  }
}
