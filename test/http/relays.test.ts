import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { createTestApp, type TestApp } from '../support/app.ts'
import { type AddedRelay, addRelay, basic } from '../support/relay.ts'

// Design D53 and relays.md.

let app: TestApp

beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const phone = '+12025550143'
const digits = phone.slice(1)

describe('supabase', () => {
  const call = (uuid = crypto.randomUUID()) => ({
    metadata: { uuid, time: '2026-01-01T12:00:00Z', name: 'send-sms', ip_address: '203.0.113.7' },
    user: { id: crypto.randomUUID(), phone: '' },
    sms: { otp: '482913', phone: digits },
  })

  async function post({ secret = '' }: AddedRelay, body: object, at = app.clock.now) {
    const text = JSON.stringify(body)
    const id = crypto.randomUUID()
    const signature = new Webhook(secret.slice('v1,'.length)).sign(id, new Date(at), text)
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at / 1000)),
      'webhook-signature': signature,
    }
    return app.request('POST', '/relay/supabase', { headers, body: text })
  }

  test('sends the code of the caller once for all repetitions', async () => {
    const relay = await addRelay(app, 'supabase')
    const request = call()
    const answers = [await post(relay, request), await post(relay, request)]
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, {}],
      [200, {}],
    ])
    const sent = await app.outbox(phone)
    expect(sent.map(({ text }) => text.includes('482913'))).toEqual([true])
  })

  test('has errors in a 200 that the caller does not repeat', async () => {
    const relay = await addRelay(app, 'supabase')
    for (let sent = 0; sent < 3; sent++) expect((await post(relay, call())).body).toEqual({})
    const fourth = await post(relay, call())
    expect([fourth.status, fourth.body.error.http_code]).toEqual([200, 429])
    expect(fourth.headers.has('retry-after')).toBe(false)
  })

  test('rejects a stale signature', async () => {
    const relay = await addRelay(app, 'supabase')
    const answer = await post(relay, call(), app.clock.now - 301_000)
    expect([answer.status, answer.body.error.message]).toEqual([401, expect.stringContaining('5 minutes')])
  })
})

describe('logto', () => {
  test('takes the language of the payload', async () => {
    const { secret } = await addRelay(app, 'logto')
    const answer = await app.request('POST', '/relay/logto', {
      headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
      body: JSON.stringify({ to: phone, type: 'SignIn', payload: { code: '4829', locale: 'de-DE' } }),
    })
    expect([answer.status, answer.body]).toEqual([200, {}])
    const [message] = await app.outbox(phone)
    expect(message?.text).toContain('4829')
    expect(message?.text).toContain('Code')
  })

  test('takes a Basic login', async () => {
    const { user, secret } = await addRelay(app, 'logto')
    const post = (authorization: string) =>
      app.request('POST', '/relay/logto', {
        headers: { authorization },
        body: JSON.stringify({ to: phone, type: 'SignIn', payload: { code: '482913' } }),
      })
    expect((await post(basic(user, secret))).status).toBe(200)
    expect((await post(basic(user, 'another'))).status).toBe(401)
    expect((await post(basic('other', secret))).status).toBe(401)
  })
})
