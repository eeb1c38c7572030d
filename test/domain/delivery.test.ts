import { describe, expect, test } from 'bun:test'
import {
  type DeliveryPorts,
  deliverMail,
  deliverSms,
  longestDeliveryMs,
  routesOf,
  type SmsMode,
} from '../../src/domain/delivery.ts'
import type { Call, Mail, Outcome, SmsMessage, SmsProvider, SmsRoute } from '../../src/domain/ports.ts'

const accepted: Outcome = { kind: 'accepted' }
const failures: readonly Outcome[] = [
  { kind: 'rejected', scope: 'message', reason: 'bad template' },
  { kind: 'rejected', scope: 'account', reason: 'no credit' },
  { kind: 'unavailable', reason: 'down' },
  { kind: 'unknown', reason: 'time-out' },
]
const rejectedNumber: Outcome = { kind: 'rejected', scope: 'recipient', reason: 'no such number' }

const message: SmsMessage = {
  id: 'message 1',
  requestId: 'request 1',
  brandSlug: 'acme',
  brandName: 'Acme',
  to: '12025550143',
  text: '012345 is your code',
  template: { key: 'LOGIN_OTP', variables: { otp: '012345' } },
}
const timeoutMs = 4000

function newCall(): Call {
  return { requestId: 'request 1', clientIp: '192.0.2.1', trail: { attempts: [] } }
}

