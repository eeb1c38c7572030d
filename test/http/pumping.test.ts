import { afterEach, describe, expect, test } from 'bun:test'
import { type Answer, codeIn, createTestApp, type TestApp } from '../support/app.ts'
import { openTestDatabase } from '../support/database.ts'
import { tester } from '../support/operator.ts'
import { accepted, policyOf, temporary, testProvider, unknown } from '../support/policy.ts'
import { expectError, expectSuccess, retryAfter } from '../support/rows.ts'

// Design D41 on the request path. What the guard decides is in test/domain/guard.

const apps: TestApp[] = []
const provider = testProvider('one')

async function start(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const app = await createTestApp(
    { GUARD: 'deny', SMS_COUNTRIES: 'LV', ...env },
    { phoneRoutes: { plain: [provider] } },
  )
  apps.push(app)
  return app
}
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
  provider.sent.length = 0
  provider.answer(() => accepted)
})

const [minute, hour, day] = [60, 3600, 86_400]
/** A number of one prefix. */
const near = (index: number) => `3712255${String(1000 + index)}`
/** A number of a prefix of its own. */
const far = (index: number) => `3712${String(100 + index)}1234`
const numbers = (count: number, numberOf = near, first = 0) =>
  Array.from({ length: count }, (_, index) => numberOf(first + index))

type Fields = Readonly<Record<string, unknown>>

async function sendAll(app: TestApp, phones: readonly string[], fields: Fields = {}): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const phone of phones) answers.push(await app.post('/otp/send', { phone, ...fields }))
  return answers
}

const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)
const times = (count: number, status: number) => Array<number>(count).fill(status)

async function verify(app: TestApp, phone: string): Promise<void> {
  const otp = codeIn(provider.sent.findLast(({ to }) => to === phone)?.text)
  const answer = await app.post('/otp/verify', { phone, otp })
  expectSuccess(answer)
  await app.eventsOf(answer)
}

