import type { ServerDatabaseFacts } from '../../adapters/store/condition.ts'
import { clockLimitsMs } from './clock.ts'
import { schemaFinding } from './database.ts'
import { type Finding, fail, inSeconds, ok, warn } from './finding.ts'

/** What stands for or against a database server of this name. */
export function serverDatabaseFindings(
  name: string,
  facts: ServerDatabaseFacts,
  now: number,
): readonly Finding[] {
  if (facts.kind === 'silent') {
    return [
      fail(
        'database',
        `${name} can not be used: ${facts.reason}`,
        'correct that: every request is refused meanwhile',
      ),
    ]
  }
  const { isReadOnly, mostConnections, connections, poolSize } = facts
  const aheadMs = facts.clock.at - facts.clock.localAt
  return [
    isReadOnly
      ? fail(
          'database',
          `${name} can only be read: it is a standby, or was made read-only`,
          'let DATABASE_URL lead to the primary, or make room on its disk',
        )
      : ok('database', `${name} answers: PostgreSQL ${facts.version}`),
    schemaFinding(facts.schema),
    durabilityFinding(facts),
    facts.hasTls || facts.isLocal
      ? ok('TLS', facts.hasTls ? 'in use' : 'not needed on this machine')
      : warn('TLS', 'is not in use, and codes cross the network', 'sslmode=verify-full in DATABASE_URL'),
    connections + poolSize <= mostConnections
      ? ok('connections', `${connections} of ${mostConnections}; a server opens up to ${poolSize}`)
      : warn(
          'connections',
          `${connections} of ${mostConnections} are open, and a server opens up to ${poolSize}`,
          'raise max_connections, lower DATABASE_POOL_SIZE, or put PgBouncer in between (DATABASE_PGBOUNCER=1)',
        ),
    Math.abs(aheadMs) <= clockLimitsMs.warn
      ? ok('database clock', 'is that of this machine, within half a minute')
      : warn(
          'database clock',
          `is ${inSeconds(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} this machine's; codes and limits go by it, and what is signed by this one`,
          'let both be set over the network',
        ),
    ...(facts.lastRequestAt !== null &&
    facts.lastRequestAt > now + clockLimitsMs.warn &&
    Math.abs(aheadMs) <= clockLimitsMs.warn
      ? [
          warn(
            'database clock',
            'was ahead once: the latest request is from the future',
            'nothing, where the clock is right now: what lies ahead is cut to its length',
          ),
        ]
      : []),
  ]
}

function durabilityFinding(facts: Extract<ServerDatabaseFacts, { kind: 'answered' }>): Finding {
  const what = 'durability'
  const { fsync, fullPageWrites, synchronousCommit, isReadOnly } = facts
  const { awaited, connected, isHidden } = facts.standbys
  const setting = `synchronous_commit = ${synchronousCommit}`
  const standbys = awaited === 1 ? '1 standby' : `${awaited} standbys`
  if (!fsync || !fullPageWrites || synchronousCommit === 'off') {
    return fail(
      what,
      `what was answered may be lost by a crash, and used codes come back: fsync = ${onOff(fsync)}, full_page_writes = ${onOff(fullPageWrites)}, ${setting}`,
      'set all three to on, in postgresql.conf or for this database and user',
    )
  }
  // Those of a standby itself are nothing that its own commits could wait for.
  if (awaited === 0 || isReadOnly) return ok(what, `a commit is on the disk of this one machine (${setting})`)
  if (synchronousCommit === 'local') {
    return warn(
      what,
      `a commit is on the disk of this one machine, and does not wait for ${standbys} as synchronous_standby_names has it: ${setting}. A failover may lose what was answered last`,
      'set synchronous_commit to on, in postgresql.conf or for this database and user',
    )
  }
  if (connected < awaited) {
    return fail(
      what,
      `a commit waits for ${standbys} by synchronous_standby_names, and ${connected === 0 ? 'none' : connected} of them ${connected > 1 ? 'are' : 'is'} connected: until that changes every request is answered 500`,
      'start the standby, and see its log and the network; or take it out of synchronous_standby_names',
    )
  }
  const seen = isHidden
    ? 'which are connected is shown to members of pg_monitor alone'
    : `${connected} of those it may be ${connected === 1 ? 'is' : 'are'} connected`
  return ok(what, `a commit is on the disk, and waits for ${standbys} (${setting}; ${seen})`)
}

function onOff(flag: boolean): string {
  return flag ? 'on' : 'off'
}
