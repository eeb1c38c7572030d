import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { type TestSend, testResult } from '../../src/domain/operator/test-send.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, Visitor } from '../support/console.ts'
import { setText, tester } from '../support/operator.ts'
import { accepted, policyOf, temporary, testProvider, unknown } from '../support/policy.ts'

// `test-send` (design D47).

let api: TestApp
const provider = testProvider('one')
const spare = testProvider('spare')
const dlt = testProvider('dlt')
const chat = testProvider('chat')

beforeEach(async () => {
  const phoneRoutes = { plain: [provider, spare], template: [dlt], whatsapp: [chat] }
  const env = { OTP_SMS_MODE: 'hybrid' }
  api = await createTestApp(env, { phoneRoutes })
})
afterEach(async () => {
  await api.close()
  for (const { sent, answer } of [provider, spare, dlt, chat]) {
    sent.length = 0
    answer(() => accepted)
  }
})

const phone = '+371 2000 0001'
const send = (properties: Partial<TestSend> = {}) =>
  api.app.sendTest(tester, { brand: 'acme', key: 'LOGIN_OTP', to: phone, ...properties })
/** Without a brand. */
const sendThrough = (name: string, properties: Partial<TestSend> = {}) =>
  api.app.sendTest(tester, { to: phone, provider: name, ...properties })
const store = (key: string, text: string, lang?: string) =>
  setText(api.app.context.acting(tester), { brand: 'acme', key, channel: 'SMS', lang, text })
const tests = async () =>
  (await api.app.context.audit.list({ limit: 9 })).filter(({ action }) => action === 'message.tested')

