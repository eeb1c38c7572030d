import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, codeIn, createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { freshApp, manyApps } from '../support/apps.ts'
import { held, startReceiver } from '../support/receiver.ts'
import { expectError, expectSuccess, freshEmail, freshPhone, retryAfter } from '../support/rows.ts'

/** The numbers of spec 8; an empty setting has its default. */
const defaults = { ...manyApps, GLOBAL_LIMIT_PER_MINUTE: '' }

const brands = Array.from({ length: 12 }, (_, index) => `brand${index}`)

async function start(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const app = await createTestApp({ ...manyApps, ...env })
  for (const slug of brands) await app.brand(slug)
  return app
}

function send(app: TestApp, fields: Readonly<Record<string, unknown>>): Promise<Answer> {
  return app.post('/otp/send', { ...freshApp(), ...fields })
}

const sent = ['expiresIn']

describe('the global limit (spec 8): 10 requests a minute per appId', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await start(defaults)
  })
  afterAll(() => app.close())

  const html = { channel: 'EMAIL', to: ['a@example.com'], subject: 'x', html: 'x' }
  const endpoints: readonly { path: string; body: () => Readonly<Record<string, unknown>> }[] = [
    { path: '/otp/send', body: () => ({ phone: freshPhone() }) },
    { path: '/otp/send', body: () => ({ channel: 'EMAIL', email: freshEmail() }) },
    { path: '/otp/resend', body: () => ({ phone: freshPhone() }) },
    { path: '/otp/verify', body: () => ({ phone: freshPhone(), otp: '123456' }) },
    { path: '/notify', body: () => ({ channel: 'SMS', brandId: 'acme', to: [freshPhone()], message: 'x' }) },
    { path: '/notify', body: () => html },
  ]
  for (const { path, body } of endpoints) {
    test(`applies to POST ${path} of channel ${body().channel ?? 'SMS'}`, async () => {
      const own = freshApp()
      for (let count = 0; count < 10; count++) {
        expect((await app.post(path, { ...own, ...body() })).status).not.toBe(429)
      }
      const refused = await app.post(path, { ...own, ...body() })
      expectError(refused, 429, 'rate_limited')
      expect(retryAfter(refused)).toBe(60)
    })
  }

  test('counts all endpoints together', async () => {
    const own = freshApp()
    for (let count = 0; count < 10; count++) {
      const { path, body } = endpoints[count % endpoints.length] ?? { path: '', body: () => ({}) }
      expect((await app.post(path, { ...own, ...body() })).status).not.toBe(429)
    }
    for (const { path, body } of endpoints) {
      expectError(await app.post(path, { ...own, ...body() }), 429, 'rate_limited')
    }
  })

  test('does not affect other apps', async () => {
    const own = freshApp()
    for (let count = 0; count < 11; count++) await app.post('/notify', { ...own, ...html })
    expectError(await app.post('/notify', { ...own, ...html }), 429, 'rate_limited')
    expectSuccess(await app.post('/notify', { ...freshApp(), ...html }), ['channel'])
  })

  test('has a window that opens with its first request and ends after 60 seconds (D3)', async () => {
    const own = freshApp()
    const call = () => app.post('/notify', { ...own, ...html })
    expectSuccess(await call(), ['channel'])
    app.advance(50)
    for (let count = 0; count < 9; count++) expectSuccess(await call(), ['channel'])
    const refused = await call()
    expectError(refused, 429, 'rate_limited')
    expect(retryAfter(refused)).toBe(10)
    app.advance(9.999)
    expectError(await call(), 429, 'rate_limited')
    app.advance(0.001)
    for (let count = 0; count < 10; count++) expectSuccess(await call(), ['channel'])
    expectError(await call(), 429, 'rate_limited')
  })

  test('is not exceeded by simultaneous requests', async () => {
    const own = freshApp()
    const answers = await Promise.all(
      Array.from({ length: 40 }, () =>
        app.post('/otp/verify', { ...own, phone: '15559999999', otp: '123456' }),
      ),
    )
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(10)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(30)
  })

  test('does not apply to onboarding and metadata', async () => {
    for (let count = 0; count < 30; count++) {
      for (const path of ['/health', '/integrations/catalog', '/platform/brands']) {
        expect((await app.get(path)).status).toBe(200)
      }
    }
  })

  test('is set by GLOBAL_LIMIT_PER_MINUTE', async () => {
    const strict = await start({ GLOBAL_LIMIT_PER_MINUTE: '2' })
    const own = freshApp()
    expectSuccess(await strict.post('/notify', { ...own, ...html }), ['channel'])
    expectSuccess(await strict.post('/notify', { ...own, ...html }), ['channel'])
    expectError(await strict.post('/notify', { ...own, ...html }), 429, 'rate_limited')
    await strict.close()
  })
})

