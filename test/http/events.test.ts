import { afterEach, describe, expect, test } from 'bun:test'
import { verifyEvent } from 'otpost/client'
import { Webhook } from 'standardwebhooks'
import { readConfig } from '../../src/config/config.ts'
import { attemptKey, attemptPath, providerPath } from '../../src/domain/delivery/delivery-reports.ts'
import type { CallbackRequest } from '../../src/domain/ground/providers.ts'
import type { EventType } from '../../src/domain/ground/webhook-events.ts'
import { eventRetryDelaysMs, mostWaiting } from '../../src/domain/integration/event-delivery.ts'
import type { FailingEvents } from '../../src/domain/integration/event-store.ts'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { addReviewNumber } from '../../src/domain/operator/review-numbers.ts'
import { version } from '../../src/version.ts'
import { createTestApp, otherThan, type TestApp } from '../support/app.ts'
import { operate, tester } from '../support/operator.ts'
import { accepted, policyOf, testProvider } from '../support/policy.ts'
import { held, startReceiver } from '../support/receiver.ts'
import { freshEmail, freshPhone } from '../support/rows.ts'

let api: TestApp
let receiver: ReturnType<typeof startReceiver>
let secret = ''

afterEach(async () => {
  await api.close()
  receiver.stop()
})

const failing = { kind: 'retryable', reason: 'HTTP 500' } as const

/** An app with a webhook, and a provider that answers as the test says. */
async function start(eventTypes?: readonly EventType[], overrides: { random?: () => number } = {}) {
  receiver = startReceiver()
  const provider = testProvider('one')
  api = await createTestApp(
    { PUBLIC_URL: 'https://otp.example', DELIVERY_LOG_DAYS: '30' },
    { ...overrides, phoneRoutes: { plain: [provider] } },
  )
  ;({ secret } = (await policyOf(api).webhook(receiver.url, eventTypes)).webhook)
  return provider
}

/** Lets everything that is due happen. */
async function settle(app: TestApp = api): Promise<void> {
  await app.app.context.eventLog.flush()
  app.app.events.tick()
  await app.app.events.idle()
}

/** An event that waits, which no message caused. */
function addEvent(appId = 'shop') {
  return operate(api, 'app webhook-test', { appId })
}

const bodies = () => receiver.received.map(({ body }) => body)
const types = () => bodies().map(({ type }) => type)

