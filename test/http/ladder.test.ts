import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { providerPath } from '../../src/domain/delivery/delivery-reports.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import type { Ladder } from '../../src/domain/otp/ladder.ts'
import { type Answer, createTestApp, otherThan, type TestApp, verdict } from '../support/app.ts'
import { explained } from '../support/explained.ts'
import { operate } from '../support/operator.ts'
import { policyOf, rejected, temporary, testProvider, unknown } from '../support/policy.ts'
import { startReceiver } from '../support/receiver.ts'
import { expectError, expectSuccess, freshEmail, freshPhone, logged } from '../support/rows.ts'

// Design D54: the further ways of a code. By which way a message goes is in ways.test.ts.

type Way = 'sms' | 'whatsapp' | 'voice'

/** Each message has an ID of its own, by which its provider reports. */
function reporting(name: string) {
  const provider = testProvider(name)
  return {
    ...provider,
    deliveryReports: {
      namedBy: 'providerMessageId' as const,
      read: ({ body }: CallbackRequest) => JSON.parse(new TextDecoder().decode(body)),
    },
    async send(sms: Sms): Promise<Outcome> {
      const outcome = await provider.send(sms)
      const providerMessageId = `${name}-${provider.sent.length}`
      return outcome.kind === 'accepted' ? { ...outcome, providerMessageId } : outcome
    },
  }
}

const providers = { sms: reporting('one'), whatsapp: reporting('two'), voice: reporting('three') }
let app: TestApp
let phone: string

afterEach(async () => {
  await app.close()
  for (const provider of Object.values(providers)) {
    provider.sent.length = 0
    provider.answer(() => ({ kind: 'accepted' }))
  }
})

const allWays = ['whatsapp', 'sms', 'voice'] as const

function server(ladder: Ladder, env: Readonly<Record<string, string>>): Promise<TestApp> {
  const { sms, whatsapp, voice } = providers
  const phoneRoutes = { plain: [sms], whatsapp: [whatsapp], voice: [voice] }
  return createTestApp({ PUBLIC_URL: 'https://otp.example', ...env }, { phoneRoutes, ladder })
}

async function start(
  { ways = allWays, waitSeconds = 20 }: Partial<Ladder> = {},
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  app = await server({ ways, waitSeconds }, env)
  phone = freshPhone()
}

/** Another server on the same database, at the same time. */
async function again(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const other = await server({ ways: allWays, waitSeconds: 20 }, { ...app.database.env, ...env })
  other.clock.now = app.clock.now
  return other
}

/** Lets everything that is due happen. */
async function settle({ app: { ladders } }: TestApp = app): Promise<void> {
  ladders?.tick()
  await ladders?.idle()
}

async function pass(seconds: number): Promise<void> {
  app.advance(seconds)
  await settle()
}

const send = () => app.post('/otp/send', { phone })
const sent = () =>
  Object.fromEntries(Object.entries(providers).map(([way, provider]) => [way, provider.sent.length]))
const codes = () => Object.values(providers).flatMap((provider) => provider.sent.map(({ code }) => code))

/** A report on the last message of a way. */
async function report(
  way: Way,
  status: DeliveryReport['status'],
  { number = providers[way].sent.length, reason = null }: { number?: number; reason?: string | null } = {},
  isFollowed = true,
): Promise<void> {
  const { name } = providers[way]
  const reports = [{ providerMessageId: `${name}-${number}`, status, reason }]
  expect((await app.postRaw(providerPath(app.app.context.secrets, name), reports)).status).toBe(200)
  if (isFollowed) await settle()
}

async function rows() {
  return app.database.query('SELECT * FROM ladders ORDER BY request_id')
}

