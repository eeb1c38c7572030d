import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import fc from 'fast-check'
import { checkFile, outcomeName } from '../../src/adapters/sms/file/check.ts'
import { requestOf, type Values } from '../../src/adapters/sms/file/encode.ts'
import { fileProvider } from '../../src/adapters/sms/file/file-provider.ts'
import type { ProviderFile, Vector } from '../../src/adapters/sms/file/format.ts'
import { shippedFiles } from '../../src/adapters/sms/file/shipped/index.ts'
import { takenNames } from '../../src/config/providers.ts'
import { Settings } from '../../src/config/settings.ts'
import { anySms, patienceMs, providerTools } from '../support/provider-server.ts'

const settings = { ACME_KEY: 'k', ACME_ACCOUNT: 'a1', ACME_FROM: 'OTPOST' }
const message = { to: '447400123456', text: 'A "quoted" line\nand ünïcode', from: 'OTPOST' }
const vector: Vector = {
  settings,
  message,
  request: {
    method: 'POST',
    url: 'https://api.acme.example/v1/a1/messages',
    headers: { 'x-api-key': 'k' },
    json: { to: '+447400123456', body: message.text, from: 'OTPOST' },
  },
  answer: { status: 202, json: { status: 'queued', messages: [{ id: 'm-1' }] } },
  outcome: 'accepted',
  id: 'm-1',
}
const refused: Vector = { ...vector, answer: { status: 401 }, outcome: 'account' }
const { id: _, ...wrong } = refused
const file: ProviderFile = {
  provider: 'acme-sms',
  docs: 'https://acme.example/docs',
  settings: {
    ACME_KEY: { secret: true },
    ACME_ACCOUNT: {},
    ACME_FROM: { default: 'OTPOST' },
  },
  from: 'ACME_FROM',
  to: 'plus',
  send: {
    method: 'POST',
    url: 'https://api.acme.example/v1/{{ACME_ACCOUNT}}/messages',
    headers: { 'x-api-key': '{{ACME_KEY}}' },
    json: { to: '{{to}}', body: '{{text}}', from: '{{from}}' },
  },
  accepted: { status: [200, 202], json: '$.status', equals: ['queued'], id: '$.messages[0].id' },
  errors: [
    { status: 401, outcome: 'account' },
    { json: '$.code', equals: [21211, '21614'], outcome: 'recipient' },
    { status: '5xx', outcome: 'unknown' },
  ],
  vectors: [vector, wrong],
}
const check = (given: unknown) => {
  const checked = checkFile('acme-sms', JSON.stringify(given), takenNames)
  return 'faults' in checked ? checked.faults : []
}

