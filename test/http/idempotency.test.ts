import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { issueApp, rotateApp } from '../../src/domain/operator/apps.ts'
import { processOwner } from '../../src/process-owner.ts'
import {
  type Answer,
  codeIn,
  createTestApp,
  credentials,
  otherThan,
  type TestApp,
  verdict,
} from '../support/app.ts'
import { openTestDatabase } from '../support/database.ts'
import { explained } from '../support/explained.ts'
import { tester } from '../support/operator.ts'
import { freshEmail, freshPhone, logged } from '../support/rows.ts'

// Idempotency-Key (design D43).

let app: TestApp
let sent: Sms[]
let outcome: (sms: Sms) => Outcome | Promise<Outcome>

beforeEach(() => {
  sent = []
  outcome = () => ({ kind: 'accepted' })
})
afterEach(() => app.close())

const gateway = {
  name: 'gateway',
  send: async (sms: Sms) => {
    sent.push(sms)
    return outcome(sms)
  },
}

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  app = await createTestApp(
    { APP_CREDENTIALS: JSON.stringify({ shop: 'key-of-the-shop', cafe: 'key-of-the-cafe' }), ...env },
    { phoneRoutes: { plain: [gateway] } },
  )
}

type Fields = Readonly<Record<string, unknown>>

function post(path: string, fields: Fields, key: string | readonly string[] = 'key-1'): Promise<Answer> {
  const brand = path.startsWith('/otp/') ? { brandId: 'acme' } : {}
  const headers = new Headers({ 'content-type': 'application/json' })
  for (const each of [key].flat()) headers.append('idempotency-key', each)
  return app.request('POST', path, { headers, body: JSON.stringify({ ...credentials, ...brand, ...fields }) })
}

const notifySms = (phone: string) => ({ channel: 'SMS', brandId: 'acme', to: [phone], message: 'Hello' })
const notifyMail = (email: string) => ({ channel: 'EMAIL', to: [email], subject: 'Hello', template: 'Hello' })

/** A delivery that waits until it is released. */
function heldDelivery() {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<Outcome>()
  outcome = () => {
    begun.resolve()
    return end.promise
  }
  return { begun: begun.promise, end: end.resolve }
}

function expectReplay(answer: Answer, first: Answer, fields: Fields = {}): void {
  expect(answer.body).toEqual({ ...first.body, ...fields })
  expect(answer.status).toBe(first.status)
  expect(answer.headers.get('idempotency-replayed')).toBe('true')
  expect(answer.headers.get('x-request-id')).not.toBe(first.body.requestId)
  expect(first.headers.has('idempotency-replayed')).toBe(false)
}

