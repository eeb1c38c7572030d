import { describe, expect, test } from 'bun:test'
import { Failure } from '../../src/domain/ground/failures.ts'
import { authenticate, CredentialRejections } from '../../src/domain/limits/credentials.ts'
import { decide, type LimitCount, type StoredClaim } from '../../src/domain/limits/limits.ts'
import { newRequestContext } from '../../src/domain/request/request-context.ts'

/** One store for any number of servers; `asked` counts its calls. */
function scene() {
  const windows = new Map<string, LimitCount>()
  const state = { now: 1_000_000, asked: 0, isBroken: false }
  const store = {
    admit: async (claims: readonly StoredClaim[], now: number) => {
      state.asked++
      await Promise.resolve()
      if (state.isBroken) throw new Error('the disk is full')
      const open = ({ subject: [key] }: StoredClaim) => {
        const window = windows.get(key)
        return window && window.expiresAt > now ? window : undefined
      }
      const { decision, changes } = decide(claims, open, now)
      for (const { subject, count, expiresAt } of changes) windows.set(subject[0], { count, expiresAt })
      return decision
    },
  }
  const server = () => {
    const ports = {
      apps: {
        accepts: (_: string, apiKey: string) => apiKey === 'right',
        appOf: async () => undefined,
      },
      store,
      secrets: { subjects: (_: string, value: string) => [value] as const },
      now: () => state.now,
      rejections: new CredentialRejections(),
    }
    return async (apiKey = 'wrong', clientIp = '192.0.2.1') => {
      const context = newRequestContext({ requestId: 'r', at: state.now, clientIp })
      const kind = await authenticate(ports, context, { appId: 'shop', apiKey }).catch((failure) => {
        if (failure instanceof Failure) return failure.kind
        throw failure
      })
      return { kind, limit: context.limits[0] }
    }
  }
  return { state, server }
}

type Answers = readonly { readonly kind: string }[]
const count = (answers: Answers, kind: string) => answers.filter((answer) => answer.kind === kind).length
const many = async <T>(length: number, one: () => Promise<T>): Promise<T[]> => {
  const all: T[] = []
  for (let index = 0; index < length; index++) all.push(await one())
  return all
}

describe('rejected credentials (D22)', () => {
  test('ask the store once for ten, and not at all while the window is exhausted', async () => {
    const { state, server } = scene()
    const guess = server()
    const answers = await many(300, guess)
    expect(count(answers, 'forbidden')).toBe(300)
    expect(answers.map(({ limit }) => limit?.used)).toEqual(
      Array.from({ length: 300 }, (_, index) => index + 1),
    )
    expect(state.asked).toBe(30)
    state.now += 20_000
    const refused = await many(50, guess)
    expect(count(refused, 'rate_limited')).toBe(50)
    expect(refused.at(-1)?.limit).toEqual({
      limit: 'credentials',
      max: 300,
      used: 300,
      endsAt: 1_060_000,
      refused: true,
    })
    expect(state.asked).toBe(31)
    expect((await guess('right')).kind).toBe('shop')
    state.now += 40_000
    expect((await guess()).kind).toBe('forbidden')
  })

  test('at once, and of several servers, never exceed 300', async () => {
    const { server } = scene()
    const servers = [server(), server(), server()]
    const answers = await Promise.all(Array.from({ length: 1200 }, (_, index) => servers[index % 3]?.()))
    expect(count(answers as Answers, 'forbidden')).toBe(300)
    expect(count(answers as Answers, 'rate_limited')).toBe(900)
  })

  test('leave at most nine unused for each server and restart', async () => {
    const { server } = scene()
    expect(count(await many(3, server()), 'forbidden')).toBe(3)
    expect(count(await many(400, server()), 'forbidden')).toBe(290)
  })

  test('of another IP address have a window of their own', async () => {
    const { server } = scene()
    const guess = server()
    await many(301, guess)
    expect((await guess()).kind).toBe('rate_limited')
    expect((await guess('wrong', '192.0.2.2')).kind).toBe('forbidden')
  })

  test('of IPv6 addresses count for the /64, and ten times as often for the /48', async () => {
    const { server } = scene()
    const guess = server()
    const from = (network: number) => () => guess('wrong', `2001:db8:0:${network.toString(16)}::/64`)
    expect(count(await many(301, from(1)), 'forbidden')).toBe(300)
    const others = []
    for (let network = 2; network <= 20; network++) others.push(...(await many(150, from(network))))
    expect(count(others, 'forbidden')).toBe(2700)
    expect((await from(21)()).kind).toBe('rate_limited')
    expect((await guess('wrong', '2001:db8:1:1::/64')).kind).toBe('forbidden')
    expect((await guess('right', '2001:db8:0:1::/64')).kind).toBe('shop')
  })

  test('are refused no longer than a minute after the clock was set back', async () => {
    const { state, server } = scene()
    const guess = server()
    await many(301, guess)
    state.now -= 3_600_000
    expect((await guess()).kind).toBe('rate_limited')
    state.now += 60_000
    expect((await guess()).kind).toBe('forbidden')
  })

  test('fail while the store fails, and are counted afterwards', async () => {
    const { state, server } = scene()
    const guess = server()
    state.isBroken = true
    const failed = await Promise.allSettled([guess(), guess(), guess()])
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    state.isBroken = false
    expect(count(await many(301, guess), 'forbidden')).toBe(300)
  })
})