describe('a test message', () => {
  test('is a code by another way if its provider is named', async () => {
    await send({ provider: 'chat', lang: 'de' })
    expect(chat.sent).toMatchObject([{ to: '37120000001', route: 'whatsapp', code: '123456', lang: 'de' }])
    await expect(sendThrough('chat')).rejects.toThrow(
      'The provider chat sends only codes or registered templates',
    )
  })

  test('is no call to a country that codes do not call, by SMS it goes there', async () => {
    await api.close()
    const phoneRoutes = { plain: [provider], voice: [chat] }
    api = await createTestApp({ VOICE_COUNTRIES: 'GB' }, { phoneRoutes })
    await expect(send({ provider: 'chat' })).rejects.toThrow('Latvia (LV), which this server does not call')
    await send({ provider: 'one' })
    await send({ provider: 'chat', to: '+447400123456' })
    expect([provider, chat].map(({ sent }) => sent.map(({ route }) => route))).toEqual([['plain'], ['voice']])
  })

  test('has the text of the brand with a code that no request can verify', async () => {
    await store('LOGIN_OTP', 'Acme-Code {{otp}}', 'de')
    const tested = await send({ lang: 'DE' })
    const { requestId } = tested
    expect(tested).toMatchObject({ recipient: '37*******01', outcome: accepted, provider: 'one' })
    expect(provider.sent).toMatchObject([{ to: '37120000001', text: 'Acme-Code 123456', requestId }])
    expect((await api.post('/otp/verify', { phone, otp: '123456' })).status).toBe(404)
    const { trace, deliveries } = await api.eventsOf({ body: { requestId } })
    expect(trace).toMatchObject({
      app: 'otpost:test',
      brand: 'acme',
      recipient: '37*******01',
      end: { status: 200 },
    })
    expect(deliveries).toMatchObject([{ template: 'LOGIN_OTP', provider: 'one', outcome: 'accepted' }])
    const details = {
      brand: 'acme',
      template: 'LOGIN_OTP',
      lang: 'de',
      channel: 'SMS',
      recipient: '37*******01',
      request: requestId,
    }
    expect(await tests()).toMatchObject([{ target: 'acme', actor: tester, details }])
    // It is no send: no limit counts it.
    expect((await api.post('/otp/send', { phone })).status).toBe(200)
  })

  test('has its place in the delivery log by its time', async () => {
    await api.post('/otp/send', { phone })
    api.clock.now += 60_000
    const at = api.clock.now
    const { requestId } = await send()
    api.clock.now += 60_000
    await api.post('/notify', { channel: 'SMS', to: ['+37120000002'], message: 'later' })
    await api.eventsOf({ body: { requestId } })
    const found = async (filter: object) =>
      (await api.app.context.eventLog.deliveries({ limit: 9, ...filter })).map((row) => row.requestId)
    expect((await found({}))[1]).toBe(requestId)
    expect(await found({ since: at, until: at + 1000 })).toEqual([requestId])
  })

  test('of a new template has samples for the values that are not given', async () => {
    const variables = [
      { name: 'guest', type: 'text', max: 5 },
      { name: 'at', type: 'datetime', max: 40 },
      { name: 'seats', type: 'number', max: 9 },
    ] as const
    const text = '{{guest}}, {{seats}} seats, {{at}}'
    const about = { brand: 'acme', key: 'TABLE_READY', channel: 'SMS', text, variables } as const
    await setText(api.app.context.acting(tester), about)
    await send({ key: 'TABLE_READY', values: { guest: 'Ann' } })
    expect(provider.sent.map((sms) => sms.text)).toEqual(['Ann, 9 seats, 21 November 2026, 14:30'])
  })

  test('goes to the registered route of a brand with DLT, with the registered text', async () => {
    await api.brand('acme', {
      displayName: 'Acme',
      dltEnabled: true,
      registrations: {
        'LOGIN_OTP_WITH_ID:hi': { id: '1107', ids: {}, senderId: 'ACMEIN', maxLength: null },
      },
    })
    await store('LOGIN_OTP_WITH_ID', '{{otp}} {{loginId}} {{minutes}}', 'hi')
    const jane = { key: 'LOGIN_OTP_WITH_ID', lang: 'hi', values: { loginId: 'jane' } }
    await send({ ...jane, to: '+91 98123 45678' })
    expect(provider.sent).toEqual([])
    expect(dlt.sent).toMatchObject([{ text: '123456 jane 5', senderId: 'ACMEIN', template: { id: '1107' } }])
  })

  test('with a value that is too long for the registered text is refused for an Indian number', async () => {
    await api.brand('acme', { displayName: 'Acme', dltEnabled: true })
    const longValues = [
      { key: 'ORDER_PLACED', values: { customerName: 'a'.repeat(31) } },
      { key: 'LOGIN_OTP_WITH_ID', values: { loginId: 'a'.repeat(31) } },
    ]
    for (const sample of longValues) {
      const problem = 'must have at most 30 characters in the registered text of this template.'
      expect(await send({ ...sample, to: '+91 98123 45678' }).catch(String)).toContain(problem)
      expect((await send(sample)).outcome).toEqual(accepted)
    }
    expect([dlt.sent.length, provider.sent.length, (await tests()).length]).toEqual([0, 2, 2])
  })

  test('is an e-mail for an e-mail address', async () => {
    expect(await send({ to: 'Jane@Example.com' })).toMatchObject({
      recipient: 'j***@example.com',
      provider: 'outbox',
    })
    const [mail] = await api.outbox('jane@example.com')
    expect(mail).toMatchObject({
      brandId: 'acme',
      text: expect.stringContaining('123456'),
    })
    expect(await tests()).toMatchObject([{ details: { channel: 'EMAIL', recipient: 'j***@example.com' } }])
  })

  test('counts on budgets, and is not sent to a blocked destination or from an exhausted budget', async () => {
    await policyOf(api).budget('country:LV', '2')
    await send()
    expect(await policyOf(api).spent()).toEqual({ 'country:LV': 2000 })
    expect(await send().catch(String)).toContain('budget')
    expect(await sendThrough('spare').catch(String)).toContain('budget')
    expect(await send({ to: '+449012345678' }).catch(String)).toContain('a premium-rate number')
    await policyOf(api).rule('GB', 'block')
    expect(await send({ to: '+447400123456' }).catch(String)).toContain('OperatorError: `to`')
    expect([provider.sent.length, (await tests()).length]).toEqual([1, 1])
  })

  test('that no provider accepts says why', async () => {
    provider.answer(() => ({ kind: 'rejected', scope: 'content', reason: 'HTTP 400' }))
    spare.answer(() => ({ kind: 'rejected', scope: 'content', reason: 'HTTP 401' }))
    const tested = await send()
    expect(tested).toMatchObject({ provider: 'spare', outcome: { kind: 'rejected', reason: 'HTTP 401' } })
    const { trace } = await api.eventsOf({ body: tested })
    expect(trace?.end).toMatchObject({ status: 500, error: 'notification_failed' })
  })

  test('without a template says that it is a test, and needs no brand', async () => {
    await api.app.sendTest(tester, { to: phone })
    await api.app.sendTest(tester, { to: phone, brand: 'acme' })
    const text = (name: string) =>
      expect.stringMatching(new RegExp(`^Test message from ${name}\\. .*operator`))
    expect(provider.sent).toMatchObject([
      { text: text('otpost'), brandSlug: 'otpost:test', template: null },
      { text: text('Acme'), brandSlug: 'acme', template: null },
    ])
    const { requestId } = await api.app.sendTest(tester, { to: 'jane@example.com' })
    const [mail] = await api.outbox('jane@example.com')
    expect(mail).toMatchObject({ subject: 'Test message from otpost', brandId: null, requestId })
    expect((await tests()).map(({ target }) => target)).toEqual(['EMAIL', 'acme', 'SMS'])
  })

  test('through a named provider goes to no other', async () => {
    for (const outcome of [temporary, unknown]) {
      spare.answer(() => outcome)
      const tested = await sendThrough('spare')
      expect(tested).toMatchObject({ outcome, provider: 'spare' })
      const { deliveries } = await api.eventsOf({ body: tested })
      expect(deliveries).toMatchObject([{ provider: 'spare', outcome: outcome.kind, brand: null }])
      const reason = 'reason' in outcome ? `(spare: ${outcome.reason})` : ''
      const words = outcome === unknown ? 'may or may not have been sent' : 'was not accepted'
      expect(testResult(tested)).toBe(`The test message to 37*******01 ${words} ${reason}.`)
    }
    expect([provider.sent.length, spare.sent.length]).toEqual([0, 2])
    const details = { provider: 'spare', channel: 'SMS', recipient: '37*******01' }
    expect(await tests()).toMatchObject([{ target: 'spare', details }, { target: 'spare' }])
  })

  test('goes through a named provider whose circuit is open, and closes it', async () => {
    provider.answer(() => temporary)
    for (let count = 0; count < 5; count++) await sendThrough('one')
    await sendThrough('one')
    expect(provider.sent).toHaveLength(6)
    provider.answer(() => accepted)
    expect(await send()).toMatchObject({ provider: 'spare' })
    expect([provider.sent.length, spare.sent.length]).toEqual([6, 1])
    expect(testResult(await sendThrough('one'))).toBe('Accepted by one: the test message to 37*******01.')
    await send()
    expect([provider.sent.length, spare.sent.length]).toEqual([8, 1])
  })

  test('goes through a named provider that the destination or the route does not have', async () => {
    await policyOf(api).rule('LV', 'allow', { providers: ['one'] })
    await sendThrough('spare')
    await sendThrough('dlt', { brand: 'acme', key: 'LOGIN_OTP' })
    const text = expect.stringContaining('123456')
    expect([provider.sent.length, spare.sent.length]).toEqual([0, 1])
    expect(dlt.sent).toMatchObject([{ route: 'template', text, template: { key: 'LOGIN_OTP' } }])
  })

  test('counts against the default limit of calls per minute', async () => {
    const limited = await createTestApp({ GLOBAL_LIMIT_PER_MINUTE: '2' })
    const to = ['jane@example.com', phone, phone]
    for (const each of to.slice(0, 2)) await limited.app.sendTest(tester, { to: each })
    const refused = await limited.app.sendTest(tester, { to: phone }).catch(String)
    expect(refused).toContain('At most 2 per minute')
    expect(await limited.outbox()).toHaveLength(2)
    limited.advance(60)
    await limited.app.sendTest(tester, { to: phone })
    await limited.close()
  })

  const refusals: readonly (readonly [string, Partial<TestSend>, string])[] = [
    ['an unknown brand', { brand: 'other' }, 'Brand other does not exist.'],
    ['an unknown template', { key: 'TABLE_READY' }, 'Brand acme has no template TABLE_READY.'],
    ['no recipient', { to: '12' }, '7 to 15 digits'],
    ['no language', { lang: 'hi_IN' }, 'BCP 47'],
    [
      'an unknown value',
      { key: 'ORDER_PLACED', values: { otp: '1' } },
      'It has customerName, orderId, orderDate.',
    ],
    ['a wrong value', { key: 'ORDER_PLACED', values: { orderDate: 'today' } }, 'a date that exists'],
    [
      'an unknown provider',
      { provider: 'two' },
      'has no provider two. It has one, spare, dlt, chat, outbox.',
    ],
    ['a phone number for mail', { provider: 'outbox' }, 'must be an e-mail address.'],
    ['a mail address for SMS', { provider: 'one', to: 'a@example.com' }, 'must be a phone number.'],
    ['a template without a brand', { brand: undefined }, 'needs a brand'],
    ['a language without a template', { key: undefined, lang: 'de' }, 'need a template'],
    [
      'a registered route without a template',
      { key: undefined, provider: 'dlt' },
      'only codes or registered templates',
    ],
    ['an e-mail of a notification', { key: 'ORDER_PLACED', to: 'a@example.com' }, 'Only LOGIN_OTP'],
  ]
  test('is refused for these reasons', async () => {
    for (const [about, properties, problem] of refusals) {
      expect([about, await send(properties).catch(String)]).toEqual([about, expect.stringContaining(problem)])
    }
    expect([provider.sent, await tests()]).toEqual([[], []])
  })
})

