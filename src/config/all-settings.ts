import { emailSettings } from '../adapters/email/smtp-settings.ts'
import { providerSpecs } from '../adapters/sms/index.ts'
import { openTelemetrySettings } from '../adapters/tracing/settings.ts'
import {
  alertSettings,
  codeSettings,
  credentialSettings,
  databaseSettings,
  messageSettings,
  metricsSettings,
  retentionSettings,
  serverSettings,
  smsSpendSettings,
  tlsSettings,
} from './server-settings.ts'
import type { Setting } from './setting.ts'

/** In the order of the reference page. */
export const allSettings: readonly Setting[] = [
  serverSettings,
  tlsSettings,
  databaseSettings,
  credentialSettings,
  codeSettings,
  smsSpendSettings,
  messageSettings,
  ...providerSpecs.map(({ settings }) => settings),
  emailSettings,
  alertSettings,
  metricsSettings,
  openTelemetrySettings,
  retentionSettings,
].flatMap((group) => Object.values<Setting>(group))
