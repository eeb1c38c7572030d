import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProviderTools } from '../../src/adapters/sms/provider.ts'
import { twilio } from '../../src/adapters/sms/twilio.ts'
import { Settings } from '../../src/config/settings.ts'
import type { Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { startPrism } from '../support/prism.ts'

// Checks the adapter against Twilio's own OpenAPI document and Prism, a mock server that rejects what the
// document does not allow. Both are too large to be dependencies of the service.
const packages = join(import.meta.dir, '../twilio-openapi')
const prismProgram = join(packages, 'node_modules/@stoplight/prism-cli/dist/index.js')
const documentFile = join(
  packages,
  'node_modules/@twilio/cli-core/src/services/twilio-api/twilio_api_v2010.json',
)

const isInstalled = existsSync(prismProgram) && existsSync(documentFile)
if (!isInstalled) {
  console.warn(
    "Twilio's OpenAPI: skipped, since it needs its packages (bun install --frozen-lockfile --cwd test/twilio-openapi)",
  )
}

// Prism starts slowly; its speed does not matter here.
setDefaultTimeout(120_000)

const operationPath = '/2010-04-01/Accounts/{AccountSid}/Messages.json'
const feedbackPath = '/2010-04-01/Accounts/{AccountSid}/Messages/{MessageSid}/Feedback.json'
const account = 'AC0123456789abcdef0123456789abcdef'
const service = 'MG0123456789abcdef0123456789abcdef'
const messagesPath = operationPath.replace('{AccountSid}', account)

const sms: Sms = {
  id: '0b54a5a2-6a3c-4d8e-9a39-0f6a3f0d7c11',
  requestId: 'd2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77',
  brandSlug: 'acme',
  brandName: 'Acme',
  to: '12025550143',
  route: 'plain',
  text: '493817 is your code.\n\n@shop.example #493817',
  template: null,
  senderId: null,
  validitySeconds: 300,
  expectsFeedback: false,
  callbackUrl: 'https://otp.example/receipts/twilio/d2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77.1.Xy_z-0',
}

const unused = () => Promise.reject(new Error('an SMS for Twilio is none for the outbox'))
const tools: ProviderTools = {
  now: Date.now,
  outbox: { add: unused, list: unused, get: unused, wait: unused },
}

/** The part of the document that is used here. */
interface Document {
  readonly paths: Readonly<Record<string, { readonly post: Operation }>>
  readonly components: { readonly schemas: Readonly<Record<string, { readonly enum?: readonly string[] }>> }
}

interface Operation {
  readonly requestBody: {
    readonly content: Readonly<
      Record<string, { readonly schema: { readonly properties: Readonly<Record<string, unknown>> } }>
    >
  }
  readonly responses: {
    readonly 201: {
      readonly content: {
        readonly 'application/json': {
          readonly examples: Readonly<Record<string, { readonly value: Readonly<Record<string, unknown>> }>>
        }
      }
    }
  }
}

/** Starts Prism with only the operations that the adapter calls, because it takes seconds to read all of them. */
async function startDouble(document: Document) {
  const folder = mkdtempSync(join(tmpdir(), 'otpost-twilio-'))
  const file = join(folder, 'document.json')
  const paths = [operationPath, feedbackPath].map((path) => [path, { post: document.paths[path]?.post }])
  await Bun.write(file, JSON.stringify({ ...document, paths: Object.fromEntries(paths) }))
  const { url, stop } = await startPrism(packages, 'mock', [file])
  return {
    url,
    async stop(): Promise<void> {
      await stop()
      rmSync(folder, { recursive: true })
    },
  }
}

/** How the proxy between the adapter and Prism changes a call. */
interface Intervention {
  /** Headers to add. */
  readonly headers?: Readonly<Record<string, string>>
  /** Removes the credentials. */
  readonly anonymous?: true
  /** Fields to replace in Prism's response. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/** Forwards each call to Prism and records the request and the response. */
function startProxy(target: string) {
  const state = { intervention: {} as Intervention }
  const forms: URLSearchParams[] = []
  const answers: { status: number; body: string }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { headers: added = {}, anonymous, fields } = state.intervention
      const headers = new Headers(request.headers)
      headers.delete('host')
      if (anonymous) headers.delete('authorization')
      for (const [name, value] of Object.entries(added)) headers.set(name, value)
      const body = await request.text()
      forms.push(new URLSearchParams(body))
      const { pathname } = new URL(request.url)
      const answer = await fetch(target + pathname, { method: request.method, headers, body })
      const text = await answer.text()
      const changed = fields ? JSON.stringify({ ...JSON.parse(text), ...fields }) : text
      answers.push({ status: answer.status, body: changed })
      return new Response(changed, { status: answer.status })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    /** The forms that the adapter has sent. */
    forms,
    answers,
    intervene(intervention: Intervention): void {
      state.intervention = intervention
    },
    stop: () => server.stop(true),
  }
}

let document: Document
let operation: Operation
let prism: Awaited<ReturnType<typeof startDouble>> | undefined
let proxy: ReturnType<typeof startProxy> | undefined

beforeAll(async () => {
  if (!isInstalled) return
  document = await Bun.file(documentFile).json()
  const found = document.paths[operationPath]?.post
  if (!found) throw new Error('the document has no such operation')
  operation = found
  prism = await startDouble(document)
  proxy = startProxy(prism.url)
})

afterAll(async () => {
  await proxy?.stop()
  await prism?.stop()
})

function providerAt(url: string, from = '+15005550006') {
  const settings = new Settings({
    TWILIO_ACCOUNT_SID: account,
    TWILIO_AUTH_TOKEN: '0123456789abcdef0123456789abcdef',
    TWILIO_FROM: from,
    TWILIO_BASE_URL: url,
  })
  const provider = twilio.configure(settings, 'plain')(tools)
  expect(settings.problems).toEqual([])
  return provider
}

/** Sends through the proxy; returns the outcome, the request and Prism's response. */
async function send(given: Partial<Sms> = {}, intervention: Intervention = {}, from = '+15005550006') {
  if (!proxy) throw new Error('nothing runs')
  const provider = providerAt(proxy.url, from)
  proxy.intervene(intervention)
  const outcome = await provider.send({ ...sms, ...given }, 30_000)
  const form = proxy.forms.at(-1)
  const answer = proxy.answers.at(-1)
  if (!form || !answer) throw new Error('nothing was sent')
  return { outcome, form, answer }
}

/** The form fields that are not in the document, which Prism ignores. */
function undeclared(form: URLSearchParams): string[] {
  const { schema } = operation.requestBody.content['application/x-www-form-urlencoded'] ?? {}
  return [...form.keys()].filter((name) => !Object.hasOwn(schema?.properties ?? {}, name))
}

describe.skipIf(!isInstalled)("Twilio's OpenAPI document", () => {
  test('allows the request with a sender number', async () => {
    const { outcome, form, answer } = await send()
    expect(answer.status).toBe(201)
    expect(outcome).toEqual({ kind: 'accepted', providerMessageId: JSON.parse(answer.body).sid })
    expect([...form.keys()]).toEqual(['To', 'From', 'Body', 'ValidityPeriod', 'StatusCallback'])
    expect(undeclared(form)).toEqual([])
  })

  test('allows the request with a messaging service and the required fields only', async () => {
    const { outcome, form, answer } = await send({ validitySeconds: null, callbackUrl: null }, {}, service)
    expect(answer.status).toBe(201)
    expect(outcome.kind).toBe('accepted')
    expect([...form.keys()]).toEqual(['To', 'MessagingServiceSid', 'Body'])
    expect(undeclared(form)).toEqual([])
  })

  test('allows the request for conversion feedback, and the feedback', async () => {
    const { outcome, form } = await send({ expectsFeedback: true })
    expect(form.get('ProvideFeedback')).toBe('true')
    expect(undeclared(form)).toEqual([])
    const sid = 'providerMessageId' in outcome ? (outcome.providerMessageId ?? '') : ''
    const provider = providerAt(proxy?.url ?? '')
    expect(await provider.reportConversion?.(sid, 30_000)).toEqual({ kind: 'accepted' })
    const { schema } =
      document.paths[feedbackPath]?.post.requestBody.content['application/x-www-form-urlencoded'] ?? {}
    const feedback = proxy?.forms.at(-1)
    expect([...(feedback?.keys() ?? [])]).toEqual(Object.keys(schema?.properties ?? {}))
    expect(await provider.reportConversion?.('no message', 30_000)).toMatchObject({ kind: 'rejected' })
  })

  test('requires credentials, and a call without them is an account error', async () => {
    const { outcome, answer } = await send({}, { anonymous: true })
    expect(answer.status).toBe(401)
    expect(outcome).toEqual({ kind: 'rejected', scope: 'account', reason: 'HTTP 401' })
  })

  test.each<[string, number, string, RequestInit]>([
    ['no recipient', 422, messagesPath, { body: new URLSearchParams({ Body: 'x' }) }],
    [
      'a validity that is no number',
      422,
      messagesPath,
      { body: new URLSearchParams({ To: '+1', ValidityPeriod: 'soon' }) },
    ],
    [
      'a messaging service that is none',
      422,
      messagesPath,
      { body: new URLSearchParams({ To: '+1', MessagingServiceSid: 'MG1' }) },
    ],
    [
      'an account that is none',
      422,
      messagesPath.replace(account, 'AC1'),
      { body: new URLSearchParams({ To: '+1' }) },
    ],
    [
      'JSON',
      415,
      messagesPath,
      { body: JSON.stringify({ To: '+1' }), headers: { 'content-type': 'application/json' } },
    ],
    ['another path', 404, '/2010-04-01/Messages.json', { body: new URLSearchParams({ To: '+1' }) }],
  ])('forbids %s, and Prism rejects it', async (_, status, path, { headers, body }) => {
    const authorization = `Basic ${btoa(`${account}:x`)}`
    const response = await fetch(`${prism?.url}${path}`, {
      method: 'POST',
      headers: { authorization, ...headers },
      body: body ?? null,
    })
    await response.text()
    expect(response.status).toBe(status)
  })

  test('has example responses that the adapter understands', async () => {
    const examples = Object.keys(operation.responses[201].content['application/json'].examples)
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) {
      const { outcome, answer } = await send({}, { headers: { prefer: `example=${example}` } })
      expect(outcome).toEqual({ kind: 'accepted', providerMessageId: JSON.parse(answer.body).sid })
    }
  })

  const unsent = ['failed', 'undelivered', 'canceled']

  test('has statuses that the adapter understands', async () => {
    const statuses = document.components.schemas.message_enum_status?.enum ?? []
    expect(statuses.length).toBeGreaterThan(unsent.length)
    for (const status of statuses) {
      const { outcome } = await send({}, { fields: { status } })
      expect({ status, kind: outcome.kind }).toEqual({
        status,
        kind: unsent.includes(status) ? 'retryable' : 'accepted',
      })
    }
  })

  test('allows responses of several shapes, and the adapter treats none as more than it says', async () => {
    const kinds = new Set<Outcome['kind']>()
    for (let round = 0; round < 60; round++) {
      const { outcome, answer } = await send({}, { headers: { prefer: 'dynamic=true' } })
      expect(answer.status).toBe(201)
      const { sid, status } = JSON.parse(answer.body)
      const isTaken = typeof sid === 'string' && typeof status === 'string' && !unsent.includes(status)
      const said = {
        sid,
        status,
        kind: outcome.kind,
        providerMessageId: 'providerMessageId' in outcome ? outcome.providerMessageId : undefined,
      }
      expect(said.kind === 'accepted').toBe(isTaken)
      expect(said.providerMessageId).toBe(isTaken ? sid : undefined)
      kinds.add(outcome.kind)
    }
    expect(kinds).toContain('accepted')
  })
})
