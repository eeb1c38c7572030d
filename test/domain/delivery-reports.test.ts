import { describe, expect, test } from 'bun:test'
import { createSecrets } from '../../src/adapters/crypto/secrets.ts'
import {
  attemptKey,
  attemptPath,
  type CallbackPorts,
  type MessageReport,
  providerPath,
  takeReports,
} from '../../src/domain/delivery/delivery-reports.ts'
import type {
  CallbackRequest,
  DeliveryReport,
  DeliveryReportReader,
  Outcome,
  SmsProvider,
} from '../../src/domain/ground/providers.ts'
import { statusOf } from '../../src/domain/log/event-log.ts'
import { priceListOf } from '../../src/domain/money/relative-prices.ts'
import { Policy } from '../../src/domain/policy/policy.ts'
import { defaultThresholds } from '../../src/domain/policy/policy-store.ts'

const [present, former] = ['the-present-secret-of-32-bytes-or-more', 'the-former-secret-of-32-bytes-or-more']
const requestId = '019b796d-d600-7256-a391-52604e6fc76b'

function provider(name: string, deliveryReports?: DeliveryReportReader): SmsProvider {
  return { name, send: async () => ({ kind: 'accepted' }), ...(deliveryReports ? { deliveryReports } : {}) }
}

/** A server with one provider of each kind, and the reports it stored. */
function world(
  news: readonly DeliveryReport[] = [{ providerMessageId: 'V1', status: 'delivered', reason: null }],
) {
  const kept: MessageReport[] = []
  /** How many were stored in each step. */
  const steps: number[] = []
  const refunds: [key: string, to: string][] = []
  const secrets = createSecrets(present, former)
  const none = {
    scopes: [],
    rules: [],
    prefixes: [],
    guardMode: null,
    budgets: [],
    webhooks: [],
    reviewNumbers: [],
    pauses: [],
    thresholds: defaultThresholds,
    acknowledgements: [],
    relays: [],
    manageTokens: [],
  }
  const policy = new Policy(none, priceListOf([]), [])
  const read = () => news
  const ports: CallbackPorts = {
    providers: [
      provider('mute'),
      provider('each', { namedBy: 'attempt', read }),
      provider('all', { namedBy: 'providerMessageId', read, answer: (_, now) => `thanks at ${now}` }),
    ],
    secrets,
    deliveryReports: {
      saveReports: async (_, reports) => {
        const before = new Set(kept.map(({ key }) => key))
        kept.push(...reports)
        steps.push(reports.length)
        return reports.flatMap(({ status, ...report }) =>
          status === 'pending' || before.has(report.key) ? [] : [{ ...report, status, times: 1 as const }],
        )
      },
    },
    policy: () => policy,
    refund: async (key, to) => void refunds.push([key, to]),
    stopwatch: () => 0,
    reportRejected: () => undefined,
    now: () => 1234,
  }
  const call: CallbackRequest = {
    url: 'https://otp.example',
    fields: {},
    headers: {},
    body: new Uint8Array(),
  }
  return {
    kept,
    steps,
    refunds,
    secrets,
    /** Handles a request to a callback path, as the HTTP routes do. */
    async take(path: string): Promise<unknown> {
      const [, , name = '', token = ''] = path.split('/')
      return takeReports(ports, name, token, call)
    },
  }
}

test("a delivery report to an attempt's callback path applies to that attempt, even if it names another", async () => {
  const { take, kept, secrets } = world()
  expect(await take(attemptPath(secrets, 'each', requestId, 3))).toBeUndefined()
  expect(kept).toEqual([{ key: attemptKey(requestId, 3), status: 'delivered', reason: null, at: 1234 }])
})

test('a refunded message is refunded once, and the number is not stored', async () => {
  const { take, kept, refunds, secrets } = world([
    { status: 'failed', reason: 'expired', refundedTo: '919812345678' },
  ])
  const path = attemptPath(secrets, 'each', requestId, 3)
  await take(path)
  await take(path)
  const key = attemptKey(requestId, 3)
  expect(refunds).toEqual([[key, '919812345678']])
  expect(kept).toEqual(
    [key, key].map((each) => ({ key: each, status: 'failed', reason: 'expired', at: 1234 })),
  )
})

