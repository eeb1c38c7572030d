import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { TextTest } from '../../src/domain/operator/text-test.ts'
import { setText } from '../../src/domain/operator/texts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { tester } from '../support/operator.ts'
import { accepted, policyOf, testProvider } from '../support/policy.ts'

// `text send` (design D47).

let api: TestApp
const provider = testProvider('one')
const dlt = testProvider('dlt')

beforeEach(async () => {
  api = await createTestApp({ OTP_SMS_MODE: 'hybrid' }, { smsRoutes: { plain: [provider], template: [dlt] } })
})
afterEach(async () => {
  await api.close()
  for (const { sent, answer } of [provider, dlt]) {
    sent.length = 0
    answer(() => accepted)
  }
})

const phone = '+371 2000 0001'
const send = (properties: Partial<TextTest> = {}) =>
  api.app.testText(tester, { brand: 'acme', key: 'LOGIN_OTP', to: phone, ...properties })
const store = (key: string, text: string, lang?: string) =>
  setText(api.app.context.acting(tester), { brand: 'acme', key, channel: 'SMS', lang, text })
const tests = async () =>
  (await api.app.context.audit.list({ limit: 9 })).filter(({ action }) => action === 'text.tested')

describe('a test message', () => {
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
    await send({ key: 'LOGIN_OTP_WITH_ID', lang: 'hi', values: { loginId: 'jane' } })
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
    expect([dlt.sent.length, (await tests()).length]).toEqual([2, 2])
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
    await policyOf(api).rule('GB', 'block')
    expect(await send({ to: '+447400123456' }).catch(String)).toContain('OperatorError: `to`')
    expect([provider.sent.length, (await tests()).length]).toEqual([1, 1])
  })

  test('that no provider accepts says why', async () => {
    provider.answer(() => ({ kind: 'rejected', scope: 'content', reason: 'HTTP 400' }))
    const tested = await send()
    expect(tested).toMatchObject({ outcome: { kind: 'rejected', reason: 'HTTP 400' } })
    const { trace } = await api.eventsOf({ body: tested })
    expect(trace?.end).toMatchObject({ status: 500, error: 'notification_failed' })
  })

  const refusals: readonly (readonly [string, Partial<TextTest>, string])[] = [
    ['an unknown brand', { brand: 'other' }, 'Brand other does not exist.'],
    ['an unknown template', { key: 'TABLE_READY' }, 'Brand acme has no template TABLE_READY.'],
    ['no recipient', { to: '12' }, '7 to 15 digits, or an e-mail address'],
    ['no language', { lang: 'hi_IN' }, 'BCP 47'],
    [
      'an unknown value',
      { key: 'ORDER_PLACED', values: { otp: '1' } },
      'It has customerName, orderId, orderDate.',
    ],
    ['a wrong value', { key: 'ORDER_PLACED', values: { orderDate: 'today' } }, 'a date that exists'],
    ['an e-mail of a notification', { key: 'ORDER_PLACED', to: 'a@example.com' }, 'Only LOGIN_OTP'],
  ]
  test('is refused for these reasons', async () => {
    for (const [about, properties, problem] of refusals) {
      expect([about, await send(properties).catch(String)]).toEqual([about, expect.stringContaining(problem)])
    }
    expect([provider.sent, await tests()]).toEqual([[], []])
  })
})
