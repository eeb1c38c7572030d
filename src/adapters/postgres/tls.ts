import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'

export interface PostgresTls {
  /** `require` only encrypts; `verify-ca` also checks the issuer, `verify-full` the host name too. */
  readonly mode: 'off' | 'require' | 'verify-ca' | 'verify-full'
  /** PEM; default: the runtime's authorities. */
  readonly caFile?: string
  readonly certFile?: string
  readonly keyFile?: string
}

/** Reads the files for each connection, so that a renewed certificate needs no restart. */
export function tlsOptions({ mode, caFile, certFile, keyFile }: PostgresTls): ConnectionOptions | false {
  if (mode === 'off') return false
  return {
    rejectUnauthorized: mode !== 'require',
    ...(mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
    ...(caFile === undefined ? {} : { ca: readPem('sslrootcert', caFile, 'CERTIFICATE') }),
    ...(certFile === undefined ? {} : { cert: readPem('sslcert', certFile, 'CERTIFICATE') }),
    ...(keyFile === undefined ? {} : { key: readPem('sslkey', keyFile, 'PRIVATE KEY') }),
  }
}

/** An empty file would count as no certificate. */
function readPem(parameter: string, file: string, kind: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const { code = 'unreadable' } = cause as NodeJS.ErrnoException
    throw Object.assign(new Error(`${parameter} ${file} cannot be read (${code}).`), { code })
  }
  if (!text.includes(`${kind}-----`)) throw new Error(`${parameter} ${file} has no ${kind} in PEM format.`)
  return text
}
