import { readFileSync } from 'node:fs'
import { type SecretKeys, secretKeysIn } from '../adapters/crypto/secret-file.ts'
import { keyFingerprints } from '../adapters/crypto/secrets.ts'
import { conditionOf } from '../adapters/sqlite/condition.ts'
import { isMissing } from '../adapters/sqlite/marker.ts'
import type { DatabaseCheck, DatabaseFacts } from '../adapters/store/condition.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { bytesWords } from '../domain/ground/format.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'
import { type DatabaseFindings, schemaFinding, secretFindings } from './database.ts'
import type { ReadStored } from './facts.ts'
import { pathFacts } from './files.ts'

export async function sqliteFindings(
  databaseFile: string,
  secretKeys: SecretKeys | undefined,
  how: { readonly check: DatabaseCheck; readonly read: ReadStored },
): Promise<DatabaseFindings> {
  const unread = { isMissing: false, lastRequestAt: null, stored: undefined, secretKeys: undefined }
  if (isMissing(databaseFile)) return { findings: [], ...unread, isMissing: true }
  try {
    const facts = await conditionOf(databaseFile, how)
    const [keys, source] = ownKeys(databaseFile, secretKeys)
    const own = typeof keys === 'string' ? keys : keyFingerprints(keys)
    return {
      findings: [...secretFindings(facts.keyFingerprints, own, source), ...databaseFindings(facts)],
      isMissing: false,
      lastRequestAt: facts.lastRequestAt,
      stored: facts.read,
      secretKeys: typeof keys === 'string' ? undefined : keys,
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const remedy = 'Fix this, or restore the latest backup with `otpost restore`.'
    return { findings: [fail('integrity', message, remedy)], ...unread }
  }
}

function ownKeys(
  databaseFile: string,
  given: SecretKeys | undefined,
): [SecretKeys | 'none' | 'unusable', string] {
  if (given) return [given, 'SECRET_KEY']
  const file = `${databaseFile}.key`
  // `fileFindings` reports a missing or unreadable file.
  const facts = pathFacts(file)
  if (facts?.kind !== 'file' || !facts.readable) return ['none', file]
  return [secretKeysIn(readFileSync(file, 'utf8')) ?? 'unusable', file]
}

/** A write-ahead log larger than this is not checkpointed. */
const usualLogBytes = 64 * 2 ** 20

export function databaseFindings(facts: Omit<DatabaseFacts<unknown>, 'read'>): readonly Finding[] {
  const { journalMode, damage, checked, schema, logBytes } = facts
  const [first] = damage
  return [
    first === undefined
      ? integrityFinding(checked)
      : fail(
          'integrity',
          `The database is damaged: ${first}${damage.length > 1 ? `, and ${damage.length - 1} more` : ''}.`,
          'Stop the server, copy the file and its -wal file, check the disk, and restore the latest backup with `otpost restore`.',
        ),
    schemaFinding(schema),
    journalMode === 'wal'
      ? ok('journal mode', 'WAL.')
      : warn(
          'journal mode',
          `The journal mode is ${journalMode}, so reads and writes block each other.`,
          'Stop the server, and run `otpost migrate`.',
        ),
    logBytes <= usualLogBytes
      ? ok('log', `${bytesWords(logBytes)} not yet checkpointed.`)
      : warn(
          'log',
          `The write-ahead log has ${bytesWords(logBytes)}. A long read keeps it from being reset.`,
          `Look for a backup or another program that has the database open. For Litestream, see ${docsAt('litestream.md')}.`,
        ),
  ]
}

function integrityFinding(checked: DatabaseFacts<unknown>['checked']): Finding {
  if (checked === 'none')
    return ok('integrity', 'Not checked here, since it takes long. `otpost doctor` does.')
  if (checked === 'part') {
    return warn(
      'integrity',
      'No damage found, but there was not enough time to check every table.',
      'Run `otpost doctor --full`.',
    )
  }
  return ok('integrity', checked === 'full' ? 'Every page and index is intact.' : 'Every page is intact.')
}
