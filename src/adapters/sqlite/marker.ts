import { existsSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileAt } from './file-at.ts'

/** The file beside a database that says that the database exists. It stays when the database is lost. */
export function markerOf(file: string): string {
  return `${file}.created`
}

/** Writes the marker, unless it is there. */
export function mark(file: string): void {
  const name = basename(file)
  const text = `otpost created ${name}. While this file exists, otpost does not replace a missing ${name} with an empty database.\n`
  try {
    writeFileSync(markerOf(file), text, { mode: 0o600, flag: 'wx' })
  } catch {
    // It exists, or the disk is full: then the next start writes it.
  }
}

/** The marker of a database that is missing or empty. */
export function markerOfLost(file: string): string | undefined {
  // First the marker: a process that creates the database now writes the marker last.
  return existsSync(markerOf(file)) && isMissing(file) ? markerOf(file) : undefined
}

/** SQLite takes a file without bytes for a new database. */
export function isMissing(file: string): boolean {
  const found = fileAt(file)
  return found === undefined || (found.isFile() && found.size === 0)
}
