import { afterEach, expect, test } from 'bun:test'
import { alertRows } from '../../src/adapters/alerts/targets.ts'
import { setApp } from '../../src/domain/operator/apps.ts'
import { type Answer, createTestApp, credentials, type TestApp, verdict } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { explained } from '../support/explained.ts'
import { tester } from '../support/operator.ts'
import { accepted, temporary, testProvider, unknown } from '../support/policy.ts'
import { startReceiver } from '../support/receiver.ts'
import { expectError, retryAfter } from '../support/rows.ts'

// SMS notifications of an app to countries and number ranges to which it did not send as many before.

const alerts = startReceiver()
const gateway = testProvider('gateway')
let apps: TestApp[] = []
let used = 0

async function start(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const alert = { ALERT_WEBHOOK_URL: alerts.url, ALERT_WEBHOOK_SECRET: alerts.secret }
  const app = await createTestApp({ ...alert, ...env }, { phoneRoutes: { plain: [gateway] } })
  apps.push(app)
  return app
}

afterEach(async () => {
  for (const app of apps.reverse()) await app.close()
  apps = []
  alerts.received.length = 0
  gateway.sent.length = 0
  gateway.answer(() => accepted)
})

/** Each of a range of its own. */
const numbers = (count: number, country = '3712') =>
  Array.from({ length: count }, () => `+${country}${400 + (used++ % 600)}1234`)

function notify(app: TestApp, to: readonly string[], fields: object = {}): Promise<Answer> {
  return app.post('/notify', { channel: 'SMS', brandId: 'acme', message: 'Hello', to, ...fields })
}

async function flagsOf(app: TestApp, answer: Answer) {
  return (await app.eventsOf(answer)).trace?.flags
}

/** Such as the statistics of other servers. */
async function pass(app: TestApp, seconds: number): Promise<void> {
  // Statistics get a request in the turn after the answer.
  await new Promise((resolve) => setImmediate(resolve))
  const now = app.clock.now + seconds * 1000
  for (const each of apps) each.clock.now = now
  for (const { app: each } of apps) {
    await each.notifyWatch.ready()
    await each.notifyWatch.idle()
    await each.notifyWatch.tick()
    each.alerts.tick()
    await each.alerts.idle()
  }
}

const limit = (app: TestApp, newCountrySmsPerDay: number | null) =>
  setApp(app.app.context.acting(tester), credentials.appId, { newCountrySmsPerDay }, [credentials.appId])

const [minute, day] = [60, 86_400]

test('the 21st SMS to a new country is sent, recorded in its trace, and alerted once', async () => {
  const app = await start()
  expect(await flagsOf(app, await notify(app, numbers(20)))).toEqual([])
  const [first = ''] = numbers(1)
  const answer = await notify(app, [first])
  expect(answer.status).toBe(200)
  const { trace, deliveries } = await app.eventsOf(answer)
  if (!trace) throw new Error('no trace')
  expect(explained(trace, deliveries)).toContain(
    '  recorded  the app sends many more SMS notifications to the country than before',
  )
  await pass(app, minute)
  await notify(app, numbers(5))
  await pass(app, 20 * minute)
  expect(alerts.received.map(({ body }) => body.type)).toEqual(['notify.surge'])
  expect(alerts.received[0]?.body.data).toMatchObject({
    appId: 'shop',
    countries: ['LV'],
    message:
      'App shop sends more SMS notifications than before: 21 to Latvia in 24 hours, 21 of them in one hour, before at most 0 a day.',
  })
  expect(app.lines).toContainEqual(alerts.received[0]?.body.data)
  const [stored] = await app.app.context.alerts.ofKinds(['notify.surge'], 0)
  expect(stored && alertRows(stored)).toEqual({ appId: 'shop', countries: 'LV' })
  const visitor = await signedIn(app)
  expect((await visitor.get('/admin')).html).toContain('21 to Latvia in 24 hours')
  expect((await visitor.get('/admin/guard')).html).toContain('Notifications of an app')
})

test('three times the best day of the last 14 days is usual', async () => {
  const app = await start()
  await notify(app, numbers(30))
  await pass(app, day)
  // A quarter of a day apart, since half of a day would be too many in an hour.
  for (let quarter = 0; quarter < 3; quarter++) {
    await pass(app, (1.1 * day) / 4)
    expect(await flagsOf(app, await notify(app, numbers(30)))).toEqual([])
  }
  expect(await flagsOf(app, await notify(app, numbers(1)))).toEqual(['notify-country'])
  // Those of codes, e-mails and other apps do not count.
  await pass(app, 16 * day)
  await notify(
    app,
    Array.from({ length: 30 }, (_, index) => `${index}@example.com`),
    {
      channel: 'EMAIL',
      subject: 'Hello',
      html: '<p>Hello</p>',
      message: undefined,
    },
  )
  expect(await flagsOf(app, await notify(app, numbers(20)))).toEqual([])
})

