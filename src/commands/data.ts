import type { Command } from 'commander'
import type { DraftOwner } from '../adapters/sqlite/draft.ts'
import type { Restored } from '../adapters/sqlite/restore.ts'
import type { Forgotten } from '../adapters/store/store.ts'
import type { StoreConfig } from '../config/store.ts'
import { earlierRecipient } from '../domain/contact.ts'
import { OperatorError } from '../domain/operator/operator.ts'
import {
  commandActor,
  complain,
  type Env,
  isoTime,
  print,
  requireDatabase,
  requireFile,
  withContext,
} from './common.ts'

/** Care of the data: `otpost backup`, `restore`, `forget` and `doctor`. */
export function careCommands(program: Command, env: Env): void {
  program
    .command('backup')
    .description('write a checked copy of the SQLite database to a file while servers run')
    .argument('<file>', 'the backup file')
    .option('--force', 'replace an existing file')
    .action((file: string, options: { force?: true }) => makeBackup(env, file, options.force ?? false))
  program
    .command('restore')
    .description(
      'replace the SQLite database with a backup, without live codes and console sessions; stop the server first',
    )
    .argument('<file>', 'the backup file')
    .option(
      '--force',
      'restore although the present database is damaged and otpost cannot check that no process uses it',
    )
    .action((file: string, options: { force?: true }) => restoreBackup(env, file, options.force ?? false))
  program
    .command('forget')
    .description(
      'erase a phone number or an e-mail address from the event log and all other records while servers run',
    )
    .argument('<recipient>', 'a phone number or an e-mail address')
    .action((recipient: string) => forgetPerson(env, recipient))
  program
    .command('doctor')
    .description('check settings, files, database, clock and providers; sends and changes nothing')
    .option('--full', 'also check every page and index of the database, which is slow')
    .option('--json', 'print a JSON array')
    .action(async (options: { full?: true; json?: true }) => {
      const { runDoctor } = await import('./doctor/command.ts')
      process.exitCode = await runDoctor(env, { full: options.full ?? false, json: options.json ?? false })
    })
}

async function makeBackup(env: Env, file: string, replace: boolean): Promise<void> {
  await yieldToServers()
  const [{ backUp }, config] = await Promise.all([import('../adapters/sqlite/backup.ts'), storeConfig(env)])
  const databaseFile = requireFile(
    config,
    'back it up with what PostgreSQL has for that, such as pg_dump, or pg_basebackup with an archive of its log (docs/postgres.md)',
  )
  requireDatabase(config)
  const startedAt = performance.now()
  const bytes = await backUp(databaseFile, file, { replace, owner: thisProcess })
  const seconds = (performance.now() - startedAt) / 1000
  print(`${file}: ${inMebibytes(bytes)}, in ${seconds.toFixed(1)} s`)
  complain(
    config.secretKeys
      ? 'SECRET_KEY is not in it: keep that too, and apart from backups, which alone tell no code and no recipient'
      : `the secret in ${keyFileOf(databaseFile)} is not in it: keep a copy of that too, and apart from backups, which alone tell no code and no recipient`,
  )
}

async function restoreBackup(env: Env, file: string, force: boolean): Promise<void> {
  const [{ restore }, config, { existsSync }] = await Promise.all([
    import('../adapters/sqlite/restore.ts'),
    storeConfig(env),
    import('node:fs'),
  ])
  const databaseFile = requireFile(
    config,
    'restore it with what PostgreSQL has for that, such as pg_restore; or take over a copy of an SQLite file with otpost move',
  )
  const restored = restore(databaseFile, file, {
    force,
    owner: thisProcess,
    now: Date.now(),
    actor: await commandActor(env),
  })
  for (const line of aboutRestored(restored, databaseFile, file)) print(line)
  if (!config.secretKeys && !existsSync(keyFileOf(databaseFile))) {
    complain(
      `the secret of this database is missing: put ${keyFileOf(databaseFile)} back before the server starts, or set SECRET_KEY. With a new secret nobody's limits go on, deliveries --to and forget find nothing from before, and delivery reports for messages already sent are rejected`,
    )
  }
}

