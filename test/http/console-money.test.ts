import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, type Visitor } from '../support/console.ts'
import { policyOf } from '../support/policy.ts'

let api: TestApp
let visitor: Visitor

beforeEach(async () => {
  api = await createTestApp()
  visitor = await signedIn(api)
})
afterEach(() => api.close())

const money = async () => (await visitor.get('/admin/money')).html
/** The text of a page, without its tags. */
const textOf = (html: string) => html.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ')
const pricesStored = async () => (await api.app.context.prices.rows()).length

test('prices are checked, shown as changes and imported in the browser', async () => {
  const send = (prices: string, question = {}) => visitor.post('/admin/money/prices', { prices, ...question })
  const bad = await send('prefix,currency,price\n+44,EUR,free\n371,EUR,1\n+0,XX,"1,000"')
  expect(bad.status).toBe(409)
  for (const line of ['Line 2: price must be a number', 'Line 4: prefix must have 1 to 15 digits'])
    expect(textOf(bad.html)).toContain(line)
  // The text is kept.
  expect(bad.html).toContain('+44,EUR,free')
  const file = 'prefix;currency;price\n+44;EUR;0,04\n371;EUR;0,07'
  const { status, html } = await send(file, { foretell: '1' })
  expect([status, await pricesStored()]).toEqual([200, 0])
  expect(textOf(html)).toContain('The file has 2 prices in EUR: 2 new, 0 changed, 0 removed, 0 as before.')
  expect(html).toContain('371;EUR;0,07')
  expect([(await send(file)).status, await pricesStored()]).toEqual([303, 2])
  const { html: next } = await send('prefix,currency,price\n44,EUR,0.05\n49,EUR,0.08', { foretell: '1' })
  for (const change of ['+44: 0.04 EUR → 0.05 EUR.', '+49: new → 0.08 EUR.', '+371: 0.07 EUR → removed.'])
    expect(next).toContain(change)
  const check = await visitor.post('/admin/destinations/check', { number: '+371 20 000 000' })
  expect(textOf(check.html)).toContain(
    'Price of one segment, message or call Provider Prefix Price outbox +371 0.07 Prices of one segment, message or call in EUR.',
  )
})

test('a question changes nothing, also of an action that cannot answer it', async () => {
  const asked = { scope: 'server', of: 'all', period: 'day', amount: '5', stops: '1', foretell: '1' }
  expect((await visitor.post('/admin/money', asked)).status).toBe(409)
  expect(await policyOf(api).spent()).toEqual({})
})

test('a budget has its scope from a list, an amount with a comma, and a state with its forecast', async () => {
  const html = await money()
  for (const option of [
    'value="country:UZ">Uzbekistan<',
    'value="brand:acme">acme<',
    'value="app:shop">shop<',
  ])
    expect(html).toContain(option)
  const asked = { scope: 'server', of: 'all', period: 'day', alertAt: '80', stops: '1' }
  const { html: again } = await visitor.post('/admin/money', { ...asked, amount: '1,000' })
  expect(textOf(again)).toContain('without a separator of thousands, such as 250, 99.50 or 99,50.')
  expect((await visitor.post('/admin/money', { ...asked, amount: '7,50' })).status).toBe(303)
  expect(await money()).toContain('7.50 units per day')
  await api.post('/otp/send', { phone: '+37120000001' })
  expect(await money()).toContain('>ok<')
  api.advance(2 * 3600)
  await signedIn(api, visitor)
  expect(textOf(await money())).toContain('used up at 2026-01-01 19:30 UTC forecast 12 units')
  const overview = textOf((await visitor.get('/admin')).html)
  expect(overview).toContain("The server's budget will be used up at 2026-01-01 19:30")
  expect(overview).toContain('SMS are rejected from then on. To send more, set a larger amount.')
})

test('the same sum is the same figure everywhere, and 100% only if nothing is left', async () => {
  const prices = 'prefix,currency,price\n371,EUR,0.1659'
  expect((await visitor.post('/admin/money/prices', { prices })).status).toBe(303)
  await policyOf(api).budget('server', '0.50')
  const statuses = []
  for (const last of [1, 2, 3, 4]) {
    const answer = await api.post('/otp/send', { phone: `+3712000000${last}` })
    statuses.push(answer.status)
    await api.eventsOf(answer)
  }
  expect(statuses).toEqual([200, 200, 200, 429])
  const { html } = await visitor.get('/admin/money?period=7-days')
  const text = textOf(html).replaceAll('\u00a0', ' ')
  expect(text).toContain('0.4977 EUR 99%, 0.0023 EUR left')
  expect(text).toContain('exhausted SMS are rejected: less is left than a message costs')
  expect(text).toContain('by day in UTC. 0.4977 EUR')
  expect(html).toContain('data-legend="0.4977"')
  expect(text).not.toMatch(/100% of|0\.498|0\.50 EUR (?!per)|0\.49 /)
  const overview = textOf((await visitor.get('/admin')).html)
  expect(overview).toContain('0.4977 EUR of 0.50 EUR per day spent')
  api.advance(1)
  api.app.alerts.tick()
  await api.app.alerts.idle()
  expect(textOf(await money())).toContain(
    'Budget server: less is left of 0.50 EUR per day than a message costs',
  )
  // The rejected one called before the alert.
  expect(textOf((await visitor.get('/admin')).html)).toContain('1 person 0.4977 EUR')
})
