import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { dayMs, periodOf } from '../../src/domain/ground/time.ts'
import { type Answer, createTestApp, type TestApp } from '../support/app.ts'
import { policyOf } from '../support/policy.ts'
import {
  startTelegramGateway,
  type TelegramMessage,
  telegramEnv,
  telegramReport,
  telegramSigned,
} from '../support/telegram-gateway.ts'

// What a message cost is given back when Telegram reports that it did not deliver and refunds it.

const publicUrl = 'https://otp.example'
/** Latvia costs 2 units. */
const phone = '37120000001'

let gateway: ReturnType<typeof startTelegramGateway>
let api: TestApp
let operate: ReturnType<typeof policyOf>

beforeEach(async () => {
  gateway = startTelegramGateway()
  api = await createTestApp({
    ...telegramEnv(gateway.url),
    LADDER: 'telegram',
    PUBLIC_URL: publicUrl,
    GUARD: 'off',
  })
  operate = policyOf(api)
})

afterEach(async () => {
  expect(gateway.problems).toEqual([])
  await api.close()
  await gateway.stop()
})

async function sent(): Promise<TelegramMessage> {
  expect((await api.post('/otp/send', { phone })).status).toBe(200)
  const message = gateway.messages.at(-1)
  if (!message) throw new Error('nothing was sent')
  return message
}

async function report(message: TelegramMessage, status: string, more: object = {}): Promise<Answer> {
  const path = message.callback_url?.slice(publicUrl.length) ?? ''
  const signed = telegramSigned(telegramReport(message, status, more), api.clock.now)
  return api.request('POST', path, signed)
}

/** In thousandths: of the budgets, and of the statistics of today. */
async function spent(): Promise<Readonly<Record<string, number>>> {
  // A request is counted in the turn after its answer.
  await new Promise((resolve) => setImmediate(resolve))
  const { start, end } = periodOf('day', api.clock.now)
  const rows = await api.app.context.eventLog.spending(start, end)
  const statistics = rows.reduce((sum, { micros }) => sum + micros / 1000, 0)
  return { ...(await operate.spent()), statistics }
}

describe('a message that expired', () => {
  test('is given back to each of its budgets and in the statistics, once', async () => {
    for (const scope of ['server', 'brand:acme', 'app:shop', 'country:LV']) await operate.budget(scope, '4')
    await operate.budget('country:GB', '4')
    const first = await sent()
    api.advance(60)
    const second = await sent()
    const own = { server: 4000, 'brand:acme': 4000, 'app:shop': 4000, 'country:LV': 4000, 'country:GB': 0 }
    expect(await spent()).toEqual({ ...own, statistics: 4000 })
    expect((await report(first, 'sent')).status).toBe(200)
    expect(await spent()).toEqual({ ...own, statistics: 4000 })
    const half = { server: 2000, 'brand:acme': 2000, 'app:shop': 2000, 'country:LV': 2000, 'country:GB': 0 }
    for (const _ of ['the report', 'its repetition']) {
      expect((await report(first, 'expired', { is_refunded: true })).status).toBe(200)
      expect(await spent()).toEqual({ ...half, statistics: 2000 })
    }
    await report(second, 'delivered')
    await report(second, 'expired')
    expect(await spent()).toEqual({ ...half, statistics: 2000 })
    api.advance(60)
    await sent()
  })

  test('is given back to the budget of each country', async () => {
    await operate.budget('country:*', '2')
    const message = await sent()
    await report(message, 'expired')
    api.advance(60)
    await sent()
    api.advance(60)
    expect((await api.post('/otp/send', { phone })).status).toBe(429)
  })

  test('that was not refunded is not given back', async () => {
    await operate.budget('server', '4')
    const message = await sent()
    await report(message, 'revoked')
    expect(await spent()).toEqual({ server: 2000, statistics: 2000 })
  })

  test('is given back only while the period of its budget lasts', async () => {
    await operate.budget('server', '4')
    await operate.budget('brand:acme', '4', { period: 'month' })
    api.clock.now = periodOf('day', api.clock.now).end - 1000
    const message = await sent()
    api.advance(60)
    await sent()
    expect((await report(message, 'expired')).status).toBe(200)
    expect(await spent()).toEqual({ server: 2000, 'brand:acme': 2000, statistics: 2000 })
    const yesterday = periodOf('day', api.clock.now - dayMs)
    const rows = await api.app.context.eventLog.spending(yesterday.start, yesterday.end)
    expect(rows.reduce((sum, { micros }) => sum + micros, 0)).toBe(0)
  })

  test('is not given back to a budget that began later', async () => {
    const message = await sent()
    api.advance(60)
    await operate.budget('server', '4')
    await sent()
    await report(message, 'expired')
    expect(await spent()).toEqual({ server: 2000, statistics: 2000 })
  })

  test('with a forged report is not given back', async () => {
    await operate.budget('server', '4')
    const message = await sent()
    const path = message.callback_url?.slice(publicUrl.length) ?? ''
    const forged = telegramSigned(telegramReport(message, 'expired'), api.clock.now, 'another')
    expect((await api.request('POST', path, forged)).status).toBe(403)
    const old = telegramSigned(telegramReport(message, 'expired'), api.clock.now - 301_000)
    expect((await api.request('POST', path, old)).status).toBe(403)
    expect(await spent()).toEqual({ server: 2000, statistics: 2000 })
  })
})
