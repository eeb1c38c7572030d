import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isDeepStrictEqual } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import packageJson from '../../package.json'
import type { HttpPorts } from '../../src/adapters/http/endpoint.ts'
import { type MetricsPorts, metricsRoutes } from '../../src/adapters/http/endpoints/metrics.ts'
import { rootRoutes } from '../../src/adapters/http/endpoints/root.tsx'
import { HttpRequests } from '../../src/adapters/http/http-request.ts'
import { createHttp } from '../../src/adapters/http/server.ts'
import { type OutboxPorts, outboxRoutes } from '../../src/adapters/outbox/routes.ts'
import { eventBody } from '../../src/domain/delivery/message-events.ts'
import type { EventType, StoredEvent } from '../../src/domain/ground/webhook-events.ts'
import { version } from '../../src/version.ts'
import { type Answer, createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { startReceiver } from '../support/receiver.ts'

type Json = Record<string, unknown>

interface Media {
  readonly schema: Json
  readonly examples: Readonly<Record<string, { readonly value: Json }>>
}
type Content = Readonly<Record<string, Media | undefined>>

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly security?: readonly Json[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<
    // A response without a body is sent before the server reads the request.
    Record<string, { readonly headers: Readonly<Record<string, Json>>; readonly content?: Content }>
  >
}

interface Document extends Json {
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: { readonly Error: { readonly properties: { readonly error: { enum: string[] } } } }
  }
}

/** A request and its response. */
interface HttpRequest {
  readonly operation: string
  readonly body?: unknown
  readonly answer: Answer
}

/** One request of the tour: what it sends, and the response that it must cause. */
type Row = readonly [request: string, fields: Readonly<Record<string, unknown>>, expected: string]

const json = 'application/json'

/** The statuses of each type of event (design D45). */
const eventStatuses: Readonly<Record<EventType, readonly StoredEvent['status'][]>> = {
  'message.delivered': ['delivered'],
  'message.failed': ['failed', 'unknown'],
  'otp.verified': [null],
  'otp.locked': [null],
}

const postPaths = [
  '/otp/send',
  '/otp/resend',
  '/otp/verify',
  '/notify',
  '/messages/status',
  '/integrations/requests',
]

let document: Document
let ajv: Ajv2020
const httpRequests: HttpRequest[] = []
const wrongTurns: string[] = []

beforeAll(async () => {
  const app = await createTestApp()
  document = (await app.get('/openapi.json')).body
  await app.close()
  ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addFormat('idn-email', /^[^@\s]+@[^@\s]+$/u)
  // Schemas are compiled within the document, whose own fields are not schema keywords.
  ajv.addVocabulary(Object.keys(document))
  ajv.addSchema(document, 'openapi', false, false)
  await tour()
})

// --- The document itself -----------------------------------------------------------------------------------

test('the description is valid OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document))
  expect({ valid, errors, version: validator.version }).toEqual({
    valid: true,
    errors: undefined,
    version: '3.1',
  })
})

test('it has every API route of the service and no other', () => {
  // No handler runs, so the ports are not needed.
  const log = { info: () => {}, warn: () => {}, error: () => {} }
  const outbox = {} as OutboxPorts
  const httpRequests = new HttpRequests([], () => 0)
  const contextOf = (request: Request) => httpRequests.of(request)
  const { routes } = createHttp({} as HttpPorts, {
    version,
    publicUrl: undefined,
    log,
    httpRequests,
    listeners: [],
    added: [
      { routes: metricsRoutes({} as MetricsPorts) },
      { routes: outboxRoutes(outbox, contextOf) },
      { routes: rootRoutes({ version, hasOutbox: true, hasConsole: async () => true }, contextOf) },
    ],
    hasOutbox: true,
    ownUrl: () => '',
    tracing: undefined,
    isStopping: () => false,
    isKnownHost: () => true,
  })
  const isPage = (path: string) =>
    // Relays have the formats of their callers.
    /^\/(?:relay\/.*|api\/manage.*|2010-04-01\/.*|docs(?:\/.*)?|openapi\.json|outbox(?!\/messages$).*|page\.css|page\.js|times\.js)$/.test(
      path,
    )
  const served = routes.filter(({ path }) => !isPage(path)).map(({ method, path }) => `${method} ${path}`)
  expect(
    operations()
      .map(([name]) => name)
      .sort(),
  ).toEqual(served.sort())
})

test('it has the running version, and the tags and ids that its operations use', () => {
  expect(document.info).toMatchObject({
    version,
    license: { name: 'Apache License 2.0', identifier: packageJson.license },
  })
  const all = [
    ...operations().map(([, operation]) => operation),
    ...Object.values(document.webhooks).map(({ post }) => post),
  ]
  expect(new Set(all.map(({ operationId }) => operationId)).size).toBe(all.length)
  expect(new Set(all.flatMap(({ tags }) => tags))).toEqual(new Set(document.tags.map(({ name }) => name)))
})

test('each of its examples matches its schema', () => {
  const problems = operations().flatMap(([name, { requestBody, responses }]) => {
    const places = Object.entries(responses).map(([status, { content = {} }]): [string, Content] => [
      `responses/${status}`,
      content,
    ])
    if (requestBody) places.push(['requestBody', requestBody.content])
    return places.flatMap(([place, content]) => {
      return Object.entries(content[json]?.examples ?? {})
        .filter(([, { value }]) => !compile(name, place)(value))
        .map(([example]) => `${name} ${place} ${example}`)
    })
  })
  expect(problems).toEqual([])
})