describe('a repeated request', () => {
  test.each(['/otp/send', '/otp/resend'])('%s gets the first answer until the code expires', async (path) => {
    await start({ PHONE_LIMIT_PER_MINUTE: '1', PHONE_LIMIT_PER_HOUR: '1', GLOBAL_LIMIT_PER_MINUTE: '1' })
    const request = { phone: freshPhone() }
    const first = await post(path, request)
    expect(first.body.expiresIn).toBe(300)
    expectReplay(await post(path, request), first)
    app.advance(10.5)
    expectReplay(await post(path, request), first, { expiresIn: 290 })
    app.advance(289.4)
    expectReplay(await post(path, request), first, { expiresIn: 1 })
    expect(sent).toHaveLength(1)
    app.advance(0.1)
    expect(verdict(await post(path, request))).toBe('429 rate_limited')
    app.advance(3600)
    expect(verdict(await post(path, request))).toBe('200')
    expect(sent).toHaveLength(2)
  })

  test('of /notify gets the first answer for 24 hours', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '2' })
    const [sms, mail] = [notifySms(freshPhone()), notifyMail(freshEmail())]
    const first = [await post('/notify', sms, 'a'), await post('/notify', mail, 'b')] as const
    expect(first.map(verdict)).toEqual(['200', '200'])
    expectReplay(await post('/notify', sms, 'a'), first[0])
    app.advance(86_399)
    expectReplay(await post('/notify', sms, 'a'), first[0])
    expectReplay(await post('/notify', mail, 'b'), first[1])
    expect(sent).toHaveLength(1)
    app.advance(1)
    const next = await post('/notify', sms, 'a')
    expect(next.headers.has('idempotency-replayed')).toBe(false)
    expect(sent).toHaveLength(2)
  })

  test('repeats a failure of /notify after its claims, and of nothing else', async () => {
    await start()
    outcome = () => ({ kind: 'retryable', reason: 'HTTP 503' })
    const request = notifySms(freshPhone())
    const first = await post('/notify', request)
    expect(verdict(first)).toBe('500 notification_failed')
    outcome = () => ({ kind: 'accepted' })
    expectReplay(await post('/notify', request), first)
    expect(sent).toHaveLength(1)

    const mail = notifyMail(freshEmail())
    const { bySlug } = app.app.context.brands
    Object.assign(app.app.context.brands, { bySlug: () => Promise.reject(new Error('no brands')) })
    const fault = await post('/notify', { ...mail, brandId: 'acme' }, 'fault')
    Object.assign(app.app.context.brands, { bySlug })
    expect(verdict(fault)).toBe('500 internal_error')
    expect(verdict(await post('/notify', { ...mail, brandId: 'acme' }, 'fault'))).toBe('200')
  })

  test('is one with the same JSON, with another API key, order of fields and place of credentials', async () => {
    await start()
    const acting = app.app.context.acting(tester)
    const { key } = await issueApp(acting, 'site')
    const second = await rotateApp(acting, 'site')
    const to = [freshEmail()]
    const data = { b: [1, { d: 1, c: null }], a: 'é' }
    const first = { appId: 'site', apiKey: key, channel: 'EMAIL', to, subject: 'x', template: '{{a}}', data }
    const again = {
      data: { a: 'é', b: [1, { c: null, d: 1 }] },
      template: '{{a}}',
      subject: 'x',
      to,
      channel: 'EMAIL',
      apiKey: second,
      appId: 'site',
    }
    const answer = await post('/notify', first)
    expect(verdict(answer)).toBe('200')
    expectReplay(await post('/notify', again), answer)
    const { apiKey: _, appId: __, ...bare } = again
    for (const authorization of [`Bearer ${key}`, `Basic ${btoa(`site:${second}`)}`]) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': 'key-1', authorization }
      for (const body of [bare, { ...bare, appId: 'site' }])
        expectReplay(await app.request('POST', '/notify', { headers, body: JSON.stringify(body) }), answer)
    }
    for (const other of [
      { ...again, data: { ...data, a: 'e' } },
      { ...again, reference: 'x' },
      { ...again, data: { ...data, b: [{ d: 1, c: null }, 1] } },
    ]) {
      expect(verdict(await post('/notify', other))).toBe('422 idempotency_key_reused')
    }
  })

  test('is another request with another app, path or key', async () => {
    await start()
    const request = { channel: 'EMAIL', email: freshEmail() }
    const cafe = { appId: 'cafe', apiKey: 'key-of-the-cafe' }
    const answers = [
      await post('/otp/send', request),
      await post('/otp/send', { ...request, ...cafe }),
      await post('/otp/resend', request),
      await post('/otp/send', request, 'key-2'),
      await post('/otp/send', request, 'KEY-1'),
    ]
    expect(answers.map(verdict)).toEqual(['200', '200', '200', '200', '200'])
    expect(answers.filter(({ headers }) => headers.has('idempotency-replayed'))).toEqual([])
  })

  test('is not carried out while the first is in progress', async () => {
    await start()
    const request = { phone: freshPhone() }
    const delivery = heldDelivery()
    const first = post('/otp/send', request)
    await delivery.begun
    const second = await post('/otp/send', request)
    expect(verdict(second)).toBe('409 idempotency_in_progress')
    expect(second.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(verdict(await post('/otp/send', { phone: freshPhone() }))).toBe('422 idempotency_key_reused')
    delivery.end({ kind: 'accepted' })
    const answer = await first
    expectReplay(await post('/otp/send', request), answer)
    expect(sent).toHaveLength(1)
  })

  test.each(['/otp/send', '/notify'])(
    '30 parallel requests %s with one key send one message',
    async (path) => {
      await start()
      const phone = freshPhone()
      const request = path === '/notify' ? notifySms(phone) : { phone }
      const answers = await Promise.all(Array.from({ length: 30 }, () => post(path, request)))
      expect(sent).toHaveLength(1)
      const isReplay = ({ headers }: Answer) => headers.has('idempotency-replayed')
      const first = answers.filter((answer) => answer.status === 200 && !isReplay(answer))
      expect(first).toHaveLength(1)
      for (const answer of answers) {
        if (!first.includes(answer) && !isReplay(answer))
          expect(verdict(answer)).toBe('409 idempotency_in_progress')
      }
    },
  )
})

