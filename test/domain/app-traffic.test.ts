import { describe, expect, test } from 'bun:test'
import {
  type AppOrder,
  appStat,
  limitUse,
  noTraffic,
  sortedApps,
  trafficOf,
} from '../../src/domain/log/app-traffic.ts'
import { newRequestContext } from '../../src/domain/request/request-context.ts'

describe('a call counts for its app', () => {
  const refusedBy = (limit: 'app-minute' | 'cooldown') => ({
    limit,
    max: 1,
    used: 1,
    endsAt: 1,
    refused: true,
  })
  test.each([
    ['as sent', { operation: 'send' }, undefined, 'app-sent'],
    ['as sent, of a notification', { operation: 'notify' }, undefined, 'app-sent'],
    ['as verified', { operation: 'verify' }, undefined, 'app-verified'],
    ['as failed', { operation: 'send' }, 'sms_failed', 'app-failed'],
    [
      'as limited by its calls per minute',
      { limits: [refusedBy('app-minute')] },
      'rate_limited',
      'app-limited',
    ],
    ['as other, for another limit', { limits: [refusedBy('cooldown')] }, 'cooldown_active', 'app-other'],
    ['as other, for a wrong code', { operation: 'verify' }, 'mismatch', 'app-other'],
    ['as other, for a repeated request', { operation: 'send', replayOf: 'id' }, undefined, 'app-other'],
  ] as const)('%s', (_, about, error, kind) => {
    const context = newRequestContext({ requestId: 'id', at: 0, clientIp: '127.0.0.1' })
    expect(
      appStat(
        { ...context, app: 'shop', ...about, limits: [...('limits' in about ? about.limits : [])] },
        error,
      ),
    ).toMatchObject({ kind, detail: 'shop' })
  })

  test('unless it is a test message', () => {
    const context = newRequestContext({ requestId: 'id', at: 0, clientIp: '127.0.0.1' })
    expect(appStat({ ...context, app: 'otpost:test' }, undefined)).toBeUndefined()
  })
})

test('the traffic of apps is what was counted, and the peak', () => {
  const counts = [
    { kind: 'app-sent', app: 'shop', count: 5 },
    { kind: 'app-failed', app: 'shop', count: 1 },
    { kind: 'app-limited', app: 'web', count: 2 },
  ]
  const traffic = trafficOf(counts, [{ app: 'shop', peak: 3 }])
  expect(traffic.get('shop')).toEqual({ ...noTraffic, sent: 5, failed: 1, peak: 3 })
  expect(traffic.get('web')).toEqual({ ...noTraffic, limited: 2 })
})

test.each([
  [0, 0, 0],
  [5, 0, 0.5],
  [15, 0, 1],
  [5, 1, 1],
])('a peak of %p with %p rejected calls uses %p of 10 calls per minute', (peak, limited, use) => {
  expect(limitUse({ ...noTraffic, peak, limited }, 10)).toBe(use)
})

test.each<[AppOrder, string]>([
  ['name', 'a b c old'],
  ['sent', 'b a c old'],
  ['failed', 'c a b old'],
  ['limit', 'a b c old'],
  ['used', 'c b a old'],
])('apps by %s are %s', (order, sorted) => {
  const row = (appId: string, traffic: object, lastUsedAt: number, perMinute: number) => ({
    appId,
    isRevoked: appId === 'old',
    traffic: { ...noTraffic, ...traffic },
    perMinute,
    lastUsedAt,
    lastUsedFrom: null,
  })
  const rows = [
    row('old', { sent: 99, failed: 99, peak: 99 }, 99, 1),
    row('c', { sent: 1, failed: 3, peak: 1 }, 3, 100),
    row('a', { sent: 2, failed: 0, peak: 9 }, 1, 10),
    row('b', { sent: 3, failed: 0, peak: 9 }, 2, 100),
  ]
  expect(
    sortedApps(rows, order)
      .map(({ appId }) => appId)
      .join(' '),
  ).toBe(sorted)
})
