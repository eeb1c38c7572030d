import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { codeIn, createTestApp, type TestApp } from '../support/app.ts'

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
