import { isRegion } from '../adapters/phone/e164.ts'
import { codeSettings, messageSettings, smsSpendSettings } from './server-settings.ts'
import type { TextSetting } from './setting.ts'
import type { Env } from './setting-source.ts'
import { Settings } from './settings.ts'
import { otherWaysIn } from './ways.ts'

export type DestinationConfig = ReturnType<typeof readDestinationConfig>

/**
 * Only what commands need for destination rules and the guard: they do not require the credentials of providers.
 * @throws ConfigError with every problem
 */
export function readDestinationConfig(env: Env) {
  const settings = new Settings(env)
  const smsMode = settings.oneOf(messageSettings.OTP_SMS_MODE)
  return settings.checked({
    routes: {
      smsMode,
      plain: settings.list(messageSettings.SMS_PLAIN),
      template: smsMode === 'plain' ? [] : settings.list(messageSettings.SMS_TEMPLATE),
      others: Object.fromEntries(otherWaysIn(settings).map(({ way, spec }) => [way, [spec.name]])),
    },
    smsCountries: readCountries(settings, smsSpendSettings.SMS_COUNTRIES),
    guard: settings.oneOf(smsSpendSettings.GUARD),
    phonePerHour: settings.integer(codeSettings.PHONE_LIMIT_PER_HOUR),
  })
}

/** SMS_COUNTRIES (design D40) or VOICE_COUNTRIES. Empty: unset. */
export function readCountries(settings: Settings, setting: TextSetting): readonly string[] {
  if (settings.optional(setting) === undefined) return []
  const countries = [...new Set(settings.list(setting).map((code) => code.toUpperCase()))]
  if (!countries.every(isRegion)) {
    settings.refuse(setting.name, 'must be country codes of two letters, separated by commas, such as IN,GB')
  }
  return countries
}
