import { existsSync } from 'node:fs'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { readPair, type TlsConfig } from '../adapters/http/tls-settings.ts'
import { ConfigError } from '../config/settings.ts'
import { utc } from '../domain/ground/format.ts'
import { dayMs } from '../domain/ground/time.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'

const soonDays = 14

/** Undefined: the host gave no certificate in time. It may be one that is not trusted. */
export function certificateEnd(url: URL, timeoutMs: number): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // Node rejects an IP address as the name.
  const named = isIP(host) ? {} : { servername: host }
  const socket = connect(
    { host, port: Number(url.port || 443), ...named, rejectUnauthorized: false, timeout: timeoutMs },
    () => resolve(Date.parse(socket.getPeerCertificate().valid_to)),
  )
  for (const event of ['error', 'timeout', 'close'] as const) socket.once(event, () => resolve(undefined))
  return promise.finally(() => socket.destroy())
}

/** The certificate that this server presents, read from its files. */
export function tlsFindings(tls: TlsConfig | undefined, now: number): Finding[] {
  if (!tls) return []
  const { acme, certFile, port } = tls
  const remedy = acme
    ? 'The server gets and renews it. Its log says what is wrong. If a file is damaged, delete both.'
    : 'Replace both files. The user of the server must be able to read them.'
  if (acme && !existsSync(certFile))
    return [warn('TLS', `There is no certificate for ${acme.domain} on port ${port} yet.`, remedy)]
  try {
    const whose = `port ${port} (${certFile}, with its key)`
    return certificateFinding(whose, Date.parse(readPair(tls).validTo), now, { what: 'TLS', remedy })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [fail('TLS', `${error.message}.`, remedy)]
  }
}

const ofHost = { what: 'certificate', remedy: 'Renew it on that host. If a program renews it, see its log.' }

/** @param end epoch milliseconds */
export function certificateFinding(
  host: string,
  end: number | undefined,
  now: number,
  { what, remedy } = ofHost,
): Finding[] {
  if (end === undefined || Number.isNaN(end)) return []
  const days = Math.floor((end - now) / dayMs)
  const text = `The certificate of ${host} ${days < 0 ? 'expired' : 'is valid until'} ${utc(end)}`
  if (days < 0) return [fail(what, `${text}.`, remedy)]
  const valid = `${text} (${days} days).`
  return [days < soonDays ? warn(what, valid, remedy) : ok(what, valid)]
}
