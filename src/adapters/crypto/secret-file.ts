import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { newSecretKey } from './secrets.ts'

/**
 * The server's secret from its file; makes the file, readable by its owner only, if there is none. Of processes that
 * start together one makes it and all read the same.
 *
 * @returns the secrets, the present one first, and whether they are new
 * @throws when the file can't be read or holds a secret of less than 32 bytes
 */
export function secretsFrom(file: string): { secrets: SecretKeys; isNew: boolean } {
  const isNew = !existsSync(file) && make(file)
  const secrets = secretKeysIn(read(file))
  if (!secrets)
    throw new Error(`${file} must hold a secret of at least 32 bytes: restore it, or set SECRET_KEY`)
  return { secrets, isNew }
}

/** The present secret, then former ones. */
export type SecretKeys = readonly [string, ...string[]]

/** Secrets as they are written, separated by commas or line breaks; undefined where one has less than 32 bytes. */
export function secretKeysIn(text: string): SecretKeys | undefined {
  const [present = '', ...former] = new Set(text.trim().split(/\s*[,\n]\s*/))
  const keys = [present, ...former] as const
  return keys.every((key) => Buffer.byteLength(key) >= 32) ? keys : undefined
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
  // Of this process alone: in containers that share a folder all have the same number.
  const draft = `${file}.${randomUUID()}.tmp`
  writeFileSync(draft, `${newSecretKey()}\n`, { mode: 0o600, flag: 'wx', flush: true })
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
