import { getExampleNumber } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { isRegion } from './e164.ts'

export function exampleOf(country: string | null): string {
  const number = country !== null && isRegion(country) ? getExampleNumber(country, examples) : undefined
  return number?.number.slice(1) ?? ''
}
