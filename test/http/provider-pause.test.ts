import { afterEach, beforeEach, expect, test } from 'bun:test'
import { addAccount, enterAs } from '../support/accounts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { explained } from '../support/explained.ts'
import { operate, tester } from '../support/operator.ts'
import { testProvider } from '../support/policy.ts'
import { expectError, expectSuccess, freshPhone } from '../support/rows.ts'

const hourMs = 3_600_000

const settings = {
  SMS_PLAIN: 'webhook,outbox',
  SMS_WEBHOOK_URL: 'http://127.0.0.1:9/sms',
  SMS_WEBHOOK_SECRET: 'a secret of the test, 32 bytes..',
}
let one: ReturnType<typeof testProvider>
let other: ReturnType<typeof testProvider>
let app: TestApp

beforeEach(async () => {
  one = testProvider('webhook')
  other = testProvider('outbox')
  app = await createTestApp(settings, { phoneRoutes: { plain: [one, other] } })
})
afterEach(() => app.close())

const pause = (name: string, duration = '1h') => operate(app, 'provider pause', { name, duration }, settings)
const resume = (name: string) => operate(app, 'provider resume', { name }, settings)
const send = (phone = freshPhone()) => app.post('/otp/send', { brandId: 'acme', phone })

/** The attempts of the next send, in order. */
async function tried(): Promise<string> {
  const { deliveries } = await app.eventsOf(await send())
  return deliveries.map(({ provider, outcome, reason }) => `${provider} ${reason ?? outcome}`).join(', ')
}

test('the next request skips a paused provider, until the pause ends', async () => {
  expect(await tried()).toBe('webhook accepted')
  await pause('webhook')
  expect(await tried()).toBe('outbox accepted, webhook paused')
  expect(one.sent).toHaveLength(1)
  await resume('webhook')
  expect(await tried()).toBe('webhook accepted')

  await pause('webhook', '2h')
  await pause('webhook', '1h')
  app.advance(hourMs / 1000 - 1)
  expect(await tried()).toBe('outbox accepted, webhook paused')
  app.advance(1)
  expect(await tried()).toBe('webhook accepted')
  await expect(resume('webhook')).rejects.toThrow('webhook is not paused.')
})

test('a send with only paused providers fails and counts toward no limit; its trace says why', async () => {
  await pause('webhook')
  await pause('outbox')
  const phone = freshPhone()
  for (let count = 0; count < 12; count++) {
    const answer = await send(phone)
    expectError(answer, 502, 'sms_failed')
    if (count > 0) continue
    const { trace, deliveries } = await app.eventsOf(answer)
    const lines = trace && explained(trace, deliveries).join('\n')
    expect(lines).toContain('webhook on the plain route (LOGIN_OTP): skipped: paused')
    expect(lines).toContain('webhook is paused. To use it again, use `otpost provider resume webhook`.')
  }
  expect([...one.sent, ...other.sent]).toEqual([])
  await resume('outbox')
  expectSuccess(await send(phone), ['expiresIn'])
})

test('a notification in the queue waits for its paused provider', async () => {
  await pause('webhook')
  await pause('outbox')
  const message = { channel: 'SMS', brandId: 'acme', to: [freshPhone()], message: 'Hello', async: true }
  await app.post('/notify', message)
  await app.app.queue.idle()
  expect(await app.app.context.jobs.status()).toMatchObject({ waiting: 1 })
  await resume('webhook')
  app.advance(10)
  app.app.queue.tick()
  await app.app.queue.idle()
  expect(one.sent).toHaveLength(1)
})

test('the overview says until when a provider is paused, and has the forms', async () => {
  const visitor = await enterAs(app, await addAccount(app, 'ana@example.com', 'operator'))
  await visitor.post('/admin/providers/pause', { name: 'webhook', duration: '1h' })
  expect(await tried()).toBe('outbox accepted, webhook paused')
  const { html } = await visitor.get('/admin')
  expect(html.replaceAll(/<[^>]*>/g, '')).toContain(
    'Provider webhook is paused until 2026-01-01 13:00:30 UTC. Other providers send its SMS.',
  )
  expect(html).toContain('Resume<span class="sr-only"> webhook</span>')
  expect(html).not.toContain('Resume<span class="sr-only"> outbox</span>')
  const { html: again } = await visitor.post('/admin/providers/pause', { name: 'outbox', duration: 'soon' })
  expect([...again.matchAll(/value="(soon|1h)"/g)]).toHaveLength(1)
  await visitor.post('/admin/providers/resume', { name: 'webhook' })
  expect((await visitor.get('/admin')).html).not.toContain('paused until')
})

test('a test message through a paused provider is sent', async () => {
  await pause('webhook')
  await app.app.sendTest(tester, { to: freshPhone(), provider: 'webhook' })
  expect(one.sent).toHaveLength(1)
})
