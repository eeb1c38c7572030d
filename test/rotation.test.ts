import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readConfig } from '../src/config/config.ts'
import { queueRetry } from '../src/domain/operator/queue.ts'
import { addReviewNumber } from '../src/domain/operator/review-numbers.ts'
import { createTestApp, otherThan, type TestApp, verdict } from './support/app.ts'
import { openTestDatabase, type TestDatabase } from './support/database.ts'
import { operate, tester } from './support/operator.ts'

// Rotation of the secret key: SECRET_KEY has the new key, then the previous key, until all records of the
// previous key have expired.

const [oldKey, newKey] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']
const phone = '12025550143'
const email = 'ann@example.com'

let database: TestDatabase
let app: TestApp | undefined

beforeEach(async () => {
  database = await openTestDatabase()
})
afterEach(async () => {
  await app?.close()
  app = undefined
  await database.remove()
})

/** The service with the same database and other secret keys; its clock continues. */
async function restart(secretKey: string, env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const now = app?.clock.now
  await app?.close()
  app = await createTestApp({ ...database.env, SECRET_KEY: secretKey, ...env })
  if (now !== undefined) app.clock.now = now
  return app
}

test('a code sent with the previous key verifies once with both keys, with its remaining attempts', async () => {
  const before = await restart(oldKey)
  await before.post('/otp/send', { phone })
  const code = await before.lastCode(phone)
  const wrong = { phone, otp: otherThan(code) }
  expect(verdict(await before.post('/otp/verify', wrong))).toBe('401 mismatch')
  const after = await restart(`${newKey},${oldKey}`)
  expect(verdict(await after.post('/otp/verify', wrong))).toBe('401 mismatch')
  expect(verdict(await after.post('/otp/verify', { phone, otp: code }))).toBe('200')
  expect(verdict(await after.post('/otp/verify', { phone, otp: code }))).toBe('404 not_found')
})

test('limits carry over: cooldown, sends of a phone, mails of a mailbox, wrong codes, failed authentication', async () => {
  const limits = { EMAIL_LIMIT_PER_HOUR: '2', FAILURE_BUDGET_PER_DAY: '1' }
  const before = await restart(oldKey, limits)
  await before.post('/otp/send', { phone })
  // Both are of one mailbox.
  for (const address of [email.replace('@', '+tag@'), email]) {
    await before.post('/otp/send', { channel: 'EMAIL', email: address })
  }
  await before.post('/otp/verify', { email, otp: otherThan(await before.lastCode(email)) })
  await Promise.all(Array.from({ length: 300 }, () => before.post('/otp/send', { phone, apiKey: 'wrong' })))

  const refused = await restart(`${newKey},${oldKey}`, limits)
  expect(verdict(await refused.post('/otp/send', { phone, apiKey: 'wrong' }))).toBe('429 rate_limited')
  refused.advance(61)
  await refused.brand('globex')
  for (const _ of [1, 2]) {
    expect(verdict(await refused.post('/otp/send', { phone, brandId: 'globex' }))).toBe('200')
    refused.advance(31)
  }
  const mail = { channel: 'EMAIL', email: email.replace('@', '+other@') }
  expect(verdict(await refused.post('/otp/send', mail))).toBe('429 rate_limited')
  expect(verdict(await refused.post('/otp/verify', { email, otp: '123456' }))).toBe('429 rate_limited')
})

test('the cooldown of an SMS sent with the previous key still applies', async () => {
  await (await restart(oldKey)).post('/otp/send', { phone })
  const after = await restart(`${newKey},${oldKey}`)
  expect(verdict(await after.post('/otp/send', { phone }))).toBe('429 cooldown_active')
})

test('records of both keys are found by a server with the keys in the other order', async () => {
  const first = await restart(`${oldKey},${newKey}`)
  await first.post('/otp/send', { phone })
  const code = await first.lastCode(phone)
  const second = await restart(`${newKey},${oldKey}`)
  expect(verdict(await second.post('/otp/verify', { phone, otp: otherThan(code) }))).toBe('401 mismatch')
  const third = await restart(`${oldKey},${newKey}`)
  expect(verdict(await third.post('/otp/verify', { phone, otp: code }))).toBe('200')
})