test('WhatsApp fails by its report, SMS is silent, a call follows: the same code, of which one verify succeeds', async () => {
  await start()
  const answer = await send()
  expectSuccess(answer, ['expiresIn'])
  await pass(3)
  await report('whatsapp', 'pending')
  expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 0 })
  await report('whatsapp', 'failed', { reason: '131026' })
  expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  await pass(19)
  expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  await pass(1)
  expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 1 })
  const [code = ''] = codes()
  expect(codes()).toEqual([code, code, code])
  const verify = () => app.post('/otp/verify', { phone, otp: code })
  expect([verdict(await verify()), verdict(await verify())]).toEqual(['200', '404 not_found'])
  await pass(100)
  expect(codes()).toHaveLength(3)
})

describe('a code goes on', () => {
  test('at once after a failure at once, within the request, until a provider accepts it', async () => {
    await start()
    providers.whatsapp.answer(() => temporary)
    providers.sms.answer(() => rejected)
    expectSuccess(await send(), ['expiresIn'])
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 1 })
    const [code = ''] = codes()
    expect(codes()).toEqual([code, code, code])
    // The last way is used, so nothing waits.
    expect(await rows()).toMatchObject([
      { ways: '', ended: 'its last way was used', sealed: '', due_at: null },
    ])
  })

  test('after a message that may have been sent', async () => {
    await start()
    providers.whatsapp.answer(() => unknown)
    expectSuccess(await send(), ['expiresIn'])
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  })

  test('and is revoked if no way accepts it', async () => {
    await start()
    for (const provider of Object.values(providers)) provider.answer(() => temporary)
    expectError(await send(), 502, 'sms_failed')
    const [code = ''] = codes()
    expect(verdict(await app.post('/otp/verify', { phone, otp: code }))).toBe('404 not_found')
    expect(await rows()).toMatchObject([{ ended: 'no way is left that could send the code', sealed: '' }])
    await pass(30)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 1 })
  })

  test('at once after a later failure at once', async () => {
    await start()
    await send()
    providers.sms.answer(() => temporary)
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 1 })
  })

  test('without an open circuit, which a later way does not wait for', async () => {
    await start({}, { SMS_COOLDOWN_SECONDS: '0' })
    providers.whatsapp.answer(() => temporary)
    for (let failures = 0; failures < 5; failures++) {
      phone = freshPhone()
      expectSuccess(await send(), ['expiresIn'])
    }
    phone = freshPhone()
    const answer = await send()
    expect(sent()).toEqual({ whatsapp: 5, sms: 6, voice: 0 })
    const { deliveries } = await app.eventsOf(answer)
    expect(deliveries.map(({ provider, outcome, reason }) => [provider, outcome, reason])).toEqual([
      ['two', 'skipped', 'keeps failing'],
      ['one', 'accepted', null],
    ])
  })
})

describe('a delivery report', () => {
  test('of a failure counts for 60 s after the latest message, and for that message alone', async () => {
    await start({ waitSeconds: 0 })
    await send()
    app.advance(60)
    await report('whatsapp', 'failed')
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    await report('whatsapp', 'failed')
    await report('whatsapp', 'failed', { reason: 'again' })
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    app.advance(60)
    await report('sms', 'failed')
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 1 })
  })

  test('of a failure after 60 s begins nothing; without a wait the ladder has then ended', async () => {
    await start({ waitSeconds: 0 })
    await send()
    app.advance(61)
    await report('whatsapp', 'failed')
    await pass(100)
    expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 0 })
    expect(await rows()).toMatchObject([
      { ended: 'no delivery report said that the message failed', sealed: '', ways: 'sms,voice' },
    ])
  })

  test('of a failure after 60 s counts as none, if the wait is longer', async () => {
    await start({ waitSeconds: 120 })
    await send()
    app.advance(61)
    await report('whatsapp', 'failed')
    expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 0 })
    await pass(59)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  })

  test('that the message was delivered ends the ladder, also one of an earlier message', async () => {
    await start()
    await send()
    await report('whatsapp', 'delivered')
    expect(await rows()).toMatchObject([{ ended: 'a message was delivered', sealed: '' }])
    phone = freshPhone()
    await send()
    await pass(20)
    await report('whatsapp', 'delivered')
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 2, sms: 1, voice: 0 })
    expect((await rows()).map(({ ended }) => ended)).toEqual([
      'a message was delivered',
      'a message was delivered',
    ])
  })

  test('in any order, repeated, and before the answer of the provider, has the same effect', async () => {
    await start()
    providers.whatsapp.answer(async () => {
      await report('whatsapp', 'failed')
      await report('whatsapp', 'pending')
      return { kind: 'accepted' }
    })
    expectSuccess(await send(), ['expiresIn'])
    expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 0 })
    await settle()
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    await report('sms', 'delivered')
    await report('sms', 'failed')
    await pass(60)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  })
})