describe('the phone limits (spec 8): 3 sends a minute, 10 an hour', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await start(defaults)
  })
  afterAll(() => app.close())

  test('count all brands, apps, endpoints and spellings together', async () => {
    const phone = freshPhone()
    expectSuccess(await send(app, { brandId: 'brand1', phone }), sent)
    const resend = { ...freshApp(), brandId: 'brand2', phone: `+${phone}` }
    expectSuccess(await app.post('/otp/resend', resend), sent)
    expectSuccess(
      await send(app, { brandId: 'brand3', phone: `${phone.slice(0, 4)}-${phone.slice(4)}` }),
      sent,
    )
    const refused = await send(app, { brandId: 'brand4', phone })
    expectError(refused, 429, 'rate_limited')
    expect(retryAfter(refused)).toBe(60)
    expectSuccess(await send(app, { brandId: 'brand4', phone: freshPhone() }), sent)
  })

  test('have a minute that opens with its first send (D3)', async () => {
    const phone = freshPhone()
    expectSuccess(await send(app, { brandId: 'brand1', phone }), sent)
    app.advance(40)
    expectSuccess(await send(app, { brandId: 'brand2', phone }), sent)
    expectSuccess(await send(app, { brandId: 'brand3', phone }), sent)
    const refused = await send(app, { brandId: 'brand4', phone })
    expectError(refused, 429, 'rate_limited')
    expect(retryAfter(refused)).toBe(20)
    app.advance(19.999)
    expectError(await send(app, { brandId: 'brand4', phone }), 429, 'rate_limited')
    app.advance(0.001)
    for (const brandId of ['brand4', 'brand5', 'brand6']) {
      expectSuccess(await send(app, { brandId, phone }), sent)
    }
    expectError(await send(app, { brandId: 'brand7', phone }), 429, 'rate_limited')
  })

  test('have an hour that opens with its first send (D3)', async () => {
    const phone = freshPhone()
    for (let count = 0; count < 10; count++) {
      expectSuccess(await send(app, { phone }), sent)
      app.advance(60)
    }
    const refused = await send(app, { phone })
    expectError(refused, 429, 'rate_limited')
    expect(retryAfter(refused)).toBe(3600 - 10 * 60)
    app.advance(3600 - 10 * 60 - 0.001)
    expectError(await send(app, { phone }), 429, 'rate_limited')
    app.advance(0.001)
    expectSuccess(await send(app, { phone }), sent)
  })

  test('are not exceeded by simultaneous sends', async () => {
    const phone = freshPhone()
    const answers = await Promise.all(brands.map((brandId) => send(app, { brandId, phone })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    for (const answer of answers.filter(({ status }) => status !== 200))
      expectError(answer, 429, 'rate_limited')
    expect(await app.outbox(phone)).toHaveLength(3)
  })

  test('do not apply to verify', async () => {
    const phone = freshPhone()
    for (const brandId of ['brand1', 'brand2', 'brand3']) await send(app, { brandId, phone })
    expectError(await send(app, { brandId: 'brand4', phone }), 429, 'rate_limited')
    const verify = { ...freshApp(), brandId: 'brand3', phone, otp: await app.lastCode(phone) }
    expectSuccess(await app.post('/otp/verify', verify))
  })

  test('are set by PHONE_LIMIT_PER_MINUTE and PHONE_LIMIT_PER_HOUR', async () => {
    const strict = await start({ PHONE_LIMIT_PER_MINUTE: '1', PHONE_LIMIT_PER_HOUR: '2' })
    const phone = freshPhone()
    expectSuccess(await send(strict, { brandId: 'brand1', phone }), sent)
    expectError(await send(strict, { brandId: 'brand2', phone }), 429, 'rate_limited')
    strict.advance(60)
    expectSuccess(await send(strict, { brandId: 'brand2', phone }), sent)
    strict.advance(60)
    expectError(await send(strict, { brandId: 'brand3', phone }), 429, 'rate_limited')
    await strict.close()
  })
})

describe('the cooldown (spec 3.2, D2): 30 seconds per brand and phone', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await start(defaults)
  })
  afterAll(() => app.close())

  test('applies for 30 seconds after an SMS, to send and resend', async () => {
    const phone = freshPhone()
    expectSuccess(await send(app, { phone }), sent)
    const refused = await send(app, { phone })
    expectError(refused, 429, 'cooldown_active')
    expect(retryAfter(refused)).toBe(30)
    app.advance(29.999)
    expectError(await send(app, { phone }), 429, 'cooldown_active')
    expectError(await app.post('/otp/resend', { ...freshApp(), phone }), 429, 'cooldown_active')
    app.advance(0.001)
    expectSuccess(await app.post('/otp/resend', { ...freshApp(), phone }), sent)
    expectError(await send(app, { phone }), 429, 'cooldown_active')
  })

  test('applies to one brand and one phone', async () => {
    const phone = freshPhone()
    expectSuccess(await send(app, { brandId: 'brand1', phone }), sent)
    expectSuccess(await send(app, { brandId: 'brand2', phone }), sent)
    expectSuccess(await send(app, { brandId: 'brand1', phone: freshPhone() }), sent)
    expectError(await send(app, { brandId: 'brand1', phone }), 429, 'cooldown_active')
  })

  test('applies to all apps', async () => {
    const phone = freshPhone()
    expectSuccess(await send(app, { ...freshApp(), phone }), sent)
    expectError(await send(app, { ...freshApp(), phone }), 429, 'cooldown_active')
  })

  test('continues after the code has been verified', async () => {
    const phone = freshPhone()
    await send(app, { phone })
    const verify = { ...freshApp(), phone, otp: await app.lastCode(phone) }
    expectSuccess(await app.post('/otp/verify', verify))
    expectError(await send(app, { phone }), 429, 'cooldown_active')
  })

  test("does not revoke the recipient's code when it rejects a resend", async () => {
    const phone = freshPhone()
    await send(app, { phone })
    const otp = await app.lastCode(phone)
    expectError(await app.post('/otp/resend', { ...freshApp(), phone }), 429, 'cooldown_active')
    expectSuccess(await app.post('/otp/verify', { ...freshApp(), phone, otp }))
  })

  test('does not apply to e-mail, or to SMS after an e-mail', async () => {
    const email = freshEmail()
    for (let count = 0; count < 5; count++) {
      expectSuccess(await send(app, { channel: 'EMAIL', email }), sent)
    }
    const phone = freshPhone()
    expectSuccess(await send(app, { channel: 'EMAIL', email, phone }), sent)
    expectSuccess(await send(app, { phone }), sent)
    expectSuccess(await send(app, { channel: 'EMAIL', email }), sent)
  })

  test('is set by SMS_COOLDOWN_SECONDS', async () => {
    const brief = await start({ SMS_COOLDOWN_SECONDS: '5' })
    const phone = freshPhone()
    await send(brief, { phone })
    brief.advance(4.999)
    expectError(await send(brief, { phone }), 429, 'cooldown_active')
    brief.advance(0.001)
    expectSuccess(await send(brief, { phone }), sent)
    await brief.close()
  })
})

