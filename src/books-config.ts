import { type SecretKeys, secretKeysIn } from './adapters/crypto/secret-file.ts'
import { isRegion, nationalizeFor } from './adapters/phone/nationalize.ts'
import type { Nationalize } from './domain/contact.ts'
import { Settings } from './settings.ts'

/** What the environment says of the store: all that a command needs. */
export interface BooksConfig {
  /** Path of the SQLite file, or `:memory:`. */
  readonly databaseFile: string
  /** The present secret, then former ones. Undefined: made once and kept in a file beside the database. */
  readonly secretKeys: SecretKeys | undefined
  /** appId → API key, beside the apps issued by command. */
  readonly appCredentials: ReadonlyMap<string, string>
  readonly nationalize: Nationalize | undefined
}

/**
 * The settings of a command, which needs no way to deliver.
 *
 * @throws ConfigError naming every variable of them that is wrong
 */
export function readBooksConfig(env: Readonly<Record<string, string | undefined>>): BooksConfig {
  const settings = new Settings(env)
  return settings.checked(readBooks(settings))
}

/** What the server reads of it too. */
export function readBooks(settings: Settings): BooksConfig {
  return {
    databaseFile: readDatabaseFile(settings),
    secretKeys: readSecretKeys(settings),
    appCredentials: readAppCredentials(settings),
    nationalize: readRegion(settings),
  }
}

function readDatabaseFile(settings: Settings): string {
  const url = settings.text('DATABASE_URL', 'file:data/otpost.db').trim()
  const path = url.startsWith('file:') ? url.slice('file:'.length).replace(/^\/\/(?=\/)/, '') : ''
  if (path === '' || path.includes('?')) {
    settings.refuse('DATABASE_URL', 'must be file: and a path, such as file:data/otpost.db')
  }
  return path
}

function readSecretKeys(settings: Settings): SecretKeys | undefined {
  const text = settings.optional('SECRET_KEY')
  if (text === undefined) return undefined
  const keys = secretKeysIn(text)
  if (!keys) {
    settings.refuse(
      'SECRET_KEY',
      'must be at least 32 bytes, such as the output of: openssl rand -base64 32; or several such, separated by commas, the present one first',
    )
  }
  return keys
}

function readAppCredentials(settings: Settings): ReadonlyMap<string, string> {
  const json = settings.optional('APP_CREDENTIALS')
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
    if (appId !== '' && typeof apiKey === 'string' && apiKey !== '') credentials.set(appId, apiKey)
    else settings.refuse('APP_CREDENTIALS', 'must give each appId a non-empty string as its API key')
  }
  return credentials
}

function readRegion(settings: Settings): Nationalize | undefined {
  const region = settings.optional('PHONE_DEFAULT_REGION')?.trim().toUpperCase()
  if (region === undefined) return undefined
  if (isRegion(region)) return nationalizeFor(region)
  settings.refuse('PHONE_DEFAULT_REGION', 'must be a country code of two letters, such as IN or US')
  return undefined
}
