import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { openTestDatabase } from '../support/database.ts'
import {
  Draw,
  drawPost,
  drawShots,
  fuzzBrands,
  fuzzEnv,
  fuzzRuns,
  fuzzSeed,
  keyFingerprint,
  type Reply,
  Run,
  type Sent,
  type Shot,
} from '../support/fuzz.ts'
import { tester } from '../support/operator.ts'
import { startReceiver } from '../support/receiver.ts'
import { startServer } from '../support/server.ts'
import { startSmtp } from '../support/smtp.ts'

// Requests to the real process over real sockets, a third of them wrong already as HTTP; how to play a seed again is
// said in support/fuzz.ts.

/** Answers that a run must have met. */
const expected: readonly string[] = [
  '/otp/send 200 ok',
  '/otp/send 400 validation_error',
  '/otp/resend 200 ok',
  '/otp/verify 200 ok',
  '/otp/verify 401 mismatch',
  '/otp/verify 403 forbidden',
  '/otp/verify 404 not_found',
  '/notify 200 ok',
  '/notify 400 validation_error',
  '/notify 403 brand_not_approved',
  '/integrations/requests 201 ok',
  '/health 200 ok',
  'elsewhere 404 not_found',
  'elsewhere 405 method_not_allowed',
]

/** What the HTTP parser may answer before there is a request; it knows no envelope. */
const bareStatuses: readonly number[] = [400, 413, 431]

/** How many requests are under way at the same time. */
const wave = 24

