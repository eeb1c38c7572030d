import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { createTestApp, type TestApp } from '../support/app.ts'
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
  test('is mailed to ALERT_EMAIL and posted to ALERT_WEBHOOK_URL, with the names as they were entered', async () => {
    const companyName = `Acme <img src=x> & "Söhne" {{otp}}`
    const integrationRequestId = await asked(companyName)
    await alerted()
    const [{ mail, to } = expect.unreachable()] = smtp.received
    expect(to).toEqual(['ops@example.com'])
    expect(mail.subject).toBe(`Integration request from ${companyName}`)
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
    expect(subjects()).toEqual(['Integration request from Globex'])
    api.advance(6 * 60)
    await alerted()
    expect(subjects().slice(1)).toEqual(['4 pending integration requests, the latest from Hooli'])
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
    expect(subjects()).toEqual(['Integration request from Globex'])
    expect(receiver.received).toHaveLength(1)
  })
})
