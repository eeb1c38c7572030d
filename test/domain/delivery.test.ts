import { describe, expect, test } from 'bun:test'
import { Breakers } from '../../src/domain/delivery/breaker.ts'
import {
  type Charging,
  type DeliveryPorts,
  deliverMail,
  deliverSms,
  longestDeliveryMs,
} from '../../src/domain/delivery/delivery.ts'
import {
  providersOf,
  routesOf,
  type SmsMode,
  smsSteps,
  type WayPorts,
} from '../../src/domain/delivery/way.ts'
import type {
  Mail,
  Outcome,
  Sms,
  SmsMessage,
  SmsProvider,
  SmsRoute,
} from '../../src/domain/ground/providers.ts'
import type { RequestContext } from '../../src/domain/request/request-context.ts'
import { deliveryBasics, newContext, oneSegment } from '../support/calls.ts'

const accepted: Outcome = { kind: 'accepted', providerMessageId: 'V1' }
const down: Outcome = { kind: 'retryable', reason: 'HTTP 503' }
const timedOut: Outcome = { kind: 'unknown', reason: 'time-out' }
const rejectedNumber: Outcome = { kind: 'rejected', scope: 'recipient', reason: 'no such number' }
const rejectedText: Outcome = { kind: 'rejected', scope: 'content', reason: 'bad template' }
const noCredit: Outcome = { kind: 'rejected', scope: 'account', reason: 'no credit' }

const message: SmsMessage = {
  id: 'message 1',
  requestId: 'request 1',
  brandSlug: 'acme',
  brandName: 'Acme',
  to: '12025550143',
  code: '012345',
  country: 'US',
  senderId: null,
  recipientHash: 'hash of the recipient',
  text: '012345 is your code\n\n@shop.example #012345',
  lang: 'hi',
  template: {
    key: 'LOGIN_OTP',
    lang: 'en',
    text: '012345 is your code',
    variables: { otp: '012345' },
    registration: {
      id: '1107',
      ids: { first: '65a' },
      senderId: 'ACMEIN',
      maxLength: null,
      entityId: '1101',
    },
  },
  validitySeconds: 300,
  expectsFeedback: true,
  position: null,
}
const timeoutMs = 4000
interface Routing {
  readonly routes: readonly SmsRoute[]
  readonly avoid?: string | null
}

const both: Routing = { routes: ['template', 'plain'] }
const plain: Routing = { routes: ['plain'] }
const cost = { micros: 7, currency: 'EUR' }
const charging: Charging = { mayContinue: async () => true, spend: () => cost }

function deliver(
  ports: DeliveryPorts & Pick<WayPorts, 'phoneRoutes'>,
  context: RequestContext,
  message: SmsMessage,
  { routes, avoid = null }: Routing,
): Promise<Outcome> {
  const steps = smsSteps(oneSegment, message, providersOf(ports, routes))
  return deliverSms(
    ports,
    context,
    { ...message, kind: 'ordinary', steps, rule: null, paused: [] },
    { avoid, charging },
  )
}

type Script = readonly (readonly [name: string, outcome: Outcome | Error, takesMs?: number])[]

const outcomes = { accepted, down, timedOut, rejectedNumber, rejectedText, noCredit, bug: new Error('a bug') }

/** Providers and their outcomes, such as `a:down b:accepted`. */
function script(text: string): Script {
  return text.split(' ').flatMap((word) => {
    const [name = '', answer = ''] = word.split(':')
    return Object.entries(outcomes).flatMap(([key, outcome]) =>
      key === answer ? [[name, outcome] as const] : [],
    )
  })
}

