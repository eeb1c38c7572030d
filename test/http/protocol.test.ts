import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { requestLog } from '../../src/adapters/log/request-log.ts'
import { newRequestContext } from '../../src/domain/request/request-context.ts'
import { createTestApp, credentials, type TestApp, temporaryFolder } from '../support/app.ts'
import { sqliteOnly, store } from '../support/database.ts'
import {
  createBrokenApp,
  expectError,
  expectNoFault,
  expectSuccess,
  freshPhone,
  logged,
  retryAfter,
} from '../support/rows.ts'

const paths = [
  '/otp/send',
  '/otp/resend',
  '/otp/verify',
  '/notify',
  '/messages/status',
  '/integrations/requests',
] as const
const json = { 'content-type': 'application/json' }

let app: TestApp

beforeAll(async () => {
  app = await createTestApp({ EMAIL_LIMIT_PER_HOUR: '0' })
  await app.brand('store', { displayName: 'The Store', notifyTemplates: ['ORDER_PLACED'] })
})
afterAll(() => app.close())

/** A valid body for each endpoint, to a new phone. */
function rightBody(path: (typeof paths)[number]): Readonly<Record<string, unknown>> {
  switch (path) {
    case '/otp/send':
    case '/otp/resend':
      return { ...credentials, brandId: 'acme', phone: freshPhone() }
    case '/otp/verify':
      return { ...credentials, brandId: 'acme', phone: freshPhone(), otp: '123456' }
    case '/notify':
      return { ...credentials, channel: 'SMS', brandId: 'acme', to: [freshPhone()], message: 'Hello' }
    case '/messages/status':
      return { ...credentials, messageRequestId: crypto.randomUUID() }
    case '/integrations/requests':
      return { companyName: 'x', contactName: 'x', contactEmail: 'x@example.com', brandName: 'x' }
  }
}

describe('a body', () => {
  const rows: readonly { name: string; raw: string | Uint8Array<ArrayBuffer> }[] = [
    { name: 'that is empty', raw: '' },
    { name: 'of blanks', raw: ' \n ' },
    { name: 'that is not JSON', raw: 'hello' },
    { name: 'cut off', raw: '{"appId":"shop","apiKey":"key-of' },
    { name: 'with text after it', raw: '{} {}' },
    { name: 'with a trailing comma', raw: '{"appId":"shop",}' },
    { name: 'of a form post', raw: 'appId=shop&apiKey=key-of-the-shop' },
    { name: 'null', raw: 'null' },
    { name: 'true', raw: 'true' },
    { name: 'a number', raw: '5' },
    { name: 'a string', raw: '"appId"' },
    { name: 'an empty array', raw: '[]' },
    { name: 'nested 1,001 levels deep', raw: `{"a":${'['.repeat(1000)}${']'.repeat(1000)}}` },
    { name: 'of 15,000 open brackets', raw: '['.repeat(15_000) },
    { name: 'an array of a valid body', raw: JSON.stringify([rightBody('/otp/send')]) },
    {
      name: 'that is not UTF-8',
      raw: new Uint8Array([
        ...new TextEncoder().encode('{"appId":"'),
        0xff,
        0xfe,
        ...new TextEncoder().encode('"}'),
      ]),
    },
    { name: 'cut off within a character', raw: new Uint8Array([0x7b, 0x22, 0xc3]) },
    { name: 'in UTF-16', raw: new Uint8Array(Buffer.from('\ufeff{"appId":"shop"}', 'utf16le')) },
  ]
  for (const path of paths) {
    for (const { name, raw } of rows) {
      test(`of POST ${path} ${name} returns 400 validation_error`, async () => {
        expectError(await app.request('POST', path, { headers: json, body: raw }), 400, 'validation_error')
      })
    }

    test(`that is missing for POST ${path} returns 400 validation_error`, async () => {
      expectError(await app.request('POST', path, { headers: json }), 400, 'validation_error')
    })

    for (const type of [
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/plain',
    ]) {
      test(`of POST ${path} that is ${type}, and not JSON, returns 400 validation_error`, async () => {
        const body = type.startsWith('multipart')
          ? '--x\r\nContent-Disposition: form-data; name="appId"\r\n\r\nshop\r\n--x--\r\n'
          : 'appId=shop&apiKey=key-of-the-shop'
        const answer = await app.request('POST', path, { headers: { 'content-type': type }, body })
        expectError(answer, 400, 'validation_error')
      })
    }

    for (const type of [
      'application/json; charset=utf-8',
      'Application/JSON',
      'application/json;charset=UTF-8',
    ]) {
      test(`of POST ${path} that is ${type} is read`, async () => {
        app.advance(3600)
        const answer = await app.request('POST', path, {
          headers: { 'content-type': type },
          body: JSON.stringify(rightBody(path)),
        })
        expectNoFault(answer)
        expect(answer.status).not.toBe(400)
      })
    }
  }

  test('that is compressed returns 400 validation_error, which names Content-Encoding', async () => {
    const body = Bun.gzipSync(JSON.stringify(rightBody('/notify')))
    const headers = { ...json, 'content-encoding': 'gzip' }
    const answer = await app.request('POST', '/notify', { headers, body })
    expectError(answer, 400, 'validation_error')
    expect(answer.body.message).toContain('Content-Encoding')
  })

  test('that cannot be parsed is not repeated in the response', async () => {
    const answer = await app.postRaw('/otp/send', '{"appId":"shop","apiKey":"canary-key-of-body", oops}')
    expectError(answer, 400, 'validation_error')
    expect(JSON.stringify(answer.body)).not.toContain('canary')
  })
})