describe('a provider file', () => {
  test('without a fault', () => expect(check(file)).toEqual([]))

  const { json } = file.send
  const send = (part: object) => ({ ...file, send: { ...file.send, ...part } })
  test.each<[fault: string, file: unknown]>([
    ['extra is no key of the format', { ...file, extra: 1 }],
    ['send.retries is no key of the format', send({ retries: 3 })],
    ['send.json must be an object or a list, without quotes around it', send({ json: '{}' })],
    ['docs is missing', { ...file, docs: undefined }],
    ['send.method must be one of POST, GET, PUT', send({ method: 'PATCH' })],
    ['provider is acme, but the file is acme-sms.json', { ...file, provider: 'acme' }],
    ['provider: twilio is a built-in provider', { ...file, provider: 'twilio' }],
    ['provider: smtp is a built-in provider', { ...file, provider: 'smtp' }],
    [
      '{{nope}} is no placeholder and no setting of the file',
      send({ json: { ...Object(json), x: '{{nope}}' } }),
    ],
    ['settings.ACME_X is used nowhere', { ...file, settings: { ...file.settings, ACME_X: {} } }],
    ['settings.PORT is a setting of otpost itself', { ...file, settings: { ...file.settings, PORT: {} } }],
    ['the key {{to}} has a placeholder; placeholders stand in values only', send({ json: { '{{to}}': 1 } })],
    ['from: NOPE is no setting of the file', { ...file, from: 'NOPE' }],
    ['{{from}} needs the key from, which names a setting', { ...file, from: undefined }],
    [
      'send.url must begin with https://, or with http:// on this machine',
      send({ url: 'http://acme.example/' }),
    ],
    [
      'send.url must begin with https://, or with http:// on this machine',
      send({ url: 'https://u:p@acme.example/' }),
    ],
    ['send.url must have no ? and no #; use send.query', send({ url: 'https://acme.example/?a={{to}}' })],
    [
      'send.url: {{text}} cannot be a part of the host; only a setting that is not secret can',
      send({ url: 'https://{{text}}.example/' }),
    ],
    [
      'send.url: {{ACME_KEY}} is a secret, and proxies and logs record paths',
      send({ url: 'https://acme.example/{{ACME_KEY}}' }),
    ],
    ['{{text}} cannot be a part of a login; only settings can', send({ bearer: '{{text}}' })],
    ['send has basic and bearer; use one of them', send({ bearer: 'a', basic: ['a', 'b'] })],
    ['send has json and form; use one of them', send({ form: { a: '{{to}}' } })],
    ['a GET has no json and no form; use query', send({ method: 'GET' })],
    ['vectors: none has an accepted answer', { ...file, vectors: [wrong] }],
    ['vectors: none has an error', { ...file, vectors: [vector] }],
    ['vectors[0]: the id is m-1, expected m-2', { ...file, vectors: [{ ...vector, id: 'm-2' }, wrong] }],
    [
      'vectors[1]: the outcome is account, expected recipient',
      { ...file, vectors: [vector, { ...wrong, outcome: 'recipient' }] },
    ],
    [
      'vectors[0]: header X-Api-Key is "k", expected "q"',
      {
        ...file,
        vectors: [{ ...vector, request: { ...vector.request, headers: { 'X-Api-Key': 'q' } } }, wrong],
      },
    ],
    [
      'reports.id is missing: without {{reportUrl}}, it names the message',
      { ...file, reports: { in: 'form', status: 's', delivered: ['d'], failed: ['f'] } },
    ],
  ])('is rejected: %s', (fault, given) => expect(check(given)).toContain(fault))

  test('of the documentation passes', () => {
    const page = readFileSync(join(import.meta.dir, '../../docs/providers/files.md'), 'utf8')
    const [, sample = ''] = /```json\n(.*?)```/s.exec(page) ?? []
    expect(check(JSON.parse(sample))).toEqual([])
  })

  test('has each difference of an example', () => {
    const json = {
      messages: [{ body: '{{text}}', to: ['{{to}}'] }],
      from: '{{ACME_FROM}}',
      x: '{{ACME_KEY}}',
    }
    const expected = { messages: [{ body: 'a', to: {} }, 1], from: 'OTPOST', y: [] }
    const request = { ...vector.request, json: expected }
    expect(check({ ...send({ json }), vectors: [{ ...vector, request }, wrong] }).slice(0, 5)).toEqual([
      `vectors[0]: json.messages.0.body is ${JSON.stringify(message.text)}, expected "a"`,
      'vectors[0]: json.messages.0.to.0 is "+447400123456", expected missing',
      'vectors[0]: json.messages.1 is missing, expected 1',
      'vectors[0]: json.x is "k", expected missing',
      'vectors[0]: json.y is missing, expected []',
    ])
    const empty = { ...vector, request: { ...vector.request, json: [] } }
    expect(check({ ...send({ json: {} }), vectors: [empty, wrong] })).toContain(
      'vectors[0]: json is {}, expected []',
    )
  })

  test('has all its faults at once', () => {
    const given = { ...send({ url: 'http://acme.example/{{nope}}', x: 1 }), vectors: [] }
    expect(check(given)).toEqual([
      'send.x is no key of the format',
      '{{nope}} is no placeholder and no setting of the file',
      'settings.ACME_ACCOUNT is used nowhere',
      'send.url must begin with https://, or with http:// on this machine',
      'vectors: none has an accepted answer',
      'vectors: none has an error',
    ])
  })

  test.each(shippedFiles.map((each) => [each.provider, each] as const))(
    '%s of the binary passes',
    (name, each) => {
      expect(checkFile(name, JSON.stringify(each), takenNames)).toEqual({ file: each })
    },
  )
})

const gateway = createServer()
const received: { url: string; headers: NodeJS.Dict<string | string[]>; body: string }[] = []
let reply: { status: number; body: string } | 'nothing' = { status: 200, body: '' }
let base = ''

beforeAll(async () => {
  gateway.on('request', async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    received.push({ url: request.url ?? '', headers: request.headers, body })
    if (reply === 'nothing') return
    const { status, body: text } = reply
    response.writeHead(status, { location: `${base}/elsewhere` }).end(text)
  })
  const listening = Promise.withResolvers<void>()
  gateway.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  base = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
})
afterAll(() => gateway.close())