describe('a key is free again', () => {
  test('after failures of send, and its limits are those of a request without a key', async () => {
    await start({ PHONE_LIMIT_PER_HOUR: '2' })
    const request = { phone: freshPhone() }
    expect(verdict(await post('/otp/send', { phone: 'x' }))).toBe('400 validation_error')
    outcome = () => ({ kind: 'retryable', reason: 'HTTP 503' })
    expect(verdict(await post('/otp/send', request))).toBe('502 sms_failed')
    const { store } = app.app.context
    const { abandonSend } = store
    Object.assign(store, { abandonSend: () => Promise.reject(new Error('no database')) })
    const fault = { phone: freshPhone() }
    expect(verdict(await post('/otp/send', fault, 'fault'))).toBe('500 internal_error')
    Object.assign(store, { abandonSend })
    outcome = () => ({ kind: 'accepted' })
    expect(verdict(await post('/otp/send', request))).toBe('200')
    expect(verdict(await post('/otp/send', { phone: freshPhone() }, 'fault'))).toBe('200')
    expect(verdict(await post('/otp/resend', request))).toBe('429 cooldown_active')
    app.advance(30)
    expect(verdict(await post('/otp/resend', request))).toBe('200')
  })

  test('after 4xx of /notify, also after its global claim', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '3' })
    const mail = notifyMail(freshEmail())
    expect(verdict(await post('/notify', { ...mail, subject: '' }))).toBe('400 validation_error')
    expect(verdict(await post('/notify', { ...mail, template: '{{x}}' }))).toBe('400 missing_variable')
    expect(verdict(await post('/notify', mail))).toBe('200')
    expect(verdict(await post('/notify', mail, 'key-2'))).toBe('429 rate_limited')
    app.advance(60)
    expect(verdict(await post('/notify', mail, 'key-2'))).toBe('200')
  })

  test('after a claim whose answer from the database was lost', async () => {
    await start()
    const { store } = app.app.context
    const { beginSend } = store
    Object.assign(store, {
      beginSend: async (...step: Parameters<typeof beginSend>) => {
        await beginSend(...step)
        throw new Error('the connection was lost')
      },
    })
    const request = { channel: 'EMAIL', email: freshEmail() }
    expect(verdict(await post('/otp/send', request))).toBe('500 internal_error')
    Object.assign(store, { beginSend })
    expect(verdict(await post('/otp/send', request))).toBe('200')
  })

  test('when the process that used it has ended', async () => {
    await start()
    const request = notifySms(freshPhone())
    const own = processOwner()
    const others = [`${own.split(' ')[0]} 999999999 1`, own, own.replace(/^[^/]*/, 'elsewhere')]
    for (const [index, owner] of others.entries()) {
      const again = () => post('/notify', request, `key-${index}`)
      const delivery = heldDelivery()
      const first = again()
      await delivery.begun
      await app.database.query(`UPDATE idempotency_keys SET owner = '${owner}' WHERE status IS NULL`)
      outcome = () => ({ kind: 'accepted' })
      const isEnded = index === 0
      expect(verdict(await again())).toBe(isEnded ? '200' : '409 idempotency_in_progress')
      // Longer than twice the longest request.
      app.advance(2 * 13 * 8)
      const second = await again()
      expect(verdict(second)).toBe('200')
      expect(second.headers.has('idempotency-replayed')).toBe(isEnded)
      // The answer of the first does not replace that of the second.
      delivery.end({ kind: 'accepted' })
      await first
      expect((await again()).body.requestId).toBe(second.body.requestId)
    }
  })

  test('with its expiry, and its row is deleted', async () => {
    await start()
    const rows = () => app.database.query('SELECT hash FROM idempotency_keys')
    await post('/otp/send', { phone: freshPhone() })
    expect(await rows()).toHaveLength(1)
    app.advance(300)
    await app.app.context.sweep({ eventLog: 30, audit: 30, requests: 30 })
    expect(await rows()).toEqual([])
  })
})