test.each(Object.entries(eventStatuses))('%s is described, and its example is an event', (type, statuses) => {
  const { schema, examples } = document.webhooks[type]?.post.requestBody?.content[json] ?? {}
  const validate = ajv.getSchema(`openapi${schema?.$ref}`)
  if (!schema || !validate) throw new Error(`the description has no event ${type}`)
  const about = { appId: 'shop', state: 'waiting', tries: 0, dueAt: 0, triedAt: null, endedAt: null } as const
  const bare = { brand: null, reference: null, position: null, reason: null } as const
  const full = { brand: 'acme', reference: 'login-7', position: 3, reason: '30003' } as const
  const bodies = statuses.flatMap((status) =>
    [bare, full].map((fields) => {
      const id = { id: 'evt_1', at: 0, requestId: crypto.randomUUID(), reportKey: null, httpStatus: null }
      const message = {
        type: type as EventType,
        channel: 'SMS',
        recipient: '12*******43',
        error: null,
        answer: null,
      } as const
      return JSON.parse(eventBody({ ...id, ...message, ...about, ...fields, status }))
    }),
  )
  const shown = Object.values(examples ?? {}).map(({ value }) => value)
  expect([...bodies, ...shown].filter((body) => !validate(body))).toEqual([])
  expect(bodies.flatMap((body) => undescribed(body, [schema]))).toEqual([])
  expect(validate({ ...bodies[0], type: 'message.sent' })).toBe(false)
})

// --- Responses of the service ------------------------------------------------------------------------------

test('each request of the tour gets the expected response', () => {
  expect(wrongTurns).toEqual([])
})

test('each response is described, in status, code, body and headers', () => {
  expect(httpRequests.flatMap(problemsOf)).toEqual([])
})

test('each accepted request matches the described body', () => {
  const accepted = httpRequests.filter(({ body, answer }) => body !== undefined && answer.status < 300)
  expect(accepted.length).toBeGreaterThan(10)
  const unfit = accepted.filter(({ operation, body }) => !compile(operation, 'requestBody')(body))
  expect(unfit.map(({ operation, body }) => ({ operation, body }))).toEqual([])
})

/** Not those that a schema cannot express: missing credentials, which a header can have, missing data of a placeholder, and what depends on stored data. */
const ofFields = new Set([
  'validation_error',
  'brand_id_required',
  'invalid_channel',
  'otp_template_not_supported',
  'invalid_input',
  'invalid_otp_format',
  'invalid_contact',
])

test('each request rejected for a field does not match the described body', () => {
  const refused = httpRequests.filter(
    ({ body, answer }) => body !== undefined && ofFields.has(answer.body.error),
  )
  expect(new Set(refused.map(({ answer }) => answer.body.error))).toEqual(ofFields)
  const fitting = refused.filter(({ operation, body }) => compile(operation, 'requestBody')(body))
  expect(fitting.map(({ operation, body }) => ({ operation, body }))).toEqual([])
})

test('operations with credentials declare both headers and the body, which then may lack them', () => {
  const inHeaderOrBody = [{ appBasic: [] }, { appKey: [] }, {}]
  const declared = operations().filter(([, { security }]) => isDeepStrictEqual(security, inHeaderOrBody))
  const withCredentials = postPaths.filter((path) => path !== '/integrations/requests')
  expect(declared.map(([name]) => pathOf(name)).sort()).toEqual(withCredentials.sort())
  const problems = declared.flatMap(([name, { requestBody }]) =>
    Object.entries(requestBody?.content[json]?.examples ?? {})
      .filter(
        ([
          ,
          {
            value: { appId: _, apiKey: __, ...body },
          },
        ]) => !compile(name, 'requestBody')(body),
      )
      .map(([example]) => `${name} ${example}`),
  )
  expect(problems).toEqual([])
})

/** Described responses that the tour does not cause. */
const notProvoked = [
  // Omits a link if the database fails.
  'GET / 500 internal_error',
  'GET /.well-known/jwks.json 500 internal_error',
  // Answers 503 to every database error, and has no other cause of failure.
  'GET /health 500 internal_error',
  'GET /health/live 500 internal_error',
  'GET /health/ready 500 internal_error',
  // Without an error of the program, a scrape does not fail.
  'GET /metrics 500 internal_error',
  // Only a node whose clock differs from the database's can answer so: a guess stores its answer.
  'POST /otp/verify 409 idempotency_in_progress',
  // No proxy, and the tour's requests are few.
  ...['/integrations/catalog', '/platform/brands'].map((path) => `GET ${path} 503 unavailable`),
  ...postPaths.map((path) => `POST ${path} 503 unavailable`),
].sort()

test('the tour causes each described response, except those that no request can cause', () => {
  const seen = new Set(httpRequests.map(pairOf))
  const unseen = describedPairs().filter((pair) => !seen.has(pair))
  expect(unseen.sort()).toEqual(notProvoked)
})

test('each described response without a body is that to headers of more than 16 KiB', async () => {
  const app = await createTestApp({ PORT: '0' })
  const { origin } = app.app.listen()
  const paths = operations().flatMap(([name, { responses }]) =>
    Object.entries(responses).flatMap(([status, { content }]) => (content ? [] : [[pathOf(name), status]])),
  )
  const answers = await Promise.all(
    paths.map(async ([path]) => {
      const response = await fetch(`${origin}${path}`, { headers: { 'x-filler': 'x'.repeat(16 * 1024) } })
      return [path, String(response.status), await response.text()]
    }),
  )
  await app.close()
  expect(answers).toEqual(paths.map((pair) => [...pair, '']))
  expect(paths.length).toBeGreaterThan(0)
})

