import type { Command } from 'commander'
import type { DraftOwner } from '../adapters/sqlite/draft.ts'
import type { Restored } from '../adapters/sqlite/restore.ts'
import type { Erased, Forgotten } from '../adapters/store/forget.ts'
import type { StoreConfig } from '../config/store.ts'
import { mask } from '../domain/ground/contact.ts'
import { counted } from '../domain/ground/format.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import {
  type ConfirmOptions,
  commandActor,
  complain,
  confirm,
  confirmOption,
  type DryRunOptions,
  dryRunOption,
  type Env,
  isoTime,
  noDatabase,
  nothingChanged,
  print,
  requireFile,
  withContext,
} from './common.ts'

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
      'replace the SQLite database with a backup, except live codes and console sessions; stop the server first',
    )
    .argument('<file>', 'the backup file')
    .option(
      '--force',
      'also replace a damaged database, although otpost cannot check whether a process uses it',
    )
    .addOption(confirmOption())
    .addOption(dryRunOption())
    .action((file: string, options: RestoreCommandOptions) => restoreBackup(env, file, options))
  program
    .command('forget')
    .description(
      'erase a phone number or an e-mail address from the event log and all other records while servers run',
    )
    .argument('<recipient>', 'a phone number or an e-mail address')
    .addOption(confirmOption())
    .addOption(dryRunOption())
    .action((recipient: string, options: ConfirmOptions & DryRunOptions) =>
      forgetPerson(env, recipient, options),
    )
  program
    .command('doctor')
    .description('check settings, files, database, clock and providers; sends and changes nothing')
    .option('--full', 'also check every page and index of the database, which is slow')
    .option('--json', 'print a JSON array')
    .action(async (options: { full?: true; json?: true }) => {
      const { runDoctor } = await import('./doctor/command.ts')
      process.exitCode = await runDoctor(program, env, {
        full: options.full ?? false,
        json: options.json ?? false,
      })
    })
}

async function makeBackup(env: Env, file: string, replace: boolean): Promise<void> {
  await yieldToServers()
  const [{ backUp }, { isMissing }, config] = await Promise.all([
    import('../adapters/sqlite/backup.ts'),
    import('../adapters/sqlite/marker.ts'),
    storeConfig(env),
  ])
  const databaseFile = requireFile(
    config,
    'Back it up with the tools of PostgreSQL, such as pg_dump, or pg_basebackup with WAL archiving (docs/postgres.md).',
  )
  if (isMissing(databaseFile)) throw noDatabase(env, config)
  const startedAt = performance.now()
  const bytes = await backUp(databaseFile, file, { replace, owner: thisProcess })
  const seconds = (performance.now() - startedAt) / 1000
  print(`Backup written: ${file}, ${(bytes / 2 ** 20).toFixed(1)} MiB, in ${seconds.toFixed(1)} s.`)
  const [key, copy] = config.secretKeys
    ? ['SECRET_KEY', 'SECRET_KEY']
    : [`the secret key in ${keyFileOf(databaseFile)}`, 'that file']
  complain(
    `The backup does not contain ${key}. Keep a copy of ${copy} in another place than the backups: without it, a backup reveals no code, no recipient of a message and no text of a notification, except in the outbox, which is for development.`,
  )
}

interface RestoreCommandOptions extends ConfirmOptions, DryRunOptions {
  readonly force?: true
}

async function restoreBackup(
  env: Env,
  file: string,
  { force, yes, dryRun }: RestoreCommandOptions,
): Promise<void> {
  const [{ restore }, { isMissing }, config, { existsSync }] = await Promise.all([
    import('../adapters/sqlite/restore.ts'),
    import('../adapters/sqlite/marker.ts'),
    storeConfig(env),
    import('node:fs'),
  ])
  const databaseFile = requireFile(
    config,
    'Restore it with the tools of PostgreSQL, such as pg_restore. To import an SQLite file, run `otpost move`.',
  )
  if (!dryRun && !isMissing(databaseFile)) {
    // Also without a terminal: the present database is kept.
    await confirm(`This replaces ${databaseFile} with ${file}. The present database is kept beside it.`, {
      yes,
    })
  }
  const restored = restore(databaseFile, file, {
    force: force ?? false,
    isDryRun: dryRun ?? false,
    owner: thisProcess,
    now: Date.now(),
    actor: await commandActor(env),
  })
  for (const line of aboutRestored(restored, databaseFile, file, dryRun ?? false)) print(line)
  if (!config.secretKeys && !existsSync(keyFileOf(databaseFile))) {
    complain(
      `The secret key of this database is missing. Restore ${keyFileOf(databaseFile)} or set SECRET_KEY before the server starts. With a new secret key all limits start again, \`otpost deliveries --to\` and \`otpost forget\` do not find earlier records, and delivery reports for messages already sent are rejected.`,
    )
  }
}

