import parsePhoneNumber, {
  type CountryCode,
  getCountryCallingCode,
  isSupportedCountry,
  type PhoneNumber,
} from 'libphonenumber-js/max'
import metadata from 'libphonenumber-js/max/metadata'
import type { ReadE164 } from '../../domain/ground/contact.ts'
import { isE164, isReadAsIs } from './destination.ts'

export function isRegion(code: string): code is CountryCode {
  return isSupportedCountry(code)
}

/**
 * Design D5: as an international number or, with a region, as people write it there. A national number takes
 * precedence, unless the digits are also a number of another country: only the caller knows which one is meant.
 * Zeros are ignored after `00` and before the region's calling code. Elsewhere a zero begins a national number:
 * 0157 12345678 is German, not 1 571 234 5678.
 */
export function e164In(region: CountryCode | undefined): ReadE164 {
  if (!region) {
    return ({ digits, dialed }) =>
      international(digits) ?? (digits === dialed ? undefined : withoutZeros(digits, /^0+/)) ?? digits
  }
  const code = getCountryCallingCode(region)
  const zerosBeforeCode = new RegExp(`^0+(?=${code})`)
  return ({ digits, dialed, isInternational }) => {
    const isForeign = !digits.startsWith(code)
    if (!isInternational && (isForeign || !isE164(digits))) {
      const home = asWritten(digits, region)
      if (home !== undefined) return isE164(digits) ? undefined : home
    }
    return (
      international(digits) ??
      // Some international prefixes begin with 00, such as Australia's 0011.
      (digits === dialed ? undefined : asWritten(dialed, region)) ??
      withoutZeros(digits, digits === dialed ? zerosBeforeCode : /^0+/) ??
      digits
    )
  }
}

function withoutZeros(digits: string, zeros: RegExp): string | undefined {
  return international(digits.replace(zeros, ''))
}

/** Also accepts digits after a trunk or former mobile prefix. */
function international(digits: string): string | undefined {
  if (isE164(digits)) return digits
  if (isReadAsIs(digits) && !digits.startsWith('52')) return undefined
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

/** A number as dialed in the region, with the trunk prefix if its plan requires that. */
export function asWritten(digits: string, region: CountryCode): string | undefined {
  const number = parsePhoneNumber(digits, region)
  if (!number || (number.nationalNumber === digits && requiresTrunkPrefix(number, region))) return undefined
  return international(number.number.slice(1))
}

/** By the national format, which has an optional trunk prefix only on demand. */
function requiresTrunkPrefix(number: PhoneNumber, region: CountryCode): boolean {
  const shortest = number.format('NATIONAL', { nationalPrefix: false }).replace(/\D/g, '')
  return (
    shortest === `${metadata.countries[region]?.[5] || ''}${number.nationalNumber}` &&
    shortest !== number.nationalNumber
  )
}
