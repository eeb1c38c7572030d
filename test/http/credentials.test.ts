import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sha256 } from '../../src/adapters/crypto/secrets.ts'
import { createApps } from '../../src/adapters/store/keys.ts'
import { issueApp, rotateApp } from '../../src/domain/operator/apps.ts'
import { createTestApp, credentials, type TestApp, verdict } from '../support/app.ts'
import { accessRequest } from '../support/calls.ts'
import { operate, tester } from '../support/operator.ts'
import { expectError, expectSuccess, freshPhone, retryAfter } from '../support/rows.ts'

let app: TestApp

beforeAll(async () => {
  const others = { both: 'key-of-both', colons: 'a:b::', utf8: 'ключ €', 'with:colon': 'key' }
  app = await createTestApp({ APP_CREDENTIALS: JSON.stringify({ [appId]: apiKey, ...others }) })
  const ports = app.app.context.acting(tester)
  for (const id of ['web', 'other', 'revoked', 'both'] as const) keys[id] = (await issueApp(ports, id)).key
  keys.second = await rotateApp(ports, 'web')
  await operate(app, 'app revoke', { appId: 'revoked' })
})
afterAll(() => app.close())

/** A valid request to each protected endpoint, without credentials, and what it returns with them. */
const calls: readonly { path: string; body: Readonly<Record<string, unknown>>; accepted: string }[] = [
  { path: '/otp/send', body: { brandId: 'acme', phone: '15559400001' }, accepted: '200' },
  { path: '/otp/resend', body: { brandId: 'acme', phone: '15559400001' }, accepted: '200' },
  {
    path: '/otp/verify',
    body: { brandId: 'acme', phone: '15559400001', otp: '123456' },
    accepted: '404 not_found',
  },
  {
    path: '/notify',
    body: { channel: 'SMS', brandId: 'acme', to: ['15559400001'], message: 'Hello' },
    accepted: '200',
  },
  {
    path: '/notify',
    body: { channel: 'EMAIL', to: ['a@example.com'], subject: 'Hello', html: '<p>Hello</p>' },
    accepted: '200',
  },
  { path: '/messages/status', body: { messageRequestId: crypto.randomUUID() }, accepted: '404 not_found' },
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

const base64 = (text: string) => Buffer.from(text).toString('base64')
const basic = (id: string, key: string) => `Basic ${base64(`${id}:${key}`)}`

/** Issued before the tests. `both` is of an app in APP_CREDENTIALS. */
const keys = { web: '', second: '', other: '', revoked: '', both: '' }

/** Design D49. Without `expected`, the credentials are accepted. */
const headerRows: readonly {
  name: string
  header: () => string
  body?: () => Readonly<Record<string, unknown>>
  expected?: '401 unauthorized' | '403 forbidden'
}[] = [
  ...[
    { name: 'a Bearer key', header: () => `Bearer ${keys.web}` },
    { name: 'the second Bearer key of an app', header: () => `Bearer ${keys.second}` },
    { name: 'bearer in another case, and spaces', header: () => `bEARER   ${keys.web} ` },
    { name: 'Basic of an issued key', header: () => basic('web', keys.web) },
    { name: 'Basic of APP_CREDENTIALS', header: () => basic(appId, apiKey) },
    { name: 'basic in another case', header: () => basic(appId, apiKey).replace('Basic', 'bASIC') },
    { name: 'Basic of a key with colons', header: () => basic('colons', 'a:b::') },
    { name: 'Basic of a key in UTF-8', header: () => basic('utf8', 'ключ €') },
  ],
  ...[
    { name: 'a Bearer key and its appId', body: () => ({ appId: 'web' }) },
    { name: 'a Bearer key and itself', body: () => ({ apiKey: keys.web }) },
    { name: 'a Bearer key and both', body: () => ({ appId: 'web', apiKey: keys.web }) },
    { name: 'a Bearer key and null in the body', body: () => ({ appId: null, apiKey: null }) },
  ].map((row) => ({ ...row, header: () => `Bearer ${keys.web}` })),
  { name: 'Basic and the same', header: () => basic(appId, apiKey), body: () => ({ appId, apiKey }) },
  { name: 'Basic and null', header: () => basic(appId, apiKey), body: () => ({ appId: null, apiKey: null }) },
  ...[
    { name: 'a Bearer key and another appId', body: () => ({ appId }) },
    { name: 'a Bearer key and an appId in another case', body: () => ({ appId: 'Web' }) },
    { name: 'a Bearer key and another key of its app', body: () => ({ apiKey: keys.second }) },
    { name: 'a Bearer key and valid credentials of another app', body: () => ({ appId, apiKey }) },
    { name: 'a Bearer key and an empty appId', body: () => ({ appId: '' }) },
    { name: 'a Bearer key and an empty apiKey', body: () => ({ apiKey: '' }) },
    { name: 'a Bearer key and a number', body: () => ({ appId: 7 }) },
    { name: 'a Bearer key and an array of its appId', body: () => ({ appId: ['web'] }) },
  ].map((row) => ({ ...row, header: () => `Bearer ${keys.web}`, expected: '403 forbidden' as const })),
  ...[
    { name: 'Basic and another appId', body: () => ({ appId: 'web' }) },
    { name: 'Basic and another apiKey', body: () => ({ apiKey: 'wrong' }) },
    {
      name: 'Basic and valid credentials of another app',
      body: () => ({ appId: 'web', apiKey: keys.web }),
    },
    { name: 'Basic and an empty apiKey', body: () => ({ apiKey: '' }) },
  ].map((row) => ({ ...row, header: () => basic(appId, apiKey), expected: '403 forbidden' as const })),
  ...[
    { name: 'an unknown Bearer key', header: () => 'Bearer otp_live_unknown' },
    { name: 'a part of a Bearer key', header: () => `Bearer ${keys.web.slice(0, -1)}` },
    { name: 'a revoked Bearer key', header: () => `Bearer ${keys.revoked}` },
    { name: 'a Bearer key of APP_CREDENTIALS', header: () => `Bearer ${apiKey}` },
    { name: 'an issued Bearer key of an app in APP_CREDENTIALS', header: () => `Bearer ${keys.both}` },
    { name: 'a Bearer key of 4,000 characters', header: () => `Bearer ${'a'.repeat(4000)}` },
    { name: 'the hash of a key as Bearer key', header: () => `Bearer ${sha256(keys.web)}` },
    { name: 'Basic of a wrong key', header: () => basic(appId, 'wrong') },
    { name: 'Basic of the key of another app', header: () => basic(appId, keys.web) },
    { name: 'Basic of a revoked key', header: () => basic('revoked', keys.revoked) },
    { name: 'Basic of an unknown app', header: () => basic('nobody', apiKey) },
    { name: 'Basic of an app with a colon', header: () => basic('with:colon', 'key') },
    { name: 'Basic of app __proto__', header: () => basic('__proto__', apiKey) },
    { name: 'a wrong Bearer key and valid credentials', header: () => 'Bearer x', body: () => credentials },
    { name: 'wrong Basic and valid credentials', header: () => basic(appId, 'x'), body: () => credentials },
  ].map((row) => ({ ...row, expected: '403 forbidden' as const })),
  ...[
    { name: 'an empty header', header: () => '' },
    { name: 'a header without a scheme', header: () => keys.web },
    { name: 'another scheme', header: () => `ApiKey ${keys.web}` },
    { name: 'another scheme and valid credentials', header: () => 'Digest x', body: () => credentials },
    { name: 'no Bearer key', header: () => 'Bearer' },
    { name: 'two Bearer keys', header: () => `Bearer ${keys.web}, Bearer ${keys.web}` },
    { name: 'a Bearer key with a space', header: () => `Bearer ${keys.web} x` },
    { name: 'a header of 6 KiB and more', header: () => `Bearer ${'a'.repeat(6138)}` },
    { name: 'Basic without base64', header: () => `Basic ${appId}:${apiKey}` },
    { name: 'Basic without a colon', header: () => `Basic ${base64(apiKey)}` },
    { name: 'Basic without an appId', header: () => basic('', apiKey) },
    { name: 'Basic without a key', header: () => basic(appId, '') },
    {
      name: 'Basic in Latin-1',
      header: () => `Basic ${Buffer.from('läden:k', 'latin1').toString('base64')}`,
    },
    { name: 'Basic with a line break', header: () => basic(appId, `${apiKey}\n`) },
  ].map((row) => ({ ...row, expected: '401 unauthorized' as const })),
]

for (const { path, body, accepted } of calls) {
  describe(`POST ${path}${body.channel ? ` of channel ${body.channel}` : ''}`, () => {
    for (const row of rows) {
      test(`with ${row.name} returns ${row.status} ${row.error}`, async () => {
        // A minute later the count of failures for the IP address has expired.
        app.advance(60)
        expectError(await app.postRaw(path, { ...body, ...row.body }), row.status, row.error)
      })
    }

    for (const { name, header, expected, ...row } of headerRows) {
      test(`with ${name} returns ${expected ?? accepted}`, async () => {
        app.advance(60)
        const phone = freshPhone()
        const fresh = { ...(body.phone ? { phone } : {}), ...(body.channel === 'SMS' ? { to: [phone] } : {}) }
        const answer = await app.request('POST', path, {
          headers: { 'content-type': 'application/json', authorization: header() },
          body: JSON.stringify({ ...body, ...fresh, ...row.body?.() }),
        })
        expect(verdict(answer)).toBe(expected ?? accepted)
        expect(answer.headers.get('www-authenticate')).toBe(answer.status === 401 ? 'Bearer' : null)
      })
    }

    test('with a malformed header and a body that is no object returns 400', async () => {
      const headers = { 'content-type': 'application/json', authorization: 'Digest x' }
      expectError(await app.request('POST', path, { headers, body: '[]' }), 400, 'validation_error')
    })

    test('with credentials in other headers or in the URL returns 401', async () => {
      const answer = await app.request('POST', `${path}?appId=${appId}&apiKey=${apiKey}`, {
        headers: { 'content-type': 'application/json', 'x-api-key': apiKey, 'x-app-id': appId },
        body: JSON.stringify(body),
      })
      expectError(answer, 401, 'unauthorized')
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
      liveOwner: async (keySha256: string) => {
        asked.push(keySha256)
        return undefined
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
    expect(await apps.appOf('k'.repeat(513), '192.0.2.1')).toBeUndefined()
    expect(hashed.filter((key) => key !== '')).toEqual([])
    expect(asked).toEqual([])
    expect(await apps.accepts('shop', 'k'.repeat(512))).toBe(false)
    expect(await apps.accepts('läden', odd.läden)).toBe(true)
    expect(await apps.appOf('key', '192.0.2.1')).toBeUndefined()
    expect(asked).toEqual(['shop', 'läden', sha256('key')])
  })
})

describe('a header with credentials (D49)', () => {
  const call = (of: TestApp, authorization: string, path = '/otp/verify', fields: object = {}) =>
    of.request('POST', path, {
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify({ brandId: 'acme', ...fields }),
    })

  test('names the app in the trace and the last use of its key, and leaves no secret anywhere', async () => {
    const own = await createTestApp()
    const { key } = await issueApp(own.app.context.acting(tester), 'mobile')
    for (const header of [`Bearer ${key}`, basic('mobile', key), `Digest ${key}`, `Bearer ${key}x`]) {
      const answer = await call(own, header, '/otp/send', { phone: freshPhone() })
      if (answer.status === 200) expect((await own.eventsOf(answer)).trace?.app).toBe('mobile')
      expect(JSON.stringify(answer.body)).not.toContain(key)
    }
    const [app] = await own.app.context.apps.list()
    expect(app?.keys[0]?.lastUsedAt).toBe(own.clock.now)
    const stored = (await own.database.values()).map(String).join('\n') + JSON.stringify(own.lines)
    expect(stored).not.toContain(key)
    expect(stored).not.toContain(base64(`mobile:${key}`))
    await own.close()
  })

  test('is rejected from the next request after the key is revoked', async () => {
    const own = await createTestApp()
    const { key } = await issueApp(own.app.context.acting(tester), 'mobile')
    for (const header of [`Bearer ${key}`, basic('mobile', key)])
      expectError(await call(own, header), 400, 'validation_error')
    await operate(own, 'app revoke', { appId: 'mobile' })
    for (const header of [`Bearer ${key}`, basic('mobile', key)])
      expectError(await call(own, header), 403, 'forbidden')
    await own.close()
  })

  test('has the scope of its app', async () => {
    const own = await createTestApp()
    const { key } = await issueApp(own.app.context.acting(tester), 'news', { operations: ['notify'] })
    const answer = await call(own, `Bearer ${key}`, '/otp/send', { phone: freshPhone() })
    expectError(answer, 403, 'forbidden')
    expect(answer.body.message).toStartWith('This app may not')
    await own.close()
  })

  test('counts as a failure if it is wrong, and is never limited if it is right', async () => {
    const own = await createTestApp()
    const { key } = await issueApp(own.app.context.acting(tester), 'mobile')
    const wrong = [
      ['Bearer wrong', 403],
      [basic('mobile', 'wrong'), 403],
      ['Digest x', 401],
    ] as const
    for (let count = 0; count < 100; count++)
      for (const [header, status] of wrong) expect((await call(own, header)).status).toBe(status)
    for (const [header] of wrong) expectError(await call(own, header), 429, 'rate_limited', 'credentials')
    for (const header of [`Bearer ${key}`, basic('mobile', key), basic(appId, apiKey)])
      expectError(await call(own, header), 400, 'validation_error')
    await own.close()
  })

  test('is ignored where no credentials are required', async () => {
    for (const authorization of ['Digest x', 'Bearer wrong', `Bearer ${keys.web}`]) {
      expectError(await call(app, authorization, '/integrations/requests'), 400, 'validation_error')
      const headers = { authorization }
      expect((await app.request('GET', '/health', { headers })).status).toBe(200)
    }
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