test('many reports at once are stored in batches, without those with an invalid message id', async () => {
  const sound = Array.from({ length: 450 }, (_, index) => `V${index}`)
  const odd = ['', 'with a blank', 'of\nlines', 'x'.repeat(201), 'é']
  const news = [...odd, ...sound].map(
    (providerMessageId) => ({ providerMessageId, status: 'delivered', reason: null }) as const,
  )
  const { take, kept, steps, secrets } = world(news)
  await take(providerPath(secrets, 'all'))
  expect(kept.map(({ key }) => key)).toEqual(sound.map((providerMessageId) => `all:${providerMessageId}`))
  expect(steps).toEqual([200, 200, 50])
})

test("delivery reports to a provider's callback path apply to the messages they name, and get the provider's response", async () => {
  const { take, kept, secrets } = world([
    { providerMessageId: 'V1', status: 'pending', reason: null },
    { providerMessageId: 'V2', status: 'failed', reason: 'absent' },
  ])
  expect(await take(providerPath(secrets, 'all'))).toBe('thanks at 1234')
  expect(kept).toEqual([
    { key: 'all:V1', status: 'pending', reason: null, at: 1234 },
    { key: 'all:V2', status: 'failed', reason: 'absent', at: 1234 },
  ])
})

test('callback paths of the previous secret key are still accepted', async () => {
  const before = createSecrets(former)
  const { take, kept } = world()
  await take(attemptPath(before, 'each', requestId, 1))
  await take(providerPath(before, 'all'))
  expect(kept.map(({ key }) => key)).toEqual([attemptKey(requestId, 1), 'all:V1'])
})

describe('an unknown callback path is not found', () => {
  const { secrets } = world()
  const ofAttempt = attemptPath(secrets, 'each', requestId, 1)
  const ofProvider = providerPath(secrets, 'all')
  const last = (path: string) => path.split('/').at(-1) ?? ''
  const paths: readonly (readonly [string, string])[] = [
    ['an invented path', `/receipts/all/${'A'.repeat(22)}`],
    ['no token', '/receipts/all/'],
    ['a part of the token', ofProvider.slice(0, -1)],
    ['the token and more', `${ofProvider}A`],
    ['a token with one character changed', ofProvider.slice(0, -1) + (ofProvider.endsWith('A') ? 'B' : 'A')],
    [
      'a token of an unknown secret key',
      providerPath(createSecrets('another-secret-of-32-bytes-or-more..'), 'all'),
    ],
    ['the token of another provider', `/receipts/all/${last(providerPath(secrets, 'mute'))}`],
    ['a provider without delivery reports', providerPath(secrets, 'mute')],
    ['an unknown provider', providerPath(secrets, 'nobody')],
    ['the token of another attempt', ofAttempt.replace('.1.', '.2.')],
    ['the token of another request', ofAttempt.replace('019b', '019c')],
    ['the path of an attempt without a token', `/receipts/each/${attemptKey(requestId, 1)}`],
    ['the path of an attempt with an empty token', `/receipts/each/${attemptKey(requestId, 1)}.`],
    [
      'the path of an attempt of another provider',
      attemptPath(secrets, 'mute', requestId, 1).replace('mute', 'each'),
    ],
    ['a token of the provider if each attempt has its own', providerPath(secrets, 'each')],
    ['a token of an attempt if the provider has one', attemptPath(secrets, 'all', requestId, 1)],
  ]
  test.each([...paths])('%s', async (_, path) => {
    const { take, kept } = world()
    expect(await take(path).catch((failure: unknown) => failure)).toMatchObject({ kind: 'route_not_found' })
    expect(kept).toEqual([])
  })
})

describe('the status of a message', () => {
  const outcomes: readonly (readonly [Outcome['kind'] | 'skipped', boolean])[] = [
    ['accepted', true],
    ['unknown', true],
    ['rejected', false],
    ['retryable', false],
    ['skipped', false],
  ]
  test.each([...outcomes])('is %s, and a final report overrides it: %p', (outcome, tellsMore) => {
    expect(statusOf({ outcome, report: null })).toBe(outcome)
    for (const status of ['delivered', 'failed', 'pending'] as const) {
      const stands = tellsMore && status !== 'pending' ? status : outcome
      expect(statusOf({ outcome, report: { status, reason: null, at: 0 } })).toBe(stands)
    }
  })
})
