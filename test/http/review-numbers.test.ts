import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readConfig } from '../../src/config/config.ts'
import { openContext } from '../../src/context.ts'
import { addReviewNumber, maxReviewNumbers } from '../../src/domain/operator/review-numbers.ts'
import { createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { explained } from '../support/explained.ts'
import { operate, tester } from '../support/operator.ts'
import { expectError, expectSuccess } from '../support/rows.ts'

// Design D48: numbers whose codes of a brand are one fixed code that is not sent.

const { contacts } = readConfig({})
let app: TestApp

beforeEach(async () => {
  app = await createTestApp({
    FAILURE_BUDGET_PER_DAY: '5',
    GUARD: 'deny',
    SMS_COUNTRIES: 'US',
  })
  await app.brand('globex', { displayName: 'Globex' })
})
afterEach(() => app.close())

const today = '2026-01-01'
const cooldownSeconds = 31

let phones = 100

function freshPhone(): string {
  phones += 1
  return `+12025550${phones}`
}

function ports() {
  const { context } = app.app
  return { ...context.acting(tester), brands: context.brands, contacts }
}

async function numbers() {
  return (await app.app.context.policy.rows()).reviewNumbers
}

/** A new review number, which ends with the test, and its code. */
async function review(until = today) {
  const request = { phone: freshPhone(), brand: 'acme' }
  const { code } = await addReviewNumber(ports(), { ...request, until })
  return { ...request, code, end: () => operate(app, 'review-number remove', request) }
}

async function auditOf(action: string) {
  const records = await app.app.context.audit.list({ limit: 100 })
  return records.filter((record) => record.action === action)
}

describe('a send to a review number', () => {
  test('activates the fixed code, calls no provider, and is in the audit log', async () => {
    const { phone, code, end } = await review()
    const sent = await app.post('/otp/send', { phone })
    expectSuccess(sent, ['expiresIn'])
    expect(sent.body.expiresIn).toBe(300)
    expect(await app.outbox(phone)).toEqual([])
    const [use] = await auditOf('review-number.used')
    expect(use).toMatchObject({
      target: 'acme',
      details: { operation: 'send', app: 'shop', request: sent.body.requestId },
    })
    const status = await app.post('/messages/status', { messageRequestId: sent.body.requestId })
    expect(status.body.recipients).toMatchObject([{ index: 0, status: 'accepted' }])
    const { trace, deliveries } = await app.eventsOf(sent)
    expect(deliveries).toEqual([])
    if (!trace) throw new Error('no trace')
    expect(trace.flags).toEqual(['review'])
    const lines = explained(trace, deliveries)
    expect(lines).toContain('  no provider was called')
    expect(lines.join('\n')).toContain('review number')

    const verified = await app.post('/otp/verify', { phone, otp: code })
    expectSuccess(verified)
    expect((await auditOf('review-number.used'))[0]?.details).toMatchObject({
      operation: 'verify',
      request: verified.body.requestId,
    })
    expectError(await app.post('/otp/verify', { phone, otp: code }), 404, 'not_found')

    app.advance(cooldownSeconds)
    expectSuccess(await app.post('/otp/resend', { phone }), ['expiresIn'])
    expectSuccess(await app.post('/otp/verify', { phone, otp: code }))
    expect((await auditOf('review-number.used'))[1]?.details).toMatchObject({ operation: 'resend' })
    await end()
  })

  test('counts toward no statistics of SMS', async () => {
    const before = await app.app.context.eventLog.statistics('day', app.clock.now)
    const { phone, code, end } = await review()
    await app.eventsOf(await app.post('/otp/send', { phone }))
    await app.eventsOf(await app.post('/otp/verify', { phone, otp: code }))
    const after = await app.app.context.eventLog.statistics('day', app.clock.now)
    expect(after.totals).toEqual(before.totals)
    expect(after.verifyTimes).toEqual(before.verifyTimes)
    expect(await app.app.context.eventLog.countries(app.clock.now)).toEqual([])
    await end()
  })

  test('is rejected by the cooldown, the minute, the attempts and the failure budget like any other', async () => {
    const { phone, code, end } = await review()
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
    expectError(await app.post('/otp/send', { phone }), 429, 'cooldown_active')
    const otp = otherThan(code)
    for (let guess = 0; guess < 3; guess++) {
      expectError(await app.post('/otp/verify', { phone, otp }), 401, 'mismatch')
    }
    expectError(await app.post('/otp/verify', { phone, otp: code }), 429, 'max_attempts')
    app.advance(cooldownSeconds)
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
    for (let guess = 0; guess < 2; guess++) {
      expectError(await app.post('/otp/verify', { phone, otp }), 401, 'mismatch')
    }
    expectError(await app.post('/otp/verify', { phone, otp: code }), 429, 'rate_limited')
    app.advance(cooldownSeconds)
    expectError(await app.post('/otp/send', { phone }), 429, 'rate_limited')
    await end()
  })

  test('expires after the TTL', async () => {
    const { phone, code, end } = await review()
    await app.post('/otp/send', { phone })
    app.advance(300)
    expectError(await app.post('/otp/verify', { phone, otp: code }), 404, 'not_found')
    await end()
  })

  test('is rejected where its destination is blocked', async () => {
    const request = { phone: '+447400123456', brand: 'acme' }
    await addReviewNumber(ports(), { ...request, until: today })
    expectError(await app.post('/otp/send', { phone: request.phone }), 400, 'validation_error')
    await operate(app, 'review-number remove', request)
  })

  test('repeats with its Idempotency-Key', async () => {
    const { phone, code, end } = await review()
    const headers = { 'content-type': 'application/json', 'idempotency-key': phone }
    const body = JSON.stringify({ appId: 'shop', apiKey: 'key-of-the-shop', brandId: 'acme', phone })
    const [first, again] = [
      await app.request('POST', '/otp/send', { headers, body }),
      await app.request('POST', '/otp/send', { headers, body }),
    ]
    expect([first.status, again.body]).toEqual([200, first.body])
    expectSuccess(await app.post('/otp/verify', { phone, otp: code }))
    await end()
  })
})

describe('another send is as usual', () => {
  test('of another brand, to another number, and to the number once it is removed', async () => {
    const { phone, code, end } = await review()
    const other = freshPhone()
    await app.post('/otp/send', { phone, brandId: 'globex' })
    await app.post('/otp/send', { phone: other })
    await end()
    await app.post('/otp/send', { phone })
    expect(await app.outbox(phone)).toHaveLength(2)
    expect(await app.outbox(other)).toHaveLength(1)
    const otp = await app.lastCode(phone)
    if (otp !== code) expectError(await app.post('/otp/verify', { phone, otp: code }), 401, 'mismatch')
    expectSuccess(await app.post('/otp/verify', { phone, otp }))
  })

  test('to the number after the end of its last day in UTC', async () => {
    const { phone } = await review()
    app.clock.now = Date.UTC(2026, 0, 1, 23, 59, 59)
    await app.post('/otp/send', { phone })
    expect(await app.outbox(phone)).toEqual([])
    app.clock.now = Date.UTC(2026, 0, 2, 0, 0, 30)
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
    expect(await app.outbox(phone)).toHaveLength(1)
    app.clock.now = Date.UTC(2026, 0, 1, 12)
    await operate(app, 'review-number remove', { phone, brand: 'acme' })
  })
})

describe('operators', () => {
  test('cannot add a number that verified a code that was sent to it, for 180 days', async () => {
    const phone = freshPhone()
    await app.eventsOf(await app.post('/otp/send', { phone }))
    const request = { phone: `00${phone.slice(1)}`, brand: 'globex', until: today }
    await (await review()).end()
    const verified = await app.post('/otp/verify', { phone, otp: await app.lastCode(phone) })
    await app.eventsOf(verified)
    await expect(addReviewNumber(ports(), request)).rejects.toThrow(
      'verified a code within the last 180 days',
    )
    const noon = app.clock.now
    app.clock.now += 179 * 86_400_000
    const until = new Date(app.clock.now).toISOString().slice(0, 10)
    await expect(addReviewNumber(ports(), { ...request, until })).rejects.toThrow('within the last 180 days')
    expect(await numbers()).toEqual([])
    app.clock.now += 2 * 86_400_000
    await addReviewNumber(ports(), {
      ...request,
      until: new Date(app.clock.now).toISOString().slice(0, 10),
    })
    await operate(app, 'review-number remove', request)
    app.clock.now = noon
  })

  test('add a number again after its fixed code verified', async () => {
    const { phone, code, end } = await review()
    await app.post('/otp/send', { phone })
    await app.eventsOf(await app.post('/otp/verify', { phone, otp: code }))
    await end()
    const again = { phone, brand: 'acme', until: today }
    await addReviewNumber(ports(), again)
    await operate(app, 'review-number remove', again)
  })

  test('are alerted of each added number, masked, also if a command added it', async () => {
    app.app.alerts.tick()
    await app.app.alerts.idle()
    const { phone, end } = await review()
    app.advance(5)
    app.app.alerts.tick()
    await app.app.alerts.idle()
    const [stored] = await numbers()
    const data = { phone: stored?.masked, brandId: 'acme', until: today, addedBy: tester.name }
    const [alert] = await app.app.context.alerts.latest(1)
    expect([alert?.kind, JSON.parse(alert?.text ?? '')]).toEqual(['review-number.added', data])
    expect(app.lines.filter((line) => 'addedBy' in line)).toEqual([data])
    expect(JSON.stringify([alert, app.lines])).not.toContain(phone.slice(1))
    await end()
  })

  test('add up to 10 numbers, each once for a brand; expired ones do not count', async () => {
    const all = []
    for (let number = 0; number < maxReviewNumbers; number++) all.push(await review('2026-04-01'))
    const again = { phone: all[0]?.phone ?? '', brand: 'ACME', until: today }
    await expect(addReviewNumber(ports(), again)).rejects.toThrow('already a review number')
    await expect(review()).rejects.toThrow('already 10 review numbers')
    await all.pop()?.end()
    const atOnce = await Promise.allSettled([review(), review()])
    expect(atOnce.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const noon = app.clock.now
    app.clock.now = Date.UTC(2026, 3, 2)
    const { end } = await review('2026-04-02')
    expect(await numbers()).toHaveLength(1)
    await end()
    await expect(end()).rejects.toThrow('no review number')
    app.clock.now = noon
  })

  test('the store has neither the number nor the code, and the audit log has every change', async () => {
    const { phone, code, end } = await review()
    const [stored] = await numbers()
    expect(stored?.masked).toBe(`${phone.slice(1, 3)}${'*'.repeat(phone.length - 5)}${phone.slice(-2)}`)
    expect(stored?.keyedCode).toMatch(/^[\w-]{43}$/)
    await end()
    const text = JSON.stringify([stored, await app.app.context.audit.list({ limit: 500 })])
    expect(text).not.toContain(phone.slice(1))
    expect(text).not.toContain(`"${code}"`)
    const details = { number: stored?.masked, until: today }
    expect((await auditOf('review-number.added'))[0]).toMatchObject({ target: 'acme', details })
    expect((await auditOf('review-number.removed'))[0]).toMatchObject({ target: 'acme', details })
  })

  test('forget removes the number, and the next code is sent', async () => {
    const { phone } = await review()
    await app.post('/otp/send', { phone })
    const recipient = contacts.phone(phone)
    if (!recipient) throw new Error('no phone number')
    // Beside the server, as the command.
    const command = await openContext(readConfig(app.database.env), { now: () => app.clock.now })
    const { erased } = await command.forget(recipient, tester)
    await command.close()
    expect(erased.reviewNumbers).toBe(1)
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
    expect(await app.outbox(phone)).toHaveLength(1)
  })

  test('add and remove a number in the console, which has a banner meanwhile', async () => {
    const visitor = await signedIn(app)
    const page = '/admin/review-numbers'
    expect((await visitor.get('/admin')).html).not.toContain(`href="${page}"`)
    await visitor.get(page)
    const form = { phone: '+1 202 555 0199', brand: 'acme', until: today }
    const added = await visitor.post(page, form)
    const code = /<code>(\d{6})<\/code>/.exec(added.html)?.[1]
    expect(added.html).not.toContain('12025550199')
    expectSuccess(await app.post('/otp/send', { phone: form.phone }), ['expiresIn'])
    expectSuccess(await app.post('/otp/verify', { phone: form.phone, otp: code }))
    expect((await visitor.get('/admin')).html).toContain(`<a href="${page}">`)
    const { html } = await visitor.get(page)
    expect(html).not.toContain(code)
    const subject = /name="subject" value="([^"]+)"/.exec(html)?.[1] ?? ''
    expect((await visitor.post(`${page}/remove`, { subject, brand: 'acme' })).status).toBe(303)
    expect((await visitor.get('/admin/brands')).html).not.toContain('A fixed code verifies')
    expect(await numbers()).toEqual([])
  })
})
