import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

// Not with node:http, which Bun builds on its fetch: that neither connects to a given IP address under the name of the host, nor shows
// whether the request was sent when it fails.

export interface Target {
  readonly address: string
  readonly port: number
  /** Undefined: http. */
  readonly tls: { readonly servername: string | undefined; readonly ca: string | undefined } | undefined
}

/**
 * Resolves once a request can be sent: with TLS, once the certificate is valid for the host.
 * @throws the error of the socket, or ETIMEDOUT
 */
export function openSocket(
  { address: host, port, tls }: Target,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = tls
      ? connectTls({
          host,
          port,
          // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot override it.
          rejectUnauthorized: true,
          ...(tls.servername !== undefined && { servername: tls.servername }),
          ...(tls.ca !== undefined && { ca: tls.ca }),
        })
      : connectTcp({ host, port })
    const aborted = () => socket.destroy(socketError('ETIMEDOUT'))
    const timer = setTimeout(aborted, timeoutMs)
    const settled = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
    }
    signal.addEventListener('abort', aborted)
    socket.once(tls ? 'secureConnect' : 'connect', () => {
      settled()
      resolve(socket)
    })
    socket.once('error', reject)
    // Also without an error, which Bun may leave out.
    socket.once('close', () => {
      settled()
      reject(socketError('ECONNRESET'))
    })
  })
}

function socketError(code: string): Error {
  return Object.assign(new Error(code), { code })
}

interface Answer {
  readonly status: number
  /** As received. */
  readonly retryAfter: string | undefined
  /** The beginning of the body. Empty if the status is 2xx. */
  readonly text: string
}

const mostHeadBytes = 64 * 1024
const mostBodyBytes = 4096

/** For the rest of a body that nothing depends on. */
const bodyMs = 1000

/**
 * One POST, HTTP/1.1. Resolves to the head of the final answer. The connection ends before its body, unless the status is not 2xx: then
 * after the beginning of the body.
 */
export function postOn(
  socket: Socket,
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  let text = ''
  let timer: ReturnType<typeof setTimeout> | undefined
  const end = (error: unknown) => {
    const head = finalHead(text)
    if (head) resolve({ ...head, text: bodyIn(text, head) })
    else reject(error)
  }
  socket.on('error', end)
  socket.on('close', () => end(socketError('ECONNRESET')))
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    const head = finalHead(text)
    if (head) {
      if (isAccepted(head) || text.length >= head.end + mostBodyBytes) end(undefined)
      else timer ??= setTimeout(end, bodyMs)
    } else if (head === null || text.length > mostHeadBytes) reject(new Error('no HTTP answer'))
  })
  signal.addEventListener('abort', () => socket.destroy())
  const all = {
    ...headers,
    host: url.host,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

interface Head extends Omit<Answer, 'text'> {
  /** Where the body begins. */
  readonly end: number
  readonly isChunked: boolean
}

function isAccepted({ status }: Head): boolean {
  return status >= 200 && status < 300
}

/** Of an answer as Latin-1 text. */
function bodyIn(answer: string, head: Head): string {
  if (isAccepted(head)) return ''
  const received = answer.slice(head.end, head.end + mostBodyBytes)
  // Of a chunked body, without the lines with the sizes.
  const body = head.isChunked ? received.replace(/(?:^|\r\n)[0-9a-f]{1,8}(?:;[^\r\n]*)?\r\n/gi, '') : received
  return new TextDecoder().decode(Buffer.from(body, 'latin1'))
}

/** The first head that is not informational (1xx). Undefined: not yet complete. Null: it is not HTTP/1. */
function finalHead(text: string): Head | null | undefined {
  for (let start = 0; ; ) {
    const end = text.indexOf('\r\n\r\n', start)
    if (end < 0) return undefined
    const [statusLine = '', ...fields] = text.slice(start, end).split('\r\n')
    const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1])
    if (!(status >= 100)) return null
    if (status >= 200) {
      const retryAfter = fields.find((field) => /^retry-after:/i.test(field))
      return {
        status,
        retryAfter: retryAfter?.slice('retry-after:'.length).trim(),
        end: end + 4,
        isChunked: fields.some((field) => /^transfer-encoding:.*chunked/i.test(field)),
      }
    }
    start = end + 4
  }
}