// --- Requests the service accepts --------------------------------------------------------------------------

describe('a request example', () => {
  let app: TestApp
  let now = Date.UTC(2026, 0, 1, 12)

  beforeAll(async () => {
    app = await createTestApp({ APP_CREDENTIALS: JSON.stringify({ demo: 'otp_example_key' }) })
    await app.brand('acme', {
      displayName: 'Acme',
      loginIdEnabled: true,
      notifyTemplates: ['ORDER_PLACED', 'ORDER_DELIVERED', 'OUT_FOR_DELIVERY'],
    })
    await app.brand('plain', { displayName: 'Plain' })
  })
  afterAll(() => app.close())

  /**
   * What the service says of the fields of a body, an hour after the last one, so that limits do not matter. Undefined:
   * its answer depends on what is stored, such as the brand.
   */
  async function isTaken(operation: string, body: Json): Promise<boolean | undefined> {
    app.advance(3600)
    now += 3_600_000
    const sent = JSON.parse(JSON.stringify(body).replaceAll(soon, new Date(now + 60_000).toISOString()))
    const { status, body: answer } = await app.postRaw(pathOf(operation), sent)
    if (status < 300 || answer.error === 'not_found') return true
    // The schema does not list the currencies.
    if (answer.field === 'transaction.currency' && /^[A-Za-z]{3}$/.test(sent.transaction.currency))
      return undefined
    return ofFields.has(answer.error) ? false : undefined
  }

  /** Every body that the schema and the service judge differently. The schema has one spelling of each channel. */
  async function disagreements(bodies: readonly (readonly [operation: string, body: Json])[]) {
    const found: object[] = []
    for (const [operation, body] of bodies) {
      const taken = await isTaken(operation, body)
      const fits = compile(operation, 'requestBody')(withUpperChannels(body))
      if (taken !== undefined && taken !== fits) found.push({ operation, taken, body: shortened(body) })
    }
    return found
  }

  /** The examples of an operation, and what its schema describes beside them. */
  function examplesOf(operation: string): Json[] {
    const { examples = {} } = document.paths[pathOf(operation)]?.post?.requestBody?.content[json] ?? {}
    const bodies = Object.values(examples).map(({ value }) => value)
    return [...bodies, ...bodies.filter(({ async }) => async).map((body) => ({ ...body, async: false }))]
  }

  const posts = postPaths.map((path) => `POST ${path}`)

  test('is accepted unchanged', async () => {
    const bodies = posts.flatMap((operation) =>
      examplesOf(operation).map((body): [string, Json] => [operation, body]),
    )
    expect(await disagreements(bodies)).toEqual([])
    const refused: Json[] = []
    for (const [operation, body] of bodies) if (!(await isTaken(operation, body))) refused.push(body)
    expect(refused).toEqual([])
  })

  test('that was accepted against its schema, or rejected in spite of it, is judged alike', async () => {
    const caller = { appId: 'demo', apiKey: 'otp_example_key', brandId: 'acme' }
    const phone = '+1 202 555 0143'
    const sms = { ...caller, channel: 'SMS', to: [phone], message: 'Hello' }
    const { brandId: _, ...withoutBrand } = sms
    const mail = { ...caller, channel: 'EMAIL', to: ['pat@shop.test'], subject: 'Hello', html: '<p>Hello' }
    const rows: readonly (readonly [operation: string, body: Json])[] = [
      ['/otp/send', { ...caller, phone, loginId: 5 }],
      // A brand that does not use it.
      ['/otp/send', { ...caller, brandId: 'plain', phone, loginId: 5 }],
      ['/otp/send', { ...caller, phone, lang: [[1]] }],
      ['/otp/send', { ...caller, channel: 'EMAIL', email: 'a..b@shop.test' }],
      ['/notify', { ...sms, variables: 'x' }],
      ['/notify', { ...withoutBrand, brandId: 5, variables: { businessName: 'Acme' } }],
      ['/notify', { ...mail, brandId: 5 }],
      ['/notify', { ...mail, expiresAt: soon }],
    ]
    const bodies = rows.map(([path, body]): [string, Json] => [`POST ${path}`, body])
    expect(await disagreements(bodies)).toEqual([])
  })

  test('with any values of some fields is accepted if and only if the schema accepts it', async () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom(...oddValues()))
    const body = fc
      .tuple(fc.constantFrom(...posts), fc.nat(), fc.array(change, { minLength: 1, maxLength: 3 }))
      .map(([operation, which, changes]): [string, Json] => {
        const examples = examplesOf(operation)
        const start = examples[which % examples.length] ?? {}
        const names = [...rulesOfBody(operation), ...fieldNames]
        const end = changes.reduce((current, [place, value]) => {
          const paths = pathsOf(current, names)
          return changed(current, paths[place % paths.length] ?? [], value)
        }, start)
        return [operation, end]
      })
    await fc.assert(
      fc.asyncProperty(body, async (pair) => expect(await disagreements([pair])).toEqual([])),
      { numRuns: 300 },
    )
  })

  test('with texts and lists of the maximum size is accepted, and with one more is rejected', async () => {
    const tried: string[] = []
    const bodies = posts.flatMap((operation) =>
      examplesOf(operation).flatMap((body) =>
        sizedFields(operation, body).flatMap(({ name, max, put }): [string, Json][] => {
          tried.push(`${pathOf(operation)} ${name} ${max}`)
          return [max, max + 1].map((size) => [operation, put(size)])
        }),
      ),
    )
    expect(await disagreements(bodies)).toEqual([])
    // Design D4, D10 and D11, and the sizes that D18 leaves open.
    expect(new Set(tried)).toEqual(
      new Set([
        '/otp/send loginId 64',
        '/otp/send businessName 40',
        '/otp/send reference 64',
        '/otp/send deviceId 128',
        '/otp/send transaction.payee 40',
        '/otp/resend loginId 64',
        '/otp/resend businessName 40',
        '/otp/resend reference 64',
        '/otp/resend deviceId 128',
        '/otp/resend transaction.payee 40',
        '/otp/verify transaction.payee 40',
        '/notify to 100',
        '/notify reference 64',
        '/notify message 1600',
        '/notify variables.customerName 40',
        '/notify variables.orderId 40',
        '/notify subject 255',
        '/notify html 200000',
        '/notify template 10000',
        '/integrations/requests companyName 100',
        '/integrations/requests contactName 100',
        '/integrations/requests brandName 40',
        '/integrations/requests useCase 2000',
        '/integrations/requests website 255',
      ]),
    )
  })
})

