import type { DatabaseFacts, ServerDatabaseFacts } from '../../adapters/store/condition.ts'

// What `otpost doctor` makes of what it has seen: facts in, findings out.

/** One thing that was looked at. `warn` and `fail` come with what to do about it. */
export type Finding =
  | { readonly level: 'ok'; readonly what: string; readonly message: string }
  | {
      readonly level: 'warn' | 'fail'
      readonly what: string
      readonly message: string
      readonly remedy: string
    }

function ok(what: string, message: string): Finding {
  return { level: 'ok', what, message }
}

function warn(what: string, message: string, remedy: string): Finding {
  return { level: 'warn', what, message, remedy }
}

function fail(what: string, message: string, remedy: string): Finding {
  return { level: 'fail', what, message, remedy }
}

/** @param problems each the name of a variable and what is wrong with it */
export function settingsFindings(problems: readonly string[]): readonly Finding[] {
  if (problems.length === 0) return [ok('settings', 'every variable can be used')]
  return problems.map((problem) =>
    fail(
      'settings',
      problem,
      `correct ${/^\w+/.exec(problem)?.[0] ?? 'it'} where the server has its environment from; the README lists all variables`,
    ),
  )
}

/** Settings that can be used, and may not be what is wanted. */
export interface SettingFacts {
  /** Variables by which messages end in the outbox or are dropped. */
  readonly developmentOnly: readonly string[]
  readonly publicUrl: string | undefined
  readonly trustsProxies: boolean
  /** Applications whose key in APP_CREDENTIALS is shorter than 32 characters. */
  readonly shortKeys: readonly string[]
  /** Whether METRICS_TOKEN is one that could be guessed. */
  readonly hasShortMetricsToken: boolean
  readonly nodeEnv: string | undefined
}

const environments: readonly string[] = ['production', 'development', 'test']

export function settingWarnings(facts: SettingFacts): readonly Finding[] {
  const { developmentOnly, publicUrl, trustsProxies, shortKeys, hasShortMetricsToken, nodeEnv } = facts
  return [
    ...(nodeEnv === undefined || environments.includes(nodeEnv)
      ? []
      : [
          warn(
            'NODE_ENV',
            `is ${nodeEnv}, and not production: messages may stay in the outbox, which whoever reaches the port may read`,
            'set NODE_ENV=production where people depend on it',
          ),
        ]),
    ...developmentOnly.map((name) =>
      warn(
        name,
        'messages reach nobody: they are kept for developers, or dropped',
        `set ${name} to a provider before people depend on it`,
      ),
    ),
    ...(hasShortMetricsToken
      ? [
          warn(
            'METRICS_TOKEN',
            'is shorter than 16 characters',
            'set it to the output of: openssl rand -hex 32',
          ),
        ]
      : []),
    ...(publicUrl?.startsWith('https:') && !trustsProxies
      ? [
          warn(
            'TRUSTED_PROXIES',
            'is unset, while PUBLIC_URL is https, which otpost does not speak itself: all callers seem to come from the proxy, and share the limits of one address',
            'set TRUSTED_PROXIES to the address of the proxy',
          ),
        ]
      : []),
    ...shortKeys.map((appId) =>
      warn(
        'APP_CREDENTIALS',
        `the key of ${appId} is shorter than 32 characters, and may be guessed`,
        `give it a random one (openssl rand -hex 32), or issue one with otpost app issue ${appId}`,
      ),
    ),
  ]
}

/** A file or folder as this process sees it. */
export interface PathFacts {
  readonly path: string
  readonly kind: 'file' | 'folder' | 'other'
  /** The permission bits, and the sticky one. */
  readonly mode: number
  readonly ownerUid: number
  readonly readable: boolean
  readonly writable: boolean
  /** Of a folder: whether others use it too, so that its mode is not otpost's to change. */
  readonly isShared?: boolean
}

/** What a path is to otpost: who may do what with it. */
export type PathUse = 'database' | 'log' | 'secret' | 'folder'

const groupOrOthers = 0o077
const writableByOthers = 0o022
/** In such a folder nobody may replace the files of others. */
const sticky = 0o1000

