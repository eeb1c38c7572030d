import { setTimeout as pause } from 'node:timers/promises'
import type { Actor } from '../../domain/ground/audit.ts'
import type { Recipient } from '../../domain/ground/contact.ts'
import type { StoreDatabase } from '../store/database.ts'
import { batch, type Forgotten, forgetRecipient } from '../store/forget.ts'
import type { Database } from './database.ts'
import { eraseFromIndex } from './recipient-index.ts'

const vacuumPages = 100

const readersTimeoutMs = 3000

/** `Storage.forget`, beside a running server. Overwrites what it deletes. */
export async function forget(
  database: Database,
  stores: StoreDatabase,
  recipient: Recipient,
  subjects: readonly string[],
  by: { readonly now: number; readonly actor: Actor },
): Promise<Forgotten> {
  database.driver.pragma('secure_delete = ON')
  const forgotten = await forgetRecipient(stores, recipient, subjects, by)
  await eraseFromIndex(database, subjects, batch)
  return { ...forgotten, traces: await eraseTraces(database) }
}

/** Deleted data remains in free pages and in the log. */
async function eraseTraces({ driver, writer }: Database): Promise<Forgotten['traces']> {
  const unusedPages = () => Number(driver.pragma('freelist_count', { simple: true }))
  for (let [before, left] = [Number.POSITIVE_INFINITY, unusedPages()]; left > 0 && left < before; ) {
    before = left
    // A prepared statement would free one page only.
    left = await writer.write(() => {
      driver.exec(`PRAGMA incremental_vacuum(${vacuumPages})`)
      return unusedPages()
    })
  }
  if (rewriteFile(driver)) return 'nothing'
  const giveUpAt = performance.now() + readersTimeoutMs
  while (performance.now() < giveUpAt) {
    if (isLogEmptied(driver)) return 'gaps'
    await pause(20)
  }
  return 'log'
}

/** Earlier changes left traces too, so the file is rewritten if no other process has it open. */
function rewriteFile(driver: Database['driver']): boolean {
  try {
    // Fails while another process has the database open.
    driver.pragma('journal_mode = DELETE')
  } catch {
    return false
  }
  try {
    driver.exec('VACUUM')
    return true
  } catch {
    // For example on a full disk. The rows are deleted already.
    return false
  } finally {
    driver.pragma('journal_mode = WAL')
  }
}

/** Checkpoints and truncates the log if no connection reads or writes it now. */
function isLogEmptied(driver: Database['driver']): boolean {
  try {
    // Copies what it can without the lock of the writers, who wait for the other one.
    driver.pragma('wal_checkpoint(PASSIVE)')
    const [result] = driver.pragma('wal_checkpoint(TRUNCATE)') as readonly { busy: number }[]
    return result?.busy === 0
  } catch {
    return false
  }
}
