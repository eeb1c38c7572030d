import { chmodSync, chownSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PostgresServer } from './postgres.ts'

/**
 * Certificates until 2120, made by an authority of their own: of a server at 127.0.0.1, and of a client named otpost. The
 * keys are as public as this file and guard nothing.
 */
export const certificates = {
  authority: `-----BEGIN CERTIFICATE-----
MIIBeTCCAR6gAwIBAgIUIuL1hgN8OFHXQgo2BDjWJ5ZxKaYwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGVzdCBhdXRob3JpdHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEy
MDAxMDEwMDAwMDBaMBkxFzAVBgNVBAMMDnRlc3QgYXV0aG9yaXR5MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAETkQuMrAgVMIp2V7LAprcE/AWVj68pfSI4rtt3xDL
7chNaEBcPRiROjHTvR4UXk+iM4yZmYU7BmzuwZfZBxgLDqNCMEAwDwYDVR0TAQH/
BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAQYwHQYDVR0OBBYEFB8/fFgr0+nKnDRI+se8
znvsd396MAoGCCqGSM49BAMCA0kAMEYCIQCPG0hq2X/sH8OsY7iAn2TLhRxVrPg2
PkVU1j8Qr2KWowIhALIkCpdWGJufEFdTJXmrg1o+L5GCc0qV0pJcXBeQ6idF
-----END CERTIFICATE-----
`,
  server: `-----BEGIN CERTIFICATE-----
MIIBhjCCASygAwIBAgIUSxJIS7jxTZWiYUsI2OYqk1XgPLkwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGVzdCBhdXRob3JpdHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEy
MDAxMDEwMDAwMDBaMBYxFDASBgNVBAMMC3Rlc3Qgc2VydmVyMFkwEwYHKoZIzj0C
AQYIKoZIzj0DAQcDQgAEeASJE2KMJhEXH4gPAKPJRmTB5ep2I7aok0oFES44Faw7
vZUBq16OpZMSgBCsxkVO+opuYwAT4OTQXCeerkpZCqNTMFEwDwYDVR0RBAgwBocE
fwAAATAdBgNVHQ4EFgQUppFwnUO7MUD4pDiTbhnCVyI8FQIwHwYDVR0jBBgwFoAU
Hz98WCvT6cqcNEj6x7zOe+x3f3owCgYIKoZIzj0EAwIDSAAwRQIhAJ1wwl73xDS+
IsgLYTl6Mp/vBUoKti0DMAj7CKHu+rm7AiATuqL7LWENiDTciWIagO/GkV8vDiD1
UizKkNGYwryzSg==
-----END CERTIFICATE-----
`,
  serverKey: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLhvmkto09Eu5hgbQ
230McO0g7AyYI++Q544MXMrAfGyhRANCAAR4BIkTYowmERcfiA8Ao8lGZMHl6nYj
tqiTSgURLjgVrDu9lQGrXo6lkxKAEKzGRU76im5jABPg5NBcJ56uSlkK
-----END PRIVATE KEY-----
`,
  client: `-----BEGIN CERTIFICATE-----
MIIBhTCCASugAwIBAgIUC8J/szythm6Ymy56P1n/bphHnYkwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGVzdCBhdXRob3JpdHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEy
MDAxMDEwMDAwMDBaMBExDzANBgNVBAMMBm90cG9zdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABC7+w7kFwjRUUvnPAQHT4nEkiPDpdMUYtjK1utrl6Yoss5Rdhz5p
EMeEnJjNT8yQLu2NbirCURCMGIkNcXwMLXOjVzBVMBMGA1UdJQQMMAoGCCsGAQUF
BwMCMB0GA1UdDgQWBBSz7WvTk96mksXKeva+iHySWkkn0zAfBgNVHSMEGDAWgBQf
P3xYK9Ppypw0SPrHvM577Hd/ejAKBggqhkjOPQQDAgNIADBFAiEAnQaADI2zKwk+
39nGfuC23oNJvRBxWyuwO1qUMSfXglsCICyAbFviRFPBBbL+yTOlUPbAdwTXZ5tw
70G2lKLyHl+P
-----END CERTIFICATE-----
`,
  clientKey: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfR3HQ43e+iHSkN24
YMbxpDE8LfVMq9Ki1oXnBBwf4uuhRANCAAQu/sO5BcI0VFL5zwEB0+JxJIjw6XTF
GLYytbra5emKLLOUXYc+aRDHhJyYzU/MkC7tjW4qwlEQjBiJDXF8DC1z
-----END PRIVATE KEY-----
`,
} as const

/**
 * Lets a running server offer TLS.
 *
 * @param rules lines of pg_hba.conf that come before its own
 */
export async function offerTls(server: PostgresServer, rules: readonly string[] = []): Promise<void> {
  const { uid, gid } = statSync(server.dataFolder)
  const put = (name: string, text: string) => {
    const path = join(server.dataFolder, name)
    writeFileSync(path, text)
    chmodSync(path, 0o600)
    chownSync(path, uid, gid)
  }
  put('authority.crt', certificates.authority)
  put('server.crt', certificates.server)
  put('server.key', certificates.serverKey)
  const own = readFileSync(join(server.dataFolder, 'pg_hba.conf'), 'utf8')
  put('pg_hba.conf', `${rules.join('\n')}\n${own}`)
  await server.query("ALTER SYSTEM SET ssl_ca_file = 'authority.crt'")
  await server.query('ALTER SYSTEM SET ssl = on')
  await server.query('SELECT pg_reload_conf()')
}
