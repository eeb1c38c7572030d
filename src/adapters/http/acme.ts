import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, crypto } from 'acme-client'
import type { TlsConfig } from './tls-settings.ts'

type AcmeConfig = NonNullable<TlsConfig['acme']>

/** Gets a certificate, and writes the files. Throws with words of the ACME server. @param challenges answers by token */
export async function obtainCertificate(
  { certFile, keyFile }: Pick<TlsConfig, 'certFile' | 'keyFile'>,
  { domain, folder, directoryUrl }: AcmeConfig,
  challenges: Map<string, string>,
): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const client = await clientOf(join(folder, 'account.json'), directoryUrl)
  const names = { commonName: domain, altNames: [domain] }
  const [key, csr] = await crypto.createCsr(names, await crypto.createPrivateEcdsaKey())
  const certificate = await client.auto({
    csr,
    challengePriority: ['http-01'],
    // A machine behind NAT may not reach its own domain.
    skipChallengeVerification: true,
    challengeCreateFn: async (_, { token }, answer) => void challenges.set(token, answer),
    challengeRemoveFn: async (_, { token }) => void challenges.delete(token),
  })
  writePrivate(keyFile, key)
  writePrivate(certFile, certificate)
}

/** A client with the account in the file, which it creates. Each ACME server has accounts of its own. */
async function clientOf(file: string, directoryUrl: string): Promise<Client> {
  const saved = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
  if (saved.directoryUrl === directoryUrl) return new Client({ ...saved, accountKey: saved.key })
  const key = String(await crypto.createPrivateEcdsaKey())
  const client = new Client({ directoryUrl, accountKey: key })
  await client.createAccount({ termsOfServiceAgreed: true })
  const account = { directoryUrl, accountUrl: client.getAccountUrl(), key }
  writePrivate(file, `${JSON.stringify(account)}\n`)
  return client
}

/** A crash leaves the old file or the new one. */
function writePrivate(file: string, content: string | Buffer): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
}

/** When to renew: after two thirds of the lifetime. 0: there is no usable certificate for the domain. */
export function renewalTime(certFile: string, domain: string): number {
  try {
    const certificate = new X509Certificate(readFileSync(certFile))
    const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
    return certificate.checkHost(domain) === undefined ? 0 : from + ((to - from) * 2) / 3
  } catch {
    return 0
  }
}

/** What the operator can do. */
export function acmeRemedy(message: string, { domain, directoryUrl, httpPort }: AcmeConfig): string {
  if (/rate.?limit|too many/i.test(message))
    return 'The ACME server limits certificates for each domain. Wait, or use TLS_CERT_FILE with another certificate.'
  if (/NXDOMAIN|DNS|no valid (A|IP)|no such host|could not resolve/i.test(message))
    return `Create a DNS record (A or AAAA) that leads from ${domain} to this machine.`
  if (/ECONNREFUSED|ENOTFOUND|ETIMEDOUT|getaddrinfo|certificate/i.test(message) && !/http:\/\//.test(message))
    return `This machine must reach ${directoryUrl}. Look at its firewall and at ACME_DIRECTORY_URL.`
  return `The ACME server must reach http://${domain}/ and get the answer of port ${httpPort} of this machine. Look at firewall and DNS.`
}