// --- The tour ----------------------------------------------------------------------------------------------

const smsPhone = '+1 202 555 0100'
const order = { customerName: 'Pat', orderId: 'A-1042', orderDate: '2026-03-14' }
const sms = { channel: 'SMS', brandId: 'acme', to: [smsPhone] }
const mail = { channel: 'EMAIL', to: ['pat@example.com'], subject: 'Opening hours' }
const wanted = {
  companyName: 'Acme Bikes Ltd',
  contactName: 'Sam Rider',
  contactEmail: 'sam@example.com',
  brandName: 'Acme Bikes',
}
const token = 'token-of-the-scraper'
const tooLarge = JSON.stringify({ filler: 'x'.repeat(256 * 1024) })

/** Calls the service in several configurations, so that every response occurs. */
async function tour(): Promise<void> {
  await visit({}, atWork)
  await visit({ GLOBAL_LIMIT_PER_MINUTE: '1' }, limited)
  const receiver = startReceiver(() => new Response(null, { status: 500 }))
  // Port 1 refuses connections, so that no mail is sent.
  const failing = { ...receiver.env, SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'codes@example.com' }
  await visit({ ...failing, SMS_PLAIN: 'webhook', SMS_TEMPLATE: 'webhook' }, withoutProviders)
  await receiver.stop()
  await visit({}, withoutTables)
  await visit({ OUTBOX_TOKEN: 'a-token-of-the-outbox', METRICS_TOKEN: token }, async (app) => {
    await look(app, [
      ['/outbox/messages', '401 unauthorized'],
      ['/metrics', '401 unauthorized'],
    ])
    const headers = { authorization: `Bearer ${token}` }
    keep('GET /metrics', await app.request('GET', '/metrics', { headers }), '200')
  })
}

async function visit(
  env: Readonly<Record<string, string>>,
  scene: (app: TestApp) => Promise<void>,
): Promise<void> {
  const app = await createTestApp({
    APP_CREDENTIALS: JSON.stringify({ shop: 'key-of-the-shop', 'shop:1': 'key-of-shop-1' }),
    OTP_SMS_MODE: 'template',
    ...env,
  })
  await app.brand('acme', {
    displayName: 'Acme',
    dltEnabled: true,
    loginIdEnabled: true,
    notifyTemplates: ['ORDER_PLACED'],
  })
  await app.brand('draft', { status: 'pending' })
  await app.brand('closed', { status: 'suspended' })
  await scene(app)
  await app.close()
}

