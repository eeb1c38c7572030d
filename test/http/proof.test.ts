import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { calculateJwkThumbprint, createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { readConfig } from '../../src/config/config.ts'
import { addReviewNumber } from '../../src/domain/operator/review-numbers.ts'
import { createTestApp, otherThan, type TestApp, verdict } from '../support/app.ts'
import { openTestDatabase, type TestDatabase } from '../support/database.ts'
import { operate, tester } from '../support/operator.ts'

// Design D55: `proof` on verify.

const [oldKey, newKey] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']
const phone = '+1 (202) 555-0143'
const keySetPath = '/.well-known/jwks.json'

let database: TestDatabase
let app: TestApp

beforeEach(async () => {
  database = await openTestDatabase()
  app = await start()
})
afterEach(async () => {
  await app.close()
  await database.remove()
})

function start(secretKey: string = oldKey, env: Readonly<Record<string, string>> = {}) {
  return createTestApp({ ...database.env, SECRET_KEY: secretKey, ...env })
}

/** With the same database and clock. */
async function restart(...settings: Parameters<typeof start>) {
  const { now } = app.clock
  await app.close()
  app = await start(...settings)
  app.clock.now = now
}

async function sentCode(): Promise<string> {
  await app.post('/otp/send', { phone })
  return app.lastCode('12025550143')
}

function verified(fields: object, key?: string) {
  const body = { appId: 'shop', apiKey: 'key-of-the-shop', brandId: 'acme', proof: true, ...fields }
  const headers = { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) }
  return app.request('POST', '/otp/verify', { headers, body: JSON.stringify(body) })
}

async function checked(proof: string, issuer = 'otpost') {
  const { body } = await app.get(keySetPath)
  const currentDate = new Date(app.clock.now)
  const expected = { issuer, audience: 'shop', algorithms: ['EdDSA'], currentDate }
  return (await jwtVerify(proof, createLocalJWKSet(body), expected)).payload
}

describe('the proof', () => {
  test('of a code by SMS has these claims and no other', async () => {
    const { body } = await verified({ phone, otp: await sentCode() })
    const iat = app.clock.now / 1000
    expect(await checked(body.proof)).toEqual({
      iss: 'otpost',
      aud: 'shop',
      iat,
      exp: iat + 600,
      jti: body.requestId,
      brandId: 'acme',
      channel: 'SMS',
      to: '12025550143',
    })
    expect(decodeProtectedHeader(body.proof)).toEqual({
      alg: 'EdDSA',
      typ: 'JWT',
      kid: expect.stringMatching(/^[\w-]{43}$/),
    })
    app.advance(601)
    await expect(checked(body.proof)).rejects.toThrow('"exp" claim timestamp check failed')
  })

  test('of a code by e-mail has the e-mail address in its normal form, and PUBLIC_URL as issuer', async () => {
    await restart(oldKey, { PUBLIC_URL: 'https://otp.example.com/base/' })
    await app.post('/otp/send', { channel: 'EMAIL', email: 'pat@example.com' })
    const otp = await app.lastCode('pat@example.com')
    const { body } = await verified({ email: 'Pat@Example.com', otp })
    const claims = await checked(body.proof, 'https://otp.example.com/base')
    expect(claims).toMatchObject({ channel: 'EMAIL', to: 'pat@example.com' })
  })

  test.each([undefined, null, false])('is absent with proof: %p', async (proof) => {
    const { status, body } = await verified({ phone, otp: await sentCode(), proof })
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['message', 'requestId', 'success'])
  })

  test.each(['true', 1, 0, {}])('%p is no value of the field, and consumes no code', async (proof) => {
    const otp = await sentCode()
    const { status, body } = await verified({ phone, otp, proof })
    expect({ status, ...body }).toMatchObject({
      status: 400,
      error: 'validation_error',
      reason: 'field',
      field: 'proof',
    })
    expect(verdict(await verified({ phone, otp }))).toBe('200')
  })

  test('is only of a right code', async () => {
    const otp = await sentCode()
    for (const expected of ['401 mismatch', '401 mismatch', '401 mismatch', '429 max_attempts']) {
      const answer = await verified({ phone, otp: otherThan(otp) }, `key-${crypto.randomUUID()}`)
      expect(verdict(answer)).toBe(expected)
      expect(answer.body).not.toHaveProperty('proof')
    }
    const late = await verified({ phone, otp })
    expect(verdict(late)).toBe('429 max_attempts')
    expect(late.body).not.toHaveProperty('proof')
  })

  test('of a code for a purpose and a transaction has both in the form that is compared, and is of no other', async () => {
    const transaction = { amount: '10', currency: 'EUR', payee: 'City Water' }
    await app.post('/otp/send', { phone, purpose: 'payment', transaction })
    const right = { phone, otp: await app.lastCode('12025550143'), purpose: 'payment', transaction }
    for (const other of [{ purpose: 'login' }, { transaction: { ...transaction, amount: '10.01' } }]) {
      const { body } = await verified({ ...right, ...other })
      expect(body.error).toBe('mismatch')
      expect(body).not.toHaveProperty('proof')
    }
    const equal = { ...transaction, amount: '010.0', currency: 'eur' }
    const { body } = await verified({ ...right, transaction: equal })
    expect(await checked(body.proof)).toMatchObject({ purpose: 'payment', transaction })
  })

  test('of a fixed code says that it is of a review number, also when the answer is repeated without that number', async () => {
    const { context } = app.app
    const ports = { ...context.acting(tester), brands: context.brands, contacts: readConfig({}).contacts }
    const about = { phone, brand: 'acme' }
    const { code: otp } = await addReviewNumber(ports, { ...about, until: '2026-01-02' })
    await app.post('/otp/send', { phone })
    const first = await verified({ phone, otp }, 'k')
    expect(await checked(first.body.proof)).toMatchObject({ review: true })
    await operate(app, 'review-number remove', about)
    expect((await verified({ phone, otp }, 'k')).body).toEqual(first.body)
  })
})

