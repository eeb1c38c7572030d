import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createSecrets } from '../../src/adapters/crypto/secrets.ts'
import type { LimitName } from '../../src/domain/request/limit-names.ts'
import { type Answer, codeIn, createTestApp, credentials, otherThan, type TestApp } from '../support/app.ts'
import { openTestDatabase } from '../support/database.ts'
import { explained } from '../support/explained.ts'
import { tester } from '../support/operator.ts'
import { held, startReceiver } from '../support/receiver.ts'
import { expectSuccess, freshEmail, freshPhone, logged } from '../support/rows.ts'
import { startSmtp } from '../support/smtp.ts'

const accepted = { outcome: 'accepted', errorClass: null, reason: null }
const oneSegment = { count: 1, encoding: 'GSM-7' } as const

describe('the delivery log', () => {
  const receiver = startReceiver()
  let smtp: Awaited<ReturnType<typeof startSmtp>>
  let app: TestApp
  beforeAll(async () => {
    smtp = await startSmtp()
    app = await createTestApp({
      OTP_SMS_MODE: 'hybrid',
      SMS_PLAIN: 'webhook,discard',
      SMS_TEMPLATE: 'webhook',
      PUBLIC_URL: 'https://otp.example',
      SMTP_URL: smtp.url,
      MAIL_FROM: 'codes@example.com',
      ...receiver.env,
    })
    await app.brand('dlt', {
      displayName: 'Dlt Shop',
      dltEnabled: true,
      notifyTemplates: ['OUT_FOR_DELIVERY'],
    })
  })
  afterEach(() => {
    receiver.received.length = 0
    receiver.answer(() => new Response(null, { status: 204 }))
  })
  afterAll(async () => {
    await app.close()
    await smtp.stop()
    await receiver.stop()
  })

  const rowsOf = async (answer: { body: { requestId: string } }) => (await app.eventsOf(answer)).deliveries

  test('has all fields of a code sent by SMS', async () => {
    const phone = '12025550143'
    const answer = await app.post('/otp/send', { phone })
    const id = receiver.received[0]?.body.id
    const [subject] = app.app.context.secrets.subjects('SMS', phone)
    expect(await rowsOf(answer)).toEqual([
      {
        requestId: answer.body.requestId,
        attempt: 1,
        at: app.clock.now,
        app: 'shop',
        brand: 'acme',
        channel: 'SMS',
        route: 'plain',
        provider: 'webhook',
        template: 'LOGIN_OTP',
        lang: 'en',
        recipient: '12*******43',
        position: null,
        recipientHash: subject.slice(0, 22),
        segments: { count: 1, encoding: 'GSM-7' },
        country: 'US',
        ...accepted,
        outcome: 'accepted',
        providerMessageId: id,
        reportKey: `webhook:${id}`,
        durationMs: expect.any(Number),
        report: null,
      },
    ])
  })

  test('has all fields of a code sent by e-mail', async () => {
    const answer = await app.post('/otp/send', { channel: 'EMAIL', email: 'Jane.Doe@example.com' })
    const [subject] = app.app.context.secrets.subjects('EMAIL', 'jane.doe@example.com')
    expect(await rowsOf(answer)).toEqual([
      {
        requestId: answer.body.requestId,
        attempt: 1,
        at: app.clock.now,
        app: 'shop',
        brand: 'acme',
        channel: 'EMAIL',
        route: null,
        provider: 'smtp',
        template: 'LOGIN_OTP',
        lang: 'en',
        recipient: 'j***@example.com',
        position: null,
        recipientHash: subject.slice(0, 22),
        segments: null,
        country: null,
        ...accepted,
        outcome: 'accepted',
        providerMessageId: expect.anything(),
        reportKey: null,
        durationMs: expect.any(Number),
        report: null,
      },
    ])
  })

  test('has the language of the text that was used, unless it is text of the caller', async () => {
    const langOf = async (path: string, fields: Readonly<Record<string, unknown>>) =>
      (await rowsOf(await app.post(path, fields))).map(({ lang }) => lang)
    const variables = { customerName: 'Jo', orderId: '7' }
    const template = { channel: 'SMS', brandId: 'dlt', templateKey: 'OUT_FOR_DELIVERY', variables }
    const mail = { channel: 'EMAIL', to: ['jo@example.com'], subject: 'Hi', html: '<p>Hi</p>', lang: 'hi' }
    for (const [path, fields, langs] of [
      ['/otp/send', { phone: freshPhone(), lang: 'hi-IN' }, ['hi']],
      ['/otp/send', { channel: 'EMAIL', email: freshEmail(), lang: 'ar' }, ['ar']],
      ['/otp/send', { phone: freshPhone(), lang: 'xx' }, ['en']],
      ['/notify', { ...template, to: [freshPhone()], lang: 'hi' }, ['en']],
      ['/notify', { channel: 'SMS', brandId: 'acme', to: [freshPhone()], message: 'Hi', lang: 'hi' }, [null]],
      ['/notify', mail, [null]],
    ] as const)
      expect([fields, await langOf(path, fields)]).toEqual([fields, [...langs]])
  })

  test('has the language of each route, when the registered text is in another', async () => {
    receiver.answer(({ body }) => new Response(null, { status: body.route === 'template' ? 503 : 204 }))
    const rows = await rowsOf(
      await app.post('/otp/send', { brandId: 'dlt', phone: freshPhone(), lang: 'hi' }),
    )
    expect(rows.map(({ route, lang }) => [route, lang])).toEqual([
      ['template', 'en'],
      ['plain', 'hi'],
    ])
  })

  test('has each provider and route that a code was tried with, in order', async () => {
    receiver.answer(({ body }) => new Response(null, { status: body.route === 'template' ? 400 : 503 }))
    const answer = await app.post('/otp/send', { brandId: 'dlt', phone: freshPhone() })
    expect(answer.status).toBe(200)
    const rows = await rowsOf(answer)
    expect(rows.map(({ attempt, provider, route }) => [attempt, provider, route])).toEqual([
      [1, 'webhook', 'template'],
      [2, 'webhook', 'plain'],
      [3, 'discard', 'plain'],
    ])
    expect(rows).toMatchObject([
      {
        outcome: 'rejected',
        errorClass: 'content',
        reason: 'HTTP 400',
        providerMessageId: null,
        reportKey: null,
      },
      {
        outcome: 'retryable',
        errorClass: 'retryable',
        reason: 'HTTP 503',
        providerMessageId: null,
        reportKey: null,
      },
      { ...accepted, providerMessageId: null, reportKey: null },
    ])
  })

  test('has an entry with its own outcome for each recipient of a notification', async () => {
    const to = Array.from({ length: 20 }, freshPhone)
    const refused = new Set([to[3], to[17]])
    receiver.answer(({ body }) => new Response(null, { status: refused.has(body.to) ? 400 : 204 }))
    const message = 'x'.repeat(161)
    const lonely = await createTestApp({ SMS_PLAIN: 'webhook', ...receiver.env })
    const answer = await lonely.post('/notify', { channel: 'SMS', brandId: 'acme', to, message })
    expect(answer.body.error).toBe('notification_failed')
    const { deliveries, trace } = await lonely.eventsOf(answer)
    expect(trace).toMatchObject({ operation: 'notify', recipient: null, recipients: 20, channel: 'SMS' })
    expect(deliveries.map(({ attempt }) => attempt)).toEqual(to.map((_, index) => index + 1))
    const outcomes = new Map(deliveries.map((row) => [row.recipientHash, row]))
    for (const phone of to) {
      const [subject] = lonely.app.context.secrets.subjects('SMS', phone)
      expect(outcomes.get(subject.slice(0, 22))).toMatchObject({
        outcome: refused.has(phone) ? 'rejected' : 'accepted',
        template: null,
        segments: { count: 2, encoding: 'GSM-7' },
      })
    }
    await lonely.close()
  })

  test("has the segments of the route's text, and the template of a notification", async () => {
    const answer = await app.post('/notify', {
      channel: 'SMS',
      brandId: 'dlt',
      to: [freshPhone()],
      templateKey: 'OUT_FOR_DELIVERY',
      variables: { customerName: '李小龙', orderId: 'x'.repeat(40) },
    })
    expect(await rowsOf(answer)).toMatchObject([
      { template: 'OUT_FOR_DELIVERY', route: 'template', segments: { count: 2, encoding: 'UCS-2' } },
    ])
    await app.brand('hosted', {
      displayName: 'x'.repeat(40),
      dltEnabled: true,
      domain: `${'x'.repeat(150)}.de`,
    })
    receiver.answer(({ body }) => new Response(null, { status: body.route === 'template' ? 400 : 204 }))
    const code = await app.post('/otp/send', { brandId: 'hosted', phone: freshPhone() })
    expect((await rowsOf(code)).map(({ route, segments }) => [route, segments])).toEqual([
      ['template', oneSegment],
      ['plain', { count: 2, encoding: 'GSM-7' }],
    ])
    const [byTemplate, byPlain] = receiver.received.slice(-2).map(({ body }) => body.text)
    expect(byPlain).toBe(`${byTemplate}\n\n@${'x'.repeat(150)}.de #${codeIn(byTemplate)}`)
  })

  test('has no entry for a request that was rejected before delivery', async () => {
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    expect(await rowsOf(await app.post('/otp/send', { phone }))).toEqual([])
    expect(await rowsOf(await app.post('/otp/send', {}))).toEqual([])
  })

  test('has an attempt as soon as it has ended, while its request is still in progress', async () => {
    const reply = held()
    const second = Promise.withResolvers<string>()
    receiver.answer(({ body }) => {
      if (body.route === 'template') return new Response(null, { status: 400 })
      second.resolve(body.requestId)
      return reply.promise
    })
    const sending = app.post('/otp/send', { brandId: 'dlt', phone: freshPhone() })
    const requestId = await second.promise
    const meanwhile = await app.eventsOf({ body: { requestId } })
    expect(meanwhile.trace).toMatchObject({ operation: 'send', brand: 'dlt', end: null })
    expect(meanwhile.deliveries).toMatchObject([{ attempt: 1, route: 'template', outcome: 'rejected' }])
    reply.release(new Response(null, { status: 204 }))
    const { trace, deliveries } = await app.eventsOf(await sending)
    expect(trace?.end?.status).toBe(200)
    expect(deliveries.map(({ attempt, route, outcome }) => [attempt, route, outcome])).toEqual([
      [1, 'template', 'rejected'],
      [2, 'plain', 'accepted'],
    ])
  })

  test('has an attempt whose caller has disconnected', async () => {
    const database = await openTestDatabase()
    const env = { ...database.env, SMS_PLAIN: 'webhook', ...receiver.env }
    const left = await createTestApp({ ...env, PORT: '0' })
    const reply = held()
    const arrived = Promise.withResolvers<string>()
    receiver.answer(({ body }) => {
      arrived.resolve(body.requestId)
      return reply.promise
    })
    const caller = new AbortController()
    const call = fetch(new URL('/otp/send', left.app.listen()), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...credentials, brandId: 'acme', phone: freshPhone() }),
      signal: caller.signal,
    }).catch(() => undefined)
    const requestId = await arrived.promise
    caller.abort()
    await call
    reply.release(new Response(null, { status: 204 }))
    // A graceful stop waits for requests in progress.
    await left.close()
    const later = await createTestApp(env)
    const { trace, deliveries } = await later.eventsOf({ body: { requestId } })
    expect(trace?.end).toMatchObject({ status: 200, error: null })
    expect(deliveries).toMatchObject([{ outcome: 'accepted', provider: 'webhook' }])
    await later.close()
    await database.remove()
  })
})