describe('GUARD=deny', () => {
  test('denies the sixth unverified code to a prefix, and blocks it for 12 hours', async () => {
    const app = await start()
    const answers = await sendAll(app, numbers(7))
    expect(statuses(answers)).toEqual([...times(5, 200), 429, 429])
    for (const answer of answers.slice(5)) {
      expectError(answer, 429, 'rate_limited')
      expect(retryAfter(answer)).toBe(12 * hour)
      expect(answer.body.message).toContain('numbers of this range were not verified. Try again in 12 hours.')
    }
    expect(provider.sent).toHaveLength(5)
    expect(statuses(await sendAll(app, [far(0)]))).toEqual([200])
    app.advance(12 * hour - 1)
    expect(statuses(await sendAll(app, [near(8)]))).toEqual([429])
    app.advance(1)
    expect(statuses(await sendAll(app, [near(8)]))).toEqual([200])
  })

  test('a verified code drains one', async () => {
    const app = await start()
    await sendAll(app, numbers(5))
    await verify(app, near(0))
    expect(statuses(await sendAll(app, numbers(2, near, 10)))).toEqual([200, 429])
  })

  test('a country without a history and a rule has 3 unverified codes an hour', async () => {
    const app = await start({ SMS_COUNTRIES: '' })
    const answers = await sendAll(app, numbers(4, far))
    expect(statuses(answers)).toEqual([200, 200, 200, 429])
    expect(answers[3]?.body.message).toContain('numbers of this country')
    expect(statuses(await sendAll(app, ['447400123456']))).toEqual([200])
  })

  test('an allowed country has 20 unverified codes an hour, also where a rule for a prefix decides', async () => {
    const app = await start()
    await policyOf(app).rule('+3712', 'allow', { sender: 'ACME' })
    expect(statuses(await sendAll(app, numbers(21, far)))).toEqual([...times(20, 200), 429])
  })

  test('of one number, the first verified code of a day counts in the history of its country', async () => {
    const app = await start({ SMS_COOLDOWN_SECONDS: '1' })
    const [phone = ''] = numbers(1)
    for (let count = 0; count < 3; count++) {
      await sendAll(app, [phone])
      await verify(app, phone)
      app.advance(30)
    }
    const { guardReader, now } = app.app.context
    expect(await guardReader.verifiedHistory()).toMatchObject([{ country: 'LV', inFortnight: 1 }])
    expect(await guardReader.countries(now())).toEqual([{ country: 'LV', sent: 3, verified: 3 }])
  })

  test('resend counts like send', async () => {
    const app = await start({ SMS_COOLDOWN_SECONDS: '1' })
    const [phone = ''] = await numbers(1)
    for (let count = 0; count < 3; count++) {
      app.advance(30)
      expectSuccess(await app.post('/otp/resend', { phone }), ['expiresIn'])
    }
    app.advance(30)
    expectError(await app.post('/otp/resend', { phone }), 429, 'rate_limited')
  })

  test('a prefix denies no e-mail and no /notify', async () => {
    const app = await start()
    await sendAll(app, numbers(6))
    const mail = { channel: 'EMAIL', email: 'a@example.com', clientIp: '192.0.2.1' }
    expectSuccess(await app.post('/otp/send', mail), ['expiresIn'])
    const message = { channel: 'SMS', brandId: 'acme', to: [near(9)], message: 'Hello' }
    expectSuccess(await app.post('/notify', message), ['channel'])
  })

  test('a denied request consumes no limit and no budget, and a limit names its error first', async () => {
    const app = await start({ GLOBAL_LIMIT_PER_MINUTE: '6' })
    const operate = policyOf(app)
    await operate.budget('server', '1000')
    await sendAll(app, numbers(5))
    expect(statuses(await sendAll(app, numbers(5, near, 10)))).toEqual(times(5, 429))
    expect(await operate.spent()).toEqual({ server: 10_000 })
    const cooled = await app.post('/otp/send', { phone: near(0) })
    expectError(cooled, 429, 'cooldown_active')
    expect((await app.eventsOf(cooled)).trace?.flags).toEqual([])
    expect(statuses(await sendAll(app, [far(0), far(1)]))).toEqual([200, 429])
  })

  test('a limit that rejects a request begins no block of its prefix', async () => {
    const app = await start()
    await sendAll(app, numbers(5))
    expectError(await app.post('/otp/send', { phone: near(0) }), 429, 'cooldown_active')
    app.advance(20 * minute)
    expect(statuses(await sendAll(app, [near(0)]))).toEqual([200])
  })

  test('concurrent requests that a limit rejects begin no block of their prefix', async () => {
    const app = await start()
    const phones = [...Array<string>(9).fill(near(0)), near(1)]
    const answers = await Promise.all(phones.map((phone) => app.post('/otp/send', { phone })))
    expect(
      answers
        .slice(0, 9)
        .map(({ body }) => body.error ?? 'sent')
        .sort(),
    ).toEqual([...Array<string>(8).fill('cooldown_active'), 'sent'])
    expect(statuses(await sendAll(app, [near(2)]))).toEqual([200])
  })

  test('what a limit or a budget rejects, and what certainly was not sent, fills nothing', async () => {
    const app = await start()
    await sendAll(app, [near(0)])
    for (let count = 0; count < 9; count++) {
      expectError(await app.post('/otp/send', { phone: near(0) }), 429, 'cooldown_active')
    }
    const operate = policyOf(app)
    await operate.budget('server', '1')
    expect(statuses(await sendAll(app, numbers(9, near, 10)))).toEqual(times(9, 429))
    await operate.removeBudget('server')
    provider.answer(() => temporary)
    expect(statuses(await sendAll(app, numbers(9, near, 20)))).toEqual(times(9, 502))
    provider.answer(() => unknown)
    expect(statuses(await sendAll(app, numbers(1, near, 30)))).toEqual([502])
    provider.answer(() => accepted)
    expect(statuses(await sendAll(app, numbers(4, near, 40)))).toEqual([200, 200, 200, 429])
  })

  test('under concurrency, a prefix gets exactly five', async () => {
    const app = await start()
    const answers = await Promise.all(numbers(50).map((phone) => app.post('/otp/send', { phone })))
    expect(statuses(answers).sort()).toEqual([...times(5, 200), ...times(45, 429)])
  })

  test('a number that verified passes for 180 days, until it is forgotten', async () => {
    const database = await openTestDatabase()
    // Like the command, the second one is another user of the file.
    const [app, command] = [await start(database.env), await start(database.env)]
    const [phone, forgotten] = [near(100), near(101)]
    await sendAll(app, [phone, forgotten])
    await verify(app, phone)
    await verify(app, forgotten)
    await command.app.context.forget({ channel: 'SMS', to: forgotten }, tester)
    const pump = async (first: number) => {
      const answers = statuses(await sendAll(app, numbers(30, near, first)))
      expect(answers.at(-1)).toBe(429)
    }
    app.advance(179 * day)
    await pump(200)
    expect(statuses(await sendAll(app, [phone, forgotten]))).toEqual([200, 429])
    app.advance(2 * day)
    await pump(300)
    expect(statuses(await sendAll(app, [phone]))).toEqual([429])
    await Promise.all(apps.splice(0).map((each) => each.close()))
    await database.remove()
  })
})