/**
 * What keeps this user from using a path at all; undefined: nothing does.
 *
 * @param uid the user that this process runs as
 */
function accessProblem(use: PathUse, facts: PathFacts, uid: number): Finding | undefined {
  const { path, kind, mode, ownerUid, readable, writable } = facts
  if (kind !== (use === 'folder' ? 'folder' : 'file')) {
    return fail(use, `${path} is not a ${use === 'folder' ? 'folder' : 'file'}`, 'correct DATABASE_URL')
  }
  if (readable && (writable || use === 'secret')) return undefined
  const lacking = !readable ? 'read' : 'write'
  if (uid !== ownerUid && uid !== 0) {
    return fail(
      use,
      `user ${uid} may not ${lacking} ${path}, which belongs to user ${ownerUid}`,
      `run otpost as that user, or give it to this one: chown ${uid} ${path}`,
    )
  }
  return (mode & 0o600) === 0o600
    ? fail(
        use,
        `${path} can not be written, whatever its mode says`,
        'see whether its file system is mounted read-only, or the service may write there (ReadWritePaths= of systemd)',
      )
    : fail(use, `user ${uid} may not ${lacking} ${path}, its own`, chmod(use, path))
}

/**
 * What keeps a server from making its database in a folder; undefined: nothing does.
 *
 * @param nearest the folder, or the nearest above it that is there
 * @param uid the user that this process runs as
 */
export function newFolderProblem(folder: string, nearest: PathFacts, uid: number): Finding | undefined {
  if (nearest.path === folder) return accessProblem('folder', nearest, uid)
  if (nearest.kind === 'folder' && nearest.writable) return undefined
  return fail(
    'folder',
    nearest.kind === 'folder'
      ? `user ${uid} may not make ${folder}, nor see whether it is there: ${nearest.path} belongs to user ${nearest.ownerUid}`
      : `${folder} can not be made: ${nearest.path} is not a folder`,
    `make it (install -d -m 0700 -o ${uid} ${folder}), or name another place in DATABASE_URL`,
  )
}

function chmod(use: PathUse, path: string): string {
  return `chmod ${use === 'folder' ? '0700' : '0600'} ${path}`
}

/** @param uid the user that this process runs as */
export function pathFinding(use: PathUse, facts: PathFacts, uid: number): Finding {
  const problem = accessProblem(use, facts, uid)
  if (problem) return problem
  const { path, mode, ownerUid, isShared } = facts
  const seen = `${path} has mode ${(mode & 0o777).toString(8).padStart(4, '0')}`
  if (use === 'secret' && mode & groupOrOthers) {
    return fail(use, `${seen}: others may read the key of all codes`, chmod(use, path))
  }
  const remedy =
    use === 'folder' && isShared
      ? `give the database a folder of its own (install -d -m 0700 -o ${uid} /var/lib/otpost), and name it in DATABASE_URL`
      : chmod(use, path)
  if (use === 'folder' && mode & writableByOthers && !(mode & sticky)) {
    return fail(use, `${seen}: others may replace the database`, remedy)
  }
  if (mode & groupOrOthers) {
    const rest = use === 'folder' ? 'others may see what is in it' : 'others may read who was sent what'
    return use !== 'folder' && mode & 0o007
      ? fail(use, `${seen}: ${rest}`, remedy)
      : warn(use, `${seen}: ${rest}`, remedy)
  }
  // Root may do everything; what it makes, the server's own user may not be able to use.
  if (uid !== 0 && ownerUid !== uid) {
    return warn(use, `${path} belongs to user ${ownerUid}, and this is user ${uid}`, `chown ${uid} ${path}`)
  }
  return ok(use, seen)
}

/** @param freeBytes what this user may still write; @param databaseBytes the file and its log */
export function diskFinding(freeBytes: number, databaseBytes: number): Finding {
  const message = `${inMebibytes(freeBytes)} are free, the database takes ${inMebibytes(databaseBytes)}`
  const remedy = 'make room, move the database to a larger disk, or lower DELIVERY_LOG_DAYS'
  if (freeBytes < 64 * mebibyte) return fail('disk', message, remedy)
  // A backup or a restore needs as much again.
  if (freeBytes < Math.max(512 * mebibyte, databaseBytes)) return warn('disk', message, remedy)
  return ok('disk', message)
}

