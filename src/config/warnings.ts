import { isWeakPasswordHash } from '../adapters/crypto/console-secrets.ts'
import { isAppId } from '../domain/otp/credentials.ts'
import type { Outbox } from '../domain/ports.ts'
import type { Config } from './config.ts'
import { isLoopback } from './settings.ts'

/** A valid setting that may not do what the operator wants. `otpost doctor` reports it. */
export interface SettingWarning {
  readonly setting: string
  readonly problem: string
  readonly remedy: string
  /** `serve` logs it too. */
  readonly isLogged?: true
}

export function settingWarnings(config: Config, nodeEnv: string | undefined): readonly SettingWarning[] {
  const { publicUrl, trustedProxies, limits, metrics, outboxAccess, adminPasswordHash, appCredentials } =
    config
  const warnings: SettingWarning[] = []
  const warn = (setting: string, problem: string, remedy: string) =>
    warnings.push({ setting, problem, remedy })
  if (nodeEnv !== undefined && !['production', 'development', 'test'].includes(nodeEnv)) {
    warn(
      'NODE_ENV',
      `is ${nodeEnv}, not production: messages may stay in the outbox, which every client of the port can read`,
      'set NODE_ENV=production on production servers',
    )
  }
  for (const name of developmentOnly(config)) {
    warn(
      name,
      'delivers nothing: messages stay in the outbox, or are dropped',
      `set ${name} to a provider that delivers`,
    )
  }
  const budget = limits.failureBudgetPerDay
  if (budget === 0 || budget > 100) {
    warn(
      'FAILURE_BUDGET_PER_DAY',
      budget === 0
        ? 'is 0: no limit on the wrong codes of a recipient over several codes'
        : `is ${budget}: more wrong codes for a recipient than NIST SP 800-63B-4 allows`,
      'set FAILURE_BUDGET_PER_DAY to 1 to 100',
    )
  }
  const tokens = { METRICS_TOKEN: metrics?.token, OUTBOX_TOKEN: outboxAccess.token }
  for (const [name, token] of Object.entries(tokens)) {
    if (token !== undefined && token.length < 16) {
      warn(name, 'is shorter than 16 characters', 'set it to the output of: openssl rand -hex 32')
    }
  }
  if (adminPasswordHash !== undefined && isWeakPasswordHash(adminPasswordHash)) {
    warn(
      'ADMIN_PASSWORD_HASH',
      "is weaker than OWASP's minimum for argon2id, so passwords can be tried quickly against a stolen hash",
      'set it to the output of: otpost admin password',
    )
  }
  if (publicUrl?.startsWith('https:') && trustedProxies.length === 0) {
    warn(
      'TRUSTED_PROXIES',
      'is not set, but PUBLIC_URL is https, so a proxy is in front: all callers share the limits of its IP address',
      'set TRUSTED_PROXIES to the IP address of the proxy',
    )
  }
  if (trustedProxies.some(([address, bits]) => bits < (address.kind() === 'ipv4' ? 8 : 16))) {
    warn(
      'TRUSTED_PROXIES',
      'has a very large network: each client in it can forge its IP address',
      'set TRUSTED_PROXIES to the IP addresses or the network of your proxies only',
    )
  }
  for (const [appId, key] of appCredentials) {
    if (key.length >= 32) continue
    warn(
      'APP_CREDENTIALS',
      `the API key of ${appId} is shorter than 32 characters, so an attacker can guess it`,
      `set it to the output of openssl rand -hex 32, or remove it and run otpost app issue ${appId}`,
    )
  }
  return [...warnings, ...[...appIdWarnings(config), ...outboxWarnings(config)].map(logged)]
}

function logged(warning: SettingWarning): SettingWarning {
  return { ...warning, isLogged: true }
}

function appIdWarnings({ appCredentials }: Config): readonly SettingWarning[] {
  return [...appCredentials.keys()]
    .filter((appId) => !isAppId(appId))
    .map((appId) => ({
      setting: 'APP_CREDENTIALS',
      problem: `the appId ${JSON.stringify(appId.slice(0, 64))} can send codes but cannot verify them (400 invalid_app_id)`,
      remedy: 'rename the app: 1 to 64 visible ASCII characters without a colon',
    }))
}

function outboxWarnings({ host, outboxAccess, outboxSettings }: Config): readonly SettingWarning[] {
  if (outboxSettings.length === 0 || isLoopback(host)) return []
  const kept = `${outboxSettings.join(', ')}: messages stay in the outbox`
  return [
    outboxAccess.isOpen
      ? {
          setting: 'OUTBOX_TOKEN',
          problem: `${kept}, and HOST is not a loopback host: everyone with the token can read every code`,
          remedy: `set ${outboxSettings.join(' and ')} to a provider that delivers`,
        }
      : {
          setting: 'OUTBOX_TOKEN',
          problem: `${kept}, and /outbox answers 404, because HOST is not a loopback host and OUTBOX_TOKEN is not set`,
          remedy: `set ${outboxSettings.join(' and ')} to deliver messages, or OUTBOX_TOKEN to the output of: openssl rand -hex 32`,
        },
  ]
}

/** The settings that send messages to the outbox or drop them. */
function developmentOnly({ smsMode, smsRoutes, smtp }: Config): readonly string[] {
  const deliversNothing = (route: 'plain' | 'template') =>
    providersOf(smsRoutes[route]).some(({ endpoint }) => endpoint === undefined)
  return [
    ...(smsMode !== 'template' && deliversNothing('plain') ? ['SMS_PLAIN'] : []),
    ...(smsMode !== 'plain' && deliversNothing('template') ? ['SMS_TEMPLATE'] : []),
    ...(smtp ? [] : ['SMTP_URL']),
  ]
}

/** Creates providers to read their properties. They must not send. */
export function providersOf(makers: Config['smsRoutes']['plain']) {
  return makers.map((make) => make({ now: Date.now, outbox: unused }))
}

const unused: Outbox = { add: refuse, list: refuse, get: refuse, wait: refuse }

async function refuse(): Promise<never> {
  throw new Error('these providers must not send')
}
