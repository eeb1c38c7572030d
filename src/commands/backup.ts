import { existsSync } from 'node:fs'
import { backUp } from '../adapters/sqlite/backup.ts'
import type { DraftOwner } from '../adapters/sqlite/draft.ts'
import { isMissing } from '../adapters/sqlite/marker.ts'
import { type Restored, restore } from '../adapters/sqlite/restore.ts'
import { readStoreConfig } from '../config/store.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { bytesWords, counted } from '../domain/ground/format.ts'
import { isoTime } from '../domain/ground/time.ts'
import {
  type ConfirmOptions,
  commandActor,
  complain,
  confirm,
  type DryRunOptions,
  type Env,
  noDatabase,
  nothingChanged,
  print,
  requireFile,
  yieldToServers,
} from './common.ts'

export async function makeBackup(env: Env, file: string, replace: boolean): Promise<void> {
  yieldToServers()
  const config = readStoreConfig(env)
  const databaseFile = requireFile(
    config,
    `Back it up with the tools of PostgreSQL, such as pg_dump, or pg_basebackup with WAL archiving (${docsAt('postgres.md')}).`,
  )
  if (isMissing(databaseFile)) throw noDatabase(env, config)
  const startedAt = performance.now()
  const bytes = await backUp(databaseFile, file, {
    replace,
    owner: thisProcess,
    now: Date.now(),
    actor: await commandActor(env),
  })
  const seconds = (performance.now() - startedAt) / 1000
  print(`Backup written: ${file}, ${bytesWords(bytes)}, in ${seconds.toFixed(1)} s.`)
  const [key, copy] = config.secretKeys
    ? ['SECRET_KEY', 'SECRET_KEY']
    : [`the secret key in ${keyFileOf(databaseFile)}`, 'that file']
  complain(
    `The backup does not contain ${key}. Keep a copy of ${copy} in another place than the backups: without it, a backup reveals no code, no recipient of a message and no text of a notification, except in the outbox, which is for development.`,
  )
}

export interface RestoreCommandOptions extends ConfirmOptions, DryRunOptions {
  readonly force?: true
}

export async function restoreBackup(
  env: Env,
  file: string,
  { force, yes, dryRun }: RestoreCommandOptions,
): Promise<void> {
  const config = readStoreConfig(env)
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