describe('the limit of OTP mails (D24): 30 an hour per mailbox', () => {
  test('counts all brands, spellings and +tags together; the 31st mail returns 429 rate_limited until the hour ends', async () => {
    const app = await start(defaults)
    const email = 'Flooded@Example.com'
    const spellings = [email, email.toLowerCase(), 'flooded+a@example.com', 'Flooded+B+c@example.com']
    for (let count = 0; count < 30; count++) {
      const brandId = brands[count % brands.length]
      const spelling = spellings[count % spellings.length]
      expectSuccess(await send(app, { brandId, channel: 'EMAIL', email: spelling }), sent)
    }
    expectError(await send(app, { channel: 'EMAIL', email: 'flooded+new@example.com' }), 429, 'rate_limited')
    app.advance(600)
    const refused = await send(app, { channel: 'EMAIL', email })
    expectError(refused, 429, 'rate_limited', 'mailbox_hour')
    expect(retryAfter(refused)).toBe(3000)
    expectError(
      await app.post('/otp/resend', { ...freshApp(), channel: 'EMAIL', email }),
      429,
      'rate_limited',
    )
    expectSuccess(await send(app, { channel: 'EMAIL', email: freshEmail() }), sent)
    app.advance(3000)
    expectSuccess(await send(app, { channel: 'EMAIL', email }), sent)
    await app.close()
  })

  test('is shared by the e-mail addresses of one mailbox, which have separate codes and wrong-code counts', async () => {
    const app = await start({ EMAIL_LIMIT_PER_HOUR: '2', FAILURE_BUDGET_PER_DAY: '1' })
    const [tagged, plain] = ['ann+shop@example.com', 'ann@example.com']
    expectSuccess(await send(app, { channel: 'EMAIL', email: tagged }), sent)
    expectSuccess(await send(app, { channel: 'EMAIL', email: plain }), sent)
    expectError(await send(app, { channel: 'EMAIL', email: 'ann+2@example.com' }), 429, 'rate_limited')
    const [ofTagged, ofPlain] = [await app.lastCode(tagged), await app.lastCode(plain)]
    expectError(await app.post('/otp/verify', { email: plain, otp: otherThan(ofPlain) }), 401, 'mismatch')
    expectError(await app.post('/otp/verify', { email: plain, otp: ofPlain }), 429, 'rate_limited')
    expectSuccess(await app.post('/otp/verify', { email: tagged, otp: ofTagged }))
    await app.close()
  })

  test('does not revoke the code when it rejects a mail', async () => {
    const app = await start({ EMAIL_LIMIT_PER_HOUR: '1' })
    const email = freshEmail()
    await send(app, { channel: 'EMAIL', email })
    const otp = await app.lastCode(email)
    expectError(
      await app.post('/otp/resend', { ...freshApp(), channel: 'EMAIL', email }),
      429,
      'rate_limited',
    )
    expectSuccess(await app.post('/otp/verify', { ...freshApp(), email, otp }))
    await app.close()
  })

  test('is off with EMAIL_LIMIT_PER_HOUR=0', async () => {
    const app = await start({ EMAIL_LIMIT_PER_HOUR: '0' })
    const email = freshEmail()
    for (let count = 0; count < 35; count++) {
      expectSuccess(await app.post('/otp/send', { channel: 'EMAIL', email }), sent)
    }
    await app.close()
  })

  test('does not count a failed mail', async () => {
    // Port 1 refuses connections.
    const app = await start({
      EMAIL_LIMIT_PER_HOUR: '1',
      SMTP_URL: 'smtp://127.0.0.1:1',
      MAIL_FROM: 'a@example.com',
    })
    const email = freshEmail()
    for (let count = 0; count < 3; count++) {
      expectError(await send(app, { channel: 'EMAIL', email }), 502, 'sms_failed')
    }
    await app.close()
  })

  test('does not count mails of /notify', async () => {
    const app = await start({ EMAIL_LIMIT_PER_HOUR: '1' })
    const email = freshEmail()
    const mail = { channel: 'EMAIL', to: [email], subject: 'x', html: 'x' }
    for (let count = 0; count < 3; count++) expectSuccess(await app.post('/notify', mail), ['channel'])
    expectSuccess(await send(app, { channel: 'EMAIL', email }), sent)
    for (let count = 0; count < 3; count++) expectSuccess(await app.post('/notify', mail), ['channel'])
    await app.close()
  })
})

