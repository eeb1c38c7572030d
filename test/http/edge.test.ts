import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { addAccount } from '../support/accounts.ts'
import { type Answer, createTestApp, credentials, type TestApp } from '../support/app.ts'
import { rawRequest } from '../support/raw-http.ts'
import { createBrokenApp, expectError, freshPhone } from '../support/rows.ts'

// Behavior that depends on a request's path, Host name and listening address, and the headers of every
// response.

const token = 'a-token-of-the-outbox'

describe('a path over a socket', () => {
  let app: TestApp
  let url: URL

  beforeAll(async () => {
    app = await createTestApp({ PORT: '0' })
    await addAccount(app, 'ana@example.com', 'owner')
    url = app.app.listen()
  })
  afterAll(() => app.close())

  for (const path of [
    '/x/../admin/login',
    '/docs/.%2E/admin/login',
    '/./admin/login',
    '/%2e/admin/login',
    '/docs\\..\\admin\\login',
    '/docs%2f..%5cadmin/login',
    'http://localhost/x/../admin/login',
    '/outbox/messages/a\\..\\1/html',
    '/..',
  ]) {
    test(`GET ${path} returns 404`, async () => {
      const { status, text } = await rawRequest(url, `GET ${path}`)
      expect({ status, error: JSON.parse(text).error }).toEqual({ status: 404, error: 'not_found' })
    })
  }

  for (const method of ['HEAD', 'POST']) {
    test(`${method} of a path with dot segments returns 404`, async () => {
      const { status } = await rawRequest(url, `${method} /x/../health`, [
        'Host: localhost',
        'Content-Length: 0',
      ])
      expect(status).toBe(404)
    })
  }

  for (const [path, status] of [
    ['/admin/login', 200],
    ['/admin/login?next=/../x', 200],
    ['/admin/nowhere', 303],
    ['/outbox/messages?to=..%2f', 400],
    ['http://localhost/health', 200],
    ['/docs/page.css', 200],
    ['/health?x=/../%2e%2e', 200],
  ] as const) {
    test(`GET ${path} returns ${status}`, async () => {
      expect((await rawRequest(url, `GET ${path}`)).status).toBe(status)
    })
  }

  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
    test(`${method} /health returns 405`, async () => {
      const answer = await rawRequest(url, `${method} /health`, ['Host: localhost', 'Content-Length: 0'])
      expect({ status: answer.status, allow: answer.headers.get('allow') }).toEqual({
        status: 405,
        allow: 'GET, HEAD',
      })
    })
  }
})

describe('the Host name of /outbox and /admin (D29)', () => {
  const paths = [
    '/outbox',
    '/outbox/messages',
    '/outbox/outbox.js',
    '/admin',
    '/admin/login',
    '/admin/page.css',
  ]
  let app: TestApp
  beforeAll(async () => {
    app = await createTestApp({
      PUBLIC_URL: 'https://otp.example.com:8443/base',
      HOST: 'Host.internal',
      OUTBOX_TOKEN: token,
    })
    await addAccount(app, 'ana@example.com', 'owner')
  })
  afterAll(() => app.close())
  const get = (path: string, host: string, method = 'GET') =>
    app.request(method, path, { headers: { host, authorization: `Bearer ${token}` } })

  for (const host of [
    'localhost',
    'LOCALHOST:3000',
    'localhost.',
    'shop.localhost:1',
    '127.0.0.1',
    '127.9.8.7:65535',
    '[::1]:3000',
    '[::1]',
    'otp.example.com',
    'OTP.example.com.:9',
    'host.internal:3000',
  ]) {
    test(`${host} is accepted`, async () => {
      for (const path of paths) expect((await get(path, host)).status, path).toBeOneOf([200, 303])
    })
  }

  for (const host of [
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    'evillocalhost',
    '127.0.0.1.evil.example',
    '10.0.0.5:3000',
    '0.0.0.0',
    '[::2]',
    '[::ffff:10.0.0.1]',
    'otp.example.com.evil.example',
    'localhost, evil.example',
    'a@localhost',
    'evil.com/.localhost',
    'evil.com#.localhost',
    '.localhost',
    '',
  ]) {
    test(`${host || 'none'} returns 404 for every method`, async () => {
      for (const path of [...paths, '/admin/nowhere', '/outbox/nowhere']) {
        for (const method of ['GET', 'DELETE']) expectError(await get(path, host, method), 404, 'not_found')
      }
    })
  }

  test('is not checked for other paths', async () => {
    expect((await get('/health', 'evil.example')).status).toBe(200)
    expect((await get('/docs', 'evil.example')).status).toBe(200)
    expect((await get('/administration', 'evil.example')).body.message).toBe(
      (await get('/nowhere', 'localhost')).body.message,
    )
  })

  test('that is missing, repeated or invalid returns 404 over a socket', async () => {
    const url = await listening()
    for (const headers of [
      ['Host: '],
      ['Host: a b'],
      ['Host: evil.example', 'Host: localhost'],
      ['Host: a/b?c#d'],
    ]) {
      for (const path of ['/admin/login', '/outbox']) {
        const { status } = await rawRequest(url, `GET ${path}`, headers)
        expect(status, `${path} ${headers}`).toBeOneOf([400, 404])
      }
    }
    expect((await rawRequest(url, 'GET /admin/login', ['Host: localhost:1'])).status).toBe(200)
  })

  test('that is repeated returns 400 on other paths, before credentials', async () => {
    const url = await listening()
    for (const second of ['localhost', 'evil.example']) {
      for (const line of ['GET /health', 'POST /otp/send', 'GET /', 'DELETE /otp/send']) {
        const headers = ['Host: localhost', `Host: ${second}`, 'Content-Length: 0']
        const { status, text } = await rawRequest(url, line, headers)
        expect([line, status, JSON.parse(text).error]).toEqual([line, 400, 'validation_error'])
      }
    }
  })

  let local: TestApp | undefined
  afterAll(() => local?.close())
  async function listening(): Promise<URL> {
    local = await createTestApp({ PORT: '0' })
    await addAccount(local, 'ana@example.com', 'owner')
    return local.app.listen()
  }
})

