import { readFileSync } from 'node:fs'
import { ConfigError } from '../../config/settings.ts'

/** @param name of the setting of `file` @throws ConfigError */
export function readPem<Parsed>(name: string, file: string, kind: string, parse: (pem: string) => Parsed) {
  let pem: string
  try {
    pem = readFileSync(file, 'utf8')
  } catch (error) {
    const { code = 'error' } = error as NodeJS.ErrnoException
    const problem = `cannot be read (${code}): correct the path, or let this user read it`
    throw new ConfigError([`${name} (${file}) ${problem}`])
  }
  try {
    return { pem, parsed: parse(pem) }
  } catch {
    throw new ConfigError([`${name} (${file}) has no ${kind} in PEM without a passphrase`])
  }
}