test('no bytes on a socket make the process fail, or answer, log or store anything forbidden', async () => {
  await using ending = new AsyncDisposableStack()
  const database = await openTestDatabase()
  ending.defer(() => database.remove())
  const receiver = startReceiver()
  ending.defer(() => receiver.stop())
  const smtp = await startSmtp()
  ending.defer(() => smtp.stop())
  const env = {
    ...fuzzEnv(receiver, smtp),
    ...database.env,
    // Each request comes from its own IP address: limits per IP address would end the run early.
    TRUSTED_PROXIES: '127.0.0.1',
  }
  const context = await openContext(readConfig(env))
  for (const [slug, brand] of Object.entries(fuzzBrands)) await putBrand(context.acting(tester), slug, brand)
  const { key: issued } = await issueApp(context.acting(tester), 'till')
  await context.close()
  const server = await startServer(env)
  ending.defer(async () => void (await server.stop('SIGKILL')))
  const run = new Run(receiver, smtp, [issued, receiver.secret])

  const ask = async ({ shot, body }: Sent): Promise<Reply> => {
    const hasBody = body !== undefined && shot.method !== 'GET' && shot.method !== 'HEAD'
    const response = await fetch(server.url.origin + shot.target, {
      method: shot.method,
      headers: shot.headers,
      ...(hasBody ? { body } : {}),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const count = fuzzRuns(1500)
  // Of several slashes at the start of a path, Bun's fetch sends one.
  const shots = drawShots(Math.ceil(count * 0.66), fuzzSeed + 1).map((shot) => ({
    ...shot,
    target: shot.target.replace(/^\/+/, '/'),
  }))
  for (let first = 0; first < shots.length; first += wave) {
    const sent = shots.slice(first, first + wave).map((shot, offset) => run.load(shot, first + offset))
    const replies = await Promise.all(sent.map(ask))
    for (const [offset, reply] of replies.entries()) {
      const request = sent[offset]
      if (request) run.judge(request, reply)
    }
  }

  const answeredKinds = new Set<string>()
  const talks = fc.sample(
    fc.gen().map((generate) => drawTalk(new Draw(generate), run)),
    { numRuns: Math.ceil(count * 0.34), seed: fuzzSeed + 2 },
  )
  for (let first = 0; first < talks.length; first += wave) {
    const held = talks.slice(first, first + wave)
    const heard = await Promise.all(held.map((talk) => converse(server.url, talk)))
    for (const [offset, bytes] of heard.entries()) {
      const talk = held[offset]
      if (!talk) continue
      if (judgeTalk(run, talk, bytes, first + offset) > 0) answeredKinds.add(talk.kind)
    }
  }

  const health = await server.get('/health')
  expect(health.status).toBe(200)
  run.judgeDatabase(await database.contents())
  expect(await server.stop()).toBe(0)
  run.judgeDatabase(await database.contents())
  run.judgeLog(server.lines, false)
  expect(await server.stderr).toBe('')
  run.judgeReach(expected)
  for (const kind of ['whole', 'chunked', 'form']) {
    if (!answeredKinds.has(kind)) run.problem(`no answer on a socket of kind ${kind}`)
  }
  run.conclude()
})

// ---------------------------------------------------------------------------------------------------------------------
// Bytes on a socket
// ---------------------------------------------------------------------------------------------------------------------

interface Talk {
  readonly kind: string
  readonly bytes: Buffer
  /** The requests in it, in their order; each is answered at most once. */
  readonly requests: readonly Sent[]
  /** Whether all of them must be answered, and the server ends the connection; else the client does. */
  readonly whole: boolean
  /** What else may be answered without an envelope. */
  readonly bare?: readonly number[]
}

function drawTalk(draw: Draw, run: Run): Talk {
  const kind = draw.weighted({
    whole: 20,
    chunked: 14,
    form: 14,
    pipelined: 10,
    half: 14,
    length: 10,
    head: 6,
    line: 10,
    chunks: 8,
    noise: 6,
  })
  const load = (shot: Shot) => run.load(shot, 0)
  const right = load(drawPost(draw))
  /** The same request, of which nothing is known but what it is documented to get. */
  const { only: _, never: __, ...rest } = right.shot
  const some: Sent = { ...right, shot: rest }
  const body = Buffer.from(right.body ?? '')
  const talk = { kind, requests: [some], whole: false }
  const close = 'Connection: close'
  switch (kind) {
    case 'whole':
      return { kind, requests: [right], whole: true, bytes: message(right, [close, lengthOf(body)], body) }
    case 'chunked': {
      const bytes = message(right, [close, 'Transfer-Encoding: chunked'], chunksOf(draw, body))
      return { kind, requests: [right], whole: true, bytes }
    }
    case 'form':
      return { ...formOf(draw), kind, whole: true }
    case 'pipelined': {
      const all = [right, ...Array.from({ length: draw.integer(1, 4) }, () => load(drawPost(draw)))]
      const bytes = Buffer.concat(
        all.map((sent) => {
          const content = Buffer.from(sent.body ?? '')
          return message(sent, [lengthOf(content)], content)
        }),
      )
      return { kind, requests: all, whole: false, bytes }
    }
    case 'half': {
      const bytes = message(right, [close, lengthOf(body)], body)
      return { ...talk, bytes: bytes.subarray(0, draw.integer(0, bytes.length - 1)) }
    }
    case 'length': {
      const told = String(body.length)
      const wrong = draw.pick([
        ['Content-Length: abc'],
        ['Content-Length: -1'],
        [`Content-Length: +${told}`],
        [`Content-Length: ${told}, ${told}`],
        [`Content-Length: ${told}`, 'Content-Length: 0'],
        [`Content-Length: ${told}`, 'Transfer-Encoding: chunked'],
        ['Content-Length: 0x10'],
        ['Content-Length: 99999999999999999999'],
        ['Content-Length: 1e3'],
        [`Content-Length: ${Math.max(0, body.length - 5)}`],
        [`Content-Length: ${body.length + 5}`],
        ['Content-Length: '],
        ['Content-Length: 0'],
        ['Transfer-Encoding: gzip, chunked'],
        ['Transfer-Encoding: chunked, to'],
        ['Transfer-Encoding: xchunked'],
        ['Transfer-Encoding : chunked'],
        [],
      ])
      return { ...talk, bytes: message(some, [close, ...wrong], body) }
    }
    case 'head': {
      const wrong = draw.pick([
        [`X-Large: ${keyFingerprint}${'x'.repeat(20_000)}`],
        Array.from({ length: 300 }, (_, index) => `X-${index}: ${keyFingerprint}`),
        [`Cookie: ${'a=b; '.repeat(5000)}`],
        ['No colon here'],
        [': no name'],
        ['X Y: z'],
        ['X-Space : z'],
        ['X-Folded: a', ' b'],
        [`X-Nul: a\u0000${keyFingerprint}`],
        ['X-Bare: a\rb'],
        ['X-Line: a\nX-Injected: b'],
        ['\u00e9: z'],
        [`X-High: ${'\u00ff'.repeat(100)}`],
        ['Host: other.example'],
      ])
      return { ...talk, bytes: message(some, [close, ...wrong, lengthOf(body)], body) }
    }
    case 'line': {
      const target = right.shot.target
      const line = draw.pick([
        `POST ${target}`,
        `POST ${target} `,
        `POST  ${target} HTTP/1.1`,
        `post ${target} HTTP/1.1`,
        `POST ${target} HTTP/3.0`,
        `POST ${target} HTTP/1.2`,
        `POST ${target} http/1.1`,
        `POST ${target} XTTP/1.1`,
        `POST${target} HTTP/1.1`,
        `POST ${target} HTTP/1.1 `,
        `BREW ${target} HTTP/1.1`,
        ` POST ${target} HTTP/1.1`,
        `POST ${target}\u0000 HTTP/1.1`,
        `POST /${'x'.repeat(20_000)} HTTP/1.1`,
        'OPTIONS * HTTP/1.1',
        `POST ftp://x${target} HTTP/1.1`,
        'PRI * HTTP/2.0',
        `GET ${target} HTTP/0.9`,
        `\r\n\r\nPOST ${target} HTTP/1.1`,
        `${keyFingerprint} ${keyFingerprint} ${keyFingerprint}`,
      ])
      const bytes = message(some, [close, lengthOf(body)], body, line)
      // A version that is not spoken: RFC 9110 section 15.6.6.
      return { ...talk, requests: [], bytes, bare: [505] }
    }
    case 'chunks': {
      const hex = body.length.toString(16)
      const wrong = draw.pick([
        `zz\r\n${body}\r\n0\r\n\r\n`,
        `${hex}\r\n${body}`,
        `${hex}\r\n${body}\r\n`,
        `${hex}\r\n${body}\r\n0\r\n`,
        `ffffffffffffffff\r\n${body}`,
        `-1\r\n${body}\r\n0\r\n\r\n`,
        `${hex};${keyFingerprint}="x"\r\n${body}\r\n0\r\n\r\n`,
        `${hex};${'x'.repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`,
        `${hex}\r\n${body}xx\r\n0\r\n\r\n`,
        `${hex}\n${body}\n0\n\n`,
        `0\r\n\r\n${body}`,
        `${hex}\r\n${body}\r\n0\r\nX-Trailer: ${keyFingerprint}\r\n\r\n`,
      ])
      return { ...talk, bytes: message(some, [close, 'Transfer-Encoding: chunked'], Buffer.from(wrong)) }
    }
    case 'noise': {
      const noise = Buffer.from(draw.of(fc.uint8Array({ minLength: 1, maxLength: 200 })))
      const hello = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])
      const bytes = draw.pick([
        noise,
        Buffer.concat([hello, noise]),
        Buffer.concat([Buffer.from('POST '), noise]),
      ])
      return { ...talk, requests: [], bytes, bare: [505] }
    }
  }
}

/** A request without a body in a form that is seldom met, and right. */
function formOf(draw: Draw): Pick<Talk, 'bytes' | 'requests'> {
  const method = draw.pick(['GET', 'GET', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])
  const target = draw.pick([
    '/health',
    '/integrations/catalog',
    '/platform/brands',
    '/otp/send',
    '/notify',
    '/nothing',
    '//health',
    '/x/../health',
    '/%68ealth',
    '/\u00e9',
    '/"<>\\^`{|}',
    `/health?${keyFingerprint}`,
  ])
  const shot: Shot = { kind: 'form', method, target, headers: {}, body: undefined, recent: 0 }
  const close = 'Connection: close'
  const head = draw.pick([
    [`${method} ${target} HTTP/1.1`, 'Host: localhost', close],
    [`${method} ${target} HTTP/1.0`],
    [`${method} ${target} HTTP/1.0`, 'Host: localhost'],
    [`${method} http://localhost${target} HTTP/1.1`, 'Host: other.example', close],
    [`${method} ${target} HTTP/1.1`, 'Host: ', close],
    [`${method} ${target} HTTP/1.1`, `Host: <${keyFingerprint}>`, close],
    [`${method} ${target} HTTP/1.1`, 'Host: a/b?c#d', close],
    [`${method} ${target} HTTP/1.1`, 'Host: localhost:99999', close],
    [`${method} ${target} HTTP/1.1`, `Host: ${'a'.repeat(5000)}`, close],
    [`${method} ${target} HTTP/1.1`, 'hOsT:localhost', 'CONNECTION:CLOSE'],
    [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Expect: 100-continue', close],
    [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Upgrade: h2c', 'Connection: close, Upgrade'],
  ])
  return {
    requests: [{ shot, number: 0, body: undefined }],
    bytes: Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'),
  }
}

function lengthOf(body: Buffer): string {
  return `Content-Length: ${body.length}`
}

function message(
  { shot }: Sent,
  more: readonly string[],
  body: Buffer,
  line = `${shot.method} ${shot.target} HTTP/1.1`,
): Buffer {
  const headers = Object.entries(shot.headers).map(([name, value]) => `${name}: ${value}`)
  const head = [line, 'Host: localhost', ...headers, ...more].join('\r\n')
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), body])
}

