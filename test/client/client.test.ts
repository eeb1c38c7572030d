import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ClientOptions, createClient, defaultTimeoutMs, type OtpostClient } from 'otpost/client'
import { operations } from '../../client/contract.ts'
import packageJson from '../../package.json'
import { longestDeliveryMs } from '../../src/domain/delivery/delivery.ts'
import { longestNotifyMs } from '../../src/domain/notify/notify.ts'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { createTestApp, credentials, otherThan, type TestApp } from '../support/app.ts'
import { tester } from '../support/operator.ts'
import { startReceiver } from '../support/receiver.ts'

type Method = keyof OtpostClient

const phone = '+1 202 555 0143'
const email = 'pat@example.com'

/** A client of the service in this process. It waits by advancing its clock. */
function clientOf(app: TestApp, options: Partial<ClientOptions> = {}) {
  const bodies: Record<string, unknown>[] = []
  const waits: number[] = []
  const client = createClient({
    url: 'http://localhost',
    ...credentials,
    brandId: 'acme',
    fetch: async (url, init) => {
      if (init.body) bodies.push(JSON.parse(String(init.body)))
      return app.app.handle(new Request(url, init))
    },
    wait: async (delayMs) => {
      waits.push(delayMs)
      app.advance(delayMs / 1000)
    },
    random: () => 0.5,
    ...options,
  })
  return { client, bodies, waits }
}

/** A client of a stub server. It does not wait. */
function clientThatGets(answer: () => Response | Promise<Response>, options: Partial<ClientOptions> = {}) {
  const waits: number[] = []
  let attempts = 0
  const client = createClient({
    url: 'https://otpost.example.com',
    ...credentials,
    brandId: 'acme',
    fetch: async () => {
      attempts++
      return answer()
    },
    wait: async (delayMs) => void waits.push(delayMs),
    ...options,
  })
  return { client, waits, attempts: () => attempts }
}

/** A call with a request that the types may not allow. */
function call(client: OtpostClient, method: Method, request: object) {
  const calling: (request: never) => Promise<object> = client[method]
  return calling(request as never)
}

const requestId = '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7'

function envelope(error: string) {
  return { success: false, error, message: 'words', requestId }
}

// --- Every answer ---------------------------------------------------------------------------------------------------

// http/openapi.test.ts checks that the service answers so, against the description that these codes come from.
const codes = Object.entries(operations).flatMap(([method, { errors }]) =>
  errors.map((code) => [method as Method, code] as const),
)
test.each(codes)('%s returns %s with its message, status and requestId', async (method, code) => {
  const { client } = clientThatGets(() => Response.json(envelope(code), { status: 418 }), { retry: false })
  const told = { success: false, error: code, message: 'words', requestId, status: 418 }
  expect(await call(client, method, { phone })).toMatchObject(told)
})

test('notification_failed names the channel and the recipients, as messageStatus does', async () => {
  const receiver = startReceiver(() => new Response(null, { status: 503 }))
  const app = await createTestApp({ ...receiver.env, SMS_PLAIN: 'webhook' })
  const { client } = clientOf(app)
  const failed = await client.notify({ channel: 'SMS', to: [phone], message: 'Hello' })
  expect(failed).toMatchObject({
    success: false,
    error: 'notification_failed',
    channel: 'SMS',
    recipients: [{ index: 0, status: 'failed' }],
    status: 500,
  })
  const messageRequestId = failed.requestId ?? ''
  expect(await client.messageStatus({ messageRequestId })).toMatchObject({
    success: true,
    request: { requestId: messageRequestId, operation: 'notify', brandId: 'acme' },
    recipients: [{ index: 0, status: 'failed' }],
  })
  expect(await client.messageStatus({ messageRequestId: crypto.randomUUID() })).toMatchObject({
    success: false,
    error: 'not_found',
  })
  await app.close()
  await receiver.stop()
})

