import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Attempt } from '../../src/domain/request/request-context.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { failed, overWebhook, taken, testRouting } from '../support/gateway.ts'
import {
  expectError,
  expectNotifyRow,
  expectRow,
  expectSuccess,
  freshEmail,
  freshPhone,
  logged,
} from '../support/rows.ts'
import {
  html,
  legacy,
  notifyBrands,
  placed,
  tables,
  template,
  templates,
  variablesOf,
  withVariable,
} from '../tables/notify.ts'

let app: TestApp

beforeAll(async () => {
  app = await createTestApp()
  for (const [slug, properties] of Object.entries(notifyBrands)) await app.brand(slug, properties)
})
afterAll(() => app.close())

for (const [table, rows] of Object.entries(tables)) {
  describe(`POST /notify: ${table}`, () => {
    for (const row of rows) {
      test(`${row.name} returns ${row.status} ${row.error ?? ''}`, async () => {
        expectNotifyRow(row, await app.post('/notify', row.body))
      })
    }
  })
}

describe('a rejected notification', () => {
  test('is sent to no recipient, even if only one of the recipients is invalid', async () => {
    const phone = freshPhone()
    const email = freshEmail()
    await app.post('/notify', { ...legacy, to: [phone, 'call me'] })
    await app.post('/notify', { ...html, to: [email, 'nobody'] })
    expect(await app.outbox(phone)).toHaveLength(0)
    expect(await app.outbox(email)).toHaveLength(0)
  })
})

describe('an SMS', () => {
  test('has the message unchanged, for each recipient as digits (rule 10)', async () => {
    const [first, second] = [freshPhone(), freshPhone()]
    const message = 'Caf\u00e9 \ud83d\ude80 {{name}} <b>&amp;</b>'
    const answer = await app.post('/notify', { ...legacy, message, to: [`+${first}`, ` ${second} `] })
    expectRow('/notify', { status: 200, error: null }, answer)
    for (const phone of [first, second]) {
      const messages = await app.outbox(phone)
      expect(messages).toHaveLength(1)
      expect(messages[0]).toMatchObject({
        channel: 'SMS',
        to: phone,
        text: message,
        route: 'plain',
        brandId: 'store',
        requestId: answer.body.requestId,
      })
    }
  })

  test('is sent once to recipients that are equal after normalization (D30)', async () => {
    const [first, second] = [freshPhone(), freshPhone()]
    const to = [`+${first}`, first, ` ${second} `, second, ...Array(96).fill(first)]
    const answer = await app.post('/notify', { ...legacy, to })
    expectRow('/notify', { status: 200, error: null }, answer)
    for (const phone of [first, second]) expect(await app.outbox(phone)).toHaveLength(1)
    const { trace, deliveries } = await app.eventsOf(answer)
    expect(trace?.recipients).toBe(2)
    expect(deliveries.map(({ position }) => position).sort()).toEqual([1, 3])
  })

  test('is sent once to a single recipient given twice, and the response has no recipients list (D30)', async () => {
    const phone = freshPhone()
    const answer = await app.post('/notify', { ...legacy, to: [phone, `+${phone}`] })
    expect(await app.outbox(phone)).toHaveLength(1)
    const { trace, deliveries } = await app.eventsOf(answer)
    expect(trace).toMatchObject({ recipients: 1, recipient: deliveries[0]?.recipient })
    expect(deliveries.map(({ position }) => position)).toEqual([null])
  })

  test('is not restricted by the phone limits of OTP sends', async () => {
    const phone = freshPhone()
    for (let count = 0; count < 5; count++) {
      expectSuccess(await app.post('/notify', { ...legacy, to: [phone] }), ['channel'])
    }
    expect(await app.outbox(phone)).toHaveLength(5)
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
  })

  test('is sent to a phone in national format with PHONE_DEFAULT_REGION (D5)', async () => {
    const indian = await createTestApp({ PHONE_DEFAULT_REGION: 'IN' })
    const answer = await indian.post('/notify', { ...legacy, brandId: 'acme', to: ['098765 43210'] })
    expectSuccess(answer, ['channel'])
    expect((await indian.outbox()).at(-1)?.to).toBe('919876543210')
    await indian.close()
  })

  for (const templateKey of templates) {
    test(`of ${templateKey} has the order and the brand's name`, async () => {
      const phone = freshPhone()
      await app.post('/notify', { ...placed, to: [phone], templateKey, variables: variablesOf[templateKey] })
      const text = (await app.outbox(phone)).at(-1)?.text
      expect(text).toContain('Jane')
      expect(text).toContain('A-1')
      expect(text).toContain('The Store')
      expect(text).not.toMatch(/[{}]|undefined/)
    })
  }

  test('has variables unchanged, and does not expand placeholders in them', async () => {
    const phone = freshPhone()
    const customerName = '{{orderId}} $& $1 {orderId}'
    await app.post('/notify', { ...withVariable('customerName', customerName), to: [phone] })
    expect((await app.outbox(phone)).at(-1)?.text).toContain(customerName)
  })
})

