import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { makeLink } from '../../src/domain/accounts/sessions.ts'
import { unscoped } from '../../src/domain/limits/scope.ts'
import { issueApp, setApp } from '../../src/domain/operator/apps.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { addAccount, enterAs, nextStep } from '../support/accounts.ts'
import { createTestApp, credentials, type TestApp, temporaryFolder } from '../support/app.ts'
import { accessRequest } from '../support/calls.ts'
import { password, type Seen, signedIn, Visitor } from '../support/console.ts'
import { sqliteOnly } from '../support/database.ts'
import { operate, setText, tester } from '../support/operator.ts'
import { policyOf, testProvider } from '../support/policy.ts'
import { startReceiver } from '../support/receiver.ts'

// Access to the console and the effects of its forms, without a browser. Layout is tested in test/browser.

let app: TestApp
let visitor: Visitor
let owner: Awaited<ReturnType<typeof addAccount>>

async function open(env: Readonly<Record<string, string>> = {}) {
  app = await createTestApp(env)
  owner = await addAccount(app, 'ana@example.com', 'owner')
  visitor = new Visitor(app)
}

const right = { email: 'ana@example.com', password }
const wrong = { email: 'ana@example.com', password: 'wrong' }

afterEach(() => app.close())

const pages = [
  '/admin',
  '/admin?period=hour',
  '/admin?period=month',
  '/admin/requests',
  '/admin/brands',
  '/admin/brands/new',
  '/admin/brands/acme',
  '/admin/brands/acme/texts',
  '/admin/brands/acme/texts/new',
  '/admin/brands/acme/texts/LOGIN_OTP/sms/hi',
  '/admin/brands/acme/texts/LOGIN_OTP/email/ar',
  '/admin/apps',
  '/admin/deliveries',
  '/admin/deliveries.csv',
  '/admin/calls',
  '/admin/test',
  '/admin/queue',
  '/admin/destinations',
  '/admin/routes',
  '/admin/guard',
  '/admin/review-numbers',
  '/admin/money',
  '/admin/audit',
  '/admin/settings',
  '/admin/providers',
  '/admin/providers/plivo',
]

describe('without accounts', () => {
  beforeEach(async () => {
    app = await createTestApp()
    visitor = new Visitor(app)
  })

  test('every page returns 404', async () => {
    for (const path of [...pages, '/admin/login']) {
      const { status, html } = await visitor.get(path)
      expect([path, status]).toEqual([path, 404])
      expect(JSON.parse(html)).toMatchObject({ success: false, error: 'not_found' })
    }
  })

  test('a browser gets a page that explains how to open the console', async () => {
    for (const path of ['/admin', '/admin/login', '/admin/brands/acme']) {
      const person = new Visitor(app, { accept: 'text/html,application/xhtml+xml' })
      const { status, html } = await person.get(path)
      expect(status).toBe(404)
      expect(html).toContain('otpost admin link')
    }
  })

  test('forms return 404', async () => {
    for (const path of ['/admin/login', '/admin/logout', '/admin/apps/issue']) {
      expect((await visitor.post(path, { ...right, appId: 'shop' })).status).toBe(404)
    }
    expect(await app.app.context.apps.list()).toEqual([])
  })

  test('a link from `otpost admin link` signs in once', async () => {
    const token = await makeLink(app.app.context, tester)
    expect((await visitor.get('/admin/link')).status).toBe(200)
    expect((await visitor.post('/admin/link', { token: `${token}x` })).status).toBe(401)
    const entered = await visitor.post('/admin/link', { token })
    expect([entered.status, entered.headers.get('location')]).toEqual([303, '/admin/entered'])
    expect((await visitor.get('/admin/entered')).headers.get('location')).toBe('/admin')
    expect((await visitor.get('/admin')).status).toBe(200)

    const another = new Visitor(app)
    expect((await another.post('/admin/link', { token })).status).toBe(401)
    expect((await another.get('/admin')).status).toBe(404)
  })

  test('only one of several simultaneous uses of a link signs in', async () => {
    const token = await makeLink(app.app.context, tester)
    const visitors = Array.from({ length: 20 }, () => new Visitor(app))
    const answers = await Promise.all(visitors.map((each) => each.post('/admin/link', { token })))
    // The other 19 tokens are wrong by then; the first ten wrong ones get 401.
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([303, ...Array(10).fill(401), ...Array(9).fill(429)])
  })

  test('an expired session gets 401 with instructions', async () => {
    await visitor.post('/admin/link', { token: await makeLink(app.app.context, tester) })
    expect((await visitor.get('/admin')).status).toBe(200)
    app.advance(30 * 60)
    for (const { status, html } of [
      await visitor.get('/admin/brands'),
      await visitor.post('/admin/apps/issue'),
    ]) {
      expect([status, html.includes('otpost admin link')]).toEqual([401, true])
    }
  })

  test('a link expires after ten minutes', async () => {
    const token = await makeLink(app.app.context, tester)
    app.advance(600)
    expect((await visitor.post('/admin/link', { token })).status).toBe(401)
  })
})

describe('the responses for sign-in links', () => {
  const answerOf = async (asked: Promise<Seen>) => {
    const { status, headers, html } = await asked
    headers.delete('x-request-id')
    return { status, headers: [...headers], html }
  }

  test('do not reveal whether a link is active', async () => {
    await open()
    const link = () => answerOf(new Visitor(app).get('/admin/link'))
    const withNone = await link()
    expect(withNone.status).toBe(200)
    const [used, expired] = [
      await makeLink(app.app.context, tester),
      await makeLink(app.app.context, tester),
    ] as const
    expect(await link()).toEqual(withNone)
    expect((await visitor.post('/admin/link', { token: used })).status).toBe(303)
    app.advance(600)
    const active = await makeLink(app.app.context, tester)
    expect(await link()).toEqual(withNone)
    const tokens = {
      used,
      expired,
      unknown: 'A'.repeat(43),
      malformed: '%00 ',
      empty: '',
      long: 'x'.repeat(60_000),
    }
    const answers = await Promise.all(
      Object.values(tokens).map((token) => answerOf(new Visitor(app).post('/admin/link', { token }))),
    )
    for (const answer of answers) expect(answer).toEqual({ ...answers[0], status: 401 } as typeof answer)
    // GET does not use up the link.
    await visitor.get(`/admin/link?token=${active}`)
    expect((await visitor.post('/admin/link', { token: active })).status).toBe(303)
  })

  test('rate-limit wrong tokens by IP address, but accept an active one', async () => {
    await open()
    const active = await makeLink(app.app.context, tester)
    const tries = Array.from({ length: 11 }, () => visitor.post('/admin/link', { token: 'wrong' }))
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(10).fill(401), 429])
    expect((await visitor.post('/admin/link', { token: 'wrong' })).headers.get('retry-after')).toBe('600')
    expect((await visitor.post('/admin/link', { token: active })).status).toBe(303)
  })
})

describe('signing in', () => {
  beforeEach(() => open())

  test('redirects a visitor without a session to the sign-in form', async () => {
    for (const path of pages) {
      const { status, headers } = await visitor.get(path)
      expect([status, headers.get('location')]).toEqual([303, '/admin/login'])
    }
    expect((await visitor.get('/admin/login')).html).toContain('type="password"')
  })

  test('with a wrong password starts no session', async () => {
    for (const password of ['', 'wrong', `${right.password} `.slice(1)]) {
      const { status, headers } = await visitor.post('/admin/login', { ...right, password })
      expect([status, headers.getSetCookie()]).toEqual([401, []])
    }
    expect((await visitor.get('/admin')).status).toBe(303)
  })

  test('sets a cookie that is HttpOnly and SameSite=Strict', async () => {
    // Only PUBLIC_URL decides whether browsers use TLS: any client can send X-Forwarded-Proto.
    const forged = { 'sec-fetch-site': 'same-origin', 'x-forwarded-proto': 'https' }
    const next = await nextStep(visitor, owner.email)
    const { headers } = await visitor.post('/admin/login/code', { next, code: owner.code() }, forged)
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(/^otpost_console=[\w-]{43}; Path=\/admin; HttpOnly; SameSite=Strict$/),
      expect.stringMatching(
        /^otpost_device=[\w-]{36}\.[\w-]{43}; Path=\/admin; HttpOnly; SameSite=Strict; Max-Age=15552000$/,
      ),
    ])
  })

  test('sets a Secure cookie when PUBLIC_URL is https, even if the proxy connects by http', async () => {
    await app.close()
    await open({ PUBLIC_URL: 'https://otp.example.com' })
    const next = await nextStep(visitor, owner.email)
    const login = (origin: string) =>
      visitor.post('/admin/login/code', { next, code: owner.code() }, { origin })
    const { headers } = await login('https://otp.example.com')
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-otpost=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/),
      expect.stringMatching(
        /^__Host-otpost_device=[^;]+; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
      ),
    ])
    expect((await login('https://otp.example.com.evil.example')).status).toBe(403)
    expect((await visitor.get('/admin')).status).toBe(200)
  })

  test('returns 401 with an explanation if the browser did not keep the cookie', async () => {
    const { status, html } = await visitor.get('/admin/entered')
    expect([status, html.includes('did not store the session cookie')]).toEqual([401, true])
  })

  test('works when the browser has a cookie of another console', async () => {
    await signedIn(app, visitor)
    visitor.cookies.set('__Host-otpost', 'of-another-console-by-the-same-name-and-gone')
    expect((await visitor.get('/admin')).status).toBe(200)
    expect((await visitor.post('/admin/brands/acme/status', { status: 'suspended' })).status).toBe(303)
    expect((await app.app.context.brands.bySlug('acme'))?.status).toBe('suspended')
  })

  test('answers HEAD as it answers GET', async () => {
    const { status, headers } = await app.request('HEAD', '/admin')
    expect([status, headers.get('location')]).toEqual([303, '/admin/login'])
  })

  test('stores the session token neither in the database nor in the log', async () => {
    await signedIn(app, visitor)
    const [token = ''] = visitor.cookies.values()
    expect(token).toHaveLength(43)
    const sessions = await app.app.context.sessions.list(app.clock.now)
    expect(JSON.stringify([sessions, app.lines])).not.toContain(token)
  })

  test('stores the cookie of a known browser neither in the database nor in the log', async () => {
    await enterAs(app, owner, visitor)
    visitor.cookies.delete('otpost_console')
    expect((await visitor.post('/admin/login', wrong)).status).toBe(401)
    const [cookie = ''] = visitor.cookies.values()
    expect(cookie.length).toBeGreaterThan(43)
    const contents = await app.database.contents()
    expect(contents.includes('console-device')).toBe(true)
    for (const part of [cookie, ...cookie.split('.')]) {
      expect(contents.includes(part)).toBe(false)
      expect(JSON.stringify(app.lines)).not.toContain(part)
    }
  })

  test('is rate-limited by IP address, even with the correct password, until the window ends', async () => {
    for (let index = 0; index < 10; index++) {
      expect((await visitor.post('/admin/login', wrong)).status).toBe(401)
    }
    const refused = await visitor.post('/admin/login', right)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '600'])
    expect(refused.headers.getSetCookie()).toEqual([])
    app.advance(600)
    expect((await visitor.post('/admin/login', right)).status).toBe(200)
  })

  test('checks no more simultaneous attempts than the limit allows', async () => {
    const tries = Array.from({ length: 30 }, () => visitor.post('/admin/login', wrong))
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(10)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
  })

  test('ends the previous session of the browser', async () => {
    await signedIn(app, visitor)
    const former = new Map(visitor.cookies)
    await signedIn(app, visitor)
    expect(visitor.cookies.get('otpost_console')).not.toBe(former.get('otpost_console'))
    const kept = new Visitor(app)
    for (const [name, value] of former) kept.cookies.set(name, value)
    expect((await kept.get('/admin')).status).toBe(303)
    const token = await makeLink(app.app.context, tester)
    await visitor.post('/admin/link', { token })
    expect((await visitor.get('/admin')).status).toBe(200)
    expect(await app.app.context.sessions.list(app.clock.now)).toHaveLength(1)
  })

  test('rejects a very long wrong password', async () => {
    expect((await visitor.post('/admin/login', { ...right, password: 'x'.repeat(60_000) })).status).toBe(401)
  })

  test('is logged and audited with the IP address, without passwords and tokens', async () => {
    const token = await makeLink(app.app.context, tester)
    for (let index = 0; index < 11; index++)
      await visitor.post('/admin/login', { ...right, password: 'a wrong one' })
    await visitor.post('/admin/link', { token: 'a wrong one' })
    await visitor.post('/admin/link', { token })
    await visitor.get('/admin')
    await visitor.post('/admin/logout')
    app.advance(600)
    await enterAs(app, owner, visitor)
    const lines = app.lines.flatMap((line) => ('event' in line ? [line] : []))
    const each = { requestId: expect.any(String), clientIp: 'unknown' }
    expect(lines).toEqual([
      ...Array(10).fill({ ...each, event: 'console.sign-in-failed', by: 'password' }),
      { ...each, event: 'console.sign-in-limited', by: 'password' },
      { ...each, event: 'console.sign-in-failed', by: 'link' },
      { ...each, event: 'console.signed-in', by: 'link' },
      { ...each, event: 'console.signed-out', by: 'link' },
      { ...each, event: 'console.signed-in', by: 'password' },
    ])
    expect(JSON.stringify(app.lines)).not.toContain('a wrong one')
    expect(JSON.stringify(app.lines)).not.toContain(token)
    const audit = await app.app.context.audit.list({ limit: 3 })
    expect(audit.map(({ action, details }) => [action, details])).toEqual([
      ['console.login', { by: 'password', from: 'unknown' }],
      ['console.logout', { from: 'unknown' }],
      ['console.login', { by: 'link', from: 'unknown' }],
    ])
  })

  test('rejects a form from another site', async () => {
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
    ]) {
      const { status } = await visitor.post('/admin/login', right, headers as Record<string, string>)
      expect(status).toBe(403)
    }
  })
})

