import { isRegion } from '../adapters/phone/e164.ts'
import { smsSpendSettings } from './server-settings.ts'
import type { Settings } from './settings.ts'

/** SMS_COUNTRIES (design D40). Empty: unset. */
export function readSmsCountries(settings: Settings): readonly string[] {
  const setting = smsSpendSettings.SMS_COUNTRIES
  if (settings.optional(setting) === undefined) return []
  const countries = [...new Set(settings.list(setting).map((code) => code.toUpperCase()))]
  if (!countries.every(isRegion)) {
    settings.refuse(setting.name, 'must be country codes of two letters, separated by commas, such as IN,GB')
  }
  return countries
}
