import { keyFingerprints } from '../../adapters/crypto/secrets.ts'
import type { PolicyFacts } from '../../adapters/store/condition.ts'
import { type Config, readConfig } from '../../config/config.ts'
import { type DestinationConfig, readDestinationConfig } from '../../config/destinations.ts'
import { ConfigError } from '../../config/settings.ts'
import { readStoreConfig, type StoreConfig } from '../../config/store.ts'
import { settingWarnings } from '../../config/warnings.ts'
import { type Env, exit, missingDatabase, print } from '../common.ts'
import { accountFindings } from './accounts.ts'
import { appFindings, webhookFindings } from './apps.ts'
import { budgetFindings } from './budgets.ts'
import { clockFindings } from './clock.ts'
import { type DatabaseFindings, forwardedFindings, secretFindings } from './database.ts'
import { destinationFindings } from './destinations.ts'
import { dltFindings } from './dlt.ts'
import { fileFindings } from './files.ts'
import { type Finding, fail, warn } from './finding.ts'
import { askOthers } from './network.ts'
import { serverDatabaseFindings } from './postgres.ts'
import { providerFindings, untestedFindings } from './providers.ts'
import { queueFindings } from './queue.ts'
import { rejectionFindings, reportFindings } from './rejections.ts'
import { reviewNumberFindings } from './review-numbers.ts'
import {
  guardFindings,
  hasAddress,
  hostFindings,
  settingsFileFindings,
  settingsFindings,
} from './settings.ts'
import { sqliteFindings } from './sqlite.ts'

export async function runDoctor(
  env: Env,
  { full, json }: { readonly full: boolean; readonly json: boolean },
): Promise<number> {
  const findings = await examine(env, full)
  if (json) print(JSON.stringify(findings))
  else for (const line of listed(findings)) print(line)
  return findings.some(({ level }) => level === 'fail') ? exit.failed : exit.ok
}

async function examine(env: Env, full: boolean): Promise<readonly Finding[]> {
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const found = [...settingsFindings(error.problems), ...settingsFileFindings(env)]
    // The database settings may still be valid.
    const context = storeConfigOf(env)
    if (!context) return found
    const { isMissing, findings } = await inspectDatabase(context, full)
    return [...missingFindings(env, context, isMissing), ...found, ...findings]
  }
  const isHere = hasAddress(config.host)
  const others = await askOthers(config, isHere)
  // Last: it blocks the event loop, and would delay the answers of the others.
  const {
    findings: inside,
    isMissing,
    lastRequestAt,
    policy,
    secretKeys,
  } = await inspectDatabase(config, full)
  return [
    ...missingFindings(env, config, isMissing),
    ...settingsFindings([]),
    ...settingsFileFindings(env),
    ...settingWarnings(config, env.NODE_ENV || undefined).map(({ setting, problem, remedy }) =>
      warn(setting, problem, remedy),
    ),
    ...hostFindings(config.host, isHere),
    ...guardFindings(config.guard),
    ...inside,
    ...(policy ? policyFindings(policy, config, readDestinationConfig(env)) : []),
    ...(policy ? accountFindings(policy.accounts, secretKeys, config, Date.now()) : []),
    ...others.findings,
    ...clockFindings(others.clocks, lastRequestAt, Date.now(), policy?.clockSteps),
  ]
}

/** First, since the other findings may be about another database than the server's (design D51). */
function missingFindings(env: Env, config: StoreConfig, isMissing: boolean): readonly Finding[] {
  if (!isMissing) return []
  const { message, remedy } = missingDatabase(env, config)
  return [fail('database', message, remedy)]
}

function policyFindings(
  policy: PolicyFacts,
  { alerts, appCredentials, limits, otpTtlSeconds, providerTimeoutMs, smtp }: Config,
  destinations: DestinationConfig,
): readonly Finding[] {
  return [
    ...destinationFindings(policy.destinationRules, destinations),
    ...budgetFindings(policy.budgets, alerts, Date.now()),
    ...reviewNumberFindings(policy.reviewNumbers, Date.now()),
    ...dltFindings(policy.dltBrands, otpTtlSeconds),
    ...queueFindings(policy.oldestJobAt, Date.now()),
    ...providerFindings(policy, Date.now()),
    ...untestedFindings(policy.accepted, destinations.routes, smtp !== undefined),
    ...rejectionFindings(policy.rejections, Date.now()),
    ...reportFindings(policy.rejections, Date.now(), providerTimeoutMs),
    ...appFindings(policy, [...appCredentials.keys()], limits.globalPerMinute),
    ...webhookFindings(policy),
  ]
}

function storeConfigOf(env: Env): StoreConfig | undefined {
  try {
    return readStoreConfig(env)
  } catch {
    return undefined
  }
}

async function inspectDatabase(config: StoreConfig, full: boolean): Promise<DatabaseFindings> {
  const { database, secretKeys } = config
  if (database.kind === 'sqlite') {
    const { findings, ...facts } = sqliteFindings(database.file, secretKeys, full)
    return {
      findings: [...fileFindings(database.file, secretKeys !== undefined), ...findings],
      ...facts,
    }
  }
  const { conditionOf } = await import('../../adapters/postgres/condition.ts')
  const facts = await conditionOf(database.target)
  const noted = facts.kind === 'answered' ? facts.keyFingerprints : []
  return {
    isMissing: facts.kind === 'answered' && facts.schema === 'none',
    findings: [
      ...serverDatabaseFindings(database.name, facts, Date.now()),
      ...forwardedFindings(facts.kind === 'answered' ? facts.ignoredForwardedAt : null, Date.now()),
      ...secretFindings(noted, secretKeys ? keyFingerprints(secretKeys) : 'none', 'SECRET_KEY'),
    ],
    lastRequestAt: facts.kind === 'answered' ? facts.lastRequestAt : null,
    policy: facts.kind === 'answered' ? facts.policy : undefined,
    secretKeys,
  }
}

function listed(findings: readonly Finding[]): readonly string[] {
  const width = Math.max(...findings.map(({ what }) => what.length))
  return findings.flatMap((finding) => {
    const { level, what, message } = finding
    const line = `${(level === 'fail' ? 'FAIL' : level).padEnd(4)}  ${what.padEnd(width)}  ${message}`
    return finding.level === 'ok' ? [line] : [line, `      ${' '.repeat(width)}  → ${finding.remedy}`]
  })
}
