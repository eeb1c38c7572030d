import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestApp, otherThan, type TestApp } from './support/app.ts'
import { openTestDatabase, type TestDatabase } from './support/database.ts'

// The server's secret is replaced: SECRET_KEY names the new one, then the old one, until what the old one made is over.

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

/** The service on the same database as before, with other secrets; the time goes on from where it was. */
async function restart(secretKey: string, env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const now = app?.clock.now
  await app?.close()
  app = await createTestApp({ ...database.env, SECRET_KEY: secretKey, ...env })
  if (now !== undefined) app.clock.now = now
  return app
}

function verdict({ status, body }: { status: number; body: { error?: string } }): string {
  return body.error === undefined ? String(status) : `${status} ${body.error}`
}

test('a code that was sent under the old secret verifies once under both, with the guesses it has left', async () => {
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

test('limits carry over: cooldown, sends of a phone, mails of an address, wrong codes, failed credentials', async () => {
  const limits = { EMAIL_LIMIT_PER_HOUR: '2', FAILURE_BUDGET_PER_DAY: '1' }
  const before = await restart(oldKey, limits)
  await before.post('/otp/send', { phone })
  // Of one mailbox.
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

test('the cooldown of an SMS sent under the old secret holds', async () => {
  await (await restart(oldKey)).post('/otp/send', { phone })
  const after = await restart(`${newKey},${oldKey}`)
  expect(verdict(await after.post('/otp/send', { phone }))).toBe('429 cooldown_active')
})

test('what both servers know is found by one that knows the secrets in the other order', async () => {
  const first = await restart(`${oldKey},${newKey}`)
  await first.post('/otp/send', { phone })
  const code = await first.lastCode(phone)
  const second = await restart(`${newKey},${oldKey}`)
  expect(verdict(await second.post('/otp/verify', { phone, otp: otherThan(code) }))).toBe('401 mismatch')
  const third = await restart(`${oldKey},${newKey}`)
  expect(verdict(await third.post('/otp/verify', { phone, otp: code }))).toBe('200')
})

test('once the old secret is left out, what it made is unknown, and what the new one made is not', async () => {
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

test('many requests for one recipient at once move it over once, and none passes a limit', async () => {
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