test('a request with two Content-Length headers returns 400', async () => {
  const own = await createTestApp({ PORT: '0' })
  const url = own.app.listen()
  const headers = ['Host: localhost', 'Content-Type: application/json', ...Array(2).fill('Content-Length: 0')]
  const { status, text } = await rawRequest(url, 'POST /otp/send', headers)
  expect(status).toBe(400)
  expect(JSON.parse(text).message).toBe('A request must have at most one Content-Length header.')
  await own.close()
})

describe('the outbox of a server that listens beyond loopback (D29)', () => {
  const pages = [
    '/outbox',
    '/outbox/messages',
    '/outbox/messages/1/html',
    '/outbox/outbox.css',
    '/outbox/page.css',
  ]
  const apps: TestApp[] = []
  afterAll(() => Promise.all(apps.map((app) => app.close())))
  async function appWith(env: Readonly<Record<string, string>>): Promise<TestApp> {
    const app = await createTestApp(env)
    apps.push(app)
    return app
  }

  for (const HOST of ['0.0.0.0', '::', '10.1.2.3', 'otp.internal']) {
    test(`returns 404 at ${HOST} without OUTBOX_TOKEN, names the setting, and is not linked from any page`, async () => {
      const app = await appWith({ HOST })
      for (const path of pages) {
        const answer = await app.get(path)
        expectError(answer, 404, 'not_found')
        expect(answer.body.message).toContain('OUTBOX_TOKEN')
      }
      expect((await app.get('/')).body.links.outbox).toBeUndefined()
      expect(Object.keys((await app.get('/openapi.json')).body.paths)).not.toContain('/outbox/messages')
    })
  }

  for (const HOST of ['127.0.0.1', '127.0.0.2', '::1', 'localhost']) {
    test(`is open at ${HOST}, which is loopback`, async () => {
      const app = await appWith({ HOST })
      expect((await app.get('/outbox/messages')).status).toBe(200)
    })
  }

  describe('with OUTBOX_TOKEN', () => {
    let app: TestApp
    beforeAll(async () => {
      app = await appWith({ HOST: '0.0.0.0', OUTBOX_TOKEN: token })
      await app.post('/otp/send', { phone: freshPhone() })
    })
    const get = (path: string, headers: Record<string, string> = {}) => app.request('GET', path, { headers })
    const cookieOf = ({ headers }: Answer) => headers.get('set-cookie')?.split(';')[0] ?? ''

    for (const [name, headers] of [
      ['nothing', {}],
      ['another token', { authorization: 'Bearer another-token' }],
      ['the token without a scheme', { authorization: token }],
      ['another scheme', { authorization: `Basic ${token}` }],
      ['an empty token', { authorization: 'Bearer ' }],
      ['a cookie of another value', { cookie: 'otpost_outbox=AAAA' }],
      ['the token as cookie', { cookie: `otpost_outbox=${token}` }],
    ] as const) {
      test(`${name} returns 401 with a challenge`, async () => {
        for (const path of pages) {
          const answer = await get(path, headers)
          expectError(answer, 401, 'unauthorized')
          expect(answer.headers.get('www-authenticate')).toBe('Bearer')
        }
      })
    }

    test('the bearer token returns 200', async () => {
      for (const path of pages.filter((page) => !page.endsWith('html'))) {
        expect((await get(path, { authorization: `Bearer ${token}` })).status, path).toBe(200)
      }
    })

    test('?token= redirects to the URL without it and sets a cookie that opens every page', async () => {
      const answer = await get(`/outbox?to=12025550143&token=${token}`)
      expect(answer.status).toBe(303)
      expect(answer.headers.get('location')).toBe('/outbox?to=12025550143')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      const cookie = answer.headers.get('set-cookie') ?? ''
      expect(cookie).toMatch(/^otpost_outbox=[\w-]{43}; Path=\/outbox; HttpOnly; SameSite=Strict$/)
      expect(cookie).not.toContain(token)
      for (const path of pages.filter((page) => !page.endsWith('html'))) {
        expect((await get(path, { cookie: `a=b; ${cookieOf(answer)}; c=d` })).status, path).toBe(200)
      }
    })

    test('?token= with another token returns 401, also with the cookie', async () => {
      const cookie = cookieOf(await get(`/outbox?token=${token}`))
      expectError(await get('/outbox?token=another', { cookie }), 401, 'unauthorized')
      expectError(await get('/outbox?token='), 401, 'unauthorized')
    })

    test('the cookie is Secure when PUBLIC_URL is https, for any Host', async () => {
      for (const [PUBLIC_URL, isSecure] of [
        ['https://otp.example.com', true],
        ['http://localhost:3000', false],
      ] as const) {
        const { app } = await appWith({ HOST: '0.0.0.0', OUTBOX_TOKEN: token, PUBLIC_URL })
        // As behind a proxy that changes Host.
        const request = new Request(`http://localhost:3000/outbox?token=${token}`)
        const cookie = (await app.handle(request)).headers.get('set-cookie') ?? ''
        expect(cookie.includes('; Secure; HttpOnly; SameSite=Strict')).toBe(isSecure)
      }
    })

    test('the token is not logged', async () => {
      await get(`/outbox?token=${token}`)
      await new Promise((resolve) => setImmediate(resolve))
      expect(app.lines.length).toBeGreaterThan(0)
      expect(JSON.stringify(app.lines)).not.toContain(token)
    })
  })
})

