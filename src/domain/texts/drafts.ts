import { canonicalTag, wrongTag } from '../ground/languages.ts'
import type { BrandWithTexts } from './brand.ts'
import {
  type BrandText,
  BrandTexts,
  type DeclaredVariable,
  isSameTarget,
  type TextTarget,
} from './brand-texts.ts'
import { lintText } from './dlt.ts'
import { introOf } from './emails.ts'
import { templateIn } from './notify-texts.ts'
import { isOtpKey, otpLanguageOf } from './otp-texts.ts'
import { type PreviewSettings, previewOf } from './preview.ts'
import { sampleMail } from './sample-message.ts'
import { templateOf, wholeMinutes } from './templates.ts'
import { declarationProblems, textProblems } from './text-problems.ts'

/** Empty: none. */
export type TextParts = Readonly<Record<'subject' | 'text' | 'html', string>>

/** A text that is being written. */
interface TextDraft extends TextTarget, TextParts {
  /** Of a brand's own template. */
  readonly variables: readonly DeclaredVariable[]
}

export type DraftPreview = ReturnType<typeof draftPreview>

/** The built-in text as a brand's text may have it: with `{{minutes}}`. Null: the template is the brand's own. */
export function builtInParts(
  { templateKey, channel, lang }: TextTarget,
  { otpTtlSeconds }: Pick<PreviewSettings, 'otpTtlSeconds'>,
): TextParts | null {
  const template = templateOf(templateKey)
  if (!template) return null
  if (!isOtpKey(templateKey)) return { subject: '', text: template.text, html: '' }
  const language = otpLanguageOf(lang)
  const minutes = wholeMinutes(otpTtlSeconds)
  const inMinutes = language.lifetime(Number(minutes) * 60).replace(minutes, '{{minutes}}')
  const [subject, text] =
    channel === 'EMAIL'
      ? [
          language.subject,
          [...introOf(templateKey, language), language.expiry, language.unrequested].join('\n\n'),
        ]
      : ['', language[templateKey]]
  return { subject, text: text.replaceAll('{{lifetime}}', inMinutes), html: '' }
}

/** The brand with this text in place of the published one. */
export function withText(
  brand: BrandWithTexts,
  text: BrandText,
  variables: readonly DeclaredVariable[],
): BrandWithTexts {
  const others = brand.texts.all.filter((each) => !isSameTarget(each, text))
  const declared = new Map([...brand.texts.variables, [text.templateKey, variables]])
  return { ...brand, texts: new BrandTexts([text, ...others], declared) }
}

/**
 * @param given sample values by name
 * @returns `problems`: why the draft cannot be stored; then there is no message. `findings`: null without DLT
 */
export function draftPreview(
  brand: BrandWithTexts,
  draft: TextDraft,
  given: Readonly<Record<string, string>>,
  settings: PreviewSettings,
) {
  const { templateKey, subject, text, html, channel, variables, lang } = draft
  if (text.trim() === '') return { problems: ['The text is empty.'], sms: null, mail: null, findings: null }
  const stored = { templateKey, channel, lang, subject: subject || null, text, html: html || null }
  const problems = [
    ...(variables.length > 0 ? declarationProblems(templateKey, variables) : []),
    ...(canonicalTag(lang) ? [] : [wrongTag]),
    ...textProblems(stored, variables, settings.textBeforeCode),
  ]
  const shown = withText(brand, { ...stored, version: 1, updatedAt: 0 }, variables)
  const isValid = problems.length === 0
  const mail =
    isValid && channel === 'EMAIL' ? sampleMail(shown, { templateKey, lang, values: {} }, settings) : null
  const template = templateIn(shown, templateKey)
  const isSms = isValid && channel === 'SMS' && template
  // In the brand's language, since the template may have a variable `lang`.
  const sms = isSms ? previewOf({ ...shown, lang }, template, given, settings) : null
  const findings = sms && brand.dltEnabled ? lintText({ ...draft, brand: shown }, settings) : null
  return { problems, sms, mail, findings }
}