describe('nothing follows', () => {
  const gone = 'the code has expired or was revoked'
  const noWay = 'no way is left that could send the code'
  const notActive = 'the brand is not active'
  const ends: Readonly<Record<string, readonly [end: () => Promise<unknown>, why: string]>> = {
    'a verified code': [() => app.post('/otp/verify', { phone, otp: codes()[0] }), 'the code was verified'],
    'a locked code': [
      async () => {
        for (let wrong = 0; wrong < 3; wrong++)
          await app.post('/otp/verify', { phone, otp: otherThan(codes()[0] ?? '') })
      },
      'the code is locked',
    ],
    'a replaced code': [
      () => app.post('/otp/resend', { phone, via: 'voice' }),
      'a new code replaced this one',
    ],
    'a person who is forgotten': [
      () => app.app.context.forget({ channel: 'SMS', to: phone }, { by: 'command', name: 'test' }),
      'forgotten',
    ],
    'an expired code': [async () => app.advance(300), gone],
    'a suspended brand': [() => app.brand('acme', { status: 'suspended' }), notActive],
    'a destination that is blocked': [() => policyOf(app).rule('*', 'block'), noWay],
  }
  for (const [name, [end, why]] of Object.entries(ends)) {
    test(name, async () => {
      await start({}, { SMS_COOLDOWN_SECONDS: '0' })
      await send()
      const before = sent()
      await end()
      const { voice = 0 } = sent()
      const isAtOnce = ![gone, noWay, notActive].includes(why)
      const known = why === 'forgotten' ? [] : [{ ended: why, sealed: '', due_at: null }]
      if (isAtOnce) expect(await rows()).toMatchObject(known)
      for (let seconds = 0; seconds < 60; seconds += 10) await pass(10)
      expect(sent()).toEqual({ ...before, voice })
      expect(await rows()).toMatchObject(known)
    })
  }

  test('a resend by another way, a code by e-mail, or a code of a review number', async () => {
    await start({}, { SMS_COOLDOWN_SECONDS: '0' })
    await app.post('/otp/resend', { phone, via: 'sms' })
    await app.post('/otp/send', { channel: 'EMAIL', email: freshEmail() })
    providers.voice.answer(() => temporary)
    expectError(await app.post('/otp/resend', { phone, via: 'voice' }), 502, 'sms_failed')
    await pass(60)
    expect(sent()).toEqual({ whatsapp: 0, sms: 1, voice: 1 })
    expect(await rows()).toEqual([])
  })
})