describe('the request trace', () => {
  let app: TestApp
  const apps = JSON.stringify({ [credentials.appId]: credentials.apiKey, other: 'key-of-other' })
  beforeAll(async () => {
    app = await createTestApp({
      APP_CREDENTIALS: apps,
      GLOBAL_LIMIT_PER_MINUTE: '1000',
      FAILURE_BUDGET_PER_DAY: '4',
    })
    await app.brand('halted', { status: 'suspended' })
    await app.brand('waiting', { status: 'pending' })
  })
  afterAll(() => app.close())

  const inAMinute = () => app.clock.now + 60_000
  const limit = (name: LimitName, max: number, used: number | null, seconds: number) => ({
    limit: name,
    max,
    used,
    endsAt: used === null ? null : app.clock.now + seconds * 1000,
    refused: false,
  })
  /** Starts a new minute, so that calls of other tests do not count. */
  const nextMinute = () => app.advance(61)

  test('of a send and a resend has the usage of each limit', async () => {
    nextMinute()
    const phone = '12025550143'
    const trace = {
      at: app.clock.now,
      operation: 'send',
      app: 'shop',
      brand: 'acme',
      channel: 'SMS',
      recipient: '12*******43',
      recipients: null,
      recipientHash: app.app.context.secrets.subjects('SMS', phone)[0].slice(0, 22),
      country: 'US',
      reference: null,
      flags: [],
      unknownFields: [],
      limits: [
        limit('cooldown', 1, 1, 30),
        limit('phone-minute', 3, 1, 60),
        limit('recipient-hour', 10, 1, 3600),
        limit('failures', 4, null, 0),
        limit('app-minute', 1000, 1, 60),
      ],
      end: { status: 200, error: null, message: null, durationMs: expect.any(Number) },
    }
    const sent = await app.post('/otp/send', { phone })
    expect((await app.eventsOf(sent)).trace as unknown).toEqual({ requestId: sent.body.requestId, ...trace })
    app.advance(31)
    const resent = await app.post('/otp/resend', { phone })
    const [, minute, hour, wrongCodes, all] = trace.limits
    expect((await app.eventsOf(resent)).trace as unknown).toEqual({
      ...trace,
      requestId: resent.body.requestId,
      at: app.clock.now,
      operation: 'resend',
      limits: [
        limit('cooldown', 1, 1, 30),
        { ...minute, used: 2 },
        { ...hour, used: 2 },
        wrongCodes,
        { ...all, used: 2 },
      ],
    })
  })

  test('of a verify has its result, and no code', async () => {
    nextMinute()
    const email = freshEmail()
    await app.post('/otp/send', { channel: 'EMAIL', email })
    const otp = await app.lastCode(email)
    const wrong = { email, otp: otherThan(otp) }
    const answers = [await app.post('/otp/verify', wrong), await app.post('/otp/verify', wrong)]
    answers.push(await app.post('/otp/verify', { email, otp }))
    answers.push(await app.post('/otp/verify', { email, otp }))
    const traces = await Promise.all(answers.map(async (answer) => (await app.eventsOf(answer)).trace))
    expect(traces.map((trace) => [trace?.operation, trace?.recipient, trace?.end?.error])).toEqual([
      ['verify', 'u***@example.com', 'mismatch'],
      ['verify', 'u***@example.com', 'mismatch'],
      ['verify', 'u***@example.com', null],
      ['verify', 'u***@example.com', 'not_found'],
    ])
    const judges = [
      { limit: 'app-minute', max: 1000, refused: false },
      { limit: 'failures', max: 4, refused: false },
    ]
    for (const trace of traces) expect(trace?.limits).toMatchObject(judges)
  })

  test('of a notification has the number of recipients, and the recipient if there is only one', async () => {
    nextMinute()
    const sms = { channel: 'SMS', brandId: 'acme', message: 'hello' }
    const mail = { channel: 'EMAIL', to: [freshEmail()], subject: 's', html: '<p>h</p>' }
    const answers = [
      await app.post('/notify', { ...sms, to: ['12025550143'] }),
      await app.post('/notify', { ...sms, to: ['12025550143', '12025550144'] }),
      await app.post('/notify', mail),
    ]
    answers.push(await app.post('/notify', { ...mail, brandId: 'acme' }))
    const eventLogs = await Promise.all(answers.map((answer) => app.eventsOf(answer)))
    const [one, two, byMail, ofBrand] = eventLogs
    expect(one?.trace).toMatchObject({ operation: 'notify', recipient: '12*******43', recipients: 1 })
    expect(two?.trace).toMatchObject({
      recipient: null,
      recipients: 2,
      limits: [limit('app-minute', 1000, 2, 60)],
    })
    expect(byMail?.trace).toMatchObject({ channel: 'EMAIL', brand: null, recipient: 'u***@example.com' })
    expect(ofBrand?.deliveries).toMatchObject([{ channel: 'EMAIL', brand: 'acme' }])
  })

  type Refused = readonly [
    path: string,
    body: Readonly<Record<string, unknown>>,
    error: string,
    brand: string | null,
    limits: readonly LimitName[],
    message: string | null,
  ]
  const refused: readonly Refused[] = [
    ['/otp/send', { brandId: '' }, 'brand_id_required', null, [], null],
    ['/otp/send', { brandId: 'nobody' }, 'brand_not_approved', null, [], null],
    ['/otp/resend', { brandId: 'waiting' }, 'brand_not_approved', 'waiting', [], null],
    ['/otp/verify', { brandId: 'halted' }, 'brand_suspended', 'halted', [], null],
    [
      '/otp/send',
      { phone: '12025550150', loginId: 1, businessName: 2 },
      'validation_error',
      'acme',
      ['cooldown', 'phone-minute', 'recipient-hour', 'failures', 'app-minute'],
      '`loginId` must be a string.',
    ],
    ['/otp/send', {}, 'validation_error', 'acme', ['app-minute'], null],
    [
      '/otp/verify',
      { phone: '12025550150', otp: '12345' },
      'invalid_otp_format',
      'acme',
      ['app-minute'],
      null,
    ],
    [
      '/notify',
      { channel: 'SMS', brandId: 'acme', templateKey: 'ORDER_PLACED', to: ['12025550150'] },
      'template_not_allowed',
      'acme',
      [],
      null,
    ],
    ['/notify', { channel: 'FAX' }, 'invalid_channel', null, ['app-minute'], null],
  ]
  test('names fields that the endpoint does not have, without their values, as do explain and the server log', async () => {
    nextMinute()
    const long = 'x'.repeat(50)
    const more = {
      clientIP: 'hidden-1',
      'e mail\n': 'hidden-2',
      id447911123456: 'hidden-3',
      [long]: 'hidden-4',
    }
    const sent = await app.post('/otp/send', { phone: freshPhone(), loginId: null, email: null, ...more })
    expectSuccess(sent, ['expiresIn'])
    const { trace, deliveries } = await app.eventsOf(sent)
    const names = ['clientIP', 'e?mail?', 'id#', long.slice(0, 32)]
    expect(trace?.unknownFields).toEqual(names)
    const words = `ignored fields of the body that POST /otp/send does not have: ${names.join(', ')}.`
    expect(trace && explained(trace, deliveries).join('\n')).toContain(words)
    expect(JSON.stringify([trace, app.lines])).not.toContain('hidden')

    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`field${index}`, 1]))
    const bodies: readonly (readonly [path: string, body: object])[] = [
      ['/otp/resend', {}],
      ['/otp/verify', { otp: 1 }],
      ['/notify', { to: 5, __proto__: null, colour: 1 }],
      ['/messages/status', {}],
      ['/integrations/requests', {}],
    ]
    for (const [path, body] of bodies) {
      const answer = await app.post(path, { ...body, ...many })
      await logged()
      const line = app.lines.find((each) => 'requestId' in each && each.requestId === answer.body.requestId)
      const fields = line && 'unknownFields' in line ? line.unknownFields : []
      expect({ path, fields }).toMatchObject({ path, fields: { length: 10 } })
      expect(fields).toContain('field7')
    }
  })

  describe('of a rejected request', () => {
    // Concurrent, because each would count in the limits of the next.
    let answers: readonly Answer[]
    beforeAll(async () => {
      answers = await Promise.all(refused.map(([path, body]) => app.post(path, body)))
    })

    test.each(refused.map((row, index) => [index, ...row] as const))(
      '%d is saved: %s %j, %s',
      async (index, _, __, error, brand, limits, message) => {
        const answer = answers[index]
        if (!answer) throw new Error('there is no answer')
        const { trace, deliveries } = await app.eventsOf(answer)
        expect(trace).toMatchObject({ app: 'shop', brand, end: { error } })
        expect(trace?.limits.map((each) => each.limit)).toEqual([...limits])
        if (message) expect(trace?.end?.message).toBe(message)
        expect(deliveries).toEqual([])
      },
    )
  })

  test('of a rate-limited request has the limit and its reset time', async () => {
    nextMinute()
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    const again = await app.eventsOf(await app.post('/otp/send', { phone }))
    expect(again.trace?.end).toMatchObject({ status: 429, error: 'cooldown_active' })
    expect(again.trace?.limits).toEqual([{ ...limit('cooldown', 1, 1, 30), refused: true }])

    const until = inAMinute()
    for (const brandId of ['a', 'b']) {
      await app.brand(brandId)
      await app.post('/otp/send', { brandId, phone })
    }
    app.advance(31)
    const fourth = await app.eventsOf(await app.post('/otp/send', { phone }))
    expect(fourth.trace?.end?.error).toBe('rate_limited')
    expect(fourth.trace?.limits).toEqual([
      limit('cooldown', 1, null, 0),
      { limit: 'phone-minute', max: 3, used: 3, endsAt: until, refused: true },
    ])
  })

  test('is not saved without valid credentials', async () => {
    for (const wrong of [{ apiKey: 'wrong' }, { apiKey: '' }, { appId: 'nobody' }, { appId: undefined }]) {
      const { trace } = await app.eventsOf(await app.post('/otp/send', { phone: freshPhone(), ...wrong }))
      expect(trace).toBeUndefined()
    }
    expect((await app.eventsOf(await app.postRaw('/otp/send', 'not JSON'))).trace).toBeUndefined()
    expect((await app.eventsOf(await app.post('/integrations/requests'))).trace).toBeUndefined()
  })

  test('is saved for 60 uncounted rejections of an app per minute, and for every counted request', async () => {
    nextMinute()
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    const kept = async (answers: readonly { body: { requestId: string } }[]) =>
      (await Promise.all(answers.map((answer) => app.eventsOf(answer)))).filter(({ trace }) => trace).length
    const refuse = (times: number, fields: object = {}) =>
      Promise.all(
        Array.from({ length: times }, (_, index) =>
          app.post('/otp/send', { phone, ...(index % 2 === 0 ? { brandId: 'nobody' } : {}), ...fields }),
        ),
      )
    expect(await kept(await refuse(70))).toBe(60)
    expect(await kept(await refuse(5))).toBe(0)
    expect(await kept(await refuse(5, { appId: 'other', apiKey: 'key-of-other' }))).toBe(5)
    const counted = [await app.post('/otp/send', {}), await app.post('/otp/send', { phone: freshPhone() })]
    expect(await kept(counted)).toBe(2)
    // As for a request that arrived a minute ago and whose body took that long.
    app.advance(-60)
    const late = await refuse(1, { brandId: 'nobody' })
    app.advance(60)
    expect(await kept([...late, ...(await refuse(5))])).toBe(0)
    nextMinute()
    expect(await kept(await refuse(5, { brandId: 'nobody' }))).toBe(5)
  })
})

