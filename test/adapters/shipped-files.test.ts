import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProviderFile, Vector } from '../../src/adapters/sms/file/format.ts'
import { shippedFiles } from '../../src/adapters/sms/file/shipped/index.ts'
import { attemptPath, providerPath } from '../../src/domain/delivery/delivery-reports.ts'
import { statusOf } from '../../src/domain/log/event-log.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { temporaryFolder } from '../support/folder.ts'
import { setText, tester } from '../support/operator.ts'
import { policyOf } from '../support/policy.ts'
import { type ProviderCall, startProviderDouble } from '../support/provider-server.ts'

// Each shipped file through one server that has all of them, against a gateway that answers as the examples of the file say.

const publicUrl = 'https://otp.example'
const gateway = startProviderDouble(() => new Response())
const folder = temporaryFolder()
const settings = new Map<string, string>()
let app: TestApp
let stopwatch = 0

/** The file with the gateway of this test in place of its own, in the form and in the examples. */
function moved(file: ProviderFile): ProviderFile {
  const here = (url: string) => url.replace(/^[a-z]+:\/\/[^/]*/i, gateway.url)
  const [, base = ''] = /^\{\{(\w+)\}\}/.exec(file.send.url) ?? []
  const { [base]: { default: usual } = {} } = file.settings
  const url = here(file.send.url)
  const rest = JSON.stringify([{ ...file.send, url }, file.template, file.from])
  const unused = Object.keys(file.settings).filter((name) => !rest.includes(name))
  const without = <T>(given: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(given).filter(([name]) => !unused.includes(name)))
  const defaults = usual === undefined ? {} : { [base]: { ...file.settings[base], default: here(usual) } }
  return {
    ...file,
    settings: { ...without(file.settings), ...defaults },
    send: { ...file.send, url },
    vectors: file.vectors.map((vector) => ({
      ...vector,
      settings: Object.fromEntries(
        Object.entries(without(vector.settings ?? {})).map(([name, value]) => [
          name,
          name === base ? here(value) : value,
        ]),
      ),
      request: { ...vector.request, url: here(vector.request.url) },
    })),
  }
}

/** What no shipped file may have, so that this test itself is tried. */
const request = {
  method: 'PUT',
  url: 'https://gw.example/base/v1/me/send/x',
  headers: { 'x-id': 'm-1' },
  query: { lang: 'en', all: 'yes' },
}
const settingsOfAll = { ALL_URL: 'https://gw.example/base/', ALL_USER: 'me', ALL_KEY: 'k', ALL_FROM: 'F' }
const everything: ProviderFile = {
  provider: 'all-of-it',
  docs: 'https://gw.example/',
  settings: { ALL_URL: {}, ALL_USER: {}, ALL_KEY: { secret: true }, ALL_FROM: { default: 'F' } },
  from: 'ALL_FROM',
  to: 'plus',
  send: {
    method: 'PUT',
    url: '{{ALL_URL}}/v1/{{ALL_USER}}/send/{{brand}}',
    bearer: '{{ALL_KEY}}',
    headers: { 'x-id': '{{id}}' },
    query: { lang: '{{lang}}', all: 'yes' },
    json: { to: ['{{to}}'], text: 'T: {{text}}', ttl: '{{validitySeconds}}', from: { name: '{{from}}' } },
  },
  template: {
    form: {
      to: '{{to}}',
      id: '{{template.id}}',
      pe: '{{template.entityId}}',
      s: '{{template.senderId}}',
      v: '{"c":"{{var.otp}}"}',
    },
  },
  accepted: { json: "$.list[0]['msg.id']", id: "$.list[0]['msg.id']" },
  reports: {
    in: 'json',
    id: "$.results[0]['msg.id']",
    status: '$.results[0].ok',
    delivered: [true],
    failed: [false],
  },
  vectors: [
    {
      settings: settingsOfAll,
      message: { to: '447400123456', text: 'Ünï', brand: 'x', id: 'm-1', lang: 'en', validitySeconds: 60 },
      request: { ...request, json: { to: ['+447400123456'], text: 'T: Ünï', ttl: 60, from: { name: 'F' } } },
      answer: { status: 200, json: { list: [{ 'msg.id': 'i-1' }] } },
      outcome: 'accepted',
      id: 'i-1',
    },
    {
      settings: settingsOfAll,
      template: { id: '1', entityId: '2', senderId: '3' },
      message: { to: '447400123456', text: 'Ünï', brand: 'x', id: 'm-1', lang: 'en', var: { otp: '4' } },
      request: { ...request, form: { to: '+447400123456', id: '1', pe: '2', s: '3', v: '{"c":"4"}' } },
      answer: 'timeout',
      outcome: 'unknown',
    },
  ],
}

