import { type SecretKeys, secretKeysIn } from '../adapters/crypto/secret-file.ts'
import { toAsciiDomain } from '../adapters/email/domain.ts'
import { hostKindWith } from '../adapters/events/host-kind.ts'
import { type Network, network } from '../adapters/http/client-ip.ts'
import { e164In, isRegion } from '../adapters/phone/e164.ts'
import type { DatabaseTarget } from '../adapters/postgres/target.ts'
import { readPostgresUrl } from '../adapters/postgres/url.ts'
import { type Contacts, contactsOf } from '../domain/ground/contact.ts'
import { maxApiKeyLength } from '../domain/limits/credentials.ts'
import {
  alertSettings,
  codeSettings,
  credentialSettings,
  databaseSettings,
  serverSettings,
} from './server-settings.ts'
import type { TextSetting } from './setting.ts'
import type { Env } from './setting-source.ts'
import { Settings } from './settings.ts'

export type StoreConfig = ReturnType<typeof readStoreSettings>
export type DatabaseConfig = ReturnType<typeof readDatabase>

/** @throws ConfigError with every problem */
export function readStoreConfig(env: Env): StoreConfig {
  const settings = new Settings(env)
  return settings.checked(readStoreSettings(settings))
}

export function readStoreSettings(settings: Settings) {
  const database = readDatabase(settings, databaseSettings.DATABASE_URL)
  const secretKeys = readSecretKeys(settings)
  if (database.kind === 'postgres' && settings.optional(credentialSettings.SECRET_KEY) === undefined) {
    settings.refuse(
      'SECRET_KEY',
      'must be set if DATABASE_URL is postgres://, because all nodes need the same key. Set it to the output of openssl rand -base64 32, or to the content of the .key file beside the former SQLite database',
    )
  }
  const isProduction = settings.optional(serverSettings.NODE_ENV)?.trim() === 'production'
  const why = 'A network of /0 would let every app reach the networks of this machine'
  const allowed = readNetworks(settings, alertSettings.EVENTS_ALLOWED_NETWORKS, why)
  return {
    database,
    /** Undefined: the key file beside an SQLite database. */
    secretKeys,
    appCredentials: readAppCredentials(settings),
    contacts: readContacts(settings),
    /** NODE_ENV=production. */
    isProduction,
    /** Which hosts webhooks may have. In development, it decides only whether http is allowed. */
    hostKind: hostKindWith(isProduction ? allowed : []),
  }
}

/** @param why a network of /0 is refused, as a sentence without its point */
export function readNetworks(settings: Settings, setting: TextSetting, why: string): readonly Network[] {
  if (settings.optional(setting) === undefined) return []
  return settings.list(setting).flatMap((text) => {
    const read = network(text)
    if (read && read[1] > 0) return [read]
    settings.refuse(
      setting.name,
      `must be IP addresses or networks such as 10.0.0.0/8, separated by commas. ${why}`,
    )
    return []
  })
}

export function readDatabaseUrl(env: Env, option: string, url: string): DatabaseConfig {
  const settings = new Settings({ ...env, [option]: url })
  return settings.checked(
    readDatabase(settings, { ...databaseSettings.DATABASE_URL, name: option, default: '' }),
  )
}

/** `name` is for messages: the path, or the URL without user, password and parameters. */
function readDatabase(settings: Settings, setting: TextSetting) {
  const { name } = setting
  const url = (settings.optional(setting) ?? setting.default ?? '').trim()
  // Read with SQLite too, so that a wrong value is reported.
  const pool = {
    poolSize: settings.integer(databaseSettings.DATABASE_POOL_SIZE),
    connectTimeoutMs: settings.integer(databaseSettings.DATABASE_CONNECT_TIMEOUT_MS),
    statementTimeoutMs: settings.integer(databaseSettings.DATABASE_STATEMENT_TIMEOUT_MS),
    idleInTransactionTimeoutMs,
    isPooled: settings.flag(databaseSettings.DATABASE_PGBOUNCER),
    batchSize: settings.integer(databaseSettings.DATABASE_BATCH_SIZE),
  }
  if (/^postgres(?:ql)?:/i.test(url)) {
    const read = readPostgresUrl(url)
    for (const problem of read.problems) settings.refuse(name, problem)
    settings.show(setting, read.name)
    const target: DatabaseTarget = { ...read.server, ...pool }
    return { kind: 'postgres' as const, name: read.name, target }
  }
  const file = url.startsWith('file:') ? url.slice('file:'.length).replace(/^\/\/(?=\/)/, '') : ''
  if (file === '' || file.includes('?')) {
    settings.refuse(
      name,
      'must be file: and a path, such as file:data/otpost.db, or a URL such as postgres://otpost:password@db.example.com/otpost?sslmode=verify-full',
    )
  }
  // Other URLs may contain a password.
  settings.show(setting, url.startsWith('file:') ? url : '')
  return { kind: 'sqlite' as const, name: file, file }
}

/** A transaction with locks usually takes milliseconds. */
const idleInTransactionTimeoutMs = 2000

function readSecretKeys(settings: Settings): SecretKeys | undefined {
  const text = settings.optional(credentialSettings.SECRET_KEY)
  if (text === undefined) return undefined
  const keys = secretKeysIn(text)
  if (!keys) {
    settings.refuse(
      'SECRET_KEY',
      'must have at least 32 bytes, such as the output of openssl rand -base64 32. Several keys are separated by commas; the present key comes first',
    )
  }
  return keys
}

function readAppCredentials(settings: Settings): ReadonlyMap<string, string> {
  const json = settings.optional(credentialSettings.APP_CREDENTIALS)
  if (json === undefined) return new Map()
  let pairs: [string, unknown][] = []
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError()
    pairs = Object.entries(value)
  } catch {
    settings.refuse('APP_CREDENTIALS', 'must be a JSON object of appId and API key, such as {"shop":"…"}')
  }
  const credentials = new Map<string, string>()
  for (const [appId, apiKey] of pairs) {
    const isKey = typeof apiKey === 'string' && apiKey !== '' && apiKey.length <= maxApiKeyLength
    if (appId !== '' && isKey) credentials.set(appId, apiKey)
    else
      settings.refuse(
        'APP_CREDENTIALS',
        `must give each appId an API key, a string of 1 to ${maxApiKeyLength} characters`,
      )
  }
  return credentials
}

function readContacts(settings: Settings): Contacts {
  const region = settings.optional(codeSettings.PHONE_DEFAULT_REGION)?.trim().toUpperCase()
  const isKnown = region !== undefined && isRegion(region)
  if (region !== undefined && !isKnown) {
    settings.refuse('PHONE_DEFAULT_REGION', 'must be a country code of two letters, such as IN or US')
  }
  return contactsOf(e164In(isKnown ? region : undefined), toAsciiDomain)
}
