import { setTimeout as pause } from 'node:timers/promises'
import type { Recipient } from '../../domain/contact.ts'
import type { Actor } from '../../domain/operator/audit.ts'
import type { StoreDatabase } from '../store/database.ts'
import { forgetRecipient } from '../store/forget.ts'
import type { Forgotten, ForgottenSubjects } from '../store/store.ts'
import type { Database } from './database.ts'

/** Pages given back to the disk in one step. */
const vacuumPages = 200

/** How long a moment is waited for in which nobody reads the log. */
const patienceMs = 3000

/** Erases a person from event log and records, beside a server that goes on (`Storage.forget`); overwrites what it removes. */
export async function forget(
  database: Database,
  stores: StoreDatabase,
  recipients: readonly Recipient[],
  subjects: ForgottenSubjects,
  by: { readonly now: number; readonly actor: Actor },
): Promise<Forgotten> {
  database.driver.pragma('secure_delete = ON')
  const forgotten = await forgetRecipient(stores, recipients, subjects, by)
  return { ...forgotten, traces: await eraseTraces(database) }
}

/** Removes what was erased from where nothing refers to it any more: unused pages, and the log. */
async function eraseTraces({ driver, writer }: Database): Promise<Forgotten['traces']> {
  const unusedPages = () => Number(driver.pragma('freelist_count', { simple: true }))
  for (let [before, left] = [Number.POSITIVE_INFINITY, unusedPages()]; left > 0 && left < before; ) {
    before = left
    // Not by a prepared statement: of those the driver takes the first step only, which is one page.
    left = await writer.write(() => {
      driver.exec(`PRAGMA incremental_vacuum(${vacuumPages})`)
      return unusedPages()
    })
  }
  // The bulk of it while nobody has to wait.
  driver.pragma('wal_checkpoint(PASSIVE)')
  if (writeAnew(driver)) return 'nothing'
  const giveUpAt = performance.now() + patienceMs
  while (performance.now() < giveUpAt) {
    if (isLogEmptied(driver)) return 'gaps'
    await pause(20)
  }
  return 'log'
}

/** Where no other process has the database open: writes all of its file anew, since earlier changes left traces too. */
function writeAnew(driver: Database['driver']): boolean {
  try {
    // Succeeds only for a process that is alone.
    driver.pragma('journal_mode = DELETE')
  } catch {
    return false
  }
  try {
    driver.exec('VACUUM')
    return true
  } catch {
    // On a full disk, for one; what was to be erased is.
    return false
  } finally {
    driver.pragma('journal_mode = WAL')
  }
}

/** Folds the log back and cuts it to nothing, where nobody reads or writes it at this moment. */
function isLogEmptied(driver: Database['driver']): boolean {
  try {
    const [result] = driver.pragma('wal_checkpoint(TRUNCATE)') as readonly { busy: number }[]
    return result?.busy === 0
  } catch {
    return false
  }
}
