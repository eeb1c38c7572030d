import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createApp, type Overrides } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import type { Outcome } from '../../src/domain/ground/providers.ts'
import type { ListedJob } from '../../src/domain/notify/queue.ts'
import { listJobs, queueRetry } from '../../src/domain/operator/queue.ts'
import { type Answer, createTestApp, credentials, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { tester } from '../support/operator.ts'
import { accepted, policyOf, rejected, temporary, testProvider, unknown } from '../support/policy.ts'
import { expectError, expectSuccess, freshPhone, retryAfter } from '../support/rows.ts'
import { html, legacy, notifyBrands, placed } from '../tables/notify.ts'

// Asynchronous notifications (design D46), through the HTTP API.

let app: TestApp
let gateway: ReturnType<typeof testProvider>

async function start(
  env: Readonly<Record<string, string>> = {},
  options: Parameters<typeof createTestApp>[1] = {},
): Promise<void> {
  gateway = testProvider('gateway')
  app = await createTestApp(env, { phoneRoutes: { plain: [gateway], template: [gateway] }, ...options })
  for (const [slug, properties] of Object.entries(notifyBrands)) await app.brand(slug, properties)
}

function notifyLater(fields: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  return app.post('/notify', { ...legacy, to: [freshPhone()], async: true, ...fields })
}

/** The jobs after everything due was tried. */
async function jobsOf({ body: { requestId } }: Answer): Promise<readonly ListedJob[]> {
  app.app.queue.tick()
  await app.app.queue.idle()
  return app.app.context.jobs.ofRequest(requestId)
}

async function statesOf({ body: { requestId } }: Answer) {
  return (await app.app.context.jobs.ofRequest(requestId)).map(({ state }) => state)
}

const apps = JSON.stringify({ [credentials.appId]: credentials.apiKey, bank: 'key-of-the-bank' })
const bank = { appId: 'bank', apiKey: 'key-of-the-bank' }

/** Another server on the same database, with the same clock and gateway. */
async function another(owner?: string, overrides: Pick<Overrides, 'mostWaitingJobs'> = {}) {
  const config = readConfig({ ...app.database.env, APP_CREDENTIALS: '{"shop":"key-of-the-shop"}' })
  const phoneRoutes = { plain: [() => gateway], template: [() => gateway] }
  const options = { now: () => app.clock.now, ...(owner ? { owner } : {}), ...overrides }
  return createApp({ ...config, phoneRoutes }, options)
}

const ownerModule = `${import.meta.dir}/../../src/process-owner.ts`
const retention = { eventLog: 30, audit: 30, requests: 30 }

describe('the answer', () => {
  beforeAll(() => start())
  afterAll(() => app.close())

  const rows: readonly (readonly [string, Readonly<Record<string, unknown>>, number])[] = [
    ['an SMS', legacy, 1],
    ['several recipients, one twice', { ...legacy, to: ['+12025550143', '12025550143', '+12025550144'] }, 2],
    ['a template, without its key', placed, 1],
    ['an e-mail', html, 1],
    ['expiresAt with an offset', { ...legacy, expiresAt: '2026-01-01T18:00:00.5+05:30' }, 1],
    ['expiresAt in 24 hours', { ...legacy, expiresAt: '2026-01-02T12:00Z' }, 1],
  ]
  test.each(rows)('is 202 for %s', async (_, body, recipients) => {
    const answer = await app.post('/notify', { ...body, async: true })
    expectSuccess(answer, ['channel', 'recipients'], 202)
    expect(answer.body.recipients).toBe(recipients)
  })

  const wrong: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['async is a text', { async: 'true' }],
    ['async is a number', { async: 1 }],
    ['expiresAt without async', { async: null, expiresAt: '2026-01-01T12:30:00Z' }],
    ['expiresAt with async false', { async: false, expiresAt: '2026-01-01T12:30:00Z' }],
    ['expiresAt without a time zone', { expiresAt: '2026-01-01T12:30:00' }],
    ['expiresAt without a time', { expiresAt: '2026-01-01' }],
    ['expiresAt of a date that does not exist', { expiresAt: '2025-02-30T12:30:00Z' }],
    ['expiresAt as a number', { expiresAt: 1_767_272_400_000 }],
    ['expiresAt now', { expiresAt: '2026-01-01T12:00:00Z' }],
    ['expiresAt in more than 24 hours', { expiresAt: '2026-01-02T12:00:01Z' }],
  ]
  test.each(wrong)('is 400 if %s', async (_, fields) => {
    for (const body of [legacy, html]) {
      expectError(await app.post('/notify', { ...body, async: true, ...fields }), 400, 'validation_error')
    }
  })
})

