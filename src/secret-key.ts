import { existsSync } from 'node:fs'
import { secretsFrom } from './adapters/crypto/secret-file.ts'
import { keyFingerprints, newSecretKey } from './adapters/crypto/secrets.ts'
import type { KeyFingerprints, OpenStore } from './adapters/store/store.ts'
import type { StoreConfig } from './config/store.ts'
import type { Log } from './domain/ground/ports.ts'

// Records are found only by the key that they were stored under, so databases note key fingerprints.

interface Opening {
  /** A command must have the keys that servers noted, and creates no key file for an existing database. */
  readonly serves: boolean
  readonly log: Log
}

/**
 * The keys of SECRET_KEY or, beside an SQLite file, of its key file.
 * @returns `problem`: why these keys do not find records of recipients. `note` notes them in the database; call it only after
 *   the server listens
 * @throws on PostgreSQL if SECRET_KEY lacks the key of the server that started last
 */
export function keysFor(config: StoreConfig, store: OpenStore, opening: Opening) {
  return config.database.kind === 'postgres'
    ? keysOnPostgres(config, store.fingerprints, opening)
    : keysOnSqlite(config, config.database.file, store, opening)
}

export function requireKnownKey(own: readonly string[], noted: readonly string[]): void {
  if (noted.every((fingerprint) => own.includes(fingerprint))) return
  throw new Error(
    'SECRET_KEY does not list the secret key of the server that started last on this database, so its codes and limits would not be found. Set SECRET_KEY to the value of that server. To replace the key, first set SECRET_KEY=OLD,NEW on all servers, then NEW,OLD. If that key is lost, stop all servers, run DELETE FROM key_fingerprints, and start them again.',
  )
}

async function keysOnPostgres(
  { secretKeys }: StoreConfig,
  fingerprints: KeyFingerprints,
  { serves }: Opening,
) {
  if (secretKeys === undefined) throw new Error('SECRET_KEY must be set for a PostgreSQL database.')
  await useOnPostgres(fingerprints, keyFingerprints(secretKeys), serves)
  return { secretKeys, problem: undefined, note: async () => {} }
}

/** A server's present key becomes the one that all others must have. */
export async function useOnPostgres(
  fingerprints: KeyFingerprints,
  own: readonly [string, ...string[]],
  serves: boolean,
): Promise<void> {
  const noted = await fingerprints.noted()
  // Servers may start at once, so this checks again within the change.
  if (serves && noted[0] !== own[0]) {
    await fingerprints.replace([own[0]], (current) => requireKnownKey(own, current))
  } else requireKnownKey(own, noted)
}

async function keysOnSqlite(
  config: StoreConfig,
  file: string,
  { isNew, fingerprints }: OpenStore,
  { serves, log }: Opening,
) {
  const { secretKeys, isNewFile, keyFile } = readKeys(config, file, serves || isNew)
  const own = keyFingerprints(secretKeys)
  const noted = await fingerprints.noted()
  if (serves && isNewFile && !isNew) {
    log.warn({ file: keyFile }, 'the key file was missing and was created: codes sent before do not verify')
  } else if (serves && noted.length > 0 && !noted.some((each) => own.includes(each))) {
    log.warn(
      {},
      'this database was used with another secret key: codes sent before do not verify. If you know the previous key, restart with SECRET_KEY=NEW,PREVIOUS',
    )
  }
  return {
    secretKeys,
    problem: serves || isNewFile ? undefined : problemOf(config, keyFile, own, noted),
    note: async () => {
      const isNoted = noted.length === own.length && own.every((each) => noted.includes(each))
      if (!isNoted) await fingerprints.replace(own)
    },
  }
}

function readKeys({ secretKeys }: StoreConfig, file: string, mayCreate: boolean) {
  const keyFile = file === ':memory:' ? undefined : `${file}.key`
  if (secretKeys) return { secretKeys, isNewFile: false, keyFile }
  // A new key: nothing is stored under it.
  if (!keyFile || (!mayCreate && !existsSync(keyFile))) {
    return { secretKeys: [newSecretKey()] as const, isNewFile: false, keyFile }
  }
  const { secrets, isNew } = secretsFrom(keyFile)
  return { secretKeys: secrets, isNewFile: isNew, keyFile }
}

function problemOf(
  { secretKeys }: StoreConfig,
  keyFile: string | undefined,
  own: readonly string[],
  noted: readonly string[],
): string | undefined {
  if (!keyFile) return undefined
  const remedy = "set SECRET_KEY to the server's value."
  if (!secretKeys && !existsSync(keyFile)) {
    return `${keyFile} is missing, so records of recipients cannot be found. Restore the file, or ${remedy}`
  }
  if (noted.every((each) => own.includes(each))) return undefined
  return `${secretKeys ? 'SECRET_KEY' : keyFile} does not have a secret key of the server, so records of recipients cannot be found: ${remedy}`
}