describe('the size of a body (D4)', () => {
  const limitOf = (path: string) => (path.startsWith('/otp/') ? 16 : 256) * 1024
  const sized = (path: (typeof paths)[number], bytes: number): string => {
    const body = { ...rightBody(path), padding: '' }
    return JSON.stringify({ ...body, padding: 'p'.repeat(bytes - JSON.stringify(body).length) })
  }

  for (const path of paths) {
    const limit = limitOf(path)
    test(`of exactly ${limit / 1024} KiB is accepted by POST ${path}`, async () => {
      app.advance(3600)
      const answer = await app.postRaw(path, sized(path, limit))
      expectNoFault(answer)
      expect(answer.status).not.toBe(413)
    })

    test(`of one byte more returns 413 validation_error from POST ${path}`, async () => {
      expectError(await app.postRaw(path, sized(path, limit + 1)), 413, 'validation_error')
    })
  }

  test('is counted in bytes, not characters', async () => {
    const padding = '\u00e9'.repeat(limitOf('/otp/send') / 2)
    const answer = await app.postRaw('/otp/send', { ...rightBody('/otp/send'), padding })
    expectError(answer, 413, 'validation_error')
  })

  test('is limited for a chunked body without Content-Length', async () => {
    const piece = new TextEncoder().encode(' '.repeat(65_536))
    const body = new ReadableStream({
      start(controller) {
        for (let count = 0; count < 5; count++) controller.enqueue(piece)
        controller.close()
      },
    })
    expectError(await app.request('POST', '/notify', { headers: json, body }), 413, 'validation_error')
  })

  test('is checked before the content of the body', async () => {
    expectError(await app.postRaw('/otp/send', 'x'.repeat(limitOf('/otp/send') + 1)), 413, 'validation_error')
  })

  test('is limited over all connections: beyond 64 MiB 503 unavailable, and codes have room at 48 MiB', async () => {
    const stalled: ReadableStreamDefaultController[] = []
    const stall = (path: string) => {
      const body = new ReadableStream({ start: (controller) => void stalled.push(controller) })
      return app.request('POST', path, { headers: json, body })
    }
    const expectBusy = async (path: (typeof paths)[number], size: number) => {
      const busy = await app.postRaw(path, sized(path, size))
      expectError(busy, 503, 'unavailable')
      expect(retryAfter(busy)).toBe(1)
    }
    // Each has no Content-Length here, so it counts as the limit of its path.
    const answers = Array.from({ length: 192 }, () => stall('/notify'))
    await expectBusy('/notify', 300)
    expectSuccess(await app.postRaw('/otp/send', rightBody('/otp/send')), ['expiresIn'])
    answers.push(...Array.from({ length: 1024 }, () => stall('/otp/send')))
    await expectBusy('/otp/send', 300)
    for (const each of stalled) each.close()
    for (const answer of await Promise.all(answers)) expectError(answer, 400, 'validation_error')
    expectNoFault(await app.postRaw('/notify', sized('/notify', limitOf('/notify'))))
  })
})

