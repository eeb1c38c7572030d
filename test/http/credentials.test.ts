import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sha256 } from '../../src/adapters/crypto/secrets.ts'
import { createApps } from '../../src/adapters/store/keys.ts'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { createTestApp, credentials, type TestApp } from '../support/app.ts'
import { accessRequest } from '../support/calls.ts'
import { operate, tester } from '../support/operator.ts'
import { expectError, expectSuccess, freshPhone, retryAfter } from '../support/rows.ts'

let app: TestApp

beforeAll(async () => {
  app = await createTestApp()
})
afterAll(() => app.close())

/** A valid request to each protected endpoint, without credentials. */
const calls: readonly { path: string; body: Readonly<Record<string, unknown>> }[] = [
  { path: '/otp/send', body: { brandId: 'acme', phone: '15559400001' } },
  { path: '/otp/resend', body: { brandId: 'acme', phone: '15559400001' } },
  { path: '/otp/verify', body: { brandId: 'acme', phone: '15559400001', otp: '123456' } },
  { path: '/notify', body: { channel: 'SMS', brandId: 'acme', to: ['15559400001'], message: 'Hello' } },
  {
    path: '/notify',
    body: { channel: 'EMAIL', to: ['a@example.com'], subject: 'Hello', html: '<p>Hello</p>' },
  },
  { path: '/messages/status', body: { messageRequestId: crypto.randomUUID() } },
]
const { appId, apiKey } = credentials

/** Spec 5, rule 3. */
const rows: readonly {
  name: string
  body: Readonly<Record<string, unknown>>
  status: number
  error: string
}[] = [
  { name: 'no credentials', body: {}, status: 401, error: 'unauthorized' },
  { name: 'missing appId', body: { apiKey }, status: 401, error: 'unauthorized' },
  { name: 'null appId', body: { appId: null, apiKey }, status: 401, error: 'unauthorized' },
  { name: 'empty appId', body: { appId: '', apiKey }, status: 401, error: 'unauthorized' },
  { name: 'appId as a number', body: { appId: 5, apiKey }, status: 401, error: 'unauthorized' },
  { name: 'appId as true', body: { appId: true, apiKey }, status: 401, error: 'unauthorized' },
  { name: 'appId as an array', body: { appId: [appId], apiKey }, status: 401, error: 'unauthorized' },
  { name: 'appId as an object', body: { appId: { appId }, apiKey }, status: 401, error: 'unauthorized' },
  { name: 'missing apiKey', body: { appId }, status: 401, error: 'unauthorized' },
  { name: 'null apiKey', body: { appId, apiKey: null }, status: 401, error: 'unauthorized' },
  { name: 'empty apiKey', body: { appId, apiKey: '' }, status: 401, error: 'unauthorized' },
  { name: 'apiKey as a number', body: { appId, apiKey: 5 }, status: 401, error: 'unauthorized' },
  { name: 'apiKey as an array', body: { appId, apiKey: [apiKey] }, status: 401, error: 'unauthorized' },
  { name: 'apiKey as an object', body: { appId, apiKey: {} }, status: 401, error: 'unauthorized' },
  { name: 'an unknown app', body: { appId: 'nobody', apiKey }, status: 403, error: 'forbidden' },
  { name: 'another key', body: { appId, apiKey: 'wrong' }, status: 403, error: 'forbidden' },
  {
    name: 'the key in another case',
    body: { appId, apiKey: apiKey.toUpperCase() },
    status: 403,
    error: 'forbidden',
  },
  {
    name: 'a part of the key',
    body: { appId, apiKey: apiKey.slice(0, -1) },
    status: 403,
    error: 'forbidden',
  },
  { name: 'the key and more', body: { appId, apiKey: `${apiKey}x` }, status: 403, error: 'forbidden' },
  { name: 'app __proto__', body: { appId: '__proto__', apiKey }, status: 403, error: 'forbidden' },
  { name: 'app constructor', body: { appId: 'constructor', apiKey }, status: 403, error: 'forbidden' },
  { name: 'app toString', body: { appId: 'toString', apiKey }, status: 403, error: 'forbidden' },
  { name: 'app hasOwnProperty', body: { appId: 'hasOwnProperty', apiKey }, status: 403, error: 'forbidden' },
  { name: 'an appId with a colon', body: { appId: 'a:b', apiKey }, status: 403, error: 'forbidden' },
  {
    name: 'an appId of 15 kB',
    body: { appId: 'a'.repeat(15_000), apiKey },
    status: 403,
    error: 'forbidden',
  },
  {
    name: 'an apiKey of 15 kB',
    body: { appId, apiKey: 'a'.repeat(15_000) },
    status: 403,
    error: 'forbidden',
  },
]

