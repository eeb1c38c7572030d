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
  const secret = read(file).trim()
  if (Buffer.byteLength(secret) < 32) {
    throw new Error(`${file} must hold a secret of at least 32 bytes: restore it, or set SECRET_KEY`)
  }
  return { secret, isNew }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new Error(`${file} can not be read (${code}): let this user read it, or set SECRET_KEY`, { cause })
  }
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
