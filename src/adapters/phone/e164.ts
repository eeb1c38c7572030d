import parsePhoneNumber, {
  type CountryCode,
  getCountryCallingCode,
  isSupportedCountry,
} from 'libphonenumber-js/max'
import type { ReadE164 } from '../../domain/contact.ts'
import { isE164 } from './destination.ts'

export function isRegion(code: string): code is CountryCode {
  return isSupportedCountry(code)
}

/**
 * Design D5: as an international number or, with a region, as dialed there.
 * Zeros are ignored after `00` and before the region's calling code. Elsewhere a zero begins a national number:
 * 0157 12345678 is German, not 1 571 234 5678.
 */
export function e164In(region: CountryCode | undefined): ReadE164 {
  const zerosBeforeCode = region && new RegExp(`^0+(?=${getCountryCallingCode(region)})`)
  return (digits, dialed) => {
    const zeros = digits === dialed ? zerosBeforeCode : /^0+/
    return (
      international(digits) ??
      // Some international prefixes begin with 00, such as Australia's 0011.
      (region && (national(digits, region) ?? national(dialed, region))) ??
      (zeros && international(digits.replace(zeros, ''))) ??
      digits
    )
  }
}

/** Also accepts digits after a trunk or former mobile prefix. */
function international(digits: string): string | undefined {
  if (isE164(digits)) return digits
  const number = parsePhoneNumber(`+${digits.replace(formerMexicanPrefix, '52')}`)
  if (!number) return undefined
  if (!number.isValid()) {
    // Zeros that are not a trunk prefix there, or read as a carrier code with the next digit.
    const { countryCallingCode, nationalNumber } = number
    const zeros = nationalNumber.search(/[^0]/)
    const shorter = Array.from(
      { length: zeros },
      (_, at) => countryCallingCode + nationalNumber.slice(at + 1),
    )
    return shorter.find(isE164)
  }
  const e164 = number.number.slice(1)
  // Rarely a second prefix is left.
  return e164 === digits ? digits : (international(e164) ?? e164)
}

/** Mobile and trunk prefixes until 2019. Networks accept them; the numbering plan does not. */
const formerMexicanPrefix = /^52(?:1|0(?:[12]|4[45]))(?=\d{10}$)/

function national(digits: string, region: CountryCode): string | undefined {
  const number = parsePhoneNumber(digits, region)?.number
  return number && international(number.slice(1))
}