/** Providers by name, with their outcomes and durations; records the calls they get. */
function world(routes: Partial<Readonly<Record<SmsRoute, Script>>>) {
  let now = 0
  const answers = new Map<string, Outcome | Error>()
  const asked: { name: string; sms: Sms; timeoutMs: number }[] = []
  const provider = ([name, outcome, takesMs = 0]: Script[number]): SmsProvider => ({
    name,
    async send(sms, limitMs) {
      asked.push({ name, sms, timeoutMs: limitMs })
      now += Math.min(takesMs, limitMs)
      const answer = answers.get(name) ?? outcome
      if (answer instanceof Error) throw answer
      return answer
    },
  })
  const stopwatch = () => now
  const ports = {
    phoneRoutes: {
      plain: (routes.plain ?? []).map(provider),
      template: (routes.template ?? []).map(provider),
    },
    mailer: { name: 'mailer', send: async () => accepted },
    now: () => 1_000_000 + now,
    stopwatch,
    providerTimeoutMs: timeoutMs,
    ...deliveryBasics(stopwatch),
  }
  return {
    ports,
    asked,
    names: () => asked.splice(0).map(({ name, sms }) => `${name}/${sms.route}`),
    /** Sets the outcome of a provider from now on. */
    answer: (name: string, outcome: Outcome) => answers.set(name, outcome),
    advance: (ms: number) => {
      now += ms
    },
  }
}

describe('the routes of a registered template (design D14)', () => {
  const rows: readonly (readonly [SmsMode, boolean, readonly SmsRoute[]])[] = [
    ['plain', false, ['plain']],
    ['plain', true, ['plain']],
    ['template', false, ['plain']],
    ['template', true, ['template']],
    ['hybrid', false, ['plain']],
    ['hybrid', true, ['template', 'plain']],
  ]
  test.each(rows)('mode %s, dltEnabled %p: %p', (mode, dltEnabled, routes) => {
    expect(routesOf(mode, dltEnabled)).toEqual(routes)
  })
})

describe('the order of SMS providers', () => {
  type Row = readonly [
    title: string,
    template: string,
    plain: string,
    routing: Parameters<typeof deliver>[3],
    asked: string,
    outcome: Outcome,
  ]
  const rows: readonly Row[] = [
    [
      'the first provider that accepts the message is the last one tried',
      '',
      'a:accepted b:accepted',
      plain,
      'a/plain',
      accepted,
    ],
    ...(['down', 'noCredit', 'rejectedText', 'timedOut'] as const).map(
      (failure): Row => [
        `after ${failure} the next provider is tried, then the next route`,
        `a:${failure} b:${failure}`,
        'c:accepted',
        both,
        'a/template b/template c/plain',
        accepted,
      ],
    ),
    [
      'after a rejected number no other provider is tried',
      'a:rejectedNumber b:accepted',
      'c:accepted',
      both,
      'a/template',
      rejectedNumber,
    ],
    [
      'after a rejected number that follows a time-out, no other provider is tried',
      'a:timedOut b:rejectedNumber',
      'c:accepted',
      both,
      'a/template b/template',
      rejectedNumber,
    ],
    ...(['down', 'timedOut'] as const).flatMap((failure): Row[] => [
      [
        `a provider that was ${failure} on a route is tried on the next`,
        `a:${failure}`,
        'a:accepted',
        both,
        'a/template a/plain',
        accepted,
      ],
      [
        `a provider that was ${failure} on a route is the last on the next`,
        `a:${failure}`,
        'a:accepted b:accepted',
        both,
        'a/template b/plain',
        accepted,
      ],
    ]),
    [
      'a provider that rejected the template keeps its position on the next route',
      'a:rejectedText',
      'a:accepted b:accepted',
      both,
      'a/template a/plain',
      accepted,
    ],
    [
      'a provider that throws has an unknown outcome, like a time-out',
      'a:bug',
      'b:accepted',
      both,
      'a/template b/plain',
      accepted,
    ],
    ['routes that were not requested are not used', 'a:accepted', 'b:down', plain, 'b/plain', down],
    [
      'without a provider the delivery fails',
      '',
      '',
      plain,
      '',
      { kind: 'retryable', reason: 'no provider' },
    ],
    [
      'the provider to avoid is the last on its route',
      'a:down b:down',
      'a:down c:accepted',
      { ...both, avoid: 'a' },
      'b/template a/template c/plain',
      accepted,
    ],
  ]
  test.each(rows)('%s', async (_, template, onPlain, routing, asked, outcome) => {
    const { ports, names } = world({ template: script(template), plain: script(onPlain) })
    expect(await deliver(ports, newContext(), message, routing)).toEqual(outcome)
    expect(names().join(' ')).toBe(asked)
  })
})