describe('a route', () => {
  const unknown = [
    ['GET', '/nothing'],
    ['POST', '/nothing'],
    ['POST', '/otp'],
    ['POST', '/otp/cancel'],
    ['DELETE', '/otp/send/1'],
    ['GET', '/__proto__'],
    ['GET', '/constructor'],
    ['GET', '/%00'],
    ['GET', '/%E0%A4%A'],
    ['GET', '/..%2f..%2fetc%2fpasswd'],
  ] as const
  for (const [method, path] of unknown) {
    test(`${method} ${path} returns 404 not_found`, async () => {
      const init = method === 'POST' ? { headers: json, body: JSON.stringify(credentials) } : {}
      expectError(await app.request(method, path, init), 404, 'not_found')
    })
  }

  const known: readonly { path: string; method: 'GET' | 'POST' }[] = [
    ...paths.map((path) => ({ path, method: 'POST' as const })),
    { path: '/', method: 'GET' },
    { path: '/health', method: 'GET' },
    { path: '/integrations/catalog', method: 'GET' },
    { path: '/platform/brands', method: 'GET' },
  ]
  for (const { path, method } of known) {
    for (const wrong of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((other) => other !== method)) {
      test(`${wrong} ${path} returns 405 method_not_allowed`, async () => {
        const init = wrong === 'GET' ? {} : { headers: json, body: JSON.stringify(credentials) }
        const answer = await app.request(wrong, path, init)
        expectError(answer, 405, 'method_not_allowed')
        expect(answer.headers.get('allow')).toContain(method)
      })
    }
  }

  test('accepts a query string and ignores it', async () => {
    const answer = await app.request('POST', '/otp/send?brandId=acme', {
      headers: json,
      body: JSON.stringify({ ...credentials, phone: freshPhone() }),
    })
    expectError(answer, 400, 'brand_id_required')
  })
})

describe('on a socket', () => {
  let server: TestApp
  let port: number

  beforeAll(async () => {
    server = await createTestApp({ PORT: '0' })
    port = Number(server.app.listen().port)
  })
  afterAll(() => server.close())

  /** The response to these bytes, until the connection ends. */
  async function answerTo(...lines: readonly string[]): Promise<string> {
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    let answer = ''
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        data: (_, bytes) => {
          answer += bytes
        },
        close: () => resolve(),
      },
    })
    socket.write(lines.join('\r\n'))
    await ended
    return answer
  }

  const host = 'Host: localhost'
  const head = ['POST /otp/send HTTP/1.1', host, 'Content-Type: application/json']

  test.each(['TRACE', 'OPTIONS'])('%s returns 405, and the response repeats no input', async (method) => {
    const answer = await answerTo(
      `${method} /otp/send HTTP/1.1`,
      host,
      'X-Own: canary',
      'Connection: close',
      '',
      '',
    )
    expect(answer).toStartWith('HTTP/1.1 405 ')
    expect(answer).not.toContain('canary')
  })

  test.each<[string, readonly string[]]>([
    [
      'both Content-Length and Transfer-Encoding',
      ['Content-Length: 4', 'Transfer-Encoding: chunked', '', '0', '', ''],
    ],
    ['two different Content-Lengths', ['Content-Length: 2', 'Content-Length: 30', '', '{}']],
    ['an invalid Content-Length', ['Content-Length: +2', '', '{}']],
    ['an unknown Transfer-Encoding', ['Transfer-Encoding: xchunked', '', '2', '{}', '0', '', '']],
    [
      'chunked before another Transfer-Encoding',
      ['Transfer-Encoding: chunked, to', '', '2', '{}', '0', '', ''],
    ],
    ['a space before the colon', ['Transfer-Encoding : chunked', '', '2', '{}', '0', '', '']],
    ['a carriage return in a header', ['X-Own: a\rTransfer-Encoding: chunked', '', '2', '{}', '0', '', '']],
  ])('a request with %s returns 400 and closes the connection', async (_, rest) => {
    const smuggled = ['GET /platform/brands HTTP/1.1', host, '', '']
    const answer = await answerTo(...head, ...rest.slice(0, -1), `${rest.at(-1)}${smuggled.join('\r\n')}`)
    expect(answer).toStartWith('HTTP/1.1 400 ')
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })
})

