import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import { type BackupOptions, backUp } from '../../src/adapters/sqlite/backup.ts'
import { type RestoreOptions, restore } from '../../src/adapters/sqlite/restore.ts'
import { temporaryFolder } from '../support/app.ts'
import { tester } from '../support/operator.ts'

export const owner = { pid: process.pid, isRoot: process.getuid?.() === 0, isRunning: () => true } as const

/** A folder with a folder for a database, and the settings that a command needs to find it. */
export function place() {
  const folder = temporaryFolder()
  const data = join(folder.path, 'data')
  const file = join(data, 'otpost.db')
  return {
    folder: folder.path,
    /** The folder of the database. */
    data,
    /** The database file. */
    file,
    env: { DATABASE_URL: `file:${file}` },
    /** A path beside the folder of the database. */
    at: (name: string) => join(folder.path, name),
    /** The files in the folder of the database. */
    names: () => readdirSync(data).sort(),
    backUp: (to: string, options: Partial<BackupOptions> = {}) =>
      backUp(file, to, { replace: false, owner, now: Date.now(), actor: tester, ...options }),
    restore: (from: string, options: Partial<RestoreOptions> = {}) =>
      restore(file, from, {
        force: false,
        owner,
        now: Date.now(),
        actor: { by: 'command', name: 'test' },
        ...options,
      }),
    remove: folder.remove,
    [Symbol.dispose]: folder.remove,
  }
}

/** Reads or changes a database that no process has open. */
export function inDatabase<T>(file: string, work: (driver: Driver.Database) => T): T {
  // By the same driver as the service: two copies of SQLite in one process break each other's locks.
  const driver = new Driver(file)
  try {
    return work(driver)
  } finally {
    driver.close()
  }
}

export function isWhole(file: string): boolean {
  return inDatabase(file, (driver) => driver.pragma('integrity_check', { simple: true })) === 'ok'
}

/** Which of these texts any of the files contain. */
export function foundIn(folder: string, texts: readonly string[]): readonly string[] {
  const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name)))
  return texts.filter((text) => bytes.some((each) => each.includes(text)))
}