describe('wrong codes for all codes of a recipient (D23)', () => {
  /** Sends a code, enters wrong codes and returns the correct code. */
  async function guessWrong(app: TestApp, recipient: Readonly<Record<string, unknown>>, guesses: number) {
    app.advance(60)
    const to = String(recipient.phone ?? recipient.email)
    expectSuccess(await send(app, recipient), sent)
    const otp = await app.lastCode(to)
    const { channel: _, ...contact } = recipient
    const guess = () => app.post('/otp/verify', { ...contact, otp: otherThan(otp) })
    for (const answer of await Promise.all(Array.from({ length: guesses }, guess))) {
      expectError(answer, 401, 'mismatch')
    }
    return otp
  }

  test('use up a budget; then verify returns 429 rate_limited for any code, until 24 hours have passed', async () => {
    const app = await start({ FAILURE_BUDGET_PER_DAY: '5' })
    const phone = freshPhone()
    const startedAt = app.clock.now + 60_000
    await guessWrong(app, { phone }, 3)
    const otp = await guessWrong(app, { phone }, 2)
    const refused = await app.post('/otp/verify', { phone, otp })
    expectError(refused, 429, 'rate_limited', 'wrong_codes')
    expect(retryAfter(refused)).toBe(86_400 - 60)
    expectError(await app.post('/otp/verify', { phone, otp: otherThan(otp) }), 429, 'rate_limited')
    app.clock.now = startedAt + 86_400_000 - 60_000
    const last = await guessWrong(app, { phone }, 0)
    expectSuccess(await app.post('/otp/verify', { phone, otp: last }))
    await app.close()
  })

  test('have a default budget of 100', async () => {
    const app = await start({ PHONE_LIMIT_PER_HOUR: '1000' })
    const phone = freshPhone()
    for (let count = 0; count < 33; count++) await guessWrong(app, { phone }, 3)
    const otp = await guessWrong(app, { phone }, 1)
    expectError(await app.post('/otp/verify', { phone, otp }), 429, 'rate_limited')
    await app.close()
  })

  test('are cleared by a success', async () => {
    const app = await start({ FAILURE_BUDGET_PER_DAY: '4' })
    const phone = freshPhone()
    await guessWrong(app, { phone }, 3)
    const otp = await guessWrong(app, { phone }, 0)
    expectSuccess(await app.post('/otp/verify', { phone, otp }))
    await guessWrong(app, { phone }, 3)
    const last = await guessWrong(app, { phone }, 0)
    expectSuccess(await app.post('/otp/verify', { phone, otp: last }))
    await app.close()
  })

  test('are counted per recipient, for all brands and spellings together', async () => {
    const app = await start({ FAILURE_BUDGET_PER_DAY: '2' })
    const phone = freshPhone()
    const email = freshEmail()
    const used = await guessWrong(app, { phone }, 1)
    app.advance(60)
    expectSuccess(await send(app, { phone: `+${phone}`, brandId: 'brand1' }), sent)
    const otp = await app.lastCode(phone)
    const guess = { phone: `(${phone})`, brandId: 'brand1', otp: otherThan(otp) }
    expectError(await app.post('/otp/verify', guess), 401, 'mismatch')
    expectError(await app.post('/otp/verify', { phone, brandId: 'brand1', otp }), 429, 'rate_limited')
    expectError(await app.post('/otp/verify', { phone, otp: used }), 429, 'rate_limited')
    for (const other of [{ phone: freshPhone() }, { channel: 'EMAIL', email }]) {
      const right = await guessWrong(app, other, 1)
      const { channel: _, ...recipient } = { channel: '', ...other }
      expectSuccess(await app.post('/otp/verify', { ...recipient, otp: right }))
    }
    await app.close()
  })

  test('block send and resend when the budget is used up, before an SMS or mail and without using other limits', async () => {
    const app = await start({
      FAILURE_BUDGET_PER_DAY: '2',
      GLOBAL_LIMIT_PER_MINUTE: '1',
      PHONE_LIMIT_PER_MINUTE: '2',
      EMAIL_LIMIT_PER_HOUR: '2',
    })
    for (const to of [{ phone: freshPhone() }, { channel: 'EMAIL', email: freshEmail() }]) {
      const { channel: _, ...contact } = { channel: '', ...to }
      const address = String(Object.values(contact)[0])
      app.advance(60)
      expectSuccess(await send(app, to), sent)
      const otp = await app.lastCode(address)
      const guess = () => app.post('/otp/verify', { ...freshApp(), ...contact, otp: otherThan(otp) })
      for (const _ of [1, 2]) expectError(await guess(), 401, 'mismatch')
      const sends = (await app.outbox(address)).length
      const own = freshApp()
      app.advance(30)
      for (const brandId of ['acme', 'brand1', 'brand2']) {
        for (const path of ['/otp/send', '/otp/resend']) {
          const refused = await app.post(path, { ...own, ...to, brandId })
          expectError(refused, 429, 'rate_limited')
          expect(retryAfter(refused)).toBe(86_400 - 30)
        }
      }
      expect(await app.outbox(address)).toHaveLength(sends)
      // Neither the app's limit of one call a minute nor a limit of the recipient was used.
      const other = to.channel === undefined ? { phone: freshPhone() } : { ...to, email: freshEmail() }
      expectSuccess(await app.post('/otp/send', { ...own, ...other }), sent)
      app.advance(86_400 - 30)
      for (const brandId of ['acme', 'brand1']) expectSuccess(await send(app, { ...to, brandId }), sent)
    }
    await app.close()
  })

  test('are cleared for all brands by a success with one', async () => {
    const app = await start({ FAILURE_BUDGET_PER_DAY: '3' })
    const phone = freshPhone()
    await guessWrong(app, { phone }, 2)
    const otp = await guessWrong(app, { phone, brandId: 'brand1' }, 0)
    expectSuccess(await app.post('/otp/verify', { phone, brandId: 'brand1', otp }))
    await guessWrong(app, { phone }, 2)
    await app.close()
  })

  test('are not counted when no code was compared', async () => {
    const app = await start({ FAILURE_BUDGET_PER_DAY: '1' })
    const phone = freshPhone()
    for (let count = 0; count < 3; count++) {
      expectError(await app.post('/otp/verify', { phone, otp: '123456' }), 404, 'not_found')
      expectError(await app.post('/otp/verify', { phone, otp: '12345' }), 400, 'invalid_otp_format')
    }
    const otp = await guessWrong(app, { phone }, 0)
    expectSuccess(await app.post('/otp/verify', { phone, otp }))
    await app.close()
  })

  test('are not counted with FAILURE_BUDGET_PER_DAY=0', async () => {
    const app = await start({ FAILURE_BUDGET_PER_DAY: '0', PHONE_LIMIT_PER_HOUR: '1000' })
    const phone = freshPhone()
    for (let count = 0; count < 35; count++) await guessWrong(app, { phone }, 3)
    const otp = await guessWrong(app, { phone }, 2)
    expectSuccess(await app.post('/otp/verify', { phone, otp }))
    await app.close()
  })
})

