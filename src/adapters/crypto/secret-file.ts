import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { newSecretKey } from './secrets.ts'

/**
 * The server's secret from its file; makes the file, readable by its owner only, if there is none. Of processes that
 * start together one makes it and all read the same.
 *
 * @throws when the file can't be read or holds less than 32 bytes
 */
export function secretFrom(file: string): string {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const draft = `${file}.${process.pid}.tmp`
    writeFileSync(draft, `${newSecretKey()}\n`, { mode: 0o600, flush: true })
    try {
      // A link, unlike a rename, fails where another process was first.
      linkSync(draft, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft, { force: true })
    }
  }
  const secret = readFileSync(file, 'utf8').trim()
  if (Buffer.byteLength(secret) < 32) {
    throw new Error(`${file} must hold a secret of at least 32 bytes: restore it, or set SECRET_KEY`)
  }
  return secret
}
