import { afterEach, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { policyOf } from '../support/policy.ts'
import { startReceiver } from '../support/receiver.ts'

let api: TestApp
let receiver: ReturnType<typeof startReceiver> | undefined

afterEach(async () => {
  await api.close()
  await receiver?.stop()
  receiver = undefined
})

const [secondMs, minuteMs] = [1000, 60_000]
/** Latvia costs 2 units for an SMS. */
const latvia = (index: number) => `+3712000000${index}`

const send = (phone: string) => api.post('/otp/send', { phone })

/** Resolves when the alerts that are due now were tried. */
async function alerted(): Promise<void> {
  // A request is counted in the turn after its answer.
  await new Promise((resolve) => setImmediate(resolve))
  await api.app.alerts.idle()
  api.advance(1)
  api.app.alerts.tick()
  await api.app.alerts.idle()
}

describe('a budget', () => {
  test('rejects the message that it cannot pay for, until the day ends, and not while it is lifted', async () => {
    api = await createTestApp()
    await policyOf(api).budget('country:LV', '5')
    expect([(await send(latvia(1))).status, (await send(latvia(2))).status]).toEqual([200, 200])
    const refused = await send(latvia(3))
    expect([refused.status, refused.body.error]).toEqual([429, 'rate_limited'])
    expect(refused.headers.get('retry-after')).toBe(String(12 * 3600))
    expect((await send('+447400123456')).status).toBe(200)
    const { trace } = await api.eventsOf(refused)
    expect(trace?.limits.at(-1)).toMatchObject({
      limit: 'budget',
      refused: true,
      max: 5_000_000,
      budget: { scope: 'country:LV', of: 'all', currency: 'units' },
    })
    await policyOf(api).lift('country:LV', '1h')
    expect((await send(latvia(3))).status).toBe(200)
    expect(await policyOf(api).spent()).toEqual({ 'country:LV': 6000 })
    api.advance(3600)
    expect((await send(latvia(4))).status).toBe(429)
    api.advance(11 * 3600)
    expect((await send(latvia(4))).status).toBe(200)
  })

  test('that is raised, lifted or removed is exhausted nowhere a moment later, although it had rejected a message', async () => {
    api = await createTestApp()
    const console = await signedIn(api)
    const exhausted = async () => {
      await alerted()
      const [overview, money] = [await console.get('/admin'), await console.get('/admin/money')]
      return [overview, money].map(({ html }) => /is exhausted: |rejected with 429|>exhausted</.test(html))
    }
    const { budget, lift, removeBudget } = policyOf(api)
    for (const change of [
      () => budget('server', '500'),
      () => lift('server', '1h'),
      () => removeBudget('server'),
    ]) {
      await budget('server', '3')
      await send(latvia(1))
      expect((await send(latvia(2))).status).toBe(429)
      expect(await exhausted()).toEqual([true, true])
      await change()
      expect(await exhausted()).toEqual([false, false])
      expect((await send(latvia(2))).status).toBe(200)
      await removeBudget('server').catch(() => {})
      api.advance(31)
    }
  })

  test('keeps what was spent with another amount, and starts anew with another period', async () => {
    api = await createTestApp()
    await policyOf(api).budget('server', '5')
    await send(latvia(1))
    await policyOf(api).budget('server', '3')
    expect(await policyOf(api).spent()).toEqual({ server: 2000 })
    expect((await send(latvia(2))).status).toBe(429)
    api.advance(1)
    await policyOf(api).budget('server', '3', { period: 'month' })
    expect(await policyOf(api).spent()).toEqual({ server: 0 })
    await policyOf(api).removeBudget('server')
    expect(await policyOf(api).spent()).toEqual({})
  })
})

describe('an alert', () => {
  test('is mailed to ALERT_EMAIL and posted to ALERT_WEBHOOK_URL, once', async () => {
    receiver = startReceiver()
    const { secret } = receiver
    api = await createTestApp({
      ALERT_EMAIL: 'ops@example.com',
      ALERT_WEBHOOK_URL: receiver.url,
      ALERT_WEBHOOK_SECRET: secret,
    })
    await policyOf(api).budget('server', '5', { alertAt: '40,100' })
    await send(latvia(1))
    await alerted()
    const [call, ...others] = receiver.received
    if (!call) throw new Error('no alert was posted')
    expect(others).toEqual([])
    expect(call.body).toEqual({
      type: 'budget.threshold',
      timestamp: '2026-01-01T12:00:00.000Z',
      data: {
        scope: 'server',
        of: 'all',
        period: 'day',
        percent: 40,
        amount: 5,
        spent: 2,
        currency: 'units',
        resetsAt: '2026-01-02T00:00:00.000Z',
        stops: true,
      },
    })
    const id = call.headers.get('webhook-id') ?? ''
    const sentAt = new Date(Number(call.headers.get('webhook-timestamp')) * 1000)
    expect(sentAt).toEqual(new Date('2026-01-01T12:00:00.000Z'))
    expect(call.headers.get('webhook-signature')).toBe(new Webhook(secret).sign(id, sentAt, call.raw))
    const mails = await api.outbox('ops@example.com')
    expect(mails.map(({ subject }) => subject)).toEqual(['Budget server: 40% of 5 units per day spent'])
    expect(mails[0]?.text).toContain('spent: 2')

    await send(latvia(2))
    expect((await send(latvia(3))).status).toBe(429)
    await alerted()
    expect(receiver.received.map(({ body }) => body.data.percent)).toEqual([40, 100])
    expect(api.lines).toContainEqual(expect.objectContaining({ scope: 'server', percent: 100, spent: 4 }))
  })

  test('of a budget of each country names the country, and lists the exhausted ones while they are', async () => {
    receiver = startReceiver()
    api = await createTestApp({
      ALERT_EMAIL: 'ops@example.com',
      ALERT_WEBHOOK_URL: receiver.url,
      ALERT_WEBHOOK_SECRET: receiver.secret,
    })
    await policyOf(api).budget('country:*', '2', { alertAt: '100', of: 'codes' })
    await send(latvia(1))
    await alerted()
    const britain = ['+447400123456', '+447400123457', '+447400123458']
    const answers = [await send(latvia(2)), ...(await Promise.all(britain.map(send)))]
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 429, 429])
    await alerted()
    const data = () => receiver?.received.map(({ body }) => body.data) ?? []
    expect(data()).toMatchObject([
      { scope: 'country:*', of: 'codes', country: 'LV', percent: 100, spent: 2 },
      { scope: 'country:*', of: 'codes', country: 'GB', percent: 100, spent: 2 },
    ])
    const { html } = await (await signedIn(api)).get('/admin')
    expect(html).toContain('Budget country:* of codes is exhausted for 2 countries: ')
    api.clock.now += 10 * minuteMs
    await alerted()
    expect(data()[2]).toMatchObject({ scope: 'country:*', of: 'codes', state: 'lasting' })
    expect(data()[2].countries).toHaveLength(2)
    const mails = await api.outbox('ops@example.com')
    expect(mails.map(({ text }) => text).join()).toMatch(/countries: (GB 2, LV 2|LV 2, GB 2)/)
    await policyOf(api).lift('country:*', '1h', 'codes')
    api.clock.now += minuteMs
    await alerted()
    expect(data()[3]).toMatchObject({
      state: 'ended',
      message: 'Budget country:* of codes is no longer exhausted.',
    })
  })

  test('at 100 % is not stored for a rejected notification to many, only for a single message', async () => {
    api = await createTestApp()
    await policyOf(api).budget('server', '1', { alertAt: '100' })
    const notify = (...to: string[]) =>
      api.post('/notify', { channel: 'SMS', brandId: 'acme', to, message: 'Hello' })
    const stored = async () => {
      await alerted()
      return (await api.app.context.alerts.latest(10)).length
    }
    expect([(await notify(latvia(1), latvia(2))).status, await stored()]).toEqual([429, 0])
    expect([(await notify(latvia(1))).status, await stored()]).toEqual([429, 1])
  })

  test('is retried with the same webhook-id until the receiver accepts it', async () => {
    receiver = startReceiver(() => new Response(null, { status: 503 }))
    api = await createTestApp({ ALERT_WEBHOOK_URL: receiver.url, ALERT_WEBHOOK_SECRET: receiver.secret })
    await policyOf(api).budget('server', '4', { alertAt: '50' })
    await send(latvia(1))
    await alerted()
    expect(receiver.received.length).toBe(1)
    api.clock.now += 5 * secondMs
    await alerted()
    receiver.answer(() => new Response('ok'))
    api.clock.now += minuteMs
    await alerted()
    expect(receiver.received.length).toBe(3)
    api.clock.now += 60 * minuteMs
    await alerted()
    expect(receiver.received.length).toBe(3)
    expect(new Set(receiver.received.map(({ headers }) => headers.get('webhook-id'))).size).toBe(1)
    expect((await api.app.context.alerts.latest(10)).map(({ title }) => title)).toEqual([
      'Budget server: 50% of 4 units per day spent',
    ])
  })
})