describe('the message for a provider', () => {
  test('on the plain route has the text with its last line, and nothing of the template', async () => {
    const { ports, asked } = world({ plain: [['first', accepted]] })
    await deliver(ports, newContext(), message, plain)
    expect(asked[0]?.sms).toEqual({
      id: 'message 1',
      requestId: 'request 1',
      brandSlug: 'acme',
      brandName: 'Acme',
      to: '12025550143',
      route: 'plain',
      text: message.text,
      lang: 'hi',
      code: '012345',
      template: null,
      senderId: null,
      validitySeconds: 300,
      expectsFeedback: true,
      callbackUrl: null,
    })
  })

  test('on the template route has the registered text, and the ids for this provider', async () => {
    const { ports, asked } = world({
      template: [
        ['first', down],
        ['second', accepted],
      ],
    })
    await deliver(ports, newContext(), message, { ...both, routes: ['template'] })
    expect(asked.map(({ sms }) => [sms.text, sms.senderId, sms.template])).toEqual([
      [
        '012345 is your code',
        'ACMEIN',
        { key: 'LOGIN_OTP', variables: { otp: '012345' }, id: '65a', entityId: '1101' },
      ],
      [
        '012345 is your code',
        'ACMEIN',
        { key: 'LOGIN_OTP', variables: { otp: '012345' }, id: '1107', entityId: '1101' },
      ],
    ])
  })

  test('has a callback URL if the provider reports on each attempt, and the attempt has a report key', async () => {
    const { ports } = world({})
    const urls: (string | null)[] = []
    const provider = (name: string, namedBy: 'attempt' | 'providerMessageId'): SmsProvider => ({
      name,
      deliveryReports: { namedBy, read: () => [] },
      async send({ callbackUrl }) {
        urls.push(callbackUrl)
        return name === 'c' ? accepted : { kind: 'rejected', scope: 'content', reason: 'no' }
      },
    })
    const call = newContext()
    const phoneRoutes = {
      template: [],
      plain: [
        provider('a', 'attempt'),
        provider('b', 'providerMessageId'),
        provider('c', 'providerMessageId'),
      ],
    }
    const callbackUrl = (name: string, requestId: string, attempt: number) =>
      `${name} ${requestId} ${attempt}`
    await deliver({ ...ports, phoneRoutes, callbackUrl }, call, message, plain)
    expect(urls).toEqual(['a request 1 1', null, null])
    expect(call.attempts.map(({ reportKey }) => reportKey)).toEqual(['request 1.1', null, 'c:V1'])
  })
})