describe('a repeated verify', () => {
  const settings = { METRICS_TOKEN: 'token', FAILURE_BUDGET_PER_DAY: '2' }

  /** Sends a code, and returns requests with the right code and with a wrong one. */
  async function sendCode(): Promise<{ readonly right: Fields; readonly wrong: Fields }> {
    const phone = freshPhone()
    expect(verdict(await post('/otp/send', { phone }, `send-${phone}`))).toBe('200')
    const otp = codeIn(sent.at(-1)?.text)
    return { right: { phone, otp }, wrong: { phone, otp: otherThan(otp) } }
  }

  test('gets the first answer for 10 minutes, and counts no attempt, limit or success', async () => {
    await start({ ...settings, GLOBAL_LIMIT_PER_MINUTE: '3' })
    const { right, wrong } = await sendCode()
    const mismatch = await post('/otp/verify', wrong, 'a')
    expect(verdict(mismatch)).toBe('401 mismatch')
    for (let time = 0; time < 5; time++) expectReplay(await post('/otp/verify', wrong, 'a'), mismatch)
    const success = await post('/otp/verify', right, 'b')
    expect(verdict(success)).toBe('200')
    expectReplay(await post('/otp/verify', right, 'b'), success)
    expect(verdict(await post('/otp/verify', right, 'c'))).toBe('429 rate_limited')

    app.advance(599)
    expectReplay(await post('/otp/verify', right, 'b'), success)
    expectReplay(await post('/otp/verify', wrong, 'a'), mismatch)
    app.advance(1)
    expect(verdict(await post('/otp/verify', right, 'b'))).toBe('404 not_found')
    const { totals } = await app.app.context.eventLog.statistics('hour', app.clock.now)
    expect(totals).toMatchObject({ verified: 1 })
    const { body } = await app.request('GET', '/metrics', { headers: { authorization: 'Bearer token' } })
    expect(body).toContain('otpost_verifications_total{channel="SMS",outcome="verified"} 1\n')
    expect(body).toContain('otpost_verifications_total{channel="SMS",outcome="mismatch"} 1\n')
  })

  test('is carried out after every other answer', async () => {
    await start({ FAILURE_BUDGET_PER_DAY: '0' })
    const { right, wrong } = await sendCode()
    const { phone } = right
    const again = { phone: freshPhone(), otp: '123456' }
    for (const [fields, expected] of [
      [{ phone }, '400 validation_error'],
      [{ phone, otp: 1 }, '400 invalid_input'],
      [{ phone, otp: '12' }, '400 invalid_otp_format'],
      [{ phone: 'x', otp: '123456' }, '400 invalid_contact'],
      [{ ...right, brandId: 'unknown' }, '403 brand_not_approved'],
      [again, '404 not_found'],
    ] as const) {
      for (const _ of [1, 2]) {
        const answer = await post('/otp/verify', fields)
        expect(verdict(answer)).toBe(expected)
        expect(answer.headers.has('idempotency-replayed')).toBe(false)
      }
    }
    for (const key of ['a', 'b', 'c']) await post('/otp/verify', wrong, key)
    for (const _ of [1, 2]) expect(verdict(await post('/otp/verify', right))).toBe('429 max_attempts')
    app.advance(30)
    expect(verdict(await post('/otp/resend', { phone }, 'resend'))).toBe('200')
    const success = await post('/otp/verify', { phone, otp: codeIn(sent.at(-1)?.text) })
    expect(verdict(success)).toBe('200')
  })

  test('with another code or recipient is rejected, and counts no attempt', async () => {
    await start()
    const { right, wrong } = await sendCode()
    expect(verdict(await post('/otp/verify', wrong))).toBe('401 mismatch')
    for (const other of [right, { ...wrong, phone: freshPhone() }, { ...wrong, otp: '12' }])
      for (const _ of [1, 2, 3])
        expect(verdict(await post('/otp/verify', other))).toBe('422 idempotency_key_reused')
    expect(verdict(await post('/otp/verify', wrong, 'a'))).toBe('401 mismatch')
    expect(verdict(await post('/otp/verify', right, 'b'))).toBe('200')
  })

  test.each(['right', 'wrong'] as const)('30 at once with the %s code are one attempt', async (which) => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '2' })
    const request = (await sendCode())[which]
    const answers = await Promise.all(Array.from({ length: 30 }, () => post('/otp/verify', request)))
    const [first, ...others] = answers.filter(({ headers }) => !headers.has('idempotency-replayed'))
    expect(others).toEqual([])
    const expected = which === 'right' ? '200' : '401 mismatch'
    expect(answers.map(verdict)).toEqual(answers.map(() => expected))
    for (const { body } of answers) expect(body).toEqual(first?.body)
    const attempts = await app.database.query(
      'SELECT attempts FROM codes_and_limits WHERE attempts IS NOT NULL',
    )
    expect(attempts).toEqual(which === 'right' ? [] : [{ attempts: 1 }])
  })

  test('gets the answer of a guess whose result from the database was lost', async () => {
    await start()
    const { store } = app.app.context
    const { guess } = store
    const { right, wrong } = await sendCode()
    for (const [request, expected] of [
      [wrong, '401 mismatch'],
      [right, '200'],
    ] as const) {
      Object.assign(store, {
        guess: async (...step: Parameters<typeof guess>) => {
          await guess(...step)
          throw new Error('the connection was lost')
        },
      })
      expect(verdict(await post('/otp/verify', request, expected.slice(0, 3)))).toBe('500 internal_error')
      Object.assign(store, { guess })
      const answer = await post('/otp/verify', request, expected.slice(0, 3))
      expect(verdict(answer)).toBe(expected)
      expect(answer.headers.get('idempotency-replayed')).toBe('true')
    }
  })

  test('stores no code, and only hashes that need the secret key', async () => {
    const request = { phone: freshPhone(), otp: '123456' }
    const hashes: unknown[] = []
    for (const secret of ['first', 'other']) {
      await start({ SECRET_KEY: `the-${secret}-secret-of-32-bytes-or-more` })
      await post('/otp/send', { phone: request.phone }, 'send')
      await post('/otp/verify', request, 'verify')
      const rows = await app.database.query('SELECT hash, body_hash, answer FROM idempotency_keys')
      expect(rows).toHaveLength(2)
      for (const { hash, body_hash, answer } of rows) {
        hashes.push(hash, body_hash)
        expect(answer).not.toMatch(/\d{6}/)
      }
      expect((await app.database.values()).map(String)).not.toContain(request.otp)
      if (secret === 'first') await app.close()
    }
    // The same requests: they have no hash in common.
    expect(new Set(hashes).size).toBe(8)
  })
})

