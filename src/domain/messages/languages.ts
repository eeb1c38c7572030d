import type { Body } from '../body.ts'

/** The field `lang`, in its canonical form. Undefined: absent, or not a language tag, which is no error (design D47). */
export function readLang({ lang }: Body): string | undefined {
  return typeof lang === 'string' ? canonicalTag(lang) : undefined
}

/** Undefined: not a BCP 47 tag. */
export function canonicalTag(lang: string): string | undefined {
  if (lang.length > longestTag) return undefined
  try {
    return Intl.getCanonicalLocales(lang)[0]
  } catch {
    return undefined
  }
}

const longestTag = 64

/** The tags whose text is used, in order: the exact tag, its base language, the brand's, English (design D47). */
export function preferredTags(lang: string | undefined, brandLang = 'en'): readonly string[] {
  if (lang === undefined && brandLang === 'en') return onlyEnglish
  const [base = brandLang] = (lang ?? brandLang).split('-')
  return [...new Set([lang ?? brandLang, base, brandLang, 'en'])]
}

const onlyEnglish = ['en']

/** @param tag in canonical form */
export function directionOf(tag: string): 'ltr' | 'rtl' {
  return rightToLeft.has(new Intl.Locale(tag).maximize().script ?? '') ? 'rtl' : 'ltr'
}

/** Scripts in use, by ISO 15924. */
const rightToLeft: ReadonlySet<string> = new Set([
  'Arab',
  'Aran',
  'Hebr',
  'Thaa',
  'Syrc',
  'Nkoo',
  'Adlm',
  'Rohg',
  'Mand',
  'Samr',
  'Yezi',
  'Mend',
])