describe('under a flood of wrong passwords', () => {
  let url: URL

  beforeEach(async () => {
    await open({ PORT: '0', TRUSTED_PROXIES: '127.0.0.1' })
    url = new URL('/admin/login', app.app.listen())
  })

  /** A sign-in attempt from an IP address, with the cookies of a browser. */
  const attempt = async (ip: string, tried: string, cookies: Visitor['cookies'] = new Map()) => {
    const { status, headers } = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'x-forwarded-for': ip,
        'sec-fetch-site': 'same-origin',
        cookie: Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; '),
      },
      body: new URLSearchParams({ ...right, password: tried }),
    })
    return { status, retryAfter: Number(headers.get('retry-after')) }
  }
  /** Sends wrong passwords, ten from each IP address, and returns the statuses. */
  const flood = async (tries: number) => {
    const statuses = []
    for (let index = 0; index < tries; index++) {
      statuses.push((await attempt(`192.0.2.${Math.floor(index / 10)}`, 'wrong')).status)
    }
    return statuses
  }

  test('110 attempts from 11 IP addresses do not lock out other IP addresses', async () => {
    expect(await flood(110)).toEqual(Array(110).fill(401))
    expect((await attempt('192.0.2.1', password)).status).toBe(429)
    expect((await attempt('198.51.100.1', password)).status).toBe(200)
  })

  test('after 200 attempts in an hour, one attempt every 20 seconds is checked', async () => {
    expect(await flood(200)).toEqual(Array(200).fill(401))
    for (let round = 0; round < 3; round++) {
      expect((await attempt('203.0.113.1', 'wrong')).status).toBe(401)
      const { status, retryAfter } = await attempt('198.51.100.1', password)
      expect([status, retryAfter]).toEqual([429, 20])
      app.advance(20)
    }
    expect((await attempt('198.51.100.1', password)).status).toBe(200)
    app.advance(3600)
    expect(await flood(200)).toEqual(Array(200).fill(401))
  })

  test('a successful sign-in of an unknown browser does not reset the global count', async () => {
    await flood(199)
    expect((await attempt('198.51.100.1', password)).status).toBe(200)
    const statuses = []
    for (const ip of ['203.0.113.1', '203.0.113.2', '203.0.113.3']) {
      statuses.push((await attempt(ip, 'wrong')).status)
    }
    expect(statuses).toEqual([401, 429, 429])
  })

  test('an attempt rejected because the queue is full does not count', async () => {
    await enterAs(app, owner, visitor)
    visitor.cookies.delete('otpost_console')
    const slowHash = await Bun.password.hash('x', { algorithm: 'argon2id', memoryCost: 8192, timeCost: 12 })
    for (const [cookies, browser] of [
      [new Map<string, string>(), 'unknown'],
      [visitor.cookies, 'known'],
    ] as const) {
      const { isPassword } = app.app.context.consoleSecrets
      const queue = Array.from({ length: 16 }, () => isPassword('x', slowHash, browser))
      // Both at once, while the queue is full.
      const early = Array.from({ length: 2 }, () => attempt('203.0.113.1', 'wrong', cookies))
      expect(await Promise.all(early)).toEqual(Array(2).fill({ status: 429, retryAfter: 10 }))
      await Promise.all(queue)
      const statuses = []
      for (let count = 0; count < 11; count++) {
        statuses.push((await attempt('203.0.113.1', 'wrong', cookies)).status)
      }
      expect(statuses).toEqual([...Array(10).fill(401), 429])
    }
  }, 30_000)

  test('other clients cannot fill the queue of a browser that signed in before', async () => {
    await enterAs(app, owner, visitor)
    visitor.cookies.delete('otpost_console')
    const slowHash = await Bun.password.hash('x', { algorithm: 'argon2id', memoryCost: 16_384, timeCost: 4 })
    const { isPassword } = app.app.context.consoleSecrets
    const queue = Array.from({ length: 16 }, () => isPassword('x', slowHash, 'unknown'))
    const both = await Promise.all([
      attempt('198.51.100.1', password),
      attempt('203.0.113.1', password, visitor.cookies),
    ])
    expect(both.map(({ status }) => status)).toEqual([429, 200])
    await Promise.all(queue)
  }, 30_000)

  test('simultaneous attempts are checked in a short queue', async () => {
    const tries = Array.from({ length: 200 }, (_, index) => attempt(`192.0.2.${index}`, 'wrong'))
    const statuses = new Set((await Promise.all(tries)).map(({ status }) => status))
    expect(statuses.difference(new Set([401, 429])).size).toBe(0)
    app.advance(20)
    expect((await attempt('198.51.100.1', password)).status).toBe(200)
  })

  test('a browser that signed in before can sign in immediately, also from a rate-limited IP address', async () => {
    await enterAs(app, owner, visitor)
    await visitor.post('/admin/logout')
    await flood(201)
    for (const ip of ['198.51.100.1', '192.0.2.1']) {
      expect((await attempt(ip, password, visitor.cookies)).status).toBe(200)
    }
  })

  test('a link signs in immediately', async () => {
    await flood(201)
    await signedIn(app, visitor)
  })

  test('the cookie of a known browser has its own rate limit, and cannot be forged', async () => {
    await enterAs(app, owner, visitor)
    visitor.cookies.delete('otpost_console')
    const statuses = []
    for (let index = 0; index < 12; index++) {
      statuses.push((await attempt(`203.0.113.${index}`, 'wrong', visitor.cookies)).status)
    }
    expect(statuses).toEqual([...Array(10).fill(401), 429, 429])
    expect((await attempt('198.51.100.1', password)).status).toBe(200)

    const [cookie = ''] = visitor.cookies.values()
    const [id = '', mac = ''] = cookie.split('.')
    await flood(202)
    for (const forged of [
      id,
      `${id}.`,
      `${id}.${'A'.repeat(43)}`,
      `x${id}.${mac}`,
      `.${mac}`,
      `${cookie}x`,
    ]) {
      const cookies = new Map([['otpost_device', forged]])
      expect((await attempt('198.51.100.1', password, cookies)).status).toBe(429)
    }
  })
})