describe('a further message', () => {
  test('counts on the limits of the phone, which may reject it; the cooldown does not', async () => {
    await start({}, { PHONE_LIMIT_PER_HOUR: '2', SMS_COOLDOWN_SECONDS: '300' })
    const answer = await send()
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    expect(await rows()).toMatchObject([{ ended: 'no way is left that could send the code' }])
    const { deliveries } = await app.eventsOf(answer)
    expect(deliveries.at(-1)).toMatchObject({ outcome: 'skipped', reason: 'rate-limited: phone_hour' })
    app.advance(300)
    expectError(await send(), 429, 'rate_limited', 'phone_hour')
  })

  test('that was certainly not sent is given back', async () => {
    await start({ ways: ['whatsapp', 'sms'] }, { PHONE_LIMIT_PER_HOUR: '2', SMS_COOLDOWN_SECONDS: '0' })
    await send()
    providers.sms.answer(() => temporary)
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    expectSuccess(await send(), ['expiresIn'])
  })

  test('is charged; a way that a budget rejects is skipped, and the next one follows', async () => {
    await start()
    const operate = policyOf(app)
    await operate.prices('44 0.01 two', '44 5 one', '44 0.02 three')
    await operate.budget('server', '1')
    phone = '447400123456'
    const answer = await send()
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 1 })
    expect(await operate.spent()).toEqual({ server: 30 })
    const { deliveries } = await app.eventsOf(answer)
    expect(
      deliveries.map(({ route, outcome, reason, attempt }) => [route, outcome, reason, attempt]),
    ).toEqual([
      ['whatsapp', 'accepted', null, 1],
      ['plain', 'skipped', 'budget exhausted', 2],
      ['voice', 'accepted', null, 3],
    ])
  })

  test('within the request is charged too, and an exhausted budget then rejects the way alone', async () => {
    await start()
    const operate = policyOf(app)
    await operate.prices('44 0.01 two', '44 5 one', '44 0.02 three')
    await operate.budget('server', '1')
    providers.whatsapp.answer(() => temporary)
    phone = '447400123456'
    const answer = await send()
    expectSuccess(answer, ['expiresIn'])
    expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 1 })
    expect(await operate.spent()).toEqual({ server: 20 })
    const { trace } = await app.eventsOf(answer)
    expect(trace?.limits.filter(({ refused }) => refused)).toEqual([])
  })

  test('is rejected where the guard rejects new codes; the code is counted once', async () => {
    await start({}, { GUARD: 'deny', SMS_COOLDOWN_SECONDS: '0' })
    const { guard } = app.app
    await send()
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    await operate(app, 'guard block', { prefix: phone.slice(0, -4), duration: '1h' })
    await guard.sync()
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  })

  test('does not meet the count of its own code, which filled a bucket of the guard', async () => {
    await start({}, { GUARD: 'deny' })
    // Of a country without a verified code, an hour has three.
    for (const range of [1, 2, 3]) {
      phone = `447400${range}00001`
      expectSuccess(await send(), ['expiresIn'])
    }
    await pass(20)
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 3, sms: 3, voice: 3 })
    phone = '447400400001'
    expectError(await send(), 429, 'rate_limited', 'guard')
  })

  test('to numbers whose new codes the guard denies, as too many were not verified, is not sent', async () => {
    await start({}, { GUARD: 'deny', SMS_COOLDOWN_SECONDS: '0' })
    const flagged = async () => {
      await app.app.guard.sync()
      const [row] = await app.database.query("SELECT sent FROM guard_buckets WHERE kind = 'flagged'")
      return Number(row?.sent ?? 0)
    }
    const answers: Answer[] = []
    // The range accepts a few unverified codes; that many more are denied is an attack.
    for (let index = 0; index < 9; index++) {
      phone = `4474001${String(index).padStart(5, '0')}`
      const answer = await send()
      if (answer.status === 200) answers.push(answer)
    }
    const { whatsapp = 0 } = sent()
    expect(whatsapp).toBeWithin(1, 9)
    const before = await flagged()
    await pass(20)
    expect(await flagged()).toBeGreaterThan(before + 1)
    for (const answer of answers) {
      const { deliveries } = await app.eventsOf(answer)
      expect(deliveries.at(-1)).toMatchObject({ outcome: 'skipped', reason: 'rate-limited: guard' })
    }
    expect(sent()).toEqual({ whatsapp, sms: 0, voice: 0 })
    expect((await rows()).map(({ ended }) => ended)).toEqual(
      Array(whatsapp).fill('no way is left that could send the code'),
    )
  })

  test('of another provider is the one that a verified code counts for', async () => {
    await start()
    await send()
    await pass(20)
    const code = await app.database.query('SELECT provider FROM codes_and_limits WHERE code_id IS NOT NULL')
    expect(code).toEqual([{ provider: 'one' }])
  })
})

