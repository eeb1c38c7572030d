import { describe, expect, test } from 'bun:test'
import { appStat, limitUse, noTraffic, trafficOf } from '../../src/domain/log/app-traffic.ts'
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