for (const { path, body } of calls) {
  describe(`POST ${path}${body.channel ? ` of channel ${body.channel}` : ''}`, () => {
    for (const row of rows) {
      test(`with ${row.name} returns ${row.status} ${row.error}`, async () => {
        // A minute later the count of failures for the IP address has expired.
        app.advance(60)
        expectError(await app.postRaw(path, { ...body, ...row.body }), row.status, row.error)
      })
    }

    test('with credentials outside the body returns 401', async () => {
      const basic = btoa(`${appId}:${apiKey}`)
      for (const headers of [
        { authorization: `Bearer ${apiKey}` },
        { authorization: `Basic ${basic}` },
        { 'x-api-key': apiKey, 'x-app-id': appId },
      ]) {
        const answer = await app.request('POST', `${path}?appId=${appId}&apiKey=${apiKey}`, {
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        })
        expectError(answer, 401, 'unauthorized')
      }
    })

    test('ignores credentials in a prototype', async () => {
      const raw = `{"__proto__":${JSON.stringify(credentials)},${JSON.stringify(body).slice(1)}`
      expectError(await app.postRaw(path, raw), 401, 'unauthorized')
    })
  })
}

describe('without any app', () => {
  for (const [name, value] of [
    ['unset', ''],
    ['empty', '{}'],
  ] as const) {
    test(`APP_CREDENTIALS ${name}: every call returns 403 forbidden (spec 5, rule 2)`, async () => {
      const closed = await createTestApp({ APP_CREDENTIALS: value })
      for (const { path, body } of calls) {
        expectError(await closed.postRaw(path, { ...credentials, ...body }), 403, 'forbidden')
        expectError(await closed.postRaw(path, body), 401, 'unauthorized')
      }
      await closed.close()
    })
  }
})

describe('an app created by command', () => {
  test('is accepted from the next request, beside those of APP_CREDENTIALS, until it is revoked', async () => {
    const { context } = app.app
    const send = (key: string, id = 'mobile') =>
      app.post('/otp/send', { appId: id, apiKey: key, phone: freshPhone() })
    expectError(await send('guess'), 403, 'forbidden')
    const { key } = await issueApp(context.acting(tester), 'mobile')
    expectSuccess(await send(key), ['expiresIn'])
    expectError(await send(apiKey), 403, 'forbidden')
    expectError(await send(key, appId), 403, 'forbidden')
    expectSuccess(await app.post('/otp/send', { phone: freshPhone() }), ['expiresIn'])
    await operate(app, 'app revoke', { appId: 'mobile' })
    expectError(await send(key), 403, 'forbidden')
    const { key: next } = await issueApp(context.acting(tester), 'mobile')
    expect(next).not.toBe(key)
    expectSuccess(await send(next), ['expiresIn'])
    expectError(await send(key), 403, 'forbidden')
  })
})

