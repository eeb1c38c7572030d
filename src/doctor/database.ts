import type { SecretKeys } from '../adapters/crypto/secret-file.ts'
import type { ServerDatabaseFacts } from '../adapters/store/condition.ts'
import { type Finding, fail, found, ok, warn } from '../domain/health/problem.ts'
import type { StoredFacts } from './facts.ts'

export interface DatabaseFindings {
  readonly findings: readonly Finding[]
  /** There is no database of otpost. */
  readonly isMissing: boolean
  /** Epoch milliseconds. */
  readonly lastRequestAt: number | null
  /** Undefined: the database could not be read. */
  readonly stored: StoredFacts | undefined
  /** Undefined: there are none, or they could not be read. */
  readonly secretKeys: SecretKeys | undefined
}

export function schemaFinding(
  schema: Exclude<Extract<ServerDatabaseFacts<unknown>, { kind: 'answered' }>['schema'], 'none'> | 'unknown',
): Finding {
  switch (schema) {
    case 'current':
      return ok('schema', 'Up to date.')
    case 'older':
      return warn(
        'schema',
        'The schema is of an older version of otpost.',
        'Make a backup, then run `otpost migrate` or start the server.',
      )
    case 'newer':
      return fail(
        'schema',
        'The schema is of a newer version of otpost, or of one that was never released.',
        'Start that version, or restore a backup from before the upgrade.',
      )
    case 'unknown':
      return fail('schema', 'The database is not of otpost.', 'Correct DATABASE_URL.')
  }
}

/**
 * @param noted the fingerprints of the server's secret keys; empty: no server has used the database yet
 * @param source where the `own` fingerprints come from
 */
export function secretFindings(
  noted: readonly string[],
  own: readonly string[] | 'none' | 'unusable',
  source: string,
): readonly Finding[] {
  if (own === 'unusable') {
    const remedy = 'Restore the file from your copy, or set SECRET_KEY.'
    return [fail('secret', `${source} does not contain a secret key of at least 32 bytes.`, remedy)]
  }
  if (own === 'none' || noted.length === 0) return []
  const known = noted.filter((fingerprint) => own.includes(fingerprint)).length
  return found(
    known === noted.length && ok('secret', `${source} has the secret keys of the server.`),
    known > 0 &&
      known < noted.length &&
      warn(
        'secret',
        `${source} lacks a previous secret key of the server. Records under that key are not found.`,
        "Set SECRET_KEY to the server's value. If the previous secret key is no longer needed, restart the server without it.",
      ),
    known === 0 &&
      fail(
        'secret',
        `${source} does not have the secret key of the server. With another secret key, codes sent before do not verify, and records of recipients are not found.`,
        "Set SECRET_KEY to the server's value. To replace the secret key, set SECRET_KEY=NEW,PREVIOUS.",
      ),
  )
}
