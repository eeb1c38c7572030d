import { isWeakPasswordHash } from '../../adapters/crypto/console-secrets.ts'
import type { Config } from '../../config/config.ts'
import type { Outbox } from '../../domain/ports.ts'
import { type Finding, fail, found, ok, warn } from './finding.ts'

/** @param problems each the name of a variable and what is wrong with it */
export function settingsFindings(problems: readonly string[]): readonly Finding[] {
  if (problems.length === 0) return [ok('settings', 'every variable can be used')]
  return problems.map((problem) => {
    const name = /^\w+/.exec(problem)?.[0] ?? 'it'
    return fail(
      'settings',
      problem,
      `correct ${name} where the server has its environment from; the README lists all variables`,
    )
  })
}

/** Valid settings that may not be what is wanted. */
export interface SettingFacts {
  /** Variables by which messages end in the outbox or are dropped. */
  readonly developmentOnly: readonly string[]
  readonly publicUrl: string | undefined
  readonly trustsProxies: boolean
  /** Applications whose key in APP_CREDENTIALS is shorter than 32 characters. */
  readonly shortKeys: readonly string[]
  /** Variables of tokens that could be guessed. */
  readonly shortTokens: readonly string[]
  /** Whether ADMIN_PASSWORD_HASH is cheap to try passwords against. */
  readonly hasWeakPasswordHash: boolean
  readonly hasFailureBudget: boolean
  readonly nodeEnv: string | undefined
}

export function settingFacts(config: Config, nodeEnv: string | undefined): SettingFacts {
  return {
    developmentOnly: developmentOnly(config),
    publicUrl: config.publicUrl,
    nodeEnv,
    trustsProxies: config.trustedProxies.length > 0,
    hasFailureBudget: config.limits.failureBudgetPerDay > 0,
    shortTokens: Object.entries({
      METRICS_TOKEN: config.metrics?.token,
      OUTBOX_TOKEN: config.outboxAccess.token,
    }).flatMap(([name, token]) => (token !== undefined && token.length < 16 ? [name] : [])),
    hasWeakPasswordHash:
      config.adminPasswordHash !== undefined && isWeakPasswordHash(config.adminPasswordHash),
    shortKeys: [...config.appCredentials].filter(([, key]) => key.length < 32).map(([appId]) => appId),
  }
}

export function settingFindings(facts: SettingFacts): readonly Finding[] {
  const { developmentOnly, publicUrl, trustsProxies, shortKeys, shortTokens, nodeEnv } = facts
  return found(
    nodeEnv !== undefined &&
      !['production', 'development', 'test'].includes(nodeEnv) &&
      warn(
        'NODE_ENV',
        `is ${nodeEnv}, and not production: messages may stay in the outbox, which whoever reaches the port may read`,
        'set NODE_ENV=production where people depend on it',
      ),
    ...developmentOnly.map((name) =>
      warn(
        name,
        'messages reach nobody: they are kept for developers, or dropped',
        `set ${name} to a provider before people depend on it`,
      ),
    ),
    !facts.hasFailureBudget &&
      warn(
        'FAILURE_BUDGET_PER_DAY',
        'is 0: nothing limits the wrong codes for a recipient over several codes',
        'set FAILURE_BUDGET_PER_DAY to at most 100, as NIST SP 800-63B-4 requires',
      ),
    ...shortTokens.map((name) =>
      warn(name, 'is shorter than 16 characters', 'set it to the output of: openssl rand -hex 32'),
    ),
    facts.hasWeakPasswordHash &&
      warn(
        'ADMIN_PASSWORD_HASH',
        'has less than 19 MiB and 2 passes of argon2id, so passwords can be tried quickly against a stolen hash',
        'set it to the output of: otpost admin password',
      ),
    publicUrl?.startsWith('https:') &&
      !trustsProxies &&
      warn(
        'TRUSTED_PROXIES',
        'is unset, while PUBLIC_URL is https, which otpost does not speak itself: all callers seem to come from the proxy, and share the limits of one address',
        'set TRUSTED_PROXIES to the address of the proxy',
      ),
    ...shortKeys.map((appId) =>
      warn(
        'APP_CREDENTIALS',
        `the key of ${appId} is shorter than 32 characters, and may be guessed`,
        `give it a random one (openssl rand -hex 32), or issue one with otpost app issue ${appId}`,
      ),
    ),
  )
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

export function providersOf(makers: Config['smsRoutes']['plain']) {
  return makers.map((make) => make({ now: Date.now, outbox: unused }))
}

/** Providers are given an outbox, and nothing is sent here. */
const unused: Outbox = { add: refuse, list: refuse, get: refuse, wait: refuse }

async function refuse(): Promise<never> {
  throw new Error('the doctor sends nothing')
}

/** @param isHere whether a server can listen at HOST */
export function hostFindings(host: string, isHere: boolean): readonly Finding[] {
  return found(
    !isHere &&
      fail(
        'HOST',
        `is ${host}, but this machine has no such address`,
        'set HOST to an address of this machine, 127.0.0.1 where a proxy is in front, or 0.0.0.0 for all',
      ),
  )
}

/** Whether a server can listen at a host: tried for a moment, at any free port. */
export function hasAddress(hostname: string): boolean {
  try {
    Bun.serve({ hostname, port: 0, fetch: () => new Response() }).stop(true)
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    return !['EADDRNOTAVAIL', 'EINVAL', 'ENOTFOUND'].includes(code)
  }
}