describe('app credentials and brands', () => {
  test('are independent: any app may send for any approved brand (spec 5, rule 6)', async () => {
    const two = await createTestApp({ APP_CREDENTIALS: JSON.stringify({ a: 'key-a', b: 'key-b' }) })
    await two.brand('other')
    for (const [id, key] of [
      ['a', 'key-a'],
      ['b', 'key-b'],
    ] as const) {
      for (const brandId of ['acme', 'other']) {
        const answer = await two.post('/otp/send', { appId: id, apiKey: key, brandId, phone: freshPhone() })
        expectSuccess(answer, ['expiresIn'])
      }
    }
    expectError(await two.post('/otp/send', { appId: 'a', apiKey: 'key-b' }), 403, 'forbidden')
    await two.close()
  })

  test('are not required for metadata endpoints (spec 5, rule 5)', async () => {
    for (const path of ['/health', '/integrations/catalog', '/platform/brands']) {
      expect((await app.get(path)).status).toBe(200)
    }
  })
})

describe('the appId (D28)', () => {
  const odd = {
    'with:colon': 'key-of-the-colon',
    'with space': 'key-of-the-space',
    läden: 'key-of-the-letter',
    ['x'.repeat(65)]: 'key-of-the-long-one',
  }

  test('of another form works in APP_CREDENTIALS: it sends, and verify returns 400 invalid_app_id', async () => {
    const odds = await createTestApp({ APP_CREDENTIALS: JSON.stringify(odd) })
    for (const [appId, apiKey] of Object.entries(odd)) {
      const phone = freshPhone()
      expectSuccess(await odds.post('/otp/send', { appId, apiKey, phone }), ['expiresIn'])
      const otp = await odds.lastCode(phone)
      expectError(await odds.post('/otp/verify', { appId, apiKey, phone, otp }), 400, 'invalid_app_id')
      expectError(await odds.post('/otp/send', { appId, apiKey: 'wrong', phone }), 403, 'forbidden')
    }
    await odds.close()
  })

  test('may have every visible ASCII character except the colon', async () => {
    const all = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).filter(
      (c) => c !== ':',
    )
    for (const appId of [all.slice(0, 64).join(''), all.slice(64).join(''), '"', '\\', '/', '..']) {
      const { key } = await issueApp(app.app.context.acting(tester), appId)
      const phone = freshPhone()
      expectSuccess(await app.post('/otp/send', { appId, apiKey: key, phone }), ['expiresIn'])
      const otp = await app.lastCode(phone)
      expectSuccess(await app.post('/otp/verify', { appId, apiKey: key, phone, otp }), [])
    }
  })

  test('of another form is rejected by the command', async () => {
    for (const appId of [...Object.keys(odd), '', 'a\nb', 'a\u200bb', 'Ａ']) {
      await expect(issueApp(app.app.context.acting(tester), appId)).rejects.toThrow('visible ASCII')
    }
  })

  test('of another form, and a long apiKey, are rejected without a lookup or hash', async () => {
    const asked: string[] = []
    const hashed: string[] = []
    const counted = (key: string) => {
      hashed.push(key)
      return sha256(key)
    }
    const store = {
      liveKeys: async (appId: string) => {
        asked.push(appId)
        return []
      },
      list: async () => [],
      saveUse: async () => {},
      ownerOf: async () => undefined,
    }
    const apps = createApps(store, counted, new Map(Object.entries(odd)))
    hashed.length = 0
    for (const appId of ['a'.repeat(254_000), 'a:b', 'a b', 'ä', '\0', 'x'.repeat(66)]) {
      expect(await apps.accepts(appId, 'key')).toBe(false)
    }
    expect(await apps.accepts('shop', 'k'.repeat(513))).toBe(false)
    expect(hashed.filter((key) => key !== '')).toEqual([])
    expect(asked).toEqual([])
    expect(await apps.accepts('shop', 'k'.repeat(512))).toBe(false)
    expect(await apps.accepts('läden', odd.läden)).toBe(true)
    expect(asked).toEqual(['shop', 'läden'])
  })
})