test('a request that ended just before a stop is saved', async () => {
  const database = await openTestDatabase()
  const stopped = await createTestApp(database.env)
  const answer = await stopped.post('/otp/send', { phone: freshPhone() })
  await logged()
  await stopped.close()
  const later = await createTestApp(database.env)
  const { trace, deliveries } = await later.eventsOf(answer)
  expect([trace?.end?.status, deliveries.length]).toEqual([200, 1])
  await later.close()
  await database.remove()
})

describe('a resend', () => {
  const providers = async (app: TestApp, answer: { body: { requestId: string } }) =>
    (await app.eventsOf(answer)).deliveries.map(({ provider }) => provider)

  test('uses another provider than the last code of its brand and recipient; a send uses the first provider', async () => {
    const app = await createTestApp({ SMS_PLAIN: 'outbox,discard', PHONE_LIMIT_PER_MINUTE: '100' })
    await app.brand('other')
    const [first, second] = [freshPhone(), freshPhone()]
    const by = async (...calls: readonly (readonly [path: string, fields: object])[]) => {
      app.advance(31)
      const answers = await Promise.all(calls.map(([path, fields]) => app.post(path, { ...fields })))
      return Promise.all(answers.map(async (answer) => (await providers(app, answer)).join()))
    }
    expect(await by(['/otp/send', { phone: first }], ['/otp/resend', { phone: second }])).toEqual([
      'outbox',
      'outbox',
    ])
    const again = { phone: first }
    const elsewhere = { phone: first, brandId: 'other' }
    expect(
      await by(['/otp/resend', again], ['/otp/resend', elsewhere], ['/otp/resend', { phone: second }]),
    ).toEqual(['discard', 'outbox', 'discard'])
    expect(await by(['/otp/resend', again], ['/otp/send', { phone: second }])).toEqual(['outbox', 'outbox'])
    expect(await by(['/otp/send', again])).toEqual(['outbox'])
    await app.close()
  })

  test('uses another provider than that of a code whose delivery timed out', async () => {
    const receiver = startReceiver(() => new Promise(() => {}))
    const database = await openTestDatabase()
    const env = { ...database.env, PROVIDER_TIMEOUT_MS: '500', ...receiver.env }
    const before = await createTestApp({ ...env, SMS_PLAIN: 'webhook' })
    const phone = freshPhone()
    const timedOut = await before.post('/otp/send', { phone })
    expect(timedOut.status).toBe(502)
    await before.close()
    const app = await createTestApp({ ...env, SMS_PLAIN: 'webhook,outbox' })
    app.advance(31)
    expect(await providers(app, await app.post('/otp/resend', { phone }))).toEqual(['outbox'])
    await app.close()
    await database.remove()
    await receiver.stop()
  })

  test('uses another provider than the one that accepted the code after others failed', async () => {
    const receiver = startReceiver(() => new Response(null, { status: 503 }))
    const app = await createTestApp({ SMS_PLAIN: 'webhook,outbox,discard', ...receiver.env })
    const phone = freshPhone()
    expect(await providers(app, await app.post('/otp/send', { phone }))).toEqual(['webhook', 'outbox'])
    app.advance(31)
    expect(await providers(app, await app.post('/otp/resend', { phone }))).toEqual(['webhook', 'discard'])
    await app.close()
    await receiver.stop()
  })

  test('uses the same provider if no other accepts the message', async () => {
    const receiver = startReceiver(() => new Response(null, { status: 503 }))
    const app = await createTestApp({ SMS_PLAIN: 'outbox,webhook', ...receiver.env })
    const phone = freshPhone()
    expect(await providers(app, await app.post('/otp/send', { phone }))).toEqual(['outbox'])
    app.advance(31)
    expect(await providers(app, await app.post('/otp/resend', { phone }))).toEqual(['webhook', 'outbox'])
    await app.close()
    await receiver.stop()
  })
})

