import { createPrivateKey, X509Certificate } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { tlsSettings } from '../../config/server-settings.ts'
import { ConfigError, type Settings } from '../../config/settings.ts'
import { readPem } from '../crypto/pem.ts'

export type TlsConfig = NonNullable<ReturnType<typeof readTls>>

/** Undefined: the server does no TLS itself. @param databaseFile of SQLite */
export function readTls(settings: Settings, databaseFile: string | undefined) {
  const domain = settings.optional(tlsSettings.TLS_DOMAIN)?.trim().toLowerCase()
  const certFile = settings.optional(tlsSettings.TLS_CERT_FILE)
  const keyFile = settings.optional(tlsSettings.TLS_KEY_FILE)
  const addresses = Object.values(networkInterfaces()).flat()
  const host = addresses.some((address) => address?.family === 'IPv6') ? '::' : '0.0.0.0'
  const port = settings.integer(tlsSettings.TLS_PORT)
  const httpPort = settings.integer(tlsSettings.ACME_HTTP_PORT)
  const directoryUrl = settings.text(tlsSettings.ACME_DIRECTORY_URL)
  if (!/^https:/.test(directoryUrl)) settings.refuse('ACME_DIRECTORY_URL', 'must be an https URL')
  if (certFile && keyFile) return { host, port, certFile, keyFile, acme: undefined }
  if (certFile ?? keyFile) settings.refuse('TLS_CERT_FILE', 'and TLS_KEY_FILE must be set together')
  if (domain === undefined) return undefined
  if (!/^(?=.{1,253}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/.test(domain))
    settings.refuse('TLS_DOMAIN', 'must be a host name, such as otp.example.com')
  if (databaseFile === undefined)
    settings.refuse('TLS_DOMAIN', 'needs an SQLite file. With PostgreSQL, set TLS_CERT_FILE and TLS_KEY_FILE')
  const folder = `${databaseFile}.tls`
  const files = { certFile: join(folder, 'certificate.pem'), keyFile: join(folder, 'key.pem') }
  return { host, port, ...files, acme: { domain, folder, directoryUrl, httpPort } }
}

/** Reads the certificate and its key. @throws ConfigError if they are not a pair */
export function readPair({ certFile, keyFile, acme }: TlsConfig) {
  const [certName, keyName] = acme ? ['TLS_DOMAIN', 'TLS_DOMAIN'] : ['TLS_CERT_FILE', 'TLS_KEY_FILE']
  const cert = readPem(certName, certFile, 'certificate', (pem) => new X509Certificate(pem))
  const key = readPem(keyName, keyFile, 'private key', (pem) => createPrivateKey(pem))
  if (!cert.parsed.checkPrivateKey(key.parsed))
    throw new ConfigError([`${keyName} (${keyFile}) does not belong to the certificate in ${certFile}`])
  return { cert: cert.pem, key: key.pem, validTo: cert.parsed.validTo }
}
