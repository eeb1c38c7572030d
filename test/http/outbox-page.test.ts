import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { reportAfterMs } from '../../src/adapters/sms/outbox.ts'
import { magicNumbers } from '../../src/domain/delivery/magic-numbers.ts'
import { codeIn, createTestApp, type TestApp } from '../support/app.ts'
import { operate } from '../support/operator.ts'

// Server-rendered HTML of /outbox. Its script is tested in a browser.

let app: TestApp
const phone = '12025550143'

const page = async (query = '') => {
  const { status, headers, body } = await app.get(`/outbox${query}`)
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('content-security-policy')).toContain("script-src 'self'")
  return String(body)
}
const recipients = (html: string) => [...html.matchAll(/data-to="([^"]*)"/g)].map(([, to]) => to)
const ids = (html: string) => [...html.matchAll(/data-id="(\d+)"/g)].map(([, id]) => Number(id))
const mark = (html: string) => /<mark>([^<]*)<\/mark>/.exec(html)?.[1]

beforeAll(async () => {
  app = await createTestApp({ PUBLIC_URL: 'https://otp.example.com', SMS_COOLDOWN_SECONDS: '0' })
})
afterAll(() => app.close())

test('an empty outbox shows a command that sends a first code', async () => {
  const html = await page()
  expect(html).toContain('No messages yet')
  expect(html).toContain('https://otp.example.com/otp/send')
  expect(html).toContain('otpost app issue APPID')
  expect(recipients(html)).toEqual([])
})

describe('an outbox with messages', () => {
  beforeAll(async () => {
    await app.post('/otp/send', { phone: `+${phone}` })
    await app.post('/notify', {
      channel: 'SMS',
      brandId: 'acme',
      to: [phone],
      message: 'Order 123456-A is <b>ready</b>.',
    })
    await app.post('/notify', {
      channel: 'EMAIL',
      to: ['Pat@example.com'],
      subject: 'Opening hours',
      html: '<h1>We open at nine</h1>',
    })
  })

  test('lists recipients, the latest first, and shows the latest message', async () => {
    const html = await page()
    expect(recipients(html)).toEqual(['pat@example.com', phone])
    expect(html).toContain('data-view="list"')
    expect(html).toContain('data-shown="pat@example.com"')
    const [id] = ids(html)
    expect(html).toContain('<iframe sandbox loading="lazy" referrerpolicy="no-referrer"')
    expect(html).toContain(`src="/outbox/messages/${id}/html"`)
    expect(html).toContain('data-last="3"')
  })

  test.each([['12025550143'], ['+1 (202) 555-0143']])(
    'shows the messages of the recipient in ?to=%s',
    async (to) => {
      const html = await page(`?to=${encodeURIComponent(to)}`)
      expect(html).toContain('data-view="messages"')
      expect(html).toContain(`data-shown="${phone}"`)
      const [sms, other] = await app.outbox(phone)
      expect(ids(html)).toEqual([sms?.id ?? 0, other?.id ?? 0])
      expect(mark(html)).toBe(codeIn(sms?.text))
      expect(html).toContain('Order 123456-A is &lt;b>ready&lt;/b>.')
      expect(html.match(/<h3 class="sender">/g)).toHaveLength(1)
      expect(html).toContain('plain · 31 characters')
    },
  )

  test('shows an empty page for a recipient without messages and for invalid text', async () => {
    for (const to of ['+1 202 555 0199', '<script>']) {
      const html = await page(`?to=${encodeURIComponent(to)}`)
      expect(html).toContain('No messages for this recipient')
      expect(html).not.toContain('<script>')
      expect(ids(html)).toEqual([])
    }
  })
})

describe('a magic number', () => {
  /** Makes what the outbox does after 10 s happen at once. */
  const reports: (() => unknown)[] = []
  let timers: ReturnType<typeof spyOn> | undefined
  const catchTimers = () => {
    const real = globalThis.setTimeout
    timers = spyOn(globalThis, 'setTimeout').mockImplementation(((
      act: () => unknown,
      ms?: number,
      ...args: unknown[]
    ) => {
      if (ms !== reportAfterMs) return real(act, ms, ...args)
      reports.push(act)
      return real(() => {}, 0)
    }) as typeof setTimeout)
  }
  afterEach(() => {
    timers?.mockRestore()
    reports.length = 0
  })

  test.each([
    ['15005550001', 502, 'rejected', null, 0],
    ['15005550002', 502, 'retryable', null, 0],
    ['15005550003', 502, 'unknown', null, 1],
    ['15005550004', 200, 'accepted', 'delivered', 1],
    ['15005550005', 200, 'accepted', 'failed', 1],
  ] as const)('%s answers %p, and its attempt is %s', async (to, status, outcome, report, messages) => {
    catchTimers()
    const answer = await app.post('/otp/send', { phone: `+${to}` })
    expect(answer.status).toBe(status)
    expect(await app.outbox(to)).toHaveLength(messages)
    await Promise.all(reports.map((act) => act()))
    const [delivery] = (await app.eventsOf(answer)).deliveries
    expect([delivery?.outcome, delivery?.report?.status ?? null]).toEqual([outcome, report])
  })

  test('is on the page', async () => {
    const html = await page()
    for (const { means } of Object.values(magicNumbers)) expect(html).toContain(means)
  })
})

describe('each message', () => {
  test('has its segments, its request, and whether a later code replaced it', async () => {
    const to = '12025550166'
    const first = await app.post('/otp/send', { phone: `+${to}` })
    await app.post('/otp/resend', { phone: `+${to}` })
    const html = await page(`?to=${to}`)
    expect(html.match(/replaced by a later code/g)).toHaveLength(1)
    expect(html).toContain('1 segment (GSM-7)')
    expect(html).toContain(`/admin/deliveries/${first.body.requestId}`)
    expect(html).toMatch(new RegExp(`data-search="[^"]*${first.body.requestId}`))
    expect(html).not.toContain('EUR')
  })

  test('has its price, if prices are imported', async () => {
    await operate(app, 'price import', { prices: 'prefix,currency,price\n1,EUR,0.04' })
    expect(await page('?to=12025550166')).toContain('0.04 EUR')
  })

  test('of e-mail has its source', async () => {
    await app.post('/otp/send', { channel: 'EMAIL', email: 'ada@example.com' })
    const [mail] = await app.outbox('ada@example.com')
    const { status, headers, body } = await app.get(`/outbox/messages/${mail?.id}/raw`)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(body).toContain('To: ada@example.com')
    expect(body).toContain('Content-Type: multipart/alternative')
    expect((await app.get('/outbox/messages/999999/raw')).status).toBe(404)
  })
})

test('all messages are deleted by the form of the page alone', async () => {
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const clear = (headers: Record<string, string>) =>
    app.request('POST', '/outbox/clear', { headers: { ...type, ...headers }, body: '' })
  expect((await clear({ 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await clear({ origin: 'https://evil.example', cookie: 'a=b' })).status).toBe(403)
  expect((await app.outbox()).length).toBeGreaterThan(0)
  const cleared = await clear({ 'sec-fetch-site': 'same-origin' })
  expect([cleared.status, cleared.headers.get('location')]).toEqual([303, '/outbox'])
  expect(await app.outbox()).toEqual([])
})
