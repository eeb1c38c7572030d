import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { FileStats } from '../store/store.ts'
import type { Database } from './database.ts'

/** Undefined for a database in memory. Rejects if a file is missing. */
export async function fileStats({ driver: { name, memory } }: Database): Promise<FileStats | undefined> {
  if (memory) return undefined
  const [main, wal, disk] = await Promise.all([stat(name), stat(`${name}-wal`), statfs(dirname(name))])
  return { main: main.size, wal: wal.size, diskFree: disk.bavail * disk.bsize }
}

export function sqliteVersion({ driver }: Database): string {
  return String(driver.prepare('SELECT sqlite_version()').pluck().get())
}
