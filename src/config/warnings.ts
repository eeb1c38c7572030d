import { isWeakPasswordHash } from '../adapters/crypto/console-secrets.ts'
import { isAppId } from '../domain/otp/credentials.ts'
import type { Outbox } from '../domain/ports.ts'
import type { Config } from './config.ts'
import { isLoopback } from './settings.ts'

/** A setting that can be used and may not do what the operator wants. `otpost doctor` reports it. */
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
      `is ${nodeEnv}, and not production: messages may stay in the outbox, which anyone who reaches the port may read`,
      'set NODE_ENV=production where people depend on it',
    )
  }
  for (const name of developmentOnly(config)) {
    warn(
      name,
      'messages reach nobody: they are kept for developers, or dropped',
      `set ${name} to a provider before people depend on it`,
    )
  }
  if (limits.failureBudgetPerDay === 0) {
    warn(
      'FAILURE_BUDGET_PER_DAY',
      'is 0: nothing limits the wrong codes for a recipient over several codes',
      'set FAILURE_BUDGET_PER_DAY to at most 100, as NIST SP 800-63B-4 requires',
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
      'is unset, while PUBLIC_URL is https, which otpost does not speak itself: all callers seem to come from the proxy, and share the limits of one IP address',
      'set TRUSTED_PROXIES to the IP address of the proxy',
    )
  }
  for (const [appId, key] of appCredentials) {
    if (key.length >= 32) continue
    warn(
      'APP_CREDENTIALS',
      `the key of ${appId} is shorter than 32 characters, and may be guessed`,
      `give it a random one (openssl rand -hex 32), or issue one with otpost app issue ${appId}`,
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
      problem: `the appId ${JSON.stringify(appId.slice(0, 64))} can send codes, and can not verify them (400 invalid_app_id)`,
      remedy: 'name the app with 1 to 64 visible ASCII characters without a colon',
    }))
}

function outboxWarnings({ host, outboxAccess, outboxSettings }: Config): readonly SettingWarning[] {
  if (outboxSettings.length === 0 || isLoopback(host)) return []
  const kept = `${outboxSettings.join(', ')}: messages stay in the outbox`
  return [
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

/** Variables by which messages reach nobody. */
function developmentOnly({ smsMode, smsRoutes, smtp }: Config): readonly string[] {
  const reachesNobody = (route: 'plain' | 'template') =>
    providersOf(smsRoutes[route]).some(({ endpoint }) => endpoint === undefined)
  return [
    ...(smsMode !== 'template' && reachesNobody('plain') ? ['SMS_PLAIN'] : []),
    ...(smsMode !== 'plain' && reachesNobody('template') ? ['SMS_TEMPLATE'] : []),
    ...(smtp ? [] : ['SMTP_URL']),
  ]
}

/** Providers that send nothing, for what is known of them. */
export function providersOf(makers: Config['smsRoutes']['plain']) {
  return makers.map((make) => make({ now: Date.now, outbox: unused }))
}

const unused: Outbox = { add: refuse, list: refuse, get: refuse, wait: refuse }

async function refuse(): Promise<never> {
  throw new Error('nothing is sent by these providers')
}