describe('at the same time', () => {
  test('two servers take a due ladder: one of them sends', async () => {
    await start()
    const other = await again()
    for (let round = 0; round < 5; round++) {
      phone = freshPhone()
      await send()
      app.advance(20)
      other.clock.now = app.clock.now
      await Promise.all([settle(other), settle(), settle(other)])
      // The calls are for the phone of the round before.
      expect(sent()).toEqual({ whatsapp: round + 1, sms: round + 1, voice: round })
    }
    await other.close()
  })

  test('a late process whose lease has ended sends nothing that another one has sent', async () => {
    await start()
    const other = await again()
    await send()
    app.advance(20)
    const { brands } = app.app.context
    const slow = Promise.withResolvers<void>()
    const bySlug = brands.bySlug.bind(brands)
    // It has taken the ladder, and waits for the database.
    spyOn(brands, 'bySlug').mockImplementation(async (slug) => {
      await slow.promise
      return bySlug(slug)
    })
    app.app.ladders?.tick()
    while ((await rows())[0]?.due_at === app.clock.now) await logged()
    app.advance(14)
    other.clock.now = app.clock.now
    await settle(other)
    slow.resolve()
    await app.app.ladders?.idle()
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    await pass(20)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 1 })
    await other.close()
  })

  for (const [name, call] of [
    ['a verify', () => app.post('/otp/verify', { phone, otp: codes().at(-1) })],
    ['a resend', () => app.post('/otp/resend', { phone, via: 'voice' })],
  ] as const) {
    test(`${name} and the next way: a message is from before it, or is not sent`, async () => {
      await start({ ways: ['whatsapp', 'sms'] }, { SMS_COOLDOWN_SECONDS: '0', PHONE_LIMIT_PER_MINUTE: '9' })
      for (let round = 0; round < 8; round++) {
        phone = freshPhone()
        await send()
        app.advance(20)
        let isAnswered = false
        providers.sms.answer(() => {
          // The step was committed before the answer.
          expect(isAnswered && round < 4).toBe(false)
          return { kind: 'accepted' }
        })
        const answered = call().then((answer) => {
          isAnswered = true
          return answer
        })
        if (round < 4) await answered
        await Promise.all([settle(), answered])
        expect((await answered).status).toBe(200)
      }
      expect(sent().sms).toBeLessThanOrEqual(4)
      expect((await rows()).map(({ sealed }) => sealed).filter(Boolean)).toEqual([])
    })
  }
})