describe('an event', () => {
  test('has exactly the fields of the design, and a signature of Standard Webhooks', async () => {
    const provider = await start()
    provider.answer(() => failing)
    const phone = freshPhone()
    const { status, body } = await api.post('/otp/send', { phone, reference: 'order-1' })
    expect(status).toBe(502)
    await settle()
    expect(bodies()).toEqual([
      {
        type: 'message.failed',
        timestamp: '2026-01-01T12:00:00.000Z',
        data: {
          requestId: body.requestId,
          reference: 'order-1',
          brandId: 'acme',
          channel: 'SMS',
          to: expect.stringMatching(/^\d\d\*+\d\d$/),
          index: 0,
          status: 'failed',
          reason: 'HTTP 500',
        },
      },
    ])
    const [call] = receiver.received
    expect(call?.headers.get('user-agent')).toBe(`otpost/${version}`)
    const id = call?.headers.get('webhook-id') ?? ''
    const sentAt = new Date(Number(call?.headers.get('webhook-timestamp')) * 1000)
    expect(call?.headers.get('webhook-signature')).toBe(new Webhook(secret).sign(id, sentAt, call?.raw ?? ''))
  })

  test('of a code names the request that sent it, and contains no code', async () => {
    await start()
    const email = freshEmail()
    const sent = await api.post('/otp/send', { channel: 'EMAIL', email, reference: 'r' })
    const otp = await api.lastCode(email)
    for (let time = 0; time < 3; time++) await api.post('/otp/verify', { email, otp: otherThan(otp) })
    await api.post('/otp/verify', { email, otp })
    const again = await api.post('/otp/resend', { channel: 'EMAIL', email })
    await api.post('/otp/verify', { email, otp: await api.lastCode(email) })
    await settle()
    const about = { status: null, reason: null, index: 0, brandId: 'acme', channel: 'EMAIL' }
    expect(bodies()).toMatchObject([
      { type: 'otp.locked', data: { ...about, requestId: sent.body.requestId, reference: 'r' } },
      { type: 'otp.verified', data: { ...about, requestId: again.body.requestId, reference: null } },
    ])
    expect(receiver.received.map(({ raw }) => raw).join()).not.toContain(otp)
  })

  test('of the fixed code of a review number is about its verification alone', async () => {
    await start()
    const { context } = api.app
    const ports = { ...context.acting(tester), brands: context.brands, contacts: readConfig({}).contacts }
    const phone = freshPhone()
    const { code } = await addReviewNumber(ports, { phone, brand: 'acme', until: '2026-01-01' })
    const sent = await api.post('/otp/send', { phone, reference: 'review' })
    await api.post('/otp/verify', { phone, otp: code })
    await settle()
    expect(bodies()).toMatchObject([
      { type: 'otp.verified', data: { requestId: sent.body.requestId, reference: 'review', channel: 'SMS' } },
    ])
  })

  test('names each recipient of a notification that failed by its index', async () => {
    const provider = await start()
    const [good, bad, slow] = [freshPhone(), freshPhone(), freshPhone()]
    provider.answer(({ to }) =>
      to === digits(bad) ? failing : to === digits(slow) ? { kind: 'unknown', reason: 'time-out' } : accepted,
    )
    const to = [good, bad, good, slow]
    const { status } = await api.post('/notify', { channel: 'SMS', brandId: 'acme', to, message: 'Hello' })
    expect(status).toBe(500)
    await settle()
    expect(bodies().map(({ data: { index, status, reason } }) => [index, status, reason])).toEqual([
      [1, 'failed', 'HTTP 500'],
      [3, 'unknown', 'time-out'],
    ])
  })

  test.each(['attempt', 'providerMessageId'] as const)(
    'is written with a delivery report, named by %s, that changes the status of a message',
    async (namedBy) => {
      const provider = await start()
      // Looks like a request ID.
      const providerMessageId = '6f3c2a10-9d7e-4b21-8a55-0c1d2e3f4a5b'
      provider.answer(() => ({ kind: 'accepted', providerMessageId }))
      const read = ({ fields: { status } }: CallbackRequest) => {
        if (status !== 'delivered' && status !== 'failed') return []
        return [{ providerMessageId, status, reason: status === 'failed' ? '30003' : null }]
      }
      Object.assign(provider, { deliveryReports: { namedBy, read } })
      const sent = api.post('/otp/send', { phone: freshPhone() })
      const { requestId } = (await sent).body
      const { secrets } = api.app.context
      const path =
        namedBy === 'attempt' ? attemptPath(secrets, 'one', requestId, 1) : providerPath(secrets, 'one')
      for (const status of ['failed', 'failed', 'delivered', 'delivered'])
        expect((await api.get(`${path}?status=${status}`)).status).toBe(200)
      await settle()
      expect(bodies()).toMatchObject([
        { type: 'message.failed', data: { requestId, status: 'failed', reason: '30003' } },
        { type: 'message.delivered', data: { requestId, status: 'delivered', reason: null } },
      ])
    },
  )

  test('of a report on an attempt that a crash lost is resolved by its request', async () => {
    const provider = await start()
    Object.assign(provider, { deliveryReports: { namedBy: 'attempt', read: () => [] } })
    const { requestId } = (await api.post('/otp/send', { phone: freshPhone() })).body
    const { eventLog, now } = api.app.context
    const report = { status: 'delivered', reason: null, at: now() } as const
    await eventLog.saveReports('one', [{ key: attemptKey(requestId, 2), ...report }], true)
    for (let second = 0; second < 20; second++) {
      expect(types()).toEqual([])
      await settle()
      if (receiver.received.length > 0) break
      api.advance(1)
    }
    expect(bodies()).toMatchObject([{ type: 'message.delivered', data: { requestId, index: 0 } }])
  })

  test('of a report that arrives days later is found; that of an unknown message is dropped', async () => {
    const provider = await start()
    provider.answer(() => ({ kind: 'accepted', providerMessageId: 'M2' }))
    Object.assign(provider, { deliveryReports: { namedBy: 'providerMessageId', read: () => [] } })
    await api.post('/otp/send', { phone: freshPhone() })
    api.advance(2 * 86_400)
    const { eventLog, events, now } = api.app.context
    const reports = ['M2', 'M3'].map(
      (id) => ({ key: `one:${id}`, status: 'delivered', reason: null, at: now() }) as const,
    )
    await eventLog.saveReports('one', reports, true)
    for (let second = 0; second < 70; second++) {
      await settle()
      api.advance(1)
    }
    expect(types()).toEqual(['message.delivered'])
    api.advance(600)
    expect(await events.unresolved(now(), 10)).toEqual([])
  })

  test('is erased with its recipient', async () => {
    const provider = await start()
    provider.answer(() => failing)
    const [own, other] = [freshPhone(), freshPhone()]
    await api.post('/notify', { channel: 'SMS', brandId: 'acme', to: [other, own], message: 'Hello' })
    await api.post('/otp/send', { phone: own })
    await settle()
    const { context } = api.app
    expect((await context.events.latest('shop', 9)).length).toBe(3)
    await context.forget({ channel: 'SMS', to: digits(own) }, tester)
    const [left, ...others] = await context.events.latest('shop', 9)
    expect([left?.position, others.length]).toEqual([1, 0])
  })

  test('is not written for another app, and not for a type that the webhook does not receive', async () => {
    const provider = await start(['otp.verified'])
    provider.answer(() => failing)
    await api.post('/otp/send', { phone: freshPhone() })
    const email = freshEmail()
    await api.post('/otp/send', { channel: 'EMAIL', email })
    await api.post('/otp/verify', { email, otp: await api.lastCode(email) })
    await settle()
    expect(types()).toEqual(['otp.verified'])
    await policyOf(api).removeWebhook()
    await api.post('/otp/send', { phone: freshPhone() })
    expect((await api.app.context.events.unresolved(api.clock.now, 10)).length).toBe(0)
  })
})