test('the key is looked up after credentials, scope and brand', async () => {
  await start()
  const request = notifySms(freshPhone())
  await post('/notify', request)
  expect(verdict(await post('/notify', { ...request, apiKey: 'wrong' }))).toBe('403 forbidden')
  await app.brand('acme', { displayName: 'Acme', status: 'suspended' })
  expect(verdict(await post('/notify', request))).toBe('403 brand_suspended')
  await app.brand('acme', { displayName: 'Acme' })
  expect(verdict(await post('/notify', request))).toBe('200')
  expect(sent).toHaveLength(1)
})

test('a key of another form is a validation error', async () => {
  await start()
  const request = { channel: 'EMAIL', email: freshEmail() }
  const wrong = ['', 'a'.repeat(256), 'a b', 'a\tb', 'clé', 'a\u007f', ['a', 'b']]
  for (const key of wrong) {
    for (const path of ['/otp/send', '/otp/resend', '/otp/verify', '/notify']) {
      const answer = await post(path, path === '/notify' ? notifyMail('a@b.example') : request, key)
      expect(verdict(answer)).toBe('400 validation_error')
      expect(answer.body.message).toContain('Idempotency-Key')
    }
  }
  for (const key of ['!', '~'.repeat(255), '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "a'%_\\"])
    expect(verdict(await post('/otp/send', request, key))).toBe('200')
})

test('a replay is found under each secret key', async () => {
  const database = await openTestDatabase()
  const [old, fresh] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']
  const request = notifySms(freshPhone())
  await start({ ...database.env, SECRET_KEY: old })
  const first = await post('/notify', request)
  await app.close()
  await start({ ...database.env, SECRET_KEY: `${fresh},${old}` })
  expectReplay(await post('/notify', request), first)
  expect(verdict(await post('/notify', { ...request, message: 'Bye' }))).toBe('422 idempotency_key_reused')
  await app.close()
  await start({ ...database.env, SECRET_KEY: `${old},${fresh}` })
  expectReplay(await post('/notify', request), first)
  expect(sent).toHaveLength(1)
  await database.remove()
})

test('a replay is one in the log, the request trace and the statistics', async () => {
  await start({ METRICS_TOKEN: 'token' })
  const request = { phone: freshPhone() }
  const first = await post('/otp/send', request)
  const second = await post('/otp/send', request)
  const own = { body: { requestId: second.headers.get('x-request-id') } }
  const { trace, deliveries } = await app.eventsOf(own)
  expect(trace).toMatchObject({ flags: ['replayed'], limits: [], end: { status: 200, error: null } })
  expect(trace && explained(trace, deliveries).join('\n')).toContain(
    `that of request ${first.body.requestId}`,
  )
  await logged()
  expect(app.lines).toContainEqual(
    expect.objectContaining({ requestId: own.body.requestId, replayOf: first.body.requestId }),
  )
  const { totals } = await app.app.context.eventLog.statistics('hour', app.clock.now)
  expect(totals).toMatchObject({ sends: 1, accepted: 1 })
  expect(await app.app.context.eventLog.guarded(10)).toEqual([])
  const { body } = await app.request('GET', '/metrics', { headers: { authorization: 'Bearer token' } })
  expect(body).toContain('otpost_codes_sent_total{operation="send",channel="SMS"} 1\n')
  expect((await app.database.values()).map(String).join('\n')).not.toContain('key-1')
  expect(await app.database.query('SELECT answer FROM idempotency_keys')).toEqual([
    { answer: '{"expiresIn":300}' },
  ])
})

test('the guard, budgets and limits do not count replays', async () => {
  await start({ GUARD: 'deny', PHONE_LIMIT_PER_MINUTE: '9', PHONE_LIMIT_PER_HOUR: '9' })
  const request = { phone: freshPhone(), clientIp: '192.0.2.7' }
  const first = await post('/otp/send', request)
  for (let time = 0; time < 20; time++) expectReplay(await post('/otp/send', request), first)
  app.advance(31)
  const next = await post('/otp/send', request, 'key-2')
  expect(verdict(next)).toBe('200')
})

test('any body is compared with itself and with a changed copy', async () => {
  await start()
  let keys = 0
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
      fc.string(),
      async (data, extra) => {
        const key = `p${keys++}`
        const body = { ...notifyMail('a@b.example'), data }
        const first = await post('/notify', body, key)
        expect(first.status).toBe(200)
        expectReplay(await post('/notify', Object.fromEntries(Object.entries(body).reverse()), key), first)
        const changed = { ...body, data: { ...data, [`x${extra}`]: extra } }
        if (JSON.stringify(changed) === JSON.stringify(body)) return
        expect(verdict(await post('/notify', changed, key))).toBe('422 idempotency_key_reused')
      },
    ),
    { numRuns: 20 },
  )
})

