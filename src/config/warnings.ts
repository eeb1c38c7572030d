import type { Outbox } from '../domain/ground/ports.ts'
import { isAppId } from '../domain/limits/credentials.ts'
import type { Config } from './config.ts'
import { isLoopback } from './settings.ts'

/** A valid setting that may not do what the operator wants. `otpost doctor` reports it. */
interface SettingWarning {
  readonly setting: string
  readonly problem: string
  readonly remedy: string
  /** `serve` logs it too. */
  readonly isLogged?: true
}

export function settingWarnings(config: Config, nodeEnv: string | undefined): readonly SettingWarning[] {
  const { publicUrl, trustedProxies, limits, phoneRoutes, voiceCountries } = config
  const warnings: SettingWarning[] = []
  const warn = (setting: string, problem: string, remedy: string) =>
    warnings.push({ setting, problem, remedy })
  if (nodeEnv !== undefined && !['production', 'development', 'test'].includes(nodeEnv)) {
    warn(
      'NODE_ENV',
      `NODE_ENV is ${nodeEnv}, not production. Messages may stay in the outbox, which every client of the port can read.`,
      'Set NODE_ENV=production on production servers.',
    )
  }
  for (const name of developmentOnly(config)) {
    warn(
      name,
      `${name} delivers nothing. Messages stay in the outbox, or are dropped.`,
      name === 'SMTP_URL'
        ? 'Set SMTP_URL to the URL of your mail server.'
        : `Set ${name} to a provider that delivers.`,
    )
  }
  const budget = limits.failureBudgetPerDay
  if (budget === 0 || budget > 100) {
    warn(
      'FAILURE_BUDGET_PER_DAY',
      budget === 0
        ? 'FAILURE_BUDGET_PER_DAY is 0. The wrong codes of a recipient have no daily limit.'
        : `FAILURE_BUDGET_PER_DAY is ${budget}. NIST SP 800-63B-4 allows at most 100 wrong codes for a recipient.`,
      'Set FAILURE_BUDGET_PER_DAY to a number from 1 to 100.',
    )
  }
  if (phoneRoutes.voice && voiceCountries.length === 0) {
    warn(
      'VOICE_COUNTRIES',
      'VOICE_COUNTRIES and SMS_COUNTRIES are not set, so otpost calls numbers of every country. Fraudsters earn from calls to expensive numbers.',
      'Set VOICE_COUNTRIES to the countries of your users, such as IN,GB.',
    )
  }
  if (publicUrl?.startsWith('https:') && trustedProxies.length === 0) {
    warn(
      'TRUSTED_PROXIES',
      'TRUSTED_PROXIES is not set, but PUBLIC_URL is https, so requests come through a proxy. All callers share the limits of its IP address.',
      'Set TRUSTED_PROXIES to the IP address of the proxy.',
    )
  }
  if (trustedProxies.some(([address, bits]) => bits < (address.kind() === 'ipv4' ? 8 : 16))) {
    warn(
      'TRUSTED_PROXIES',
      'TRUSTED_PROXIES contains a very large network. Each client in it can forge its IP address.',
      'Set TRUSTED_PROXIES to the IP addresses or the network of your proxies only.',
    )
  }
  return [
    ...warnings,
    ...[...secretWarnings(config), ...appIdWarnings(config), ...outboxWarnings(config)].map(logged),
  ]
}

function logged(warning: SettingWarning): SettingWarning {
  return { ...warning, isLogged: true }
}

function secretWarnings({ shortSecrets, appCredentials }: Config): readonly SettingWarning[] {
  const shortKeys = [...appCredentials].filter(([, key]) => key.length < 32).map(([appId]) => appId)
  return [
    ...shortSecrets.map(({ name, least }) => ({
      setting: name,
      problem: `${name} is shorter than ${least} bytes. An attacker can guess it.`,
      remedy: `Set ${name} to the output of \`openssl rand -hex 32\`.`,
    })),
    ...shortKeys.map((appId) => ({
      setting: 'APP_CREDENTIALS',
      problem: `The API key of ${appId} in APP_CREDENTIALS is shorter than 32 characters. An attacker can guess it.`,
      remedy: `Set the key to the output of \`openssl rand -hex 32\`, or remove it and run \`otpost app issue ${appId}\`.`,
    })),
  ]
}

function appIdWarnings({ appCredentials }: Config): readonly SettingWarning[] {
  return [...appCredentials.keys()]
    .filter((appId) => !isAppId(appId))
    .map((appId) => ({
      setting: 'APP_CREDENTIALS',
      problem: `The appId ${JSON.stringify(appId.slice(0, 64))} in APP_CREDENTIALS can send codes but cannot verify them (400 invalid_app_id).`,
      remedy: 'Rename the app. An appId has 1 to 64 visible ASCII characters without a colon.',
    }))
}

function outboxWarnings({ host, outboxAccess, outboxSettings }: Config): readonly SettingWarning[] {
  if (outboxSettings.length === 0 || isLoopback(host)) return []
  const kept = `Messages stay in the outbox (${outboxSettings.join(', ')})`
  return [
    outboxAccess.isOpen
      ? {
          setting: 'OUTBOX_TOKEN',
          problem: `${kept}, and HOST is not a loopback host. Clients with the token can read every code.`,
          remedy: `Set ${outboxSettings.join(' and ')} to deliver messages.`,
        }
      : {
          setting: 'OUTBOX_TOKEN',
          problem: `${kept}, but /outbox answers 404. HOST is not a loopback host, and OUTBOX_TOKEN is not set.`,
          remedy: `Set ${outboxSettings.join(' and ')} to deliver messages, or OUTBOX_TOKEN to the output of \`openssl rand -hex 32\`.`,
        },
  ]
}

/** The settings that send messages to the outbox or drop them. */
function developmentOnly({ smsMode, phoneRoutes, smtp }: Config): readonly string[] {
  const deliversNothing = (route: 'plain' | 'template') =>
    providersOf(phoneRoutes[route]).some(({ endpoint }) => endpoint === undefined)
  return [
    ...(smsMode !== 'template' && deliversNothing('plain') ? ['SMS_PLAIN'] : []),
    ...(smsMode !== 'plain' && deliversNothing('template') ? ['SMS_TEMPLATE'] : []),
    ...(smtp ? [] : ['SMTP_URL']),
  ]
}

/** Creates providers to read their properties. They must not send. */
export function providersOf(makers: Config['phoneRoutes']['plain']) {
  return makers.map((make) => make({ now: Date.now, outbox: unused, reportLater: () => {} }))
}

const unused: Outbox = { add: refuse, list: refuse, get: refuse, clear: refuse, wait: refuse }

async function refuse(): Promise<never> {
  throw new Error('these providers must not send')
}