describe('failed authentication (D22)', () => {
  test('from one IP address returns 401 or 403 up to 300 times a minute, then 429 rate_limited until the minute ends', async () => {
    const guarded = await createTestApp()
    const guess = () => guarded.post('/otp/verify', { apiKey: 'wrong' })
    const answers = await Promise.all(Array.from({ length: 300 }, guess))
    for (const answer of answers) expectError(answer, 403, 'forbidden')
    guarded.advance(20)
    const refused = await guess()
    expectError(refused, 429, 'rate_limited', 'credentials')
    expect(retryAfter(refused)).toBe(40)
    // Valid credentials are always accepted: a client that guesses from the app's IP address cannot lock out
    // the app.
    expectError(await guarded.post('/otp/verify'), 400, 'validation_error')
    guarded.advance(39)
    expectError(await guess(), 429, 'rate_limited')
    guarded.advance(1)
    expectError(await guess(), 403, 'forbidden')
    await guarded.close()
  })

  test('is counted per client behind a trusted proxy, for all endpoints together', async () => {
    const proxied = await createTestApp({ PORT: '0', TRUSTED_PROXIES: '127.0.0.1' })
    const url = proxied.app.listen()
    const guess = async (client: string, path: string) => {
      const response = await fetch(new URL(path, url), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': `8.8.8.8, ${client}` },
        body: JSON.stringify({ appId, apiKey: 'wrong', channel: 'SMS' }),
      })
      await response.body?.cancel()
      return response.status
    }
    const paths = ['/otp/send', '/otp/resend', '/otp/verify', '/notify', '/messages/status'] as const
    const statuses = await Promise.all(
      Array.from({ length: 320 }, (_, index) => guess('203.0.113.1', paths[index % 5] ?? '/notify')),
    )
    expect(statuses.filter((status) => status === 403)).toHaveLength(300)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
    expect(await guess('203.0.113.2', '/otp/send')).toBe(403)
    const right = await fetch(new URL('/otp/send', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.1' },
      body: JSON.stringify({ ...credentials, brandId: 'acme', phone: freshPhone() }),
    })
    expect(right.status).toBe(200)
    await proxied.close()
  })

  test("is counted for the socket's IP address if no proxy is trusted, for any X-Forwarded-For (D21)", async () => {
    const direct = await createTestApp({ PORT: '0' })
    const url = direct.app.listen()
    const statuses: number[] = []
    for (let count = 0; count < 6; count++) {
      const response = await fetch(new URL('/integrations/requests', url), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': `203.0.113.${count}` },
        body: JSON.stringify(accessRequest),
      })
      await response.body?.cancel()
      statuses.push(response.status)
    }
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429])
    await direct.close()
  })

  test('X-Forwarded-For from a peer outside TRUSTED_PROXIES is logged and counted once an hour', async () => {
    for (const [proxies, expected] of [
      ['', 1],
      ['10.0.0.0/8', 1],
      ['127.0.0.0/8', 0],
    ] as const) {
      const server = await createTestApp({ PORT: '0', TRUSTED_PROXIES: proxies })
      const url = server.app.listen()
      const ask = async () => {
        const headers = { 'x-forwarded-for': '203.0.113.5' }
        await (await fetch(new URL('/health/live', url), { headers })).body?.cancel()
      }
      const warnings = () => server.lines.filter((line) => 'network' in line)
      await fetch(new URL('/health/live', url))
      expect(warnings()).toEqual([])
      for (let count = 0; count < 3; count++) await ask()
      expect(warnings()).toEqual(expected ? [{ network: '127.0.0.0/24' }] : [])
      server.advance(3600)
      await ask()
      expect(warnings()).toHaveLength(2 * expected)
      await server.close()
    }
  })

  test("does not count in the app's global limit", async () => {
    const strict = await createTestApp({ GLOBAL_LIMIT_PER_MINUTE: '2' })
    for (let count = 0; count < 10; count++) {
      expectError(await strict.post('/otp/send', { apiKey: 'wrong' }), 403, 'forbidden')
    }
    expectSuccess(await strict.post('/otp/send', { phone: freshPhone() }), ['expiresIn'])
    expectSuccess(await strict.post('/otp/send', { phone: freshPhone() }), ['expiresIn'])
    expectError(await strict.post('/otp/send', { phone: freshPhone() }), 429, 'rate_limited')
    await strict.close()
  })
})