test('in any history: each way once, with one code, and none after the code has ended', async () => {
  await start(
    { waitSeconds: 20 },
    { SMS_COOLDOWN_SECONDS: '0', PHONE_LIMIT_PER_MINUTE: '1000', PHONE_LIMIT_PER_HOUR: '1000' },
  )
  const way = fc.constantFrom<Way>('sms', 'whatsapp', 'voice')
  const status = fc.constantFrom<DeliveryReport['status'][]>('failed', 'failed', 'delivered', 'pending')
  const outcome = fc.constantFrom<Outcome[]>(temporary, unknown, rejected, { kind: 'accepted' })
  const kind = <Kind extends string>(name: Kind) => fc.constant(name)
  const step = fc.oneof(
    ...[1, 2, 3, 4].map(() =>
      fc.record({ kind: kind('pass'), seconds: fc.constantFrom(1, 5, 20, 40, 61, -3, -10) }),
    ),
    ...[1, 2, 3].map(() => fc.record({ kind: kind('report'), way, status })),
    ...[1, 2].map(() => fc.record({ kind: kind('answers'), way, outcome })),
    fc.record({ kind: kind('resend') }),
    fc.record({ kind: kind('verify'), isRight: fc.boolean() }),
  )
  const history = fc.array(step, { minLength: 2, maxLength: 14, size: 'max' })
  const property = fc.asyncProperty(history, async (steps) => {
    phone = freshPhone()
    const to = () =>
      Object.values(providers).flatMap(({ sent }) =>
        sent.filter((sms) => sms.to === phone.replace(/\D/g, '')),
      )
    const ended = new Set<string>()
    let wrong = 0
    let latest: { readonly id: string; readonly code: string | null; readonly until: number } | undefined
    const sending = async (path: string) => {
      const { body, status } = await app.post(path, { phone })
      // A rejected request replaces no code.
      if (status === 429) return
      wrong = 0
      if (latest) ended.add(latest.id)
      const code = to().find((sms) => sms.requestId === body.requestId)?.code ?? null
      latest = { id: body.requestId, code, until: app.clock.now + 300_000 }
      if (status !== 200) ended.add(body.requestId)
    }
    await sending('/otp/send')
    for (const each of steps) {
      const before = to()
      if (latest && app.clock.now >= latest.until) ended.add(latest.id)
      const endedBefore = new Set(ended)
      if (each.kind === 'pass') {
        app.advance(each.seconds)
        if (latest && app.clock.now >= latest.until) endedBefore.add(latest.id)
        await settle()
      } else if (each.kind === 'report' && providers[each.way].sent.length > 0)
        await report(each.way, each.status)
      else if (each.kind === 'answers') providers[each.way].answer(() => each.outcome)
      else if (each.kind === 'resend') await sending('/otp/resend')
      else if (each.kind === 'verify' && latest) {
        const otp = each.isRight ? latest.code : otherThan(latest.code ?? '')
        const { status } = await app.post('/otp/verify', { phone, otp })
        if (status === 401) wrong++
        if (status === 200 || wrong === 3) ended.add(latest.id)
        await settle()
      }
      const later = to().filter((sms) => !before.includes(sms))
      expect(later.filter(({ requestId }) => endedBefore.has(requestId))).toEqual([])
    }
    for (const [, own] of Map.groupBy(to(), ({ requestId }) => requestId)) {
      expect(new Set(own.map(({ code }) => code)).size).toBe(1)
      expect(new Set(own.map(({ route }) => route)).size).toBe(own.length)
    }
    for (const provider of Object.values(providers)) provider.answer(() => ({ kind: 'accepted' }))
  })
  await fc.assert(property, { numRuns: 40 })
}, 60_000)