async function atWork(app: TestApp): Promise<void> {
  for (const path of ['/otp/send', '/otp/resend']) {
    app.advance(3600)
    await walk(app, [
      [path, { phone: smsPhone, loginId: 'pat-07', businessName: 'Acme Bikes' }, '200'],
      [path, { phone: smsPhone }, '429 cooldown_active'],
      [path, { channel: 'EMAIL', email: 'pat@example.com' }, '200'],
      [path, { channel: 'SMS' }, '400 validation_error'],
      [path, { channel: 'EMAIL', email: 'pat' }, '400 validation_error'],
      [path, { brandId: undefined, phone: smsPhone }, '400 brand_id_required'],
      [path, { appId: undefined, phone: smsPhone }, '401 unauthorized'],
      [path, { apiKey: 'wrong', phone: smsPhone }, '403 forbidden'],
      [path, { brandId: 'draft', phone: smsPhone }, '403 brand_not_approved'],
      [path, { brandId: 'closed', phone: smsPhone }, '403 brand_suspended'],
    ])
  }

  app.advance(3600)
  const phone = '+1 202 555 0143'
  const email = 'sam@example.com'
  await walk(app, [
    ['/otp/send', { phone }, '200'],
    ['/otp/send', { channel: 'EMAIL', email }, '200'],
  ])
  const otp = await app.lastCode(phone)
  await walk(app, [
    ['/otp/verify', { phone, otp: otherThan(otp) }, '401 mismatch'],
    ['/otp/verify', { phone, otp }, '200'],
    ['/otp/verify', { phone, otp }, '404 not_found'],
    ['/otp/verify', { email, otp: await app.lastCode(email) }, '200'],
    ['/otp/verify', { phone }, '400 validation_error'],
    ['/otp/verify', { phone, email, otp }, '400 validation_error'],
    ['/otp/verify', { phone, otp: 123456 }, '400 invalid_input'],
    ['/otp/verify', { phone, otp: '12345' }, '400 invalid_otp_format'],
    ['/otp/verify', { phone: 'x', otp }, '400 invalid_contact'],
    ['/otp/verify', { appId: 'shop:1', apiKey: 'key-of-shop-1', phone, otp }, '400 invalid_app_id'],
    ['/otp/verify', { brandId: undefined, phone, otp }, '400 brand_id_required'],
    ['/otp/verify', { apiKey: undefined, phone, otp }, '401 unauthorized'],
    ['/otp/verify', { apiKey: 'wrong', phone, otp }, '403 forbidden'],
    ['/otp/verify', { brandId: 'draft', phone, otp }, '403 brand_not_approved'],
    ['/otp/verify', { brandId: 'closed', phone, otp }, '403 brand_suspended'],
  ])
  app.advance(3600)
  await walk(app, [['/otp/send', { phone }, '200']])
  const wrong = otherThan(await app.lastCode(phone))
  await walk(app, [
    ['/otp/verify', { phone, otp: wrong }, '401 mismatch'],
    ['/otp/verify', { phone, otp: wrong }, '401 mismatch'],
    ['/otp/verify', { phone, otp: wrong }, '401 mismatch'],
    ['/otp/verify', { phone, otp: wrong }, '429 max_attempts'],
  ])

  app.advance(3600)
  const withKey = async (path: string, fields: object, key = 'key-1') => {
    const request = { appId: 'shop', apiKey: 'key-of-the-shop', ...fields }
    const headers = { 'content-type': json, 'idempotency-key': key }
    const answer = await app.request('POST', path, { headers, body: JSON.stringify(request) })
    return { is: (expected: string) => keep(`POST ${path}`, answer, expected, request) }
  }
  for (const [path, body, other] of [
    ['/otp/send', { brandId: 'acme', phone }, { brandId: 'acme', phone, reference: 'other' }],
    [
      '/otp/resend',
      { brandId: 'acme', channel: 'EMAIL', email },
      { brandId: 'acme', channel: 'EMAIL', email: 'pat@example.com' },
    ],
    ['/notify', { ...mail, template: 'Hello' }, { ...mail, template: 'Good day' }],
  ] as const) {
    const delivery = heldDelivery(app)
    const first = withKey(path, body)
    await delivery.begun
    const second = await withKey(path, body)
    second.is('409 idempotency_in_progress')
    delivery.end()
    ;(await first).is('200')
    const again = await withKey(path, body)
    again.is('200')
    const reused = await withKey(path, other)
    reused.is('422 idempotency_key_reused')
  }
  const right = { brandId: 'acme', phone, otp: await app.lastCode(phone) }
  const mistaken = { ...right, otp: otherThan(right.otp) }
  for (const [fields, key, expected] of [
    [mistaken, 'a', '401 mismatch'],
    [{ ...right, proof: true }, 'b', '200'],
  ] as const) {
    for (const _ of [1, 2]) {
      const answer = await withKey('/otp/verify', fields, key)
      answer.is(expected)
    }
  }
  const reusedGuess = await withKey('/otp/verify', right, 'a')
  reusedGuess.is('422 idempotency_key_reused')

  const template = { ...sms, templateKey: 'ORDER_PLACED', variables: order }
  await walk(app, [
    ['/notify', { ...sms, message: 'Your table is ready.' }, '200'],
    ['/notify', { ...sms, message: 'Your table is ready.', async: true }, '202'],
    ['/notify', { ...mail, html: '<p>Hello</p>', async: true, expiresAt: '2026-01-01T19:00Z' }, '202'],
    ['/notify', { ...sms, message: 'Hello', async: 'true' }, '400 validation_error'],
    ['/notify', { ...sms, message: 'Hello', async: true, expiresAt: 'soon' }, '400 validation_error'],
    ['/notify', template, '200'],
    ['/notify', { ...template, brandId: undefined, variables: { ...order, businessName: 'Acme' } }, '200'],
    ['/notify', { ...mail, html: '<p>We open at nine.</p>' }, '200'],
    [
      '/notify',
      { ...mail, brandId: 'acme', template: 'Hi {{name}}', data: { name: 'Pat', total: 3 } },
      '200',
    ],
    ['/notify', { ...sms, to: [], message: 'Hello' }, '400 validation_error'],
    ['/notify', { ...mail, html: '<p>Hello</p>', template: 'Hello' }, '400 validation_error'],
    ['/notify', { ...sms, brandId: undefined, message: 'Hello' }, '400 brand_id_required'],
    ['/notify', { ...sms, channel: 'FAX', message: 'Hello' }, '400 invalid_channel'],
    ['/notify', { ...template, templateKey: 'LOGIN_OTP' }, '400 otp_template_not_supported'],
    ['/notify', { ...template, templateKey: 'ORDER_LOST' }, '400 invalid_template'],
    ['/notify', { ...template, variables: { ...order, businessName: 'Other' } }, '400 unsupported_business'],
    ['/notify', { ...template, variables: {} }, '400 missing_variable'],
    ['/notify', { ...mail, template: 'Hi {{name}}' }, '400 missing_variable'],
    ['/notify', { ...sms, appId: undefined, message: 'Hello' }, '401 unauthorized'],
    ['/notify', { ...sms, apiKey: 'wrong', message: 'Hello' }, '403 forbidden'],
    ['/notify', { ...sms, brandId: 'draft', message: 'Hello' }, '403 brand_not_approved'],
    ['/notify', { ...sms, brandId: 'closed', message: 'Hello' }, '403 brand_suspended'],
    ['/notify', { ...template, templateKey: 'ORDER_DELIVERED' }, '403 template_not_allowed'],
  ])

  const { requestId: messageRequestId } = (await app.post('/notify', { ...sms, message: 'Hello' })).body
  await walk(app, [
    ['/messages/status', { messageRequestId }, '200'],
    ['/messages/status', { messageRequestId: 'x' }, '404 not_found'],
    ['/messages/status', { messageRequestId: null }, '400 validation_error'],
    ['/messages/status', { appId: undefined, messageRequestId }, '401 unauthorized'],
    ['/messages/status', { apiKey: 'wrong', messageRequestId }, '403 forbidden'],
    ['/messages/status', { messageRequestId: crypto.randomUUID() }, '404 not_found'],
  ])

  for (const path of postPaths) {
    keep(`POST ${path}`, await app.postRaw(path, '{'), '400 validation_error')
    keep(`POST ${path}`, await app.postRaw(path, tooLarge), '413 validation_error')
  }

  const request = {
    ...wanted,
    channels: ['SMS'],
    website: 'https://bikes.example.com',
    useCase: 'Codes.\nAnd news.',
  }
  for (const body of [wanted, request, request, request, request]) await ask(app, body, '201')
  await ask(app, request, '429 rate_limited')
  await ask(app, { ...request, contactEmail: 'sam' }, '400 validation_error')

  await look(app, [
    ['/', '200'],
    ['/.well-known/jwks.json', '200'],
    ['/health', '200'],
    ['/health/live', '200'],
    ['/health/ready', '200'],
    ['/integrations/catalog', '200'],
    ['/integrations/catalog?country=US', '200'],
    ['/integrations/catalog?country=1', '400 validation_error'],
    ['/platform/brands', '200'],
    ['/outbox/messages', '200'],
    [`/outbox/messages?to=${encodeURIComponent(phone)}&after=0&limit=1&wait=1`, '200'],
    ['/outbox/messages?limit=501', '400 validation_error'],
    ['/metrics', '404 not_found'],
  ])
}

