import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { newSecretKey } from './secrets.ts'

/**
 * Processes that start together all read the same keys.
 * @throws if the file can't be read or has a key of less than 32 bytes
 */
export function secretsFrom(file: string): { secrets: SecretKeys; isNew: boolean } {
  const isNew = !existsSync(file) && make(file)
  const secrets = secretKeysIn(read(file))
  if (!secrets)
    throw new Error(
      `${file} must contain a secret key of at least 32 bytes. Restore the file, or set SECRET_KEY.`,
    )
  return { secrets, isNew }
}

/** The present key, then previous ones. */
export type SecretKeys = readonly [string, ...string[]]

/** Keys separated by commas or line breaks. Undefined: one has less than 32 bytes. */
export function secretKeysIn(text: string): SecretKeys | undefined {
  const [present = '', ...previous] = new Set(text.trim().split(/\s*[,\n]\s*/))
  const keys = [present, ...previous] as const
  return keys.every((key) => Buffer.byteLength(key) >= 32) ? keys : undefined
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new Error(`${file} cannot be read (${code}). Give this user read permission, or set SECRET_KEY.`, {
      cause,
    })
  }
}

/** Atomic. Returns false if another process was first. */
function make(file: string): boolean {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // Not the process ID: containers with a shared directory may have the same one.
  const draft = `${file}.${randomUUID()}.tmp`
  writeFileSync(draft, `${newSecretKey()}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    // Unlike a rename, a link fails if another process was first.
    linkSync(draft, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}