function aboutRestored(restored: Restored, databaseFile: string, file: string): readonly string[] {
  const { asideFile, ownerUid, droppedCodes, droppedSessions, lastRequestAt, validAgain } = restored
  const { appIds, brands } = validAgain
  return [
    `${databaseFile} is what ${file} has: up to ${lastRequestAt === null ? 'before the first request' : `the request of ${isoTime(lastRequestAt)}`}`,
    ...(ownerUid === null ? [] : [`it could not be given to its user: chown ${ownerUid} ${databaseFile}`]),
    asideFile === null ? 'there was no database before' : `the database before is kept as ${asideFile}`,
    `left out: ${counted(droppedCodes, 'code')} that could have been used a second time, ${counted(droppedSessions, 'session or link', 'sessions or links')} of the console`,
    ...(appIds.length > 0
      ? [`keys that had been revoked since are valid again; revoke them again: ${appIds.join(', ')}`]
      : []),
    ...(brands.length > 0
      ? [`brands that had been suspended since are not any more; suspend them again: ${brands.join(', ')}`]
      : []),
    'what was changed since the backup is as it was then: look at otpost brand list and otpost app list',
    'who was erased since by otpost forget is in it again: erase them again',
  ]
}

async function forgetPerson(env: Env, text: string): Promise<void> {
  const config = await storeConfig(env)
  requireDatabase(config)
  const recipient = config.contacts.phone(text) ?? config.contacts.email(text)
  if (!recipient) throw new OperatorError('the recipient must be a phone number or a mail address')
  const recipients = [recipient, earlierRecipient(recipient, text)]
  await yieldToServers()
  await withContext(env, async (context) => {
    for (const line of aboutForgotten(await context.forget(recipients, await commandActor(env)))) print(line)
  })
}

function aboutForgotten({ erased, possibleRequests, traces }: Forgotten): readonly string[] {
  return [
    `erased: ${counted(erased.requests, 'request')}, ${counted(erased.deliveries, 'delivery', 'deliveries')}, ${counted(erased.deliveryReports, 'delivery report')}, ${counted(erased.codesAndLimits, 'record')} of limits and codes, ${counted(erased.messages, 'message')} of the outbox, ${counted(erased.integrationRequests, 'integration request')}`,
    ...(possibleRequests > 0
      ? [
          `${counted(possibleRequests, 'request')} may be theirs, or of others who look the same when masked (a /notify that led to no message, or from before otpost kept more): they go when DELIVERY_LOG_DAYS are over`,
        ]
      : []),
    aboutTraces[traces],
    'not reached: what the server wrote to its log (standard output), backups and replicas made before, what providers keep, and what was kept under a former secret that SECRET_KEY does not name',
  ]
}

const aboutTraces: Readonly<Record<Forgotten['traces'], string>> = {
  nothing: 'the file of the database was written anew: nothing of it is left there',
  gaps: 'what was erased is overwritten. Another process has the database open: what had been replaced earlier may be left in gaps of its file, until it is used again or this is run with the server stopped',
  server:
    'its rows are gone. What may be left of them in the files of the database server goes with its next VACUUM, which it does by itself; its log, standbys and archives keep theirs for as long as they are kept',
  log: 'what was erased is overwritten in the file, and goes from its write-ahead log when that begins anew; some process keeps it from doing so now. Run this again later, or with the server stopped, to be sure',
}

/** Leaves the processor to whoever serves meanwhile. */
async function yieldToServers(): Promise<void> {
  const { constants, setPriority } = await import('node:os')
  setPriority(constants.priority.PRIORITY_LOW)
}

async function storeConfig(env: Env): Promise<StoreConfig> {
  const { readStoreConfig } = await import('../config/store.ts')
  return readStoreConfig(env)
}

/** Where the secret is kept when it is in no setting. */
function keyFileOf(databaseFile: string): string {
  return `${databaseFile}.key`
}

const thisProcess: DraftOwner = {
  isRoot: process.getuid?.() === 0,
  pid: process.pid,
  isRunning(pid) {
    try {
      process.kill(pid, 0)
      return true
    } catch (error) {
      // EPERM: there is one, of another user.
      return (error as NodeJS.ErrnoException).code !== 'ESRCH'
    }
  },
}

function inMebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}

function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`
}
