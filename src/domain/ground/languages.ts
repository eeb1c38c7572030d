import type { Body } from './body.ts'

/**
 * The field `lang`: a tag, or an Accept-Language header with several. Returns the tags in canonical form, separated by
 * commas, the preferred one first. Undefined: absent, or no tag at all, which is no error (design D47).
 */
export function readLang({ lang }: Body): string | undefined {
  if (typeof lang !== 'string') return undefined
  return /[,;]/.test(lang) ? acceptedTags(lang) : canonicalTag(lang)
}

/** RFC 9110 section 12.5.4. `*` names no language. */
function acceptedTags(header: string): string | undefined {
  if (header.length > longestHeader) return undefined
  const accepted = header.split(',', mostAccepted).flatMap((range) => {
    const [, tag = '', weight = '1'] = languageRange.exec(range) ?? []
    const canonical = canonicalTag(tag)
    return canonical === undefined || Number(weight) === 0 ? [] : { canonical, weight: Number(weight) }
  })
  const sorted = accepted.sort((a, b) => b.weight - a.weight).map(({ canonical }) => canonical)
  return sorted.length === 0 ? undefined : [...new Set(sorted)].join()
}

const longestHeader = 1000
const mostAccepted = 20
const languageRange = /^\s*([a-z0-9-]+)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?$/i

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

export const wrongTag = 'The language must be a BCP 47 tag, such as hi or pt-BR.'

/**
 * The tags whose text is used, in order: each exact tag and its base language, the brand's, English (design D47).
 * @param lang as `readLang` returns it
 */
export function preferredTags(lang: string | undefined, brandLang = 'en'): readonly string[] {
  if ((lang ?? 'en') === 'en' && brandLang === 'en') return onlyEnglish
  const tags = (lang ?? brandLang).split(',').flatMap((tag) => [tag, tag.replace(/-.*/, '')])
  return [...new Set([...tags, brandLang, 'en'])]
}

/** The first requested tag of the language of a text, whose region the numbers in it have. */
export function regionalTag(textLang: string, lang: string | undefined, brandLang: string): string {
  const tags = [...(lang?.split(',') ?? []), brandLang]
  return tags.find((tag) => tag === textLang || tag.replace(/-.*/, '') === textLang) ?? textLang
}

const onlyEnglish = ['en']

/** @param tag in canonical form */
export function directionOf(tag: string): 'ltr' | 'rtl' {
  const script = canonicalTag(tag) && new Intl.Locale(tag).maximize().script
  return rightToLeft.has(script ?? '') ? 'rtl' : 'ltr'
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