function aboutRestored(
  restored: Restored,
  databaseFile: string,
  file: string,
  isDryRun: boolean,
): readonly string[] {
  const { asideFile, ownerUid, droppedCodes, droppedSessions, lastRequestAt, validAgain } = restored
  const { droppedAlerts, unknownJobs, knowsSpent } = restored
  const latest =
    lastRequestAt === null
      ? 'The backup has no requests.'
      : `Its latest request is from ${isoTime(lastRequestAt)}.`
  const others = `${counted(droppedSessions, 'console session or link', 'console sessions or links')}, ${counted(droppedAlerts, 'undelivered alert')}`
  const { appIds, brands, accounts } = validAgain
  const listed = (names: readonly string[], words: string, remedy: string) => {
    if (names.length === 0) return []
    const line = `${words}: ${names.join(', ')}.`
    return [isDryRun ? line : `${line} ${remedy}`]
  }
  if (isDryRun) {
    return [
      `Would restore ${databaseFile} from ${file}. ${latest}`,
      asideFile === null ? 'There is no present database.' : `${databaseFile} would be kept as ${asideFile}.`,
      `Would not be restored: ${counted(droppedCodes, 'code')}, ${others}.`,
      ...listed(appIds, 'Keys of these apps would be valid again', ''),
      ...listed(brands, 'These brands would be active again', ''),
      ...listed(accounts, 'These accounts of the console would be as in the backup', ''),
      nothingChanged,
    ]
  }
  return [
    `Restored ${databaseFile} from ${file}. ${latest}`,
    ...(ownerUid === null
      ? []
      : [`The owner of the file could not be set. Run: chown ${ownerUid} ${databaseFile}`]),
    asideFile === null ? 'There was no previous database.' : `The previous database is ${asideFile}.`,
    `Not restored: ${counted(droppedCodes, 'code')} that could have been used a second time, ${others}.`,
    ...(unknownJobs > 0
      ? [
          `${counted(unknownJobs, 'asynchronous message')} waited. They may have been sent after the backup, so they are not sent. \`otpost queue list\` shows them, and \`otpost queue retry REQUESTID --include-unknown\` sends them.`,
        ]
      : []),
    ...listed(
      appIds,
      'Keys of these apps were revoked after the backup and are valid again',
      'Revoke them again with `otpost app revoke-key`.',
    ),
    ...listed(
      brands,
      'These brands were suspended after the backup and are active again',
      'Suspend them again with `otpost brand status`.',
    ),
    ...listed(
      accounts,
      'These accounts of the console were removed or changed after the backup and are as they were then',
      'Remove or reset them again with `otpost admin operator`.',
    ),
    ...(knowsSpent
      ? []
      : [
          'Budgets count only what was spent before the backup, because there was no previous database to read. Check `otpost budget list`.',
        ]),
    'Changes made after the backup are lost. Check `otpost brand list`, `otpost app list`, `otpost destination list`, `otpost guard status`, `otpost review-number list` and `otpost budget list`.',
    'Persons erased after the backup are in the database again. Run `otpost forget` for them again.',
  ]
}

async function forgetPerson(
  env: Env,
  text: string,
  { yes, dryRun }: ConfirmOptions & DryRunOptions,
): Promise<void> {
  const config = await storeConfig(env)
  const recipient = config.contacts.phone(text) ?? config.contacts.email(text)
  if (!recipient) throw new InvalidInput(`The recipient ${config.contacts.faultOf(text)}`)
  await yieldToServers()
  await withContext(env, async (context) => {
    if (dryRun) {
      const { erased, possibleRequests } = await context.countRecipient(recipient)
      for (const line of [`Would erase: ${erasedWords(erased)}.`, ...aboutPossible(possibleRequests)])
        print(line)
      print(nothingChanged)
      return
    }
    await confirm(`This erases all data of ${mask(recipient)}, and cannot be undone.`, { yes })
    for (const line of aboutForgotten(await context.forget(recipient, await commandActor(env)))) print(line)
    const { to } = recipient
    const accounts = await context.sessions.accounts()
    if (accounts.some(({ email }) => email === to)) {
      print(`Not erased: the account of the console. Remove it with \`otpost admin operator remove ${to}\`.`)
    }
  })
}

function aboutForgotten({ erased, possibleRequests, traces }: Forgotten): readonly string[] {
  return [
    `Erased: ${erasedWords(erased)}.`,
    ...aboutPossible(possibleRequests),
    aboutTraces[traces],
    'Not erased by this command: the server log (standard output), earlier backups and replicas, the records of providers, and records under a previous secret key that SECRET_KEY does not list.',
  ]
}

function erasedWords(erased: Erased): string {
  return `${counted(erased.requests, 'request')}, ${counted(erased.deliveries, 'delivery', 'deliveries')}, ${counted(erased.deliveryReports, 'delivery report')}, ${counted(erased.codesAndLimits, 'record')} of limits and codes, ${counted(erased.verifiedNumbers, 'verified number')}, ${counted(erased.reviewNumbers, 'review number')}, ${counted(erased.jobs, 'asynchronous message')}, ${counted(erased.messages, 'outbox message')}, ${counted(erased.integrationRequests, 'integration request')}`
}

function aboutPossible(requests: number): readonly string[] {
  if (requests === 0) return []
  return [
    `Not erased: ${counted(requests, 'request')} with the same masked recipient and no stored identity (a /notify that sent nothing). They expire after DELIVERY_LOG_DAYS.`,
  ]
}

const aboutTraces: Readonly<Record<Forgotten['traces'], string>> = {
  nothing: 'The database file was rewritten. It contains no remains of the erased rows.',
  gaps: 'The erased rows are overwritten. Another process has the database open, so copies from earlier changes may remain in unused parts of the file. To remove them, run the command again with the server stopped.',
  server:
    'The rows are deleted. PostgreSQL removes their remains from its files at its next automatic VACUUM. Its WAL, standbys and archives keep theirs as long as you keep those.',
  log: 'The erased rows are overwritten in the database file, but another process keeps the write-ahead log from being reset. Run the command again later, or with the server stopped.',
}

/** Lowers the priority of this process, so that it does not slow down servers. */
async function yieldToServers(): Promise<void> {
  const { constants, setPriority } = await import('node:os')
  setPriority(constants.priority.PRIORITY_LOW)
}

async function storeConfig(env: Env): Promise<StoreConfig> {
  const { readStoreConfig } = await import('../config/store.ts')
  return readStoreConfig(env)
}

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
      // EPERM: the process exists, and is of another user.
      return (error as NodeJS.ErrnoException).code !== 'ESRCH'
    }
  },
}