describe('a request', () => {
  afterEach(() => app.close())

  test('is that of a synchronous request for every rejection, and stores no job', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '3' })
    expectError(await notifyLater({ brandId: 'nobody' }), 403, 'brand_not_approved')
    expectError(await notifyLater({ to: ['call me'] }), 400, 'validation_error')
    expectError(await app.post('/notify', { ...html, async: true, subject: 7 }), 400, 'validation_error')
    expectSuccess(await notifyLater(), ['channel', 'recipients'], 202)
    expectError(await notifyLater(), 429, 'rate_limited')
    expectError(await app.post('/notify', { ...html, async: true, channel: 'FAX' }), 429, 'rate_limited')
    await app.app.queue.idle()
    expect(gateway.sent).toHaveLength(1)
  })

  const several = (recipients: number) => Array.from({ length: recipients }, freshPhone)

  test('is 429 while the queue of its app is full', async () => {
    await start({ APP_CREDENTIALS: apps }, { mostWaitingJobs: 3 })
    gateway.answer(() => temporary)
    expectSuccess(await notifyLater({ to: several(2) }), ['channel', 'recipients'], 202)
    const full = await notifyLater({ to: several(2) })
    expectError(full, 429, 'rate_limited')
    expect(full.body).toMatchObject({ reason: 'queue' })
    expect(retryAfter(full)).toBe(30)
    const { trace } = await app.eventsOf(full)
    expect(trace?.limits.at(-1)).toMatchObject({ limit: 'queue', max: 3, used: 3, refused: true })
    expectSuccess(await notifyLater(), ['channel', 'recipients'], 202)
    expectSuccess(await notifyLater({ ...bank, to: several(3) }), ['channel', 'recipients'], 202)
    // A synchronous request needs no room.
    expectError(await app.post('/notify', { ...legacy, to: several(1) }), 500, 'notification_failed')
    await app.app.queue.idle()
    gateway.answer(() => accepted)
    app.advance(5)
    app.app.queue.tick()
    await app.app.queue.idle()
    expectSuccess(await notifyLater({ to: several(3) }), ['channel', 'recipients'], 202)
  })

  test('concurrent requests to two servers do not exceed the bound', async () => {
    await start({}, { mostWaitingJobs: 7 })
    gateway.answer(() => temporary)
    const other = await another(undefined, { mostWaitingJobs: 7 })
    const body = { ...credentials, ...legacy, async: true }
    const toOther = async () =>
      other.handle(
        new Request('http://localhost/notify', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...body, to: several(2) }),
        }),
      )
    const requests = Array.from({ length: 10 }, (_, index) =>
      index % 2 ? toOther() : notifyLater({ to: several(2) }),
    )
    const statuses = (await Promise.all(requests)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([...Array(3).fill(202), ...Array(7).fill(429)])
    await other.close()
  })

  test('waits for no app with more jobs: apps take turns', async () => {
    await start({ APP_CREDENTIALS: apps })
    const hanging: ((outcome: Outcome) => void)[] = []
    gateway.answer(() => new Promise((resolve) => hanging.push(resolve)))
    const begun = async (calls: number) => {
      while (gateway.sent.length < calls) await new Promise((resolve) => setImmediate(resolve))
    }
    await notifyLater({ to: several(30) })
    await begun(8)
    const last = { ...bank, to: several(3) }
    await notifyLater(last)
    for (let ended = 0; ended < 6; ended++) {
      hanging.shift()?.(accepted)
      await begun(9 + ended)
    }
    const order = gateway.sent.slice(8).map(({ to }) => (last.to.includes(to) ? 'bank' : 'shop'))
    expect(order.filter((each) => each === 'bank')).toHaveLength(3)
    expect(order.join(' ')).toMatch(/^(shop )?bank shop bank shop bank/)
    gateway.answer(() => accepted)
    for (const end of hanging) end(accepted)
    await app.app.queue.idle()
    expect(gateway.sent).toHaveLength(33)
  })
})

let stopwatch = 0

