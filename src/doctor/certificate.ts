import { isIP } from 'node:net'
import { connect } from 'node:tls'
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

/** @param end epoch milliseconds */
export function certificateFinding(host: string, end: number | undefined, now: number): Finding[] {
  if (end === undefined || Number.isNaN(end)) return []
  const days = Math.floor((end - now) / dayMs)
  const remedy = 'Renew it on that host. If a program renews it, see its log.'
  const text = `The certificate of ${host} ${days < 0 ? 'expired' : 'is valid until'} ${utc(end)}`
  if (days < 0) return [fail('certificate', `${text}.`, remedy)]
  const valid = `${text} (${days} days).`
  return [days < soonDays ? warn('certificate', valid, remedy) : ok('certificate', valid)]
}
