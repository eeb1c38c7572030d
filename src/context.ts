import { setTimeout as pause } from 'node:timers/promises'
import { createConsoleSecrets } from './adapters/crypto/console-secrets.ts'
import { createProofs } from './adapters/crypto/proofs.ts'
import { createSealing } from './adapters/crypto/sealing.ts'
import { createSecrets, sha256 } from './adapters/crypto/secrets.ts'
import { textBeforeCode } from './adapters/email/code-in-html.ts'
import { createEventLogBuffer } from './adapters/store/event-log-buffer.ts'
import { createApps } from './adapters/store/keys.ts'
import { createReportCounter } from './adapters/store/report-counter.ts'
import type { OpenStore, RetainAfter, Storage } from './adapters/store/store.ts'
import type { StoreConfig } from './config/store.ts'
import type { Actor } from './domain/ground/audit.ts'
import { mailboxOf, type Recipient } from './domain/ground/contact.ts'
import { OperatorError } from './domain/ground/operator-error.ts'
import type { Log } from './domain/ground/ports.ts'
import { dayMs } from './domain/ground/time.ts'
import { DatabaseFailures, databaseTimeout } from './domain/health/database-fault.ts'
import { keysFor } from './secret-key.ts'

export interface ContextOverrides {
  /** Also the clock of codes and windows. */
  readonly now?: () => number
  readonly log?: Log
  /** As a server: commands use its secret key, and wait for the disk themselves. */
  readonly serves?: boolean
  /** Does not create a database (design D51). */
  readonly mustExist?: boolean
}

export type Context = Awaited<ReturnType<typeof openContext>>

const patienceMs = {
  /** For the event log to be written, and for the end of a known fault of the database. */
  page: 250,
  /** For a database of which no fault is known. */
  check: 700,
} as const

/** In turns, so that what has answered is seen first if this process was late itself. */
async function late(of: keyof typeof patienceMs): Promise<void> {
  for (let left = patienceMs[of]; left > 0; left -= 50) await pause(50, undefined, { ref: false })
}

export const silent: Log = { info: () => {}, warn: () => {}, error: () => {} }

/** @throws an error for the operator if the database can't be used; NoDatabase if it must exist and does not */
export async function openContext(config: StoreConfig, overrides: ContextOverrides = {}) {
  const { log = silent } = overrides
  const store = await openStore(config, overrides, log)
  const { storage } = store
  const keys = await keysFor(config, store, { serves: overrides.serves ?? false, log }).catch(
    async (error) => {
      await storage.close()
      throw error
    },
  )
  const { now, operator, policy } = storage
  const isVerifiedNumber = storage.guard.isVerified
  const secrets = createSecrets(...keys.secretKeys)
  const eventLog = openEventLog(storage, log)
  let failure: unknown
  const failures = new DatabaseFailures()

  async function checkDatabase(): Promise<void> {
    try {
      await storage.checkDatabase()
      failure = undefined
    } catch (error) {
      failure = error
      throw error
    } finally {
      failures.note(failure !== undefined, now())
    }
  }

  /** Why the database cannot be used; undefined: it can. @param checks also if nothing is known against it */
  async function databaseTrouble(checks = false): Promise<unknown> {
    const known = () => storage.trouble()?.error ?? failure
    const { error, isNow } = storage.trouble() ?? { error: failure }
    if (isNow || (!checks && error === undefined)) return error
    // It may have ended.
    const checked = checkDatabase().then(
      () => undefined,
      (error: unknown) => error ?? new Error('unknown'),
    )
    const patience = error === undefined ? 'check' : 'page'
    return Promise.race([checked, late(patience).then(() => known() ?? databaseTimeout())])
  }

  function requireSecret(): void {
    if (keys.problem !== undefined) throw new OperatorError(keys.problem)
  }

  function subjectsOf({ channel, to }: Recipient): readonly string[] {
    requireSecret()
    return secrets.subjects(channel, to)
  }

  function everySubjectOf(recipient: Recipient): readonly string[] {
    const mailbox = recipient.channel === 'EMAIL' ? secrets.subjects('mailbox', mailboxOf(recipient)) : []
    return [...subjectsOf(recipient), ...mailbox]
  }

  return {
    ...storage,
    checkDatabase,
    databaseTrouble,
    databaseFailed: failures.ended,
    databaseOutage: () => failures.latest,
    secrets,
    sealing: createSealing(...keys.secretKeys),
    proofs: createProofs(...keys.secretKeys),
    apps: createApps(storage.keys, sha256, config.appCredentials, {
      now,
      save: (keySha256, at, from) =>
        storage.keys
          .saveUse(keySha256, at, from)
          .catch((error: unknown) =>
            log.error({ err: error }, 'the last use of an API key could not be stored'),
          ),
    }),
    consoleSecrets: createConsoleSecrets(...keys.secretKeys),
    /** What operators see of the guard. */
    guardReader: { ...storage.guard, countries: eventLog.countries, guardCounts: eventLog.guardCounts },
    textBeforeCode,
    isVerifiedNumber,
    acting: (actor: Actor) => ({
      operator,
      policy,
      secrets,
      now,
      actor,
      textBeforeCode,
      isVerifiedNumber,
    }),
    requireSecret,
    // Fails on a full disk, which /health reports too.
    noteSecret: () =>
      keys
        .note()
        .catch((err: unknown) => log.error({ err }, 'the fingerprint of the secret key could not be stored')),
    subjectsOf,
    forget: (recipient: Recipient, actor: Actor) =>
      storage.forget(recipient, everySubjectOf(recipient), { now: now(), actor }),
    /** What `forget` would erase. */
    countRecipient: (recipient: Recipient) => storage.countRecipient(recipient, everySubjectOf(recipient)),
    eventLog,
    stats: { ...storage.stats, eventLog: eventLog.stats },
    /** Deletes a few rows that are older than their retention. */
    sweep(retentionDays: RetainAfter) {
      const at = now()
      const from = (days: number) => at - days * dayMs
      const { eventLog, audit, requests } = retentionDays
      return storage.sweep(at, { eventLog: from(eventLog), audit: from(audit), requests: from(requests) })
    },
    close: async () => {
      await eventLog.drain()
      await storage.close()
    },
  }
}