describe('a job', () => {
  afterEach(() => app.close())

  test('is sent as a synchronous request sends, and ends without recipient and content', async () => {
    await start()
    const to = [freshPhone(), freshPhone()]
    const answer = await notifyLater({ to, reference: 'order 7' })
    expect(await jobsOf(answer)).toMatchObject([
      { position: 1, state: 'accepted', tries: 1, attempts: 1, reason: null, hasContent: false },
      { position: 2, state: 'accepted', tries: 1, attempts: 1, reason: null, hasContent: false },
    ])
    expect(gateway.sent.map((sms) => sms.to).sort()).toEqual(to.toSorted())
    const { trace, deliveries } = await app.eventsOf(answer)
    expect(trace).toMatchObject({ end: { status: 202 }, recipients: 2, reference: 'order 7' })
    expect(deliveries.map(({ attempt, position, outcome }) => [attempt, position, outcome])).toEqual([
      [10_001, 1, 'accepted'],
      [20_001, 2, 'accepted'],
    ])
    await app.app.context.sweep(retention)
    const left = await app.database.values()
    expect(left.map(String).join()).not.toContain(to[0])
    expect(left.map(String).join()).not.toContain(legacy.message)
  })

  test('is stored encrypted: no byte of the database shows its text, number or e-mail address', async () => {
    // Nothing listens there.
    await start({ SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'shop@example.com' })
    const [to, text, mailbox] = [freshPhone(), 'Your lab report is ready', 'patient@clinic.example']
    for (const outcome of [temporary, unknown, rejected]) {
      gateway.answer(() => outcome)
      await jobsOf(await notifyLater({ to: [to], message: text }))
    }
    const mail = await app.post('/notify', { ...html, to: [mailbox], html: `<p>${text}</p>`, async: true })
    expect(await jobsOf(mail)).toMatchObject([{ state: 'queued', hasContent: true }])
    const bytes = await app.database.contents()
    for (const secret of [to, text, mailbox]) expect(bytes.includes(secret)).toBe(false)
  })

  test('fails if its ciphertext is of another job', async () => {
    await start()
    gateway.answer(() => temporary)
    const [one, other] = [await notifyLater(), await notifyLater()]
    await jobsOf(other)
    const from = other.body.requestId
    await app.database.query(
      `UPDATE notify_jobs SET recipient = (SELECT recipient FROM notify_jobs WHERE request_id = '${from}')`,
    )
    gateway.answer(() => accepted)
    app.advance(5)
    expect(await jobsOf(one)).toMatchObject([{ state: 'failed', reason: 'cannot be decrypted', attempts: 1 }])
    expect(await statesOf(other)).toEqual(['accepted'])
  })

  test('of a mail is sent', async () => {
    await start()
    const answer = await app.post('/notify', { ...html, async: true })
    expect(await jobsOf(answer)).toMatchObject([{ state: 'accepted' }])
    expect((await app.outbox()).at(-1)).toMatchObject({ channel: 'EMAIL', html: html.html })
  })

  test('is retried after 5 s, doubling to 5 min, with the same message ID, until the provider works', async () => {
    await start()
    gateway.answer(() => temporary)
    const answer = await notifyLater()
    const gaps: number[] = []
    for (let tries = 1; tries <= 8; tries++) {
      const [job] = await jobsOf(answer)
      expect(job).toMatchObject({ state: 'queued', tries, reason: 'HTTP 503' })
      gaps.push(((job?.dueAt ?? 0) - app.clock.now) / 1000)
      app.advance((gaps.at(-1) ?? 0) - 0.001)
      await jobsOf(answer)
      expect(gateway.sent).toHaveLength(tries)
      app.advance(0.001)
    }
    expect(gaps).toEqual([5, 10, 20, 40, 80, 160, 300, 300])
    gateway.answer(() => accepted)
    expect(await jobsOf(answer)).toMatchObject([{ state: 'accepted', tries: 9, attempts: 9 }])
    expect(new Set(gateway.sent.map(({ id }) => id)).size).toBe(1)
  })

  test('that expires has failed, with the last reason', async () => {
    await start()
    gateway.answer(() => temporary)
    const answer = await notifyLater({ expiresAt: new Date(app.clock.now + 12_000).toISOString() })
    for (const seconds of [0, 5, 6.999]) {
      app.advance(seconds)
      expect(await jobsOf(answer)).toMatchObject([{ state: 'queued' }])
    }
    app.advance(0.001)
    expect(await jobsOf(answer)).toMatchObject([{ state: 'failed', reason: 'expired: HTTP 503', tries: 2 }])
    expect(gateway.sent).toHaveLength(2)
  })

  const ends: readonly (readonly [string, Outcome, Partial<ListedJob>])[] = [
    ['a rejected number fails at once', rejected, { state: 'failed', reason: 'no such number' }],
    [
      'a rejected account is retried',
      { kind: 'rejected', scope: 'account', reason: '401' },
      { state: 'queued', reason: '401' },
    ],
    [
      'rejected content is retried',
      { kind: 'rejected', scope: 'content', reason: 'sender' },
      { state: 'queued', reason: 'sender' },
    ],
    ['a time-out is final', unknown, { state: 'unknown', reason: 'time-out' }],
  ]
  test.each(ends)('%s', async (_, outcome, expected) => {
    await start()
    gateway.answer(() => outcome)
    expect(await jobsOf(await notifyLater())).toMatchObject([expected])
  })

  test('that may have been sent on a route is not retried, even if the next route rejects it', async () => {
    const [first, next] = [testProvider('first', () => unknown), testProvider('next', () => temporary)]
    await start({ OTP_SMS_MODE: 'hybrid' }, { phoneRoutes: { template: [first], plain: [next] } })
    await app.brand('dlt', { dltEnabled: true, notifyTemplates: ['ORDER_PLACED'] })
    const answer = await app.post('/notify', { ...placed, brandId: 'dlt', async: true })
    expect(await jobsOf(answer)).toMatchObject([{ state: 'unknown', reason: 'time-out', attempts: 2 }])
    expect([first.sent.length, next.sent.length]).toEqual([1, 1])
  })

  test('is sent at once if the clock was set back before its time', async () => {
    await start({}, { stopwatch: () => stopwatch })
    gateway.answer(() => temporary)
    const answer = await notifyLater()
    await jobsOf(answer)
    gateway.answer(() => accepted)
    app.advance(-600)
    stopwatch += 10_000
    expect(await jobsOf(answer)).toMatchObject([{ state: 'accepted' }])
  })

  test('waits for its brand, its destination and its budget', async () => {
    await start()
    const policy = policyOf(app)
    gateway.answer(() => temporary)
    const answer = await notifyLater({ to: ['+447400123456'] })
    const retried = async (seconds: number) => {
      app.advance(seconds)
      const [job] = await jobsOf(answer)
      return `${job?.state} ${job?.reason}`
    }
    expect(await retried(0)).toBe('queued HTTP 503')
    gateway.answer(() => accepted)
    await app.brand('store', { ...notifyBrands.store, status: 'suspended' })
    expect(await retried(5)).toBe('queued brand not active')
    await app.brand('store', { ...notifyBrands.store })
    await policy.rule('GB', 'block')
    expect(await retried(10)).toBe('queued destination blocked')
    await policy.removeRule('GB')
    await policy.budget('app:shop', '0.5')
    expect(await retried(20)).toBe('queued budget exhausted')
    expect(gateway.sent).toHaveLength(1)
    await policy.removeBudget('app:shop')
    expect(await retried(40)).toBe('accepted null')
    expect(gateway.sent).toHaveLength(2)
  })

  test('costs its budget once, when it is sent', async () => {
    await start()
    await policyOf(app).budget('app:shop', '4')
    gateway.answer(() => temporary)
    const first = await notifyLater()
    // A try that failed gives its claim back.
    await jobsOf(first)
    const second = await notifyLater({ to: [freshPhone(), freshPhone()] })
    await jobsOf(second)
    expectError(await notifyLater({ to: [freshPhone(), freshPhone(), freshPhone()] }), 429, 'rate_limited')
    gateway.answer(() => accepted)
    app.advance(5)
    const jobs = [...(await jobsOf(first)), ...(await jobsOf(second))]
    expect(jobs.map(({ state }) => state).sort()).toEqual(['accepted', 'accepted', 'queued'])
    expect(jobs.find(({ state }) => state === 'queued')?.reason).toBe('budget exhausted')
  })
})