describe('a receiver', () => {
  test('that fails for an hour gets every event once it is back, in order per message', async () => {
    await start()
    const downUntil = api.clock.now + 3_600_000
    receiver.answer(() => new Response(null, { status: api.clock.now < downUntil ? 500 : 200 }))
    const delivered: string[] = []
    const emails = Array.from({ length: 5 }, freshEmail)
    const requestIds: string[] = []
    for (const email of emails) {
      const { body } = await api.post('/otp/send', { channel: 'EMAIL', email })
      requestIds.push(body.requestId)
      for (let time = 0; time < 3; time++)
        await api.post('/otp/verify', { email, otp: otherThan(await api.lastCode(email)) })
      // Another event of the same message.
      const event = {
        id: api.app.context.secrets.newEventId(api.clock.now + 1),
        at: api.clock.now,
        type: 'message.delivered',
        requestId: body.requestId,
        reportKey: null,
        position: null,
        status: 'delivered',
        reason: null,
      } as const
      await api.app.context.store.giveBack([], api.clock.now, [{ kind: 'event', event }])
      await settle()
      api.advance(600)
    }
    for (let minutes = 0; minutes < 3 * 60; minutes += 5) {
      api.advance(300)
      const before = receiver.received.length
      await settle()
      if (api.clock.now >= downUntil)
        delivered.push(
          ...receiver.received.slice(before).map(({ body }) => `${body.data.requestId} ${body.type}`),
        )
    }
    const expected = requestIds.flatMap((id) => [`${id} otp.locked`, `${id} message.delivered`])
    expect(delivered.toSorted()).toEqual(expected.toSorted())
    for (const id of requestIds)
      expect(delivered.indexOf(`${id} otp.locked`)).toBeLessThan(delivered.indexOf(`${id} message.delivered`))
    // Each retry has the same ID.
    expect(new Set(receiver.received.map(({ headers }) => headers.get('webhook-id'))).size).toBe(10)
    expect(api.app.events.waiting).toBe(0)
  })

  test('that fails eight times is switched off with an alert; setting the webhook again sends what waits', async () => {
    await start()
    receiver.answer(() => new Response(null, { status: 500 }))
    const failures: ReadonlyMap<string, FailingEvents>[] = []
    const email = freshEmail()
    await api.post('/otp/send', { channel: 'EMAIL', email })
    await api.post('/otp/verify', { email, otp: await api.lastCode(email) })
    await settle()
    for (const delayMs of eventRetryDelaysMs) {
      api.clock.now += delayMs - 1
      await settle()
      const before = receiver.received.length
      api.clock.now += 1
      await settle()
      expect(receiver.received.length).toBe(before + 1)
      failures.push(await api.app.context.events.failing())
    }
    expect(receiver.received.length).toBe(8)
    const [first, last] = [failures[0]?.get('shop'), failures.at(-1)]
    expect([first, last?.size]).toMatchObject([{ events: 1, error: 'HTTP 500' }, 0])
    await api.app.alerts.idle()
    const { webhooks } = await api.app.context.policy.rows()
    expect(webhooks).toMatchObject([{ appId: 'shop', disabledAt: api.clock.now }])
    const [alert, ...others] = await api.app.context.alerts.latest(5)
    expect([alert?.kind, alert?.title, others.length]).toEqual([
      'webhook.disabled',
      'The webhook of app shop was switched off',
      0,
    ])
    expect(JSON.parse(alert?.text ?? '')).toEqual({ appId: 'shop', url: receiver.url, reason: 'HTTP 500' })

    // An event while it is off waits.
    await api.post('/otp/resend', { channel: 'EMAIL', email })
    await api.post('/otp/verify', { email, otp: await api.lastCode(email) })
    api.advance(86_400)
    await settle()
    expect(receiver.received.length).toBe(8)
    receiver.answer(() => new Response())
    await policyOf(api).webhook(receiver.url)
    await settle()
    expect(receiver.received.length).toBe(9)
    // The failed event is sent again by hand.
    const [, failed] = await api.app.context.events.latest('shop', 5)
    expect([failed?.state, failed?.error, failed?.tries]).toEqual(['failed', 'HTTP 500', 8])
    await operate(api, 'app webhook-resend', { appId: 'shop', id: failed?.id ?? '' })
    await settle()
    expect(receiver.received.at(-1)?.headers.get('webhook-id')).toBe(failed?.id ?? '')
    await expect(
      operate(api, 'app webhook-resend', { appId: 'other', id: failed?.id ?? '' }),
    ).rejects.toThrow('has no event')
  })

  test('that answers 410 is switched off at once with an alert, and its event waits', async () => {
    await start()
    receiver.answer(() => new Response(null, { status: 410 }))
    await addEvent()
    await settle()
    await api.app.alerts.idle()
    const { context } = api.app
    expect((await context.policy.rows()).webhooks).toMatchObject([{ disabledAt: api.clock.now }])
    expect(await context.alerts.latest(5)).toMatchObject([
      { kind: 'webhook.disabled', text: expect.stringContaining('HTTP 410') },
    ])
    api.advance(86_400)
    await settle()
    expect(receiver.received.length).toBe(1)
    receiver.answer(() => new Response())
    await policyOf(api).webhook(receiver.url)
    await settle()
    const ids = receiver.received.map(({ headers }) => headers.get('webhook-id'))
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
  })

  test.each<[string, number, { status?: number; after?: string }, number]>([
    ['a tenth earlier', 0, {}, 4500],
    ['a tenth later', 1, {}, 5500],
    ['after the seconds of Retry-After', 0.5, { status: 429, after: '90' }, 90_000],
    [
      'after the date of Retry-After',
      0.5,
      { status: 503, after: 'Thu, 01 Jan 2026 13:00:00 GMT' },
      3_600_000,
    ],
    ['not before its own wait', 0.5, { status: 503, after: '1' }, 5000],
    ['within 10 hours', 0.5, { status: 503, after: '999999' }, 36_000_000],
    ['without Retry-After of another status', 0.5, { status: 500, after: '90' }, 5000],
  ])('that failed is called again %s', async (_, random, { status = 500, after }, expectedMs) => {
    await start(undefined, { random: () => random })
    const headers = after === undefined ? {} : { 'retry-after': after }
    receiver.answer(() => new Response(null, { status, headers }))
    await addEvent()
    await settle()
    api.clock.now += expectedMs - 1
    await settle()
    expect(receiver.received.length).toBe(1)
    api.clock.now += 1
    await settle()
    expect(receiver.received.length).toBe(2)
  })

  test.each([
    ['failed', 500],
    ['asked for a pause', 503],
  ])('that %s is not called later since the clock was set back', async (_, status) => {
    await start()
    receiver.answer(() => new Response(null, { status, headers: { 'retry-after': '7200' } }))
    await addEvent()
    await settle()
    receiver.answer(() => new Response())
    // This one is new.
    await api.post('/otp/send', { channel: 'EMAIL', email: 'a@example.com' })
    await api.post('/otp/verify', { email: 'a@example.com', otp: await api.lastCode('a@example.com') })
    api.advance(-8 * 3600)
    await settle()
    expect(types()).toEqual(['message.delivered', 'message.delivered', 'otp.verified'])
    // One that waits for its time again is not disturbed.
    receiver.answer(() => new Response(null, { status: 503, headers: { 'retry-after': '7200' } }))
    await addEvent()
    for (let minute = 0; minute < 120; minute++) {
      await settle()
      expect(receiver.received.length).toBe(4)
      api.advance(60)
    }
    await settle()
    expect(receiver.received.length).toBe(5)
  })

  test('verifies with a new secret, and for 24 hours with each that it replaced', async () => {
    await start()
    const [first, second] = [secret, (await policyOf(api).webhook(receiver.url)).webhook.secret]
    const third = (await policyOf(api).webhook(receiver.url)).webhook.secret
    const accepting = async () => {
      await addEvent()
      await settle()
      const { headers, raw } = receiver.received.at(-1) ?? {}
      const now = new Date(api.clock.now)
      const verified = await Promise.all(
        [first, second, third].map((secret) =>
          verifyEvent(raw ?? '', headers ?? new Headers(), secret, { now }).catch(() => undefined),
        ),
      )
      return [
        headers?.get('webhook-signature')?.split(' ').length,
        ...verified.map((event) => event !== undefined),
      ]
    }
    expect(await accepting()).toEqual([3, true, true, true])
    api.clock.now += 86_400_000 - 1
    expect(await accepting()).toEqual([3, true, true, true])
    api.clock.now += 1
    expect(await accepting()).toEqual([1, false, false, true])
  })

  test('that hangs delays no other webhook, and has at most four tries in flight, then one', async () => {
    const held1 = held()
    await start()
    receiver.answer(() => held1.promise)
    const other = startReceiver()
    await issueApp(api.app.context.acting(tester), 'second', {})
    await policyOf(api).webhook(other.url, undefined, 'second')
    const { events } = api.app
    for (let time = 0; time < 8; time++) await addEvent()
    await addEvent('second')
    events.tick()
    while (other.received.length < 1) await new Promise((resolve) => setImmediate(resolve))
    expect(receiver.received.length).toBe(4)
    held1.release(new Response(null, { status: 500 }))
    await events.idle()
    expect(new Set(receiver.received.map(({ headers }) => headers.get('webhook-id'))).size).toBe(8)
    other.stop()
  })

  test('is sent at once also beside twenty webhooks that are slow and have many events', async () => {
    await start()
    const slow = held()
    receiver.answer(() => slow.promise)
    const quick = startReceiver()
    const { context, events } = api.app
    const about = { secret, previousSecrets: [], eventTypes: [], createdAt: 0, disabledAt: null }
    const all = Array.from({ length: 20 }, (_, index) => `app-${index}`)
    await context.policy.change({ actor: tester, now: 0 }, () => ({
      saveWebhooks: [
        ...all.map((appId) => ({ appId, url: receiver.url, ...about })),
        { appId: 'quick', url: quick.url, ...about },
      ],
      entry: null,
    }))
    for (const appId of all) for (let time = 0; time < 5; time++) await addEvent(appId)
    events.tick()
    while (receiver.received.length < 44) await new Promise((resolve) => setImmediate(resolve))
    await addEvent('quick')
    events.tick()
    while (quick.received.length < 1) await new Promise((resolve) => setImmediate(resolve))
    // Four turns for each of the first eight, which are 32, then one for each of the others.
    expect(receiver.received.length).toBe(44)
    slow.release(new Response())
    await events.idle()
    expect(receiver.received.length).toBe(100)
    quick.stop()
  }, 5000)

  test('gets its events also beside many webhooks that have none', async () => {
    await start()
    const { context } = api.app
    const all = Array.from({ length: 40 }, (_, index) => `app-${index}`)
    const { url } = receiver
    const about = { url, secret, previousSecrets: [], eventTypes: [], createdAt: 0, disabledAt: null }
    await context.policy.change({ actor: tester, now: 0 }, () => ({
      saveWebhooks: all.map((appId) => ({ appId, ...about })),
      entry: null,
    }))
    await addEvent('app-39')
    await settle()
    expect(receiver.received.length).toBe(1)
  })

  test('gets a test event that is marked', async () => {
    await start(['otp.locked'])
    const { context } = api.app
    await addEvent()
    await settle()
    expect(bodies()).toMatchObject([
      { type: 'message.delivered', data: { reason: 'test event', status: 'delivered' } },
    ])
    expect((await context.audit.list({ limit: 1 })).map(({ action }) => action)).toEqual(['app.event-sent'])
  })
})

