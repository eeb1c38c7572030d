import { getCountries } from 'libphonenumber-js/max'
import type { Numbers } from '../../domain/delivery/destination.ts'
import { countriesWithin, countryOfPrefix, destinationOf } from './destination.ts'
import { asWritten, isRegion } from './e164.ts'
import { exampleOf } from './example.ts'
import { formatPhone, formatPrefix } from './format.ts'

export const numbers: Numbers = {
  destinationOf,
  countries: getCountries(),
  isCountry: isRegion,
  countryOfPrefix,
  countriesWithin,
  phoneIn: (digits, country) => (isRegion(country) ? asWritten(digits, country) : undefined),
  formatPhone,
  formatPrefix,
  exampleOf,
}