type Step =
  | {
      readonly kind: 'request'
      readonly key: string
      readonly path: string
      readonly variant: number
      readonly fate: Fate
    }
  | { readonly kind: 'release'; readonly fate: Exclude<Fate, 'held'> }
  | { readonly kind: 'wait'; readonly seconds: number }

type Fate = 'accepted' | 'failed' | 'held'

const fates: Readonly<Record<Exclude<Fate, 'held'>, Outcome>> = {
  accepted: { kind: 'accepted' },
  failed: { kind: 'rejected', scope: 'recipient', reason: 'no such number' },
}

/** What is known of a key: its request in progress, or the answer that is kept. */
type Known =
  | { readonly variant: number; readonly end: (outcome: Outcome) => void; readonly answer: Promise<Answer> }
  | { readonly variant: number; readonly kept: Answer; readonly until: number }

const steps = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record<Extract<Step, { kind: 'request' }>>({
        kind: fc.constant('request'),
        key: fc.constantFrom('a', 'b'),
        path: fc.constantFrom('/otp/send', '/notify'),
        variant: fc.constantFrom(1, 1, 1, 2),
        fate: fc.constantFrom('accepted', 'failed', 'held'),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record<Extract<Step, { kind: 'release' }>>({
        kind: fc.constant('release'),
        fate: fc.constantFrom('accepted', 'failed'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record<Extract<Step, { kind: 'wait' }>>({
        kind: fc.constant('wait'),
        seconds: fc.constantFrom(10, 299, 300, 86_400),
      }),
    },
  ),
  { minLength: 5, maxLength: 25 },
)

test('any history of requests, failures and waits sends what a model of the keys allows', async () => {
  await start({
    GUARD: 'off',
    SMS_COOLDOWN_SECONDS: '0',
    PHONE_LIMIT_PER_MINUTE: '1000',
    PHONE_LIMIT_PER_HOUR: '1000',
  })
  let histories = 0
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const prefix = `h${histories++}`
      const known = new Map<string, Known>()
      const held = () => [...known].flatMap(([name, each]) => ('end' in each ? [{ name, each }] : []))
      /** The request of the name has this answer. */
      const settle = (name: string, variant: number, answer: Answer, fate: Exclude<Fate, 'held'>) => {
        const isSend = name.startsWith('/otp/send')
        const failure = isSend ? '502 sms_failed' : '500 notification_failed'
        expect(verdict(answer)).toBe(fate === 'accepted' ? '200' : failure)
        expect(answer.headers.has('idempotency-replayed')).toBe(false)
        if (isSend && fate === 'failed') known.delete(name)
        else
          known.set(name, { variant, kept: answer, until: app.clock.now + (isSend ? 300_000 : 86_400_000) })
      }
      const release = async (fate: Exclude<Fate, 'held'>) => {
        const [first] = held()
        if (!first) return
        first.each.end(fates[fate])
        settle(first.name, first.each.variant, await first.each.answer, fate)
      }
      for (const step of history) {
        if (step.kind === 'release') await release(step.fate)
        else if (step.kind === 'wait') {
          // A request in progress for this long would count as abandoned.
          while (held().length > 0) await release('accepted')
          app.advance(step.seconds)
        } else {
          const { key, path, variant, fate } = step
          const name = `${path} ${key}`
          const phone = `1555${histories}${key === 'a' ? 1 : 2}${path.length}00${variant}`.padEnd(11, '0')
          const before = known.get(name)
          const kept = before && 'kept' in before && before.until > app.clock.now ? before : undefined
          const current = before && ('end' in before || kept) ? before : undefined
          const delivery = Promise.withResolvers<Outcome>()
          const begun = Promise.withResolvers<void>()
          outcome = () => {
            begun.resolve()
            return fate === 'held' ? delivery.promise : fates[fate]
          }
          const count = sent.length
          const asked = post(path, path === '/notify' ? notifySms(phone) : { phone }, `${prefix}${key}`)
          if (!current) {
            if (fate === 'held') {
              await Promise.race([begun.promise, asked])
              known.set(name, { variant, end: delivery.resolve, answer: asked })
            } else settle(name, variant, await asked, fate)
            expect(sent).toHaveLength(count + 1)
            continue
          }
          const answer = await asked
          expect(sent).toHaveLength(count)
          if (current.variant !== variant) expect(verdict(answer)).toBe('422 idempotency_key_reused')
          else if (!kept) expect(verdict(answer)).toBe('409 idempotency_in_progress')
          else {
            const expiresIn = Math.ceil((kept.until - app.clock.now) / 1000)
            expectReplay(answer, kept.kept, kept.kept.body.expiresIn === undefined ? {} : { expiresIn })
          }
        }
      }
      while (held().length > 0) await release('accepted')
    }),
    { numRuns: 25 },
  )
})

test('an asynchronous notification is queued once, and its key never is in progress', async () => {
  await start()
  const request = { ...notifyMail(freshEmail()), async: true }
  const answers = await Promise.all(Array.from({ length: 10 }, () => post('/notify', request)))
  const first = answers.find((answer) => answer.status === 202 && !answer.headers.has('idempotency-replayed'))
  for (const answer of answers) {
    if (answer.status === 202) expect(answer.body).toEqual(first?.body)
    else expect(verdict(answer)).toBe('409 idempotency_in_progress')
  }
  if (first) expectReplay(await post('/notify', request), first)
  expect(await app.database.query('SELECT request_id FROM notify_orders')).toHaveLength(1)
  expect(await app.database.query('SELECT status FROM idempotency_keys')).toEqual([{ status: 202 }])
})