describe('a result', () => {
  let app: TestApp

  beforeAll(async () => {
    app = await createTestApp()
    await app.brand('acme', { displayName: 'Acme', notifyTemplates: ['ORDER_PLACED'] })
    await app.brand('bikes', { displayName: 'Acme Bikes', notifyTemplates: ['ORDER_PLACED'] })
  })
  afterAll(() => app.close())

  test('of a successful call has the fields of the answer', async () => {
    app.advance(3600)
    const { client } = clientOf(app)
    const sent = { success: true, expiresIn: 300, message: expect.any(String), requestId: expect.any(String) }
    expect(await client.send({ phone })).toEqual<unknown>(sent)
    const otp = await app.lastCode(phone)
    const verified = { success: true, message: expect.any(String), requestId: expect.any(String) }
    expect(await client.verify({ phone, otp })).toEqual<unknown>(verified)
    const variables = { customerName: 'Pat', orderId: 'A-1042', orderDate: '2026-03-14' }
    expect(
      await client.notify({ channel: 'SMS', to: [phone], templateKey: 'ORDER_PLACED', variables }),
    ).toEqual<unknown>({ ...verified, channel: 'SMS', templateKey: 'ORDER_PLACED' })
  })

  test('of a failed call has the code, the status, and the waiting time', async () => {
    app.advance(3600)
    const { client } = clientOf(app)
    await client.send({ phone })
    app.advance(10)
    expect(await client.send({ phone })).toEqual({
      success: false,
      error: 'cooldown_active',
      message: expect.any(String),
      requestId: expect.any(String),
      status: 429,
      retryAfterSeconds: 20,
    })
  })

  test('of a failed call has the reason, and the field at fault', async () => {
    const { client } = clientOf(app)
    const failed = await client.send({ phone: 'call me' })
    expect(failed).toMatchObject({ error: 'validation_error', reason: 'field', field: 'phone' })
  })

  test("is for the client's brand, unless the call names another by id or by name", async () => {
    app.advance(3600)
    const { client, bodies } = clientOf(app)
    const message = { channel: 'SMS', to: ['+1 202 555 0177'], message: 'Hello' } as const
    await client.send({ channel: 'EMAIL', email })
    await client.send({ channel: 'EMAIL', email, brandId: 'bikes' })
    await client.notify(message)
    await client.notify({ ...message, variables: { businessName: 'Acme Bikes' } })
    // Extra fields of an object do not replace the credentials.
    await call(client, 'send', { phone: '+1 202 555 0178', appId: 'other', apiKey: 'other' })
    const outbox = [...(await app.outbox(email)).slice(-2), ...(await app.outbox(message.to[0])).slice(-2)]
    expect(outbox.map(({ brandId }) => brandId)).toEqual(['acme', 'bikes', 'acme', 'bikes'])
    expect(bodies.every(({ appId, apiKey }) => appId === 'shop' && apiKey === credentials.apiKey)).toBe(true)
  })
})

test('without an appId, a call has the key in a header and no credentials in its body', async () => {
  const app = await createTestApp()
  const { key } = await issueApp(app.app.context.acting(tester), 'mobile')
  const headers: (string | null)[] = []
  const fetch: ClientOptions['fetch'] = async (url, init) => {
    headers.push(new Headers(init.headers).get('authorization'))
    return app.app.handle(new Request(url, init))
  }
  const { client } = clientOf(app, { appId: undefined, apiKey: key, fetch })
  const sent = await call(client, 'send', { phone, appId: 'other', apiKey: 'other' })
  expect(sent).toMatchObject({ success: true })
  const otp = await app.lastCode('12025550143')
  expect(await client.verify({ phone, otp })).toMatchObject({ success: true })
  expect(await client.notify({ channel: 'EMAIL', to: [email], subject: 'Hi', html: 'Hi' })).toMatchObject({
    success: true,
  })
  expect(await client.messageStatus({ messageRequestId: requestId })).toMatchObject({ error: 'not_found' })
  expect(headers).toEqual(Array(4).fill(`Bearer ${key}`))
  headers.length = 0
  await client.catalog()
  await client.brands()
  await call(client, 'requestAccess', {})
  await clientOf(app, { fetch }).client.send({ phone })
  expect(headers).toEqual([null, null, null, null])
  await app.close()
})

describe('a call without credentials', () => {
  let app: TestApp

  beforeAll(async () => {
    app = await createTestApp()
    await app.brand('acme', { displayName: 'Acme' })
  })
  afterAll(() => app.close())

  test('returns the catalog and the active brands', async () => {
    const { client } = clientOf(app)
    const { requestId: _, ...catalog } = (await app.get('/integrations/catalog')).body
    expect(await client.catalog()).toMatchObject(catalog)
    const brands = [{ brandId: 'acme', displayName: 'Acme' }]
    expect(await client.brands()).toMatchObject({ success: true, brands })
  })

  test('requests access', async () => {
    const { client, bodies } = clientOf(app)
    const request = {
      companyName: 'Acme Bikes Ltd',
      contactName: 'Sam Rider',
      contactEmail: 'sam@example.com',
      brandName: 'Acme Bikes',
    }
    expect(await client.requestAccess(request)).toMatchObject({ success: true, status: 'pending' })
    expect(bodies).toEqual([request])
    expect(await client.requestAccess({ ...request, contactEmail: 'nobody' })).toMatchObject({
      success: false,
      error: 'validation_error',
    })
  })

  test('is repeated like a call with a key if it only reads', async () => {
    const { client, attempts } = clientThatGets(() => Promise.reject(new TypeError('no network')))
    expect(await client.catalog()).toMatchObject({ error: 'unreachable' })
    expect(await client.brands()).toMatchObject({ error: 'unreachable' })
    expect(attempts()).toBe(6)
  })
})

