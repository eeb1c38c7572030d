import type { ServerDatabaseFacts } from '../adapters/store/condition.ts'
import { clockProblems } from '../domain/health/clock.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'
import { citusFindings } from './citus.ts'
import { schemaFinding } from './database.ts'

export function serverDatabaseFindings(
  name: string,
  facts: ServerDatabaseFacts<unknown>,
): readonly Finding[] {
  if (facts.kind === 'silent') {
    return [
      fail(
        'database',
        `${name} cannot be used. ${facts.reason}`,
        'Fix this first: until then every request fails.',
      ),
    ]
  }
  const { isReadOnly, mostConnections, connections, poolSize } = facts
  const apart = clockProblems(
    { lastRequestAt: null, databaseAheadMs: facts.clock.at - facts.clock.localAt },
    facts.clock.localAt,
  )
  return [
    isReadOnly
      ? fail(
          'database',
          `${name} is read-only. It is a standby, or its disk is full.`,
          'Set DATABASE_URL to the primary, or free disk space.',
        )
      : ok('database', `${name} answers: PostgreSQL ${facts.version}.`),
    ...(facts.schema === 'none' ? [] : [schemaFinding(facts.schema)]),
    durabilityFinding(facts),
    facts.hasTls || facts.isLocal
      ? ok('TLS', facts.hasTls ? 'In use.' : 'Not needed: the database is on this machine.')
      : warn(
          'TLS',
          'Not in use: requests to the database cross the network unencrypted.',
          'Set sslmode=verify-full in DATABASE_URL.',
        ),
    connections + poolSize <= mostConnections
      ? ok('connections', `${connections} of ${mostConnections} are open. A server opens up to ${poolSize}.`)
      : warn(
          'connections',
          `${connections} of ${mostConnections} are open. A server opens up to ${poolSize}, which is too many.`,
          'Raise max_connections, lower DATABASE_POOL_SIZE, or use PgBouncer with DATABASE_PGBOUNCER=1.',
        ),
    ...(apart.length > 0 ? apart : [ok('database clock', 'Within 30 s of the clock of this machine.')]),
    ...(facts.cluster ? citusFindings(facts.cluster) : []),
  ]
}

function durabilityFinding(facts: Extract<ServerDatabaseFacts<unknown>, { kind: 'answered' }>): Finding {
  const what = 'durability'
  const { fsync, fullPageWrites, synchronousCommit, isReadOnly } = facts
  const { awaited, connected, isHidden } = facts.standbys
  const setting = `synchronous_commit = ${synchronousCommit}`
  const standbys = awaited === 1 ? '1 standby' : `${awaited} standbys`
  if (!fsync || !fullPageWrites || synchronousCommit === 'off') {
    return fail(
      what,
      `A crash can lose confirmed changes and make used codes valid again: fsync = ${onOff(fsync)}, full_page_writes = ${onOff(fullPageWrites)}, ${setting}.`,
      'Set all three to on, in postgresql.conf or for this database and user.',
    )
  }
  // A standby has no commits of its own that could wait for other standbys.
  if (awaited === 0 || isReadOnly) return ok(what, `A commit is on the disk of this machine (${setting}).`)
  if (synchronousCommit === 'local') {
    return warn(
      what,
      `A commit is on the disk of this machine and does not wait for ${standbys} in synchronous_standby_names (${setting}). A failover can lose the latest changes.`,
      'Set synchronous_commit to on, in postgresql.conf or for this database and user.',
    )
  }
  if (connected < awaited) {
    return fail(
      what,
      `A commit waits for ${standbys} in synchronous_standby_names, but ${connected === 0 ? 'none' : connected} of them ${connected > 1 ? 'are' : 'is'} connected. Until that changes, every request fails with 500.`,
      'Start the standby, and check its log and the network; or remove it from synchronous_standby_names.',
    )
  }
  const seen = isHidden ? 'only members of pg_monitor can see which are connected' : `${connected} connected`
  return ok(what, `A commit is on the disk and waits for ${standbys} (${setting}; ${seen}).`)
}

function onOff(flag: boolean): string {
  return flag ? 'on' : 'off'
}
