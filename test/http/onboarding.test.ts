import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, Visitor } from '../support/console.ts'
import { migratedTestDatabase, type TestDatabase } from '../support/database.ts'
import { startReceiver } from '../support/receiver.ts'
import { startSmtp } from '../support/smtp.ts'

let database: TestDatabase
let smtp: Awaited<ReturnType<typeof startSmtp>>
let receiver: ReturnType<typeof startReceiver>
let api: TestApp

beforeEach(async () => {
  database = await migratedTestDatabase()
  smtp = await startSmtp()
  receiver = startReceiver()
  api = await started()
})
afterEach(async () => {
  await api.close()
  await Promise.all([smtp.stop(), receiver.stop(), database.remove()])
})

/** A server over the same database. */
const started = () =>
  createTestApp({
    ...database.env,
    SMTP_URL: smtp.url,
    MAIL_FROM: 'otpost@example.com',
    PUBLIC_URL: 'https://otp.example.com',
    ALERT_EMAIL: 'ops@example.com',
    ALERT_WEBHOOK_URL: receiver.url,
    ALERT_WEBHOOK_SECRET: receiver.secret,
  })

async function asked(companyName: string): Promise<string> {
  const contact = { contactName: 'Jo Doe', contactEmail: 'jo@globex.example' }
  const { body } = await api.postRaw('/integrations/requests', {
    companyName,
    brandName: 'Globex',
    ...contact,
  })
  return body.integrationRequestId
}

async function alerted(): Promise<void> {
  api.app.alerts.tick()
  await api.app.alerts.idle()
}

const subjects = () => smtp.received.map(({ mail }) => mail.subject)

describe('an integration request', () => {
  test('is mailed to ALERT_EMAIL and posted to ALERT_WEBHOOK_URL, with the names as they were entered, and a fixed subject', async () => {
    const companyName = `Acme <img src=x> & "Söhne" {{otp}}`
    const integrationRequestId = await asked(companyName)
    await alerted()
    const [{ mail, to } = expect.unreachable()] = smtp.received
    expect(to).toEqual(['ops@example.com'])
    expect(mail.subject).toBe('A new integration request is pending')
    expect(mail.text).toContain(`Request 1: ${companyName}, brand Globex`)
    expect(mail.html).toContain('Acme &lt;img src=x&gt; &amp;')
    expect(mail.html).not.toContain('<img')
    expect(mail.text).toContain('https://otp.example.com/admin/requests')
    const [call = expect.unreachable()] = receiver.received
    expect(call.body).toEqual({
      type: 'integration.requested',
      timestamp: '2026-01-01T12:00:00.000Z',
      data: {
        pending: 1,
        url: 'https://otp.example.com/admin/requests',
        requests: [
          { integrationRequestId, receivedAt: '2026-01-01T12:00:00.000Z', companyName, brandName: 'Globex' },
        ],
      },
    })
    const id = call.headers.get('webhook-id') ?? ''
    const sentAt = new Date(Number(call.headers.get('webhook-timestamp')) * 1000)
    expect(call.headers.get('webhook-signature')).toBe(
      new Webhook(receiver.secret).sign(id, sentAt, call.raw),
    )
    for (const text of [mail.text, mail.html, call.raw, JSON.stringify(api.lines)])
      expect(text).not.toContain('jo@globex.example')
  })

  test('is in one alert with the others of 10 minutes', async () => {
    for (const name of ['Globex', 'Acme', 'Initech', 'Hooli']) {
      await asked(name)
      api.advance(60)
      await alerted()
    }
    expect(subjects()).toEqual(['A new integration request is pending'])
    api.advance(6 * 60)
    await alerted()
    expect(subjects().slice(1)).toEqual(['4 integration requests are pending'])
    api.advance(3600)
    await alerted()
    expect(receiver.received.map(({ body }) => body.data.pending)).toEqual([1, 4])
  })

  test('is alerted by another server after the first one ended before it could', async () => {
    smtp.refuse({ at: 'DATA', code: 451, message: 'later' })
    await asked('Globex')
    await alerted()
    const { now } = api.clock
    await api.close()
    smtp.refuse(undefined)
    api = await started()
    api.clock.now = now
    api.advance(60)
    await alerted()
    expect(subjects()).toEqual(['A new integration request is pending'])
    expect(receiver.received).toHaveLength(1)
  })
})

