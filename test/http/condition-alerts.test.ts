import { afterEach, expect, test } from 'bun:test'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { policyOf } from '../support/policy.ts'
import { startReceiver } from '../support/receiver.ts'
import { freshPhone } from '../support/rows.ts'

const minuteMs = 60_000
const alerts = startReceiver()
const gateway = startReceiver()
let apps: TestApp[] = []

afterEach(async () => {
  for (const app of apps.reverse()) await app.close()
  apps = []
  alerts.received.length = 0
})

const states = () =>
  alerts.received.map(({ body: { type, data } }) => `${type} ${data.state ?? data.percent}`)

/** Two servers on one database, with one clock. */
async function servers(env: Readonly<Record<string, string>>): Promise<readonly [TestApp, TestApp]> {
  const settings = {
    ...env,
    ALERT_WEBHOOK_URL: alerts.url,
    ALERT_WEBHOOK_SECRET: alerts.secret,
  }
  const first = await createTestApp(settings)
  apps = [first]
  const second = await createTestApp({ ...settings, ...first.database.env })
  apps.push(second)
  return [first, second]
}

/** Checks of every half minute. */
async function pass(minutes: number): Promise<void> {
  for (let half = 0; half < 2 * minutes; half++) {
    for (const app of apps) app.advance(30)
    for (const { app } of apps) {
      app.alerts.tick()
      await app.alerts.idle()
    }
  }
}

test('two servers send an alert once when a provider fails, while it does, and when it accepts messages again', async () => {
  gateway.answer(() => new Response(null, { status: 503 }))
  const [first, second] = await servers({ SMS_PLAIN: 'webhook', ...gateway.env })
  await pass(1)
  expect(states()).toEqual([])
  for (let index = 0; index < 5; index++) {
    expect((await first.post('/otp/send', { phone: freshPhone() })).status).toBe(502)
  }
  await pass(11)
  expect(states()).toEqual(['provider.failing started', 'provider.failing lasting'])
  expect(alerts.received[0]?.body.data).toMatchObject({
    provider: 'webhook',
    failures: 5,
    since: new Date(first.clock.now - 10.5 * minuteMs).toISOString(),
    message: 'Provider webhook fails: the latest 5 attempts failed or have an unknown result.',
  })
  const overview = await (await signedIn(second)).get('/admin')
  expect(/5 of 5 attempts \(100%\) failed/.test(overview.html)).toBe(true)
  gateway.answer(() => new Response(null, { status: 204 }))
  expect((await second.post('/otp/send', { phone: freshPhone() })).status).toBe(200)
  await first.post('/otp/send', { phone: freshPhone() })
  await pass(30)
  expect(states().slice(2)).toEqual(['provider.failing ended'])
})

test('two servers send an alert once while a budget rejects messages, and when it is lifted', async () => {
  const [first] = await servers({})
  const { budget } = policyOf(first)
  await budget('server', '2', { alertAt: '100' })
  // Latvia costs 2 units.
  await first.post('/otp/send', { phone: '+37120000001' })
  await pass(21)
  expect(states()).toEqual(['budget.threshold 100', 'budget.exhausted lasting', 'budget.exhausted lasting'])
  const overview = await (await signedIn(first)).get('/admin')
  expect(/To send more before, lift the budget or set a larger amount\./.test(overview.html)).toBe(true)
  await budget('server', '5', { alertAt: '100' })
  await pass(30)
  expect(states().slice(3)).toEqual(['budget.exhausted ended'])
})