test('without the previous key, its records are unknown, and those of the new key are found', async () => {
  const before = await restart(oldKey)
  await before.post('/otp/send', { phone })
  const old = await before.lastCode(phone)
  const during = await restart(`${newKey},${oldKey}`)
  await during.post('/otp/send', { channel: 'EMAIL', email })
  const fresh = await during.lastCode(email)
  const after = await restart(newKey)
  expect(verdict(await after.post('/otp/verify', { phone, otp: old }))).toBe('404 not_found')
  expect(verdict(await after.post('/otp/verify', { email, otp: fresh }))).toBe('200')
})

test('simultaneous requests for one recipient rekey it once, and do not exceed a limit', async () => {
  const before = await restart(oldKey)
  await before.post('/otp/send', { phone })
  const code = await before.lastCode(phone)
  const after = await restart(`${newKey},${oldKey}`)
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => after.post('/otp/verify', { phone, otp: code })),
  )
  const verdicts = answers.map(verdict)
  expect(verdicts.filter((each) => each === '200')).toHaveLength(1)
  expect(verdicts.filter((each) => each === '404 not_found')).toHaveLength(19)
})

test('a review number keeps its code while its secret key is listed, and can then be removed', async () => {
  const { contacts } = readConfig({})
  const ports = ({ app: { context } }: TestApp) => ({
    ...context.acting(tester),
    brands: context.brands,
    contacts,
  })
  const request = { phone, brand: 'acme', until: '2026-01-01' }
  const before = await restart(oldKey)
  const { code } = await addReviewNumber(ports(before), request)
  const second = { ...request, phone: '+1 202 555 0199' }
  await addReviewNumber(ports(before), second)
  const after = await restart(`${newKey},${oldKey}`)
  expect(verdict(await after.post('/otp/send', { phone }))).toBe('200')
  expect(await after.outbox(phone)).toEqual([])
  expect(verdict(await after.post('/otp/verify', { phone, otp: code }))).toBe('200')
  await expect(addReviewNumber(ports(after), request)).rejects.toThrow('already a review number')
  await operate(after, 'review-number remove', request)
  after.advance(31)
  expect(verdict(await after.post('/otp/send', { phone }))).toBe('200')
  expect(await after.outbox(phone)).toHaveLength(1)
  const later = await restart(newKey)
  const problem = /no review number of brand acme\. .* was added under another secret key\. The console can/
  await expect(operate(later, 'review-number remove', second)).rejects.toThrow(problem)
})

test('a queued notification opens with the previous key, fails without it, and can be retried when it is back', async () => {
  const notify = { channel: 'SMS', brandId: 'acme', to: [phone], message: 'Your order is ready', async: true }
  const refusing = {
    SMS_PLAIN: 'webhook',
    SMS_WEBHOOK_URL: 'http://127.0.0.1:1',
    SMS_WEBHOOK_SECRET: 'whsec_a2V5IG9mIHRoZSB3ZWJob29rLCAzMiBieXRlcy4u',
  }
  const tried = async ({ app: { queue, context } }: TestApp) => {
    queue.tick()
    await queue.idle()
    return (await context.jobs.list({ limit: 10 })).map(({ state, tries }) => `${state} ${tries}`)
  }
  const before = await restart(oldKey, refusing)
  const { body } = await before.post('/notify', notify)
  expect(await tried(before)).toEqual(['queued 1'])
  before.advance(5)
  expect(await tried(await restart(`${newKey},${oldKey}`, refusing))).toEqual(['queued 2'])
  const without = await restart(newKey)
  without.advance(10)
  expect(await tried(without)).toEqual(['failed 3'])
  const [job] = await without.app.context.jobs.list({ limit: 1 })
  expect(job?.reason).toBe('cannot be decrypted')
  const after = await restart(`${newKey},${oldKey}`)
  const { jobs, acting } = after.app.context
  expect(
    await queueRetry.run({ ...acting(tester), jobs }, { requestId: body.requestId, unknown: false }),
  ).toBe(1)
  expect(await tried(after)).toEqual([])
  expect(await after.outbox(phone)).toMatchObject([{ text: notify.message }])
})