test('without PUBLIC_URL, the first proof logs a warning, and the statistics have the last one', async () => {
  const unnamed = async () => {
    const { unnamedProofAt } = await app.app.context.eventLog.statistics('hour', app.clock.now)
    return { unnamedProofAt, logged: app.lines.filter((line) => 'setting' in line) }
  }
  await verified({ phone, otp: await sentCode(), proof: false })
  expect(await unnamed()).toEqual({ unnamedProofAt: null, logged: [] })
  for (const seconds of [31, 62]) {
    app.advance(seconds)
    expect(verdict(await verified({ phone, otp: await sentCode() }))).toBe('200')
  }
  const logged = [{ setting: 'PUBLIC_URL' }]
  expect(await unnamed()).toEqual({ unnamedProofAt: Math.floor(app.clock.now / 60_000) * 60_000, logged })
  await restart(oldKey, { PUBLIC_URL: 'https://otp.example.com' })
  app.advance(3600)
  await verified({ phone, otp: await sentCode() })
  expect(await unnamed()).toEqual({ unnamedProofAt: null, logged: [] })
})

describe('with a fault', () => {
  test.each(['guess', 'keyId'] as const)(
    'before the guess is stored (%s), there is no proof, and the code stays valid',
    async (step) => {
      const otp = await sentCode()
      const { end } = fault(step)
      const failed = await verified({ phone, otp }, 'k')
      expect(verdict(failed)).toBe('500 internal_error')
      expect(failed.body).not.toHaveProperty('proof')
      end()
      expect(await checked((await verified({ phone, otp }, 'k')).body.proof)).toMatchObject({ aud: 'shop' })
    },
  )

  test('of the signature, the answer is an error, and a repetition has the proof', async () => {
    const otp = await sentCode()
    const { end } = fault('sign')
    expect(verdict(await verified({ phone, otp }, 'k'))).toBe('500 internal_error')
    end()
    expect(await checked((await verified({ phone, otp }, 'k')).body.proof)).toMatchObject({ aud: 'shop' })
  })

  function fault(step: 'guess' | 'keyId' | 'sign') {
    const { store, proofs } = app.app.context
    const target = step === 'guess' ? store : proofs
    const before = { ...target }
    Object.assign(target, { [step]: () => Promise.reject(new Error('a fault of this test')) })
    return { end: () => Object.assign(target, before) }
  }
})

describe('a repetition with the same Idempotency-Key', () => {
  test('has the same proof, at a later time and after each step of a rotation', async () => {
    await restart(`${oldKey},${newKey}`)
    const otp = await sentCode()
    const first = await verified({ phone, otp }, 'k')
    expect(verdict(first)).toBe('200')
    for (const keys of [`${oldKey},${newKey}`, `${newKey},${oldKey}`]) {
      await restart(keys, { PUBLIC_URL: 'https://moved.example.com' })
      app.advance(90)
      const again = await verified({ phone, otp }, 'k')
      expect(again.body).toEqual(first.body)
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(await checked(again.body.proof)).toMatchObject({ jti: first.body.requestId })
    }
  })

  test('of a wrong code has none, and one without proof is another request', async () => {
    const otp = await sentCode()
    const wrong = { phone, otp: otherThan(otp) }
    for (const _ of [1, 2]) {
      const { body } = await verified(wrong, 'wrong')
      expect(body.error).toBe('mismatch')
      expect(body).not.toHaveProperty('proof')
    }
    expect(verdict(await verified({ phone, otp, proof: false }, 'k'))).toBe('200')
    expect(verdict(await verified({ phone, otp }, 'k'))).toBe('422 idempotency_key_reused')
  })

  test('finds neither the recipient nor the code nor the proof in the database', async () => {
    const otp = await sentCode()
    const { body } = await verified({ phone, otp }, 'k')
    const { context } = app.app
    const row = await context.idempotencyKeys.find(
      context.secrets.subjects('idempotency-key', JSON.stringify(['shop', 'verify', 'k'])),
    )
    const { kid } = decodeProtectedHeader(body.proof)
    expect(JSON.parse(row?.answer ?? '')).toEqual({
      stamp: { iat: decodeJwt(body.proof).iat, keyId: kid, iss: 'otpost' },
    })
    expect(JSON.stringify(app.lines)).not.toContain(body.proof)
  })
})

describe('the public keys', () => {
  test('are one for each secret key, the present one first, with the thumbprint as ID and no private part', async () => {
    const [before] = (await app.get(keySetPath)).body.keys
    const { body } = await verified({ phone, otp: await sentCode() })
    await restart(`${newKey},${oldKey}`)
    const { keys } = (await app.get(keySetPath)).body
    expect(keys).toEqual([expect.anything(), before])
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x'])
      expect(key.kid).toBe(await calculateJwkThumbprint(key))
    }
    expect(await checked(body.proof)).toMatchObject({ to: '12025550143' })
    app.advance(31)
    const next = await verified({ phone, otp: await sentCode() })
    expect(decodeProtectedHeader(next.body.proof).kid).toBe(keys[0].kid)
    await restart(newKey)
    await expect(checked(body.proof)).rejects.toThrow('no applicable key found')
  })

  test('may be cached for 5 minutes, and need no credentials', async () => {
    const { status, headers } = await app.get(keySetPath)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toStartWith('application/json')
    expect(headers.get('cache-control')).toBe('public, max-age=300')
    expect((await app.request('POST', keySetPath)).status).toBe(405)
  })
})
