import { lookup } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import type { Webhook } from '../../domain/ground/webhook-events.ts'
import { answerText } from '../../domain/integration/answer-text.ts'
import type { SentEvent } from '../../domain/integration/event-delivery.ts'
import {
  type HostKindOf,
  hostOf,
  mayConnect,
  webhookUrlProblem,
} from '../../domain/integration/webhook-url.ts'
import { signedHeaders, webhookKey } from '../crypto/standard-webhooks.ts'
import { openSocket, postOn } from './socket-post.ts'

export interface SenderSettings {
  /** NODE_ENV=production. */
  readonly isProduction: boolean
  readonly hostKind: HostKindOf
  readonly timeoutMs: number
  /** For each IP address but the last: to connect, and for the TLS handshake. */
  readonly connectMs?: number
  /** The IP addresses of a host name. */
  readonly addressesOf?: (host: string) => Promise<readonly string[]>
  /** Certificate authorities in PEM, instead of those of the system. */
  readonly ca?: string
}

/**
 * Posts signed events (design D45). A host name is resolved for each try. All its IP addresses must be allowed. They are tried in turn
 * until one accepts a connection, so that a name whose IP address changes cannot reach the operator's network. No redirect is followed,
 * no proxy is used. Only the body of an answer that does not accept the event is read, and little of it.
 */
export function createEventSender({
  isProduction,
  hostKind,
  timeoutMs,
  connectMs = 5000,
  addressesOf = allAddresses,
  ca,
}: SenderSettings) {
  return async (
    { url: text, secret, previousSecrets }: Webhook,
    id: string,
    body: string,
    now: number,
  ): Promise<SentEvent> => {
    const problem = webhookUrlProblem(text, isProduction, hostKind)
    const key = webhookKey(secret)
    if (problem !== undefined || !key) return failed(problem ?? 'The secret is invalid.')
    const previous = previousSecrets.filter(({ signsUntil }) => signsUntil > now)
    const headers = signedHeaders(
      key,
      id,
      body,
      now,
      previous.flatMap(({ secret }) => webhookKey(secret) ?? []),
    )
    const url = new URL(text)
    const secrets = [secret, ...previousSecrets.map((previous) => previous.secret)]
    const late = Promise.withResolvers<SentEvent>()
    const abort = new AbortController()
    const timer = setTimeout(() => {
      abort.abort()
      late.resolve(failed('no answer in time'))
    }, timeoutMs)
    try {
      return await Promise.race([late.promise, attempt(url, headers, body, now, secrets, abort.signal)])
    } catch (error) {
      return failed(reasonOf(error))
    } finally {
      clearTimeout(timer)
    }
  }

  async function attempt(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
    now: number,
    secrets: readonly string[],
    signal: AbortSignal,
  ): Promise<SentEvent> {
    const host = hostOf(url)
    const addresses = isIP(host) === 0 ? await addressesOf(host) : [host]
    const refused = addresses.find((each) => !mayConnect(url, isProduction, hostKind(each) ?? 'private'))
    if (refused !== undefined) return failed(`the host resolves to ${refused}, which is not allowed`)
    if (addresses.length === 0 || signal.aborted) return failed('the host has no IP address')
    const socket = await connected(url, addresses, signal)
    const { status, retryAfter, text } = await postOn(socket, url, headers, body, signal)
    if (status >= 200 && status < 300) return { httpStatus: status, error: null, answer: null }
    const hidden = [...secrets, ...url.searchParams.values(), url.search.slice(1)]
    const result = { httpStatus: status, error: `HTTP ${status}`, answer: answerText(text, hidden) }
    const isTemporary = status === 429 || status === 503
    return isTemporary && retryAfter !== undefined
      ? { ...result, retryAfterMs: retryAfterIn(retryAfter, now) }
      : result
  }

  /** Of the first IP address that accepts a connection. The request is sent to no other one. @throws the error of the last one */
  async function connected(url: URL, addresses: readonly string[], signal: AbortSignal): Promise<Socket> {
    const host = hostOf(url)
    const isTls = url.protocol === 'https:'
    const tls = isTls ? { servername: isIP(host) === 0 ? host : undefined, ca } : undefined
    const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
    const tried = addresses.slice(0, mostAddresses)
    const limitMs = Math.min(connectMs, timeoutMs / tried.length)
    for (const address of tried.slice(0, -1)) {
      try {
        return await openSocket({ address, port, tls }, limitMs, signal)
      } catch {
        if (signal.aborted) break
      }
    }
    return openSocket({ address: tried.at(-1) ?? host, port, tls }, timeoutMs, signal)
  }
}

/** That are tried. */
const mostAddresses = 16

function failed(error: string): SentEvent {
  return { httpStatus: null, error, answer: null }
}

/** Seconds or a date (RFC 9110 section 10.2.3). 0: neither. */
function retryAfterIn(text: string, now: number): number {
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000
  const at = /[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? 0 : Math.max(0, at - now)
}

async function allAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Without the text of an error, which may contain the URL. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[A-Za-z0-9_]{1,60}$/.test(code) ? code : 'connection failed'
}
