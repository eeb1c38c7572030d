import { lookup } from 'node:dns/promises'

export type Reach =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** The Date header, epoch milliseconds. */
      readonly date: number | null
      /** The first part of the body. */
      readonly text: string
      readonly tookMs: number
    }
  | {
      /** `name`: not in the DNS. */
      readonly kind: 'name' | 'proxy' | 'refused' | 'time-out' | 'certificate' | 'other'
      readonly code: string
    }

const maxTextBytes = 4096

/** Sends a GET without credentials and does not follow redirects. Never throws. */
export async function reach(url: string, timeoutMs: number): Promise<Reach> {
  const startedAt = performance.now()
  const abort = new AbortController()
  const { promise: timeUp, resolve } = Promise.withResolvers<'time-out'>()
  const timer = setTimeout(() => {
    resolve('time-out')
    abort.abort()
  }, timeoutMs)
  try {
    const asking = ask(url, abort.signal)
    asking.catch(() => undefined)
    const answer = await Promise.race([asking, timeUp])
    if (answer === 'time-out') return { kind: 'time-out', code: 'time-out' }
    return { kind: 'answered', ...answer, tookMs: performance.now() - startedAt }
  } catch (error) {
    const found = await Promise.race([whyUnreached(url, error), timeUp])
    return found === 'time-out' ? { kind: 'time-out', code: 'time-out' } : found
  } finally {
    clearTimeout(timer)
  }
}

async function ask(url: string, signal: AbortSignal) {
  const tls = { rejectUnauthorized: true }
  const response = await fetch(url, { redirect: 'manual', tls, signal, headers: { accept: '*/*' } })
  const date = Date.parse(response.headers.get('date') ?? '')
  return { status: response.status, date: Number.isNaN(date) ? null : date, text: await beginning(response) }
}

async function beginning(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > maxTextBytes) break
  }
  return text
}

/** The error does not always say that a name is unknown. */
async function whyUnreached(url: string, error: unknown): Promise<Reach> {
  const code = String((error as { code?: unknown } | null)?.code ?? 'connection lost')
  if (/CERT|LEAF_SIGNATURE|^ERR_(TLS|SSL)|^EPROTO$/.test(code)) return { kind: 'certificate', code }
  // The proxy resolves the name, not this machine.
  if (code === 'ERR_PROXY_TUNNEL') return { kind: 'proxy', code }
  try {
    await lookup(new URL(url).hostname.replace(/^\[|\]$/g, ''))
  } catch (cause) {
    return { kind: 'name', code: String((cause as NodeJS.ErrnoException).code) }
  }
  return { kind: /REFUSED|^ConnectionRefused$/.test(code) ? 'refused' : 'other', code }
}
