import parsePhoneNumber, {
  type CountryCode,
  getCountryCallingCode,
  isSupportedCountry,
} from 'libphonenumber-js/max'
import type { Nationalize } from '../../domain/contact.ts'

/** Whether a region code such as IN or US is one that numbers can be read in. */
export function isRegion(code: string): code is CountryCode {
  return isSupportedCountry(code)
}

/**
 * Reads numbers as someone in the region dials them (design D5): national forms, `00…` and the region's own
 * international prefix become E.164 digits, so that one person is one key. A number in international form stays what it
 * is, and one that makes no sense in the region is left to its digits.
 */
export function nationalizeFor(region: CountryCode): Nationalize {
  return (raw) => {
    const digits = raw.replace(/[^0-9]/g, '')
    if (raw.trimStart().startsWith('+')) return digits
    if (digits.startsWith('00')) return digits.slice(2)
    const national = parsePhoneNumber(raw, region)
    const international = parsePhoneNumber(`+${digits}`)
    // Digits that begin with the region's own country code are read with it, even where they could be dialed as they
    // are: in that form they come back from whoever stored what this made of a number.
    if (international?.isValid() && international.countryCallingCode === getCountryCallingCode(region))
      return digits
    if (national?.isValid()) return national.number.slice(1)
    if (international?.isValid()) return digits
    return national?.isPossible() ? national.number.slice(1) : digits
  }
}