describe('the request id', () => {
  test('is new for each request, and never supplied by the caller', async () => {
    const ids = new Set<string>()
    for (let count = 0; count < 20; count++) {
      const answer = await app.request('POST', '/otp/verify', {
        headers: { ...json, 'x-request-id': 'mine' },
        body: JSON.stringify({ ...rightBody('/otp/verify'), requestId: 'mine' }),
      })
      expectError(answer, 404, 'not_found')
      ids.add(answer.body.requestId)
    }
    expect(ids.size).toBe(20)
  })

  test('is in the log line of its request', async () => {
    const answers = await Promise.all([
      app.post('/otp/send', { phone: freshPhone() }),
      app.post('/otp/send', { apiKey: 'wrong' }),
      app.get('/nothing'),
    ])
    await logged()
    for (const { body } of answers) {
      const lines = app.lines.filter((line) => 'requestId' in line && line.requestId === body.requestId)
      expect(lines).toHaveLength(1)
    }
  })

  test('is in every metadata response', async () => {
    for (const path of ['/health', '/integrations/catalog', '/platform/brands']) {
      const answer = await app.get(path)
      expect(answer.body.requestId).toMatch(/^[0-9a-f-]{36}$/)
      expect(answer.headers.get('x-request-id')).toBe(answer.body.requestId)
    }
  })
})

describe('Retry-After', () => {
  test('of a cooldown is when the same request is accepted', async () => {
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    app.advance(9.5)
    const refused = await app.post('/otp/send', { phone })
    expectError(refused, 429, 'cooldown_active')
    expect(retryAfter(refused)).toBe(21)
    app.advance(retryAfter(refused))
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
  })

  test('is only on 429 responses', async () => {
    const answers = [
      await app.post('/otp/send', { phone: freshPhone() }),
      await app.post('/otp/send', {}),
      await app.post('/otp/send', { apiKey: 'wrong' }),
      await app.get('/nothing'),
    ]
    for (const answer of answers) expect(answer.headers.get('retry-after')).toBeNull()
  })
})

describe('an unexpected error', () => {
  for (const path of paths) {
    test(`in POST ${path} returns 500 internal_error, with the cause in the log only`, async () => {
      const broken = await createBrokenApp()
      const answer = await broken.postRaw(path, rightBody(path))
      expectError(answer, 500, 'internal_error')
      expect(JSON.stringify(answer.body)).not.toMatch(/table|relation|sqlite|select|insert|\.ts|at /i)
      await logged()
      expect(textOf(broken.lines)).toMatch(/no such table|relation .* does not exist/)
      await broken.close()
    })
  }

  test('in GET /platform/brands returns 500 internal_error', async () => {
    const broken = await createBrokenApp()
    expectError(await broken.get('/platform/brands'), 500, 'internal_error')
    await broken.close()
  })
})

describe('secrets', () => {
  test('are not logged with an unexpected error', async () => {
    const broken = await createBrokenApp()
    const phone = '447700900123'
    const email = 'canary.person@example.com'
    const message = 'canary message text'
    await broken.post('/otp/send', { phone, loginId: message })
    await broken.post('/otp/send', { channel: 'EMAIL', email })
    await broken.post('/otp/verify', { phone, otp: '918273' })
    await broken.post('/notify', { channel: 'SMS', brandId: 'acme', to: [phone], message })
    await broken.post('/notify', { channel: 'EMAIL', to: [email], subject: message, html: message })
    await logged()
    const log = textOf(broken.lines)
    expect(broken.lines.length).toBeGreaterThanOrEqual(5)
    for (const secret of [credentials.apiKey, phone, email, message, '918273'])
      expect(log).not.toContain(secret)
    await broken.close()
  })
})

