import type { GuardSettings } from '../domain/operator/guard.ts'
import { readSmsCountries } from './destinations.ts'
import { smsSpendSettings } from './server-settings.ts'
import { Settings } from './settings.ts'

/**
 * What commands need to know about the guard.
 * @throws ConfigError with every problem
 */
export function readGuardConfig(env: Readonly<Record<string, string | undefined>>): GuardSettings {
  const settings = new Settings(env)
  const mode = settings.oneOf(smsSpendSettings.GUARD)
  return settings.checked({ mode, smsCountries: readSmsCountries(settings) })
}