describe('the headers of JSON responses', () => {
  let app: TestApp
  let broken: Awaited<ReturnType<typeof createBrokenApp>>
  beforeAll(async () => {
    app = await createTestApp({ METRICS_TOKEN: 'a-token-of-metrics' })
    broken = await createBrokenApp()
  })
  afterAll(() => Promise.all([app.close(), broken.close()]))

  const json = { 'content-type': 'application/json' }
  const rows: readonly [name: string, status: number, ask: () => Promise<Answer>][] = [
    ['POST /otp/send', 200, () => app.post('/otp/send', { phone: freshPhone() })],
    ['POST /otp/verify', 404, () => app.post('/otp/verify', { phone: freshPhone(), otp: '123456' })],
    ['POST /notify', 400, () => app.post('/notify', {})],
    ['without credentials', 401, () => app.postRaw('/otp/send', {})],
    ['with wrong credentials', 403, () => app.postRaw('/otp/send', { ...credentials, apiKey: 'x' })],
    ['a body that is no JSON', 400, () => app.postRaw('/otp/send', '{')],
    [
      'a body that is too large',
      413,
      () => app.request('POST', '/otp/send', { headers: json, body: ' '.repeat(300_000) }),
    ],
    ['GET /', 200, () => app.get('/')],
    ['GET /health', 200, () => app.get('/health')],
    ['HEAD /health', 200, () => app.request('HEAD', '/health')],
    ['GET /health/live', 200, () => app.get('/health/live')],
    ['GET /health/ready', 200, () => app.get('/health/ready')],
    ['GET /health of a broken database', 503, () => broken.get('/health')],
    ['a fault', 500, () => broken.post('/otp/send', { phone: freshPhone() })],
    ['GET /integrations/catalog', 200, () => app.get('/integrations/catalog')],
    ['GET /platform/brands', 200, () => app.get('/platform/brands')],
    ['GET /outbox/messages', 200, () => app.get('/outbox/messages')],
    ['GET /metrics without the token', 401, () => app.get('/metrics')],
    ['an unknown path', 404, () => app.get('/nowhere')],
    ['a wrong method', 405, () => app.request('PUT', '/health')],
  ]
  for (const [name, status, ask] of rows) {
    test(`${name} has nosniff and no-store`, async () => {
      const answer = await ask()
      expect(answer.status).toBe(status)
      expect(answer.headers.get('content-type')).toStartWith('application/json')
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(answer.headers.get('cache-control')).toBe('no-store')
    })
  }

  test('/openapi.json is public: nosniff, and cached until it changes', async () => {
    const { headers } = await app.get('/openapi.json')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-cache')
    expect(headers.get('etag')).not.toBeNull()
  })
})
