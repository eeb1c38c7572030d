import { lookup } from 'node:dns/promises'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import type { TryResult } from '../../domain/events/event-store.ts'
import type { Webhook } from '../../domain/events/webhook-events.ts'
import { hostOf, mayConnect, webhookUrlProblem } from '../../domain/events/webhook-url.ts'
import { signedHeaders, webhookKey } from '../crypto/standard-webhooks.ts'
import { hostKind } from './host-kind.ts'

export interface SenderSettings {
  /** NODE_ENV=production. */
  readonly isProduction: boolean
  readonly timeoutMs: number
  /** The IP addresses of a host name. */
  readonly addressesOf?: (host: string) => Promise<readonly string[]>
  /** Certificate authorities in PEM, instead of those of the system. */
  readonly ca?: string
}

/**
 * Posts signed events (design D45). A host name is resolved for each try. All its IP addresses must be allowed, and the connection goes to
 * the one that was checked, so that a name whose IP address changes cannot reach the operator's network. No redirect is followed, no
 * proxy is used and no body is read.
 */
export function createEventSender({
  isProduction,
  timeoutMs,
  addressesOf = allAddresses,
  ca,
}: SenderSettings) {
  return async (
    { url: text, secret }: Webhook,
    id: string,
    body: string,
    now: number,
  ): Promise<TryResult> => {
    const problem = webhookUrlProblem(text, isProduction, hostKind)
    const key = webhookKey(secret)
    if (problem !== undefined || !key) return { httpStatus: null, error: problem ?? 'The secret is invalid.' }
    const url = new URL(text)
    const late = Promise.withResolvers<TryResult>()
    const abort = new AbortController()
    const timer = setTimeout(() => {
      abort.abort()
      late.resolve({ httpStatus: null, error: 'no answer in time' })
    }, timeoutMs)
    try {
      return await Promise.race([
        late.promise,
        attempt(url, signedHeaders(key, id, body, now), body, abort.signal),
      ])
    } catch (error) {
      return { httpStatus: null, error: reasonOf(error) }
    } finally {
      clearTimeout(timer)
    }
  }

  async function attempt(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<TryResult> {
    const host = hostOf(url)
    const addresses = isIP(host) === 0 ? await addressesOf(host) : [host]
    const refused = addresses.find((each) => !mayConnect(url, isProduction, hostKind(each) ?? 'private'))
    if (refused !== undefined)
      return { httpStatus: null, error: `the host resolves to ${refused}, which is not allowed` }
    const [address] = addresses
    if (address === undefined || signal.aborted)
      return { httpStatus: null, error: 'the host has no IP address' }
    const status = await post(url, address, headers, body, signal)
    return { httpStatus: status, error: status >= 200 && status < 300 ? null : `HTTP ${status}` }
  }

  /** Resolves to the status, and ends the connection before the body of the answer. */
  function post(
    url: URL,
    address: string,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<number> {
    const isTls = url.protocol === 'https:'
    const host = hostOf(url)
    return new Promise((resolve, reject) => {
      const call = (isTls ? httpsRequest : httpRequest)(
        {
          host: address,
          port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
          path: url.pathname + url.search,
          method: 'POST',
          headers: { ...headers, host: url.host, 'content-length': String(Buffer.byteLength(body)) },
          // No connection is kept, since another webhook may share the IP address.
          agent: false,
          signal,
          ...(isTls && {
            rejectUnauthorized: true,
            ...(isIP(host) === 0 && { servername: host }),
            ...(ca !== undefined && { ca }),
          }),
        },
        (answer) => {
          resolve(answer.statusCode ?? 0)
          answer.destroy()
        },
      )
      call.on('error', reject)
      call.end(body)
    })
  }
}

async function allAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Without the text of an error, which may contain the URL. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[A-Za-z0-9_]{1,60}$/.test(code) ? code : 'connection failed'
}
