import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { PhoneWay } from '../../src/domain/ground/providers.ts'
import {
  ladderOrders,
  ladderWords,
  proportion,
  readRoutes,
  routeOrders,
} from '../../src/domain/operator/routes.ts'
import { addAccount, enterAs } from '../support/accounts.ts'
import { codeIn, createTestApp, type TestApp } from '../support/app.ts'
import { printed } from '../support/command.ts'
import { operate, tester } from '../support/operator.ts'
import { accepted, temporary, testProvider } from '../support/policy.ts'

// What the event log says of each provider, with a history whose truth is known.

const one = testProvider('webhook')
const other = testProvider('outbox')
const settings = {
  SMS_PLAIN: 'webhook,outbox',
  SMS_WEBHOOK_URL: 'http://127.0.0.1:9/sms',
  SMS_WEBHOOK_SECRET: 'a secret of the test, 32 bytes..',
  PUBLIC_URL: 'https://otp.example.com',
}
const server = {
  smsCountries: [],
  routes: { smsMode: 'plain', plain: [], template: [], others: {} } as const,
}
const textOf = (html: string) => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
let app: TestApp

beforeEach(async () => {
  const deliveryReports = { namedBy: 'attempt', read: () => [] } as const
  const routes = [one, other].map((provider) => Object.assign(provider, { deliveryReports }))
  app = await createTestApp(settings, { phoneRoutes: { plain: routes } })
})
afterEach(() => app.close())

const numbers = (country: string) => Array.from({ length: 20 }, (_, at) => `${country}${String(100 + at)}`)

/** Sends a code, by the other provider if the first does not accept it. */
async function code(
  phone: string,
  provider: typeof one,
  { verified, report }: { verified: boolean; report?: 'delivered' | 'failed' },
) {
  one.answer(() => (provider === one ? accepted : temporary))
  app.advance(40)
  const answer = await app.post('/otp/send', { phone })
  expect(answer.status).toBe(200)
  const { deliveries } = await app.eventsOf(answer)
  const key = deliveries.find(({ outcome }) => outcome === 'accepted')?.reportKey
  if (report && key) {
    const reports = [{ key, status: report, reason: null, at: app.clock.now }]
    await app.app.context.eventLog.saveReports(provider.name, reports, false)
  }
  if (!verified) return
  app.advance(5)
  const verify = await app.post('/otp/verify', { phone, otp: codeIn(provider.sent.at(-1)?.text) })
  expect(verify.status).toBe(200)
  await app.eventsOf(verify)
}

async function history(): Promise<void> {
  const british = numbers('447400123')
  for (const [at, phone] of british.slice(0, 10).entries())
    await code(phone, one, { verified: at < 2, report: at < 4 ? 'delivered' : 'failed' })
  await code('37120000100', one, { verified: true })
  // Its circuit opens.
  for (const phone of british.slice(10)) await code(phone, other, { verified: true, report: 'delivered' })
  await code('37120000101', other, { verified: true })
  await operate(app, 'destination set', { rule: 'GB', action: 'allow', sender: 'Acme' }, settings)
}

