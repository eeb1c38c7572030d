import { describe, expect, test } from 'bun:test'
import { limitUse, noTraffic, trafficOf } from '../../src/domain/log/app-traffic.ts'
import { requestStats } from '../../src/domain/log/stats.ts'
import { newRequestContext } from '../../src/domain/request/request-context.ts'

describe('a call counts for its app', () => {
  const refusedBy = (limit: 'app-minute' | 'cooldown') => ({
    limit,
    max: 1,
    used: 1,
    endsAt: 1,
    refused: true,
  })
  const trafficFor = (about: object, error: string | undefined, app = 'shop') => {
    const context = newRequestContext({ requestId: 'id', at: 0, clientIp: '127.0.0.1' })
    const stats = requestStats({ ...context, operation: 'send', app, ...about }, error)
    const counted = stats.flatMap(({ app, ...stat }) =>
      app === undefined ? [] : [{ ...stat, app, count: 1 }],
    )
    return trafficOf(counted, []).get(app)
  }
  test.each([
    ['as sent', {}, undefined, { sent: 1 }],
    ['as sent, of a notification', { operation: 'notify' }, undefined, { sent: 1 }],
    ['as verified', { operation: 'verify' }, undefined, { verified: 1 }],
    ['as failed', {}, 'sms_failed', { failed: 1 }],
    [
      'as limited by its calls per minute',
      { limits: [refusedBy('app-minute')] },
      'rate_limited',
      { limited: 1 },
    ],
    [
      'only in its peak, for another limit',
      { limits: [refusedBy('cooldown')] },
      'cooldown_active',
      undefined,
    ],
    ['only in its peak, for a wrong code', { operation: 'verify' }, 'mismatch', undefined],
    ['only in its peak, for a repeated request', { replayOf: 'id' }, undefined, undefined],
  ] as const)('%s', (_, about, error, traffic) => {
    expect(trafficFor(about, error)).toEqual(traffic && { ...noTraffic, ...traffic })
  })

  test('unless it is a test message', () => {
    expect(trafficFor({}, undefined, 'otpost:test')).toBeUndefined()
  })
})

test('the traffic of apps is what was counted, and the peak', () => {
  const counts = [
    { kind: 'send', detail: 'ok', app: 'shop', count: 5 },
    { kind: 'resend', detail: 'sms_failed', app: 'shop', count: 1 },
    { kind: 'limited', detail: '', app: 'web', count: 2 },
  ] as const
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
