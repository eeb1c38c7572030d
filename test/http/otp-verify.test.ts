import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { expectError, expectRow, expectSuccess, freshEmail, freshPhone } from '../support/rows.ts'
import { colon, verifyBrands, verifyCredentials, verifyRows } from '../tables/otp-verify.ts'

let app: TestApp

beforeAll(async () => {
  app = await createTestApp({ APP_CREDENTIALS: verifyCredentials })
  for (const [slug, properties] of Object.entries(verifyBrands)) await app.brand(slug, properties)
})
afterAll(() => app.close())

/** Sends a code to a new phone. */
async function sent(fields: Readonly<Record<string, unknown>> = {}): Promise<{ phone: string; otp: string }> {
  const phone = freshPhone()
  expectSuccess(await app.post('/otp/send', { phone, ...fields }), ['expiresIn'])
  return { phone, otp: await app.lastCode(phone) }
}

const verify = (fields: Readonly<Record<string, unknown>>) => app.post('/otp/verify', fields)

describe('POST /otp/verify', () => {
  for (const row of verifyRows) {
    test(`${row.name} returns ${row.status} ${row.error}`, async () => {
      expectRow('/otp/verify', row, await verify(row.body))
    })
  }

  test('accepts the correct code once, then returns 404 not_found', async () => {
    const record = await sent()
    expectSuccess(await verify(record))
    expectError(await verify(record), 404, 'not_found')
  })

  test('accepts the correct code of a mailbox once, then returns 404 not_found', async () => {
    const email = freshEmail()
    await app.post('/otp/send', { channel: 'EMAIL', email })
    const otp = await app.lastCode(email)
    expectSuccess(await verify({ email, otp }))
    expectError(await verify({ email, otp }), 404, 'not_found')
  })

  test('returns 401 mismatch for a wrong code, and still accepts the correct one', async () => {
    const record = await sent()
    expectError(await verify({ ...record, otp: otherThan(record.otp) }), 401, 'mismatch')
    expectSuccess(await verify(record))
  })

  test('accepts the correct code on the third attempt', async () => {
    const record = await sent()
    const wrong = { ...record, otp: otherThan(record.otp) }
    expectError(await verify(wrong), 401, 'mismatch')
    expectError(await verify(wrong), 401, 'mismatch')
    expectSuccess(await verify(record))
  })

  test('returns mismatch for the third wrong code, then 429 max_attempts for any code (D1)', async () => {
    const record = await sent()
    const wrong = { ...record, otp: otherThan(record.otp) }
    for (let guess = 0; guess < 3; guess++) expectError(await verify(wrong), 401, 'mismatch')
    expectError(await verify(wrong), 429, 'max_attempts')
    expectError(await verify(record), 429, 'max_attempts')
    expectError(await verify(record), 429, 'max_attempts')
  })

  test('does not count an attempt for a request without a code to compare', async () => {
    const record = await sent()
    const { phone, otp } = record
    const invalid: readonly Readonly<Record<string, unknown>>[] = [
      { phone },
      { otp: '123456' },
      { phone, email: 'a@example.com', otp },
      { phone, otp: 123456 },
      { phone, otp: '12345' },
      { phone, otp: 'abcdef' },
      { brandId: undefined, phone, otp: otherThan(otp) },
      { brandId: 'other', phone, otp: otherThan(otp) },
      { apiKey: 'wrong', phone, otp: otherThan(otp) },
      { ...colon, phone, otp: otherThan(otp) },
    ]
    for (const fields of invalid) expect((await verify(fields)).status).toBeGreaterThanOrEqual(400)
    const wrong = { ...record, otp: otherThan(otp) }
    expectError(await verify(wrong), 401, 'mismatch')
    expectError(await verify(wrong), 401, 'mismatch')
    expectSuccess(await verify(record))
  })
})

describe('a code', () => {
  test('is valid until just before 300 seconds', async () => {
    const record = await sent()
    app.advance(299.999)
    expectSuccess(await verify(record))
  })

  test('expires at exactly 300 seconds: 404 not_found', async () => {
    const record = await sent()
    app.advance(300)
    expectError(await verify(record), 404, 'not_found')
  })

  test('does not live longer after wrong guesses', async () => {
    const record = await sent()
    app.advance(299)
    expectError(await verify({ ...record, otp: otherThan(record.otp) }), 401, 'mismatch')
    app.advance(1)
    expectError(await verify(record), 404, 'not_found')
  })

  test('does not live longer when locked: after 300 seconds verify returns not_found', async () => {
    const record = await sent()
    for (let guess = 0; guess < 3; guess++) await verify({ ...record, otp: otherThan(record.otp) })
    app.advance(299)
    expectError(await verify(record), 429, 'max_attempts')
    app.advance(1)
    expectError(await verify(record), 404, 'not_found')
  })

  test('has a Retry-After with the end of its lock', async () => {
    const record = await sent()
    app.advance(100)
    for (let guess = 0; guess < 3; guess++) await verify({ ...record, otp: otherThan(record.otp) })
    const answer = await verify(record)
    expectError(answer, 429, 'max_attempts')
    expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(200)
  })

  test('is valid for its brand only', async () => {
    const record = await sent()
    expectError(await verify({ ...record, brandId: 'other' }), 404, 'not_found')
    expectSuccess(await verify(record))
  })

  test('of one brand does not affect the code of another', async () => {
    const record = await sent()
    expectSuccess(await app.post('/otp/send', { brandId: 'other', phone: record.phone }), ['expiresIn'])
    expectSuccess(await verify(record))
    const otp = await app.lastCode(record.phone)
    expectSuccess(await verify({ brandId: 'other', phone: record.phone, otp }))
  })

  test('belongs to brand and recipient, for every app (spec 2.2)', async () => {
    const record = await sent()
    expectSuccess(await verify({ ...record, appId: 'second', apiKey: 'key-of-the-second' }))
  })

  test('of a phone is not valid for a mailbox', async () => {
    const { otp } = await sent()
    expectError(await verify({ email: freshEmail(), otp }), 404, 'not_found')
  })

  test('has six digits, including leading zeros', async () => {
    const codes: string[] = []
    for (let count = 0; count < 60; count++) codes.push((await sent()).otp)
    for (const code of codes) expect(code).toMatch(/^[0-9]{6}$/)
    expect(new Set(codes).size).toBeGreaterThan(50)
    // Sixty random codes do not all have the same first digit.
    expect(new Set(codes.map((code) => code[0])).size).toBeGreaterThan(1)
  })
})

describe('simultaneous verifies', () => {
  test('of the correct code return one 200, and 404 not_found for the others', async () => {
    const record = await sent()
    const answers = await Promise.all(Array.from({ length: 10 }, () => verify(record)))
    const successes = answers.filter(({ status }) => status === 200)
    expect(successes).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expectError(answer, 404, 'not_found')
    }
  })

  test('of wrong codes return three mismatches, and 429 max_attempts for the others', async () => {
    const record = await sent()
    const wrong = { ...record, otp: otherThan(record.otp) }
    const answers = await Promise.all(Array.from({ length: 10 }, () => verify(wrong)))
    const mismatches = answers.filter(({ status }) => status === 401)
    expect(mismatches).toHaveLength(3)
    for (const answer of mismatches) expectError(answer, 401, 'mismatch')
    for (const answer of answers.filter(({ status }) => status !== 401)) {
      expectError(answer, 429, 'max_attempts')
    }
  })
})
