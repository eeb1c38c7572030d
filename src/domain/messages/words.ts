import { optionalText, type TextRule } from '../body.ts'
import { invalid } from '../failures.ts'

// What a caller's words may not have in a message that carries the brand's name.

/** Whether a label of a host name, in lower case, is a delegated top-level domain. */
export type IsTopLevelDomain = (label: string) => boolean

/** A scheme, `www.`, or a host name under a delegated top-level domain (design D10). "St.John" and "A.Kumar" are none. */
export function hasUrl(text: string, isTopLevelDomain: IsTopLevelDomain): boolean {
  const folded = fold(text)
  if (prefix.test(folded) || ipAddressWithPath.test(folded)) return true
  if (!folded.includes('.')) return false
  return folded.match(lastLabels)?.some(isTopLevelDomain) ?? false
}

/** The businessName and loginId of a code (design D31): names such as "Booking.com" and e-mail addresses are allowed. */
export function optionalWords(name: string, value: unknown, rule: TextRule): string | undefined {
  const words = optionalText(name, value, rule)
  if (words === undefined) return undefined
  const folded = fold(words)
  if ([prefix, hostWithPath, ipAddressWithPath].some((shape) => shape.test(folded))) {
    throw invalid(`${name} must not contain a URL`)
  }
  if (mixesScripts(words)) throw invalid(`${name} ${mixedScripts}`)
  return words
}

/** Whether a word has letters of two of the scripts that look alike (UTS 39, design D31). */
export function mixesScripts(text: string): boolean {
  if (ascii.test(text)) return false
  return (text.match(wordsOfText) ?? []).some(
    (word) => scripts.filter((script) => script.test(word)).length > 1,
  )
}

export const mixedScripts = 'must not mix Latin, Cyrillic and Greek letters in one word'

const ascii = /^[\0-\x7f]*$/
const scripts = [/\p{Script=Latin}/u, /\p{Script=Cyrillic}/u, /\p{Script=Greek}/u]

/** Joiners are invisible: they do not end a word. */
const wordsOfText = /[\p{L}\p{M}\p{N}\p{Pc}\u200C\u200D]+/gu

/** As a browser or phone reads a host name (UTS 46): other forms of letters and dots, and what is ignored. */
function fold(text: string): string {
  if (ascii.test(text)) return text.toLowerCase()
  return text
    .normalize('NFKC')
    .replace(/\u200C|\u200D|\p{Variation_Selector}/gu, '')
    .replaceAll('\u3002', '.')
    .toLowerCase()
}

const prefix = /[a-z][a-z0-9+.-]*:\/\/|\bwww\./u
const hostWithPath = /[\p{L}\p{N}-]+\.\p{L}{2,}(?::\d+)?\/\S/u
const ipAddressWithPath = /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\/\S/u

/** The last label of each host name of two or more. */
const lastLabels =
  /(?<=[\p{L}\p{M}\p{N}-]\.)[\p{L}\p{M}\p{N}]+(?:-+[\p{L}\p{M}\p{N}]+)*(?!-*[\p{L}\p{M}\p{N}]|\.[\p{L}\p{M}\p{N}])/gu
