import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { maxBodyBytes, maxCodeBodyBytes } from '../../src/adapters/http/body.ts'
import { maxCallbackBytes } from '../../src/adapters/http/callbacks.ts'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { longestNotifyMs } from '../../src/domain/notify/notify.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { addAccount } from '../support/accounts.ts'
import { credentials, temporaryFolder } from '../support/app.ts'
import { accessRequest } from '../support/calls.ts'
import { tester } from '../support/operator.ts'
import { freePorts } from '../support/ports.ts'
import { startReceiver } from '../support/receiver.ts'
import { freshPhone } from '../support/rows.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { selfSigned } from '../support/smtp.ts'
import { replaced, started } from './programs.ts'

// Runs the example configurations of proxies in the real programs, before one real server. Only ports, the certificate
// and the path of the log are changed.

const examples = join(import.meta.dir, '../../deploy')
const name = 'otp.example.com'
const nginx = Bun.which('nginx')
const caddy = Bun.which('caddy')

const folder = temporaryFolder()
const receiver = startReceiver()
let server: TestServer
const proxies = new Map<string, Proxy>()

interface Proxy {
  /** Its URLs with TLS, and without. */
  readonly tlsPort: number
  readonly plainPort: number
  /** Its access log so far. */
  readonly log: () => string
  stop(): Promise<unknown>
}

beforeAll(async () => {
  if (!nginx && !caddy) return
  const settings = {
    DATABASE_URL: `file:${join(folder.path, 'otpost.db')}`,
    SMS_PLAIN: 'webhook',
    ...receiver.env,
  }
  const context = await openContext(readConfig(settings))
  await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
  await addAccount({ app: { context }, clock: { now: Date.now() } }, 'ana@example.com', 'owner')
  await context.close()
  server = await startServer({
    ...settings,
    PROVIDER_TIMEOUT_MS: '30000',
    PUBLIC_URL: `https://${name}`,
    TRUSTED_PROXIES: '127.0.0.1',
    // The non-public parts are enabled: the outbox for mail, the console with its form, metrics.
    METRICS_TOKEN: 'of-the-test',
  })
  if (nginx) proxies.set('nginx', await startNginx(nginx, server.url.port))
  if (caddy) proxies.set('Caddy', await startCaddy(caddy, server.url.port))
})
afterAll(async () => {
  await Promise.all(Array.from(proxies.values(), (proxy) => proxy.stop()))
  if (server) await server.stop('SIGKILL')
  receiver.stop()
  folder.remove()
})

/** Of proxies that wait a second for a request and for its answer. */
const impatient = {
  nginx: [
    [/client_header_timeout 10s/, 'client_header_timeout 1s'],
    [/client_body_timeout 10s/, 'client_body_timeout 1s'],
    [/proxy_read_timeout 120s/, 'proxy_read_timeout 1s'],
  ],
  caddy: [
    [/read_header 10s/, 'read_header 1s'],
    [/read_body 30s/, 'read_body 1s'],
    [/response_header_timeout 120s/, 'response_header_timeout 1s'],
  ],
} as const

type Changes = readonly (readonly [RegExp, string])[]