describe('a process that ended', () => {
  afterEach(() => app.close())

  test('leaves the result of its jobs in flight unknown, and its queued ones to others', async () => {
    await start({}, { owner: 'elsewhere 1 1' })
    const hanging = Promise.withResolvers<Outcome>()
    gateway.answer(() => hanging.promise)
    const [lost, late] = [
      await notifyLater(),
      await notifyLater({ to: Array.from({ length: 9 }, freshPhone) }),
    ]
    while (gateway.sent.length < 8) await new Promise((resolve) => setImmediate(resolve))
    const other = await another('elsewhere 2 1')
    gateway.answer(() => accepted)
    // On another machine: its lease, not its process, shows that it ended.
    other.queue.tick()
    await other.queue.idle()
    expect(await statesOf(lost)).toEqual(['sending'])
    expect((await statesOf(late)).sort()).toEqual([...Array(2).fill('accepted'), ...Array(7).fill('sending')])
    app.advance(120)
    const third = await another('elsewhere 3 1')
    third.queue.tick()
    await third.queue.idle()
    expect(await statesOf(lost)).toEqual(['unknown'])
    hanging.resolve(accepted)
    await app.app.queue.idle()
    expect(await statesOf(lost)).toEqual(['unknown'])
    expect(gateway.sent).toHaveLength(10)
    await other.close()
    await third.close()
  })

  test('of this machine is known at the next start', async () => {
    const dead = Bun.spawn(
      [process.execPath, '-e', `console.log((await import('${ownerModule}')).processOwner())`],
      {
        stdout: 'pipe',
      },
    )
    const owner = (await new Response(dead.stdout).text()).trim()
    await start({}, { owner })
    const hanging = Promise.withResolvers<Outcome>()
    gateway.answer(() => hanging.promise)
    const lost = await notifyLater()
    while (gateway.sent.length < 1) await new Promise((resolve) => setImmediate(resolve))
    const next = await another()
    next.queue.tick()
    await next.queue.idle()
    expect(await statesOf(lost)).toEqual(['unknown'])
    expect(gateway.sent).toHaveLength(1)
    hanging.resolve(accepted)
    await next.close()
  })

  test('that lost the answer to taking a job sends it after the lease', async () => {
    await start({}, { owner: 'here 1 1', stopwatch: () => stopwatch })
    gateway.answer(() => temporary)
    const answer = await notifyLater()
    await jobsOf(answer)
    // As if this process had taken it, and its connection was lost at the commit.
    const dueAt = app.clock.now + 60_000
    await app.database.query(
      `UPDATE notify_jobs SET state = 'sending', owner = 'here 1 1', due_at = ${dueAt} RETURNING 1`,
    )
    gateway.answer(() => accepted)
    app.advance(59)
    expect(await jobsOf(answer)).toMatchObject([{ state: 'sending' }])
    app.advance(1)
    stopwatch += 10_000
    expect(await jobsOf(answer)).toMatchObject([{ state: 'accepted' }])
    expect(gateway.sent).toHaveLength(2)
  })

  test('shares the queue: each job is sent once', async () => {
    await start()
    const other = await another()
    const answer = await notifyLater({ to: Array.from({ length: 100 }, freshPhone) })
    for (const each of [app.app, other]) each.queue.tick()
    await Promise.all([app.app.queue.idle(), other.queue.idle()])
    expect(new Set(await statesOf(answer))).toEqual(new Set(['accepted']))
    expect(gateway.sent).toHaveLength(100)
    expect(new Set(gateway.sent.map(({ to }) => to)).size).toBe(100)
    await other.close()
  })
})