/** @param host the setting; where `isHere` is false, this machine has no such address */
export function hostFindings(host: string, isHere: boolean): readonly Finding[] {
  return isHere
    ? []
    : [
        fail(
          'HOST',
          `is ${host}, but this machine has no such address`,
          'set HOST to an address of this machine, 127.0.0.1 where a proxy is in front, or 0.0.0.0 for all',
        ),
      ]
}

/** How large the log may be where it is folded back as it should be. */
const usualLogBytes = 64 * 2 ** 20

const schemaFindings: Readonly<Record<DatabaseFacts['schema'], Finding>> = {
  current: ok('schema', 'is up to date'),
  older: warn(
    'schema',
    'is of an older version of otpost',
    'otpost migrate, or start the server, after a backup',
  ),
  newer: fail(
    'schema',
    'is of a newer version of otpost',
    'start that version, or restore a backup made before the upgrade',
  ),
  unknown: fail('schema', 'is not that of otpost', 'correct DATABASE_URL'),
}

/**
 * Whether a command with these settings would find what the server keeps; nothing where no server has been there.
 *
 * @param noted the marks of the server's secrets
 * @param own those of the settings' secrets; 'none': there is none, 'unusable': there is something else in its place
 * @param source where those come from
 */
export function secretFindings(
  noted: readonly string[],
  own: readonly string[] | 'none' | 'unusable',
  source: string,
): readonly Finding[] {
  if (own === 'unusable') {
    return [
      fail(
        'secret',
        `${source} does not hold a secret of at least 32 bytes`,
        'put it back from where it is kept, or set SECRET_KEY',
      ),
    ]
  }
  if (own === 'none' || noted.length === 0) return []
  const known = noted.filter((mark) => own.includes(mark)).length
  if (known === noted.length) return [ok('secret', `${source} is what the server works with`)]
  return known > 0
    ? [
        warn(
          'secret',
          `${source} lacks a former secret that the server has worked with: what that made is not found`,
          'set SECRET_KEY as the server has it; where the former one is to be left out, restart the server so',
        ),
      ]
    : [
        fail(
          'secret',
          `${source} is not the secret that the server has worked with: with another one codes on their way do not verify, and nobody's records are found`,
          'set SECRET_KEY as the server has it; where it is being replaced, SECRET_KEY=NEW,OLD',
        ),
      ]
}

export function databaseFindings(facts: DatabaseFacts): readonly Finding[] {
  const { journalMode, damage, checked, schema, logBytes } = facts
  const [first] = damage
  return [
    first === undefined
      ? integrityFinding(checked)
      : fail(
          'integrity',
          `the database is damaged: ${first}${damage.length > 1 ? `, and ${damage.length - 1} more` : ''}`,
          'stop the server, keep a copy of the file and its -wal, check the disk, and otpost restore the latest backup',
        ),
    schemaFindings[schema],
    journalMode === 'wal'
      ? ok('journal mode', 'WAL')
      : warn(
          'journal mode',
          `${journalMode}, so that reading and writing wait for each other`,
          'otpost migrate, with the server stopped',
        ),
    logBytes <= usualLogBytes
      ? ok('log', `${inMebibytes(logBytes)} wait to be folded back`)
      : warn(
          'log',
          `${inMebibytes(logBytes)} of log: something has been reading for long, so that it can not begin anew`,
          'look for a backup or another program that has the database open; with Litestream see docs/litestream.md',
        ),
  ]
}