/** The next message waits until it is released; begun: it has reached the outbox. */
function heldDelivery({ app: { context } }: TestApp) {
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const { add } = context.outbox
  Object.assign(context.outbox, {
    add: async (...message: Parameters<typeof add>) => {
      Object.assign(context.outbox, { add })
      begun.resolve()
      await released.promise
      return add(...message)
    },
  })
  return { begun: begun.promise, end: released.resolve }
}

async function limited(app: TestApp): Promise<void> {
  await walk(app, [
    ['/otp/send', { phone: smsPhone }, '200'],
    ['/otp/send', { phone: '+1 202 555 0101' }, '429 rate_limited'],
    ['/otp/resend', { phone: '+1 202 555 0101' }, '429 rate_limited'],
    ['/otp/verify', { phone: smsPhone, otp: '123456' }, '429 rate_limited'],
    ['/notify', { ...sms, message: 'Hello' }, '429 rate_limited'],
  ])
  const messageRequestId = crypto.randomUUID()
  for (let count = 0; count < 60; count++) await app.post('/messages/status', { messageRequestId })
  await walk(app, [['/messages/status', { messageRequestId }, '429 rate_limited']])
}

async function withoutProviders(app: TestApp): Promise<void> {
  await walk(app, [
    ['/otp/send', { phone: smsPhone }, '502 sms_failed'],
    ['/otp/send', { channel: 'EMAIL', email: 'pat@example.com' }, '502 sms_failed'],
    ['/otp/resend', { phone: smsPhone }, '502 sms_failed'],
    ['/notify', { ...sms, message: 'Hello' }, '500 notification_failed'],
    ['/notify', { ...mail, html: '<p>Hello</p>' }, '500 notification_failed'],
  ])
  await look(app, [['/outbox/messages', '404 not_found']])
}

/** A database without its tables, as if the file had been replaced by a wrong one. */
async function withoutTables(app: TestApp): Promise<void> {
  await app.database.loseTables()
  await walk(app, [
    ['/otp/send', { phone: smsPhone }, '500 internal_error'],
    ['/otp/resend', { phone: smsPhone }, '500 internal_error'],
    ['/otp/verify', { phone: smsPhone, otp: '123456' }, '500 internal_error'],
    ['/notify', { ...sms, message: 'Hello' }, '500 internal_error'],
    ['/messages/status', { messageRequestId: crypto.randomUUID() }, '500 internal_error'],
  ])
  await ask(app, wanted, '500 internal_error')
  await look(app, [
    ['/health', '503'],
    ['/health/ready', '503'],
    ['/platform/brands', '500 internal_error'],
    ['/integrations/catalog', '500 internal_error'],
    ['/outbox/messages', '500 internal_error'],
  ])
}