const files = [everything, ...shippedFiles].map(moved)

beforeAll(async () => {
  for (const file of files) {
    writeFileSync(join(folder.path, `${file.provider}.json`), JSON.stringify(file))
    for (const [name, { default: usual }] of Object.entries(file.settings)) {
      const value = file.vectors[0]?.settings?.[name] ?? usual ?? 'x'
      if (value !== '') settings.set(name, value)
    }
  }
  const names = files.map(({ provider }) => provider).join(',')
  app = await createTestApp(
    {
      ...Object.fromEntries(settings),
      PROVIDER_FILES: folder.path,
      SMS_PLAIN: `${names},discard`,
      SMS_TEMPLATE: names,
      OTP_SMS_MODE: 'hybrid',
      PUBLIC_URL: publicUrl,
      PROVIDER_TIMEOUT_MS: '1000',
    },
    { stopwatch: () => stopwatch },
  )
  const registration = { id: '1107161234567890123', ids: {}, senderId: 'ACMEIN', maxLength: null }
  await app.brand('dlt', {
    displayName: 'Dlt',
    dltEnabled: true,
    entityId: '1101456789012345678',
    registrations: { LOGIN_OTP: registration },
  })
  await setText(app.app.context.acting(tester), {
    brand: 'dlt',
    key: 'LOGIN_OTP',
    channel: 'SMS',
    text: '{{otp}} "&',
  })
})
afterAll(async () => {
  await app?.close()
  await gateway.stop()
  folder.remove()
})

/** Of a message to this number, by placeholder. */
function valuesOf(
  file: ProviderFile,
  requestId: string,
  to: string,
  given: Readonly<Record<string, unknown>>,
) {
  const { secrets } = app.app.context
  return new Map<string, unknown>([
    ...settings,
    ['to', file.to === 'digits' ? to : `+${to}`],
    ['from', settings.get(file.from ?? '')],
    ['id', requestId],
    ['reportUrl', file.reports && publicUrl + attemptPath(secrets, file.provider, requestId, 1)],
    ...Object.entries(given),
  ])
}

/** A second reading of the rules of docs/providers/files.md. Undefined: left out. */
function filled(leaf: unknown, values: ReadonlyMap<string, unknown>): unknown {
  if (Array.isArray(leaf)) {
    const list = Object.values(filledFields(leaf, values))
    return list.length === 0 && leaf.length > 0 ? undefined : list
  }
  if (typeof leaf === 'object' && leaf !== null) {
    const fields = filledFields(leaf, values)
    return Object.keys(fields).length === 0 && Object.keys(leaf).length > 0 ? undefined : fields
  }
  if (typeof leaf !== 'string') return leaf
  const [, only] = /^\{\{([^}]+)\}\}$/.exec(leaf) ?? []
  if (only !== undefined) return values.get(only)
  if (leaf.includes('{{reportUrl}}') && values.get('reportUrl') === undefined) return undefined
  return leaf.replaceAll(/\{\{([^}]+)\}\}/g, (_, name) => String(values.get(name) ?? ''))
}

function filledFields(
  fields: object,
  values: ReadonlyMap<string, unknown>,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(fields).map(([name, each]) => [name, filled(each, values)] as const)
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined))
}

const texts = (fields: object) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]))
const fieldsIn = (text: string) => Object.fromEntries(new URLSearchParams(text))