/** Sends through the gateway of this test. */
function provider(send: Partial<ProviderFile['send']>, given: Partial<ProviderFile> = {}) {
  const url = (send.url ?? '/send').replace(/^\//, `${base}/`)
  const read = new Settings(settings)
  const spec = fileProvider({ ...file, ...given, send: { method: 'POST', ...send, url } })
  const created = spec.configure(read, 'plain')(providerTools)
  expect(read.problems).toEqual([])
  return created
}

describe('the outcome of an answer', () => {
  test.each<[status: number, answer: unknown, outcome: string]>([
    [200, { status: 'queued', messages: [{ id: 'm-1' }] }, 'accepted'],
    [202, { status: 'queued' }, 'accepted'],
    [201, { status: 'queued' }, 'unknown'],
    [200, { status: 'held' }, 'unknown'],
    [200, 'no JSON', 'unknown'],
    [200, { status: 'queued', code: 21211 }, 'recipient'],
    [400, { code: '21614' }, 'recipient'],
    [400, {}, 'account'],
    [302, {}, 'account'],
    [401, {}, 'account'],
    [429, {}, 'retryable'],
    [503, {}, 'unknown'],
    [500, {}, 'unknown'],
  ])('%i %j is %s', async (status, answer, outcome) => {
    reply = { status, body: typeof answer === 'string' ? answer : JSON.stringify(answer) }
    const before = received.length
    expect(outcomeName(await provider({}).send(anySms, patienceMs))).toBe(outcome as never)
    // A redirect is not followed.
    expect(received.length).toBe(before + 1)
  })

  test('is unknown for an answer that is huge, deep or no text', async () => {
    const huge = `{"status":"queued","x":"${'x'.repeat(70_000)}"}`
    const inherited = '{"__proto__":{"status":"queued"}}'
    for (const body of [huge, '['.repeat(30_000), String.fromCharCode(0, 0xffff), inherited]) {
      reply = { status: 200, body }
      expect(outcomeName(await provider({}).send(anySms, patienceMs))).toBe('unknown')
    }
  })

  test.each<[text: string, status: number, outcome: object]>([
    ['OK: 760d54eb-3a82', 200, { kind: 'accepted', providerMessageId: '760d54eb-3a82' }],
    ['Success "m|1"\n', 200, { kind: 'accepted', providerMessageId: 'm' }],
    ['OK', 200, { kind: 'accepted' }],
    ['ERROR:1005', 200, { kind: 'rejected', scope: 'recipient', reason: '1005' }],
    ['ERROR:9', 200, { kind: 'rejected', scope: 'account', reason: 'ERROR' }],
    ['<html>OK 1005</html>', 200, { kind: 'unknown', reason: 'unreadable answer' }],
    ['100', 200, { kind: 'retryable', reason: '100' }],
    ['', 200, { kind: 'unknown', reason: 'unreadable answer' }],
  ])('reads the words of the text %j', async (body, status, outcome) => {
    reply = { status, body }
    const words: Partial<ProviderFile> = {
      accepted: { status: 200, json: '$[0]', equals: ['OK', 'Success'], id: '$[1]' },
      errors: [
        { json: '$[1]', equals: [1005], outcome: 'recipient' },
        { json: '$[0]', equals: ['ERROR'], outcome: 'account' },
        { json: '$', equals: [100], outcome: 'retryable' },
        { json: '$', equals: ['', 'undefined'], outcome: 'retryable' },
      ],
    }
    expect(await provider({}, words).send(anySms, patienceMs)).toEqual(outcome as never)
  })

  test('keeps every digit of an id', async () => {
    reply = { status: 200, body: '{"status":"queued","messages":[{"id":12345678901234567890}]}' }
    const accepted = { kind: 'accepted', providerMessageId: '12345678901234567890' } as const
    expect(await provider({}).send(anySms, patienceMs)).toEqual(accepted)
  })

  test('503 was not sent unless the file says otherwise, and no answer is unknown', async () => {
    reply = { status: 503, body: '' }
    expect(await provider({}, { errors: [] }).send(anySms, patienceMs)).toEqual({
      kind: 'retryable',
      reason: 'HTTP 503',
    })
    reply = 'nothing'
    expect(await provider({}).send(anySms, 50)).toEqual({ kind: 'unknown', reason: 'time-out' })
    expect(await provider({ url: 'http://127.0.0.1:1/' }).send(anySms, patienceMs)).toMatchObject({
      kind: 'retryable',
    })
  })
})

test.each([
  ['21610', '21610'],
  ['Absent: 7/1', 'Absent: 7/1'],
  ['To 447400123456', null],
  ['447 400 123', null],
  ['a\nb', null],
  [undefined, 'failed'],
])('a report keeps the reason %j as %j, and no number of a recipient', (err, reason) => {
  const fields = { id: 'id', status: 's', reason: 'err' }
  const reports = { in: 'json' as const, ...fields, delivered: ['ok'], failed: ['failed'] }
  const body = Buffer.from(JSON.stringify({ id: 'm-1', s: 'failed', err }))
  const sender = provider({}, { reports })
  expect(
    sender.deliveryReports?.read({ url: 'https://otp.example/', fields: {}, headers: {}, body }),
  ).toEqual([{ providerMessageId: 'm-1', status: 'failed', reason }])
})

describe('a request', () => {
  test.each<[place: string, send: Partial<ProviderFile['send']>, text: string, seen: object]>([
    ['a path', { url: '/a/{{text}}/b' }, '../x?y#z', { url: '/a/..%2Fx%3Fy%23z/b' }],
    ['a path', { url: '/a/{{text}}/b' }, '..', { url: '/a/%2E%2E/b' }],
    ['a query', { url: '/a', query: { t: '{{text}}', n: 1 } }, 'a&b=c d', { url: '/a?t=a%26b%3Dc+d&n=1' }],
    ['a form', { form: { t: 'x{{text}}' } }, '&t=\n', { body: 't=x%26t%3D%0A' }],
    ['JSON', { json: { t: ['{{text}}'] } }, '"],"u":["', { body: String.raw`{"t":["\"],\"u\":[\""]}` }],
    [
      'a header',
      { headers: { 'x-text': 'a {{text}}' } },
      'b\r\nx-evil: 1',
      { headers: expect.objectContaining({ 'x-text': 'a b%0D%0Ax-evil:%201' }) },
    ],
  ])('has a text as data in %s', async (_, send, text, seen) => {
    reply = { status: 200, body: '{"status":"queued"}' }
    expect(await provider(send).send({ ...anySms, text }, patienceMs)).toEqual({ kind: 'accepted' })
    expect(received.at(-1)).toMatchObject(seen)
  })

  test('keeps a number, and leaves out what has no value', async () => {
    reply = { status: 200, body: '{"status":"queued"}' }
    const json = {
      ttl: '{{validitySeconds}}',
      url: '{{reportUrl}}',
      id: '{{template.id}}',
      b: '{{brand}}',
      f: '{{from}}',
    }
    await provider({ json }).send({ ...anySms, validitySeconds: 300, senderId: 'RULE' }, patienceMs)
    expect(JSON.parse(received.at(-1)?.body ?? '')).toEqual({ ttl: 300, b: 'acme', f: 'RULE' })
  })

  test('has the same fields, segments and host with any values', () => {
    const any = fc.string({ unit: 'binary' })
    const places: ProviderFile = {
      ...file,
      send: {
        method: 'POST',
        url: 'https://acme.example/a/{{to}}/x{{text}}/{{ACME_ACCOUNT}}/b',
        headers: { 'x-text': '{{text}}', 'x-from': 'App {{from}}' },
        query: { to: '{{to}}', text: '1{{text}}' },
        bearer: '{{ACME_KEY}}',
        json: { to: '{{to}}', list: [{ text: '{{text}} {{from}}' }] },
      },
    }
    const form: ProviderFile = {
      ...places,
      send: { ...places.send, json: undefined as never, form: { a: '{{text}}', b: '{{to}}{{from}}' } },
    }
    fc.assert(
      fc.property(any, any, any, any, any, (to, text, from, key, account) => {
        const values: Values = new Map([
          ['to', to],
          ['text', text],
          ['from', from],
          ['ACME_KEY', key],
          ['ACME_ACCOUNT', account],
        ])
        const { url, headers, body = '' } = requestOf(places, false, values)
        const [path = '', query = ''] = url.slice('https://acme.example'.length).split('?')
        expect(url.startsWith('https://acme.example/a/')).toBe(true)
        expect(path.split('/')).toHaveLength(6)
        expect(path).toMatch(/^[!-~]*$/)
        expect(path).not.toMatch(/[?#\\]|\/\.{1,2}(\/|$)/)
        expect([...new URLSearchParams(query)]).toEqual([
          ['to', to.toWellFormed()],
          ['text', `1${text.toWellFormed()}`],
        ])
        for (const value of Object.values(headers)) expect(value).toMatch(/^[ -~]*$/)
        expect([...new Headers(headers)]).toHaveLength(4)
        expect(JSON.parse(body)).toEqual({ to, list: [{ text: `${text} ${from}` }] })
        const made = requestOf(form, false, values).body ?? ''
        expect([...new URLSearchParams(made)]).toEqual([
          ['a', text.toWellFormed()],
          ['b', (to + from).toWellFormed()],
        ])
      }),
      { numRuns: 300 },
    )
  })
})