describe('a provider that may have sent the code (D26)', () => {
  /** A gateway that accepts every message and closes the connection without a response. */
  function startHangingUp() {
    let messages = 0
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data: (socket) => {
          messages++
          socket.terminate()
        },
      },
    })
    const url = `http://127.0.0.1:${server.port}/sms`
    return {
      messages: () => messages,
      env: {
        SMS_WEBHOOK_URL: url,
        SMS_WEBHOOK_SECRET: 'a secret of the test, 32 bytes..',
        KANNEL_URL: url,
        KANNEL_USERNAME: 'user',
        KANNEL_PASSWORD: 'password',
        KANNEL_FROM: 'Acme',
      },
      stop: () => server.stop(true),
    }
  }

  const gateway = startHangingUp()
  afterAll(() => gateway.stop())

  test('keeps the minute and hour counts of the phone, releases the cooldown and revokes the code', async () => {
    const app = await start({ SMS_PLAIN: 'webhook', ...gateway.env })
    const phone = freshPhone()
    const before = gateway.messages()
    const most = async (passing: number) => {
      for (let count = 0; count < passing; count++) {
        const failed = await send(app, { phone })
        expectError(failed, 502, 'sms_failed')
        const { deliveries } = await app.eventsOf(failed)
        expect(deliveries.map(({ outcome }) => outcome)).toEqual(['unknown'])
      }
      const refused = await send(app, { phone })
      expectError(refused, 429, 'rate_limited')
      return retryAfter(refused)
    }
    expect(await most(3)).toBe(60)
    expectError(await app.post('/otp/verify', { phone, otp: '123456' }), 404, 'not_found')
    for (const _ of [1, 2]) {
      app.advance(60)
      expect(await most(3)).toBe(60)
    }
    app.advance(60)
    expect(await most(1)).toBe(3600 - 180)
    expect(gateway.messages() - before).toBe(10)
    await app.close()
  })

  test('keeps the hour count of a mailbox', async () => {
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        open: (socket) => void socket.write('220 mail.example.com\r\n'),
        data: (socket, data) => {
          const text = data.toString()
          if (/^data/i.test(text)) socket.write('354 go ahead\r\n')
          else if (/^(ehlo|mail|rcpt)/i.test(text)) socket.write('250 fine\r\n')
          else if (/^\.\r?$/m.test(text)) socket.terminate()
        },
      },
    })
    const app = await start({
      EMAIL_LIMIT_PER_HOUR: '2',
      SMTP_URL: `smtp://127.0.0.1:${server.port}`,
      MAIL_FROM: 'a@example.com',
    })
    for (const email of ['ann@example.com', 'ann+1@example.com']) {
      const failed = await send(app, { channel: 'EMAIL', email })
      expectError(failed, 502, 'sms_failed')
      expect((await app.eventsOf(failed)).deliveries.map(({ outcome }) => outcome)).toEqual(['unknown'])
    }
    const refused = await send(app, { channel: 'EMAIL', email: 'ann@example.com' })
    expectError(refused, 429, 'rate_limited')
    expect(retryAfter(refused)).toBe(3600)
    await app.close()
    server.stop(true)
  })

  /**
   * Providers that leave the outcome unknown, the expected response, and how many sends fit into a limit of
   * four a minute.
   */
  const hybrids: readonly (readonly [
    name: string,
    env: Readonly<Record<string, string>>,
    answer: string,
    passing: number,
  ])[] = [
    ['an unknown attempt, then an accepted one', { SMS_TEMPLATE: 'webhook' }, '200', 2],
    ['two unknown attempts', { SMS_TEMPLATE: 'webhook', SMS_PLAIN: 'kannel' }, '502 sms_failed', 2],
    [
      'an unknown attempt, then a failed one',
      { SMS_TEMPLATE: 'webhook', SMS_PLAIN: 'twilio' },
      '502 sms_failed',
      4,
    ],
    ['one accepted attempt', {}, '200', 4],
  ]
  for (const [name, env, expected, passing] of hybrids) {
    test(`counts each attempt that may have been sent: ${name}`, async () => {
      const twilio = {
        TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
        TWILIO_AUTH_TOKEN: 'token',
        TWILIO_FROM: '+15550001111',
        // Port 1 refuses connections.
        TWILIO_BASE_URL: 'http://127.0.0.1:1',
      }
      const app = await start({
        OTP_SMS_MODE: 'hybrid',
        PHONE_LIMIT_PER_MINUTE: '4',
        PHONE_LIMIT_PER_HOUR: '8',
        ...gateway.env,
        ...twilio,
        ...env,
      })
      for (const slug of brands) await app.brand(slug, { dltEnabled: true })
      const phone = freshPhone()
      let sends = 0
      // Twice: the second minute exhausts the hour.
      for (const _ of [1, 2]) {
        for (let count = 0; count < passing; count++) {
          const answer = await send(app, { phone, brandId: brands[sends++] })
          expect(`${answer.status} ${answer.body.error ?? ''}`.trim()).toBe(expected)
        }
        expectError(await send(app, { phone, brandId: brands[sends] }), 429, 'rate_limited')
        app.advance(60)
      }
      const refused = await send(app, { phone, brandId: brands[sends] })
      expectError(refused, 429, 'rate_limited')
      expect(retryAfter(refused)).toBe(3600 - 120)
      await app.close()
    })
  }
})

