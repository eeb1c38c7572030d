import { existsSync, readFileSync } from 'node:fs'
import { type SecretKeys, secretKeysIn } from '../adapters/crypto/secret-file.ts'
import { keyFingerprints } from '../adapters/crypto/secrets.ts'
import { importAll, OutcomeUnknown } from '../adapters/postgres/import.ts'
import type { PostgresTarget } from '../adapters/postgres/pool.ts'
import { fingerprintsIn, holdFile, requireFileThere } from '../adapters/sqlite/export.ts'
import { ConfigError } from '../config/settings.ts'
import { type DatabaseConfig, readDatabaseUrl, readStoreConfig } from '../config/store.ts'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import type { Clock } from '../domain/ground/time.ts'
import { requireKnownKey } from '../secret-key.ts'
import { type Env, print, printTable } from './common.ts'

export interface MoveOptions {
  readonly from: string
  readonly to?: string
  readonly keep?: true
  readonly force?: true
}

export async function runMove(env: Env, { from, to, keep, force }: MoveOptions): Promise<void> {
  const given = (option: string, url: string) => {
    try {
      return readDatabaseUrl(env, option, url)
    } catch (error) {
      throw error instanceof ConfigError ? new InvalidInput(error.message) : error
    }
  }
  const source = given('--from', from)
  const target =
    to === undefined ? readDatabaseUrl(env, 'DATABASE_URL', env.DATABASE_URL ?? '') : given('--to', to)
  const { file, server } = way(source, target)
  requireFileThere(file)
  const { secretKeys: ownKeys } = readStoreConfig({ ...env, DATABASE_URL: `file:${file}` })
  const { advice, secretKeys } = secretOf(file, ownKeys, force ?? false)
  const startedAt = performance.now()
  const { moved, asideFile } = await move(file, server, { keep: keep ?? false, secretKeys })
  const seconds = (performance.now() - startedAt) / 1000
  printTable(undefined, moved, [
    ['WHAT', ({ called }) => called],
    ['ROWS', ({ rows }) => String(rows)],
    ['LEFT OUT', ({ leftOut }) => (leftOut === 0 ? '-' : `${leftOut} expired`)],
  ])
  print(
    `Copied ${file} to ${target.name} in ${seconds.toFixed(1)} s. The row counts are the same on both sides.`,
  )
  print(
    asideFile === null
      ? `${file} is unchanged. Do not start a server on it again: codes used from now on would be valid there a second time.`
      : `${file} is renamed to ${asideFile}, so that no server uses it by mistake. Remove it when the new database works.`,
  )
  print(`Start the servers with DATABASE_URL set to ${target.name}, and ${advice}.`)
}

interface MoveSettings {
  readonly secretKeys: SecretKeys | undefined
  readonly keep: boolean
  readonly now?: Clock
}

/**
 * Copies a file into an empty database and renames the file, so that no server uses both. After a failure the file is
 * unchanged and the database empty, except after a crash during COMMIT: then the file is renamed and the copy may be missing.
 *
 * @param secretKeys those of the servers, if known: the database rejects servers with other keys
 * @param keep does not rename the file
 * @returns `asideFile`: the new name of the file; null: unchanged
 */
export async function move(
  file: string,
  target: PostgresTarget,
  { secretKeys, keep, now = Date.now }: MoveSettings,
) {
  const source = holdFile(file, now)
  let asideFile: string | null = null
  try {
    const own = secretKeys && keyFingerprints(secretKeys)
    const noteKeys = own && {
      present: own[0],
      check: (noted: readonly string[]) => requireKnownKey(own, noted),
    }
    const moved = await importAll(target, source, noteKeys, () => {
      if (!keep) asideFile = source.setAside()
    })
    return { moved, asideFile }
  } catch (error) {
    if (error instanceof OutcomeUnknown) throw new OperatorError(inDoubt(error.message, file, asideFile))
    source.putBack()
    throw error
  } finally {
    source.close()
  }
}

function way(source: DatabaseConfig, target: DatabaseConfig): { file: string; server: PostgresTarget } {
  if (source.kind === 'sqlite' && target.kind === 'postgres') {
    return { file: source.file, server: target.target }
  }
  if (source.kind === 'postgres' && target.kind === 'sqlite') {
    throw new InvalidInput(
      'otpost cannot move data from PostgreSQL to a file. The file as it was before a move has the suffix .moved-TIME; `otpost restore` restores it without its codes.',
    )
  }
  throw new InvalidInput(
    source.kind === 'sqlite'
      ? 'Both databases are files. Copy one with `otpost backup` and `otpost restore` instead.'
      : 'Both databases are PostgreSQL. Use pg_dump and pg_restore, or replication, instead.',
  )
}

/** The secret keys of the file, and the advice on SECRET_KEY for the servers. */
function secretOf(
  file: string,
  given: SecretKeys | undefined,
  isForced: boolean,
): { advice: string; secretKeys: SecretKeys | undefined } {
  const keyFile = `${file}.key`
  const kept = existsSync(keyFile) ? secretKeysIn(readFileSync(keyFile, 'utf8')) : undefined
  const noted = fingerprintsIn(file)
  if (noted.length > 0 && !isForced) {
    const isServers = (keys: SecretKeys | undefined) =>
      keys !== undefined && noted.every((mark) => keyFingerprints(keys).includes(mark))
    const source = given ? 'SECRET_KEY' : keyFile
    if ((given ?? kept) && !isServers(given ?? kept)) {
      throw new OperatorError(
        `${source} does not have every secret key that the server of ${file} used. With another secret key, no code and no limit is found. ${given && isServers(kept) ? `Unset SECRET_KEY, or set SECRET_KEY="$(cat ${keyFile})"` : "Set SECRET_KEY to the server's value"}. To move the data anyway, add --force.`,
      )
    }
    if (given) return { advice: 'with SECRET_KEY as it is set here', secretKeys: given }
  }
  const isOther = kept !== undefined && given !== undefined && !given.includes(kept[0])
  if (isOther && !isForced) {
    throw new OperatorError(
      `SECRET_KEY differs from the secret key in ${keyFile}. With another secret key than the servers used, no code and no limit is found. Unset SECRET_KEY, or set SECRET_KEY="$(cat ${keyFile})". If the servers used this SECRET_KEY, add --force.`,
    )
  }
  if (given)
    return { advice: 'with SECRET_KEY as it is set here', secretKeys: isOther ? given : (kept ?? given) }
  if (kept) {
    return {
      advice: `with the same SECRET_KEY="$(cat ${keyFile})" on each server`,
      secretKeys: kept,
    }
  }
  if (isForced) return { advice: 'with the same new SECRET_KEY on each server', secretKeys: undefined }
  throw new OperatorError(
    `The secret key of this database is missing. Restore ${keyFile}, or set SECRET_KEY to the value that the servers used. Without it, no code and no limit is found. To move the data without it, add --force.`,
  )
}

function inDoubt(problem: string, file: string, asideFile: string | null): string {
  const back = asideFile === null ? '' : `: mv ${asideFile} ${file}`
  return `The connection was lost during the commit (${problem}), so it is unknown whether the move is complete. When PostgreSQL is back, run \`otpost brand list\` on it. If it lists the brands, the move is complete. If it lists none, nothing was moved, and the file stays in use${back}.`
}