describe('the end user', () => {
  test('has by clientIp 5 unverified codes an hour, an IPv6 address with its /64', async () => {
    const app = await start()
    for (const [first, addresses] of [
      [0, ['192.0.2.1', '::ffff:192.0.2.1']],
      [20, ['2001:db8::1', '2001:db8:0:0:9::2']],
    ] as const) {
      const phones = numbers(8, far, first)
      const answers: Answer[] = []
      for (const [index, phone] of phones.entries()) {
        answers.push(await app.post('/otp/send', { phone, clientIp: addresses[index % 2] }))
      }
      expect(statuses(answers)).toEqual([...times(5, 200), ...times(3, 429)])
      expect(answers[5]?.body.message).toContain('requested from this IP address')
    }
    expect(statuses(await sendAll(app, [far(40)], { clientIp: '2001:db8:0:1::1' }))).toEqual([200])
  })

  test('has by deviceId 5 unverified codes an hour, from any IP address; a verified code drains one', async () => {
    const app = await start()
    const deviceId = 'Zr0kTqXo1mWc7uYb'
    const send = (index: number, path = '/otp/send') =>
      app.post(path, { phone: far(index), deviceId, clientIp: `192.0.2.${index + 1}` })
    const answers: Answer[] = []
    for (let index = 0; index < 6; index++) answers.push(await send(index))
    expect(statuses(answers)).toEqual([...times(5, 200), 429])
    expect(answers[5]?.body).toMatchObject({
      reason: 'guard',
      message: expect.stringContaining('requested from this device'),
    })
    await verify(app, far(0))
    expect([(await send(6, '/otp/resend')).status, (await send(7)).status]).toEqual([200, 429])
    expect(statuses(await sendAll(app, [far(8)], { deviceId: 'another' }))).toEqual([200])
  })

  test.each([{ clientIp: '192.0.2.1' }, { deviceId: 'device-1' }])(
    'has by %p also codes by e-mail, which nothing else denies',
    async (user) => {
      const app = await start()
      const mail = async (index: number, fields: Fields = user) =>
        (await app.post('/otp/send', { channel: 'EMAIL', email: `pat${index}@example.com`, ...fields }))
          .status
      const sent: number[] = []
      for (let index = 0; index < 6; index++) sent.push(await mail(index))
      expect(sent).toEqual([...times(5, 200), 429])
      const sms = await app.post('/otp/send', { phone: far(0), ...user })
      expectError(sms, 429, 'rate_limited')
      await app.eventsOf(sms)
      expect(await app.app.context.eventLog.guardCounts('hour', app.clock.now)).toMatchObject([
        { country: 'LV', count: 1 },
      ])
      expect(await mail(6, {})).toBe(200)
      const otp = await app.lastCode('pat0@example.com')
      expectSuccess(await app.post('/otp/verify', { email: 'pat0@example.com', otp }))
      expect([await mail(7), await mail(8)]).toEqual([200, 429])
    },
  )

  test('who is signed in already passes a full prefix, but not the buckets of the device', async () => {
    const app = await start()
    await sendAll(app, numbers(7))
    const trusted = { trustedUser: true, deviceId: 'device-1' }
    expect(statuses(await sendAll(app, numbers(6, near, 10), trusted))).toEqual([...times(5, 200), 429])
    const stranger = { trustedUser: false, deviceId: 'device-2' }
    expect(statuses(await sendAll(app, numbers(1, near, 20), stranger))).toEqual([429])
  })

  test('has no clientIp that is not an IP address', async () => {
    const app = await start()
    const invalid = ['me', '192.0.2.256', '192.0.2.1:80', '', 5, ['192.0.2.1'], '2001:db8::/64', '1.2.3']
    for (const clientIp of invalid) {
      for (const path of ['/otp/send', '/otp/resend']) {
        const answer = await app.post(path, { phone: near(0), clientIp })
        expectError(answer, 400, 'validation_error')
        expect(answer.body.message).toStartWith('`clientIp`')
      }
    }
  })

  test('has no stored IP address and device, and no field that the request trace names as unknown', async () => {
    const app = await start()
    const user = { clientIp: '198.51.100.77', deviceId: 'Zr0kTqXo1mWc7uYb', trustedUser: false }
    for (let index = 0; index < 4; index++) {
      const { trace } = await app.eventsOf(await app.post('/otp/send', { phone: far(index), ...user }))
      expect(trace?.unknownFields).toEqual([])
    }
    app.advance(6)
    await sendAll(app, [far(9)])
    await app.app.guard.sync()
    const contents = await app.database.contents()
    for (const secret of [user.clientIp, user.deviceId]) {
      expect(contents.includes(secret)).toBe(false)
      expect(JSON.stringify(app.lines)).not.toContain(secret)
    }
  })
})

