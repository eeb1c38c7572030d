import { afterEach, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { attemptKey } from '../../src/domain/delivery/delivery-reports.ts'
import type { JobState } from '../../src/domain/ground/notify-job.ts'
import type { Outcome, SmsProvider } from '../../src/domain/ground/providers.ts'
import { setApp } from '../../src/domain/operator/apps.ts'
import { type Answer, createTestApp, credentials, type TestApp } from '../support/app.ts'
import { openTestDatabase } from '../support/database.ts'
import { tester } from '../support/operator.ts'
import { accepted, policyOf, rejected, temporary, testProvider, unknown } from '../support/policy.ts'
import { expectError, expectSuccess, freshPhone, retryAfter } from '../support/rows.ts'

// POST /messages/status (design D44), and the recipients of notification_failed (design D12).

const path = '/messages/status'
const other = { appId: 'other', apiKey: 'key-of-the-other' }
const env = {
  PUBLIC_URL: 'https://otp.example',
  APP_CREDENTIALS: JSON.stringify({
    [credentials.appId]: credentials.apiKey,
    [other.appId]: other.apiKey,
  }),
}

function reporting(provider: ReturnType<typeof testProvider>) {
  const deliveryReports: SmsProvider['deliveryReports'] = { namedBy: 'attempt', read: () => [] }
  return Object.assign(provider, { deliveryReports })
}
const one = reporting(testProvider('one'))
const two = reporting(testProvider('two'))

let apps: TestApp[] = []
let app: TestApp
let pauses: number[] = []

async function start(more: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  app = await createTestApp(
    { ...env, OTP_SMS_MODE: 'hybrid', ...more },
    {
      phoneRoutes: { plain: [one], template: [two] },
      pause: async (ms) => {
        pauses.push(ms)
        await whilePaused()
      },
    },
  )
  apps.push(app)
  await app.brand('dlt', { dltEnabled: true })
  return app
}
let whilePaused = async () => {}

afterEach(async () => {
  for (const each of apps) await each.close()
  apps = []
  pauses = []
  whilePaused = async () => {}
  for (const { sent, answer } of [one, two]) {
    sent.length = 0
    answer(() => accepted)
  }
})

const ask = (messageRequestId: unknown, fields: Readonly<Record<string, unknown>> = {}) =>
  app.post(path, { messageRequestId, ...fields })
const statusesOf = ({ body }: Answer) =>
  body.recipients.map(({ index, status }: { index: number; status: string }) => `${index} ${status}`)
const notify = (to: readonly string[], fields: Readonly<Record<string, unknown>> = {}) =>
  app.post('/notify', { channel: 'SMS', brandId: 'acme', to, message: 'Hello', ...fields })
const report = ({ body }: Answer, status: 'delivered' | 'failed', attempt = 1) =>
  app.app.context.eventLog.saveReports(
    'one',
    [{ key: attemptKey(body.requestId, attempt), status, reason: null, at: app.clock.now }],
    false,
  )

/** A provider that answers once the test says so. */
function held(outcome: Outcome) {
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<string>()
  one.answer(async ({ requestId }) => {
    begun.resolve(requestId)
    await gate.promise
    return outcome
  })
  return { begun: begun.promise, release: () => gate.resolve() }
}

describe('the status of a code', () => {
  test('has the request and its recipient, right after the answer', async () => {
    await start()
    const phone = '+1 202 555 0143'
    const sent = await app.post('/otp/send', { phone, reference: 'login-7' })
    const answer = await ask(sent.body.requestId)
    expectSuccess(answer, ['request', 'recipients'])
    expect(answer.body.requestId).not.toBe(sent.body.requestId)
    const at = new Date(app.clock.now).toISOString()
    expect(answer.body.request).toEqual({
      requestId: sent.body.requestId,
      operation: 'send',
      channel: 'SMS',
      brandId: 'acme',
      createdAt: at,
      reference: 'login-7',
    })
    expect(answer.body.recipients).toEqual([
      { index: 0, to: '12*******43', status: 'accepted', updatedAt: expect.any(String) },
    ])
    expect(pauses).toEqual([])

    app.advance(40)
    await report(sent, 'delivered')
    const delivered = { index: 0, to: '12*******43', status: 'delivered' }
    expect((await ask(sent.body.requestId.toUpperCase())).body.recipients).toEqual([
      { ...delivered, updatedAt: new Date(app.clock.now).toISOString() },
    ])
  })

  test('follows fallbacks and reports', async () => {
    await start()
    const resend = () => app.post('/otp/resend', { brandId: 'dlt', phone: freshPhone() })
    two.answer(() => unknown)
    const both = await resend()
    expect(both.status).toBe(200)
    expect(statusesOf(await ask(both.body.requestId))).toEqual(['0 accepted'])
    await report(both, 'failed', 2)
    expect(statusesOf(await ask(both.body.requestId))).toEqual(['0 unknown'])
    await report(both, 'delivered', 1)
    const answer = await ask(both.body.requestId)
    expect(statusesOf(answer)).toEqual(['0 delivered'])
    expect(answer.body.request).toMatchObject({ operation: 'resend', brandId: 'dlt', reference: null })

    one.answer(() => rejected)
    const failed = await resend()
    expectError(failed, 502, 'sms_failed')
    expect(statusesOf(await ask(failed.body.requestId))).toEqual(['0 unknown'])
    two.answer(() => temporary)
    expect(statusesOf(await ask((await resend()).body.requestId))).toEqual(['0 failed'])
  })

  test('of a request without a provider is failed', async () => {
    await start()
    await policyOf(app).rule('LV', 'allow', { providers: ['gone'] })
    const answer = await app.post('/otp/send', { phone: '37120000001' })
    expectError(answer, 502, 'sms_failed')
    expect(statusesOf(await ask(answer.body.requestId))).toEqual(['0 failed'])
  })

  test('is queued while the provider is called, and unknown if the process ended then', async () => {
    const database = await openTestDatabase()
    const sender = await start(database.env)
    const { begun, release } = held(accepted)
    const sending = sender.post('/otp/send', { phone: freshPhone() })
    const requestId = await begun
    expect(statusesOf(await ask(requestId))).toEqual(['0 queued'])
    expect(pauses).toEqual([])

    await start(database.env)
    expect(statusesOf(await ask(requestId))).toEqual(['0 queued'])
    app.advance(60)
    expect(statusesOf(await ask(requestId))).toEqual(['0 unknown'])
    expect(pauses).toEqual([150, 150])
    // The answer is written while this process waits.
    whilePaused = async () => {
      release()
      await sending
      await sender.app.context.eventLog.flush()
    }
    expect(statusesOf(await ask(requestId))).toEqual(['0 accepted'])
    await Promise.all(apps.map((each) => each.close()))
    apps = []
    await database.remove()
  })

  test('by e-mail without a brand has no brand', async () => {
    await start()
    const sent = await app.post('/notify', {
      channel: 'EMAIL',
      to: ['pat@example.com'],
      subject: 'Hello',
      html: 'Hello',
    })
    const { request, recipients } = (await ask(sent.body.requestId)).body
    expect(request).toMatchObject({ operation: 'notify', channel: 'EMAIL', brandId: null, reference: null })
    expect(recipients).toMatchObject([{ index: 0, to: 'p***@example.com', status: 'accepted' }])
  })
})

describe('every recipient of a notification is listed', () => {
  const [a, b, c, d] = ['447400123451', '447400123452', '447400123453', '447400123454'] as const
  const byNumber = (outcomes: Readonly<Record<string, Outcome>>) =>
    one.answer(({ to }) => outcomes[to] ?? accepted)

  test('at its first index, with its own status, and in notification_failed', async () => {
    await start()
    byNumber({ [b]: rejected, [c]: unknown })
    const to = [a, `+${a}`, b, c, `00${b}`, d]
    const failed = await notify(to, { reference: 'r' })
    expectError(failed, 500, 'notification_failed')
    expect(failed.body.recipients).toEqual([
      { index: 0, status: 'accepted' },
      { index: 2, status: 'failed' },
      { index: 3, status: 'unknown' },
      { index: 5, status: 'accepted' },
    ])
    const answer = await ask(failed.body.requestId)
    expect(answer.body.recipients).toEqual(
      [
        { index: 0, to: '44********51', status: 'accepted' },
        { index: 2, to: '44********52', status: 'failed' },
        { index: 3, to: '44********53', status: 'unknown' },
        { index: 5, to: '44********54', status: 'accepted' },
      ].map((each) => ({ ...each, updatedAt: expect.stringMatching(/^2026-01-01T12:.*Z$/) })),
    )
    expect(answer.body.request).toMatchObject({ operation: 'notify', reference: 'r' })
  })

  test('if one of them is the only one, and given twice', async () => {
    await start()
    byNumber({ [a]: temporary })
    const failed = await notify([a, a])
    expect(failed.body.recipients).toEqual([{ index: 0, status: 'failed' }])
    expect(statusesOf(await ask(failed.body.requestId))).toEqual(['0 failed'])
  })

  test('also one without a provider', async () => {
    await start()
    await policyOf(app).rule('LV', 'allow', { providers: ['gone'] })
    const failed = await notify([a, '37120000001'])
    expectError(failed, 500, 'notification_failed')
    expect(failed.body.recipients).toEqual([
      { index: 0, status: 'accepted' },
      { index: 1, status: 'failed' },
    ])
    expect((await ask(failed.body.requestId)).body.recipients).toMatchObject([
      { index: 0, status: 'accepted' },
      { index: 1, to: '37*******01', status: 'failed' },
    ])
  })

  test('while the messages are sent, also those that wait for their turn', async () => {
    await start()
    const to = Array.from({ length: 12 }, (_, index) => `4474001234${10 + index}`)
    const { begun, release } = held(accepted)
    const notifying = notify(to)
    const answer = await ask(await begun)
    expect(statusesOf(answer)).toEqual(to.map((_, index) => `${index} queued`))
    release()
    const { requestId } = (await notifying).body
    expect(statusesOf(await ask(requestId))).toEqual(to.map((_, index) => `${index} accepted`))
  })

  test('of an asynchronous notification, as its jobs go on', async () => {
    await start()
    byNumber({ [b]: temporary, [c]: unknown, [d]: rejected })
    const { status, body } = await notify([a, a, b, c, d], { async: true })
    expect(status).toBe(202)
    app.app.queue.tick()
    await app.app.queue.idle()
    const statuses = () => ask(body.requestId).then(statusesOf)
    expect(await statuses()).toEqual(['0 accepted', '2 queued', '3 unknown', '4 failed'])
    byNumber({})
    app.advance(5)
    app.app.queue.tick()
    await app.app.queue.idle()
    expect(await statuses()).toEqual(['0 accepted', '2 accepted', '3 unknown', '4 failed'])
    const { deliveries } = await app.eventsOf({ body })
    const { reportKey } = deliveries.find(({ position }) => position === 4) ?? {}
    const late = { key: reportKey ?? '', status: 'delivered', reason: null, at: app.clock.now } as const
    await app.app.context.eventLog.saveReports('one', [late], false)
    expect(await statuses()).toEqual(['0 accepted', '2 accepted', '3 delivered', '4 failed'])
  })

  test('of a job, also if the event log lost the request', async () => {
    await start()
    const requestId = randomUUID()
    const { now, store } = app.app.context
    const at = now()
    const job = (position: number, state: JobState) => ({
      requestId,
      appId: credentials.appId,
      position,
      state,
      recipient: null,
      recipientHash: `hash ${position}`,
      masked: `masked ${position}`,
      tries: 0,
      attempts: 0,
      dueAt: at,
      owner: null,
      updatedAt: at + position,
      reason: null,
    })
    const states: readonly JobState[] = ['queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled']
    const order = {
      requestId,
      appId: credentials.appId,
      brandSlug: 'acme',
      channel: 'SMS',
      reference: 'batch',
      content: '{}',
      createdAt: at,
      expiresAt: at + 1000,
    } as const
    const jobs = states.map((state, index) => job(2 * index + 1, state))
    await store.admit([], at, [{ kind: 'queue', order, jobs }])
    const answer = await ask(requestId)
    expect(answer.body.request).toMatchObject({ operation: 'notify', channel: 'SMS', reference: 'batch' })
    expect(statusesOf(answer)).toEqual([
      '0 queued',
      '2 queued',
      '4 accepted',
      '6 failed',
      '8 unknown',
      '10 failed',
    ])
    expect(answer.body.recipients[1]).toEqual({
      index: 2,
      to: 'masked 3',
      status: 'queued',
      updatedAt: new Date(at + 3).toISOString(),
    })
  })
})

test('a replay of notification_failed has the recipients and the status of the first request', async () => {
  await start()
  one.answer(({ to }) => (to.endsWith('1') ? rejected : accepted))
  const body = { ...credentials, channel: 'SMS', brandId: 'acme', to: ['447400123451', '447400123452'] }
  const init = {
    headers: { 'content-type': 'application/json', 'idempotency-key': 'order-7' },
    body: JSON.stringify({ ...body, message: 'Hello' }),
  }
  const first = await app.request('POST', '/notify', init)
  const again = await app.request('POST', '/notify', init)
  expect(again.body).toEqual(first.body)
  expect(first.body.recipients).toEqual([
    { index: 0, status: 'failed' },
    { index: 1, status: 'accepted' },
  ])
  expect(statusesOf(await ask(again.body.requestId))).toEqual(['0 failed', '1 accepted'])
  expectError(await ask(again.headers.get('x-request-id')), 404, 'not_found')
})

describe('a request without messages is not found', () => {
  const notFound = async (requestId: string, fields: Readonly<Record<string, unknown>> = {}) => {
    const answer = await ask(requestId, fields)
    expectError(answer, 404, 'not_found')
    expect(answer.body.message).toContain('messageRequestId')
  }

  test('unknown, of another app, rejected, a verify, or a status request', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '4' })
    await notFound(randomUUID())
    expect(pauses).toEqual([150])
    const sent = await app.post('/otp/send', { phone: freshPhone() })
    await notFound(sent.body.requestId, other)
    const invalid = await app.post('/otp/send', { phone: freshPhone(), reference: '' })
    const verified = await app.post('/otp/verify', { phone: freshPhone(), otp: '123456' })
    const unapproved = await notify([freshPhone()], { brandId: 'none' })
    expectSuccess(await notify([freshPhone()]), ['channel'])
    const limited = await notify([freshPhone()])
    expect(limited.status).toBe(429)
    const asked = await ask(sent.body.requestId)
    expect(asked.status).toBe(200)
    for (const { body } of [invalid, verified, unapproved, limited, asked]) await notFound(body.requestId)
  })

  test('after its recipient was forgotten', async () => {
    await start()
    const sent = await app.post('/otp/send', { phone: '12025550143' })
    await app.eventsOf(sent)
    // A process beside the server, as the command is: the server's own connection could not go on.
    const command = await createTestApp(app.database.env)
    const { countRecipient, forget } = command.app.context
    const recipient = { channel: 'SMS', to: '12025550143' } as const
    const counted = await countRecipient(recipient)
    expect(counted.erased).toMatchObject({ requests: 1, deliveries: 1 })
    expect(await forget(recipient, tester)).toMatchObject(counted)
    await command.close()
    await notFound(sent.body.requestId)
  })
})