function integrityFinding(checked: DatabaseFacts['checked']): Finding {
  if (checked === 'part') {
    return warn(
      'integrity',
      'no damage was found in the part that there was time for',
      'otpost doctor --full',
    )
  }
  return ok(
    'integrity',
    checked === 'full' ? 'every page and index is as it should be' : 'every page is as it should be',
  )
}

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
  const aheadMs = facts.clock.at - facts.clock.askedAt
  return [
    isReadOnly
      ? fail(
          'database',
          `${name} can only be read: it is a standby, or was made read-only`,
          'let DATABASE_URL lead to the primary, or make room on its disk',
        )
      : ok('database', `${name} answers: PostgreSQL ${facts.version}`),
    facts.schema === 'none'
      ? warn('schema', 'there is none yet', 'otpost migrate, or start a server')
      : schemaFindings[facts.schema],
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

/** What another clock said. */
export interface ClockSample {
  /** Who it was. */
  readonly from: string
  /** How far ours is ahead of it; negative: behind. */
  readonly aheadMs: number
  readonly isThisMachine: boolean
}

/** From how much on a clock is wrong, and from how much on what is signed with its time is refused. */
const clockLimitsMs = { warn: 30_000, fail: 240_000 } as const

/**
 * @param samples what others say of the time
 * @param lastRequestAt the latest time in the database, epoch milliseconds
 */
export function clockFindings(
  samples: readonly ClockSample[],
  lastRequestAt: number | null,
  now: number,
): readonly Finding[] {
  const remedy = 'let the clock be set over the network: timedatectl set-ntp true, or chrony'
  const worst = samples.toSorted((a, b) => Math.abs(b.aheadMs) - Math.abs(a.aheadMs))[0]
  const findings: Finding[] = []
  if (worst && Math.abs(worst.aheadMs) > clockLimitsMs.warn) {
    const direction = worst.aheadMs > 0 ? 'ahead of' : 'behind'
    const message = `this clock is ${inSeconds(Math.abs(worst.aheadMs))} ${direction} that of ${worst.from}`
    findings.push(
      Math.abs(worst.aheadMs) > clockLimitsMs.fail
        ? fail('clock', `${message}: what is signed with the time is refused`, remedy)
        : warn('clock', message, remedy),
    )
  }
  const inFutureMs = lastRequestAt === null ? 0 : lastRequestAt - now
  if (inFutureMs > clockLimitsMs.warn) {
    findings.push(
      warn(
        'clock',
        `the latest request in the database came ${inSeconds(inFutureMs)} from now: this clock is behind, or was ahead then`,
        `${remedy}; codes sent at such a time do not verify`,
      ),
    )
  }
  if (findings.length > 0) return findings
  const others = samples.filter(({ isThisMachine }) => !isThisMachine)
  return [
    others.length > 0
      ? ok('clock', `agrees with ${others.map(({ from }) => from).join(', ')}`)
      : ok('clock', 'not compared: nobody outside of this machine told the time'),
  ]
}

/** What came of a request to an address. */
export type Reach =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** What the answer's Date says, epoch milliseconds. */
      readonly date: number | null
      /** Its beginning. */
      readonly text: string
      readonly tookMs: number
    }
  | {
      /** `name`: it is not in the DNS. */
      readonly kind: 'name' | 'proxy' | 'refused' | 'time-out' | 'certificate' | 'other'
      /** The error's code. */
      readonly code: string
    }

type Unreached = Exclude<Reach, { kind: 'answered' }>

/** @param host where it was looked for */
function unreached(host: string, { kind, code }: Unreached): { message: string; remedy: string } {
  switch (kind) {
    case 'name':
      return {
        message: `${host} is not known by that name (${code})`,
        remedy: 'correct the name, or the DNS servers of this machine (/etc/resolv.conf)',
      }
    case 'refused':
      return {
        message: `${host} takes no connection (${code})`,
        remedy: 'start what should listen there, correct address and port, or let the firewall allow it',
      }
    case 'time-out':
      return {
        message: `${host} did not answer in time`,
        remedy: 'let the firewall allow connections from here, or try again: it may be overloaded',
      }
    case 'certificate':
      return {
        message: `${host} is not trusted (${code})`,
        remedy: certificateRemedy(code),
      }
    case 'proxy':
      return {
        message: `the proxy of HTTPS_PROXY lets nobody through to ${host}`,
        remedy: 'correct or unset HTTPS_PROXY, or have the proxy allow it',
      }
    case 'other':
      return {
        message: `${host} could not be asked (${code})`,
        remedy: 'correct the address, and see its own log',
      }
  }
}