describe('hostile input never causes a server error', () => {
  const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const values: readonly { name: string; json: string }[] = [
    ...[
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      '\u0000',
      'a\u0000b',
      '\ud800',
      'a\udc00b',
      '\ud83d\ude80\ud83d\ude80',
      '\u202e\u200b\ufeff',
      '\u0130\u0131\u00df',
      'e\u0301'.repeat(3000),
      'x'.repeat(10_000),
      '5'.repeat(10_000),
      `a@${'b.'.repeat(5000)}c`,
      ' ',
      '\r\n',
      "'; DROP TABLE otps; --",
      '{{7*7}}%s%n$&',
      '<script>alert(1)</script>',
    ].map((value) => ({ name: JSON.stringify(value).slice(0, 30), json: JSON.stringify(value) })),
    ...[null, true, false, 0, -1, 1.5, 1e308, [], {}, [[]], [null], { length: 3 }, { toString: 1 }].map(
      (value) => ({ name: JSON.stringify(value), json: JSON.stringify(value) }),
    ),
    { name: '1e999', json: '1e999' },
    { name: '-0', json: '-0' },
    { name: 'a number of many digits', json: '9'.repeat(400) },
    { name: '__proto__ as a key', json: '{"__proto__":{"a":1},"constructor":{"prototype":{}}}' },
    { name: '1,000 arrays in one another', json: deep(1000) },
    { name: 'an array of 10,000', json: `[${'"a",'.repeat(9999)}"a"]` },
    { name: 'an array with lone surrogates', json: '["\\ud800","\\u0000"]' },
  ]
  const order = { customerName: 'Jane', orderId: 'A1', orderDate: '2026-01-01' }
  const sms = { ...credentials, channel: 'SMS', brandId: 'store', to: [freshPhone()] }
  const mail = { ...credentials, channel: 'EMAIL', to: ['a@example.com'], subject: 'x' }
  const bodies: readonly (readonly [name: string, path: string, body: Readonly<Record<string, unknown>>])[] =
    [
      ['a send', '/otp/send', { ...rightBody('/otp/send'), channel: 'SMS', loginId: 'x', businessName: 'x' }],
      [
        'a send by mail',
        '/otp/send',
        { ...credentials, brandId: 'acme', channel: 'EMAIL', email: 'a@example.com', businessName: 'x' },
      ],
      ['a resend', '/otp/resend', rightBody('/otp/resend')],
      ['a verify', '/otp/verify', rightBody('/otp/verify')],
      [
        'a verify of a mailbox',
        '/otp/verify',
        { ...credentials, brandId: 'acme', email: 'a@example.com', otp: '123456' },
      ],
      ['a legacy SMS', '/notify', { ...sms, message: 'x' }],
      ['a template SMS', '/notify', { ...sms, templateKey: 'ORDER_PLACED', variables: order }],
      ['an HTML mail', '/notify', { ...mail, html: 'x' }],
      ['a template mail', '/notify', { ...mail, template: '{{a}}', data: { a: 'b' } }],
      [
        'an integration request',
        '/integrations/requests',
        {
          ...rightBody('/integrations/requests'),
          channels: ['SMS'],
          website: 'https://example.com',
          useCase: 'x',
        },
      ],
    ]
  /** A value nested in a field, given the JSON that is inserted. */
  type Inner = (json: string) => string
  type Body = Readonly<Record<string, unknown>>
  const nested: readonly (readonly [name: string, body: Body, field: string, inner: Inner])[] = [
    ...[...Object.keys(order), 'businessName', '__proto__', 'constructor'].map(
      (name) =>
        [
          `the variable ${name}`,
          { ...sms, templateKey: 'ORDER_PLACED' },
          'variables',
          (json: string) => `${JSON.stringify(order).slice(0, -1)},"${name}":${json}}`,
        ] as const,
    ),
    [
      'businessName in the place of brandId',
      { ...sms, brandId: undefined, message: 'x' },
      'variables',
      (json) => `{"businessName":${json}}`,
    ],
    ['a recipient of an SMS', { ...sms, message: 'x' }, 'to', (json) => `[${json}]`],
    ['a recipient of a mail', { ...mail, html: 'x' }, 'to', (json) => `[${json}]`],
    ...['a', '__proto__', 'constructor', 'rest'].map(
      (key) =>
        [
          `the data ${key} of a mail`,
          { ...mail, template: '{{a}}' },
          'data',
          (json: string) => `{"a":"b","${key}":${json}}`,
        ] as const,
    ),
    [
      'a name in the data of a mail',
      { ...mail, template: 'x' },
      'data',
      (json) => `{${json.startsWith('"') ? json : JSON.stringify(json)}:"b"}`,
    ],
    ['a placeholder of a mail', mail, 'template', (json) => JSON.stringify(`{{${json.slice(0, 9000)}}}`)],
  ]
  const places: readonly (readonly [name: string, path: string, body: Body, field: string, inner: Inner])[] =
    [
      ...bodies.flatMap(([name, path, body]) =>
        Object.keys(body).map(
          (field) => [`${name} with anything as ${field}`, path, body, field, String] as const,
        ),
      ),
      ...nested.map(([name, ...rest]) => [`anything as ${name}`, '/notify', ...rest] as const),
    ]
  test.each(places)('%s', async (_, path, body, field, inner) => {
    // A day later all limits of earlier rows have reset.
    app.advance(86_400)
    const raws = values.map(({ json }) => replaced(body, field, inner(json)))
    for (const answer of await Promise.all(raws.map((raw) => app.postRaw(path, raw)))) expectNoFault(answer)
  })

  for (const path of paths) {
    test(`deeply nested JSON in POST ${path}`, async () => {
      for (const raw of [
        deep(100_000),
        `{"a":${deep(100_000)}}`,
        '{"a":'.repeat(50_000),
        '['.repeat(200_000),
      ]) {
        expectNoFault(await app.postRaw(path, raw))
      }
    })

    test(`a byte order mark before the body of POST ${path}`, async () => {
      app.advance(86_400)
      expectNoFault(await app.postRaw(path, `\ufeff${JSON.stringify(rightBody(path))}`))
    })
  }

  test('a repeated key counts once', async () => {
    app.advance(86_400)
    const [first, last] = [freshPhone(), freshPhone()]
    const raw = `${JSON.stringify({ ...rightBody('/otp/send'), phone: first }).slice(0, -1)},"phone":"${last}"}`
    expectNoFault(await app.postRaw('/otp/send', raw))
    expect((await app.outbox(first)).length + (await app.outbox(last)).length).toBeLessThanOrEqual(1)
  })

  test('an escaped key is the same key', async () => {
    const raw = JSON.stringify(rightBody('/otp/send')).replace('"appId"', '"\\u0061ppId"')
    expectSuccess(await app.postRaw('/otp/send', raw), ['expiresIn'])
  })

  test('brands named like object properties are unknown', async () => {
    for (const brandId of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']) {
      const answer = await app.post('/otp/send', { brandId, phone: freshPhone() })
      expectError(answer, 403, 'brand_not_approved')
      const businessName = {
        channel: 'SMS',
        to: [freshPhone()],
        message: 'x',
        variables: { businessName: brandId },
      }
      expectError(await app.post('/notify', businessName), 403, 'brand_not_approved')
    }
  })

  test('the service still works afterwards', async () => {
    const phone = freshPhone()
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
    expectSuccess(await app.post('/otp/verify', { phone, otp: await app.lastCode(phone) }))
    expect(({} as { a?: unknown }).a).toBeUndefined()
  })
})