function expectRequest(
  file: ProviderFile,
  call: ProviderCall,
  values: ReadonlyMap<string, unknown>,
  isTemplate = false,
) {
  const { send, template = {} } = file
  const parts = { query: send.query, json: send.json, form: send.form }
  if (isTemplate) {
    if (template.query) parts.query = template.query
    if (template.json ?? template.form) Object.assign(parts, { json: template.json, form: template.form })
  }
  const url = new URL(call.path, gateway.url)
  expect(call.method).toBe(send.method)
  const [, path = ''] = /^(?:[a-z]+:\/\/)?[^/]*(.*)$/.exec(send.url) ?? []
  const [, base = ''] =
    /^[a-z]+:\/\/[^/]*(.*?)\/*$/.exec(
      String(filled(send.url.slice(0, send.url.length - path.length), values)),
    ) ?? []
  const segments = (base + path).split('/').map((segment) => filled(segment, values) ?? '')
  expect(url.pathname.split('/').map(decodeURIComponent)).toEqual(
    (segments.length === 0 ? [''] : segments).map(String),
  )
  expect(fieldsIn(url.search)).toEqual(texts(filledFields(parts.query ?? {}, values)))
  const isJson = parts.json !== undefined
  const isForm = parts.form !== undefined
  expect(isJson ? JSON.parse(call.body) : isForm ? fieldsIn(call.body) : call.body).toEqual(
    isJson ? filled(parts.json, values) : isForm ? texts(filledFields(parts.form ?? {}, values)) : '',
  )
  const login = call.headers.get('authorization')
  if (send.basic) {
    const [user, key] = send.basic.map((each) => filled(each, values) ?? '')
    expect(Buffer.from(String(login).replace('Basic ', ''), 'base64').toString()).toBe(`${user}:${key}`)
  }
  if (send.bearer !== undefined) expect(login).toBe(`Bearer ${filled(send.bearer, values)}`)
  const type = isJson ? 'application/json' : isForm ? 'application/x-www-form-urlencoded' : undefined
  const own = texts(filledFields(send.headers ?? {}, values))
  for (const [name, value] of Object.entries({ ...(type && { 'content-type': type }), ...own })) {
    expect([name, call.headers.get(name)]).toEqual([name, value])
  }
}

function answered({ answer }: Vector): Response {
  if (answer === 'timeout') throw new Error('the gateway does not answer')
  const { status, json, body = json === undefined ? '' : JSON.stringify(json) } = answer
  return new Response([204, 304].includes(status) ? null : body, { status })
}

let numbers = 0
/** A message to a new number, through this provider if it can be. The next one finds all circuits closed. */
async function send(file: ProviderFile, vector: Vector) {
  stopwatch += 120_000
  app.clock.now += 120_000
  gateway.received.length = 0
  gateway.answer(() => answered(vector))
  const to = `44740012${String(numbers++).padStart(4, '0')}`
  const text = String(vector.message.text ?? 'A "quoted" line\nand ünïcode')
  const sent = await app.post('/notify', { channel: 'SMS', to: [`+${to}`], brandId: 'acme', message: text })
  const { deliveries } = await app.eventsOf(sent)
  const values = valuesOf(file, sent.body.requestId, to, { text, brand: 'acme' })
  expectRequest(file, gateway.onlyCall(), values)
  return { sent, values, deliveries: deliveries.toSorted((a, b) => a.attempt - b.attempt) }
}

/** What the delivery log has: the file alone, or another provider after it. */
function outcomeIn(rows: Awaited<ReturnType<typeof send>>['deliveries']): string {
  const [first, ...others] = rows
  const { outcome, errorClass } = first ?? {}
  const name = outcome === 'rejected' ? errorClass : outcome
  return `${name}${others.map((row) => `, ${row.provider} ${row.outcome}`).join('')}`
}

/** After these outcomes no other provider is tried. */
const last: readonly Vector['outcome'][] = ['accepted', 'recipient']

describe.each(files.map((file) => [file.provider, file] as const))('%s', (name, file) => {
  const answers = file.vectors.filter(({ answer }) => answer !== 'timeout')

  test('sends what its file says, and has the outcomes of its examples', async () => {
    await policyOf(app).rule('GB', 'allow', { providers: [name, 'discard'] })
    for (const vector of answers) {
      const { deliveries } = await send(file, vector)
      const expected = vector.outcome + (last.includes(vector.outcome) ? '' : ', discard accepted')
      expect([vector.answer, outcomeIn(deliveries)]).toEqual([vector.answer, expected])
      expect(deliveries[0]?.provider).toBe(name)
      if (vector.id !== undefined) expect(deliveries[0]?.providerMessageId).toBe(vector.id)
    }
  })

  const { reports } = file
  const vector = answers.find(({ outcome }) => outcome === 'accepted')
  if (reports && vector)
    test('reads delivery reports', async () => {
      const isOwnUrl = JSON.stringify([file.send, file.template]).includes('{{reportUrl}}')
      const { sent, values, deliveries } = await send(file, vector)
      const url = isOwnUrl ? String(values.get('reportUrl')) : providerPath(app.app.context.secrets, name)
      const id = deliveries[0]?.providerMessageId
      for (const [expected, [status]] of [
        ['failed', reports.failed],
        // It outranks failed.
        ['delivered', reports.delivered],
      ] as const) {
        const fields = new Map<string, unknown>([[reports.status, status]])
        if (reports.id !== undefined && id) fields.set(reports.id, id)
        const answer = await report(reports.in, url.replace(publicUrl, ''), fields)
        expect(answer.status).toBe(200)
        const [after] = (await app.eventsOf(sent)).deliveries
        expect(after && statusOf(after)).toBe(expected)
      }
    })

  if (file.template)
    test('sends a registered template', async () => {
      stopwatch += 120_000
      app.clock.now += 120_000
      gateway.received.length = 0
      gateway.answer(() => new Response())
      const to = '919812345678'
      const { requestId } = await app.app.sendTest(tester, {
        to,
        brand: 'dlt',
        key: 'LOGIN_OTP',
        provider: name,
      })
      const values = valuesOf(file, requestId, to, {
        text: '123456 "&',
        from: 'ACMEIN',
        brand: 'dlt',
        lang: 'en',
        validitySeconds: 300,
        'template.id': '1107161234567890123',
        'template.entityId': '1101456789012345678',
        'template.senderId': 'ACMEIN',
        'var.otp': '123456',
      })
      expectRequest(file, gateway.onlyCall(), values, true)
    })
})

test('no answer in time is unknown', async () => {
  const silent = files.filter(({ vectors }) => vectors.some(({ answer }) => answer === 'timeout'))
  gateway.answer(() => new Promise(() => {}))
  const sent = silent.map(({ provider }) => app.app.sendTest(tester, { to: '447400129999', provider }))
  for (const { outcome } of await Promise.all(sent))
    expect(outcome).toEqual({ kind: 'unknown', reason: 'time-out' })
})

/** As the gateway sends it, with these values at fields or paths. */
function report(place: 'form' | 'json' | 'query', path: string, values: ReadonlyMap<string, unknown>) {
  const fields = [...values].map(([at, value]) => [keysOf(at), value] as const)
  const search = new URLSearchParams(fields.map(([keys, value]) => [keys.join('.'), String(value)]))
  if (place === 'query') return app.get(`${path}?${search}`)
  if (place === 'form') {
    const type = 'application/x-www-form-urlencoded'
    return app.request('POST', path, { headers: { 'content-type': type }, body: search.toString() })
  }
  const body = fields.reduce<unknown>((json, [keys, value]) => withValue(json, keys, value), undefined)
  return app.postRaw(path, body)
}

function keysOf(at: string): readonly (string | number)[] {
  if (!at.startsWith('$')) return [at]
  return [...at.matchAll(/\.([\w-]+)|\['([^']+)'\]|\[(\d+)\]/g)].map(
    ([, name, quoted, index]) => name ?? quoted ?? Number(index),
  )
}

function withValue(json: unknown, [key, ...rest]: readonly (string | number)[], value: unknown): unknown {
  if (key === undefined) return value
  const copy: object = typeof key === 'number' ? [...((json ?? []) as unknown[])] : { ...Object(json) }
  return Object.assign(copy, { [key]: withValue(Object(json)[key], rest, value) })
}