/** Sends requests with credentials, one after the other. */
async function walk(app: TestApp, rows: readonly Row[]): Promise<void> {
  for (const [path, fields, expected] of rows) {
    const brand = path.startsWith('/otp/') ? { brandId: 'acme' } : {}
    const body = JSON.parse(JSON.stringify({ appId: 'shop', apiKey: 'key-of-the-shop', ...brand, ...fields }))
    keep(`POST ${path}`, await app.postRaw(path, body), expected, body)
  }
}

async function ask(app: TestApp, body: Json, expected: string): Promise<void> {
  const path = '/integrations/requests'
  keep(`POST ${path}`, await app.postRaw(path, body), expected, body)
}

async function look(
  app: TestApp,
  rows: readonly (readonly [path: string, expected: string])[],
): Promise<void> {
  for (const [path, expected] of rows) {
    keep(`GET ${path.replace(/\?.*/, '')}`, await app.get(path), expected)
  }
}

function keep(operation: string, answer: Answer, expected: string, body?: unknown): void {
  const httpRequest = { operation, answer, ...(body === undefined ? {} : { body }) }
  httpRequests.push(httpRequest)
  const pair = pairOf(httpRequest)
  if (pair !== `${operation} ${expected}`) {
    wrongTurns.push(`${JSON.stringify(body)} was to get ${expected}, got ${pair}`)
  }
}

// --- Reading the description -------------------------------------------------------------------------------

function operations(): [name: string, operation: Operation][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method.toUpperCase()} ${path}`,
      operation,
    ]),
  )
}

function pathOf(operation: string): string {
  return operation.slice(operation.indexOf(' ') + 1)
}

/** The validator of a body at a place of an operation, such as `responses/200`. */
function compile(operation: string, place: string): ValidateFunction {
  const [method = '', path = ''] = operation.split(' ')
  const pointer = [path, method.toLowerCase(), ...place.split('/'), 'content', json, 'schema']
    .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
    .join('/')
  const validate = ajv.getSchema(`openapi#/paths/${pointer}`)
  if (!validate) throw new Error(`the description has no body at ${operation} ${place}`)
  return validate
}

/** A response as one line: the operation, its status and, for an error, the code. */
function pairOf({ operation, answer: { status, body } }: HttpRequest): string {
  return `${operation} ${status}${body.error === undefined ? '' : ` ${body.error}`}`
}

/**
 * The same for all described responses: a response has a code if its schema accepts an envelope with that
 * code.
 */
function describedPairs(): string[] {
  const codes = document.components.schemas.Error.properties.error.enum
  return operations().flatMap(([name, { responses }]) =>
    Object.entries(responses).flatMap(([status, { content }]) => {
      if (!content?.[json]) return content ? [`${name} ${status}`] : []
      const validate = compile(name, `responses/${status}`)
      const envelope = { success: false, message: 'Text', requestId: crypto.randomUUID() }
      const possible = codes.filter(
        (error) => validate({ ...envelope, error }) || validate({ ...envelope, error, channel: 'SMS' }),
      )
      return possible.length === 0
        ? [`${name} ${status}`]
        : possible.map((code) => `${name} ${status} ${code}`)
    }),
  )
}

function problemsOf(httpRequest: HttpRequest): string[] {
  const { operation, answer } = httpRequest
  const problem = (text: string) => `${pairOf(httpRequest)}: ${text}`
  const described = document.paths[pathOf(operation)]?.[operation.split(' ')[0]?.toLowerCase() ?? '']
  const response = described?.responses[answer.status]
  if (!response) return [problem('this status is not described')]

  const problems: string[] = []
  const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
  const media = response.content?.[type]
  if (!media) problems.push(problem(`the type is ${type}`))
  if (type === json) {
    const validate = compile(operation, `responses/${answer.status}`)
    if (!validate(answer.body)) problems.push(problem(ajv.errorsText(validate.errors)))
    // The schemas are open, but they have every field of this version.
    const extra = media ? undescribed(answer.body, [media.schema]) : []
    if (extra.length > 0) problems.push(problem(`not described: ${extra}`))
    const isReplay = answer.headers.has('idempotency-replayed')
    // Callers share a cached answer.
    const isCached = answer.headers.get('cache-control')?.startsWith('public') ?? false
    if (!isCached && (answer.headers.get('x-request-id') !== answer.body.requestId) !== isReplay) {
      problems.push(problem('the header and the body have different request ids'))
    }
  }
  for (const [name, { $ref }] of Object.entries(response.headers)) {
    const value = answer.headers.get(name)
    if (value === null && name === 'Idempotency-Replayed') continue
    if (value === null && name === 'WWW-Authenticate' && answer.body.error === 'mismatch') continue
    const fits = ajv.getSchema<unknown>(`openapi${$ref}/schema`)
    if (!fits?.(name === 'Retry-After' ? Number(value) : value)) problems.push(problem(`${name}: ${value}`))
  }
  if (answer.headers.has('retry-after') !== [409, 429].includes(answer.status)) {
    problems.push(problem('Retry-After belongs to 409 and 429 and to nothing else'))
  }
  return problems
}

interface Sized {
  readonly name: string
  readonly max: number
  /** The body with this field at a given size. */
  put(size: number): Json
}

