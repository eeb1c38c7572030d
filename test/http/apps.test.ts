import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { createProgram } from '../../src/commands/program.ts'
import { createTestApp, credentials, type TestApp } from '../support/app.ts'
import { signedIn, type Visitor } from '../support/console.ts'
import { operate } from '../support/operator.ts'
import { policyOf } from '../support/policy.ts'
import { startReceiver } from '../support/receiver.ts'

// Apps and their webhooks, as operators see them.

const textOf = (html: string) => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')

let app: TestApp
let visitor: Visitor

beforeEach(async () => {
  app = await createTestApp({ PUBLIC_URL: 'http://localhost:3000', PORT: '0', TRUSTED_PROXIES: '127.0.0.1' })
  visitor = await signedIn(app)
})
afterEach(() => app.close())

/** What a command prints. */
async function printed(...words: readonly string[]): Promise<string> {
  const lines: string[] = []
  const write = (text: string | Uint8Array) => lines.push(String(text)) > 0
  const spy = spyOn(process.stdout, 'write').mockImplementation(write)
  try {
    await createProgram(app.database.env).parseAsync(['bun', 'otpost', ...words])
  } finally {
    spy.mockRestore()
  }
  return lines.join('')
}

async function settle(): Promise<void> {
  app.app.events.tick()
  await app.app.events.idle()
}

describe('a webhook whose receiver fails', () => {
  test('is not on: it says since when, with which answer, and one form sends all events when the receiver is repaired', async () => {
    const receiver = startReceiver(() => new Response('no queue for ada@example.com', { status: 503 }))
    await policyOf(app).webhook(receiver.url)
    for (let index = 0; index < 5; index++) await operate(app, 'app webhook-test', { appId: 'shop' })
    await settle()
    const apps = await visitor.get('/admin/apps')
    expect(textOf(apps.html)).toContain('failing')
    expect(apps.html).not.toContain('>on<')
    const page = await visitor.get('/admin/apps/webhook?app=shop')
    const text = textOf(page.html)
    for (const words of [
      'failing',
      '5 events will be tried again, the oldest',
      'HTTP 503',
      'no queue for [hidden]',
      'Send all failed events now',
    ])
      expect(text).toContain(words)
    expect(page.html).not.toContain('ada@example.com')
    const [row] = JSON.parse(await printed('app', 'list', '--json'))
    expect(row.webhook).toMatchObject({
      state: 'failing',
      failing: { events: 5, error: 'HTTP 503', answer: 'no queue for [hidden]' },
    })
    expect(await printed('app', 'list')).toContain('failing: 5 events, HTTP 503')

    receiver.answer(() => new Response(null, { status: 204 }))
    const sent = await visitor.post('/admin/apps/webhook/resend-all', { appId: 'shop' })
    expect(sent.status).toBe(303)
    await settle()
    expect(receiver.received.length).toBe(10)
    const after = await visitor.get('/admin/apps/webhook?app=shop')
    expect(textOf(after.html)).not.toContain('failing')
    expect((await visitor.get('/admin/apps')).html).toContain('>on<')
    const again = await visitor.post('/admin/apps/webhook/resend-all', { appId: 'shop' })
    expect([again.status, again.html.includes('No event of shop has failed')]).toEqual([409, true])
    receiver.stop()
  })

  test('that is switched off is set again before its events are sent', async () => {
    const receiver = startReceiver(() => new Response('gone', { status: 410 }))
    await policyOf(app).webhook(receiver.url)
    await operate(app, 'app webhook-test', { appId: 'shop' })
    await settle()
    const text = textOf((await visitor.get('/admin/apps/webhook?app=shop')).html)
    expect(text).toContain('switched off')
    expect(text).toContain('gone')
    expect(text).not.toContain('Send all failed events now')
    await expect(operate(app, 'app webhook-resend-all', { appId: 'shop' })).rejects.toThrow('switched off')
    receiver.stop()
  })
})