/** A body as JSON with raw JSON for one field, which JSON.stringify might not produce. */
function replaced(body: Readonly<Record<string, unknown>>, field: string, value: string): string {
  const rest = Object.entries(body).filter(([name]) => name !== field)
  return `${JSON.stringify(Object.fromEntries(rest)).slice(0, -1)},${JSON.stringify(field)}:${value}}`
}

/** All text of log lines, including errors with their stacks and causes. */
function textOf(lines: readonly object[]): string {
  return JSON.stringify(lines, (_, value: unknown) =>
    value instanceof Error
      ? { ...value, name: value.name, message: value.message, stack: value.stack, cause: value.cause }
      : value,
  )
}

describe('the log has', () => {
  test('the status, app and masked recipient of each request', async () => {
    const answers = [
      await app.post('/otp/send', { phone: freshPhone() }),
      await app.post('/otp/verify', { phone: freshPhone(), otp: '123456' }),
      await app.post('/otp/send', { apiKey: 'wrong', phone: freshPhone() }),
    ]
    await logged()
    const lines = answers.map(({ body }) =>
      app.lines.find((line) => 'requestId' in line && line.requestId === body.requestId),
    )
    const told = { app: 'shop', brand: 'acme', durationMs: expect.any(Number) }
    const recipient = expect.stringMatching(/^\d{0,4}\*+\d{0,4}$/)
    expect(lines[0]).toMatchObject({ ...told, route: '/otp/send', status: 200, recipient })
    expect(lines[1]).toMatchObject({ ...told, route: '/otp/verify', status: 404, error: 'not_found' })
    expect(lines[2]).toMatchObject({ route: '/otp/send', status: 403, error: 'forbidden' })
    expect(JSON.stringify(lines[2])).not.toContain('"app":')
  })

  test("rejected credentials with the client's IP address, which other lines omit", async () => {
    const app = await createTestApp({ PORT: '0', METRICS_TOKEN: 'a'.repeat(32) })
    const url = app.app.listen()
    const post = (path: string, body: object) =>
      fetch(new URL(path, url), { method: 'POST', headers: json, body: JSON.stringify(body) })
    await post('/otp/send', { appId: 'shop' })
    await post('/otp/verify', { appId: 'shop', apiKey: 'wrong' })
    await fetch(new URL('/metrics', url))
    await post('/otp/send', { ...credentials, brandId: 'nobody', phone: '12025550143' })
    await post('/otp/send', { ...credentials, brandId: 'acme', phone: '12025550143' })
    await logged()
    expect(app.lines).toMatchObject([
      { error: 'unauthorized', clientIp: '127.0.0.1' },
      { error: 'forbidden', clientIp: '127.0.0.1' },
      { route: '/metrics', error: 'unauthorized', clientIp: '127.0.0.1' },
      { error: 'brand_not_approved', clientIp: undefined },
      { status: 200, clientIp: undefined },
    ])
    await app.close()
  })

  test("rejected console pages with the client's IP address", () => {
    const lines: unknown[] = []
    const log = (fields: object, message: string) => void lines.push({ ...fields, message })
    const listener = requestLog({ info: log, warn: log, error: log })
    const context = newRequestContext({ requestId: 'r', at: 0, clientIp: '192.0.2.1' })
    for (const status of [200, 303, 403]) {
      const ended = { context, method: 'POST', route: '/admin/login', status, durationMs: 1 }
      listener({ ...ended, failure: undefined, error: undefined })
    }
    expect(lines).toMatchObject([
      { status: 200, message: 'ok', clientIp: undefined },
      { status: 303, message: 'ok', clientIp: undefined },
      { status: 403, message: 'rejected', clientIp: '192.0.2.1' },
    ])
  })

  test('the name of a rejected brand', async () => {
    const app = await createTestApp()
    await app.brand('old', { status: 'suspended' })
    await app.post('/otp/send', { brandId: 'old', phone: '12025550143' })
    await app.post('/notify', { channel: 'SMS', brandId: 'old', to: ['12025550143'], message: 'Hi' })
    await logged()
    expect(app.lines).toMatchObject([
      { error: 'brand_suspended', brand: 'old' },
      { error: 'brand_suspended', brand: 'old' },
    ])
    await app.close()
  })

  test('the error of a provider that throws', async () => {
    const app = await createTestApp()
    await app.database.loseTables('outbox')
    const answer = await app.post('/otp/send', { phone: '12025550143' })
    expectError(answer, 502, 'sms_failed')
    await logged()
    expect(app.lines).toMatchObject([
      {
        error: 'sms_failed',
        attempts: [{ outcome: 'unknown' }],
        err: { code: store === 'sqlite' ? 'SQLITE_ERROR' : '42P01' },
      },
    ])
    await app.close()
  })

  sqliteOnly('a new secret key for an existing database is created and logged', async () => {
    const folder = temporaryFolder()
    const env = { DATABASE_URL: `file:${join(folder.path, 'otpost.db')}` }
    const first = await createTestApp(env)
    expect(first.lines).toEqual([])
    await first.close()
    rmSync(join(folder.path, 'otpost.db.key'))
    const second = await createTestApp(env)
    expect(second.lines).toMatchObject([{ file: join(folder.path, 'otpost.db.key') }])
    await second.close()
    folder.remove()
  })
})