describe('a console session', () => {
  beforeEach(async () => {
    await open()
    await signedIn(app, visitor)
  })

  test('gets a 404 page for an unknown path', async () => {
    for (const path of [
      '/admin/nothing',
      '/admin/brands/unknown',
      '/admin/requests/1',
      '/admin/deliveries/1',
    ]) {
      const { status, headers } = await visitor.get(path)
      expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
    }
  })

  test('expires after 30 minutes without use', async () => {
    for (let index = 0; index < 3; index++) {
      app.advance(29 * 60)
      expect((await visitor.get('/admin/apps')).status).toBe(200)
    }
    app.advance(30 * 60)
    expect((await visitor.get('/admin/apps')).status).toBe(303)
  })

  test('expires after eight hours, even when in use', async () => {
    for (let minutes = 20; minutes < 480; minutes += 20) {
      app.advance(20 * 60)
      expect((await visitor.get('/admin/apps')).status).toBe(200)
    }
    app.advance(20 * 60)
    expect((await visitor.get('/admin/apps')).status).toBe(303)
  })

  test('ends when the operator signs out', async () => {
    const kept = new Map(visitor.cookies)
    expect((await visitor.post('/admin/logout')).status).toBe(303)
    expect([...visitor.cookies.keys()]).toEqual([])
    for (const [name, value] of kept) visitor.cookies.set(name, value)
    expect((await visitor.get('/admin')).status).toBe(303)
  })

  test('can be ended from another session', async () => {
    const idsOf = async () =>
      (await app.app.context.sessions.list(app.clock.now)).map(({ tokenSha256 }) => tokenSha256.slice(0, 8))
    const own = await idsOf()
    const other = await signedIn(app)
    const [id] = (await idsOf()).filter((each) => !own.includes(each))
    await visitor.get('/admin/settings')
    expect((await visitor.post(`/admin/sessions/${id}/revoke`)).status).toBe(303)
    expect(app.lines).toContainEqual({
      event: 'console.session-revoked',
      session: id,
      clientIp: 'unknown',
      requestId: expect.any(String),
    })
    expect((await other.get('/admin')).status).toBe(303)
    expect((await visitor.get('/admin')).status).toBe(200)
  })

  test('that ends itself is signed out, in the log and in the audit log', async () => {
    const [own] = await app.app.context.sessions.list(app.clock.now)
    await visitor.get('/admin/settings')
    expect((await visitor.post(`/admin/sessions/${own?.tokenSha256.slice(0, 8)}/revoke`)).status).toBe(303)
    const { clientIp, requestId } = { clientIp: 'unknown', requestId: expect.any(String) }
    expect(app.lines.at(-1)).toEqual({ event: 'console.signed-out', by: 'link', clientIp, requestId })
    const [last] = await app.app.context.audit.list({ limit: 1 })
    expect(last?.action).toBe('console.logout')
    expect((await visitor.get('/admin')).status).toBe(303)
  })

  test('rejects a form without its CSRF token', async () => {
    const other = await signedIn(app)
    const theirs = /name="csrf" value="([^"]*)"/.exec((await other.get('/admin/apps')).html)?.[1] ?? ''
    expect(theirs).toHaveLength(43)
    await visitor.get('/admin/apps')
    const refused = [
      await visitor.post('/admin/apps/issue', { appId: 'till', csrf: '' }),
      await visitor.post('/admin/apps/issue', { appId: 'till', csrf: theirs }),
      await visitor.post('/admin/apps/issue', { appId: 'till' }, { 'sec-fetch-site': 'cross-site' }),
      await visitor.post('/admin/apps/issue', { appId: 'till' }, { origin: 'https://evil.example' }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403])
    expect(await app.app.context.apps.list()).toEqual([])
    expect((await visitor.post('/admin/apps/issue', { appId: 'till' })).status).toBe(200)
  })

  test('is required to post a form', async () => {
    const stranger = new Visitor(app)
    expect((await stranger.post('/admin/apps/issue', { appId: 'till' })).status).toBe(401)
    expect(await app.app.context.apps.list()).toEqual([])
  })

  test('ignores a flash cookie set by another site', async () => {
    const forged = encodeURIComponent(JSON.stringify(['good', 'Call +1 202 555 0143']))
    for (const name of ['otpost_said', 'otpost_flash']) {
      for (const value of [forged, `${forged}.`, `${forged}.${'A'.repeat(43)}`]) {
        visitor.cookies.set(name, value)
        expect((await visitor.get('/admin/apps')).html).not.toContain('Call +1')
      }
    }
    // The same applies to a flash cookie of another session, or a changed one.
    const other = await signedIn(app)
    await other.post('/admin/brands/acme/status', { status: 'suspended' })
    const theirs = other.cookies.get('otpost_flash') ?? ''
    expect((await other.get('/admin/apps')).html).toContain('Brand acme is suspended.')
    expect(other.cookies.has('otpost_flash')).toBe(false)
    visitor.cookies.set('otpost_flash', theirs)
    expect((await visitor.get('/admin/apps')).html).not.toContain('Brand acme is suspended.')
    other.cookies.set('otpost_flash', theirs.replace(/^../, 'AA'))
    expect((await other.get('/admin/apps')).html).not.toContain('suspended')
  })

  test('shows the configured URL of this server, for any Host header', async () => {
    const cookie = Array.from(visitor.cookies, ([name, value]) => `${name}=${value}`).join('; ')
    const seenAt = async (
      origin: string,
      { method, path, body }: { method: string; path: string; body?: string },
    ) => {
      const headers = {
        cookie,
        host: new URL(origin).host,
        'content-type': 'application/x-www-form-urlencoded',
      }
      const request = new Request(`${origin}${path}`, { method, headers, ...(body ? { body } : {}) })
      return (await app.app.handle(request)).text()
    }
    const csrf = /name="csrf" value="([^"]*)"/.exec((await visitor.get('/admin/apps')).html)?.[1] ?? ''
    const body = new URLSearchParams({ csrf, appId: 'till' }).toString()
    const key = await seenAt('http://other.localhost', { method: 'POST', path: '/admin/apps/issue', body })
    expect(key).toContain('http://127.0.0.1:3000/otp/send')
    const requests = await seenAt('http://other.localhost', { method: 'GET', path: '/admin/requests' })
    expect(requests).toContain('http://127.0.0.1:3000/')
    const outbox = await seenAt('http://other.localhost', { method: 'GET', path: '/outbox' })
    expect(outbox).toContain('http://127.0.0.1:3000/otp/send')
    expect(key + requests + outbox).not.toContain('other.localhost')
  })

  test('rejects bodies that are not forms', async () => {
    const { status } = await app.request('POST', '/admin/apps/issue', {
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect(status).toBe(400)
  })
})