/** Providers by name, each with how it answers and how long it takes; and what they were asked, in order. */
function world(routes: Readonly<Record<SmsRoute, readonly (readonly [string, Outcome | Error, number?])[]>>) {
  let now = 0
  const asked: { name: string; route: SmsRoute; message: SmsMessage; timeoutMs: number }[] = []
  const provider = ([name, outcome, takesMs = 0]: readonly [
    string,
    Outcome | Error,
    number?,
  ]): SmsProvider => ({
    name,
    async send(given, route, limitMs) {
      asked.push({ name, route, message: given, timeoutMs: limitMs })
      now += takesMs
      if (outcome instanceof Error) throw outcome
      return outcome
    },
  })
  const ports: DeliveryPorts = {
    smsRoutes: { plain: routes.plain.map(provider), template: routes.template.map(provider) },
    mailer: { name: 'mailer', send: async () => accepted },
    stopwatch: () => now,
    providerTimeoutMs: timeoutMs,
  }
  return { ports, asked, names: () => asked.map(({ name }) => name) }
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

describe('handing over an SMS', () => {
  test('the first provider that takes it ends the attempt', async () => {
    const { ports, names } = world({
      template: [],
      plain: [
        ['first', accepted],
        ['second', accepted],
      ],
    })
    expect(await deliverSms(ports, newCall(), message, ['plain'])).toEqual(accepted)
    expect(names()).toEqual(['first'])
  })

  const labelled = failures.map(
    (outcome) => [`${outcome.kind} ${'scope' in outcome ? outcome.scope : ''}`.trim(), outcome] as const,
  )
  test.each(labelled)(
    'after %s the same message goes to the next provider, then to the next route',
    async (_, outcome) => {
      const { ports, asked, names } = world({
        template: [
          ['first', outcome],
          ['second', outcome],
        ],
        plain: [['third', accepted]],
      })
      const call = newCall()
      expect(await deliverSms(ports, call, message, ['template', 'plain'])).toEqual(accepted)
      expect(names()).toEqual(['first', 'second', 'third'])
      expect(asked.map(({ route }) => route)).toEqual(['template', 'template', 'plain'])
      expect(asked.every((each) => each.message === message)).toBe(true)
      expect(call.trail.attempts.map((attempt) => attempt.outcome)).toEqual([
        outcome.kind,
        outcome.kind,
        'accepted',
      ])
    },
  )

  test('after a rejected number nobody else is asked', async () => {
    const { ports, names } = world({
      template: [
        ['first', rejectedNumber],
        ['second', accepted],
      ],
      plain: [['third', accepted]],
    })
    expect(await deliverSms(ports, newCall(), message, ['template', 'plain'])).toEqual(rejectedNumber)
    expect(names()).toEqual(['first'])
  })

  test('a provider that throws has an unknown outcome, and the next is asked', async () => {
    const fault = new Error('a bug')
    const { ports } = world({ template: [['first', fault]], plain: [['second', accepted]] })
    const call = newCall()
    expect(await deliverSms(ports, call, message, ['template', 'plain'])).toEqual(accepted)
    expect(call.trail.attempts).toMatchObject([
      { provider: 'first', route: 'template', outcome: 'unknown', error: fault },
      { provider: 'second', route: 'plain', outcome: 'accepted' },
    ])
  })

  test('routes that are not asked for are not used', async () => {
    const { ports, names } = world({
      template: [['template', accepted]],
      plain: [['plain', failures[2] ?? accepted]],
    })
    expect((await deliverSms(ports, newCall(), message, ['plain'])).kind).toBe('unavailable')
    expect(names()).toEqual(['plain'])
  })

  test('where there is no provider it fails', async () => {
    const { ports } = world({ template: [], plain: [] })
    expect((await deliverSms(ports, newCall(), message, ['plain'])).kind).toBe('unavailable')
  })
})

describe('the time of a delivery (design D26)', () => {
  const timedOut: Outcome = { kind: 'unknown', reason: 'time-out' }

  test('all of it takes at most twice the time of one call', async () => {
    expect(longestDeliveryMs(timeoutMs)).toBe(8000)
    const { ports, names } = world({
      template: [
        ['first', timedOut, timeoutMs],
        ['second', timedOut, timeoutMs],
      ],
      plain: [['third', accepted]],
    })
    expect(await deliverSms(ports, newCall(), message, ['template', 'plain'])).toEqual(timedOut)
    expect(names()).toEqual(['first', 'second'])
  })

  test('a call gets its own time, but no more than is left', async () => {
    const { ports, asked } = world({
      template: [
        ['first', timedOut, 3000],
        ['second', timedOut, 3500],
      ],
      plain: [['third', accepted]],
    })
    expect(await deliverSms(ports, newCall(), message, ['template', 'plain'])).toEqual(accepted)
    expect(asked.map((each) => each.timeoutMs)).toEqual([4000, 4000, 1500])
  })

  test('how long each took is told', async () => {
    const { ports } = world({ template: [['first', timedOut, 3000]], plain: [['second', accepted, 20]] })
    const call = newCall()
    await deliverSms(ports, call, message, ['template', 'plain'])
    expect(call.trail.attempts.map(({ durationMs }) => durationMs)).toEqual([3000, 20])
  })
})

describe('handing over a mail', () => {
  const mail: Mail = {
    id: 'message 1',
    requestId: 'request 1',
    brandSlug: null,
    brandName: null,
    to: 'ann@example.com',
    subject: 'Hi',
    html: '<p>Hi</p>',
    text: 'Hi',
  }

  test('the mailer gets it once, with its time', async () => {
    const { ports } = world({ template: [], plain: [] })
    const asked: unknown[] = []
    const mailer = {
      name: 'mailer',
      send: async (...given: unknown[]) => {
        asked.push(given)
        return failures[2] ?? accepted
      },
    }
    const call = newCall()
    expect((await deliverMail({ ...ports, mailer }, call, mail)).kind).toBe('unavailable')
    expect(asked).toEqual([[mail, timeoutMs]])
    expect(call.trail.attempts).toEqual([
      {
        recipient: 'a***@example.com',
        provider: 'mailer',
        outcome: 'unavailable',
        reason: 'down',
        durationMs: 0,
      },
    ])
  })

  test('a mailer that throws has an unknown outcome', async () => {
    const { ports } = world({ template: [], plain: [] })
    const mailer = { name: 'mailer', send: () => Promise.reject(new Error('a bug')) }
    expect((await deliverMail({ ...ports, mailer }, newCall(), mail)).kind).toBe('unknown')
  })
})