describe('an e-mail', () => {
  async function mailed(fields: Readonly<Record<string, unknown>>) {
    const email = freshEmail()
    expectSuccess(await app.post('/notify', { ...fields, to: [email] }), ['channel'])
    const messages = await app.outbox(email)
    expect(messages).toHaveLength(1)
    return messages[0]
  }

  test('has the given HTML unchanged', async () => {
    const source = '<h1>Sale</h1><p>50&nbsp;% &amp; more {{name}}</p>'
    const mail = await mailed({ ...html, html: source })
    expect(mail).toMatchObject({ channel: 'EMAIL', subject: 'News', html: source })
  })

  test('has a plain-text part beside its HTML', async () => {
    const mail = await mailed({ ...html, html: '<h1>Sale</h1><p>Fish &amp; chips</p>' })
    expect(mail?.text).toMatch(/sale/i)
    expect(mail?.text).toContain('Fish & chips')
    expect(mail?.text).not.toContain('<p>')
  })

  test('from a template has the subject as heading, and the text', async () => {
    const mail = await mailed({ ...template, subject: 'Fish & <chips>', template: 'Fresh < frozen' })
    expect(mail?.subject).toBe('Fish & <chips>')
    expect(mail?.html).toMatch(/<h[1-6][^>]*>\s*Fish &amp; &lt;chips&gt;\s*<\/h[1-6]>/)
    expect(mail?.html).toContain('Fresh &lt; frozen')
    expect(mail?.text).toContain('Fresh < frozen')
  })

  test('from a template has data in its placeholders, HTML-escaped', async () => {
    const mail = await mailed({
      ...template,
      template: 'Dear {{name}}, again {{name}}: {{count}}',
      data: { name: '<img src=x onerror="alert(1)"> & Co', count: 3 },
    })
    const escaped = '&lt;img src=x onerror=&quot;alert(1)&quot;&gt; &amp; Co'
    expect(mail?.html).toContain(`Dear ${escaped}, again ${escaped}: 3`)
    expect(mail?.html).not.toContain('<img')
    expect(mail?.text).toContain('Dear <img src=x onerror="alert(1)"> & Co')
  })

  test('from a template never interprets data as a placeholder or a pattern', async () => {
    const mail = await mailed({ ...template, template: '{{a}} {{b}}', data: { a: '{{b}}', b: '$& $1 $$' } })
    expect(mail?.html).toContain('{{b}} $&amp; $1 $$')
  })

  test('from a template has a table of the data no placeholder used, HTML-escaped', async () => {
    const mail = await mailed({
      ...template,
      template: 'Dear {{name}}',
      data: { name: 'Used Once', 'order <id>': 'A&1', total: 12.5 },
    })
    const rest = mail?.html ?? ''
    expect(rest).toMatch(/<table/)
    expect(rest).toContain('order &lt;id&gt;')
    expect(rest).toContain('A&amp;1')
    expect(rest).toContain('12.5')
    expect(rest.split('Used Once')).toHaveLength(2)
  })

  test('is sent once to recipients that are equal after normalization (D30)', async () => {
    const email = freshEmail()
    const to = [email, email.toUpperCase(), ` ${email}`]
    expectSuccess(await app.post('/notify', { ...html, to }), ['channel'])
    expect(await app.outbox(email)).toHaveLength(1)
  })

  test('is sent to each recipient separately, so that none sees another (rule 10)', async () => {
    const [first, second] = [freshEmail(), freshEmail()]
    expectSuccess(await app.post('/notify', { ...html, to: [first, second] }), ['channel'])
    for (const email of [first, second]) {
      expect((await app.outbox(email)).map((mail) => mail.to)).toEqual([email])
    }
  })
})

