import { isRegion } from '../adapters/phone/e164.ts'
import type { RouteSettings } from '../domain/operator/destinations.ts'
import { messageSettings, smsSpendSettings } from './server-settings.ts'
import { Settings } from './settings.ts'

export interface DestinationConfig {
  readonly routes: RouteSettings
  readonly smsCountries: readonly string[]
}

/**
 * Only what commands need for destination rules: they do not require the credentials of providers.
 * @throws ConfigError with every problem
 */
export function readDestinationConfig(env: Readonly<Record<string, string | undefined>>): DestinationConfig {
  const settings = new Settings(env)
  const smsMode = settings.oneOf(messageSettings.OTP_SMS_MODE)
  const routes = {
    smsMode,
    plain: settings.list(messageSettings.SMS_PLAIN),
    template: smsMode === 'plain' ? [] : settings.list(messageSettings.SMS_TEMPLATE),
  }
  return settings.checked({ routes, smsCountries: readSmsCountries(settings) })
}

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