/** The fields of a body with a described maximum size, one level of objects deep. */
function sizedFields(operation: string, body: Json): Sized[] {
  const schema = document.paths[pathOf(operation)]?.post?.requestBody?.content[json]?.schema ?? {}
  return Object.entries(body).flatMap(([name, value]): Sized[] => {
    const rules = rulesOf([schema], name)
    if (Array.isArray(value)) {
      return sizes(rules, 'maxItems').map((max) => {
        return { name, max, put: (size) => ({ ...body, [name]: Array(size).fill(value[0]) }) }
      })
    }
    if (typeof value === 'string') {
      return sizes(rules, 'maxLength').map((max) => {
        return { name, max, put: (size) => ({ ...body, [name]: longer(value, size) }) }
      })
    }
    return Object.entries(value as Record<string, string>).flatMap(([key, text]): Sized[] =>
      sizes(rulesOf(rules, key), 'maxLength').map((max) => {
        const put = (size: number) => ({ ...body, [name]: { ...(value as Json), [key]: longer(text, size) } })
        return { name: `${name}.${key}`, max, put }
      }),
    )
  })
}

/** The different maxima in the rules of a field. */
function sizes(rules: readonly Json[], keyword: 'maxItems' | 'maxLength'): number[] {
  return [...new Set(rules.flatMap(({ [keyword]: max }) => (typeof max === 'number' ? [max] : [])))]
}

/** A schema, what it refers to, and its alternatives. */
function partsOf(schema: Json): Json[] {
  const { $ref, allOf = [], anyOf = [] } = schema as Record<string, Json[]>
  const named: Record<string, Json | undefined> = document.components.schemas as never
  const referred = $ref && named[String($ref).replace('#/components/schemas/', '')]
  return [schema, ...[...allOf, ...anyOf, ...(referred ? [referred] : [])].flatMap(partsOf)]
}

/** What the schemas say of a field. */
function rulesOf(schemas: readonly Json[], name: string): Json[] {
  return schemas.flatMap(partsOf).flatMap(({ properties = {}, additionalProperties }) => {
    const { [name]: rule = additionalProperties } = properties as Record<string, Json | undefined>
    return rule ? partsOf(rule as Json) : []
  })
}

/** The paths of fields that no schema has. */
function undescribed(value: unknown, schemas: readonly Json[]): string[] {
  if (Array.isArray(value)) {
    const items = schemas.flatMap(partsOf).flatMap(({ items }) => (items ? [items as Json] : []))
    return value.flatMap((element) => undescribed(element, items))
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => {
    const rules = rulesOf(schemas, name)
    return rules.length === 0 ? [name] : undescribed(field, rules).map((path) => `${name}.${path}`)
  })
}

/** Names that requests of some operation have. */
const fieldNames =
  'message templateKey html template data subject variables otp phone email to lang reference'.split(' ')

/** Replaced by a time in the near future. */
const soon = '2999-12-31T23:59:59.999Z'

/** What a field may hold by mistake, beside right values of other fields. Absent: undefined. */
function oddValues(): unknown[] {
  const texts =
    '|  |x|5|true|SMS|sms|eMail|FAX|SMS |ſms|acme|LOGIN_OTP|ORDER_PLACED|123456|12345|+1 202 555 0144|1 2 3 4 5 6|call me|pat@shop.test|a..b@shop.test|.a@shop.test|a@b@shop.test|a@shop..test|a@-shop.test|two words@shop.test|2026-03-14|2026-03-14T15:09'.split(
      '|',
    )
  const lists = [[], ['x'], ['sms', 'EMAIL'], [5], [[1]], ['+1 202 555 0145', 'pat@shop.test']]
  const objects = [{}, { businessName: 'acme' }, { businessName: 5 }, { otp: '123456' }]
  return [undefined, null, 5, true, false, ...texts, soon, ...lists, ...objects]
}

/** The names of the fields that the schema of a body knows. */
function rulesOfBody(operation: string): string[] {
  const schema = document.paths[pathOf(operation)]?.post?.requestBody?.content[json]?.schema ?? {}
  return [...new Set(partsOf(schema).flatMap(({ properties = {} }) => Object.keys(properties as Json)))]
}

/** A field, or a field or element in it. */
type Path = readonly (string | number)[]

function pathsOf(body: Json, names: readonly string[]): Path[] {
  return names.flatMap((name): Path[] => {
    const value = body[name]
    const inner = typeof value === 'object' && value !== null ? Object.keys(value) : []
    return [[name], ...inner.map((key): Path => [name, Array.isArray(value) ? Number(key) : key])]
  })
}

function changed(body: Json, [name = '', inner]: Path, value: unknown): Json {
  const copy = structuredClone(body)
  const place: Record<string | number, unknown> = inner === undefined ? copy : (copy[name] as Json)
  place[inner ?? name] = value
  // As it is sent: without undefined.
  return JSON.parse(JSON.stringify(copy))
}

/** The description lists each channel once. */
function withUpperChannels(body: Json): Json {
  const upper = (value: unknown) =>
    typeof value === 'string' && /^(sms|email)$/i.test(value) && !/[ſı]/.test(value)
      ? value.toUpperCase()
      : value
  const { channel, channels } = body
  return {
    ...body,
    ...('channel' in body ? { channel: upper(channel) } : {}),
    ...('channels' in body ? { channels: Array.isArray(channels) ? channels.map(upper) : channels } : {}),
  }
}

function longer(text: string, size: number): string {
  return text + 'x'.repeat(size - text.length)
}

function shortened(body: Json): string {
  return JSON.stringify(body, (_, value) =>
    typeof value === 'string' && value.length > 60 ? `${value.length} characters` : value,
  ).slice(0, 600)
}
