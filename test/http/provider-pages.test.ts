import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, type Visitor } from '../support/console.ts'
import { temporaryFolder } from '../support/folder.ts'

// The pages of the providers of SMS in the console.

const folder = temporaryFolder()
const key = 'key-of-the-gateway'
let app: TestApp
let visitor: Visitor
let calls = 0
const gateway = createServer((socket) => {
  calls++
  socket.destroy()
})

const message = { to: '447400123456', text: 'Hi' }
const request = { method: 'POST', url: 'https://gw.example/v1/a1/send' }
const settings = { GW_ACCOUNT: 'a1', GW_KEY: 'leftover-key', GW_FROM: 'ACME' }
const fields = { to: '+447400123456', text: 'Hi', from: 'ACME' }
const file = {
  provider: 'acme-sms',
  docs: 'https://gw.example/docs?a=1&b="><script>',
  settings: {
    GW_ACCOUNT: {},
    GW_KEY: { secret: true, meaning: '<b>The key</b>' },
    GW_FROM: {},
    GW_URL: { default: 'https://gw.example' },
  },
  from: 'GW_FROM',
  send: {
    method: 'POST',
    url: '{{GW_URL}}/v1/{{GW_ACCOUNT}}/send',
    basic: ['{{GW_ACCOUNT}}', '{{GW_KEY}}'],
    headers: { 'x-key': '{{GW_KEY}}' },
    form: { ...{ to: '{{to}}', text: '{{text}}', from: '{{from}}' }, ttl: '{{validitySeconds}}' },
  },
  template: { json: { id: '{{template.id}}', otp: '{{var.otp}}', ttl: '{{validitySeconds}}' } },
  accepted: { status: 200 },
  vectors: [
    {
      settings,
      message,
      request: { ...request, form: fields },
      answer: { status: 200, body: '<i>ok</i>' },
      outcome: 'accepted',
    },
    { settings, message, request: { ...request, form: fields }, answer: { status: 401 }, outcome: 'account' },
  ],
}

beforeAll(async () => {
  const listening = Promise.withResolvers<void>()
  gateway.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  const at = (name: string) => join(folder.path, name)
  writeFileSync(at('acme-sms.json'), JSON.stringify(file))
  writeFileSync(at('broken.json'), JSON.stringify({ ...file, provider: '<u>', extra: 1 }))
  const { port } = Object(gateway.address())
  const env = { GW_ACCOUNT: 'me', GW_KEY: key, GW_FROM: 'Shop', GW_URL: `http://127.0.0.1:${port}/base/` }
  app = await createTestApp({ ...env, PROVIDER_FILES: folder.path, SMS_PLAIN: 'acme-sms,outbox' })
  visitor = await signedIn(app)
})
afterAll(async () => {
  await app?.close()
  gateway.close()
  folder.remove()
})

/** The text of the element that a snippet is. */
function shownIn(html: string): string {
  const [, text = ''] = /The request<.*?<pre>(.*?)<\/pre>/s.exec(html) ?? []
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll('&#39;', "'")
}