describe('a decision in the console', () => {
  let visitor: Visitor
  let id: string
  const path = () => `/admin/requests/${id}`
  const decided = { appId: 'till', brandSlug: 'globex' }
  const mails = () => smtp.received.filter(({ to }) => to.includes('jo@globex.example'))
  const audited = async () =>
    (await api.app.context.audit.list({ target: id, limit: 10 })).map(({ action, details }) => [
      action,
      details,
    ])

  beforeEach(async () => {
    id = await asked('Globex {{url}} Ltd')
    await alerted()
    visitor = new Visitor(api)
    await visitor.get('/admin/login')
    await signedIn(api, visitor)
  })

  /** The fields of a form as the page shows them. */
  async function shown(form: 'approve' | 'reject' | 'mail'): Promise<Record<string, string>> {
    const { html } = await visitor.get(path())
    const fields: Record<string, string> = {}
    let name = ''
    await new HTMLRewriter()
      .on(`form[action$="/${form}"] input`, {
        element: (input) => {
          const isOn = input.getAttribute('type') !== 'checkbox' || input.hasAttribute('checked')
          if (isOn) fields[input.getAttribute('name') ?? ''] = input.getAttribute('value') ?? ''
        },
      })
      .on(`form[action$="/${form}"] textarea`, {
        element: (textarea) => {
          name = textarea.getAttribute('name') ?? ''
          fields[name] = ''
        },
        text: ({ text }) => {
          fields[name] += text
        },
      })
      .transform(new Response(html))
      .text()
    return fields
  }

  test('mails the requester the text of the form, with the app and the brand and without the key', async () => {
    const form = await shown('approve')
    expect(form).toMatchObject({ mail: '1', subject: 'Your integration request for Globex is approved' })
    expect(form.text).toContain('Hello Jo Doe,')
    const { status, html } = await visitor.post(`${path()}/approve`, {
      ...form,
      ...decided,
      text: `${form.text}\n\n<b>See you</b>, {{companyName}}`,
    })
    expect([status, html]).toEqual([200, expect.stringContaining('Sent the e-mail to the requester.')])
    const [{ mail, raw } = expect.unreachable(), ...others] = mails()
    expect(others).toEqual([])
    expect(mail.subject).toBe('Your integration request for Globex is approved')
    expect(mail.text).toContain('Server: https://otp.example.com\nApp ID: till\nBrand ID: globex\n')
    expect(mail.text).toContain('<b>See you</b>, Globex {{url}} Ltd')
    expect(mail.html).toContain('&lt;b&gt;See you&lt;/b&gt;')
    const key = /otp_live_\w+/.exec(html)?.[0] ?? ''
    expect(key).toHaveLength(58)
    expect(raw).not.toContain(key.slice(-10))
    expect(await audited()).toEqual([
      ['request.mailed', { provider: 'smtp' }],
      ['request.mail', {}],
      ['request.approved', expect.objectContaining({ app: 'till', brand: 'globex' })],
    ])
    expect(JSON.stringify(api.lines)).not.toContain('jo@globex.example')
  })

  test('sends nothing unless the box is checked, and a rejection has the text but not the reason', async () => {
    const { mail: _, ...form } = await shown('reject')
    expect(_).toBeUndefined()
    expect((await visitor.post(`${path()}/reject`, { ...form, reason: 'spam?' })).status).toBe(303)
    expect(mails()).toEqual([])
    const again = await shown('mail')
    expect((await visitor.post(`${path()}/mail`, again)).status).toBe(303)
    expect(mails().map(({ mail }) => mail.subject)).toEqual(['Your integration request for Globex'])
    expect(mails()[0]?.mail.text).not.toContain('spam?')
    expect((await visitor.get('/admin/audit')).html).toContain('spam?')
  })

  test('is stored if the e-mail fails; the page says so, and the e-mail can be sent again', async () => {
    smtp.refuse({ at: 'RCPT', code: 550, message: 'no such user' })
    const approved = await visitor.post(`${path()}/approve`, { ...(await shown('approve')), ...decided })
    expect(approved.html).toMatch(/otp_live_\w{49}/)
    expect(approved.html).toContain('The e-mail was not sent: SMTP 550. You can send it again.')
    expect((await api.app.context.requests.get(id))?.status).toBe('approved')
    expect((await audited())[0]).toEqual(['request.mail-failed', { reason: 'SMTP 550' }])
    const failed = await visitor.post(`${path()}/mail`, { ...(await shown('mail')), text: 'Hi {{appId}}' })
    expect([failed.status, failed.html]).toEqual([409, expect.stringContaining('Hi {{appId}}')])
    smtp.refuse(undefined)
    expect((await visitor.post(`${path()}/mail`, await shown('mail'))).status).toBe(303)
    expect(mails()).toHaveLength(1)
    expect((await visitor.get(path())).html).toContain('Send another e-mail')
  })

  test('sends one e-mail when two operators submit at once, or one operator twice', async () => {
    const form = { ...(await shown('approve')), ...decided }
    const release = smtp.hold()
    const approvals = Array.from({ length: 3 }, () => visitor.post(`${path()}/approve`, form))
    release()
    expect((await Promise.all(approvals)).map(({ status }) => status).sort()).toEqual([200, 409, 409])
    expect(mails()).toHaveLength(1)
    const again = await shown('mail')
    const sent = await Promise.all(Array.from({ length: 3 }, () => visitor.post(`${path()}/mail`, again)))
    expect(sent.map(({ status }) => status).sort()).toEqual([303, 409, 409])
    expect(mails()).toHaveLength(2)
    expect((await visitor.post(`${path()}/mail`, again)).html).toContain('since you opened the form')
  })

  test('sends no second e-mail while one is being sent, and can send one after a crash', async () => {
    const release = smtp.hold()
    const approval = visitor.post(`${path()}/approve`, { ...(await shown('approve')), ...decided })
    while (smtp.recipients.length < 2) await new Promise((resolve) => setImmediate(resolve))
    const form = await shown('mail')
    expect((await visitor.get(path())).html).toContain('Started, result unknown')
    expect((await visitor.post(`${path()}/mail`, form)).html).toContain('is being sent')
    api.advance(60)
    const again = visitor.post(`${path()}/mail`, form)
    while (smtp.recipients.length < 3) await new Promise((resolve) => setImmediate(resolve))
    release()
    expect([(await approval).status, (await again).status]).toEqual([200, 303])
    expect(mails()).toHaveLength(2)
  })

  test.each([
    ['Key: otp_live_0123456789012345678901234567890123456789012345678', 'must not contain an API key'],
    ['Hello {{apiKey}}', 'unknown placeholder {{apiKey}}'],
    ['', 'must not be empty'],
    ['x'.repeat(10_001), 'at most 10000 characters'],
  ])('does not store the decision if the text is invalid: %#', async (text, problem) => {
    for (const form of ['approve', 'reject'] as const) {
      const apart = form === 'approve' ? decided : {}
      const fields = { ...(await shown(form)), ...apart, mail: '1', text }
      const { status, html } = await visitor.post(`${path()}/${form}`, fields)
      expect([status, html]).toEqual([409, expect.stringContaining(problem)])
    }
    expect((await api.app.context.requests.get(id))?.status).toBe('pending')
    expect(await audited()).toEqual([])
  })

  test('says that an e-mail does not reach the requester if no mail server is configured', async () => {
    const app = await createTestApp({ ...database.env })
    visitor = new Visitor(app)
    await visitor.get('/admin/login')
    await signedIn(app, visitor)
    const form = await shown('approve')
    expect(form.mail).toBeUndefined()
    expect((await visitor.get(path())).html).toContain('does not reach the requester')
    const { html } = await visitor.post(`${path()}/approve`, { ...form, ...decided, mail: '1' })
    expect(html).toContain('The e-mail is in the outbox')
    expect((await app.outbox('jo@globex.example')).map(({ text }) => text)).toEqual([
      expect.stringContaining('App ID: till'),
    ])
    await app.close()
  })
})