test('every request names the client and its version', async () => {
  const agents: (string | null)[] = []
  const { client } = clientThatGets(() => Response.error(), {
    fetch: async (_, init) => {
      agents.push(new Headers(init.headers).get('user-agent'))
      return new Response(null, { status: 404 })
    },
  })
  await client.send({ phone })
  await client.brands()
  expect(agents).toEqual([`otpost-client/${packageJson.version}`, `otpost-client/${packageJson.version}`])
})

// --- Retry ----------------------------------------------------------------------------------------------------------

describe('a call that is rate_limited', () => {
  let app: TestApp

  beforeAll(async () => {
    app = await createTestApp({ GLOBAL_LIMIT_PER_MINUTE: '1', SMS_COOLDOWN_SECONDS: '0' })
  })
  afterAll(() => app.close())

  /** Uses up the limit of a minute, and 35 seconds of that minute. */
  async function useUp() {
    app.advance(3600)
    await clientOf(app).client.verify({ phone, otp: '123456' })
    app.advance(35)
  }

  test('is repeated after Retry-After, and then succeeds', async () => {
    await useUp()
    const { client, bodies, waits } = clientOf(app)
    expect(await client.send({ phone })).toMatchObject({ success: true })
    expect(waits).toEqual([25_250])
    expect(bodies).toHaveLength(2)
    expect(bodies[0]).toEqual(bodies[1])
  })

  test('ends at once if Retry-After is longer than the limit on all pauses', async () => {
    await useUp()
    const { client, bodies, waits } = clientOf(app, { retry: { maxWaitMs: 24_999 } })
    const refused = { success: false, error: 'rate_limited', status: 429, retryAfterSeconds: 25 }
    expect(await client.send({ phone })).toMatchObject(refused)
    expect({ waits, calls: bodies.length }).toEqual({ waits: [], calls: 1 })
  })

  test('waits for all of Retry-After if that just fits', async () => {
    await useUp()
    const { client, waits } = clientOf(app, { retry: { maxWaitMs: 25_000 } })
    expect(await client.send({ phone })).toMatchObject({ success: true })
    expect(waits).toEqual([25_000])
  })

  test('is not repeated if the client or the call disables retries', async () => {
    await useUp()
    for (const [own, ofCall, calls] of [
      [false, undefined, 1],
      [undefined, false, 1],
      [undefined, { maxAttempts: 1 }, 1],
      [{ maxWaitMs: 0 }, undefined, 1],
      [false, { maxWaitMs: 30_000 }, 2],
    ] as const) {
      await useUp()
      const { client, bodies } = clientOf(app, own === undefined ? {} : { retry: own })
      await client.send({ phone }, ofCall === undefined ? {} : { retry: ofCall })
      expect(bodies).toHaveLength(calls)
    }
  })
})

test('the client also waits for a Retry-After that a proxy gives as a date, unless it is too long', async () => {
  for (const [seconds, attempts] of [
    [20, 2],
    [7200, 1],
    [-60, 2],
  ] as const) {
    const at = new Date(Date.now() + seconds * 1000).toUTCString()
    const waits: number[] = []
    const gets = clientThatGets(
      () => Response.json(envelope('rate_limited'), { status: 429, headers: { 'retry-after': at } }),
      { retry: { maxAttempts: 2 }, wait: async (delayMs) => void waits.push(delayMs) },
    )
    const { retryAfterSeconds = -1 } = (await gets.client.send({ phone })) as { retryAfterSeconds?: number }
    expect(gets.attempts()).toBe(attempts)
    // The remaining time when the client read the header.
    const least = Math.max(0, Math.floor((Date.parse(at) - Date.now()) / 1000))
    expect(retryAfterSeconds).toBeGreaterThanOrEqual(least)
    expect(retryAfterSeconds).toBeLessThanOrEqual(Math.max(0, seconds))
    for (const delayMs of waits) expect(delayMs).toBeGreaterThanOrEqual(least * 1000)
  }
})