function certificateRemedy(code: string): string {
  if (code.includes('EXPIRED') || code.includes('NOT_YET_VALID')) {
    return 'the certificate is over or not valid yet: renew it where it is served, and check this clock'
  }
  if (code.includes('ALTNAME')) return 'the certificate is for another name: use that one in the address'
  return 'name the authority of your own in NODE_EXTRA_CA_CERTS, serve the whole chain, or install ca-certificates'
}

/** What a provider of SMS is called by, and what came of asking it, without a message. */
export function providerFinding(name: string, host: string, reach: Reach): Finding {
  const what = `SMS ${name}`
  if (reach.kind === 'answered') {
    return ok(
      what,
      `${host} answers, in ${Math.round(reach.tookMs)} ms (whether it takes messages was not asked)`,
    )
  }
  const { message, remedy } = unreached(host, reach)
  return fail(what, message, remedy)
}

/** @param reason why the server was not reached or refused to talk; undefined: all went well */
export function mailFinding(host: string, reason: string | undefined): Finding {
  if (reason === undefined) return ok('SMTP', `${host} answers, and takes the login where there is one`)
  return fail('SMTP', `${host} can not be used (${reason})`, mailRemedy(reason))
}

function mailRemedy(reason: string): string {
  if (/^SMTP 5(30|34|35|38)$|^EAUTH$/.test(reason)) return 'correct user and password in SMTP_URL'
  if (/CERT|LEAF_SIGNATURE|ERR_TLS|ERR_SSL|EPROTO/.test(reason)) {
    return 'name the authority of your own in SMTP_CA_FILE, or the name in the certificate as tls.servername in SMTP_URL'
  }
  if (reason === 'time-out')
    return 'correct host and port in SMTP_URL, or let the firewall allow connections from here'
  return 'correct SMTP_URL, and see the log of the mail server'
}

/** Whether whoever gathers traces is reached; what it answers to a request that is none of its own is no matter. */
export function collectorFinding(host: string, reach: Reach): Finding {
  const what = 'traces'
  if (reach.kind === 'answered') return ok(what, `${host} is reached`)
  const { message, remedy } = unreached(host, reach)
  // Requests are served without it.
  return warn(what, message, remedy)
}

/** Whether vendors' receipts could come in by PUBLIC_URL, as far as that can be told from here. */
export function publicUrlFinding(host: string, reach: Reach): Finding {
  const what = 'PUBLIC_URL'
  const fromHere = 'this machine may be kept from reaching itself from outside: try it from elsewhere too'
  if (reach.kind !== 'answered') {
    const { message, remedy } = unreached(host, reach)
    return warn(what, message, `${remedy}; ${fromHere}`)
  }
  if (isHealthy(reach)) return ok(what, `${host} leads to otpost`)
  return warn(
    what,
    `${host} answers ${reach.status} at /health, and not as otpost does`,
    `let the proxy hand on what comes for ${host}; ${fromHere}`,
  )
}

/** Whether a server is at HOST and PORT. */
export function serverFinding(host: string, reach: Reach): Finding {
  const what = 'server'
  if (reach.kind !== 'answered') {
    return warn(
      what,
      `none answers at ${host} (${reach.code})`,
      'otpost serve, with the same HOST and PORT as here',
    )
  }
  if (isHealthy(reach)) return ok(what, `answers at ${host}`)
  if (reach.status === 503)
    return fail(what, `answers at ${host} that it can not use its database`, 'see its log')
  return fail(
    what,
    `something else listens at ${host}: it answers ${reach.status} at /health`,
    'stop that, or choose another PORT',
  )
}

function isHealthy({ status, text }: Extract<Reach, { kind: 'answered' }>): boolean {
  return status === 200 && /"status":\s*"ok"/.test(text) && /"checks"/.test(text)
}

const mebibyte = 2 ** 20

function inMebibytes(bytes: number): string {
  return `${(bytes / mebibyte).toFixed(1)} MiB`
}

function inSeconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`
}
