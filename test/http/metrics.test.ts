import { afterEach, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { type Answer, createTestApp, otherThan, type TestApp, temporaryFolder } from '../support/app.ts'
import { sqliteOnly, store } from '../support/database.ts'
import { type Exposition, readExposition } from '../support/exposition.ts'
import { policyOf } from '../support/policy.ts'
import { held, startReceiver } from '../support/receiver.ts'
import {
  createBrokenApp,
  expectError,
  expectSuccess,
  freshEmail,
  freshPhone,
  logged,
} from '../support/rows.ts'

const token = 'token-of-the-scraper'
let app: TestApp
afterEach(() => app.close())

async function start(env: Readonly<Record<string, string>> = {}, stopwatch?: () => number): Promise<void> {
  app = await createTestApp({ METRICS_TOKEN: token, ...env }, stopwatch ? { stopwatch } : {})
}

function ask(authorization?: string): Promise<Answer> {
  return app.request('GET', '/metrics', authorization === undefined ? {} : { headers: { authorization } })
}

/** A scrape after all earlier requests have been counted. */
async function scrape(): Promise<Exposition> {
  await logged()
  const { status, body } = await ask(`Bearer ${token}`)
  expect(status).toBe(200)
  return readExposition(body)
}

describe('access to /metrics', () => {
  test('is closed without METRICS_TOKEN', async () => {
    await start({ METRICS_TOKEN: '' })
    expectError(await ask(), 404, 'not_found')
    expectError(await ask(`Bearer ${token}`), 404, 'not_found')
  })

  test.each([
    ['sends no token', undefined],
    ['sends another token', 'Bearer token-of-the-scrapes'],
    ['sends a part of the token', `Bearer ${token.slice(0, -1)}`],
    ['sends the token and more', `Bearer ${token}r`],
    ['sends the token in upper case', `Bearer ${token.toUpperCase()}`],
    ['sends the token with another scheme', `Basic ${token}`],
    ['sends the token without a scheme', token],
    ['sends an empty token', 'Bearer '],
    ['sends the token twice', `Bearer ${token} ${token}`],
  ])('is rejected for a caller who %s', async (_, authorization) => {
    await start()
    const answer = await ask(authorization)
    expectError(answer, 401, 'unauthorized')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(JSON.stringify([answer.body, app.lines])).not.toContain(token)
  })

  test.each(['Bearer', 'bearer'])('is allowed with the token after %s', async (scheme) => {
    await start()
    const answer = await ask(`${scheme} ${token}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    readExposition(answer.body)
  })

  test('is by GET or HEAD only', async () => {
    await start()
    const answer = await app.request('POST', '/metrics', { headers: { authorization: `Bearer ${token}` } })
    expectError(answer, 405, 'method_not_allowed')
    expect(answer.headers.get('allow')).toBe('GET, HEAD')
    const head = await app.request('HEAD', '/metrics', { headers: { authorization: `Bearer ${token}` } })
    expect({ status: head.status, body: head.body }).toEqual({ status: 200, body: '' })
  })
})

describe('the metrics', () => {
  test('count requests by route, method, status and error code, with durations', async () => {
    await start()
    await app.get('/health')
    await app.get('/health')
    await app.request('HEAD', '/health')
    await app.post('/health')
    await app.get('/nowhere/at/all?code=123456')
    await app.post('/otp/send', { apiKey: undefined, phone: freshPhone() })
    const told = await scrape()
    const count = (labels: Record<string, string>) => told.value('otpost_http_requests_total', labels)
    expect(count({ route: '/health', method: 'GET', status: '200', error: 'none' })).toBe(2)
    expect(count({ route: '/health', method: 'HEAD', status: '200', error: 'none' })).toBe(1)
    expect(count({ route: '/health', method: 'POST', status: '405', error: 'method_not_allowed' })).toBe(1)
    expect(count({ route: 'unmatched', method: 'GET', status: '404', error: 'not_found' })).toBe(1)
    expect(count({ route: '/otp/send', method: 'POST', status: '401', error: 'unauthorized' })).toBe(1)
    expect(told.value('otpost_http_request_duration_seconds_count', { route: '/health' })).toBe(4)
    expect(told.value('otpost_http_request_duration_seconds_sum', { route: '/health' })).toBeGreaterThan(0)
    // The previous scrape is also a request.
    const again = await scrape()
    expect(again.value('otpost_http_requests_total', { route: '/metrics', status: '200' })).toBe(1)
  })

  test('count codes sent and verified, by channel and outcome', async () => {
    await start()
    const [phone, email] = [freshPhone(), freshEmail()]
    expectSuccess(await app.post('/otp/send', { phone }), ['expiresIn'])
    expectSuccess(await app.post('/otp/send', { channel: 'EMAIL', email }), ['expiresIn'])
    expectSuccess(await app.post('/otp/resend', { channel: 'EMAIL', email }), ['expiresIn'])
    const [otp, mailed] = [await app.lastCode(phone), await app.lastCode(email)]
    const verify = (fields: Record<string, unknown>) => app.post('/otp/verify', fields)
    await verify({ phone, otp: otherThan(otp) })
    expectSuccess(await verify({ phone, otp }))
    await verify({ phone, otp })
    for (let wrong = 0; wrong < 4; wrong++) await verify({ email, otp: otherThan(mailed) })
    await verify({ email, otp: 'none' })
    await verify({ otp })

    const told = await scrape()
    expect(told.value('otpost_codes_sent_total', { channel: 'SMS', operation: 'send' })).toBe(1)
    expect(told.value('otpost_codes_sent_total', { channel: 'EMAIL', operation: 'send' })).toBe(1)
    expect(told.value('otpost_codes_sent_total', { channel: 'EMAIL', operation: 'resend' })).toBe(1)
    expect(told.value('otpost_codes_sent_total', { channel: 'SMS', operation: 'resend' })).toBe(0)
    const verified = (channel: string, outcome: string) =>
      told.value('otpost_verifications_total', { channel, outcome })
    expect(['mismatch', 'verified', 'absent', 'locked'].map((outcome) => verified('SMS', outcome))).toEqual([
      1, 1, 1, 0,
    ])
    expect(['mismatch', 'verified', 'absent', 'locked'].map((outcome) => verified('EMAIL', outcome))).toEqual(
      [3, 0, 0, 1],
    )
    // A request without a valid recipient has no channel.
    expect(verified('none', 'rejected')).toBe(2)
  })

  test('count deliveries by channel, route, provider and outcome, with durations and segments', async () => {
    const receiver = startReceiver(() => new Response(null, { status: 503 }))
    let elapsedMs = 0
    receiver.answer(() => {
      elapsedMs += 700
      return new Response(null, { status: receiver.received.length === 1 ? 503 : 204 })
    })
    await start({ ...receiver.env, SMS_PLAIN: 'webhook,outbox' }, () => elapsedMs)
    await app.post('/otp/send', { phone: freshPhone() })
    const message = 'a'.repeat(161)
    expectSuccess(
      await app.post('/notify', { brandId: 'acme', channel: 'SMS', to: [freshPhone()], message }),
      ['channel'],
    )
    await app.post('/notify', {
      channel: 'EMAIL',
      to: [freshEmail()],
      subject: 'Hello',
      html: '<p>Hello</p>',
    })
    await receiver.stop()

    const told = await scrape()
    const delivered = (labels: Record<string, string>) => told.value('otpost_deliveries_total', labels)
    const plain = { channel: 'SMS', route: 'plain' }
    const webhook = { ...plain, provider: 'webhook' }
    expect(delivered({ ...webhook, outcome: 'retryable', error: 'retryable' })).toBe(1)
    expect(delivered({ ...webhook, outcome: 'accepted', error: 'none' })).toBe(1)
    expect(delivered({ ...webhook, outcome: 'rejected', error: 'account' })).toBe(0)
    expect(delivered({ ...plain, provider: 'outbox', outcome: 'accepted' })).toBe(1)
    expect(delivered({ channel: 'EMAIL', route: 'none', provider: 'outbox', outcome: 'accepted' })).toBe(1)
    expect(told.value('otpost_delivery_duration_seconds_count', webhook)).toBe(2)
    expect(told.value('otpost_delivery_duration_seconds_sum', webhook)).toBeCloseTo(1.4)
    expect(told.value('otpost_delivery_duration_seconds_bucket', { ...webhook, le: '0.5' })).toBe(0)
    expect(told.value('otpost_delivery_duration_seconds_bucket', { ...webhook, le: '1' })).toBe(2)
    expect(told.value('otpost_sms_segments_total', { provider: 'webhook', route: 'plain' })).toBe(2)
    expect(told.value('otpost_sms_segments_total', { provider: 'outbox', route: 'plain' })).toBe(1)
  })

  test('count rate-limited requests by limit', async () => {
    await start({ GLOBAL_LIMIT_PER_MINUTE: '4', EMAIL_LIMIT_PER_HOUR: '1' })
    const [phone, email] = [freshPhone(), freshEmail()]
    await app.post('/otp/send', { phone })
    expectError(await app.post('/otp/send', { phone }), 429, 'cooldown_active')
    await app.post('/otp/send', { channel: 'EMAIL', email })
    expectError(await app.post('/otp/send', { channel: 'EMAIL', email }), 429, 'rate_limited')
    for (let call = 0; call < 5; call++) await app.post('/otp/verify', { phone, otp: '123456' })
    const told = await scrape()
    const limited = (limit: string) => told.value('otpost_rate_limited_total', { limit })
    expect(limited('cooldown')).toBe(1)
    expect(limited('recipient-hour')).toBe(1)
    expect(limited('phone-minute')).toBe(0)
    const refused = told.value('otpost_verifications_total', { channel: 'SMS', outcome: 'rate-limited' })
    expect(refused).toBeGreaterThan(0)
    expect(limited('app-minute')).toBe(refused)
  })

  test('count SMS, and requests that destination rules block or monitor, by country', async () => {
    await start({ SMS_COUNTRIES: 'GB,US' })
    await policyOf(app).rule('US', 'monitor')
    for (const phone of ['+44 7400 123456', '+1 202 555 0143', '+91 98765 43210', '+999 1234567']) {
      await app.post('/otp/send', { phone })
    }
    const told = await scrape()
    const sent = (country: string) => told.value('otpost_sms_sent_total', { country })
    expect([sent('GB'), sent('US')]).toEqual([1, 1])
    const decided = (country: string, action: string) =>
      told.value('otpost_destinations_total', { country, action })
    expect([decided('US', 'monitor'), decided('IN', 'block'), decided('none', 'block')]).toEqual([1, 1, 1])
  })

  test('count codes that the guard denied or recorded, by bucket', async () => {
    for (const [mode, verdict, other] of [
      ['deny', 'denied', 'recorded'],
      ['record', 'recorded', 'denied'],
    ] as const) {
      await start({ GUARD: mode, SMS_COUNTRIES: 'LV' })
      for (let code = 0; code < 7; code++) await app.post('/otp/send', { phone: `+3712255${1000 + code}` })
      const told = await scrape()
      const guarded = (bucket: string, of: string) =>
        told.value('otpost_guard_total', { bucket, verdict: of })
      expect([guarded('prefix', verdict), guarded('blocked-prefix', verdict)]).toEqual([1, 1])
      expect([guarded('prefix', other), guarded('country-day', verdict)]).toEqual([0, 0])
    }
  })

  test('count delivery reports by provider and status', async () => {
    const urls: string[] = []
    const gateway = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ headers }) => {
        urls.push(headers.get('x-kannel-dlr-url') ?? '')
        return new Response('0: Accepted for delivery', { status: 202 })
      },
    })
    const publicUrl = 'https://otp.example'
    await start({
      SMS_PLAIN: 'kannel',
      KANNEL_URL: `http://127.0.0.1:${gateway.port}`,
      KANNEL_USERNAME: 'user',
      KANNEL_PASSWORD: 'password',
      KANNEL_FROM: 'ACME',
      PUBLIC_URL: publicUrl,
    })
    expectSuccess(await app.post('/otp/send', { phone: freshPhone() }), ['expiresIn'])
    await gateway.stop()
    const [url = ''] = urls
    // Kannel's report types: 4 is queued by the carrier, 1 is delivered.
    for (const type of [4, 1, 1]) {
      const path = url
        .slice(publicUrl.length)
        .replaceAll('%d', String(type))
        .replaceAll('%k', '')
        .replaceAll(/%#[^#]*#/g, '')
      expect((await app.get(path)).status).toBe(200)
    }
    await app.get('/callbacks/kannel/made.up?type=1')
    const told = await scrape()
    const received = (status: string) =>
      told.value('otpost_delivery_reports_total', { provider: 'kannel', status })
    expect(['pending', 'delivered', 'failed'].map(received)).toEqual([1, 2, 0])
    expect(
      told.value('otpost_http_requests_total', { route: '/callbacks/:provider/:token', status: '200' }),
    ).toBe(3)
  })

  test('have the version, start time and runtime', async () => {
    await start()
    const told = await scrape()
    const [info] = told.families.get('otpost_build_info')?.samples ?? []
    expect(info).toEqual({
      name: 'otpost_build_info',
      value: 1,
      labels: {
        version: expect.stringMatching(/^\d+\./),
        bun: Bun.version,
        database: expect.stringMatching(store === 'sqlite' ? /^SQLite 3\./ : /^PostgreSQL \d/),
      },
    })
    expect(told.value('process_resident_memory_bytes')).toBeGreaterThan(1e6)
    expect(told.value('process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(told.value('process_start_time_seconds')).toBeLessThanOrEqual(Date.now() / 1000)
  })
})

describe('the circuit breakers', () => {
  test('are closed, open after five failures, half-open after that, and closed again', async () => {
    const receiver = startReceiver(() => new Response(null, { status: 500 }))
    let elapsedMs = 0
    await start({ ...receiver.env, SMS_PLAIN: 'webhook,outbox' }, () => elapsedMs)
    const state = async () => {
      const told = await scrape()
      const of = (provider: string) =>
        ['closed', 'open', 'half-open'].map((each) =>
          told.value('otpost_provider_breaker_state', { provider, state: each }),
        )
      return {
        webhook: of('webhook'),
        outbox: of('outbox'),
        failures: told.value('otpost_provider_failures_in_a_row', { provider: 'webhook' }),
      }
    }
    const [works, isOpen, probed] = [
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
    ]
    expect(await state()).toEqual({ webhook: works, outbox: works, failures: 0 })
    for (let failure = 0; failure < 4; failure++) await app.post('/otp/send', { phone: freshPhone() })
    expect(await state()).toEqual({ webhook: works, outbox: works, failures: 4 })
    await app.post('/otp/send', { phone: freshPhone() })
    expect(await state()).toEqual({ webhook: isOpen, outbox: works, failures: 5 })
    elapsedMs += 10_000
    app.advance(10)
    expect((await state()).webhook).toEqual(probed)

    const asked = Promise.withResolvers<void>()
    const answer = held()
    receiver.answer(() => {
      asked.resolve()
      return answer.promise
    })
    const probe = app.post('/otp/send', { phone: freshPhone() })
    await asked.promise
    expect((await state()).webhook).toEqual(probed)
    answer.release(new Response(null, { status: 204 }))
    expectSuccess(await probe, ['expiresIn'])
    expect(await state()).toEqual({ webhook: works, outbox: works, failures: 0 })
    await receiver.stop()
  })
})

describe('the store', () => {
  sqliteOnly('is reported with its writes, commits and size', async () => {
    await start()
    const before = await scrape()
    const [first, second] = await Promise.all([
      app.post('/otp/send', { phone: freshPhone() }),
      app.post('/otp/send', { phone: freshPhone() }),
    ])
    await app.eventsOf(first)
    await app.eventsOf(second)
    const after = await scrape()
    const grown = (name: string) => (after.value(name) ?? 0) - (before.value(name) ?? 0)
    expect(grown('otpost_store_commit_batch_size_count')).toBeGreaterThan(0)
    expect(grown('otpost_store_commit_batch_size_sum')).toBeGreaterThan(
      grown('otpost_store_commit_batch_size_count'),
    )
    expect(grown('otpost_store_commit_duration_seconds_count')).toBe(
      grown('otpost_store_commit_batch_size_count'),
    )
    expect(grown('otpost_store_commit_duration_seconds_sum')).toBeGreaterThan(0)
    expect(after.value('otpost_database_up')).toBe(1)
    expect(after.value('otpost_database_bytes', { file: 'main' })).toBeGreaterThan(0)
    expect(after.value('otpost_database_bytes', { file: 'wal' })).toBeGreaterThan(0)
    expect(after.value('otpost_database_disk_free_bytes')).toBeGreaterThan(0)
    expect(after.value('otpost_store_queue_length')).toBe(0)
    expect(after.value('otpost_event_log_waiting')).toBe(0)
    expect(after.value('otpost_event_log_lost_requests_total')).toBe(0)
    expect(after.value('otpost_store_lost_transactions_total')).toBe(0)
  })

  test('is reported as down when it is unusable, and unknown values are omitted', async () => {
    app = await createBrokenApp({ METRICS_TOKEN: token })
    expect((await scrape()).value('otpost_database_up')).toBe(0)
  })

  sqliteOnly(
    'is reported as down without a size if its file is missing; lost writes are counted',
    async () => {
      const folder = temporaryFolder()
      const file = join(folder.path, 'gone.db')
      await start({ DATABASE_URL: `file:${file}` })
      expect((await scrape()).value('otpost_database_up')).toBe(1)
      rmSync(file)
      expectError(await app.post('/otp/send', { phone: freshPhone() }), 500, 'internal_error')
      const told = await scrape()
      expect(told.value('otpost_database_up')).toBe(0)
      expect(told.families.get('otpost_database_bytes')?.samples).toEqual([])
      expect(told.families.get('otpost_database_disk_free_bytes')?.samples).toEqual([])
      expect(told.value('otpost_store_lost_transactions_total')).toBeGreaterThan(0)
      folder.remove()
    },
  )
})

describe('labels', () => {
  const routes = ['/health', '/metrics', '/notify', '/otp/send', '/otp/verify', 'unmatched']
  const word = fc.stringMatching(/^[a-z0-9"\\{}=\n-]{6,20}$/).map((text) => `hostile${text}`)

  test('have no values from unauthenticated callers, and do not grow with the number of callers', async () => {
    await start()
    const hostile = new Set<string>()
    const attack = async (words: readonly string[]) => {
      const [path = '', appId = '', brandId = '', recipient = '', template = '', method = ''] = words
      for (const each of words) hostile.add(each)
      const phone = freshPhone()
      hostile.add(phone)
      const encoded = encodeURIComponent(path)
      await Promise.all([
        app.get(`/${encoded}`),
        app.get(`/otp/${encoded}?${encoded}=${encoded}`),
        app.get(`/health/../${encoded}`),
        app.request(method.replaceAll(/[^a-z0-9]/g, '').toUpperCase(), '/health'),
        app.request('PROPFIND', `/${encoded}`),
        app.post('/otp/send', { appId, apiKey: path, phone }),
        app.post('/otp/send', { brandId, phone }),
        app.post('/otp/send', { phone }),
        app.post('/otp/verify', { phone, otp: path }),
        app.post('/otp/verify', { email: `${encoded}@example.com`, otp: '123456' }),
        app.post('/notify', { channel: 'SMS', to: [recipient], templateKey: template, brandId }),
        app.post('/notify', { channel: template, to: [`${encoded}@example.com`], message: path }),
        app.postRaw('/notify', path),
      ])
    }
    await attack(['first', 'first', 'first', 'first', 'first', 'first'])
    const before = await scrape()
    await fc.assert(fc.asyncProperty(fc.array(word, { minLength: 6, maxLength: 6 }), attack), { numRuns: 80 })
    const after = await scrape()
    const values = after.samples.flatMap(({ labels }) => Object.values(labels))
    expect(values.filter((value) => [...hostile].some((each) => value.includes(each)))).toEqual([])
    expect(
      values.filter((value) => value.includes('hostile') || value.includes('shop') || value.includes('acme')),
    ).toEqual([])
    const of = (name: string, label: string) =>
      [...new Set(after.families.get(name)?.samples.map(({ labels }) => labels[label] ?? ''))].sort()
    expect(of('otpost_http_requests_total', 'route')).toEqual(routes)
    expect(of('otpost_http_requests_total', 'method')).toEqual(['GET', 'POST', 'other'])
    expect(of('otpost_http_request_duration_seconds', 'route')).toEqual(routes)
    // The first attack caused other errors, so its error codes are new labels.
    expect(after.samples.length).toBeLessThan(before.samples.length + 60)
  })

  test('are all documented', async () => {
    const receiver = startReceiver()
    await start({ ...receiver.env, SMS_PLAIN: 'webhook', PUBLIC_URL: 'https://otp.example' })
    await receiver.stop()
    await app.get('/health')
    const told = await scrape()
    const page = await Bun.file(`${import.meta.dir}/../../docs/metrics.md`).text()
    const documented = new Map(
      [...page.matchAll(/^- `((?:otpost|process)_\w+)` \((\w+)([^)]*)\)/gm)].map(
        ([, name = '', type = '', labels = '']) =>
          [
            name,
            { type, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).sort() },
          ] as const,
      ),
    )
    const actual = new Map(
      [...told.families.values()].map(({ name, type, samples }) => {
        const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)))
        return [name, { type, labels: [...labels].filter((label) => label !== 'le').sort() }] as const
      }),
    )
    // Metrics of the other store have no samples, and so no labels here.
    for (const { name, samples } of told.families.values()) {
      const known = documented.get(name)
      if (samples.length === 0 && known) documented.set(name, { ...known, labels: [] })
    }
    expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(actual))
  })
})