test('of the answers of the service, only rate_limited is repeated; with a key also two others', async () => {
  const codes = [...new Set(Object.values(operations).flatMap(({ errors }) => [...errors]))]
  for (const code of [...codes, 'too_early']) {
    const { client, attempts } = clientThatGets(() =>
      Response.json(envelope(code), { status: 429, headers: { 'retry-after': '1' } }),
    )
    await client.notify({ channel: 'SMS', to: [phone], message: 'Hello' })
    const ofKeyed = attempts()
    await client.verify({ phone, otp: '123456' })
    const ofVerify = attempts() - ofKeyed
    await client.send({ phone })
    const ofSms = attempts() - ofKeyed - ofVerify
    await client.requestAccess({ companyName: 'A', contactName: 'B', contactEmail: email, brandName: 'A' })
    const ofRequest = attempts() - ofKeyed - ofVerify - ofSms
    const isLimit = code === 'rate_limited'
    const isRepeated = isLimit || code === 'idempotency_in_progress' || code === 'unavailable'
    const has = (errors: readonly string[]) => errors.includes(code)
    expect({ code, ofKeyed, ofVerify, ofSms, ofRequest }).toEqual({
      code,
      ofKeyed: isRepeated ? 3 : 1,
      ofVerify: isRepeated && has(operations.verify.errors) ? 3 : 1,
      ofSms: isLimit ? 3 : 1,
      ofRequest: isLimit && has(operations.requestAccess.errors) ? 3 : 1,
    })
  }
  const { client, attempts } = clientThatGets(() => Promise.reject(new TypeError('no network')))
  expect(await client.send({ phone })).toMatchObject({ error: 'unreachable' })
  expect(attempts()).toBe(1)
})