describe('GUARD=record and off', () => {
  test('record sends, and marks the trace and the log line of what it would deny', async () => {
    const app = await start({ GUARD: 'record' })
    const answers = await sendAll(app, numbers(7))
    expect(statuses(answers)).toEqual(times(7, 200))
    const flags = []
    for (const answer of answers) flags.push((await app.eventsOf(answer)).trace?.flags)
    expect(flags).toEqual([[], [], [], [], [], ['prefix'], ['blocked-prefix']])
    expect(app.lines.at(-1)).toMatchObject({ flags: ['blocked-prefix'], status: 200 })
    const cooled = await app.post('/otp/send', { phone: near(0) })
    expectError(cooled, 429, 'cooldown_active')
    expect((await app.eventsOf(cooled)).trace?.flags).toEqual([])
  })

  test('off sends, and marks nothing', async () => {
    const app = await start({ GUARD: 'off' })
    const answers = await sendAll(app, numbers(7))
    expect(statuses(answers)).toEqual(times(7, 200))
    expect((await app.eventsOf(answers[6] as Answer)).trace?.flags).toEqual([])
  })
})

describe('two processes on one database', () => {
  test('share buckets and blocks, and a restart keeps them', async () => {
    const database = await openTestDatabase()
    const [first, second] = [await start(database.env), await start(database.env)]
    const both = async (seconds: number) => {
      for (const app of [first, second]) {
        app.advance(seconds)
        await app.app.guard.sync()
      }
    }
    expect(statuses(await sendAll(first, numbers(5)))).toEqual(times(5, 200))
    await both(6)
    await both(6)
    expect(statuses(await sendAll(second, numbers(1, near, 10)))).toEqual([429])
    await both(6)
    await both(6)
    expect(statuses(await sendAll(first, numbers(1, near, 11)))).toEqual([429])
    await Promise.all(apps.splice(0).map((app) => app.close()))
    const third = await start(database.env)
    third.advance(11 * hour)
    const [denied] = await sendAll(third, numbers(1, near, 12))
    expectError(denied as Answer, 429, 'rate_limited')
    third.advance(hour + minute)
    expect(statuses(await sendAll(third, numbers(1, near, 12)))).toEqual([200])
    await third.close()
    apps.splice(0)
    await database.remove()
  })
})
