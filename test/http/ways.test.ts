import { afterEach, expect, test } from 'bun:test'
import type { Ladder } from '../../src/domain/otp/ladder.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { accepted, policyOf, testProvider } from '../support/policy.ts'
import { expectError, expectSuccess, freshEmail, freshPhone } from '../support/rows.ts'

// Design D54: by which way a code goes to a phone. What follows the first way is in ladder.test.ts.

const [sms, whatsapp, voice] = [testProvider('one'), testProvider('two'), testProvider('three')]
const providers = [sms, whatsapp, voice]
let app: TestApp

afterEach(async () => {
  await app.close()
  for (const { sent } of providers) sent.length = 0
})

async function start(ways: Ladder['ways'] = ['sms']): Promise<void> {
  const phoneRoutes = { plain: [sms], whatsapp: [whatsapp], voice: [voice] }
  app = await createTestApp({ SMS_COOLDOWN_SECONDS: '0' }, { phoneRoutes, ladder: { ways, waitSeconds: 20 } })
}

/** Of the messages so far, in the order of providers. */
const routes = () => providers.flatMap(({ sent }) => sent.map(({ route }) => route))
const resend = (fields: object) => app.post('/otp/resend', { phone: freshPhone(), ...fields })

test('a resend takes the way in `via`, else the first way of the server', async () => {
  await start()
  for (const via of ['voice', 'whatsapp', 'sms', null, undefined])
    expectSuccess(await resend({ via }), ['expiresIn'])
  expect(routes()).toEqual(['plain', 'plain', 'plain', 'whatsapp', 'voice'])
})

test('a send, and a resend without `via`, take the first way of LADDER', async () => {
  await start(['whatsapp', 'sms'])
  expectSuccess(await app.post('/otp/send', { phone: freshPhone() }), ['expiresIn'])
  expectSuccess(await resend({}), ['expiresIn'])
  expect(routes()).toEqual(['whatsapp', 'whatsapp'])
})

test('a message by another way than SMS has one segment, and the digits of the code', async () => {
  await start()
  const phone = freshPhone()
  const sent = await app.post('/otp/resend', { phone, via: 'voice', lang: 'hi' })
  const { deliveries } = await app.eventsOf(sent)
  const [{ code = null } = {}] = voice.sent
  expect(deliveries.map(({ route, segments }) => [route, segments])).toEqual([
    ['voice', { count: 1, encoding: 'GSM-7' }],
  ])
  expectSuccess(await app.post('/otp/verify', { phone, otp: code }))
})

test('a way knows the languages of the request, and the log the language that it sent', async () => {
  await start()
  whatsapp.answer(() => ({ ...accepted, lang: 'en-GB' }))
  const { deliveries } = await app.eventsOf(await resend({ via: 'whatsapp', lang: 'en-GB' }))
  expect(whatsapp.sent).toMatchObject([{ askedLang: 'en-GB', lang: 'en' }])
  expect(deliveries).toMatchObject([{ lang: 'en-GB' }])
  whatsapp.answer(() => accepted)
})

test('`via` must be a way of the server, of a resend to a phone', async () => {
  await start()
  for (const via of ['telegram', 'fax', 'SMS', '', 7, ['sms'], true])
    expectError(await resend({ via }), 400, 'validation_error', 'via')
  expectError(
    await app.post('/otp/send', { phone: freshPhone(), via: 'sms' }),
    400,
    'validation_error',
    'via',
  )
  const byMail = { channel: 'EMAIL', email: freshEmail(), via: 'sms' }
  expectError(await app.post('/otp/resend', byMail), 400, 'validation_error', 'via')
  expect(routes()).toEqual([])
  expect((await resend({ via: 'fax' })).body.message).toBe(
    '`via` must be a way that this server has: sms, whatsapp, voice.',
  )
})

test('destination rules name the providers of ways: one that names only SMS providers ends the others', async () => {
  await start()
  await policyOf(app).rule('GB', 'allow', { providers: ['one'] })
  const phone = '447400123456'
  expectError(await app.post('/otp/resend', { phone, via: 'whatsapp' }), 502, 'sms_failed')
  expectSuccess(await app.post('/otp/resend', { phone, via: 'sms' }), ['expiresIn'])
  await policyOf(app).rule('GB', 'allow', { providers: ['one', 'two'] })
  expectSuccess(await app.post('/otp/resend', { phone, via: 'whatsapp' }), ['expiresIn'])
  expect(routes()).toEqual(['plain', 'whatsapp'])
})

test('the catalog lists the ways to a country, that of a send first', async () => {
  const phoneRoutes = { plain: [sms], whatsapp: [whatsapp], voice: [voice] }
  const ladder = { ways: ['whatsapp', 'sms'], waitSeconds: 20 } as const
  app = await createTestApp({ SMS_COUNTRIES: 'GB,IN', VOICE_COUNTRIES: 'IN' }, { phoneRoutes, ladder })
  const waysTo = async (country: string) => {
    const { status, body } = await app.get(`/integrations/catalog?country=${country}`)
    return status === 200 ? body.ways.join() : `${status} ${body.error} ${body.field}`
  }
  const rows = [
    ['IN', 'whatsapp,sms,voice'],
    ['in', 'whatsapp,sms,voice'],
    ['9198', 'whatsapp,sms,voice'],
    ['4474', 'whatsapp,sms'],
    // Of several countries.
    ['44', '400 validation_error country'],
    ['GB', 'whatsapp,sms'],
    ['LV', ''],
    ['', '400 validation_error country'],
    ['ZZ', '400 validation_error country'],
    ['999', '400 validation_error country'],
    ['9198123', '400 validation_error country'],
    ['%2B91', '400 validation_error country'],
  ] as const
  for (const [country, ways] of rows) expect([country, await waysTo(country)]).toEqual([country, ways])
  await policyOf(app).rule('GB', 'allow', { providers: ['one'] })
  expect(await waysTo('GB')).toBe('sms')
  expect((await app.get('/integrations/catalog')).body).not.toHaveProperty('ways')
})

test('a code by SMS never takes a provider of another way; without another template provider, it has the plain route', async () => {
  const named = testProvider('whatsapp')
  const phoneRoutes = { plain: [sms], template: [named], whatsapp: [named] }
  const ladder = { ways: ['sms', 'whatsapp'], waitSeconds: 20 } as const
  app = await createTestApp({ SMS_COOLDOWN_SECONDS: '0', OTP_SMS_MODE: 'template' }, { phoneRoutes, ladder })
  await policyOf(app).rule('GB', 'allow', { route: 'template' })
  const phone = '447400123456'
  expectSuccess(await app.post('/otp/resend', { phone, via: 'sms' }), ['expiresIn'])
  expectSuccess(await app.post('/otp/send', { phone: '447400123457' }), ['expiresIn'])
  expect([sms.sent.length, named.sent.length]).toEqual([2, 0])
  await policyOf(app).rule('GB', 'allow', { route: 'template', providers: ['whatsapp'] })
  expect((await app.get('/integrations/catalog?country=GB')).body.ways).toEqual(['whatsapp'])
})
