import type { Outcome } from '../../domain/ports.ts'

export type HttpResult =
  | { readonly answered: true; readonly status: number }
  | { readonly answered: false; readonly outcome: Outcome }

/**
 * One POST to a provider: within its time, without following redirects, without reading more of the answer than its
 * status, and never repeated, since a message that may have been taken must not be sent twice.
 */
export async function post(
  url: string,
  request: { headers: Readonly<Record<string, string>>; body: string },
  timeoutMs: number,
): Promise<HttpResult> {
  const abort = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  // The signal alone is not relied on: a fetch that fails to notice it must not outlive its deadline.
  const timeUp = new Promise<'time-out'>((resolve) => {
    timer = setTimeout(() => {
      resolve('time-out')
      abort.abort()
    }, timeoutMs)
  })
  const answer = fetch(url, { method: 'POST', ...request, redirect: 'manual', signal: abort.signal }).then(
    (response) => {
      response.body?.cancel().catch(() => undefined)
      return { answered: true, status: response.status } as const
    },
  )
  try {
    const first = await Promise.race([answer, timeUp])
    return first === 'time-out' ? unanswered({ kind: 'unknown', reason: 'time-out' }) : first
  } catch (error) {
    return unanswered(fault(error))
  } finally {
    clearTimeout(timer)
    answer.catch(() => undefined)
  }
}

/** What a status says when a provider defines no more than HTTP does. */
export function outcomeOfStatus(status: number): Outcome {
  if (status >= 200 && status < 300) return { kind: 'accepted' }
  const reason = `HTTP ${status}`
  if (status >= 500 || status === 429 || status === 408) return { kind: 'unavailable', reason }
  if (status === 401 || status === 403) return { kind: 'rejected', scope: 'account', reason }
  return { kind: 'rejected', scope: 'message', reason }
}

/** Failures before anything was sent; after any other the provider may have the message. */
const unsent: ReadonlySet<string> = new Set([
  'ConnectionRefused',
  'FailedToOpenSocket',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

function fault(error: unknown): Outcome {
  const code = String((error as { code?: unknown } | null)?.code ?? 'connection lost')
  return { kind: unsent.has(code) ? 'unavailable' : 'unknown', reason: code }
}

function unanswered(outcome: Outcome): HttpResult {
  return { answered: false, outcome }
}
