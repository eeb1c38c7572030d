import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestApp, type TestApp } from '../support/app.ts'
import { expectError, freshPhone } from '../support/rows.ts'

// The optional `reference` of send, resend and notify (design D44).

let app: TestApp
beforeAll(async () => {
  app = await createTestApp()
})
afterAll(() => app.close())

const mail = { channel: 'EMAIL', to: ['a@example.com'], subject: 'Hello', html: 'Hello' }
const operations = {
  send: ['/otp/send', () => ({ phone: freshPhone() })],
  resend: ['/otp/resend', () => ({ phone: freshPhone() })],
  'send by e-mail': ['/otp/send', () => ({ channel: 'EMAIL', email: 'a@example.com' })],
  'notify by SMS': [
    '/notify',
    () => ({ channel: 'SMS', brandId: 'acme', to: [freshPhone()], message: 'Hello' }),
  ],
  'notify by e-mail': ['/notify', () => mail],
} as const

describe.each(Object.entries(operations))('reference of %s', (_, [path, fields]) => {
  const post = (reference: unknown) => app.post(path, { ...fields(), reference })

  test('is stored in the trace', async () => {
    for (const reference of ['order 7/A', 'ü'.repeat(64), '😀'.repeat(64)]) {
      const answer = await post(reference)
      expect(answer.status).toBe(200)
      expect((await app.eventsOf(answer)).trace?.reference).toBe(reference)
    }
  })

  test('is absent without one, and if it is null', async () => {
    for (const reference of [undefined, null]) {
      const answer = await post(reference)
      expect(answer.status).toBe(200)
      expect((await app.eventsOf(answer)).trace?.reference).toBeNull()
    }
  })

  test('is rejected if it is not a text of 1 to 64 visible characters', async () => {
    for (const reference of [
      '',
      ' ',
      'a'.repeat(65),
      5,
      true,
      ['a'],
      { a: 1 },
      'a\nb',
      'a\u202eb',
      '\ud800',
    ]) {
      const answer = await post(reference)
      expectError(answer, 400, 'validation_error')
      expect(answer.body.message).toStartWith('`reference` must ')
      expect((await app.eventsOf(answer)).trace?.reference ?? null).toBeNull()
    }
  })
})