test('otpost routes prints the figures of each provider and country, and the command that sets a proven order', async () => {
  await history()
  const env = { ...app.database.env, ...settings }
  // Commands have the clock of the machine.
  const routes = ['routes', '--since', '2026-01-01T00:00Z']
  const { rows, orders } = JSON.parse((await printed(env, [...routes, '--json']))[0] ?? '')
  const figures = { country: 'GB', messages: 10, currency: 'units', cost: 1 }
  expect(rows).toEqual([
    expect.objectContaining({
      ...figures,
      provider: 'outbox',
      delivery: expect.objectContaining({ of: 10, rate: 1 }),
      conversion: expect.objectContaining({ of: 10, rate: 1 }),
      costOfVerified: 1,
    }),
    expect.objectContaining({
      ...figures,
      provider: 'webhook',
      delivery: expect.objectContaining({ of: 10, rate: 0.4 }),
      conversion: expect.objectContaining({ of: 10, rate: 0.2 }),
      costOfVerified: 5,
    }),
    expect.objectContaining({ country: 'LV', provider: 'outbox', messages: 1, delivery: null }),
    expect.objectContaining({ country: 'LV', provider: 'webhook', messages: 1, delivery: null }),
  ])
  expect(orders).toMatchObject([
    { country: 'GB', by: 'conversion', providers: ['outbox', 'webhook'], isProven: true, isSet: false },
    { country: 'LV', isProven: false },
  ])
  const lines = await printed(env, routes)
  expect(lines.join('\n')).toContain('20% (5.7% to 51%) of 10')
  const words =
    'United Kingdom (GB): outbox, webhook, by conversion. To set it, use `otpost destination set GB allow --providers outbox,webhook --sender Acme`.'
  expect(lines).toContain(words)
  expect(lines.at(-1)).toContain('Intervals overlap, so the order is not proven.')

  await printed(env, /otpost ([^`]+)/.exec(words)?.[1]?.split(' ') ?? [])
  expect((await printed(env, routes)).join('\n')).toContain('by conversion. This is the order now.')
})

test('the page shows the same, and leads to the form of the rule', async () => {
  await history()
  const visitor = await enterAs(app, await addAccount(app, 'ada@acme.example', 'operator'))
  expect((await visitor.get('/admin/destinations')).html).toContain('href="/admin/routes"')
  const { html } = await visitor.get('/admin/routes')
  expect(textOf(html)).toContain('20% (5.7% to 51%) of 10')
  expect(textOf(html)).toContain('outbox, webhook, by conversion.')
  const rule = { rule: 'GB', action: 'allow', providers: ['outbox', 'webhook'], sender: 'Acme' }
  const form = await visitor.post('/admin/destinations', { ...rule, foretell: '1' })
  expect(textOf(form.html)).toContain('It would replace GB: allow, sender Acme.')
})

test('of two codes of a number, the one that was sent last was verified; notifications are no codes', async () => {
  const phone = '447400123456'
  await code(phone, one, { verified: false })
  await code(phone, other, { verified: true })
  await app.post('/notify', {
    channel: 'SMS',
    brandId: 'acme',
    to: [phone, '447400123457'],
    message: 'Hello',
  })
  await code('447400123458', one, { verified: false })
  const { rows } = await readRoutes(app.app.context, server, app.clock.now, app.clock.now)
  expect(rows).toMatchObject([
    { provider: 'outbox', messages: 3, conversion: { of: 1, rate: 1 } },
    { provider: 'webhook', messages: 2, conversion: { of: 2, rate: 0 } },
  ])
})

test('ways are compared too, and suggest an order of LADDER, in which a call is never first', () => {
  const figures = { country: 'LV', messages: 40, delivery: null, cost: null }
  const row = (way: PhoneWay, verified: number, codes: number) => ({
    ...{ ...figures, way, provider: way },
    conversion: proportion(verified, codes),
  })
  const two = ladderOrders([row('sms', 4, 40), row('voice', 39, 40), row('whatsapp', 30, 40)])
  expect(two.map(({ ways, isProven }) => [ways.map(({ way }) => way), isProven])).toEqual([
    [['whatsapp', 'voice', 'sms'], false],
  ])
  const [proven = expect.unreachable()] = ladderOrders([row('sms', 4, 40), row('whatsapp', 38, 40)])
  expect(ladderWords(proven)).toBe(
    'Latvia (LV): LADDER=whatsapp,sms, by conversion: whatsapp 95% (83.5% to 98.6%) of 40, sms 10% (4% to 23.1%) of 40.',
  )
  expect(ladderOrders([row('sms', 4, 40), { ...row('whatsapp', 0, 1), country: 'GB' }])).toEqual([])
  // Providers of other ways stay in a rule.
  const rows = [
    { ...row('sms', 4, 40), provider: 'one' },
    { ...row('sms', 30, 40), provider: 'two' },
  ]
  const orders = routeOrders(rows, [], ['one', 'two', 'chat'])
  expect(orders).toMatchObject([{ providers: ['two', 'one', 'chat'], isSet: false }])
})

test('costs are of the days after recipients were erased, and none are from the future', async () => {
  const numbersOf = numbers('447400123')
  for (const phone of numbersOf.slice(0, 4)) await code(phone, one, { verified: true })
  for (const to of numbersOf.slice(0, 2)) await app.app.context.forget({ channel: 'SMS', to }, tester)
  const read = (since = app.clock.now - 2 * 24 * 3_600_000) =>
    readRoutes(app.app.context, server, app.clock.now, since)
  const found = await read()
  expect(found.rows).toMatchObject([{ messages: 2, conversion: { of: 2, rate: 1 }, cost: null }])
  expect(found.note).toContain('Recipients were erased at 2026-01-01')
  app.advance(24 * 3600)
  await code(numbersOf[5] ?? '', one, { verified: true })
  expect((await read()).rows).toMatchObject([{ messages: 3, cost: { micros: 1e6 } }])
  expect((await read(0)).since).toBe(Date.UTC(2026, 0, 1))
  await expect(read(app.clock.now + 1)).rejects.toThrow('since must not be in the future.')
})

test('whole days are read, newest first, until there are enough requests', async () => {
  await code('447400123456', one, { verified: true })
  app.advance(24 * 3600)
  await code('447400123457', one, { verified: false })
  const { now } = app.clock
  const read = (most?: number) => readRoutes(app.app.context, server, now, now - 2 * 24 * 3_600_000, most)
  expect(await read()).toMatchObject({ since: Date.UTC(2026, 0, 1), rows: [{ messages: 2 }] })
  expect(await read(1)).toMatchObject({ since: Date.UTC(2026, 0, 2), rows: [{ messages: 1 }] })
})