/**
 * Design 4, idea 1: how much of each limit a request uses. `global`, `minute` and `hour` are added counts;
 * `cooldown` is whether one is active afterwards. A failed delivery releases the limits that count sends, but
 * not the global limit, which counts requests (spec 8).
 */
describe('the limits used by a request', () => {
  const globalMax = 4
  const minuteMax = 3
  const hourMax = 5
  const receiver = startReceiver()
  let app: TestApp

  beforeAll(async () => {
    app = await start({
      GLOBAL_LIMIT_PER_MINUTE: String(globalMax),
      PHONE_LIMIT_PER_MINUTE: String(minuteMax),
      PHONE_LIMIT_PER_HOUR: String(hourMax),
      SMS_PLAIN: 'webhook',
      ...receiver.env,
    })
    await app.brand('waiting', { status: 'pending' })
    await app.brand('halted', { status: 'suspended' })
  })
  afterAll(async () => {
    await app.close()
    receiver.stop()
  })

  interface Taken {
    readonly global: number
    readonly minute: number
    readonly hour: number
    readonly cooldown: boolean
  }
  interface Own {
    readonly credentials: { appId: string; apiKey: string }
    readonly phone: string
  }
  interface Case {
    readonly name: string
    readonly path: string
    readonly body: (own: Own) => Readonly<Record<string, unknown>>
    /** HTTP status and error code. */
    readonly answer: string
    /** Earlier sends by other apps: the brand, and the seconds to wait before each. */
    readonly before?: readonly { brandId: string; after?: number }[]
    /** The app's global limit is exhausted first. */
    readonly spent?: boolean
    /** The status that the gateway answers. */
    readonly gatewayFails?: number
    readonly taken: Taken
  }
  const nothing: Taken = { global: 0, minute: 0, hour: 0, cooldown: false }
  const globalOnly: Taken = { ...nothing, global: 1 }
  const all: Taken = { global: 1, minute: 1, hour: 1, cooldown: true }

  /** A send with these fields and a phone. */
  const sends = (
    name: string,
    fields: Readonly<Record<string, unknown>>,
    answer: string,
    rest: Omit<Case, 'name' | 'path' | 'body' | 'answer'>,
  ): Case => ({
    name: `a send ${name}`,
    path: '/otp/send',
    body: ({ phone }) => ({ phone, ...fields }),
    answer,
    ...rest,
  })
  const verifies = (name: string, fields: Readonly<Record<string, unknown>>, answer: string): Case => ({
    name: `a verify ${name}`,
    path: '/otp/verify',
    body: ({ phone }) => ({ phone, ...fields }),
    answer,
    taken: answer.startsWith('403') ? nothing : globalOnly,
  })
  const notifies = (
    name: string,
    fields: Readonly<Record<string, unknown>>,
    answer: string,
    taken: Taken,
  ): Case => ({
    name: `a notification ${name}`,
    path: '/notify',
    body: ({ phone }) => ({ channel: 'SMS', brandId: 'acme', to: [phone], message: 'Hello', ...fields }),
    answer,
    taken,
  })
  const taking = { nothing: { taken: nothing }, global: { taken: globalOnly }, all: { taken: all } }

  const cases: readonly Case[] = [
    sends('', {}, '200', taking.all),
    { ...sends('again', {}, '200', taking.all), path: '/otp/resend' },
    sends('by mail', { channel: 'EMAIL', email: 'taken@example.com' }, '200', taking.global),
    sends('without apiKey', { apiKey: undefined }, '401 unauthorized', taking.nothing),
    sends('with a wrong key', { apiKey: 'wrong' }, '403 forbidden', taking.nothing),
    sends('without brandId', { brandId: undefined }, '400 brand_id_required', taking.nothing),
    sends('of a pending brand', { brandId: 'waiting' }, '403 brand_not_approved', taking.nothing),
    sends('of a suspended brand', { brandId: 'halted' }, '403 brand_suspended', taking.nothing),
    sends('with a wrong businessName', { businessName: 5 }, '400 validation_error', taking.global),
    sends('with a wrong channel', { channel: 'FAX' }, '400 validation_error', taking.global),
    sends('without a phone', { phone: undefined }, '400 validation_error', taking.global),
    sends('to an unusable phone', { phone: '15550000000x' }, '400 validation_error', taking.global),
    sends('refused by the cooldown', {}, '429 cooldown_active', {
      before: [{ brandId: 'acme' }],
      taken: { ...nothing, cooldown: true },
    }),
    sends('refused by the minute of its phone', {}, '429 rate_limited', {
      before: [{ brandId: 'brand9' }, { brandId: 'brand10' }, { brandId: 'brand11' }],
      taken: nothing,
    }),
    sends('refused by the hour of its phone', {}, '429 rate_limited', {
      before: [9, 10, 11, 9, 10].map((brand) => ({ brandId: `brand${brand}`, after: 60 })),
      taken: nothing,
    }),
    sends('refused by the global limit', {}, '429 rate_limited', { spent: true, taken: nothing }),
    ...[429, 503].map((status) =>
      sends(`whose gateway answers ${status}`, {}, '502 sms_failed', {
        gatewayFails: status,
        taken: globalOnly,
      }),
    ),
    // The SMS may have been sent (D26).
    ...[500, 502, 504].map((status) =>
      sends(`whose gateway answers ${status}`, {}, '502 sms_failed', {
        gatewayFails: status,
        taken: { ...all, cooldown: false },
      }),
    ),
    sends('whose delivery fails, after one that did not', {}, '502 sms_failed', {
      before: [{ brandId: 'brand9' }],
      gatewayFails: 503,
      taken: globalOnly,
    }),
    verifies('that finds nothing', { otp: '123456' }, '404 not_found'),
    verifies('without otp', {}, '400 validation_error'),
    verifies('of five digits', { otp: '12345' }, '400 invalid_otp_format'),
    verifies('of a pending brand', { otp: '123456', brandId: 'waiting' }, '403 brand_not_approved'),
    notifies('', {}, '200', globalOnly),
    notifies('without to', { to: [] }, '400 validation_error', globalOnly),
    notifies('of an unknown channel', { channel: 'FAX' }, '400 invalid_channel', globalOnly),
    notifies('without brand', { brandId: undefined }, '400 brand_id_required', nothing),
    notifies('of a suspended brand', { brandId: 'halted' }, '403 brand_suspended', nothing),
    notifies(
      'of a template not enabled',
      { message: undefined, templateKey: 'ORDER_PLACED', variables: {} },
      '403 template_not_allowed',
      nothing,
    ),
  ]

  /** Runs the case with its own app and phone. */
  async function happen(row: Case): Promise<Own> {
    receiver.answer(() => new Response(null, { status: 204 }))
    const own = { credentials: freshApp(), phone: freshPhone() }
    for (const { brandId, after = 0 } of row.before ?? []) {
      expectSuccess(await send(app, { brandId, phone: own.phone }), sent)
      app.advance(after)
    }
    if (row.spent) for (let count = 0; count < globalMax; count++) await use(own)
    const status = row.gatewayFails
    if (status) receiver.answer(() => new Response(null, { status }))
    const answer = await app.post(row.path, { ...own.credentials, ...row.body(own) })
    expect(`${answer.status} ${answer.body.error ?? ''}`.trim()).toBe(row.answer)
    receiver.answer(() => new Response(null, { status: 204 }))
    return own
  }
  const use = (own: Own) =>
    app.post('/otp/verify', { ...own.credentials, phone: '15559999999', otp: '123456' })

  /** How many of these calls are accepted before one is rate-limited. */
  async function passing(call: (count: number) => Promise<Answer>, most: number): Promise<number> {
    for (let count = 0; count <= most; count++) {
      if ((await call(count)).body.error === 'rate_limited') return count
    }
    throw new Error(`more than ${most} calls passed`)
  }

  for (const row of cases) {
    test(`${row.name} uses ${row.taken.global} of the global limit`, async () => {
      const own = await happen(row)
      expect(await passing(() => use(own), globalMax)).toBe(row.spent ? 0 : globalMax - row.taken.global)
    })

    test(`${row.name} uses ${row.taken.minute} of the phone's minute limit`, async () => {
      const own = await happen(row)
      const before = (row.before ?? []).filter(({ after = 0 }) => after === 0).length
      // The phone's hour limit may be exhausted first, which hides the minute limit.
      const left = Math.min(minuteMax - before, hourMax - (row.before ?? []).length)
      const probe = (count: number) => send(app, { brandId: brands[count], phone: own.phone })
      expect(await passing(probe, minuteMax)).toBe(left - row.taken.minute)
    })

    test(`${row.name} uses ${row.taken.hour} of the phone's hour limit`, async () => {
      const own = await happen(row)
      const probe = (count: number) => {
        app.advance(60)
        return send(app, { brandId: brands[count], phone: own.phone })
      }
      expect(await passing(probe, hourMax)).toBe(hourMax - (row.before ?? []).length - row.taken.hour)
    })

    test(`${row.name} leaves ${row.taken.cooldown ? 'a' : 'no'} cooldown`, async () => {
      const own = await happen(row)
      const { error } = (await send(app, { phone: own.phone })).body
      expect(error === 'cooldown_active').toBe(row.taken.cooldown)
    })
  }
})