async function startNginx(program: string, upstreamPort: string, changes: Changes = []): Promise<Proxy> {
  const [tlsPort = 0, plainPort = 0] = freePorts(2)
  const home = join(folder.path, `nginx-${tlsPort}`)
  mkdirSync(home)
  writeFileSync(join(home, 'fullchain.pem'), selfSigned.cert)
  writeFileSync(join(home, 'privkey.pem'), selfSigned.key)
  const example = replaced(readFileSync(join(examples, 'nginx/otpost.conf'), 'utf8'), [
    [/listen 443 ssl;/g, `listen 127.0.0.1:${tlsPort} ssl;`],
    [/listen 80;/g, `listen 127.0.0.1:${plainPort};`],
    [/ *listen \[::\]:.*\n/g, ''],
    [/server 127\.0\.0\.1:3000;/, `server 127.0.0.1:${upstreamPort};`],
    [/\/etc\/ssl\/otpost\//g, `${home}/`],
    [/\/var\/log\/nginx\//g, `${home}/`],
    ...changes,
  ])
  writeFileSync(join(home, 'otpost.conf'), example)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = join(home, 'nginx.conf')
  writeFileSync(
    config,
    [
      `daemon off; master_process off; pid ${home}/pid; error_log stderr notice;`,
      'events {}',
      `http { ${temporary.map((each) => `${each}_temp_path ${home}/${each};`).join(' ')} include ${home}/otpost.conf; }`,
    ].join('\n'),
  )
  const checked = Bun.spawnSync([program, '-t', '-p', home, '-c', config], { stderr: 'pipe' })
  expect(checked.stderr.toString()).toContain('test is successful')
  expect(checked.stderr.toString()).not.toMatch(/\[(?:warn|emerg|error)\]/)
  const { stop } = await started([program, '-p', home, '-c', config], / nginx\//, folder.path)
  return { tlsPort, plainPort, log: () => readFileSync(join(home, 'otpost.log'), 'utf8'), stop }
}

async function startCaddy(program: string, upstreamPort: string, changes: Changes = []): Promise<Proxy> {
  const [tlsPort = 0, plainPort = 0] = freePorts(2)
  const home = join(folder.path, `caddy-${tlsPort}`)
  mkdirSync(home)
  const example = readFileSync(join(examples, 'caddy/Caddyfile'), 'utf8')
  const config = join(home, 'Caddyfile')
  writeFileSync(
    config,
    replaced(example, [
      [/reverse_proxy 127\.0\.0\.1:3000/, `reverse_proxy 127.0.0.1:${upstreamPort}`],
      [
        /^\{\n/m,
        `{
          admin off
          local_certs
          skip_install_trust
          http_port ${plainPort}
          https_port ${tlsPort}
          default_bind 127.0.0.1
          storage file_system ${home}/storage
        `,
      ],
      ...changes,
    ]),
  )
  const formatted = Bun.spawnSync([program, 'fmt', join(examples, 'caddy/Caddyfile')])
  expect(formatted.stdout.toString()).toBe(example)
  const line = [program, 'run', '--adapter', 'caddyfile', '--config', config]
  const caddy = await started(line, /certificate obtained successfully/, home)
  const proxy = { tlsPort, plainPort, ...caddy }
  // It loads the certificate a moment after it obtained it.
  const answers = () =>
    ask(proxy, '/health').then(
      () => true,
      () => false,
    )
  while (!(await answers())) await Bun.sleep(5)
  return proxy
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

interface Asking {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The local IP address of the connection. */
  readonly from?: string
  readonly plain?: boolean
  /** Sends no end of the headers. */
  readonly unfinished?: boolean
}

/** Sends a request with its path as written, over TLS by default. Resolves to its answer. */
function ask(proxy: Proxy, path: string, asking: Asking = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body = '', from = '127.0.0.1', plain = false, unfinished } = asking
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const socket = connect({
    host: '127.0.0.1',
    port: plain ? proxy.plainPort : proxy.tlsPort,
    localAddress: from,
  })
  const stream = plain ? socket : connectTls({ socket, servername: name, rejectUnauthorized: false })
  let raw = ''
  const read = () => {
    const answer = answerOf(raw)
    resolve(answer)
    socket.destroy()
  }
  stream.on('data', (chunk) => {
    raw += chunk
    const { headers, text } = answerOf(raw)
    // A proxy that rejects a body waits for it for a while before it closes the connection.
    if (headers.get('content-length') === String(Buffer.byteLength(text))) read()
  })
  stream.on('error', reject)
  stream.on('end', read)
  const fields = {
    host: name,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }
  // HTTP/1.0: the answer ends with the connection, and is not chunked.
  const head = [
    `${method} ${path} HTTP/1.0`,
    ...Object.entries(fields).map(([key, value]) => `${key}: ${value}`),
  ]
  stream.write(unfinished ? head.join('\r\n') : `${head.join('\r\n')}\r\n\r\n${body}`)
  return promise
}

function answerOf(raw: string): Answer {
  const [head = '', ...rest] = raw.split('\r\n\r\n')
  const [status = '', ...lines] = head.split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1),
    ]),
  )
  return { status: Number(status.split(' ')[1]), headers, text: rest.join('\r\n\r\n') }
}

