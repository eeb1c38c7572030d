import { preferredTags } from '../ground/languages.ts'
import { type BrandWithTexts, ownTemplateKeys } from './brand.ts'
import type { BrandDraft, BrandText, TextTarget } from './brand-texts.ts'
import { lintText } from './dlt.ts'
import { builtInParts } from './drafts.ts'
import { isOtpKey, languageByTag, otpLanguages } from './otp-texts.ts'
import type { PreviewSettings } from './preview.ts'
import { templateKeys, templateOf } from './templates.ts'
import { textProblems } from './text-problems.ts'

/** A template in a language, as requests get it. */
export interface TextState extends TextTarget {
  /** Null: built in, or in another language. */
  readonly own: BrandText | null
  readonly draft: BrandDraft | null
  /** The language of the text that requests get. Null: there is none yet. */
  readonly usedLang: string | null
  /** Why the brand's text cannot be sent, or what carriers would reject. */
  readonly problems: readonly string[]
}

export interface TextMatrix {
  /** That of the brand, then by tag. */
  readonly languages: readonly string[]
  /** Of each template and channel, a state for each language. */
  readonly rows: readonly (readonly TextState[])[]
}

/** The templates of a brand in the languages that it has texts or drafts of. @param added one more language */
export function textMatrix(brand: BrandWithTexts, settings: PreviewSettings, added = brand.lang): TextMatrix {
  const { texts, lang, loginIdEnabled } = brand
  const written: readonly TextTarget[] = [...texts.all, ...texts.drafts]
  const isShown = (key: string) => key !== 'LOGIN_OTP_WITH_ID' || loginIdEnabled
  const keys = [
    ...templateKeys.filter(isShown),
    ...ownTemplateKeys(brand),
    ...written.map((each) => each.templateKey),
  ]
  const others = new Set([added, ...written.map((each) => each.lang)].filter((tag) => tag !== lang))
  const languages = [lang, ...[...others].sort()]
  const rows = [...new Set(keys)].flatMap((templateKey) =>
    (['SMS', 'EMAIL'] as const)
      .filter((channel) => channel === 'SMS' || isOtpKey(templateKey))
      .map((channel) =>
        languages.map((tag) => textState(brand, { templateKey, channel, lang: tag }, settings)),
      ),
  )
  return { languages, rows }
}

export function textState(brand: BrandWithTexts, target: TextTarget, settings: PreviewSettings): TextState {
  const { texts } = brand
  const { templateKey, channel, lang } = target
  const own = texts.get(target) ?? null
  const isThere = (tag: string) =>
    texts.get({ ...target, lang: tag }) !== undefined || hasBuiltIn(templateKey, tag)
  const usedLang =
    preferredTags(lang, brand.lang).find(isThere) ??
    texts.all.find((each) => each.templateKey === templateKey && each.channel === channel)?.lang ??
    null
  const text =
    own?.text ?? (usedLang === lang && templateOf(templateKey) ? builtInParts(target, settings)?.text : null)
  const isLinted = brand.dltEnabled && channel === 'SMS' && text
  const findings = isLinted ? lintText({ brand, templateKey, lang, text }, settings) : []
  return {
    ...target,
    own,
    draft: texts.draft(target) ?? null,
    usedLang,
    problems: [
      ...(own ? textProblems(own, texts.variables.get(templateKey) ?? [], settings.textBeforeCode) : []),
      ...findings.filter(({ level }) => level === 'error').map(({ message }) => message),
    ],
  }
}

function hasBuiltIn(templateKey: string, tag: string): boolean {
  return isOtpKey(templateKey)
    ? languageByTag.has(tag)
    : tag === 'en' && templateOf(templateKey) !== undefined
}

/** The languages that a brand can get a text of with one choice: the built-in ones and its own. */
export function knownLanguages({ lang, texts }: BrandWithTexts): readonly string[] {
  return [...new Set([lang, ...otpLanguages.map(({ tag }) => tag), ...texts.all.map((each) => each.lang)])]
}

const languageNames = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'code' })

/** In English, such as `Brazilian Portuguese`. */
export function languageName(lang: string): string {
  try {
    return languageNames.of(lang) ?? lang
  } catch {
    return lang
  }
}