describe('the time of a delivery (design D26)', () => {
  const slow = (name: string, ms: number) => [name, down, ms] as const

  test('is at most twice the time-out of one call', async () => {
    expect(longestDeliveryMs(timeoutMs)).toBe(8000)
    const { ports, names } = world({ plain: [slow('a', timeoutMs), slow('b', timeoutMs), ['c', accepted]] })
    expect(await deliver(ports, newContext(), message, plain)).toEqual(down)
    expect(names()).toEqual(['a/plain', 'b/plain'])
  })

  test('ends without another call if too little is left for a response', async () => {
    const given = (ms: number) => world({ plain: [slow('a', 3500), slow('b', ms), ['c', accepted]] })
    const [left, tooLittle] = [given(3500), given(3501)]
    await deliver(left.ports, newContext(), message, plain)
    expect(left.names()).toEqual(['a/plain', 'b/plain', 'c/plain'])
    const call = newContext()
    expect(await deliver(tooLittle.ports, call, message, plain)).toEqual(down)
    expect(tooLittle.names()).toEqual(['a/plain', 'b/plain'])
    expect(call.attempts.at(-1)).toMatchObject({
      provider: 'c',
      outcome: 'skipped',
      reason: 'no time left',
    })
  })

  test('gives a call its own time-out, but no more than the share of its route in what is left', async () => {
    const { ports, asked } = world({ template: [slow('a', 3000), slow('b', 2000)], plain: [['c', accepted]] })
    expect(await deliver(ports, newContext(), message, both)).toEqual(accepted)
    expect(asked.map((each) => each.timeoutMs)).toEqual([4000, 2500, 3000])
  })

  test('lets every route have its turn when providers hang, and one provider of a route twice the time-out', async () => {
    const hangs = (name: string) => [name, timedOut, Number.POSITIVE_INFINITY] as const
    const each = async (template: Script, onPlain: Script, routing: Routing) => {
      const { ports, asked } = world({ template, plain: onPlain })
      await deliver(ports, newContext(), message, routing)
      return asked.map(({ name, sms, timeoutMs }) => `${name}/${sms.route} ${timeoutMs}`)
    }
    expect(await each([hangs('a')], [hangs('a')], both)).toEqual(['a/template 4000', 'a/plain 4000'])
    expect(await each([hangs('a'), hangs('b'), hangs('c')], [['d', accepted]], both)).toEqual([
      'a/template 4000',
      'b/template 2000',
      'c/template 1000',
      'd/plain 1000',
    ])
    expect(await each([], [hangs('a'), hangs('b'), hangs('c')], plain)).toEqual([
      'a/plain 4000',
      'b/plain 4000',
    ])
  })
})

describe('a provider that keeps failing', () => {
  const send = (given: ReturnType<typeof world>, routing: Routing = plain) =>
    deliver(given.ports, newContext(), message, routing)

  async function failing(times = 5) {
    const given = world({
      plain: [
        ['a', down],
        ['b', accepted],
      ],
    })
    for (let count = 0; count < times; count++) await send(given)
    given.names()
    return given
  }

  test('has an open circuit twice as long after each failed probe', async () => {
    const given = await failing()
    given.advance(10_000)
    await send(given)
    expect(given.names()).toEqual(['a/plain', 'b/plain'])
    given.advance(19_999)
    await send(given)
    expect(given.names()).toEqual(['b/plain'])
    given.advance(1)
    await send(given)
    expect(given.names()).toEqual(['a/plain', 'b/plain'])
  })

  test('is still used when the others fail, or when there is no other', async () => {
    const given = await failing()
    given.answer('b', down)
    given.answer('a', accepted)
    expect(await send(given)).toEqual(accepted)
    expect(given.names()).toEqual(['b/plain', 'a/plain'])

    const alone = world({ plain: [['a', down]] })
    for (let count = 0; count < 9; count++) await send(alone)
    expect(alone.names()).toHaveLength(9)
  })

  test('is reported when its circuit opens, stays open and closes', async () => {
    let now = 0
    const told: unknown[] = []
    const breakers = new Breakers(() => now)
    breakers.onChange((change) => told.push(change))
    const fails = () => breakers.begin('a')(down)
    for (let count = 0; count < 7; count++) fails()
    now = 10_000
    fails()
    now = 30_000
    const probe = breakers.begin('a')
    const beside = breakers.begin('a')
    beside(down)
    probe(accepted)
    fails()
    breakers.begin('a')(accepted)
    for (let count = 0; count < 9; count++) breakers.begin('a')({ ...down, notCalled: true })
    expect(told).toEqual([
      { provider: 'a', state: 'open', openMs: 10_000, failures: 5 },
      { provider: 'a', state: 'open', openMs: 20_000, failures: 8 },
      { provider: 'a', state: 'closed' },
    ])
  })

  test('is skipped in favor of the next route', async () => {
    const given = world({ template: [['a', down]], plain: [['b', accepted]] })
    for (let count = 0; count < 6; count++) await send(given, both)
    expect(given.names().slice(-3)).toEqual(['a/template', 'b/plain', 'b/plain'])
  })
})