function post(proxy: Proxy, path: string, fields: object, asking: Asking = {}): Promise<Answer> {
  const brand = path.startsWith('/otp/') ? { brandId: 'acme' } : {}
  return ask(proxy, path, {
    method: 'POST',
    body: JSON.stringify({ ...credentials, ...brand, ...fields }),
    ...asking,
  })
}

/** Waits until the log of a proxy has the requestId of an answer, which it writes after the answer. Resolves to it. */
async function logged(proxy: Proxy, { headers }: Answer): Promise<string> {
  const requestId = headers.get('x-request-id') ?? expect.unreachable()
  while (!proxy.log().includes(requestId)) await Bun.sleep(5)
  return requestId
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** An error answer of any server in the envelope, with its requestId in the header too. */
function expectRefusal({ status, headers, text }: Answer, refusal: { status: number; error: string }) {
  const { success, error, message, requestId } = JSON.parse(text)
  expect({ status, success, error }).toEqual({ ...refusal, success: false })
  expect(message).toBeString()
  expect(requestId).toMatch(uuid)
  expect(headers.get('x-request-id')).toBe(requestId)
  expect(headers.get('content-type')).toStartWith('application/json')
}

const installed: readonly (readonly [string, boolean])[] = [
  ['nginx', nginx !== null],
  ['Caddy', caddy !== null],
]
for (const [each, isInstalled] of installed) {
  describe.skipIf(!isInstalled)(`behind ${each}${isInstalled ? '' : ', which is not installed'}`, () => {
    const proxy = () => proxies.get(each) ?? expect.unreachable()

    test('a code is sent and verified, and the requestId is that of the log', async () => {
      const phone = freshPhone()
      const sent = await post(proxy(), '/otp/send', { phone })
      expect(sent.status).toBe(200)
      const { requestId } = JSON.parse(sent.text)
      expect(sent.headers.get('x-request-id')).toBe(requestId)
      expect(sent.headers.get('strict-transport-security')).toStartWith('max-age=')
      await server.logged(requestId)
      const { body } = receiver.received.findLast((call) => call.body.to === phone) ?? expect.unreachable()
      const [otp] = /\d{6}/.exec(body.text) ?? expect.unreachable()
      expect((await post(proxy(), '/otp/verify', { phone, otp })).status).toBe(200)
    })

    test('limits by IP address count the connected client, and ignore the headers that it sends', async () => {
      // Another IP address for each proxy, since both use the same server.
      const from = each === 'nginx' ? '127.0.0.11' : '127.0.0.12'
      const request = (asking: Asking) => post(proxy(), '/integrations/requests', accessRequest, asking)
      const statuses: number[] = []
      for (const claimed of [1, 2, 3, 4, 5, 6]) {
        const headers = { 'x-forwarded-for': `203.0.113.${claimed}`, forwarded: `for=203.0.113.${claimed}` }
        statuses.push((await request({ from, headers })).status)
      }
      expect(statuses).toEqual([201, 201, 201, 201, 201, 429])
      expect((await request({ from: '127.0.0.13', headers: { 'x-forwarded-for': from } })).status).toBe(201)
    })

    test('a body larger than otpost accepts is rejected in the envelope before it is sent', async () => {
      const limits = {
        '/otp/send': maxCodeBodyBytes,
        '/notify': maxBodyBytes,
        '/callbacks/x': maxCallbackBytes,
      }
      for (const [path, limit] of Object.entries(limits)) {
        const announced = { 'content-length': String(limit + 1) }
        const answer = await post(proxy(), path, {}, { headers: announced })
        expectRefusal(answer, { status: 413, error: 'validation_error' })
        await logged(proxy(), answer)
        const body = 'x'.repeat(limit)
        const { status } = await ask(proxy(), path, { method: 'POST', body })
        expect({ path, status }).toEqual({ path, status: path === '/callbacks/x' ? 404 : 400 })
      }
    })

    test('public paths are passed on', async () => {
      const { paths } = JSON.parse((await ask(proxy(), '/openapi.json')).text)
      const named = Object.entries<object>(paths).filter(
        ([path]) => path !== '/' && path !== '/metrics' && !path.startsWith('/outbox'),
      )
      expect(named.length).toBeGreaterThan(8)
      const asked = [
        ...named.map(([path, operations]) => [path, 'post' in operations ? 'POST' : 'GET'] as const),
        ...['/docs', '/docs/page.js', '/docs/page.css', '/callbacks/webhook/none'].map(
          (path) => [path, 'GET'] as const,
        ),
        ['/relay/supabase', 'POST'] as const,
      ]
      const answers = await Promise.all(asked.map(([path, method]) => ask(proxy(), path, { method })))
      for (const { headers } of answers)
        await server.logged(headers.get('x-request-id') ?? expect.unreachable())
    })

    test('the console, the outbox and metrics are not passed on, with any spelling of their paths', async () => {
      const hidden = ['/admin', '/outbox', '/outbox/messages?to=12025550143', '/metrics']
      const direct = await Promise.all(
        hidden.map((path) =>
          server.request('GET', path, { headers: { authorization: 'Bearer of-the-test' } }),
        ),
      )
      expect(direct.map(({ status }) => status)).not.toContain(404)
      const disguised = [
        ...['//admin', '/%61dmin', '/./admin', '/otp/../admin', '/otp/%2e%2e/admin', '/otp/..%2fadmin'],
        ...[
          '/docs/..\\admin',
          '/docs/..%5cadmin',
          '/docs/..;/admin',
          '/health/../outbox',
          '/health/..//metrics',
        ],
        ...['/notify/../outbox/messages', '/ADMIN', '/admin#/health', '/outbox?/health', '/'],
        ...[`https://${name}/admin`, `https://${name}/docs/..\\admin`],
        // Spellings that the proxy or the server decodes, joins or resolves, and the other one does not.
        ...['/admin/x%2f..%2f..%2fdocs', '/admin/%2e%2e%2fdocs', '/admin/brands/acme%2f..%2f..%2f..%2fdocs'],
        ...[
          '/outbox/messages/1%2f..%2f..%2f..%2fdocs%2f/html',
          '/admin//../docs',
          '/admin/..%5cdocs',
          '/%64ocs',
        ],
      ]
      const reached = async () => {
        // Once this request is logged, all earlier ones are too.
        const last = await ask(proxy(), '/integrations/catalog')
        await server.logged(last.headers.get('x-request-id') ?? expect.unreachable())
        return server.lines.filter((line) => /"route":"\/(?:admin|outbox|metrics)/.test(line))
      }
      const before = await reached()
      for (const path of [...hidden, ...disguised]) {
        const answer = await ask(proxy(), path, { headers: { authorization: 'Bearer of-the-test' } })
        // A proxy may reject a very strange path without the envelope.
        if (answer.status !== 400) expectRefusal(answer, { status: 404, error: 'not_found' })
        expect({ path, text: answer.text }).not.toEqual({ path, text: expect.stringContaining('<form') })
      }
      expect(await reached()).toEqual(before)
    })

    test('requests without TLS are not passed on', async () => {
      const answer = await post(
        proxy(),
        '/otp/verify',
        { phone: freshPhone(), otp: '123456' },
        { plain: true },
      )
      expect(answer.status).toBe(403)
      expect(answer.headers.get('x-request-id')).toBeNull()
    })
  })
}

test.skipIf(!nginx)(
  `the log of nginx has no query and no token${nginx ? '' : ', which is not installed'}`,
  () => {
    const { tlsPort, log } = proxies.get('nginx') ?? expect.unreachable()
    expect(log()).toContain(' POST /otp/send 200 ')
    expect(log()).toContain(' GET /callbacks/... ')
    expect(log()).toContain(' GET /outbox/messages 404 ')
    expect(log()).not.toMatch(/12025550143|none|of-the-test/)
    expect(log()).not.toContain('?to')
    expect(readFileSync(join(folder.path, `nginx-${tlsPort}`, 'otpost-error.log'), 'utf8')).toBe('')
  },
)

test.skipIf(!caddy)(
  `the log of Caddy has no headers, no query and no token${caddy ? '' : ', which is not installed'}`,
  () => {
    const { log } = proxies.get('Caddy') ?? expect.unreachable()
    expect(log()).toMatch(/"method":"POST",[^}]*"uri":"\/otp\/send"/)
    expect(log()).not.toMatch(/12025550143|receipts|of-the-test|"headers"/)
  },
)

for (const [each, program, start] of [
  ['nginx', nginx, (port: string) => startNginx(nginx ?? '', port, impatient.nginx)],
  ['Caddy', caddy, (port: string) => startCaddy(caddy ?? '', port, impatient.caddy)],
] as const) {
  describe.skipIf(!program)(`${each} that waits a second${program ? '' : ', which is not installed'}`, () => {
    let proxy: Proxy
    beforeAll(async () => {
      proxy = await start(server.url.port)
    })
    afterAll(() => proxy.stop())

    test('answers unavailable if otpost is late, and the repetition with the key gets the answer', async () => {
      const arrived = Promise.withResolvers<void>()
      const release = Promise.withResolvers<void>()
      receiver.answer(async () => {
        arrived.resolve()
        await release.promise
        return new Response()
      })
      const phone = freshPhone()
      const headers = { 'idempotency-key': phone }
      const late = post(proxy, '/otp/send', { phone }, { headers })
      await arrived.promise
      const answer = await late
      expectRefusal(answer, { status: 503, error: 'unavailable' })
      expect(answer.headers.get('retry-after')).toBe('2')
      const requestId = await logged(proxy, answer)
      release.resolve()
      await server.logged(`"proxyRequestId":"${requestId}"`)
      const line = JSON.parse(server.lines.find((each) => each.includes(requestId)) ?? '')
      receiver.answer(() => new Response())
      const again = await post(proxy, '/otp/send', { phone }, { headers })
      expect(again.status).toBe(200)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(JSON.parse(again.text).requestId).toBe(line.requestId)
      await server.logged(again.headers.get('x-request-id') ?? expect.unreachable())
    })

    test('ends a request whose headers or body stop, before otpost gets it', async () => {
      const before = server.lines.length
      expect(await ask(proxy, '/otp/send', { method: 'POST', unfinished: true })).toMatchObject({ text: '' })
      const answer = await post(proxy, '/otp/send', {}, { headers: { 'content-length': '1000' } })
      if (answer.text !== '') expectRefusal(answer, { status: 400, error: 'validation_error' })
      const last = await ask(proxy, '/integrations/catalog')
      await server.logged(last.headers.get('x-request-id') ?? expect.unreachable())
      expect(server.lines.slice(before).filter((line) => line.includes('/otp/send'))).toEqual([])
    })
  })
}

test.skipIf(!nginx && !caddy)(
  `a stop lets requests through a proxy end; then the proxy answers in the envelope${nginx || caddy ? '' : ' (neither is installed)'}`,
  async () => {
    const release = Promise.withResolvers<void>()
    const arrived = Promise.withResolvers<void>()
    let calls = 0
    receiver.answer(async () => {
      if (++calls === proxies.size) arrived.resolve()
      await release.promise
      return new Response(null, { status: 204 })
    })
    const underWay = Array.from(proxies.values(), (proxy) =>
      post(proxy, '/otp/send', { phone: freshPhone() }),
    )
    await arrived.promise
    server.child.kill('SIGTERM')
    await server.logged('stopping')
    release.resolve()
    expect((await Promise.all(underWay)).map(({ status }) => status)).toEqual(underWay.map(() => 200))
    expect(await server.exited).toBe(0)
    for (const proxy of proxies.values()) {
      const answer = await post(proxy, '/otp/send', { phone: freshPhone() })
      expectRefusal(answer, { status: 503, error: 'unavailable' })
      expect(answer.headers.get('retry-after')).toBe('2')
      await logged(proxy, answer)
    }
  },
)

test('the time-outs of the examples match those of the server', () => {
  const longestSeconds = longestNotifyMs(4000) / 1000
  const texts = ['nginx/otpost.conf', 'caddy/Caddyfile'].map((path) =>
    readFileSync(join(examples, path), 'utf8'),
  )
  for (const text of texts) {
    const [, answer] = /(?:proxy_read_timeout|response_header_timeout) (\d+)s/.exec(text) ?? []
    expect(Number(answer)).toBeGreaterThan(longestSeconds)
    expect(text).toContain(`may take ${longestSeconds} s`)
    const [, idle] = /keepalive(?:_timeout)? (\d+)s/.exec(text) ?? []
    expect(Number(idle)).toBeLessThan(30)
  }
})
