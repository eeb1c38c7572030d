import type { SecretKeys } from '../adapters/crypto/secret-file.ts'
import { keyFingerprints } from '../adapters/crypto/secrets.ts'
import type { DatabaseCheck } from '../adapters/store/condition.ts'
import { type Config, readConfig } from '../config/config.ts'
import { type DestinationConfig, readDestinationConfig } from '../config/destinations.ts'
import type { Env } from '../config/setting-source.ts'
import { ConfigError } from '../config/settings.ts'
import { readStoreConfig, type StoreConfig } from '../config/store.ts'
import { settingWarnings } from '../config/warnings.ts'
import { type Finding, fail, warn } from '../domain/health/problem.ts'
import { problemsOf } from '../domain/health/problems.ts'
import { accountFindings } from './accounts.ts'
import { appFindings } from './apps.ts'
import { dltFindings } from './brands.ts'
import { budgetFindings } from './budgets.ts'
import { tlsFindings } from './certificate.ts'
import { clockFindings } from './clock.ts'
import { configurationFindings } from './configuration.ts'
import { type DatabaseFindings, secretFindings } from './database.ts'
import { destinationFindings } from './destinations.ts'
import { type ReadStored, readStored, type StoredFacts } from './facts.ts'
import { fileFindings } from './files.ts'
import { guardFindings } from './guard.ts'
import { missingDatabase } from './missing.ts'
import { askOthers } from './network.ts'
import { serverDatabaseFindings } from './postgres.ts'
import { relayFindings } from './relays.ts'
import { hasAddress, hostFindings, settingsFileFindings, settingsFindings } from './settings.ts'
import { sqliteFindings } from './sqlite.ts'

export async function examine(env: Env, check: DatabaseCheck): Promise<readonly Finding[]> {
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const found = [...settingsFindings(error.problems), ...settingsFileFindings(env)]
    // The database settings may still be valid.
    const context = storeConfigOf(env)
    if (!context) return found
    const { isMissing, findings } = await inspectDatabase(context, { check, read: async () => undefined })
    return [...missingFindings(env, context, isMissing), ...found, ...findings]
  }
  const destinations = readDestinationConfig(env)
  const isHere = hasAddress(config.host)
  const others = await askOthers(config, isHere)
  const read: ReadStored = (stores) => readStored(stores, config, destinations)
  // Last: it blocks the event loop, and would delay the answers of the others.
  const inside = await inspectDatabase(config, { check, read })
  return [
    ...missingFindings(env, config, inside.isMissing),
    ...settingsFindings([]),
    ...settingsFileFindings(env),
    ...settingWarnings(config, env.NODE_ENV || undefined).map(({ setting, problem, remedy }) =>
      warn(setting, problem, remedy),
    ),
    ...hostFindings(config.host, isHere),
    ...tlsFindings(config.tls, Date.now()),
    ...inside.findings,
    ...(inside.stored ? storedFindings(inside.stored, config, destinations, inside.secretKeys) : []),
    ...others.findings,
    ...clockFindings(others.clocks, inside.lastRequestAt, Date.now()),
  ]
}

/** First, since the other findings may be about another database than the server's (design D51). */
function missingFindings(env: Env, config: StoreConfig, isMissing: boolean): readonly Finding[] {
  if (!isMissing) return []
  const { message, remedy } = missingDatabase(env, config)
  return [fail('database', message, remedy)]
}

function storedFindings(
  stored: StoredFacts,
  config: Config,
  destinations: DestinationConfig,
  secretKeys: SecretKeys | undefined,
): readonly Finding[] {
  const { alerts, appCredentials, limits, otpTtlSeconds } = config
  const { health, rules, brands } = stored
  return [
    ...destinationFindings(rules, destinations),
    ...guardFindings(stored, config),
    ...problemsOf(health),
    ...budgetFindings(health, alerts),
    ...dltFindings(brands, otpTtlSeconds),
    ...appFindings(stored, [...appCredentials.keys()], limits.globalPerMinute),
    ...accountFindings(stored, secretKeys, config),
    ...relayFindings(stored, secretKeys),
    ...configurationFindings(stored, config),
  ]
}

function storeConfigOf(env: Env): StoreConfig | undefined {
  try {
    return readStoreConfig(env)
  } catch {
    return undefined
  }
}

async function inspectDatabase(
  { database, secretKeys }: StoreConfig,
  how: { readonly check: DatabaseCheck; readonly read: ReadStored },
): Promise<DatabaseFindings> {
  if (database.kind === 'sqlite') {
    const { findings, ...facts } = await sqliteFindings(database.file, secretKeys, how)
    return {
      findings: [...fileFindings(database.file, secretKeys !== undefined), ...findings],
      ...facts,
    }
  }
  const { conditionOf } = await import('../adapters/postgres/condition.ts')
  const facts = await conditionOf(database.target, how.read)
  const noted = facts.kind === 'answered' ? facts.keyFingerprints : []
  return {
    isMissing: facts.kind === 'answered' && facts.schema === 'none',
    findings: [
      ...serverDatabaseFindings(database.name, facts),
      ...secretFindings(noted, secretKeys ? keyFingerprints(secretKeys) : 'none', 'SECRET_KEY'),
    ],
    lastRequestAt: facts.kind === 'answered' ? facts.lastRequestAt : null,
    stored: facts.kind === 'answered' ? facts.read : undefined,
    secretKeys,
  }
}