/** Loads only the adapter of the configured database. */
async function openStore(config: StoreConfig, overrides: ContextOverrides, log: Log): Promise<OpenStore> {
  const { database } = config
  if (database.kind === 'postgres') {
    const { openPostgres } = await import('./adapters/postgres/open.ts')
    return openPostgres(database.target, { ...overrides, log })
  }
  const { openSqlite } = await import('./adapters/sqlite/open.ts')
  return openSqlite(database.file, { ...overrides, log })
}

/** Reads include earlier writes of this process: waiting entries are written first. */
function openEventLog({ eventLog, statistics: figures, now }: Storage, log: Log) {
  const { saveEntries, saveReports, ...entries } = eventLog
  let lastLostAt: number | null = null
  const { add, count, flush, drain, stats } = createEventLogBuffer(saveEntries, (error, requests) => {
    lastLostAt = now()
    log.error(
      { err: error, requests },
      'the event log could not be written; the outcome of these requests is only in this log',
    )
  })
  const reports = createReportCounter(eventLog, count, (err) =>
    log.error({ err }, 'delivery reports could not be counted'),
  )
  let isLate = false
  /** Pages wait once for a database that accepts no writes. */
  const flushForPage = async () => {
    if (isLate) return
    let isWaiting = true
    const flushed = flush().then(() => {
      isWaiting = isLate = false
    })
    await Promise.race([flushed, late('page')])
    isLate = isWaiting
  }
  /** @param ready resolves when what waited is written */
  const readsAfter = (ready: () => Promise<unknown>) => {
    const flushed =
      <Query extends unknown[], Result>(read: (...query: Query) => Promise<Result>, first = ready) =>
      (...query: Query) =>
        first().then(() => read(...query))
    const all = <Reads extends object>(reads: Reads): Reads =>
      Object.fromEntries(Object.entries(reads).map(([name, read]) => [name, flushed(read)])) as Reads
    const counted = () => ready().then(reports.flush).then(ready)
    return {
      ...all(entries),
      ...all(figures),
      statistics: flushed(figures.statistics, counted),
      lateCodes: reports.late,
      risingRejections: flushed(figures.risingRejections, counted),
    }
  }
  return {
    add,
    count,
    flush,
    drain: () => reports.flush().then(drain),
    stats: () => ({ ...stats(), lastLostAt }),
    ...readsAfter(flush),
    /** While the database accepts no writes, pages show what it has. */
    forPages: readsAfter(flushForPage),
    async saveReports(...[provider, received, writesEvents]: Parameters<typeof saveReports>) {
      const changes = await saveReports(provider, received, writesEvents)
      reports.add(provider, changes)
      // The answer to a report promises it and its event. Both need the attempt, whose entry may still wait.
      await flush()
      return changes
    },
  }
}