describe('two servers on one database', () => {
  test('deliver each event once', async () => {
    await start()
    const second = await createTestApp({ ...api.database.env })
    for (let time = 0; time < 40; time++) await addEvent()
    // Events that are not resolved yet.
    for (let time = 0; time < 10; time++) {
      const email = freshEmail()
      await api.post('/otp/send', { channel: 'EMAIL', email })
      await api.post('/otp/verify', { email, otp: await api.lastCode(email) })
    }
    await Promise.all([settle(), settle(second)])
    await settle()
    const ids = receiver.received.map(({ headers }) => headers.get('webhook-id'))
    expect([ids.length, new Set(ids).size]).toEqual([50, 50])
    await second.close()
  })

  test('deliver the events of one that ended during a try, after its lease; its late result changes nothing', async () => {
    await start()
    const { promise, release } = held()
    receiver.answer(() => promise)
    const { context, events } = api.app
    await addEvent()
    events.tick()
    while (receiver.received.length < 1) await new Promise((resolve) => setImmediate(resolve))
    const second = await createTestApp({ ...api.database.env })
    receiver.answer(() => new Response())
    second.advance(59)
    await settle(second)
    expect(receiver.received.length).toBe(1)
    second.advance(1)
    await settle(second)
    release(new Response(null, { status: 500 }))
    await events.idle()
    const ids = receiver.received.map(({ headers }) => headers.get('webhook-id'))
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
    expect(await context.events.latest('shop', 5)).toMatchObject([
      { state: 'delivered', tries: 2, httpStatus: 200 },
    ])
    await second.close()
  })
})

test('with 100,000 waiting events, later ones are dropped and counted, with an alert', async () => {
  const provider = await start()
  provider.answer(() => failing)
  const { events } = api.app.context
  api.app.context.events.waiting = async () => new Map([['shop', mostWaiting - 1]])
  receiver.answer(() => new Response(null, { status: 500 }))
  for (let time = 0; time < 3; time++) await api.post('/otp/send', { phone: freshPhone() })
  await settle()
  expect([receiver.received.length, api.app.events.counts.get('dropped')]).toEqual([1, 2])
  await api.app.alerts.idle()
  expect((await api.app.context.alerts.latest(5)).map(({ kind }) => kind)).toEqual(['webhook.dropping'])
  expect((await events.latest('shop', 5)).length).toBe(1)
})

function digits(phone: string): string {
  return phone.replaceAll(/\D/g, '')
}
