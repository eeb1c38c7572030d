import type { Outcome } from '../../domain/messages/providers.ts'
import type { Meaning } from './provider.ts'

/** A provider's answer, as far as it was read; or why there was none. */
export type HttpResult =
  | { readonly answered: true; readonly status: number; readonly text: string }
  | { readonly answered: false; readonly outcome: Outcome }

export interface HttpRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** As much of an answer as is read: more than any vendor says. */
const maxAnswerBytes = 64 * 1024

/**
 * One POST to a provider: within its time, without following redirects, with no more of the answer than 64 KiB, and never
 * repeated, since a message that may have been taken must not be sent twice. A call that does not get its turn in the
 * first half of its time is not made. Connections are kept and used again.
 *
 * @param needs `status` resolves as soon as that is there, with an empty text: for providers whose answer says no more
 */
export async function post(
  url: string,
  request: HttpRequest,
  timeoutMs: number,
  needs: 'text' | 'status' = 'text',
): Promise<HttpResult> {
  const giveUpAt = performance.now() + timeoutMs
  try {
    new Headers(request.headers)
  } catch {
    return unanswered({ kind: 'rejected', scope: 'account', reason: 'unusable header', unasked: true })
  }
  const line = lineOf(new URL(url).host)
  const late = { kind: 'retryable', reason: 'too many calls under way', unasked: true } as const
  if (!(await line.turn(timeoutMs / 2))) return unanswered(late)
  // A machine that stood still in between has let the time pass.
  if (performance.now() >= giveUpAt) {
    line.leave()
    return unanswered(late)
  }
  const abort = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  // The signal alone is not relied on: a fetch that fails to notice it must not outlive its deadline.
  const timeUp = new Promise<'time-out'>((resolve) => {
    timer = setTimeout(() => {
      resolve('time-out')
      abort.abort()
    }, giveUpAt - performance.now())
  })
  const head = Promise.withResolvers<HttpResult>()
  const whole = httpRequest(url, { ...request, signal: abort.signal }, (status) => {
    if (needs === 'status') head.resolve({ answered: true, status, text: '' })
  })
    // A call that is past its deadline counts until it has ended indeed, and so does one whose answer is not over.
    .finally(() => {
      clearTimeout(timer)
      line.leave()
    })
  try {
    const first = await Promise.race([head.promise, whole, timeUp])
    return first === 'time-out' ? unanswered({ kind: 'unknown', reason: 'time-out' }) : first
  } catch (error) {
    return unanswered(fault(error))
  } finally {
    whole.catch(() => undefined)
  }
}

async function httpRequest(
  url: string,
  request: RequestInit,
  begun: (status: number) => void,
): Promise<HttpResult> {
  const response = await fetch(url, { method: 'POST', redirect: 'manual', ...request })
  begun(response.status)
  return { answered: true, status: response.status, text: await textOf(response) }
}

/**
 * The beginning of an answer. One that breaks off is cut there, maybe to nothing: what that says is judged by who reads
 * it, and its status stands.
 */
async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength
      if (bytes > maxAnswerBytes) break
      text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    // The connection is lost, or the time is up: then nobody waits for the text any more.
  }
  return text
}

/**
 * How many calls there may be at once. Bun's fetch makes 256 and keeps any more back within itself, where their time runs
 * out unsent, or where they are sent at the moment that ends the calls before them: too late, and uncalled for.
 */
const mostCalls = 240

/** How many calls may wait for their turn at one provider; the next is refused at once. */
const mostWaiting = 1000

let calls = 0

/**
 * The calls to one host, and those that wait. It may have as many under way as are left for others: a provider that
 * hangs takes half of all at most, and there is always room for one that is healthy.
 */
class Line {
  private calls = 0
  /** In their order; each is called when its turn has come. */
  private readonly waiting = new Set<() => void>()

  /** Whether the turn of a call came within this time. Then `leave` must follow. */
  async turn(patienceMs: number): Promise<boolean> {
    if (this.waiting.size === 0 && this.hasRoom) {
      this.enter()
      return true
    }
    if (this.waiting.size >= mostWaiting) return false
    return new Promise((resolve) => {
      const start = () => {
        clearTimeout(timer)
        this.waiting.delete(start)
        this.enter()
        resolve(true)
      }
      const timer = setTimeout(() => {
        this.waiting.delete(start)
        resolve(false)
      }, patienceMs)
      this.waiting.add(start)
    })
  }

  leave(): void {
    this.calls--
    calls--
    for (const line of lines.values()) line.advance()
  }

  private enter(): void {
    this.calls++
    calls++
  }

  private advance(): void {
    for (const start of this.waiting) {
      if (!this.hasRoom) return
      start()
    }
  }

  private get hasRoom(): boolean {
    return this.calls < mostCalls - calls
  }
}

/** By host; providers are few, and named by the settings. */
const lines = new Map<string, Line>()

function lineOf(host: string): Line {
  let line = lines.get(host)
  if (!line) {
    line = new Line()
    lines.set(host, line)
  }
  return line
}

/**
 * What a status means where a provider defines no more than HTTP does. A redirect or an unknown path is a wrong setting:
 * nothing that is sent there will arrive.
 */
export function meaningOfStatus(status: number): Meaning {
  if (status >= 500 || status === 429 || status === 408) return 'retryable'
  if (status < 400 || [401, 402, 403, 404, 405, 407, 410].includes(status)) return 'account'
  return 'content'
}

/** Failures before anything was sent: no connection, or none that is trusted; after any other it may have the message. */
const unsent =
  /^(ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EPROTO|ERR_PROXY_TUNNEL)$|CERT|LEAF_SIGNATURE|^ERR_(TLS|SSL)/

function fault(error: unknown): Outcome {
  const code = String((error as { code?: unknown } | null)?.code ?? 'connection lost')
  return { kind: unsent.test(code) ? 'retryable' : 'unknown', reason: code }
}

function unanswered(outcome: Outcome): HttpResult {
  return { answered: false, outcome }
}