describe('an operator', () => {
  beforeEach(async () => {
    await open()
    await signedIn(app, visitor)
  })

  async function openWith(provider: ReturnType<typeof testProvider>) {
    await app.close()
    app = await createTestApp({}, { phoneRoutes: { plain: [provider] } })
    visitor = await signedIn(app)
  }

  const keyIn = (html: string) => /otp_live_[0-9A-Za-z]{49}/.exec(html)?.[0] ?? ''
  const asked = { ...accessRequest, companyName: 'Globex <b>Ltd</b>' }

  test('approves a request: the brand and the app work at the next call, and the key is shown once', async () => {
    const { body } = await app.postRaw('/integrations/requests', asked)
    const id = body.integrationRequestId
    expect((await visitor.get('/admin/requests')).html).toContain('Globex &lt;b>Ltd')
    await visitor.get(`/admin/requests/${id}`)
    const approved = await visitor.post(`/admin/requests/${id}/approve`, {
      appId: 'till',
      brandSlug: 'globex',
    })
    expect(approved.status).toBe(200)
    const apiKey = keyIn(approved.html)
    const sent = await app.post('/otp/send', {
      appId: 'till',
      apiKey,
      brandId: 'globex',
      phone: '12025550143',
    })
    expect(sent.status).toBe(200)
    for (const path of ['/admin/apps', '/admin/requests', `/admin/requests/${id}`, '/admin/audit']) {
      expect((await visitor.get(path)).html).not.toContain(apiKey)
    }
    // A second approval is rejected, because the request is already decided.
    expect(
      (await visitor.post(`/admin/requests/${id}/approve`, { appId: 'till2', brandSlug: 'globex' })).status,
    ).toBe(409)
    expect((await app.app.context.apps.list()).map(({ appId }) => appId)).toEqual(['till'])
    expect((await app.app.context.policy.rows()).scopes).toEqual([
      { ...unscoped('till'), brands: ['globex'] },
    ])
  })

  test('who approves at the same time as another gets a conflict: one approval succeeds, and one key works', async () => {
    const { body } = await app.postRaw('/integrations/requests', asked)
    const how = { id: body.integrationRequestId, appId: 'till', brandSlug: 'globex' }
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, () => operate(app, 'request approve', how)),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await app.app.context.apps.list())[0]?.keys).toHaveLength(1)
  })

  test('rejects a request with a reason', async () => {
    const { body } = await app.postRaw('/integrations/requests', asked)
    const id = body.integrationRequestId
    await visitor.get(`/admin/requests/${id}`)
    expect((await visitor.post(`/admin/requests/${id}/reject`, { reason: 'no contract yet' })).status).toBe(
      303,
    )
    expect(await app.app.context.requests.get(id)).toMatchObject({
      status: 'rejected',
      reason: 'no contract yet',
      decidedBy: expect.stringMatching(/^console [\w-]{8}$/),
    })
    expect(await app.app.context.brands.bySlug('globex')).toBeUndefined()
    expect((await visitor.get('/admin/audit')).html).toContain('<dt>Reason</dt><dd>no contract yet</dd>')
    expect(JSON.stringify(await app.app.context.audit.list({ limit: 5 }))).not.toContain('no contract')
  })

  test('suspends a brand: its next request is rejected', async () => {
    const send = () => app.post('/otp/send', { phone: '12025550143' })
    expect((await send()).status).toBe(200)
    await visitor.get('/admin/brands/acme')
    expect((await visitor.post('/admin/brands/acme/status', { status: 'suspended' })).status).toBe(303)
    expect((await send()).body).toMatchObject({ error: 'brand_suspended' })
    expect((await visitor.post('/admin/brands/acme/status', { status: 'pending' })).status).toBe(409)
    expect((await visitor.post('/admin/brands/acme/status', { status: 'active' })).status).toBe(303)
    app.advance(31)
    expect((await send()).status).toBe(200)
  })

  test('sets, checks and removes destination rules: the next request is sent or rejected', async () => {
    const send = () => app.post('/otp/send', { phone: '+44 7400 123456' })
    await visitor.get('/admin/destinations')
    const check = async () => {
      const { status, html } = await visitor.post('/admin/destinations/check', { number: '+44 7400 123456' })
      expect(status).toBe(200)
      return /SMS are \w+/.exec(html)?.[0]
    }
    const set = (fields: Record<string, string>) => visitor.post('/admin/destinations', fields)
    expect(await check()).toBe('SMS are sent')
    const guarded = async (prefix: string, action: string) => {
      expect((await visitor.post('/admin/guard', { prefix, action })).status).toBe(303)
      const { html } = await visitor.post('/admin/destinations/check', { number: '+44 7400 123456' })
      return /The guard (?:denies|does not check) codes[^.]*: [^:.]*\+\d+/.exec(html)?.[0]
    }
    const denied = 'The guard denies codes'
    expect(await guarded('+44', 'block')).toBe(`${denied}: an operator blocks +44`)
    expect(await guarded('+4474', 'allow')).toBe('The guard does not check codes: an operator allows +4474')
    expect(await guarded('+4475', 'block')).toBe('The guard does not check codes: an operator allows +4474')
    expect((await visitor.post('/admin/guard/remove', { prefix: '+44' })).status).toBe(303)
    expect((await set({ rule: 'GB', action: 'block', isGroup: '1' })).status).toBe(303)
    expect(await check()).toBe('SMS are rejected')
    const rejected = await send()
    expect(rejected.body).toMatchObject({ error: 'validation_error' })
    await app.eventsOf(rejected)
    const { html: traced } = await visitor.get(`/admin/deliveries/${rejected.body.requestId}`)
    expect(traced).toMatch(/<code>GB block<\/code> of all brands, set by \S+ on /)
    const [, link = ''] = /href="\/admin\/destinations#(rule-[\w-]+)"/.exec(traced) ?? []
    const { html: listed } = await visitor.get('/admin/destinations')
    expect(listed).toContain(`id="${link}"><code>GB</code>`)
    const [entry] = await app.app.context.audit.list({ actions: ['destination.set'], limit: 1 })
    expect(listed).toContain(`href="/admin/audit?before=${Number(entry?.id) + 1}"`)
    expect((await set({ rule: '+4474', action: 'monitor', brand: 'acme', sender: 'Acme' })).status).toBe(303)
    const sent = await send()
    expect(sent.status).toBe(200)
    const { trace, deliveries } = await app.eventsOf(sent)
    expect([trace?.flags, trace?.country, deliveries[0]?.country]).toEqual([['destination'], 'GB', 'GB'])
    const { html } = await visitor.get('/admin/destinations')
    for (const shown of ['+4474', 'sender Acme', 'Guernsey']) expect(html).toContain(shown)
    const refused = await set({ rule: 'GB', action: 'allow', providers: 'twilio' })
    expect([refused.status, refused.html]).toEqual([409, expect.stringContaining('Add it to SMS_PLAIN')])
    expect((await visitor.post('/admin/destinations/check', { number: 'x' })).status).toBe(400)
    const edited = await set({ rule: '+4474', action: 'monitor', foretell: '1' })
    expect(edited.html).toMatch(/name="rule"[^>]*value="\+4474"/)
  })

  test('sets, lifts and removes a budget: messages are rejected and sent', async () => {
    const send = (digit: number) => app.post('/otp/send', { phone: `+3712000000${digit}` })
    const { html: empty } = await visitor.get('/admin/money')
    expect(empty).toContain('The cost of SMS is not limited')
    const asked = { scope: 'brand:acme', period: 'day', amount: '3', alertAt: '50', stops: '1' }
    expect((await visitor.post('/admin/money', asked)).status).toBe(303)
    expect((await visitor.get('/admin/money')).html).toContain('counts from ')
    expect([(await send(1)).status, (await send(2)).status]).toEqual([200, 429])
    await new Promise((resolve) => setImmediate(resolve))
    app.advance(31)
    app.app.alerts.tick()
    await app.app.alerts.idle()
    const { html } = await visitor.get('/admin/money')
    for (const shown of [
      '2\u00a0units',
      '100%',
      '1\u00a0unit',
      'Latvia (LV)',
      '50% of 3 units per day spent',
    ])
      expect(html).toContain(shown)
    const { html: last } = await visitor.get('/admin/money?period=last-month')
    for (const shown of ['2025-12-01 to 2025-12-31', 'No SMS.']) expect(last).toContain(shown)
    expect(last).not.toContain('Latvia (LV)')
    const { html: overview } = await visitor.get('/admin')
    expect(overview).toContain('Budget brand:acme is exhausted: 2 units of 3 units per day spent.')
    expect(overview).toContain(
      'SMS that cost more than what is left are rejected with 429 rate_limited until <time',
    )
    const { html: form } = await visitor.get('/admin/money?scope=brand:acme')
    expect(form).toMatch(/name="amount"[^>]*value="3"/)
    const lift = (duration: string) => visitor.post('/admin/money/lift', { scope: 'brand:acme', duration })
    expect((await lift('12h')).status).toBe(303)
    expect((await send(2)).status).toBe(200)
    const { html: exhausted } = await visitor.get('/admin/money')
    expect(exhausted).toContain('End the lift')
    expect([(await lift('0m')).status, (await send(3)).status]).toEqual([303, 429])
    expect((await visitor.get('/admin')).html).toContain('Budget brand:acme is exhausted: 4 units')
    const remove = () => visitor.post('/admin/money/remove', { scope: 'brand:acme' })
    expect([(await remove()).status, (await remove()).status, (await send(3)).status]).toEqual([
      303, 409, 200,
    ])
  })

  test('shows what each country spent of its budget, and changes the budget of codes alone', async () => {
    const which = { scope: 'country:*', of: 'codes' }
    await visitor.post('/admin/money', { ...which, period: 'day', amount: '20', alertAt: '', stops: '1' })
    await app.post('/otp/send', { phone: '+37120000001' })
    await app.post('/otp/send', { phone: '+447400123456' })
    const { html } = await visitor.get('/admin/money')
    for (const shown of ['only codes', 'Latvia (LV) 2\u00a0units', 'United Kingdom (GB) 1\u00a0unit'])
      expect(html).toContain(shown)
    const { html: form } = await visitor.get(`/admin/money?${new URLSearchParams(which)}`)
    expect(form).toMatch(/name="amount"[^>]*value="20"/)
    const remove = (of: string) => visitor.post('/admin/money/remove', { scope: 'country:*', of })
    expect([(await remove('all')).status, (await remove('codes')).status]).toEqual([409, 303])
  })

  test('opens a brand by any spelling of its slug', async () => {
    for (const [path, status] of [
      ['acme%E2%80%A8', 'suspended'],
      ['%20ACME', 'active'],
    ] as const) {
      await visitor.get('/admin/brands/acme')
      const { status: code, headers } = await visitor.post(`/admin/brands/${path}/status`, { status })
      expect([code, headers.get('location')]).toEqual([303, '/admin/brands/acme'])
    }
  })

  test('pages through requests', async () => {
    for (let index = 0; index < 51; index++) {
      app.advance(index % 5 === 0 ? 3600 : 1)
      await app.postRaw('/integrations/requests', { ...asked, companyName: `Company ${index}.` })
    }
    await signedIn(app, visitor)
    const first = (await visitor.get('/admin/requests')).html
    expect([first.includes('Company 50.'), first.includes('Company 0.')]).toEqual([true, false])
    const next = /href="(\/admin\/requests\?page=2)"/.exec(first)?.[1] ?? ''
    const second = (await visitor.get(next)).html
    expect([second.includes('Company 0.'), second.includes('Company 50.')]).toEqual([true, false])
    expect(second).not.toContain('page=3')
  })

  test('creates and edits brands with the same rules as the commands', async () => {
    const brand = { slug: 'Initech', displayName: 'Initech', notifyTemplates: 'ORDER_PLACED' }
    expect((await visitor.post('/admin/brands', { ...brand, mustBeNew: '1' })).status).toBe(303)
    expect(await app.app.context.brands.bySlug('initech')).toMatchObject({
      displayName: 'Initech',
      status: 'active',
      notifyTemplates: ['ORDER_PLACED'],
      dltEnabled: false,
    })
    const again = await visitor.post('/admin/brands', { ...brand, mustBeNew: '1' })
    expect([again.status, again.html.includes('already')]).toEqual([409, true])
    const bad = await visitor.post('/admin/brands', {
      ...brand,
      mustBeNew: '1',
      slug: 'no good',
      domain: 'https://x',
    })
    expect(bad.status).toBe(409)
    // The form keeps its input.
    expect(bad.html).toContain('value="no good"')
    expect(await app.app.context.brands.list()).toHaveLength(2)
  })

  test('saves only the changed fields, and keeps concurrent changes of other operators', async () => {
    const { html } = await visitor.get('/admin/brands/acme')
    const was = /name="was" value="([^"]*)"/.exec(html)?.[1]?.replaceAll('&quot;', '"') ?? ''
    expect(JSON.parse(was)).toMatchObject({ displayName: 'Acme', domain: '' })
    await putBrand(app.app.context.acting(tester), 'acme', {
      displayName: 'Acme & Co',
      domain: 'shop.example',
    })
    const form = { slug: 'acme', was, displayName: 'Acme', lang: 'en' }
    const saved = await visitor.post('/admin/brands', { ...form, dltEnabled: 'on' })
    expect(saved.status).toBe(303)
    expect(await app.app.context.brands.bySlug('acme')).toMatchObject({
      displayName: 'Acme & Co',
      domain: 'shop.example',
      dltEnabled: true,
    })
    // A form shown again with errors still has its initial values.
    const bad = await visitor.post('/admin/brands', { ...form, domain: 'no host' })
    expect(bad.html).toContain(`name="was" value="${was.replaceAll('"', '&quot;')}"`)
  })

  test('registers a template with carriers and providers, and removes the registration', async () => {
    await visitor.get('/admin/brands/acme')
    const path = '/admin/brands/acme/templates/LOGIN_OTP'
    const entered = { replaces: '1', senderId: 'ACMEIN', ids: '1107\r\nmsg91=65a\r\ntwilio = HX1\n' }
    expect((await visitor.post(path, entered)).status).toBe(303)
    const registered = async () => (await app.app.context.brands.bySlug('acme'))?.registrations
    expect(await registered()).toEqual({
      LOGIN_OTP: { id: '1107', senderId: 'ACMEIN', ids: { msg91: '65a', twilio: 'HX1' }, maxLength: null },
    })
    expect((await visitor.post(path, { ids: 'nobody=1' })).status).toBe(409)
    // An emptied field is removed, because the form shows all fields.
    expect((await visitor.post(path, { replaces: '1', senderId: '', ids: '1108\nmsg91=65a' })).status).toBe(
      303,
    )
    expect(await registered()).toEqual({
      LOGIN_OTP: { id: '1108', senderId: null, ids: { msg91: '65a' }, maxLength: null },
    })
    expect((await visitor.post(path, { remove: '1' })).status).toBe(303)
    expect(await registered()).toEqual({})
  })

  test('writes a text, sees what another operator changed in the meantime, and goes back to the built-in text', async () => {
    const target = { templateKey: 'LOGIN_OTP', channel: 'SMS', lang: 'hi' } as const
    const stored = async () => (await app.app.context.brands.bySlug('acme'))?.texts.get(target)
    const path = '/admin/brands/acme/texts'
    const editor = `${path}/LOGIN_OTP/sms/hi`
    expect((await visitor.get(`${path}?lang=&lang=HI`)).html).toContain(`href="${editor}"`)
    expect((await visitor.get(`${path}?lang=-`)).html).toContain('must be a BCP 47 tag')
    expect((await visitor.get(editor)).html).toContain('{{minutes}} मिनट')

    const typed = 'कोड {{otp}},\r\n{{minutes}} <मिनट> {{businessName}} '
    const preview = await visitor.post(`${path}/preview`, {
      key: 'LOGIN_OTP',
      lang: 'hi',
      text: typed,
      'var.otp': '111222',
    })
    expect(preview.html).toContain('कोड <mark>111222</mark>,\n5 &lt;मिनट> Acme ')
    expect(preview.html).toContain('UCS-2')
    const unknown = await visitor.post(`${path}/preview`, {
      key: 'LOGIN_OTP',
      lang: 'hi',
      text: '{{otp}} {{name}}',
    })
    expect(unknown.html).toContain('must not have the placeholder {{name}}')

    const save = (text: string, version: number) =>
      visitor.post(path, { key: 'LOGIN_OTP', lang: 'hi', version: String(version), text })
    expect((await save('no code', 0)).status).toBe(409)
    expect((await save(typed, 0)).headers.get('location')).toBe(editor)
    expect(await stored()).toMatchObject({ text: typed.replace('\r', ''), version: 1 })
    const late = await save('{{otp}} typed late', 0)
    expect(late.status).toBe(409)
    expect(late.html).toContain('version 1 replaced the built-in text')
    expect(late.html).toContain('>{{otp}} typed late</textarea>')
    expect(late.html).toContain('name="version" value="1"')
    expect((await save('{{otp}} second', 1)).status).toBe(303)
    const { html } = await visitor.get(editor)
    for (const shown of ['{{otp}} second', 'version 2', 'second</ins>']) expect(html).toContain(shown)
    expect((await visitor.get(path)).html).toContain('version 2')

    const removed = await visitor.post(`${path}/remove`, { key: 'LOGIN_OTP', lang: 'hi' })
    expect(removed.headers.get('location')).toBe(path)
    expect(await stored()).toBeUndefined()
    const [entry] = await app.app.context.audit.list({ target: 'acme', actions: ['text.removed'], limit: 1 })
    expect(entry?.actor.by).toBe('console')
    // Versions begin at 1 again.
    app.advance(1)
    const [, updatedAt = ''] = /name="updatedAt" value="(\d+)"/.exec(html) ?? []
    expect((await save('{{otp}} third', 0)).status).toBe(303)
    expect((await save('{{otp}} fourth', 1)).status).toBe(303)
    const stale = await visitor.post(path, {
      key: 'LOGIN_OTP',
      lang: 'hi',
      version: '2',
      updatedAt,
      text: '{{otp}} stale',
    })
    expect([stale.status, (await stored())?.text]).toEqual([409, '{{otp}} fourth'])
    expect(stale.html).toContain('version 2 replaced an earlier one')
    // HTML drops the first line break of a textarea.
    expect((await save('\r\n{{otp}}', 2)).status).toBe(303)
    expect((await visitor.get(editor)).html).toContain('>\n\n{{otp}}</textarea>')
    for (const unfound of ['NONSENSE/sms/hi', 'ORDER_PLACED/email/hi', 'LOGIN_OTP/sms/-', 'LOGIN_OTP/fax/hi'])
      expect((await visitor.get(`${path}/${unfound}`)).status).toBe(404)
    expect((await visitor.get('/admin/brands/unknown/texts')).status).toBe(404)
  })

  test('writes a draft, which only a test message has, compares it, publishes it, and restores the text before', async () => {
    const of = { slug: 'acme', key: 'LOGIN_OTP', lang: 'en' }
    const path = '/admin/brands/acme/texts'
    const editor = `${path}/LOGIN_OTP/sms/en`
    const sent = async () => {
      app.advance(61)
      await app.post('/otp/send', { phone: '+12025550143' })
      return (await app.outbox('12025550143')).at(-1)?.text
    }
    const save = (text: string, version: number, how = {}) =>
      visitor.post(path, {
        key: 'LOGIN_OTP',
        lang: 'en',
        removesDraft: '1',
        version: String(version),
        text,
        ...how,
      })
    await visitor.get(editor)
    expect((await save('{{otp}} is the code.', 0)).status).toBe(303)
    expect((await save('no code', 1, { draft: '1' })).status).toBe(409)
    expect((await save('{{otp}} is your code.', 1, { draft: '1' })).headers.get('location')).toBe(editor)
    expect(await sent()).toMatch(/^\d{6} is the code\.$/)

    const { html } = await visitor.get(editor)
    for (const shown of [
      'This is the draft. otpost sends version 1 until you publish it.',
      '<del>the </del><ins>your </ins>',
      '{{otp}} is your code.</textarea>',
      'template=LOGIN_OTP&amp;lang=en&amp;draft=1',
    ])
      expect(html).toContain(shown)
    expect((await visitor.get(path)).html).toMatch(/version 1.*draft/s)
    const test = { to: '+12025550144', brand: 'acme', template: 'LOGIN_OTP', lang: 'en' }
    for (const [draft, text] of [
      [{ draft: '1' }, '123456 is your code.'],
      [{}, '123456 is the code.'],
    ] as const) {
      expect((await visitor.post('/admin/test', { ...test, ...draft })).status).toBe(303)
      expect((await app.outbox('12025550144')).at(-1)?.text).toBe(text)
    }

    // Another operator publishes a text, so the draft is of an earlier one.
    const by = app.app.context.acting(tester)
    await setText(by, { channel: 'SMS', lang: 'en', brand: 'acme', key: 'LOGIN_OTP', text: '{{otp}}: code.' })
    const stale = await visitor.post(`${path}/draft`, { action: 'publish', ...of })
    expect([stale.status, stale.html]).toEqual([
      409,
      expect.stringContaining('The draft replaces version 1, but version 2 is published now.'),
    ])
    await visitor.get(editor)
    expect((await save('{{otp}} is your code.', 2, { draft: '1' })).status).toBe(303)
    expect((await visitor.post(`${path}/draft`, { action: 'publish', ...of })).headers.get('location')).toBe(
      editor,
    )
    expect(await sent()).toMatch(/^\d{6} is your code\.$/)
    const published = await visitor.get(editor)
    expect(published.html).not.toContain('This is the draft.')
    expect(published.html).toContain('Restore<span class="sr-only"> version 1</span>')

    expect((await visitor.post(`${path}/restore`, { ...of, version: '1' })).headers.get('location')).toBe(
      editor,
    )
    expect(await sent()).toMatch(/^\d{6} is the code\.$/)
    expect((await app.app.context.audit.list({ limit: 1 }))[0]).toMatchObject({
      action: 'text.restored',
      details: { version: '4', text: '{{otp}} is your code. → {{otp}} is the code.' },
    })
  })

  test('sees what a longer text costs with the SMS and the prices of the last 30 days', async () => {
    const save = [{ prefix: '1', provider: null, priceMicros: 8_000, currency: 'EUR' }] as const
    const { prices, now } = app.app.context
    const entry = { target: 'prices', details: {} }
    await prices.change({ actor: tester, now: now() }, () => ({ save, entry }))
    for (let sends = 0; sends < 3; sends++) {
      app.advance(86_400)
      await app.post('/otp/send', { phone: '+12025550143' })
    }
    await app.app.context.eventLog.flush()
    const later = await signedIn(app)
    const asked = { key: 'LOGIN_OTP', lang: 'en', text: `{{otp}} ${'x'.repeat(200)}` }
    const { html } = await later.post('/admin/brands/acme/texts/preview', asked)
    expect(html).toContain(
      '1 segment now, 2 with this text. With the 3 SMS of LOGIN_OTP in the last 30 days: 3 more segments, about 0.02 EUR more.',
    )
  })

  test('creates a template with variables, and changes them in a text of another language', async () => {
    await visitor.get('/admin/brands/acme')
    const path = '/admin/brands/acme/texts'
    const first = {
      mustBeNew: '1',
      version: '0',
      key: 'TABLE_READY',
      lang: 'en',
      variables: 'guest:text:30\r\n\r\n at:datetime:40',
      text: 'Hi {{guest}}, your table at {{businessName}} is ready at {{at}}.',
    }
    const wrong = await visitor.post(path, { ...first, variables: 'guest:words:30' })
    expect([wrong.status, wrong.html.includes('guest:words:30</textarea>')]).toEqual([409, true])
    const created = await visitor.post(path, first)
    expect(created.headers.get('location')).toBe(`${path}/TABLE_READY/sms/en`)
    expect((await visitor.post(path, first)).html).toContain('already exists')
    expect((await visitor.get(`${path}/TABLE_READY/sms/en`)).html).toContain(
      'Apps cannot use TABLE_READY yet',
    )
    const { html } = await visitor.get(`${path}/TABLE_READY/sms/de`)
    expect(html).toContain('guest:text:30\nat:datetime:40</textarea>')
    const { mustBeNew: _, ...rest } = first
    const second = { ...rest, lang: 'de', variables: 'guest:text:20', text: 'Hallo {{guest}}' }
    expect((await visitor.post(path, second)).html).toContain('do not fit the text in en')
    expect((await visitor.post(path, { ...second, variables: rest.variables })).status).toBe(303)
    // An operator who does not change the variables does not undo the change of another one.
    const opened = { ...rest, version: '1', seenVariables: first.variables, text: 'Hi {{guest}}' }
    const changed = { ...rest, lang: 'de', version: '1', variables: 'guest:text:40\nat:datetime:40' }
    expect((await visitor.post(path, changed)).status).toBe(303)
    expect((await visitor.post(path, { ...opened, text: '' })).html).toContain(
      'guest:text:40\nat:datetime:40</textarea>',
    )
    expect((await visitor.post(path, opened)).status).toBe(303)
    const texts = (await app.app.context.brands.bySlug('acme'))?.texts
    expect(texts?.all.map(({ lang }) => lang)).toEqual(['de', 'en'])
    expect(texts?.variables.get('TABLE_READY')).toEqual([
      { name: 'guest', type: 'text', max: 40 },
      { name: 'at', type: 'datetime', max: 40 },
    ])
  })

  test('creates, rotates and revokes keys', async () => {
    const first = keyIn((await visitor.post('/admin/apps/issue', { appId: 'till' })).html)
    const second = keyIn((await visitor.post('/admin/apps/rotate', { appId: 'till' })).html)
    const works = async (apiKey: string) =>
      (await app.post('/notify', { appId: 'till', apiKey, channel: 'SMS', brandId: 'acme' })).body.error !==
      'forbidden'
    expect([await works(first), await works(second)]).toEqual([true, true])
    const third = await visitor.post('/admin/apps/rotate', { appId: 'till' })
    expect([third.status, keyIn(third.html)]).toEqual([409, ''])
    // The page has buttons for what the message of the command suggests.
    expect(third.html).toContain('App till already has two keys')
    expect(third.html).not.toContain('otpost app')
    await visitor.post('/admin/apps/revoke-key', { appId: 'till', key: first.slice(-4) })
    expect([await works(first), await works(second)]).toEqual([false, true])
    await visitor.post('/admin/apps/revoke', { appId: 'till' })
    expect([await works(first), await works(second)]).toEqual([false, false])
    const { html } = await visitor.get('/admin/apps/app?app=till')
    const [{ actor } = {}] = await app.app.context.audit.list({ actions: ['app.revoked'], limit: 1 })
    const link = '<a href="/admin/audit?group=app&amp;target=till">'
    expect(html.split(link)[1]).toMatch(
      new RegExp(`^<time[^>]*>[^<]*</time></a> by <bdi[^>]*>${actor?.name}<`),
    )
  })

  test('creates an app with a scope, and changes it: only what the form changed, and never to every brand by mistake', async () => {
    const { context } = app.app
    await putBrand(context.acting(tester), 'globex', { displayName: 'Globex' })
    const wasIn = (html: string) =>
      /name="was" value="([^"]*)"/.exec(html)?.[1]?.replaceAll('&quot;', '"') ?? ''
    const was = wasIn((await visitor.get('/admin/apps')).html)
    const scope = { was, brands: ['acme'], operations: ['otp'], perMinute: '60' }
    for (const wrong of [{ perMinute: 'default' }, { operations: [] }]) {
      const { status, html } = await visitor.post('/admin/apps/issue', { appId: 'till', ...scope, ...wrong })
      expect([status, keyIn(html), wasIn(html)]).toEqual([409, '', was])
      expect(html).toContain('value="till"')
    }
    expect(await context.apps.list()).toEqual([])
    const created = await visitor.post('/admin/apps/issue', { appId: 'till', ...scope })
    expect(keyIn(created.html)).not.toBe('')
    const [first] = (await context.policy.rows()).scopes
    expect(first).toEqual({
      appId: 'till',
      brands: ['acme'],
      allowsOtp: true,
      allowsNotify: false,
      perMinute: 60,
      newCountrySmsPerDay: null,
    })

    const [path, page] = ['/admin/apps/scope', '/admin/apps/app']
    const shown = await visitor.get(`${page}?app=till`)
    expect(shown.html).toContain('Scope')
    const asShown = {
      appId: 'till',
      was: wasIn(shown.html),
      brands: ['acme'],
      operations: ['otp'],
      perMinute: '60',
    }
    const unchanged = await visitor.post(path, asShown)
    expect([unchanged.status, unchanged.headers.get('location')]).toEqual([303, '/admin/apps/app?app=till'])
    expect((await visitor.get('/admin/apps')).html).toContain('Nothing was changed, so nothing was saved.')
    expect((await context.audit.list({ limit: 1 }))[0]?.action).toBe('app.issued')
    await visitor.get(`${page}?app=till`)
    await setApp(context.acting(tester), 'till', { brands: ['globex'] }, [])
    const form = { appId: 'till', was: wasIn(shown.html), brands: ['acme'], operations: ['otp', 'notify'] }
    const refused = await visitor.post(path, { ...form, brands: [], perMinute: '60' })
    expect([refused.status, refused.html.includes('every brand or single brands')]).toEqual([409, true])
    const saved = await visitor.post(path, { ...form, perMinute: '' })
    expect([saved.status, saved.headers.get('location')]).toEqual([303, '/admin/apps/app?app=till'])
    expect((await visitor.get('/admin/apps')).html).toContain(
      'Scope of till: brands globex; operations otp, notify; calls per minute default.',
    )
    expect((await context.policy.rows()).scopes).toEqual([{ ...unscoped('till'), brands: ['globex'] }])
    expect((await context.audit.list({ limit: 1 }))[0]).toMatchObject({
      action: 'app.changed',
      target: 'till',
      details: { allow: 'otp → otp, notify', perMinute: '60 → default' },
    })

    // The app of APP_CREDENTIALS, and an unknown one.
    const configured = await visitor.get(`${page}?app=shop`)
    await visitor.post(path, {
      appId: 'shop',
      was: wasIn(configured.html),
      anyBrand: '1',
      operations: ['notify'],
      perMinute: '',
    })
    expect((await app.post('/otp/send', { phone: '12025550143' })).body.error).toBe('forbidden')
    expect((await visitor.get(`${page}?app=nobody`)).status).toBe(404)
  })

  test('sets and ends the webhook of an app, as the command does', async () => {
    const { context } = app.app
    const path = '/admin/apps/webhook'
    const shown = await visitor.get(`${path}?app=shop`)
    expect(shown.html).toContain('Webhook of shop')
    const events = ['message.delivered', 'message.failed', 'otp.verified', 'otp.locked']
    const url = 'http://localhost:3002/otpost/events?token=secret-1'
    const refused = await visitor.post(path, { appId: 'shop', url, events: [] })
    expect([refused.status, refused.html]).toEqual([
      409,
      expect.stringContaining('Select at least one event.'),
    ])
    expect(refused.html).toContain(`value="${url}"`)

    const saved = await visitor.post(path, { appId: 'shop', url, events })
    const [webhook] = (await context.policy.rows()).webhooks
    expect(webhook).toMatchObject({ appId: 'shop', url, eventTypes: [], disabledAt: null })
    expect(saved.html).toContain(webhook?.secret ?? 'none')
    const again = await visitor.get(`${path}?app=shop`)
    for (const secret of [webhook?.secret ?? 'none', 'secret-1']) expect(again.html).not.toContain(secret)
    expect((await visitor.get('/admin/apps')).html).toContain('>on<')
    await visitor.post(path, { appId: 'shop', url: 'https://shop.example/e', events: ['otp.locked'] })
    expect((await context.policy.rows()).webhooks).toMatchObject([{ eventTypes: ['otp.locked'] }])
    expect((await visitor.get(`${path}?app=shop`)).html).toContain('value="https://shop.example/e"')

    expect((await visitor.post(path, { appId: 'shop', off: '1' })).status).toBe(303)
    expect((await context.policy.rows()).webhooks).toEqual([])
    expect((await visitor.get(`${path}?app=nobody`)).status).toBe(404)
  })

  test('shows the last events of an app, sends a test event, and sends an event again', async () => {
    const receiver = startReceiver(() => new Response(null, { status: 503 }))
    const path = '/admin/apps/webhook'
    const settle = async () => {
      app.app.events.tick()
      await app.app.events.idle()
    }
    await visitor.get(path)
    expect((await visitor.post(`${path}/test`, { appId: 'shop' })).status).toBe(409)
    await policyOf(app).webhook(receiver.url)
    expect((await visitor.post(`${path}/test`, { appId: 'shop', csrf: 'guessed' })).status).toBe(403)
    const sent = await visitor.post(`${path}/test`, { appId: 'shop' })
    expect((await visitor.get(`${path}?app=shop`)).html).toMatch(
      />waiting<.*<small>(?:not tried yet|being sent)<\/small>/,
    )
    await visitor.get(path)
    expect([sent.status, sent.headers.get('location')]).toEqual([303, `${path}?app=shop`])
    await settle()
    const waiting = (await visitor.get(`${path}?app=shop`)).html
    for (const text of ['message.delivered', 'failed, will be tried again', 'HTTP 503', 'Next try'])
      expect(waiting).toContain(text)
    expect(waiting).not.toContain('Send again')

    receiver.answer(() => new Response(null, { status: 204 }))
    app.advance(6)
    await settle()
    const { html } = await visitor.get(`${path}?app=shop`)
    for (const text of ['delivered', 'HTTP 204', 'Send again']) expect(html).toContain(text)
    const [event] = await app.app.context.events.latest('shop', 1)
    const fields = { appId: 'shop', id: event?.id ?? '' }
    expect((await visitor.post(`${path}/resend`, { ...fields, appId: 'other' })).status).toBe(409)
    expect((await visitor.post(`${path}/resend`, { ...fields, csrf: 'guessed' })).status).toBe(403)
    expect((await visitor.post(`${path}/resend`, fields)).status).toBe(303)
    await settle()
    const ids = receiver.received.map(({ headers }) => headers.get('webhook-id'))
    expect(ids).toEqual([fields.id, fields.id, fields.id])
    receiver.stop()
  })

  test('finds the requests of a recipient, page by page, without the recipient in any URL', async () => {
    for (let index = 0; index < 120; index++) {
      await app.post('/notify', { channel: 'SMS', brandId: 'acme', to: ['12025550143'], message: `${index}` })
      app.advance(1)
    }
    await app.post('/notify', { channel: 'SMS', brandId: 'acme', to: ['12025550199'], message: 'another' })
    const found = await visitor.post('/admin/search', { q: '+1 (202) 555-0143' })
    let path = found.headers.get('location') ?? ''
    expect(path).toMatch(/^\/admin\/calls\?recipient=[\w-]{22}$/)
    const seen: string[] = []
    for (let pageNumber = 1; path !== ''; pageNumber++) {
      const { html } = await visitor.get(path)
      seen.push(
        ...[...html.matchAll(/href="\/admin\/deliveries\/([0-9a-f-]{36})"/g)].map(([, id = '']) => id),
      )
      expect(html).not.toContain('12025550143')
      const next = /href="(\/admin\/calls\?[^"]*before=[^"]*)"/.exec(html)?.[1] ?? ''
      path = next.replaceAll('&amp;', '&')
      expect(pageNumber).toBeLessThan(5)
    }
    expect(new Set(seen).size).toBe(120)
    expect(seen).toHaveLength(120)
    expect(JSON.stringify(app.lines)).not.toContain('5550143')
  })

  test('filters deliveries and API calls, and downloads them', async () => {
    const { body } = await app.post('/otp/send', { phone: '12025550143' })
    await app.post('/otp/send', { phone: '12025550143' })
    const notify = { channel: 'SMS', brandId: 'acme', to: ['447400123456'], message: 'Hi' }
    await app.eventsOf(await app.post('/notify', notify))
    const listed = async (path: string) => {
      const { html } = await visitor.get(path)
      return [...html.matchAll(/class="trace-link"[^>]*title="([^"]*)"/g)].map(([, id]) => id)
    }
    expect(await listed('/admin/deliveries')).toHaveLength(2)
    expect(await listed('/admin/deliveries?template=LOGIN_OTP&country=us&app=shop')).toEqual([body.requestId])
    for (const one of [
      'status=accepted',
      'channel=SMS',
      'brand=acme',
      'provider=outbox',
      'from=2020-01-01T00:00',
    ]) {
      expect([one, (await listed(`/admin/deliveries?${one}`)).length]).toEqual([one, 2])
    }
    for (const none of [
      'status=not-delivered&status=delivered',
      'channel=EMAIL',
      'error=content',
      'until=2020-01-01T00:00Z',
    ]) {
      expect([none, await listed(`/admin/deliveries?${none}`)]).toEqual([none, []])
    }
    expect(await listed('/admin/calls?result=limited')).toHaveLength(1)
    expect(await listed('/admin/calls?result=success&call=notify&country=GB')).toHaveLength(1)
    expect(await listed('/admin/calls?provider=outbox')).toHaveLength(2)
    expect((await visitor.get('/admin/calls?provider=outbox')).html).toContain('2 requests to 2 recipients')
    expect((await visitor.get('/admin/deliveries?app=shop')).html).toContain('2 attempts of 2 requests to')
    expect((await visitor.get('/admin/calls?result=lost')).html).toContain('<bdi>result=lost</bdi>')
    // A form sends its empty fields too.
    const sent = await visitor.get('/admin/deliveries?status=accepted&app=&from=2026-01-01T00%3A00&until=')
    expect(sent.headers.get('location')).toBe('/admin/deliveries?status=accepted&from=2026-01-01T00%3A00Z')

    const { html: csv, headers } = await visitor.get('/admin/deliveries.csv?country=GB')
    expect(headers.get('content-disposition')).toBe('attachment; filename="otpost-deliveries.csv"')
    const [head, row, ...rest] = csv.split('\r\n')
    expect([head?.split(',').slice(5, 9), row?.split(',').slice(5, 9)]).toEqual([
      ['channel', 'recipient', 'country', 'provider'],
      ['SMS', '44********56', 'GB', 'outbox'],
    ])
    expect(rest).toEqual([''])
    expect((await visitor.get('/admin/calls.csv?result=limited')).html).toContain(
      ',send,429,cooldown_active,',
    )
  })

  test('opens the rows of each number of the overview', async () => {
    const phone = '12025550143'
    await app.post('/otp/send', { phone })
    await app.post('/otp/send', { phone })
    await app.post('/otp/send', { channel: 'EMAIL', email: 'jo@example.com' })
    await app.post('/otp/send', { phone: '12025550144', brandId: 'nobody' })
    await visitor.get('/admin/destinations')
    await visitor.post('/admin/destinations', { rule: 'LV', action: 'block' })
    await app.post('/otp/send', { phone: '37120000001' })
    await app.post('/otp/send', { phone: 'x' })
    const otp = await app.lastCode(phone)
    await app.post('/notify', { channel: 'SMS', brandId: 'acme', to: [phone], message: 'Hi' })
    const wrong = otp === '000000' ? '000001' : '000000'
    await app.post('/otp/verify', { phone, otp: wrong })
    await app.eventsOf(await app.post('/otp/verify', { phone, otp }))
    const { html } = await visitor.get('/admin')
    const numbers = [...html.matchAll(/<a class="count[^"]*" href="([^"]*)">(\d+)/g)]
    const paths = new Set(numbers.map(([, href = '', shown]) => `${shown} ${href.replaceAll('&amp;', '&')}`))
    expect(paths.size).toBeGreaterThan(10)
    expect([...paths].filter((path) => path.includes('result=destination'))).not.toBeEmpty()
    for (const each of paths) {
      const [shown, path = ''] = each.split(' ')
      const rows = (await visitor.get(path)).html.match(/class="trace-link"/g) ?? []
      expect([path, rows.length]).toEqual([path, Number(shown)])
    }
  })

  describe('searches everywhere', () => {
    const appPage = (appId: string) => `/admin/apps/app?app=${appId}`
    const search = async (q: string) => {
      const { status, headers, html } = await visitor.post('/admin/search', { q })
      const main = html.slice(html.indexOf('<main'))
      const links = [...main.matchAll(/<a href="(\/admin\/[^"]*)"/g)].map(([, href]) => href)
      return { status, location: headers.get('location'), html, links }
    }

    test('without effect of the direction of the text on the page around it', async () => {
      expect((await search('\u202egpj.exe')).html).toContain('<bdi>\u202egpj.exe</bdi>')
    })

    test('by request ID, recipient, reference and message ID, without the recipient in a URL', async () => {
      await openWith(testProvider('one', () => ({ kind: 'accepted', providerMessageId: 'SM7' })))
      const { body } = await app.post('/otp/send', { phone: '12025550143', reference: 'Order 7' })
      const path = `/admin/deliveries/${body.requestId}`
      const end = body.requestId.slice(-8)
      for (const q of [` ${body.requestId.toUpperCase()} `, 'Order 7', 'SM7', end, `…${end.toUpperCase()}`])
        expect((await search(q)).location).toBe(path)
      expect((await search('+1 (202) 555-0143')).location).toMatch(/^\/admin\/calls\?recipient=[\w-]{22}$/)
      expect(JSON.stringify(app.lines)).not.toContain('5550143')
    })

    test('by recipient of rejected requests', async () => {
      await app.close()
      await open({ SMS_COUNTRIES: 'GB' })
      await signedIn(app, visitor)
      await app.eventsOf(await app.post('/otp/send', { phone: '12025550144' }))
      const { location } = await search('+1 202 555 0144')
      expect(location).toMatch(/^\/admin\/calls\?recipient=[\w-]{22}$/)
      expect((await visitor.get(location ?? '')).html).toContain('send SMS to: United States.')
    })

    test('by integration request, app and brand; lists several hits', async () => {
      const { body } = await app.postRaw('/integrations/requests', asked)
      const id = body.integrationRequestId
      expect((await search(id)).location).toBe(`/admin/requests/${id}`)
      expect((await search('ACM')).location).toBe('/admin/brands/acme')
      expect((await search('sho')).location).toBe('/admin/apps/app?app=shop')
      await issueApp(app.app.context.acting(tester), 'acme-web', {})
      const both = await search('acme')
      expect([both.status, both.links]).toEqual([200, ['/admin/brands/acme', '/admin/apps/app?app=acme-web']])
    })

    test('by a national number, a key or its end, a country, a prefix, an operator and an error code', async () => {
      await app.post('/otp/send', { phone: '37120000001' })
      const { key: apiKey } = await issueApp(app.app.context.acting(tester), 'web', {})
      expect((await search('20 000 001')).location).toMatch(/^\/admin\/calls\?recipient=[\w-]{22}$/)
      expect((await search('Latvia')).location).toBe('/admin/deliveries?country=LV')
      expect((await search('+371 2000')).links).toEqual(['/admin/guard', '/admin/deliveries?country=LV'])
      expect((await search('ana@')).location).toBe('/admin/audit?by=ana%40example.com')
      expect((await search(`…${apiKey.slice(-4)}`)).location).toBe(appPage('web'))
      expect((await search('21610')).html).toContain('href="https://www.twilio.com/docs/api/errors/21610"')
      for (const [key, appId] of [
        [apiKey, 'web'],
        [credentials.apiKey, 'shop'],
      ] as const) {
        const { status, html, links } = await search(key)
        expect([status, links, html.includes(key)]).toEqual([200, [appPage(appId)], false])
      }
      const unknown = await search('otp_live_of_another_server')
      expect([unknown.links, unknown.html.includes('otp_live_of')]).toEqual([[], false])
      expect(unknown.html).toContain('No app has this API key')
      expect(JSON.stringify(app.lines)).not.toContain('otp_live')
    })

    test('keeps what was entered when nothing is found, and says what was searched', async () => {
      for (const q of ['<nobody> "x"', '+1 202 555 0100', crypto.randomUUID(), 'x'.repeat(300)]) {
        const { status, html, links } = await search(q)
        expect([status, links]).toEqual([200, []])
        expect(html).toContain(`value="${q.replaceAll('<', '&lt;').replaceAll('"', '&quot;')}"`)
        expect(html).toContain('Nothing was found for')
        expect(html).toContain('references of callers')
        expect(html).not.toContain('were not searched by reference')
      }
      expect((await search(' ')).location).toBe('/admin/search')
      expect((await visitor.get('/admin/search')).html).not.toContain('Nothing was found')
    })
  })

  test('sees four failed sends as a problem', async () => {
    const provider = testProvider('one')
    await openWith(provider)
    expect((await visitor.get(`/admin`)).html).toContain('All well: ')
    provider.answer(() => ({ kind: 'retryable', reason: 'HTTP 500' }))
    for (const end of [1, 2, 3, 4])
      await app.eventsOf(await app.post('/otp/send', { phone: `1202555014${end}` }))
    const { html } = await visitor.get('/admin')
    expect(html).not.toContain('All well')
    expect(html).toContain(': 4 people got no message.')
    expect(html).toContain('It answers HTTP 500. Check the status page')
    expect(html).toContain('Provider one: 4 failures in a row. 4 of 4 attempts (100%) failed')
  })

  test('sees the same request trace as `otpost explain` prints', async () => {
    const { body } = await app.post('/otp/send', { phone: '12025550143' })
    const { html } = await visitor.get(`/admin/deliveries/${body.requestId}`)
    expect(html).toContain('12*******43')
    expect(html).toContain('SMS cooldown of this brand and phone: not active')
  })

  test('sees sent, verified and rate-limited counts, and active rate limits', async () => {
    const send = await app.post('/otp/send', { phone: '12025550143' })
    expect(send.status).toBe(200)
    app.advance(8)
    await app.post('/otp/send', { phone: '12025550143' })
    await app.post('/otp/verify', { phone: '12025550143', otp: await app.lastCode('12025550143') })
    await app.eventsOf(send)
    const statistics = await app.app.context.eventLog.statistics('hour', app.clock.now)
    expect(statistics.totals).toMatchObject({ sends: 1, verified: 1, limited: 1, accepted: 1 })
    expect(statistics.byProvider).toMatchObject([{ name: 'outbox', sends: 1, verified: 1, accepted: 1 }])
    expect(statistics.verifyTimes).toMatchObject({ count: 1, medianSeconds: 10 })
    const { html } = await visitor.get('/admin')
    expect(html).toContain('12*******43')
    app.advance(31)
    expect((await visitor.get('/admin')).html).not.toContain('12*******43')
  })

  test('sees the provider of verified codes, by SMS and by mail', async () => {
    const both = [
      ['SMS', 'phone', '12025550143', { message: 'Hi' }],
      ['EMAIL', 'email', 'jo@example.com', { subject: 'Hi', html: '<p>Hi</p>' }],
    ] as const
    for (const [channel, field, to, content] of both) {
      await app.post('/otp/send', { channel, [field]: to })
      app.advance(8)
      const otp = await app.lastCode(to)
      // Later messages contain no code.
      const notified = await app.post('/notify', { channel, brandId: 'acme', to: [to], ...content })
      expect(notified.status).toBe(200)
      await app.eventsOf(await app.post('/otp/verify', { [field]: to, otp }))
    }
    const { byProvider, verifyTimes } = await app.app.context.eventLog.statistics('hour', app.clock.now)
    expect(byProvider).toMatchObject([{ name: 'outbox', sends: 2, verified: 2, accepted: 4 }])
    expect(verifyTimes).toMatchObject({ count: 2, medianSeconds: 10 })
  })

  test('sees a verified code at the provider that accepted it after another failed', async () => {
    const receiver = startReceiver(() => new Response(null, { status: 503 }))
    const failing = await createTestApp({ SMS_PLAIN: 'webhook,outbox', ...receiver.env })
    const phone = '12025550143'
    await failing.post('/otp/send', { phone })
    await failing.eventsOf(await failing.post('/otp/verify', { phone, otp: await failing.lastCode(phone) }))
    const { byProvider } = await failing.app.context.eventLog.statistics('hour', failing.clock.now)
    expect(byProvider.map(({ name, verified }) => [name, verified])).toEqual([
      ['outbox', 1],
      ['webhook', 0],
    ])
    await failing.close()
    await receiver.stop()
  })

  test.each([
    ['from=zzz', true],
    ['from=2026-01-01T10:00Z&until=zzz', true],
    ['from=2030-01-01T10:00Z', true],
    ['from=2026-01-01T10:00Z&until=2026-01-01T09:00Z', true],
    ['from=2026-01-01T10:00Z&until=2026-01-01T11:00Z', false],
    ['from=2026-01-01T10:00Z&until=', false],
    ['from=&until=', false],
  ])('sees whether there are figures of the time %s', async (query, isUnknown) => {
    const { html } = await visitor.get(`/admin?${query}`)
    expect(html.includes('There are no figures of the time in this URL')).toBe(isUnknown)
  })

  test('sees that an IP address repeatedly fails authentication', async () => {
    const guess = () => app.postRaw('/otp/send', { appId: 'shop', apiKey: 'a guess' })
    // Rejections are recorded after the response is sent.
    const isTold = async () => {
      await new Promise((resolve) => setImmediate(resolve))
      return (await visitor.get('/admin')).html.includes('Failed credentials per minute')
    }
    for (let index = 0; index < 300; index++) await guess()
    expect(await isTold()).toBe(false)
    expect((await guess()).status).toBe(429)
    expect(await isTold()).toBe(true)
  })

  test('leaves no audit entry when nothing changed', async () => {
    const acting = app.app.context.acting(tester)
    const before = await app.app.context.audit.list({ limit: 10 })
    await putBrand(acting, 'acme', {})
    await putBrand(acting, 'acme', { displayName: 'Acme', domain: null })
    await operate(app, 'brand template', { slug: 'acme', key: 'LOGIN_OTP', remove: true })
    expect(await app.app.context.audit.list({ limit: 10 })).toEqual(before)
  })

  test('leaves an audit entry with their name for every change', async () => {
    await putBrand(app.app.context.acting(tester), 'globex', { displayName: 'Globex' })
    await issueApp(app.app.context.acting(tester), 'till')
    await visitor.post('/admin/apps/rotate', { appId: 'till' })
    await visitor.post('/admin/brands/globex/status', { status: 'suspended' })
    const records = await app.app.context.audit.list({ limit: 10 })
    const [session = ''] = (await app.app.context.sessions.list(app.clock.now)).map(({ tokenSha256 }) =>
      tokenSha256.slice(0, 8),
    )
    const console = { by: 'console', name: session }
    expect(
      records.map(({ actor, action, target }) => ({ actor, action, target })).slice(0, 5) as object[],
    ).toEqual([
      { actor: console, action: 'brand.status', target: 'globex' },
      { actor: console, action: 'app.rotated', target: 'till' },
      { actor: tester, action: 'app.issued', target: 'till' },
      { actor: tester, action: 'brand.created', target: 'globex' },
      { actor: console, action: 'console.login', target: session },
    ])
    const { html } = await visitor.get('/admin/audit')
    for (const told of ['Key rotated', 'active → suspended', session]) expect(html).toContain(told)
    const actionsOf = async (query: string) => {
      const { html } = await visitor.get(`/admin/audit?${query}`)
      return {
        actions: Array.from(html.matchAll(/<th scope="row"[^>]*>([^<]*)/g), ([, action]) => action),
        links: Array.from(html.matchAll(/href="\/admin\/audit\?([^"]*)"/g), ([, link]) => link),
      }
    }
    expect((await actionsOf('group=app')).actions).toEqual(['Key rotated', 'App created'])
    expect((await actionsOf('target=globex')).actions).toEqual(['Brand status changed', 'Brand created'])
    expect((await actionsOf('group=app.rotated')).actions).toEqual(['Key rotated'])
    const ofPerson = await actionsOf(`by=${session}&hide=sign-ins`)
    expect(ofPerson.actions).toEqual(['Brand status changed', 'Key rotated'])
    const [latest] = records
    const earlier = await actionsOf(`group=brand&before=${latest?.id}`)
    expect(earlier.actions[0]).toBe('Brand created')
    const newer = earlier.links
      .map((link) => link?.replaceAll('&amp;', '&'))
      .find((link) => link?.includes('after='))
    expect((await actionsOf(newer ?? '')).actions[0]).toBe('Brand status changed')
    expect((await actionsOf(`before=${Number(latest?.id) + 1}`)).links).toEqual([])
    app.advance(60)
    await visitor.post('/admin/brands/globex/status', { status: 'active' })
    const minute = new Date(app.clock.now - 30_000).toISOString()
    expect((await actionsOf(`from=${minute}`)).actions).toEqual(['Brand status changed'])
    expect((await actionsOf(`until=${minute}&group=app`)).actions).toEqual(['Key rotated', 'App created'])
    const { html: file, headers } = await visitor.get(`/admin/audit.csv?from=${minute}`)
    expect(headers.get('content-disposition')).toBe('attachment; filename="otpost-audit.csv"')
    // An ID that begins with a minus would be a formula.
    const csv = file.replace(`"'${session}"`, session)
    expect(csv.split('\r\n').slice(0, 2)).toEqual([
      'time,operator,by,action,words,target,details',
      `${new Date(app.clock.now).toISOString()},${session},console,brand.status,Brand status changed,globex,Status: suspended → active`,
    ])
  })

  test('goes through the audit log in both directions', async () => {
    const { operator } = app.app.context
    const at = app.clock.now
    for (let index = 0; index < 120; index++) {
      await operator.note({
        at,
        actor: tester,
        action: 'app.rotated',
        target: 'till',
        details: { index: String(index) },
      })
    }
    const shown = async (query: string) => {
      const { html } = await visitor.get(`/admin/audit?target=till${query}`)
      const indexes = Array.from(html.matchAll(/<dt>Index<\/dt><dd>(\d+)/g), ([, index]) => Number(index))
      const linkTo = (name: string) =>
        new RegExp(`(&amp;${name}=\\d+)"`).exec(html)?.[1]?.replace('&amp;', '&')
      return { span: [indexes.at(0), indexes.at(-1)], older: linkTo('before'), newer: linkTo('after') }
    }
    const first = await shown('')
    expect([first.span, first.newer]).toEqual([[119, 70], undefined])
    const second = await shown(first.older ?? '')
    const third = await shown(second.older ?? '')
    expect([second.span, third.span, third.older]).toEqual([[69, 20], [19, 0], undefined])
    const back = await shown(third.newer ?? '')
    expect(back).toEqual(second)
    expect(await shown(back.newer ?? '')).toEqual(first)
  })

  test('sees the settings in effect, without secrets', async () => {
    const { html } = await visitor.get('/admin/settings')
    expect(html).toContain('GLOBAL_LIMIT_PER_MINUTE')
    expect(html).toContain('1000000')
    expect(html).not.toContain('key-of-the-shop')
  })

  test('previews a code of a brand before the brand is saved', async () => {
    await visitor.get('/admin/brands/acme')
    const preview = async (fields: Readonly<Record<string, string>>) =>
      (await visitor.post('/admin/preview', { lang: 'hi', displayName: 'Ac<me', ...fields })).html
    expect(await preview({ lang: 'en' })).toMatch(/your Ac&lt;me verification code.*Built-in text in en\./s)
    const text = {
      brand: 'acme',
      key: 'LOGIN_OTP',
      channel: 'SMS',
      lang: 'hi',
      text: '{{otp}} <हिन्दी>',
    } as const
    await setText(app.app.context.acting(tester), text)
    const code = { slug: 'acme', domain: 'shop.example', androidHash: 'FA+9qCX9VSu' }
    const own = await preview(code)
    expect(own).toContain(' &lt;हिन्दी>\n\n@shop.example #123456 FA+9qCX9VSu')
    expect(own).toContain('Text of the brand in hi.')
    expect(await preview({ ...code, lang: 'en' })).toContain('Built-in text in en.')
  })
})