describe('an operator in the console', () => {
  const typed = { to: phone, provider: 'spare', brand: '', template: '', lang: '' }

  test('tests a provider that has never accepted a message, and sees what became of it', async () => {
    const visitor = await signedIn(api)
    const untested = 'Provider spare has never accepted a message.'
    const link = 'href="/admin/test?provider=spare"'
    const overview = (await visitor.get('/admin')).html
    for (const shown of [untested, link, 'Provider one has never']) expect(overview).toContain(shown)
    expect(overview).not.toContain('Provider outbox')
    expect((await visitor.get('/admin/test?provider=spare')).html).toMatch(
      /<option value="spare" selected[^>]*>spare \(phone\)</,
    )
    const send = async () => {
      const { status, headers } = await visitor.post('/admin/test', typed)
      const trace = headers.get('location') ?? ''
      expect([status, trace]).toEqual([303, expect.stringMatching(/^\/admin\/deliveries\/[0-9a-f-]{36}$/)])
      return (await visitor.get(trace)).html
    }
    spare.answer(() => ({ kind: 'rejected', scope: 'account', reason: 'HTTP 401' }))
    const failed = await send()
    expect(failed).toMatch(
      /role="alert".*The test message to 37\*+01 was not accepted \(spare: HTTP 401\)\./s,
    )
    for (const shown of ['an operator sent a test message by SMS', 'Attempt 1'])
      expect(failed).toContain(shown)
    expect(failed).not.toContain('credentials of app')
    expect((await visitor.get('/admin')).html).toContain('1 of 1 attempt (100%) failed')
    spare.answer(() => unknown)
    expect(await send()).toContain('may or may not have been sent (spare: time-out).')
    spare.answer(() => accepted)
    expect(await send()).toMatch(/role="status".*Accepted by spare: the test message to 37\*+01\./s)
    const after = (await visitor.get('/admin')).html
    expect(after).not.toContain(untested)
    expect(after).toContain('Provider one has never')
    expect([provider.sent.length, spare.sent.length]).toEqual([0, 3])
    const audit = (await visitor.get('/admin/audit')).html
    expect(audit.match(/<th scope="row"[^>]*>Test message sent/g)).toHaveLength(3)
    expect(audit).not.toContain('37120000001')
  })

  test('tests a brand and a text from their pages', async () => {
    const visitor = await signedIn(api)
    expect((await visitor.get('/admin/brands/acme')).html).toContain('href="/admin/test?brand=acme"')
    await store('LOGIN_OTP', 'Acme-Code {{otp}}', 'de')
    const path = '/admin/test?brand=acme&template=LOGIN_OTP&lang=de'
    const editor = (await visitor.get('/admin/brands/acme/texts/LOGIN_OTP/sms/de')).html
    expect(editor).toContain(`href="${path.replaceAll('&', '&amp;')}"`)
    const { html } = await visitor.get(path)
    expect(html).toMatch(/value="acme" selected.*value="LOGIN_OTP" selected.*value="de"/s)
    const form = { to: phone, provider: '', brand: 'acme', template: 'LOGIN_OTP', lang: 'de' }
    expect((await visitor.post('/admin/test', form)).status).toBe(303)
    expect(provider.sent).toMatchObject([{ text: 'Acme-Code 123456' }])
  })

  test('corrects a rejected form, and only the form of the console sends', async () => {
    const visitor = await signedIn(api)
    const rejected = await visitor.post('/admin/test', { ...typed, to: 'jane@example.com' })
    expect(rejected.status).toBe(409)
    for (const kept of ['must be a phone number.', 'value="jane@example.com"', 'value="spare" selected'])
      expect(rejected.html).toContain(kept)
    expect((await visitor.get('/admin/test?to=37120000001')).html).not.toContain('37120000001')
    expect((await visitor.post('/admin/test', { ...typed, csrf: 'guessed' })).status).toBe(403)
    expect((await new Visitor(api).post('/admin/test', typed)).status).toBe(404)
    expect([spare.sent, await tests()]).toEqual([[], []])
  })
})