describe('a delivery in progress', () => {
  const receiver = startReceiver()
  afterAll(() => receiver.stop())

  /** A service whose SMS wait at the gateway until the test answers them. */
  async function holding(env: Readonly<Record<string, string>> = {}) {
    const app = await start({ SMS_PLAIN: 'webhook', ...receiver.env, ...env })
    /** Starts a send and resolves when its SMS has arrived at the gateway. */
    const hold = async (fields: Readonly<Record<string, unknown>>) => {
      const gate = held()
      const arrived = Promise.withResolvers<string>()
      receiver.answer(({ body }) => {
        arrived.resolve(codeIn(body.text))
        return gate.promise
      })
      const answer = send(app, fields)
      const code = await arrived.promise
      receiver.answer(() => new Response(null, { status: 204 }))
      return { answer, code, end: (status: number) => gate.release(new Response(null, { status })) }
    }
    return { app, hold }
  }

  test('already counts, so phone limits are not exceeded meanwhile', async () => {
    const { app, hold } = await holding()
    const phone = freshPhone()
    const under = [
      await hold({ brandId: 'brand1', phone }),
      await hold({ brandId: 'brand2', phone }),
      await hold({ brandId: 'brand3', phone }),
    ]
    expectError(await send(app, { brandId: 'brand1', phone }), 429, 'cooldown_active')
    expectError(await send(app, { brandId: 'brand4', phone }), 429, 'rate_limited')
    for (const { end } of under) end(503)
    for (const { answer } of under) expectError(await answer, 502, 'sms_failed')
    for (const brandId of ['brand4', 'brand1', 'brand2'])
      expectSuccess(await send(app, { brandId, phone }), sent)
    expectError(await send(app, { brandId: 'brand3', phone }), 429, 'rate_limited')
    await app.close()
  })

  test('that fails releases its window: the next send opens a new one (D3)', async () => {
    const { app, hold } = await holding()
    const phone = freshPhone()
    const first = await hold({ brandId: 'brand1', phone })
    first.end(503)
    expectError(await first.answer, 502, 'sms_failed')
    app.advance(50)
    for (const brandId of ['brand1', 'brand2', 'brand3'])
      expectSuccess(await send(app, { brandId, phone }), sent)
    app.advance(15)
    const refused = await send(app, { brandId: 'brand4', phone })
    expectError(refused, 429, 'rate_limited')
    expect(retryAfter(refused)).toBe(45)
    await app.close()
  })

  test('that fails late releases nothing of a later window', async () => {
    const { app, hold } = await holding()
    const phone = freshPhone()
    const late = await hold({ brandId: 'brand1', phone })
    app.advance(61)
    for (const brandId of ['brand2', 'brand3', 'brand4'])
      expectSuccess(await send(app, { brandId, phone }), sent)
    late.end(503)
    expectError(await late.answer, 502, 'sms_failed')
    expectError(await send(app, { brandId: 'brand5', phone }), 429, 'rate_limited')
    await app.close()
  })

  test('keeps its cooldown until the delivery can no longer be in progress, even with a shorter cooldown setting', async () => {
    const { app, hold } = await holding({ SMS_COOLDOWN_SECONDS: '1', PROVIDER_TIMEOUT_MS: '4000' })
    const phone = freshPhone()
    const slow = await hold({ phone })
    app.advance(7.9)
    expectError(await send(app, { phone }), 429, 'cooldown_active')
    slow.end(204)
    expectSuccess(await slow.answer, sent)
    app.advance(0.999)
    expectError(await send(app, { phone }), 429, 'cooldown_active')
    app.advance(0.001)
    expectSuccess(await send(app, { phone }), sent)
    await app.close()
  })

  test('starts the full cooldown when it succeeds', async () => {
    const { app, hold } = await holding()
    const phone = freshPhone()
    const slow = await hold({ phone })
    app.advance(7)
    slow.end(204)
    expectSuccess(await slow.answer, sent)
    const refused = await send(app, { phone })
    expectError(refused, 429, 'cooldown_active')
    expect(retryAfter(refused)).toBe(30)
    app.advance(29.999)
    expectError(await send(app, { phone }), 429, 'cooldown_active')
    app.advance(0.001)
    expectSuccess(await send(app, { phone }), sent)
    await app.close()
  })

  test('returns 200 if its code was verified meanwhile, and the code stays used (D15)', async () => {
    const { app, hold } = await holding()
    const phone = freshPhone()
    const slow = await hold({ phone })
    expectSuccess(await app.post('/otp/verify', { phone, otp: slow.code }))
    slow.end(204)
    expectSuccess(await slow.answer, sent)
    expectError(await app.post('/otp/verify', { phone, otp: slow.code }), 404, 'not_found')
    await app.close()
  })
})