/** A body in chunks of random sizes. */
function chunksOf(draw: Draw, body: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const chunk = body.subarray(at, at + draw.pick([1, 7, 64, 1000, 100_000]))
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
    at += chunk.length
    // Not more than some: the point is that there are several.
    if (chunks.length > 60 && at < body.length) {
      const rest = body.subarray(at)
      chunks.push(Buffer.from(`${rest.length.toString(16)}\r\n`), rest, Buffer.from('\r\n'))
      break
    }
  }
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}

/** Writes the bytes; resolves to everything that comes back until the connection has ended. */
async function converse(url: URL, { bytes, whole }: Talk): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const chunks: Buffer[] = []
  let rest = bytes
  const write = (socket: Bun.Socket) => {
    rest = rest.subarray(socket.write(rest))
    if (rest.length === 0 && !whole) socket.shutdown()
  }
  const socket = await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    allowHalfOpen: true,
    socket: {
      open: write,
      drain: (open) => {
        if (rest.length > 0) write(open)
      },
      data: (_, chunk) => void chunks.push(Buffer.from(chunk)),
      end: (open) => void open.end(),
      close: () => resolve(),
      error: () => resolve(),
    },
  })
  await promise
  socket.terminate()
  return Buffer.concat(chunks)
}

/** Judges what came back: each answer in an envelope, or bare from the parser. Returns how many had one. */
function judgeTalk(
  run: Run,
  { kind, requests, whole, bytes, bare = [] }: Talk,
  heard: Buffer,
  number: number,
): number {
  const trace = () =>
    `socket ${number} (${kind}): ${JSON.stringify(bytes.toString('latin1').slice(0, 1500))}\n    heard: ${JSON.stringify(heard.toString('latin1').slice(0, 800))}`
  const replies = repliesOf(heard)
  if (!replies) {
    run.problem(`what came back is no HTTP\n    ${trace()}`)
    return 0
  }
  let answered = 0
  for (const reply of replies) {
    if (!reply.headers.has('x-request-id')) {
      if (![...bareStatuses, ...bare].includes(reply.status) || reply.text !== '') {
        run.problem(`an answer without an envelope\n    ${trace()}`)
      }
      continue
    }
    const sent = requests[answered]
    answered++
    if (sent) run.judge({ ...sent, number }, reply, `\n    ${trace()}`)
    else run.problem(`an answer to no request\n    ${trace()}`)
  }
  if (whole && answered !== requests.length) {
    run.problem(`${answered} answers to ${requests.length} requests\n    ${trace()}`)
  }
  return answered
}

/** The answers in a stream of bytes; undefined where it is none of HTTP. An answer that was cut off is left out. */
function repliesOf(bytes: Buffer): Reply[] | undefined {
  const replies: Reply[] = []
  let rest = bytes
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return rest.subarray(0, 5).toString() === 'HTTP/' ? replies : undefined
    const [line = '', ...fields] = rest.subarray(0, end).toString('latin1').split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
    if (Number.isNaN(status)) return undefined
    const headers = new Headers(
      fields.map((field) => [field.slice(0, field.indexOf(':')), field.slice(field.indexOf(':') + 1)]),
    )
    const length = Number(headers.get('content-length') ?? 0)
    if (rest.length < end + 4 + length) return replies
    const body = rest.subarray(end + 4, end + 4 + length)
    rest = rest.subarray(end + 4 + length)
    if (status !== 100) replies.push({ status, headers, text: body.toString() })
  }
  return replies
}