describe('what the app and operators see', () => {
  const statusOf = async ({ body }: Answer) => {
    const answer = await app.post('/messages/status', { messageRequestId: body.requestId })
    return answer.body.recipients[0].status
  }

  /** As `otpost explain` prints it. */
  const story = async (answer: Answer) => {
    const { trace, deliveries } = await app.eventsOf(answer)
    if (!trace) throw new Error('the event log does not have the request')
    return explained(trace, deliveries).join('\n')
  }

  test('a failed message that goes on is not failed, in its status and events, until no way is left', async () => {
    const receiver = startReceiver()
    await start()
    await policyOf(app).webhook(receiver.url)
    const events = async () => {
      app.advance(1)
      await app.app.context.eventLog.flush()
      app.app.events.tick()
      await app.app.events.idle()
      return receiver.received.map(({ body: { type, data } }) => `${type} ${data.reason}`)
    }
    const answer = await send()
    await report('whatsapp', 'failed', { reason: '131026' }, false)
    expect(await statusOf(answer)).toBe('queued')
    expect(await events()).toEqual([])
    await settle()
    expect(await statusOf(answer)).toBe('accepted')
    await report('sms', 'failed', { reason: '30003' }, false)
    expect(await events()).toEqual([])
    providers.voice.answer(() => rejected)
    await settle()
    expect(await statusOf(answer)).toBe('failed')
    expect(await events()).toEqual(['message.failed 131026'])
    await report('sms', 'delivered')
    expect(await statusOf(answer)).toBe('delivered')
    expect(await events()).toEqual(['message.failed 131026', 'message.delivered null'])
    await receiver.stop()
  })

  test('explain shows the ways in order, why each followed, and why the ladder ended', async () => {
    await start()
    const answer = await send()
    expect(await story(answer)).toContain('Further ways, if the code does not arrive: sms, then voice.')
    app.advance(4)
    await report('whatsapp', 'failed', { reason: '131026' })
    await pass(20)
    const lines = await story(answer)
    expect(lines).toMatch(
      /1\. 2026-01-01 12:00:00 UTC {2}two on the whatsapp route.*\n.*2\. 2026-01-01 12:00:04/,
    )
    expect(lines).toMatch(
      /2\. .* one on the plain route.*; next way, since the delivery report says failed: 131026\n/,
    )
    expect(lines).toMatch(
      /3\. .* three on the voice route.*; next way, since no delivery report arrived within 20 s/,
    )
    expect(lines).toContain('Its ladder ended, since its last way was used. Ways not used: none.')
    phone = freshPhone()
    providers.whatsapp.answer(() => temporary)
    const other = await send()
    await app.post('/otp/verify', { phone, otp: codes().at(-2) })
    const second = await story(other)
    expect(second).toContain('next way, since the way before it failed')
    expect(second).toContain('Its ladder ended, since the code was verified. Ways not used: voice.')
  })

  test('explain keeps why a way followed, also after later reports, and with a wait of 0', async () => {
    await start({ waitSeconds: 0 })
    const answer = await send()
    app.advance(4)
    await report('whatsapp', 'failed', { reason: '131026' })
    app.advance(5)
    await report('whatsapp', 'delivered')
    expect(await story(answer)).toMatch(
      /one on the plain route.*; next way, since the delivery report says failed: 131026/,
    )
    await app.close()
    await start({ waitSeconds: 60 })
    const silent = await send()
    await pass(60)
    await report('whatsapp', 'failed', { reason: 'late' })
    expect(await story(silent)).toMatch(
      /one on the plain route.*; next way, since no delivery report arrived within 60 s/,
    )
  })

  test('explain shows a way that is skipped because of its country, and that the next one follows for it', async () => {
    await start({ ways: ['whatsapp', 'voice', 'sms'] }, { VOICE_COUNTRIES: 'FR' })
    phone = '447400123456'
    const later = await send()
    await pass(20)
    providers.whatsapp.answer(() => temporary)
    phone = '447400123457'
    const atOnce = await send()
    expect(sent()).toEqual({ whatsapp: 2, sms: 2, voice: 0 })
    const skipped = (why: string) =>
      new RegExp(
        `2\\. .* none on the voice route.*: skipped: no calls to this country; next way, since ${why}`,
      )
    expect(await story(later)).toMatch(skipped('no delivery report arrived within 20 s'))
    expect(await story(atOnce)).toMatch(skipped('the way before it failed'))
    for (const answer of [later, atOnce])
      expect(await story(answer)).toMatch(
        /3\. .* one on the plain route.*; next way, since the way before it was skipped/,
      )
  })
})

test('a fault of the store after a message changes no answer', async () => {
  await start()
  const { ladderStore } = app.app.context
  spyOn(ladderStore, 'sent').mockRejectedValueOnce(new Error('the disk is full'))
  expectSuccess(await send(), ['expiresIn'])
  providers.whatsapp.answer(() => temporary)
  phone = freshPhone()
  spyOn(ladderStore, 'sent').mockRejectedValueOnce(new Error('the disk is full'))
  expectSuccess(await send(), ['expiresIn'])
  expectSuccess(await app.post('/otp/verify', { phone, otp: codes().at(-1) }))
  expect(sent()).toEqual({ whatsapp: 2, sms: 1, voice: 0 })
})