describe('through the webhook provider', () => {
  const gateway = overWebhook({
    store: { displayName: 'The Store', notifyTemplates: [...templates] },
    dlt: { displayName: 'Dlt', dltEnabled: true, notifyTemplates: [...templates] },
  })
  const { receiver, start } = gateway

  const ofDlt = { ...placed, brandId: 'dlt' }
  const legacyOfDlt = { ...legacy, brandId: 'dlt' }
  testRouting('/notify', gateway, [
    ['plain', 'DLT template', ofDlt, '', 'plain', '200'],
    ['template', 'other template', placed, '', 'plain', '200'],
    ['template', 'DLT template', ofDlt, '', 'template', '200'],
    ['template', 'DLT template, which fails', ofDlt, 'template', 'template', '500 notification_failed'],
    ['template', 'DLT legacy text', legacyOfDlt, '', 'plain', '200'],
    ['hybrid', 'DLT template', ofDlt, '', 'template', '200'],
    ['hybrid', 'DLT template, which fails', ofDlt, 'template', 'template plain', '200'],
    [
      'hybrid',
      'DLT template, both fail',
      ofDlt,
      'template plain',
      'template plain',
      '500 notification_failed',
    ],
    ['hybrid', 'DLT legacy text, which fails', legacyOfDlt, 'plain', 'plain', '500 notification_failed'],
  ])

  test("the template route sends the template key and variables, including the brand's name", async () => {
    const webhook = await start({ OTP_SMS_MODE: 'template' }, taken)
    await webhook.post('/notify', { ...placed, brandId: 'dlt', to: ['+91 98123 40001'] })
    expect(receiver.received[0]?.body).toMatchObject({
      to: '919812340001',
      route: 'template',
      templateKey: 'ORDER_PLACED',
      variables: { ...variablesOf.ORDER_PLACED, businessName: 'Dlt' },
      brandId: 'dlt',
    })
  })

  test('a failure names the channel and no detail of the provider (rule 11)', async () => {
    const webhook = await start({}, failed)
    const answer = await webhook.post('/notify', legacy)
    expectError(answer, 500, 'notification_failed')
    expect(answer.body.channel).toBe('SMS')
    expect(JSON.stringify(answer.body)).not.toMatch(/secret of the gateway|127\.0\.0\.1|webhook|HTTP 500/)
  })

  test('all of several recipients are tried, and failures are reported (D12)', async () => {
    const phones = ['919812340001', '919812340002', '919812340003', '919812340004', '919812340005']
    const failing = ['919812340001', '919812340003']
    const webhook = await start({}, ({ body }) => (failing.includes(body.to) ? failed() : taken()))
    const answer = await webhook.post('/notify', { ...legacy, to: phones })
    expectError(answer, 500, 'notification_failed')
    expect(answer.body.message).toMatch(/\b2\b.*\b5\b/)
    expect(receiver.received.map(({ body }) => body.to).sort()).toEqual(phones)
    expect(new Set(receiver.received.map(({ body }) => body.id)).size).toBe(phones.length)
    await logged()
    const line = webhook.lines.find(
      (fields) => 'requestId' in fields && fields.requestId === answer.body.requestId,
    )
    const attempts = (line as { attempts?: readonly Attempt[] } | undefined)?.attempts ?? []
    const told = attempts.map(({ recipient, outcome }) => `${recipient} ${outcome}`).sort()
    expect(told).toEqual([
      '91********01 unknown',
      '91********02 accepted',
      '91********03 unknown',
      '91********04 accepted',
      '91********05 accepted',
    ])
  })

  test('several recipients, all accepted, return 200', async () => {
    const phones = Array.from({ length: 20 }, (_, index) => `155501000${10 + index}`)
    const webhook = await start({}, taken)
    expectSuccess(await webhook.post('/notify', { ...legacy, to: phones }), ['channel'])
    expect(receiver.received.map(({ body }) => body.to).sort()).toEqual(phones)
  })

  test('a time-out is a failure for the caller and unknown in the delivery log (D26)', async () => {
    const webhook = await start({ PROVIDER_TIMEOUT_MS: '1000' }, () => new Promise<Response>(() => {}))
    const answer = await webhook.post('/notify', legacy)
    expectError(answer, 500, 'notification_failed')
    await logged()
    const line = webhook.lines.find(
      (fields) => 'requestId' in fields && fields.requestId === answer.body.requestId,
    )
    const attempts = (line as { attempts?: readonly { outcome: string }[] } | undefined)?.attempts
    expect(attempts?.map(({ outcome }) => outcome)).toEqual(['unknown'])
  })
})

test('an unreachable mail server returns 500 notification_failed for channel EMAIL', async () => {
  // Port 1 refuses connections.
  const unreachable = await createTestApp({
    SMTP_URL: 'smtp://user:hush-hush@127.0.0.1:1',
    MAIL_FROM: 'a@example.com',
  })
  const answer = await unreachable.post('/notify', html)
  expectError(answer, 500, 'notification_failed')
  expect(answer.body.channel).toBe('EMAIL')
  expect(JSON.stringify(answer.body)).not.toMatch(/hush|127\.0\.0\.1|ECONNREFUSED/)
  await unreachable.close()
})
