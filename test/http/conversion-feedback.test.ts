import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { codeIn, createTestApp, type TestApp } from '../support/app.ts'
import { startProviderDouble } from '../support/provider-server.ts'
import { freshPhone } from '../support/rows.ts'
import { legacy, notifyBrands } from '../tables/notify.ts'

const account = 'AC0123456789abcdef0123456789abcdef'
const sid = 'SM0123456789abcdef0123456789abcdef'
const feedbackPath = `/2010-04-01/Accounts/${account}/Messages/${sid}/Feedback.json`

let twilio: ReturnType<typeof startProviderDouble>
let app: TestApp
let elapsedMs = 0

beforeEach(() => {
  twilio = startProviderDouble(() => Response.json({ sid, status: 'queued' }, { status: 201 }))
})
afterEach(async () => {
  await app.close()
  await twilio.stop()
})

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  const settings = {
    SMS_PLAIN: 'twilio',
    TWILIO_ACCOUNT_SID: account,
    TWILIO_AUTH_TOKEN: '0123456789abcdef0123456789abcdef',
    TWILIO_FROM: '+15005550006',
    TWILIO_BASE_URL: twilio.url,
    METRICS_TOKEN: 'token-of-the-scraper',
    ...env,
  }
  app = await createTestApp(settings, { stopwatch: () => elapsedMs })
}

/** Sends a code and verifies it; returns the status of the second answer. */
async function sendAndVerify(): Promise<number> {
  const phone = freshPhone()
  await app.post('/otp/send', { phone })
  const otp = codeIn(new URLSearchParams(twilio.received.at(-1)?.body).get('Body'))
  return (await app.post('/otp/verify', { phone, otp })).status
}

/** Resolves once the provider has had so many calls. */
async function calls(count: number): Promise<string[]> {
  while (twilio.received.length < count) await new Promise((resolve) => setImmediate(resolve))
  return twilio.received.map(({ path }) => path)
}

/** Resolves once so many reports have ended with this outcome. */
async function counted(outcome: string, count: number): Promise<void> {
  const headers = { authorization: 'Bearer token-of-the-scraper' }
  const line = `otpost_conversion_feedback_total{provider="twilio",outcome="${outcome}"} ${count}\n`
  while (!(await app.request('GET', '/metrics', { headers })).body.includes(line));
}

describe('CONVERSION_FEEDBACK', () => {
  test('reports a verified code to the provider that sent it', async () => {
    await start({ CONVERSION_FEEDBACK: '1' })
    expect(await sendAndVerify()).toBe(200)
    expect(await calls(2)).toEqual([expect.stringMatching(/Messages\.json$/), feedbackPath])
    const [sent, feedback] = twilio.received
    expect(new URLSearchParams(sent?.body).get('ProvideFeedback')).toBe('true')
    expect(feedback?.body).toBe('Outcome=confirmed')
    await counted('accepted', 1)
    expect(app.lines.filter((line) => 'failures' in line)).toEqual([])
  })

  test('reports neither wrong codes nor notifications', async () => {
    await start({ CONVERSION_FEEDBACK: '1' })
    for (const [slug, properties] of Object.entries(notifyBrands)) await app.brand(slug, properties)
    const phone = freshPhone()
    await app.post('/otp/send', { phone })
    const code = codeIn(new URLSearchParams(twilio.received.at(-1)?.body).get('Body'))
    await app.post('/otp/verify', { phone, otp: code === '111111' ? '222222' : '111111' })
    const notified = await app.post('/notify', { ...legacy, to: [phone] })
    expect(notified.status).toBe(200)
    expect(new URLSearchParams(twilio.received[1]?.body).get('ProvideFeedback')).toBeNull()
    expect(twilio.received).toHaveLength(2)
  })

  test('is off by default: the provider gets the message only', async () => {
    await start({})
    expect(await sendAndVerify()).toBe(200)
    await app.post('/otp/send', { phone: freshPhone() })
    expect(new Set(await calls(2))).toEqual(new Set([feedbackPath.replace(`/${sid}/Feedback`, '')]))
    for (const { body } of twilio.received) expect(body).not.toContain('ProvideFeedback')
  })

  test('does not delay or fail a verify, and logs at most one line a minute', async () => {
    await start({ CONVERSION_FEEDBACK: '1', PROVIDER_TIMEOUT_MS: '2000' })
    const phones = [freshPhone(), freshPhone(), freshPhone()]
    const later = freshPhone()
    const codes: string[] = []
    for (const phone of [...phones, later]) {
      await app.post('/otp/send', { phone })
      codes.push(codeIn(new URLSearchParams(twilio.received.at(-1)?.body).get('Body')))
    }
    const held = Promise.withResolvers<Response>()
    twilio.answer(() => held.promise.then((response) => response.clone()))
    for (const [index, phone] of phones.entries())
      expect((await app.post('/otp/verify', { phone, otp: codes[index] })).status).toBe(200)
    await calls(7)
    held.resolve(Response.json({ code: 20404 }, { status: 404 }))
    const lines = (): object[] => app.lines.filter((line) => 'failures' in line)
    await counted('rejected', 3)
    const line = { provider: 'twilio', outcome: 'rejected', reason: '20404' }
    expect(lines()).toEqual([{ ...line, failures: 1 }])
    elapsedMs += 60_000
    expect((await app.post('/otp/verify', { phone: later, otp: codes.at(-1) })).status).toBe(200)
    await counted('rejected', 4)
    expect(lines()).toEqual([
      { ...line, failures: 1 },
      { ...line, failures: 3 },
    ])
  })
})