test('the list has every provider with the variables that it needs, its source, its routes and its faults', async () => {
  expect((await visitor.get('/admin')).html).toContain('href="/admin/providers"')
  expect((await visitor.get('/admin/settings')).html).toContain('href="/admin/providers"')
  const { status, html } = await visitor.get('/admin/providers')
  expect(status).toBe(200)
  const rows = html.match(/<tr.*?<\/tr>/gs)?.map((row) =>
    row
      .replace(/<[^>]+>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  )
  expect(rows).toEqual(
    expect.arrayContaining([
      'twilio TWILIO_ACCOUNT_SID TWILIO_AUTH_TOKEN TWILIO_FROM built-in no 0',
      'plivo PLIVO_AUTH_ID PLIVO_AUTH_TOKEN PLIVO_FROM shipped no 0',
      'acme-sms GW_ACCOUNT GW_KEY GW_FROM file plain 0',
      'outbox none built-in plain 0',
    ]),
  )
  expect(rows?.find((row) => row.startsWith('broken'))).toMatch(/^broken none file no [1-9]/)
  expect(html).not.toContain('href="/admin/providers/twilio"')
})

test('a file with faults has all of them, as text', async () => {
  const { html } = await visitor.get('/admin/providers/broken')
  expect(html).toContain('extra is no key of the format')
  expect(html).toContain('provider must be a name')
  expect(html).not.toContain('<u>')
  expect(html).not.toContain('Try values')
})

test('a file has its settings, what it sends and its examples, without secrets', async () => {
  const { html } = await visitor.get('/admin/providers/acme-sms')
  for (const shown of [
    'GW_ACCOUNT',
    '<code>me</code>',
    'set, hidden',
    '{{GW_URL}}/v1/',
    '&lt;i>ok&lt;/i>',
    '&lt;b>The key',
  ])
    expect(html).toContain(shown)
  for (const hidden of [key, 'leftover-key', '<i>', '<b>The', '<script>']) expect(html).not.toContain(hidden)
  expect(html).toContain('href="/admin/test?provider=acme-sms"')
  const plivo = (await visitor.get('/admin/providers/plivo')).html
  expect(plivo).toMatch(/PLIVO_AUTH_TOKEN.*not set/s)
  expect(plivo).not.toContain('/admin/test?provider=plivo')
  for (const name of ['nothing', 'twilio%20', '..%2f..'])
    expect((await visitor.get(`/admin/providers/${name}`)).status).toBe(404)
})

const values = { to: '+44 7400 123456', text: 'A "b" & <i>\r\nünï', from: '', validitySeconds: '60' }
const none = { 'template.id': '', 'var.otp': '' }

test('entered values make the request that would be sent, and nothing is sent', async () => {
  await visitor.get('/admin/providers/acme-sms')
  const { status, html } = await visitor.post('/admin/providers/acme-sms/try', { ...values, ...none })
  expect(status).toBe(200)
  const { port } = Object(gateway.address())
  const body = 'to=%2B447400123456&text=A+%22b%22+%26+%3Ci%3E%0A%C3%BCn%C3%AF&from=Shop&ttl=60'
  expect(shownIn(html)).toBe(
    [
      'POST /base/v1/me/send HTTP/1.1',
      `host: 127.0.0.1:${port}`,
      'content-type: application/x-www-form-urlencoded',
      `authorization: Basic ${btoa('me:********')}`,
      'x-key: ********',
      `content-length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  )
  // The form has what was entered.
  expect(html).toContain('A &quot;b&quot; &amp; &lt;i>\nünï</textarea>')
  const login = btoa(`me:${key}`)
  for (const secret of [key, login]) expect(html).not.toContain(secret)
  const template = { ...values, 'template.id': '1107', 'var.otp': '123456', isTemplate: '1' }
  const registered = await visitor.post('/admin/providers/acme-sms/try', template)
  expect(shownIn(registered.html)).toEndWith('\r\n\r\n{"id":"1107","otp":"123456","ttl":60}')
  expect(calls).toBe(0)
  expect(JSON.stringify(app.lines)).not.toContain('7400')
})

test('settings that are not set have the value of an example, and long values are cut', async () => {
  await visitor.get('/admin/providers/plivo')
  const long = 'x'.repeat(3000)
  const { html } = await visitor.post('/admin/providers/plivo/try', {
    to: long,
    text: long,
    from: '',
    reportUrl: '',
  })
  expect(shownIn(html)).toStartWith('POST /v1/Account/MA1/Message/ HTTP/1.1\r\nhost: api.plivo.com\r\n')
  expect(shownIn(html)).toContain(`"text":"${'x'.repeat(2000)}"`)
  expect((await visitor.post('/admin/providers/plivo/try', { csrf: 'guessed' })).status).toBe(403)
  expect((await visitor.post('/admin/providers/nothing/try', {})).status).toBe(404)
})
