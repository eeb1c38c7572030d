import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'

/** How a connection is encrypted, and what is checked. */
export interface PostgresTls {
  /**
   * `require` encrypts, and checks nothing; `verify-ca` checks who signed the server's certificate, `verify-full` its
   * host name too.
   */
  readonly mode: 'off' | 'require' | 'verify-ca' | 'verify-full'
  /** PEM; without it the authorities that come with the runtime count. */
  readonly caFile?: string
  /** PEM, with its key: how this client shows who it is. */
  readonly certFile?: string
  readonly keyFile?: string
}

/** Reads the files anew for each connection, so that a renewed certificate counts without a restart. Throws if it can't. */
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

/** What is in a file of this parameter; an empty one would count as none, and the wrong authorities would be believed. */
function readPem(parameter: string, file: string, kind: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const { code = 'unreadable' } = cause as NodeJS.ErrnoException
    throw Object.assign(new Error(`${parameter} ${file} can not be read (${code})`), { code })
  }
  if (!text.includes(`${kind}-----`)) throw new Error(`${parameter} ${file} holds no ${kind} in PEM`)
  return text
}
