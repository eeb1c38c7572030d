import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { FileStats } from '../store/store.ts'
import type { Database } from './database.ts'

/** Looks at the files; undefined for a database in memory, which has none. Rejects where they are gone. */
export async function fileStats({ driver: { name, memory } }: Database): Promise<FileStats | undefined> {
  if (memory) return undefined
  const [main, wal, disk] = await Promise.all([stat(name), stat(`${name}-wal`), statfs(dirname(name))])
  return { main: main.size, wal: wal.size, diskFree: disk.bavail * disk.bsize }
}

/** The version of SQLite that is built in. */
export function sqliteVersion({ driver }: Database): string {
  return String(driver.prepare('SELECT sqlite_version()').pluck().get())
}