test('recipients of several countries count for their own, and jobs when the request is accepted', async () => {
  const app = await start()
  const answer = await notify(app, [...numbers(20), ...numbers(21, '44740')], { async: true })
  expect(await flagsOf(app, answer)).toEqual(['notify-country'])
  await pass(app, minute)
  expect(alerts.received.map(({ body }) => body.data.countries)).toEqual([['GB']])
})

test('a number range to which an app suddenly sends many', async () => {
  const app = await start()
  await notify(app, numbers(60))
  await pass(app, minute)
  await pass(app, day)
  const near = Array.from({ length: 21 }, (_, index) => `+371299912${String(index).padStart(2, '0')}`)
  expect(await flagsOf(app, await notify(app, near))).toEqual(['notify-range'])
  await pass(app, 10 * minute)
  expect(alerts.received.at(-1)?.body.data.message).toBe(
    'App shop sends more SMS notifications than before: many to the number range +3712999… (Latvia).',
  )
})

test('two servers know of each other within a minute, and send one alert', async () => {
  const first = await start()
  const second = await start(first.database.env)
  await notify(first, numbers(15))
  await pass(first, minute)
  expect(await flagsOf(second, await notify(second, numbers(6)))).toEqual(['notify-country'])
  await pass(first, minute)
  expect(await flagsOf(first, await notify(first, numbers(1)))).toEqual(['notify-country'])
  await pass(first, minute)
  expect(alerts.received.map(({ body }) => body.data.countries)).toEqual([['LV']])
  await notify(second, numbers(21, '44740'))
  await notify(first, [...numbers(21, '3725'), ...numbers(21, '44740')])
  await pass(first, 20 * minute)
  expect(alerts.received.flatMap(({ body }) => body.data.countries).sort()).toEqual(['EE', 'GB', 'LV'])
})

test('the limit of an app rejects a request as a whole, until the end of the day in UTC', async () => {
  const app = await start()
  await limit(app, 5)
  expect((await notify(app, [...numbers(3), ...numbers(5, '44740')])).status).toBe(200)
  const refused = await notify(app, [...numbers(1), ...numbers(1, '44740')])
  expectError(refused, 429, 'rate_limited')
  expect(refused.body.reason).toBe('guard')
  expect(refused.body.message).toContain('At most 5 notifications by SMS per day to GB for this app')
  expect(retryAfter(refused)).toBe(day / 2)
  expect(gateway.sent).toHaveLength(8)
  const { trace } = await app.eventsOf(refused)
  expect(trace?.limits.at(-1)).toMatchObject({ limit: 'new-country', max: 5, refused: true })
  expect((await notify(app, numbers(2))).status).toBe(200)
  expect((await notify(app, numbers(1))).status).toBe(429)
  await pass(app, day / 2)
  expect((await notify(app, numbers(5))).status).toBe(200)
  await limit(app, null)
  expect((await notify(app, numbers(20))).status).toBe(200)
})

test('SMS that certainly were not sent do not count on the limit', async () => {
  const app = await start()
  await limit(app, 3)
  const [bad = '', ...others] = numbers(3)
  gateway.answer(({ to }) => (bad.endsWith(to) ? temporary : unknown))
  expect((await notify(app, [bad, ...others])).status).toBe(500)
  gateway.answer(() => accepted)
  expect((await notify(app, numbers(2))).status).toBe(429)
  expect((await notify(app, numbers(1))).status).toBe(200)
})

test('a country is not new after a day of more than twice the limit', async () => {
  const app = await start()
  await notify(app, numbers(11))
  await notify(app, numbers(10, '44740'))
  await pass(app, day)
  await limit(app, 5)
  expect((await notify(app, numbers(50))).status).toBe(200)
  expect((await notify(app, numbers(6, '44740'))).status).toBe(429)
})

test('jobs wait for the limit', async () => {
  const app = await start()
  await limit(app, 2)
  expect((await notify(app, numbers(3), { async: true })).status).toBe(429)
  gateway.answer(() => temporary)
  const answers: Answer[] = []
  for (let index = 0; index < 3; index++) answers.push(await notify(app, numbers(1), { async: true }))
  expect(answers.map(verdict)).toEqual(['202', '202', '202'])
  const { queue, context } = app.app
  queue.tick()
  await queue.idle()
  gateway.answer(() => accepted)
  await pass(app, 5)
  queue.tick()
  await queue.idle()
  const jobs = await Promise.all(answers.map(({ body }) => context.jobs.ofRequest(body.requestId)))
  expect(jobs.flat().map(({ state, reason }) => `${state} ${reason}`)).toEqual([
    'accepted null',
    'accepted null',
    'queued limit of new countries reached',
  ])
})