describe('the apps', () => {
  test('show what they sent, how near they are to their limit, and from which network their key was last used', async () => {
    await operate(app, 'app set', { appId: 'shop', perMinute: '4' })
    const { secret = '' } = await operate(app, 'app issue', { appId: 'till', perMinute: '3' })
    const url = app.app.listen()
    const call = async (path: string, body: object) => {
      const response = await fetch(new URL(path, url), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.77' },
        body: JSON.stringify({ appId: 'till', apiKey: secret, brandId: 'acme', ...body }),
      })
      await response.json()
      return response.status
    }
    const phone = '+12025550143'
    expect(await call('/otp/send', { phone })).toBe(200)
    const otp = await app.lastCode(phone)
    expect(await call('/otp/verify', { phone, otp })).toBe(200)
    expect(await call('/otp/send', { phone: '12' })).toBe(400)
    expect(await call('/otp/send', { phone: '+12025550144' })).toBe(429)
    // The event log gets a request in the turn after the answer.
    await new Promise((resolve) => setImmediate(resolve))
    const { html } = await visitor.get('/admin/apps')
    const [, row = ''] = /<tr data-key="till">(.*?)<\/tr>/s.exec(html) ?? []
    expect(textOf(row)).toContain('till 1 1 0 3 of 3 1 call rejected just now 203.0.113.0/24')
    const page = textOf((await visitor.get('/admin/apps/app?app=till')).html)
    for (const words of ['Most calls of a minute 3 of 3', 'Rejected by the limit 1', '203.0.113.0/24'])
      expect(page).toContain(words)
    expect(page).not.toContain('203.0.113.77')
  })

  test('a leaked key is found by pasting it, and is neither shown, stored nor logged', async () => {
    const { secret = '' } = await operate(app, 'app issue', { appId: 'till' })
    const find = async (q: string) => {
      const { html, headers } = await visitor.post('/admin/search', { q })
      return { html, text: textOf(html), location: headers.get('location') }
    }
    const other = `otp_live_${'x'.repeat(43)}`
    for (const pasted of [secret, `Authorization: Bearer ${secret}\n`]) {
      const { html, text, location } = await find(pasted)
      expect(`${html} ${location}`).not.toContain(secret)
      expect(text).toContain('API key of app till')
      expect(html).toContain('href="/admin/apps/app?app=till"')
    }
    expect((await find(secret.slice(-4))).location).toBe('/admin/apps/app?app=till')
    expect((await find(credentials.apiKey)).text).toContain('API key of app shop')
    const unknown = await find(other)
    expect(unknown.text).toContain('No app has this API key.')
    expect(`${unknown.html} ${unknown.location}`).not.toContain(other)
    await operate(app, 'app revoke', { appId: 'till' })
    expect((await find(secret)).text).toContain('Revoked API key of app till')
    expect(JSON.stringify(app.lines)).not.toContain(secret)
  })
})

test('the approval of an integration request sets calls per minute, countries and a budget, and warns of a name like that of a brand', async () => {
  const asked = {
    companyName: 'Acrne Ltd',
    contactName: 'Ada',
    contactEmail: 'ada@example.com',
    brandName: 'Acrne',
  }
  const { integrationRequestId: id } = (await app.postRaw('/integrations/requests', asked)).body
  await app.brand('acme', { displayName: 'Acme' })
  const page = await visitor.get(`/admin/requests/${id}`)
  expect(textOf(page.html)).toContain('The name looks like that of the brand acme (Acme).')
  const form = {
    appId: 'acrne',
    brandSlug: 'acrne',
    perMinute: '60',
    countries: 'GB DE',
    budget: '20.50',
    period: 'day',
  }
  const path = `/admin/requests/${id}/approve`
  const wrong = await visitor.post(path, { ...form, countries: 'Wales' })
  expect([wrong.status, wrong.html.includes('WALES is none')]).toEqual([409, true])
  expect(wrong.html).toContain('value="20.50"')
  expect((await visitor.post(path, form)).status).toBe(200)
  const { scopes, rules, budgets } = await app.app.context.policy.rows()
  expect(scopes).toMatchObject([{ appId: 'acrne', brands: ['acrne'], perMinute: 60 }])
  expect(rules.map(({ rule, action, brandSlug }) => `${brandSlug} ${rule} ${action}`).sort()).toEqual([
    'acrne * block',
    'acrne DE allow',
    'acrne GB allow',
  ])
  expect(budgets).toMatchObject([
    { scope: 'app:acrne', amountMicros: 20_500_000, period: 'day', stops: true },
  ])
})

test('the page of a key names the only active brand that the app can use', async () => {
  const { html } = await visitor.post('/admin/apps/issue', { appId: 'first' })
  expect(html).toContain('&quot;brandId&quot;:&quot;acme&quot;')
  expect(html).not.toContain('Replace BRAND')
  await app.brand('globex')
  expect((await visitor.post('/admin/apps/issue', { appId: 'second' })).html).toContain('Replace BRAND')
})
