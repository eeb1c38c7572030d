import { once } from 'node:events'
import type { RequestOptions } from 'node:http'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { Turns } from '../../domain/delivery/turns.ts'
import type { Outcome } from '../../domain/ground/providers.ts'

const maxAnswerBytes = 64 * 1024

export interface HttpCall {
  /** POST if left out. */
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

type OutcomeOf = (status: number, text: string) => Outcome

/**
 * No redirects and no retries, since a message that may be accepted must not be sent twice.
 * @param needs `status`: if only the body is missing when the time is up, the status decides, with an empty text
 */
export async function call(
  url: string,
  request: HttpCall,
  timeoutMs: number,
  outcomeOf: OutcomeOf,
  needs: 'text' | 'status' = 'text',
): Promise<Outcome> {
  const giveUpAt = performance.now() + timeoutMs
  try {
    new Headers(request.headers)
  } catch {
    return { kind: 'rejected', scope: 'account', reason: 'unusable header', notCalled: true }
  }
  const [host, caller] = [{ name: new URL(url).host }, { app: '', isCode: true }]
  const late = { kind: 'retryable', reason: 'too many calls under way', notCalled: true } as const
  if (!(await turns.enter(host, caller, timeoutMs / 2))) return late
  // The machine may have been suspended meanwhile.
  if (performance.now() >= giveUpAt) {
    turns.leave(host, caller)
    return late
  }
  const abort = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  // A fetch that ignores the signal must not exceed the deadline.
  let begun: number | undefined
  const timeUp = new Promise<Outcome>((resolve) => {
    timer = setTimeout(() => {
      resolve(
        needs === 'status' && begun !== undefined
          ? outcomeOf(begun, '')
          : { kind: 'unknown', reason: 'time-out' },
      )
      abort.abort()
    }, giveUpAt - performance.now())
  })
  const whole = httpRequest(url, request, abort.signal, outcomeOf, (status) => {
    begun = status
  })
    // A call counts until it has ended, also beyond its deadline.
    .finally(() => {
      clearTimeout(timer)
      turns.leave(host, caller)
    })
  try {
    return await Promise.race([whole, timeUp])
  } catch (error) {
    return fault(error)
  } finally {
    whole.catch(() => undefined)
  }
}

async function httpRequest(
  url: string,
  { method = 'POST', headers, body }: HttpCall,
  signal: AbortSignal,
  outcomeOf: OutcomeOf,
  begun: (status: number) => void,
): Promise<Outcome> {
  // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot override it.
  const tls = { rejectUnauthorized: true }
  const init = { method, headers, signal, ...(body === undefined ? {} : { body }) }
  const response = hasDotSegment(url)
    ? await rawRequest(url, { ...init, ...tls })
    : await fetch(url, { ...init, redirect: 'manual', tls })
  begun(response.status)
  return outcomeOf(response.status, await textOf(response.body ?? []))
}

/** `fetch` would remove it, with the segment before. */
function hasDotSegment(url: string): boolean {
  return /\/(%2e){1,2}([/?]|$)/i.test(url)
}

async function rawRequest(
  url: string,
  { body, ...options }: RequestOptions & { readonly body?: string },
): Promise<{ readonly status: number; readonly body: AsyncIterable<Uint8Array> }> {
  const { hostname, port, protocol } = new URL(url)
  const path = url.replace(/^[a-z]+:\/\/[^/]*/i, '')
  const { request } = await (protocol === 'https:' ? import('node:https') : import('node:http'))
  const sent = request({ ...options, hostname, port, path })
  const answered = once(sent, 'response')
  sent.end(body)
  const [response] = await answered
  return { status: response.statusCode, body: response }
}

/** Returns a truncated text after a lost connection, since the status is still valid. */
async function textOf(body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.byteLength
      if (bytes > maxAnswerBytes) break
      text += decoder.decode(chunk, { stream: true })
    }
  } catch {}
  return text
}

/** Calls by host. Bun's fetch makes 256 concurrent calls and queues others, which then time out or are sent too late. */
const turns = new Turns((ms, act) => {
  const timer = setTimeout(act, ms)
  return () => clearTimeout(timer)
}, 240)

/**
 * The meaning of an HTTP status alone. After 408, 429 and 503 the provider has not taken the message; after any other 5xx it may
 * have sent it (design D26). A redirect or an unknown path is a wrong setting.
 */
export function meaningOfStatus(status: number): Meaning {
  if (status === 408 || status === 429 || status === 503) return 'retryable'
  if (status >= 500) return 'unknown'
  if (status < 400 || [401, 402, 403, 404, 405, 407, 410].includes(status)) return 'account'
  return 'content'
}

/** Errors before anything was sent. After other errors the provider may have the message. */
const unsent =
  /^(ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EPROTO|ERR_PROXY_TUNNEL)$|CERT|LEAF_SIGNATURE|^ERR_(TLS|SSL)/

function fault(error: unknown): Outcome {
  const code = String((error as { code?: unknown } | null)?.code ?? 'connection lost')
  return { kind: unsent.test(code) ? 'retryable' : 'unknown', reason: code }
}