test('after a fault of the store the way follows later; if its step was committed, the way counts as used', async () => {
  await start()
  const { store } = app.app.context
  const sendAgain = store.sendAgain.bind(store)
  const step = spyOn(store, 'sendAgain').mockRejectedValueOnce(new Error('the disk is full'))
  await send()
  await pass(20)
  expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 0 })
  expect(app.lines).toContainEqual(expect.objectContaining({ requestId: expect.any(String) }))
  await pass(13)
  expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  phone = freshPhone()
  await send()
  step.mockImplementationOnce(async (...input) => {
    await sendAgain(...input)
    throw new Error('the connection is lost')
  })
  await report('whatsapp', 'failed')
  await pass(13)
  expect(sent()).toEqual({ whatsapp: 2, sms: 1, voice: 1 })
})

describe('after a crash', () => {
  test('during the first message, the next way follows once the lease has ended', async () => {
    await start()
    const hanging = Promise.withResolvers<Outcome>()
    providers.whatsapp.answer(() => hanging.promise)
    const answer = send()
    while (sent().whatsapp === 0) await logged()
    await pass(12)
    expect(sent()).toEqual({ whatsapp: 1, sms: 0, voice: 0 })
    await pass(1)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    // Its process was late, and had not ended: it sends nothing else, and revokes the code.
    hanging.resolve(temporary)
    expectError(await answer, 502, 'sms_failed')
    await pass(60)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  })

  test('after a restart, the next server goes on', async () => {
    await start()
    await send()
    await app.app.ladders?.stop()
    const other = await again()
    other.advance(20)
    await settle(other)
    expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
    await other.close()
  })
})

test('the waiting code is encrypted', async () => {
  await start()
  await send()
  const [row] = await rows()
  const [code = ''] = codes()
  expect(JSON.stringify(row)).not.toContain(code)
  expect(JSON.stringify(row)).not.toContain(phone)
})

test('the cleanup erases the code of a ladder once the code has expired, also before the ladder is due', async () => {
  await start({ waitSeconds: 240 }, { OTP_TTL_SECONDS: '120' })
  await send()
  app.advance(60)
  phone = freshPhone()
  await send()
  app.advance(60)
  await app.app.context.sweep({ eventLog: 30, audit: 30, requests: 30 })
  expect(await rows()).toMatchObject([
    { ended: 'the code has expired', sealed: '', due_at: null, report_key: null },
    { ended: null, sealed: expect.stringMatching(/./), due_at: expect.anything() },
  ])
})

test('a code that waits under the previous secret key is sent; without that key, its ladder ends', async () => {
  const [oldKey, newKey] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']
  await start({}, { SECRET_KEY: oldKey })
  await send()
  const both = await again({ SECRET_KEY: `${newKey},${oldKey}` })
  both.advance(20)
  await settle(both)
  expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  const one = await again({ SECRET_KEY: newKey })
  one.advance(60)
  await settle(one)
  expect(sent()).toEqual({ whatsapp: 1, sms: 1, voice: 0 })
  expect(await rows()).toMatchObject([{ ended: 'no secret key of the server opens the code', sealed: '' }])
  const otp = codes().at(-1)
  expectSuccess(await both.post('/otp/verify', { phone, otp }))
  await Promise.all([both.close(), one.close()])
})

test('without LADDER, nothing is stored', async () => {
  await start({ ways: ['sms'] })
  await send()
  expect(app.app.ladders).toBeUndefined()
  expect(await rows()).toEqual([])
})

test('a server without LADDER ends what waits, at its start', async () => {
  await start()
  await send()
  const other = await createTestApp(app.database.env, { ladder: { ways: ['sms'], waitSeconds: 20 } })
  expect(await rows()).toMatchObject([{ sealed: '', due_at: null, ended: 'the server has no LADDER' }])
  await other.close()
})
