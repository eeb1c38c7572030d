import parsePhoneNumber, {
  type CountryCode,
  getCountryCallingCode,
  isSupportedCountry,
} from 'libphonenumber-js/max'
import type { ReadE164 } from '../../domain/contact.ts'
import { isE164 } from './plans.ts'

/** Whether a region code such as IN or US is one that numbers can be read in. */
export function isRegion(code: string): code is CountryCode {
  return isSupportedCountry(code)
}

/**
 * Reads a number (design D5) as an international one. With a region also as people there dial it, with its own trunk and
 * international prefixes. Zeros before an international number are ignored after `00`, and before the region's calling code
 * (`0447911123456` in GB). Elsewhere a zero begins a national number: 0157 12345678 is German, 1 571 234 5678 is not.
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

/** The valid number that the digits are, behind a trunk or former mobile prefix too. */
function international(digits: string): string | undefined {
  if (isE164(digits)) return digits
  const number = parsePhoneNumber(`+${digits.replace(formerMexicanPrefix, '52')}`)
  if (!number) return undefined
  if (!number.isValid()) {
    // Zeros that are no trunk prefix there, or read as a carrier's code with the digit behind them.
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

/** Mobile and trunk prefixes until 2019, which networks still accept; the numbering plan no longer has them. */
const formerMexicanPrefix = /^52(?:1|0(?:[12]|4[45]))(?=\d{10}$)/

function national(digits: string, region: CountryCode): string | undefined {
  const number = parsePhoneNumber(digits, region)?.number
  return number && international(number.slice(1))
}