test('pauses grow, are never shorter than Retry-After, and their sum has a limit', async () => {
  const retryAfter = fc.oneof(
    fc.integer({ min: 1, max: 40 }).map(String),
    fc.constantFrom(
      '0',
      '86400',
      '99999999999999999999',
      '-1',
      '1.5',
      'Wed, 21 Oct 2026 07:28:00 GMT',
      undefined,
    ),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(retryAfter, { minLength: 8, maxLength: 8 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 0, max: 60_000 }),
      fc.integer({ min: 0, max: 5_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      async (headers, maxAttempts, maxWaitMs, baseDelayMs, chance) => {
        let told = 0
        const { client, waits, attempts } = clientThatGets(
          () => {
            const header = headers[told++]
            const told429 = header === undefined ? {} : { 'retry-after': header }
            return Response.json(envelope('rate_limited'), { status: 429, headers: told429 })
          },
          { retry: { maxAttempts, maxWaitMs, baseDelayMs }, random: () => chance },
        )
        const result = await client.send({ phone })
        expect(result).toMatchObject({ success: false, error: 'rate_limited' })
        expect(attempts()).toBe(waits.length + 1)
        expect(attempts()).toBeLessThanOrEqual(maxAttempts)
        let leftMs = maxWaitMs
        const least = headers.map((header, index) => {
          const seconds = /^\d+$/.test(header ?? '') ? Number(header) : 0
          return Math.max(seconds * 1000, baseDelayMs * 2 ** index)
        })
        for (const [index, delayMs] of waits.entries()) {
          const leastMs = least[index] ?? Number.NaN
          expect(delayMs).toBeGreaterThanOrEqual(leastMs)
          expect(delayMs).toBeLessThanOrEqual(leastMs + baseDelayMs * 2 ** index)
          leftMs -= delayMs
        }
        expect(leftMs).toBeGreaterThanOrEqual(0)
        // There are only two reasons to give up.
        const next = least[waits.length] ?? Number.NaN
        expect(attempts() === maxAttempts || next > leftMs).toBe(true)
      },
    ),
    { numRuns: 300 },
  )
})

// --- Idempotency keys -----------------------------------------------------------------------------------------------

/** A client of a stub server, and the idempotency key of each attempt. */
function keyedClient(answers: readonly (() => Response | Promise<Response>)[]) {
  const keys: (string | null)[] = []
  const { client } = clientThatGets(() => Response.error(), {
    fetch: async (_, init) => {
      keys.push(new Headers(init.headers).get('idempotency-key'))
      const answer = answers[Math.min(keys.length, answers.length) - 1] ?? Response.error
      return answer()
    },
  })
  return { client, keys }
}

describe('an idempotency key', () => {
  const mail = { channel: 'EMAIL', to: [email], subject: 'Hello', html: '<p>Hello' } as const
  const lost = () => Promise.reject(new TypeError('no network'))
  const sent = () => Response.json({ success: true, message: 'words', requestId, channel: 'EMAIL' })

  test('is a new UUID for each verify, notify and e-mail; an SMS with a code has one only if the caller gives it', async () => {
    const { client, keys } = keyedClient([() => Response.json(envelope('forbidden'), { status: 403 })])
    await client.notify(mail)
    await client.notify(mail)
    await client.send({ channel: 'EMAIL', email })
    await client.resend({ channel: 'EMAIL', email })
    await client.send({ phone })
    await client.resend({ phone, channel: 'SMS' })
    await client.verify({ phone, otp: '123456' })
    await client.send({ phone }, { idempotencyKey: 'login-1042' })
    await client.notify(mail, { idempotencyKey: 'order-1042' })
    await client.verify({ phone, otp: '123456' }, { idempotencyKey: 'check-1042' })
    await client.messageStatus({ messageRequestId: requestId })
    await client.catalog()
    await client.brands()
    await client.requestAccess({ companyName: 'A', contactName: 'B', contactEmail: email, brandName: 'A' })
    const uuid = expect.stringMatching(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    const given = ['login-1042', 'order-1042', 'check-1042']
    expect(keys).toEqual([uuid, uuid, uuid, uuid, null, null, uuid, ...given, null, null, null, null])
    expect(new Set(keys.slice(0, 7)).size).toBe(6)
  })

  test('is the same in each attempt, also after a lost connection and an error page of a proxy', async () => {
    for (const failure of [
      lost,
      () => new Response('Bad Gateway', { status: 502 }),
      () => new Response('Gateway Timeout', { status: 504 }),
      () => Response.json(envelope('unavailable'), { status: 503, headers: { 'retry-after': '1' } }),
      () => Response.json(envelope('rate_limited'), { status: 429 }),
    ]) {
      const { client, keys } = keyedClient([failure, failure, sent])
      expect(await client.notify(mail)).toMatchObject({ success: true })
      expect(keys).toHaveLength(3)
      expect(new Set(keys).size).toBe(1)
    }
    const { client, keys } = keyedClient([lost])
    expect(await client.notify(mail, { retry: false })).toMatchObject({ error: 'unreachable' })
    expect(await client.send({ phone })).toMatchObject({ error: 'unreachable' })
    expect(keys).toHaveLength(2)
  })

  test('repeats a call after a time-out', async () => {
    const { client, keys } = keyedClient([() => new Promise(() => {}), sent])
    expect(await client.notify(mail, { timeoutMs: 5 })).toMatchObject({ success: true })
    expect(new Set(keys)).toEqual(new Set([keys[0] ?? '']))
    expect(keys).toHaveLength(2)
  })

  test('makes one message and one attempt at a code, whether the answer is lost or does not come in time', async () => {
    const app = await createTestApp()
    await app.brand('acme', { displayName: 'Acme' })
    for (const [index, lose] of [lost, () => new Promise<Response>(() => {})].entries()) {
      let attempts = 0
      let first: Promise<Response> | undefined
      const { client } = clientOf(app, {
        fetch: async (url, init) => {
          const isFirst = ++attempts === 1
          // The service has answered, also on a busy machine.
          if (!isFirst) await first
          const answer = Promise.resolve(app.app.handle(new Request(url, init)))
          if (isFirst) first = answer
          await answer
          return isFirst ? lose() : answer
        },
      })
      const to = `pat-${index}@example.com`
      const options = { timeoutMs: 500 }
      expect(await client.notify({ ...mail, to: [to] }, options)).toMatchObject({
        success: true,
        replayed: true,
      })
      expect(await app.outbox(to)).toHaveLength(1)
      attempts = 0
      const code = { channel: 'EMAIL', email: `code-${to}` } as const
      expect(await client.send(code, options)).toMatchObject({
        success: true,
        replayed: true,
      })
      expect(await app.outbox(code.email)).toHaveLength(1)
      const otp = await app.lastCode(code.email)
      for (const [guess, expected] of [
        [otherThan(otp), { error: 'mismatch' }],
        [otp, { success: true }],
      ] as const) {
        attempts = 0
        expect(await client.verify({ email: code.email, otp: guess }, options)).toMatchObject({
          ...expected,
          replayed: true,
        })
      }
    }
    await app.close()
  })

  test('makes a replay of a success and of a failure recognizable', async () => {
    const headers = { 'idempotency-replayed': 'true' }
    const failure = { ...envelope('notification_failed'), channel: 'EMAIL' }
    const { client } = keyedClient([
      () => Response.json({ success: true, message: 'words', requestId, channel: 'EMAIL' }, { headers }),
      () => Response.json(failure, { status: 500, headers }),
      sent,
    ])
    expect(await client.notify(mail)).toMatchObject({ success: true, replayed: true })
    expect(await client.notify(mail)).toMatchObject({ error: 'notification_failed', replayed: true })
    expect(await client.notify(mail)).not.toHaveProperty('replayed')
  })

  test('of another form is out of range', async () => {
    const { client, keys } = keyedClient([sent])
    for (const idempotencyKey of ['', 'a'.repeat(256), 'with space', 'é', 'a\nb']) {
      await expect(client.notify(mail, { idempotencyKey })).rejects.toThrow(RangeError)
    }
    expect(keys).toEqual([])
  })
})

// --- Abort and time-out ---------------------------------------------------------------------------------------------

/** An abort signal that reports its number of listeners. */
function countedSignal() {
  const controller = new AbortController()
  const { signal } = controller
  let listeners = 0
  const { addEventListener, removeEventListener } = signal
  Object.assign(signal, {
    addEventListener: (...args: Parameters<typeof addEventListener>) => {
      listeners++
      return addEventListener.apply(signal, args)
    },
    removeEventListener: (...args: Parameters<typeof removeEventListener>) => {
      listeners--
      return removeEventListener.apply(signal, args)
    },
  })
  return { signal, abort: (reason: unknown) => controller.abort(reason), listeners: () => listeners }
}

/** Never answers, like a server that hangs; rejects like fetch when its request is aborted. */
function hanging(init: RequestInit): Promise<Response> {
  return new Promise((_, reject) => {
    init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
  })
}

describe('an abort', () => {
  const reason = new Error('the user has left')

  test('before the call sends nothing', async () => {
    const { client, attempts } = clientThatGets(() => Response.error())
    await expect(client.send({ phone }, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(attempts()).toBe(0)
  })

  test('while the client waits for the answer rejects with its reason, and ends the request', async () => {
    const { signal, abort } = countedSignal()
    let ofRequest: AbortSignal | null | undefined
    const { client } = clientThatGets(() => Response.error(), {
      fetch: (_, init) => {
        ofRequest = init.signal
        queueMicrotask(() => abort(reason))
        return hanging(init)
      },
    })
    await expect(client.send({ phone }, { signal })).rejects.toBe(reason)
    expect(ofRequest?.aborted).toBe(true)
  })

  test('while the answer is read rejects with its reason', async () => {
    const { signal, abort } = countedSignal()
    const { client } = clientThatGets(() => Response.error(), {
      fetch: async (_, init) =>
        new Response(
          new ReadableStream({
            pull: async (controller) => {
              queueMicrotask(() => abort(reason))
              await hanging(init).catch((error) => controller.error(error))
            },
          }),
        ),
    })
    await expect(client.send({ phone }, { signal })).rejects.toBe(reason)
  })

  test('in a pause before a retry rejects at once with its reason', async () => {
    const { signal, abort, listeners } = countedSignal()
    let inPause: number | undefined
    const later = { status: 429, headers: { 'retry-after': '20' } }
    const client = createClient({
      url: 'https://otpost.example.com',
      ...credentials,
      fetch: async () => Response.json(envelope('rate_limited'), later),
      // The abort comes right before the pause begins.
      random: () => {
        queueMicrotask(() => {
          inPause = listeners()
          abort(reason)
        })
        return 0
      },
    })
    await expect(client.send({ phone }, { signal })).rejects.toBe(reason)
    expect(inPause).toBe(1)
  })

  test('has no listeners after a call', async () => {
    const { signal, listeners } = countedSignal()
    const answers = [
      () => Response.json(envelope('rate_limited'), { status: 429 }),
      () => Response.json(envelope('forbidden'), { status: 403 }),
      () => Promise.reject(new TypeError('no network')),
    ]
    for (const answer of answers) {
      const client = createClient({
        url: 'https://otpost.example.com',
        ...credentials,
        fetch: async () => answer(),
        retry: { baseDelayMs: 1 },
      })
      await client.send({ phone }, { signal })
      expect(listeners()).toBe(0)
    }
  })
})

describe('a time-out', () => {
  test('is a result, for an answer that does not begin and for one that does not end', async () => {
    const answers: NonNullable<ClientOptions['fetch']>[] = [
      (_, init) => hanging(init),
      // A transport that ignores its signal.
      () => new Promise(() => {}),
      async (_, init) =>
        new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(new TextEncoder().encode('{"success":')),
            pull: (controller) =>
              hanging(init).then(
                () => {},
                (error) => controller.error(error),
              ),
          }),
        ),
    ]
    for (const fetch of answers) {
      const { client } = clientThatGets(() => Response.error(), { fetch, timeoutMs: 60_000 })
      expect(await client.send({ phone }, { timeoutMs: 5 })).toEqual({
        success: false,
        error: 'timeout',
        message: expect.stringContaining('5 ms'),
      })
    }
  })

  test('is longer than the default provider time-out of the server', () => {
    const providerTimeoutMs = 4000
    expect(defaultTimeoutMs()).toBeGreaterThan(longestDeliveryMs(providerTimeoutMs) + 5000)
    expect(defaultTimeoutMs(8)).toBe(defaultTimeoutMs(1))
    expect(defaultTimeoutMs(9)).toBeGreaterThan(2 * longestDeliveryMs(providerTimeoutMs) + 5000)
    expect(defaultTimeoutMs(100)).toBeGreaterThan(longestNotifyMs(providerTimeoutMs) + 5000)
  })
})

// --- Answers of others ----------------------------------------------------------------------------------------------

describe('an answer of another server', () => {
  const ok = { success: true, message: 'words', requestId, expiresIn: 300 }

  test.each<[string, () => Response, object]>([
    ['a page of a proxy', () => new Response('<h1>Bad Gateway</h1>', { status: 502 }), { status: 502 }],
    ['a page of success', () => new Response('<h1>Welcome</h1>'), { status: 200 }],
    ['an empty answer', () => new Response(null, { status: 204 }), { status: 204 }],
    ['a list', () => Response.json([ok]), { status: 200 }],
    ['null', () => Response.json(null), { status: 200 }],
    [
      'a success without a field of its own',
      () => Response.json({ ...ok, expiresIn: undefined }),
      { status: 200 },
    ],
    [
      'a success with a field of another type',
      () => Response.json({ ...ok, expiresIn: '300' }),
      { status: 200 },
    ],
    ['a success with the status of a failure', () => Response.json(ok, { status: 500 }), { status: 500 }],
    ['a failure with the status of success', () => Response.json(envelope('forbidden')), { status: 200 }],
    [
      'a failure that names no request',
      () => Response.json({ ...envelope('rate_limited'), requestId: undefined }, { status: 429 }),
      { status: 429 },
    ],
    [
      'a redirect',
      () => new Response(null, { status: 307, headers: { location: 'https://elsewhere.example.com/' } }),
      { status: 307 },
    ],
    [
      'a limit of a proxy',
      () => new Response('Slow down', { status: 429, headers: { 'retry-after': '7' } }),
      { status: 429, retryAfterSeconds: 7 },
    ],
  ])('%s is an unexpected_answer, and the call is not repeated', async (_, answer, expected) => {
    const { client, attempts } = clientThatGets(answer)
    expect(await client.send({ phone })).toEqual<unknown>({
      success: false,
      error: 'unexpected_answer',
      message: expect.any(String),
      ...expected,
    })
    expect(attempts()).toBe(1)
  })

  test('an error code outside of the contract is the serverError of the result', async () => {
    for (const code of ['sim_swapped', 'mismatch', 'constructor']) {
      const { client } = clientThatGets(() => Response.json(envelope(code), { status: 409 }))
      expect(await client.send({ phone })).toEqual({
        success: false,
        error: 'unexpected_answer',
        message: 'words',
        status: 409,
        requestId,
        serverError: code,
      })
    }
  })

  test('a path prefix of a proxy is kept', async () => {
    const urls: string[] = []
    const fetch = async (url: string) => {
      urls.push(url)
      return Response.json(ok)
    }
    for (const url of [
      'https://example.com/codes',
      'https://example.com/codes/',
      new URL('https://example.com'),
    ]) {
      const client = createClient({ ...credentials, url, fetch })
      expect(await client.send({ phone })).toEqual<unknown>(ok)
    }
    expect(urls).toEqual([
      'https://example.com/codes/otp/send',
      'https://example.com/codes/otp/send',
      'https://example.com/otp/send',
    ])
  })

  test('an endless answer is not read to its end', async () => {
    let chunks = 0
    let isCancelled = false
    const endless = new ReadableStream({
      pull: (controller) => {
        chunks++
        controller.enqueue(new Uint8Array(1024).fill(32))
      },
      cancel: () => {
        isCancelled = true
      },
    })
    const { client } = clientThatGets(() => new Response(endless))
    expect(await client.send({ phone })).toMatchObject({ error: 'unexpected_answer', status: 200 })
    expect(isCancelled).toBe(true)
    expect(chunks).toBeLessThan(100)
  })

  test('a field of a newer server is passed on', async () => {
    const { client } = clientThatGets(() => Response.json({ ...ok, segments: 1 }))
    expect(await client.send({ phone })).toEqual<unknown>({ ...ok, segments: 1 })
  })
})

// --- Secrets and mistakes -------------------------------------------------------------------------------------------

test('no failure contains the API key, the code or the recipient', async () => {
  const secrets = [credentials.apiKey, '135790', phone]
  const told = (value: unknown) =>
    secrets.filter((secret) => Bun.inspect(value, { depth: 9 }).includes(secret))
  const failing: NonNullable<ClientOptions['fetch']>[] = [
    (_, init) => Promise.reject(new TypeError(`failed to send ${init.body}`, { cause: init })),
    (_, init) => Promise.reject(Object.assign(new Error('no'), { code: init.body })),
    (_, init) => Promise.reject(init),
    (_, init) => Promise.reject(String(init.body)),
    () => Promise.reject(undefined),
    async (_, init) => new Response(String(init.body), { status: 500 }),
    async (_, init) => Response.json({ success: false, echo: init.body }, { status: 500 }),
  ]
  const choices = failing.flatMap((fetch) => [{ fetch }, { fetch, appId: undefined }])
  for (const options of choices) {
    const { client } = clientThatGets(() => Response.error(), options)
    const result = await client.verify({ phone, otp: '135790' })
    expect(result.success).toBe(false)
    expect(told(result)).toEqual([])
    expect(told(client)).toEqual([])
  }
})

test('a failure contains the error code of the runtime for a broken connection', async () => {
  const refused = Object.assign(new Error('x'), { code: 'ECONNREFUSED' })
  for (const error of [refused, new TypeError('fetch failed', { cause: refused })]) {
    const { client } = clientThatGets(() => Promise.reject(error))
    expect(await client.send({ phone })).toEqual({
      success: false,
      error: 'unreachable',
      message: expect.stringContaining('(ECONNREFUSED)'),
    })
  }
})

describe('a programming error', () => {
  test.each([
    'otpost.example.com',
    'ftp://otpost.example.com',
    'https://pat:secret-1@otpost.example.com',
    'https://otpost.example.com/?key=secret-1',
    'https://otpost.example.com/#secret-1',
    'secret-1',
    '',
  ])('an url of %p is refused, and not repeated', (url) => {
    const create = () => createClient({ ...credentials, url })
    expect(create).toThrow(TypeError)
    expect(create).not.toThrow(/secret-1/)
  })

  test('createClient and each call reject a number out of range', async () => {
    const { client, attempts } = clientThatGets(() => Response.error())
    for (const options of [
      { timeoutMs: 0 },
      { timeoutMs: Number.NaN },
      { timeoutMs: Number.POSITIVE_INFINITY },
      { timeoutMs: 2 ** 31 },
      { retry: { maxAttempts: 0 } },
      { retry: { maxWaitMs: -1 } },
      { retry: { maxWaitMs: 2 ** 31 } },
      { retry: { baseDelayMs: Number.NaN } },
    ]) {
      expect(() => createClient({ url: 'https://otpost.example.com', ...credentials, ...options })).toThrow(
        RangeError,
      )
      await expect(client.send({ phone }, options)).rejects.toThrow(RangeError)
    }
    expect(attempts()).toBe(0)
  })

  test('a request that is not JSON rejects', async () => {
    const { client } = clientThatGets(() => Response.error())
    const mail = {
      channel: 'EMAIL',
      to: [email],
      subject: 'Hello',
      template: 'Hello',
      data: { n: 1n },
    } as const
    await expect(client.notify(mail)).rejects.toThrow(TypeError)
  })
})
