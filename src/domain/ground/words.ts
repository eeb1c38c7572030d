import { optionalText, type TextRule } from './body.ts'
import { invalidField } from './failures.ts'

export type IsTopLevelDomain = (label: string) => boolean

/** The codes of ISO 4217 in use, of money alone: no metals and no codes for tests. `Intl` also knows withdrawn codes. */
export const currencies: ReadonlySet<string> = new Set(
  `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG
HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK
MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR
SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW
UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG`.split(/\s/),
)

/** Design D10. Host names need an existing top-level domain, unlike "St.John" or "A.Kumar". */
export function hasUrl(text: string, isTopLevelDomain: IsTopLevelDomain): boolean {
  const folded = fold(text)
  if (prefix.test(folded) || ipAddressWithPath.test(folded)) return true
  if (!folded.includes('.')) return false
  return folded.matchAll(lastLabels).some(([, lastLabel = '']) => isTopLevelDomain(lastLabel))
}

/** businessName and loginId (design D31). Names such as "Booking.com" and e-mail addresses are allowed. */
export function optionalWords(name: string, value: unknown, rule: TextRule): string | undefined {
  const words = optionalText(name, value, rule)
  if (words === undefined) return undefined
  const folded = fold(words)
  if ([prefix, hostWithPath, ipAddressWithPath].some((shape) => shape.test(folded))) {
    throw invalidField(name, 'must not contain a URL.')
  }
  const fault = scriptFault(words)
  if (fault !== undefined) throw invalidField(name, fault)
  return words
}

/** Whether what follows the text, without a space, continues a URL. */
export function endsInUrl(text: string): boolean {
  const word = fold(/\S*$/.exec(text)?.[0] ?? '')
  return prefix.test(`${word}0`) || beginningOfPath.test(word)
}

/** Of a word that mixes scripts with similar letters (UTS 39, design D31), without the name; undefined: there is none. */
export function scriptFault(text: string): string | undefined {
  if (ascii.test(text)) return undefined
  const isMixed = (word: string) => scripts.filter((script) => script.test(word)).length > 1
  // NFKC maps letters such as 𝐇 and Ⓗ to H, and the micro sign to a Greek letter.
  const plain = text.replaceAll('\u00b5', '').normalize('NFKC')
  if (!plain.match(wordsOfText)?.some(isMixed)) return undefined
  return 'must not mix letters of several alphabets, such as Latin and Cyrillic, in one word.'
}

const ascii = /^[\0-\x7f]*$/
/** Scripts with letters that look like those of another. */
const scripts = ['Latin', 'Cyrillic', 'Greek', 'Cherokee', 'Lisu', 'Armenian', 'Coptic'].map(
  (name) => new RegExp(`\\p{Script=${name}}`, 'u'),
)

const wordsOfText = /[\p{L}\p{M}\p{N}\p{Pc}\u200C\u200D]+/gu

/** Maps text as browsers map host names (UTS 46). */
function fold(text: string): string {
  if (ascii.test(text)) return text.toLowerCase()
  return text
    .normalize('NFKC')
    .replace(/\u200C|\u200D|\p{Variation_Selector}/gu, '')
    .replaceAll('\u3002', '.')
    .toLowerCase()
}

/** Equal for names that people read as the same: without case, spaces, punctuation and accents, in Latin letters. */
export function lookalikeKey(name: string): string {
  const letters = fold(
    fold(name)
      .normalize('NFD')
      .replace(/[\u0300-\u036f\u2800\s\p{P}\p{Default_Ignorable_Code_Point}]/gu, ''),
  )
  const latinLetters = ascii.test(letters)
    ? letters
    : Array.from(letters, (letter) => latin.get(letter) ?? letter).join('')
  // Many fonts draw I, l, 1 and |, O and 0, and rn and m alike.
  return latinLetters.replace(/[i1|]/g, 'l').replaceAll('0', 'o').replaceAll('rn', 'm')
}

/** Letters whose lower or upper case looks like a Latin letter of ASCII. */
const latin: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ а: 'a', в: 'b', е: 'e', к: 'k', м: 'm', н: 'h', о: 'o', р: 'p', с: 'c', т: 't', у: 'y', х: 'x' },
    ...{ і: 'i', ј: 'j', ѕ: 's', ԁ: 'd', ԛ: 'q', ԝ: 'w', һ: 'h', ӏ: 'l' },
    ...{ ɑ: 'a', ɡ: 'g', ı: 'i', ɩ: 'i', ĸ: 'k', ł: 'l', ø: 'o', đ: 'd', ħ: 'h' },
    ...{ α: 'a', β: 'b', ε: 'e', ζ: 'z', η: 'h', ι: 'i', κ: 'k' },
    ...{ μ: 'm', ν: 'n', ο: 'o', ρ: 'p', τ: 't', υ: 'y', χ: 'x' },
  }),
)

const prefix =
  /[a-z][a-z0-9+.-]*:\/\/|\b(?:https?|tel|sms|mailto|javascript|data|intent|whatsapp|upi):\S|\bwww\./u
const hostWithPath = /[\p{L}\p{N}-]+\.\p{L}{2,}(?::\d+)?\/\S/u
const beginningOfPath = /(?:[\p{L}\p{N}-]+\.\p{L}{2,}|\b\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?[/?#]/u
const ipAddressWithPath = /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\/\S/u

/** The last label of each host name of two or more; registries of some domains accept symbols before it. */
const lastLabels =
  /[^\s.]\.([\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?)(?!-*[\p{L}\p{M}\p{N}]|\.[\p{L}\p{M}\p{N}])/gu
