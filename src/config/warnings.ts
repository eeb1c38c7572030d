import { isThisMachine } from '../adapters/http/known-hosts.ts'
import { isAppId } from '../domain/otp/credentials.ts'
import type { Config } from './config.ts'

/** A setting that can be used and may not do what the operator wants. `serve` logs it, and `otpost doctor` reports it. */
export interface SettingWarning {
  readonly setting: string
  readonly problem: string
  readonly remedy: string
}

export function settingWarnings(config: Config): readonly SettingWarning[] {
  const { host, outboxAccess, outboxSettings, appCredentials } = config
  const warnings = [...appCredentials.keys()]
    .filter((appId) => !isAppId(appId))
    .map((appId) => ({
      setting: 'APP_CREDENTIALS',
      problem: `the appId ${JSON.stringify(appId.slice(0, 64))} can send codes, and can not verify them (400 invalid_app_id)`,
      remedy: 'name the app with 1 to 64 visible ASCII characters without a colon',
    }))
  if (outboxSettings.length === 0 || isThisMachine(host)) return warnings
  const kept = `${outboxSettings.join(', ')}: messages stay in the outbox`
  return [
    ...warnings,
    outboxAccess.isOpen
      ? {
          setting: 'OUTBOX_TOKEN',
          problem: `${kept}, and HOST listens beyond this machine: holders of the token read every code`,
          remedy: `set ${outboxSettings.join(' and ')} to deliver messages before people depend on it`,
        }
      : {
          setting: 'OUTBOX_TOKEN',
          problem: `${kept}, which answers 404, since HOST listens beyond this machine and OUTBOX_TOKEN is unset`,
          remedy: `set ${outboxSettings.join(' and ')} to deliver messages, or OUTBOX_TOKEN to the output of: openssl rand -hex 32`,
        },
  ]
}