describe('an operator', () => {
  afterEach(() => app.close())

  const ports = () => ({ ...app.app.context.acting(tester), jobs: app.app.context.jobs })

  test('retries failed jobs, and those with an unknown result only on confirmation', async () => {
    await start()
    const [number, other] = [freshPhone(), freshPhone()]
    gateway.answer(({ to }) => (to === number ? rejected : unknown))
    const answer = await notifyLater({ to: [number, other] })
    expect((await jobsOf(answer)).map(({ state }) => state)).toEqual(['failed', 'unknown'])
    const { requestId } = answer.body
    expect((await listJobs(ports())).map(({ position }) => position)).toEqual([1, 2])
    expect(await listJobs(ports(), { appId: 'other' })).toEqual([])
    gateway.answer(() => accepted)
    app.advance(2 * 3600)
    expect(await queueRetry.run(ports(), { requestId, unknown: false })).toBe(1)
    expect(await statesOf(answer)).toEqual(['queued', 'unknown'])
    expect((await jobsOf(answer)).map(({ state }) => state)).toEqual(['accepted', 'unknown'])
    expect(queueRetry.run(ports(), { requestId, unknown: false })).rejects.toThrow(
      'results of some jobs are unknown',
    )
    expect(await queueRetry.run(ports(), { requestId, unknown: true })).toBe(1)
    expect((await jobsOf(answer)).map(({ state }) => state)).toEqual(['accepted', 'accepted'])
    expect(gateway.sent.map(({ to }) => to)).toEqual([number, other, number, other])
    const entries = await app.app.context.audit.list({ limit: 2 })
    expect(entries.map(({ action, target }) => [action, target])).toEqual([
      ['queue.retried', requestId],
      ['queue.retried', requestId],
    ])
  })

  test('cannot retry a job after 24 hours: its message and recipient are deleted', async () => {
    await start()
    gateway.answer(() => rejected)
    const to = freshPhone()
    const answer = await notifyLater({ to: [to] })
    await jobsOf(answer)
    const stored = () =>
      app.database.query(
        "SELECT CASE WHEN recipient IS NULL THEN 0 ELSE 1 END AS recipients, CASE WHEN content = '' THEN 0 ELSE 1 END AS contents FROM notify_jobs JOIN notify_orders USING (request_id)",
      )
    expect(await app.app.context.jobs.failed()).toBe(1)
    app.advance(86_399)
    await app.app.context.sweep(retention)
    expect(await stored()).toEqual([{ recipients: 1, contents: 1 }])
    app.advance(11)
    await app.app.context.sweep(retention)
    expect(await stored()).toEqual([{ recipients: 0, contents: 0 }])
    expect(queueRetry.run(ports(), { requestId: answer.body.requestId, unknown: false })).rejects.toThrow(
      'is deleted',
    )
    expect(await listJobs(ports())).toEqual([])
    expect(await statesOf(answer)).toEqual(['failed'])
    expect(await app.app.context.jobs.failed()).toBe(0)
    app.advance(31 * 86_400)
    await app.app.context.sweep(retention)
    expect(await statesOf(answer)).toEqual([])
  })

  test('cancels queued jobs in the console, and sees them there', async () => {
    await start({})
    gateway.answer(() => temporary)
    const answer = await notifyLater()
    await jobsOf(answer)
    const visitor = await signedIn(app)
    expect((await visitor.get('/admin/queue')).html).toContain('HTTP 503')
    expect((await visitor.get(`/admin/deliveries/${answer.body.requestId}`)).html).toContain(
      'queued after 1 try',
    )
    const { requestId } = answer.body
    expect((await visitor.post('/admin/queue/cancel', { requestId })).status).toBe(303)
    app.advance(300)
    expect(await jobsOf(answer)).toMatchObject([{ state: 'cancelled', hasContent: false }])
    expect((await visitor.get('/admin/queue')).html).toContain('No jobs.')
    expect((await visitor.post('/admin/queue/retry', { requestId })).html).toContain(
      'No job of this request has failed',
    )
    expect(gateway.sent).toHaveLength(1)
  })

  test('erases the jobs of a recipient, also queued ones', async () => {
    await start()
    gateway.answer(() => temporary)
    const [gone, kept] = [freshPhone(), freshPhone()]
    const shared = await notifyLater({ to: [gone, kept], message: 'To both' })
    const own = await notifyLater({ to: [gone], message: 'To one' })
    await jobsOf(own)
    // Beside the server, as the command.
    const command = await another()
    const { erased } = await command.context.forget({ channel: 'SMS', to: gone }, tester)
    await command.close()
    expect(erased.jobs).toBe(2)
    expect(
      (await app.app.context.jobs.ofRequest(shared.body.requestId)).map(({ position }) => position),
    ).toEqual([2])
    gateway.answer(() => accepted)
    app.advance(5)
    await jobsOf(own)
    expect(gateway.sent.filter(({ to }) => to === gone)).toHaveLength(2)
    expect(gateway.sent.filter(({ to }) => to === kept)).toHaveLength(2)
    const contents = await app.database.query("SELECT request_id FROM notify_orders WHERE content <> ''")
    expect(contents).toEqual([{ request_id: shared.body.requestId }])
  })
})

describe('an app with a webhook', () => {
  afterEach(() => app.close())

  test('gets message.failed for each job that ends without a message, once', async () => {
    await start()
    await policyOf(app).webhook('https://shop.example/events')
    const [number, slow, other] = [freshPhone(), freshPhone(), freshPhone()]
    gateway.answer(({ to }) => (to === number ? rejected : to === slow ? unknown : temporary))
    const answer = await notifyLater({ to: [number, slow, other] })
    await jobsOf(answer)
    app.advance(3600)
    await jobsOf(answer)
    const rows = await app.database.query(
      'SELECT type, request_id, position, status, reason FROM events ORDER BY position',
    )
    const about = { type: 'message.failed', request_id: answer.body.requestId }
    expect(rows).toEqual([
      { ...about, position: 1, status: 'failed', reason: 'no such number' },
      { ...about, position: 2, status: 'unknown', reason: 'time-out' },
      { ...about, position: 3, status: 'failed', reason: 'expired: HTTP 503' },
    ])
  })
})
