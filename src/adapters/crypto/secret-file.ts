import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { newSecretKey } from './secrets.ts'

/**
 * The server's secret from its file; makes the file, readable by its owner only, if there is none. Of processes that
 * start together one makes it and all read the same.
 *
 * @returns the secret, and whether it is new
 * @throws when the file can't be read or holds less than 32 bytes
 */
export function secretFrom(file: string): { secret: string; isNew: boolean } {
  const isNew = !existsSync(file) && make(file)
  const secret = readFileSync(file, 'utf8').trim()
  if (Buffer.byteLength(secret) < 32) {
    throw new Error(`${file} must hold a secret of at least 32 bytes: restore it, or set SECRET_KEY`)
  }
  return { secret, isNew }
}

/** Makes the file whole or not at all; false where another process was first. */
function make(file: string): boolean {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}.tmp`
  writeFileSync(draft, `${newSecretKey()}\n`, { mode: 0o600, flush: true })
  try {
    // A link, unlike a rename, fails where another process was first.
    linkSync(draft, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}