describe('the record of an attempt', () => {
  test('has all fields for the delivery log', async () => {
    const { ports } = world({ template: [['a', timedOut, 3000]], plain: [['b', accepted, 20]] })
    const call = newContext()
    await deliver(ports, call, message, both)
    const about = {
      channel: 'SMS',
      template: 'LOGIN_OTP',
      recipient: '12*******43',
      position: null,
      recipientHash: 'hash of the recipient',
      segments: { count: 1, encoding: 'GSM-7' },
      ...{ country: 'US', cost },
      reportKey: null,
    } as const
    expect(call.attempts).toEqual([
      {
        ...about,
        ...{
          attempt: 1,
          route: 'template',
          lang: 'en',
          provider: 'a',
          outcome: 'unknown',
          errorClass: 'unknown',
        },
        ...{ reason: 'time-out', providerMessageId: null, at: 1_000_000, durationMs: 3000 },
      },
      {
        ...about,
        ...{ attempt: 2, route: 'plain', lang: 'hi', provider: 'b', outcome: 'accepted', errorClass: null },
        ...{ reason: null, providerMessageId: 'V1', at: 1_003_000, durationMs: 20 },
      },
    ])
  })

  test.each([
    ['a valid id is saved', '0A0000000123ABCD1', '0A0000000123ABCD1'],
    ['an id with blanks is omitted', 'a b', null],
    ['an id that is too long is omitted', 'x'.repeat(201), null],
    ['an id that has the phone number is omitted', 'id-12025550143', null],
  ])('with provider message ids, %s', async (_, providerMessageId, kept) => {
    const { ports } = world({ plain: [['a', { kind: 'accepted', providerMessageId }]] })
    const call = newContext()
    await deliver(ports, call, message, plain)
    expect(call.attempts[0]?.providerMessageId).toBe(kept)
  })

  test.each([
    [down, 'retryable'],
    [noCredit, 'account'],
    [rejectedText, 'content'],
    [rejectedNumber, 'recipient'],
  ])('of %p has the error class %s', async (outcome, errorClass) => {
    const { ports } = world({ plain: [['a', outcome]] })
    const call = newContext()
    await deliver(ports, call, message, plain)
    expect(call.attempts).toMatchObject([{ outcome: outcome.kind, errorClass }])
  })
})

describe('sending a mail', () => {
  const mail: Mail = {
    requestId: 'request 1',
    brandSlug: null,
    brandName: null,
    to: 'ann@example.com',
    recipientHash: 'hash of ann',
    position: null,
    template: 'LOGIN_OTP',
    lang: 'en',
    subject: 'Hi',
    html: '<p>Hi</p>',
    text: 'Hi',
  }

  test('calls the mailer once, with the attempt number and the time-out', async () => {
    const { ports } = world({})
    const asked: unknown[] = []
    const mailer = {
      name: 'mailer',
      send: async (...given: unknown[]) => {
        asked.push(given)
        return down
      },
    }
    const call = newContext()
    expect((await deliverMail({ ...ports, mailer }, call, mail)).kind).toBe('retryable')
    expect(asked).toEqual([[mail, 1, timeoutMs]])
    expect(call.attempts).toEqual([
      {
        ...{ attempt: 1, at: 1_000_000, channel: 'EMAIL', route: null, provider: 'mailer' },
        template: 'LOGIN_OTP',
        lang: 'en',
        ...{ recipient: 'a***@example.com', position: null, recipientHash: 'hash of ann', segments: null },
        ...{ outcome: 'retryable', errorClass: 'retryable', reason: 'HTTP 503', providerMessageId: null },
        ...{ country: null, cost: null, reportKey: null, durationMs: 0 },
      },
    ])
  })

  test('has an unknown outcome if the mailer throws, and logs the error', async () => {
    const { ports } = world({})
    const fault = new Error('a bug')
    const mailer = { name: 'mailer', send: () => Promise.reject(fault) }
    const call = newContext()
    expect((await deliverMail({ ...ports, mailer }, call, mail)).kind).toBe('unknown')
    expect(call.attempts).toMatchObject([{ outcome: 'unknown', error: fault }])
  })
})