test('automatic refresh of the overview does not extend the session', async () => {
  await open()
  await signedIn(app, visitor)
  const refreshing = new Visitor(app, { 'x-otpost-refresh': '1' })
  for (const [name, value] of visitor.cookies) refreshing.cookies.set(name, value)
  for (let minutes = 10; minutes < 30; minutes += 10) {
    app.advance(600)
    expect((await refreshing.get('/admin')).status).toBe(200)
  }
  app.advance(600)
  expect((await refreshing.get('/admin')).status).toBe(303)
})

test('the log has requests for pages like other requests: by path pattern, with their status', async () => {
  await open()
  await visitor.post('/admin/login', wrong)
  await signedIn(app, visitor)
  await visitor.get('/admin/brands/unknown')
  await visitor.get('/admin/brands/acme')
  await new Promise((resolve) => setImmediate(resolve))
  const told = app.lines
    .map((line) => line as { route?: string; status?: number })
    .filter(({ route }) => route?.startsWith('/admin'))
    .map(({ route, status }) => `${route} ${status}`)
  expect(told).toEqual([
    '/admin/login 401',
    '/admin/link 303',
    '/admin 200',
    '/admin/brands/:slug 404',
    '/admin/brands/:slug 200',
  ])
})

sqliteOnly(
  'an unusable database is the first problem on the overview, and is reported at sign-in',
  async () => {
    const folder = temporaryFolder()
    const file = `${folder.path}/otpost.db`
    await open({ DATABASE_URL: `file:${file}` })
    await signedIn(app, visitor)
    renameSync(file, `${file}.away`)
    app.advance(120)
    expect((await app.post('/otp/send', { phone: '12025550143' })).status).toBe(500)
    const { status, html } = await visitor.get('/admin')
    expect(status).toBe(200)
    expect(html).toContain('The database is unavailable')
    const [, words = ''] = /<h2 id="verdict">(.*?)<\/h2>/s.exec(html) ?? []
    expect(words.replaceAll(/<[^>]*>/g, '')).toMatch(
      /^The database file was removed or replaced since \d\d:\d\d: 1 person got an error\./,
    )
    expect(html).not.toContain('All well')
    const entering = await new Visitor(app).post('/admin/login', right)
    expect([entering.status, entering.html.includes('was removed or replaced')]).toEqual([503, true])
    renameSync(`${file}.away`, file)
    expect((await visitor.get('/admin')).html).not.toContain('The database is unavailable')
    const after = (await visitor.get('/admin')).html.replaceAll(/<[^>]*>/g, '')
    expect(after).toContain('could not be written to the event log')
    expect(after).toMatch(/While the database failed from [^,]*, 1 person got an error\./)
    // After a day the lost entries are no longer shown.
    app.advance(25 * 3600)
    await signedIn(app, visitor)
    expect((await visitor.get('/admin')).html).not.toContain('could not be written')
    folder.remove()
  },
)
