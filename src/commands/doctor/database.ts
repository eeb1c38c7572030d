import type { ServerDatabaseFacts } from '../../adapters/store/condition.ts'
import { type Finding, fail, found, ok, warn } from './finding.ts'

/** The findings of a database. */
export interface DatabaseFindings {
  readonly findings: readonly Finding[]
  /** The latest request in the event log, epoch milliseconds. */
  readonly lastRequestAt: number | null
}

export function schemaFinding(
  schema: Extract<ServerDatabaseFacts, { kind: 'answered' }>['schema'] | 'unknown',
): Finding {
  switch (schema) {
    case 'current':
      return ok('schema', 'is up to date')
    case 'none':
      return warn('schema', 'there is none yet', 'otpost migrate, or start a server')
    case 'older':
      return warn(
        'schema',
        'is of an older version of otpost',
        'otpost migrate, or start the server, after a backup',
      )
    case 'newer':
      return fail(
        'schema',
        'is of a newer version of otpost',
        'start that version, or restore a backup made before the upgrade',
      )
    case 'unknown':
      return fail('schema', 'is not that of otpost', 'correct DATABASE_URL')
  }
}

/**
 * Whether a command with these settings finds the records of the server.
 *
 * @param noted the fingerprints of the server's secret keys; empty: no server has used the database yet
 * @param own those of the settings
 * @param source where those come from
 */
export function secretFindings(
  noted: readonly string[],
  own: readonly string[] | 'none' | 'unusable',
  source: string,
): readonly Finding[] {
  if (own === 'unusable') {
    const remedy = 'put it back from where it is kept, or set SECRET_KEY'
    return [fail('secret', `${source} does not hold a secret of at least 32 bytes`, remedy)]
  }
  if (own === 'none' || noted.length === 0) return []
  const known = noted.filter((fingerprint) => own.includes(fingerprint)).length
  return found(
    known === noted.length && ok('secret', `${source} is what the server works with`),
    known > 0 &&
      known < noted.length &&
      warn(
        'secret',
        `${source} lacks a former secret that the server has worked with: what that made is not found`,
        'set SECRET_KEY as the server has it; where the former one is to be left out, restart the server so',
      ),
    known === 0 &&
      fail(
        'secret',
        `${source} is not the secret that the server has worked with: with another one codes on their way do not verify, and nobody's records are found`,
        'set SECRET_KEY as the server has it; where it is being replaced, SECRET_KEY=NEW,OLD',
      ),
  )
}

/** @param ignoredAt the start of the last hour in which the server ignored X-Forwarded-For (design D21) */
export function forwardedFindings(ignoredAt: number | null, now: number): readonly Finding[] {
  return found(
    ignoredAt !== null &&
      ignoredAt >= now - 86_400_000 &&
      warn(
        'TRUSTED_PROXIES',
        `X-Forwarded-For from an IP address outside TRUSTED_PROXIES was ignored, last in the hour from ${new Date(ignoredAt).toISOString()}: the sender counts as the client of these requests. The log line "X-Forwarded-For is ignored" has the sender's network`,
        'if your proxy is in that network, add its IP address to TRUSTED_PROXIES; if not, let only your proxy connect to otpost',
      ),
  )
}