describe('a status request', () => {
  test('requires a string', async () => {
    await start()
    for (const id of [undefined, null, '', 5, ['a']]) expectError(await ask(id), 400, 'validation_error')
    for (const id of ['a', `${randomUUID()} `, randomUUID().slice(1)])
      expectError(await ask(id), 404, 'not_found')
  })

  test.each(['otp', 'notify'] as const)('works for an app that may only use %s', async (operation) => {
    await start()
    const acting = app.app.context.acting(tester)
    const sent = await app.post('/otp/send', { phone: freshPhone() })
    await setApp(acting, credentials.appId, { operations: [operation] }, [credentials.appId])
    expectSuccess(await ask(sent.body.requestId), ['request', 'recipients'])
  })

  test('counts 60 a minute for an app, apart from its other requests', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '2' })
    const sent = await app.post('/otp/send', { phone: freshPhone() })
    const { requestId } = sent.body
    const answers = await Promise.all(Array.from({ length: 70 }, () => ask(requestId)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(60)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(10)
    for (const each of refused) {
      expectError(each, 429, 'rate_limited', 'app_minute')
      expect(retryAfter(each)).toBe(60)
    }
    // An invalid request counts too, and another app has its own limit.
    expectError(await ask('x'), 429, 'rate_limited')
    expectError(await ask(requestId, other), 404, 'not_found')
    expectSuccess(await app.post('/otp/send', { phone: freshPhone() }), ['expiresIn'])
    expectError(await app.post('/otp/send', { phone: freshPhone() }), 429, 'rate_limited')
    app.advance(60)
    expectSuccess(await ask(requestId), ['request', 'recipients'])
  })

  test('is in the request log, and not in the event log', async () => {
    await start()
    const sent = await app.post('/otp/send', { phone: freshPhone() })
    const answer = await ask(sent.body.requestId)
    expect((await app.eventsOf(answer)).trace).toBeUndefined()
    const line = app.lines.find((each) => 'requestId' in each && each.requestId === answer.body.requestId)
    expect(line).toMatchObject({ route: path, status: 200, app: credentials.appId })
  })
})