describe('an entry older than DELIVERY_LOG_DAYS', () => {
  test.each([
    ['30', {}],
    ['2', { DELIVERY_LOG_DAYS: '2' }],
  ])('is deleted after %s days', async (days, env) => {
    const app = await createTestApp({ ...env, PORT: '0', PUBLIC_URL: 'https://otp.example' })
    const old = await app.post('/otp/send', { phone: freshPhone() })
    app.advance(0.001)
    const young = await app.post('/otp/send', { phone: freshPhone() })
    for (const answer of [old, young]) await app.eventsOf(answer)
    await app.app.context.eventLog.saveReports(
      'twilio',
      [{ key: 'a', status: 'pending', reason: null, at: app.clock.now - 1 }],
      false,
    )
    app.advance(Number(days) * 86_400)
    // The expiry cleanup starts with the server.
    app.app.listen()
    while ((await app.eventsOf(old)).deliveries.length > 0)
      await new Promise((resolve) => setImmediate(resolve))
    while ((await app.eventsOf(old)).trace) await new Promise((resolve) => setImmediate(resolve))
    const { trace, deliveries } = await app.eventsOf(young)
    expect([trace?.requestId, deliveries.length]).toEqual([young.body.requestId, 1])
    await app.close()
  })
})

test('a number that verified a code is known to the guard, also under a previous secret key, until its person is erased', async () => {
  const previousKey = 'the-previous-secret-of-32-bytes-or-more'
  const app = await createTestApp({ SECRET_KEY: previousKey })
  const { context } = app.app
  const [phone, other, email] = [freshPhone(), freshPhone(), freshEmail()]
  await app.post('/otp/send', { phone })
  await app.post('/otp/send', { phone: other })
  await app.post('/otp/send', { email, channel: 'EMAIL' })
  const otp = await app.lastCode(phone)
  const codeOfMail = await app.lastCode(email)
  await app.eventsOf(
    await app.post('/otp/verify', { phone: other, otp: otherThan(await app.lastCode(other)) }),
  )
  const recipients = [
    { channel: 'SMS', to: phone },
    { channel: 'SMS', to: other },
    { channel: 'EMAIL', to: email },
  ] as const
  const known = () =>
    Promise.all(recipients.map((each) => context.guard.isVerified(context.subjectsOf(each))))
  expect(await known()).toEqual([false, false, false])
  for (const answer of [
    { phone, otp },
    { email, otp: codeOfMail },
  ]) {
    const verified = await app.post('/otp/verify', answer)
    expect(verified.status).toBe(200)
    await app.eventsOf(verified)
  }
  expect(await known()).toEqual([true, false, false])
  const rotated = createSecrets('the-present-secret-of-32-bytes-or-more', previousKey).subjects('SMS', phone)
  expect(rotated).toHaveLength(2)
  expect(await context.guard.isVerified(rotated)).toBe(true)
  const { erased } = await context.forget(recipients[0], tester)
  expect(erased.verifiedNumbers).toBe(1)
  expect(await known()).toEqual([false, false, false])
  await app.close()
})
