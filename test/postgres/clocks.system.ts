import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Answer, otherThan } from '../support/app.ts'
import { type PostgresServer, startPostgres, withoutOwnPostgres } from '../support/postgres.ts'
import { expectError, expectSuccess, freshPhone, retryAfter } from '../support/rows.ts'
import { type Node, openScene, type Scene, tell } from './scene.ts'

if (withoutOwnPostgres) console.warn(withoutOwnPostgres)

const [ttlMs, cooldownMs] = [12_000, 2000]

/** The tolerance for Retry-After: it is in whole seconds, and a busy machine adds some. */
const secondsOff = 2

/** An answer of a node, and the times of the database's clock before and after it. */
interface Seen {
  readonly answer: Answer
  readonly before: number
  readonly after: number
}

describe.skipIf(withoutOwnPostgres !== undefined)(
  'with the clock of one node ten seconds behind and of another ahead,',
  () => {
    let postgres: PostgresServer
    let trace: Scene
    let behind: Node
    let ahead: Node

    beforeAll(async () => {
      postgres = await startPostgres()
      trace = await openScene(postgres, {
        env: {
          OTP_TTL_SECONDS: String(ttlMs / 1000),
          SMS_COOLDOWN_SECONDS: String(cooldownMs / 1000),
          PHONE_LIMIT_PER_MINUTE: '2',
        },
      })
      const start = (name: string, aheadMs: number) =>
        trace.start(name, {
          env: { CLOCK_AHEAD_MS: String(aheadMs) },
          preload: join(import.meta.dir, 'other-clock.ts'),
        })
      behind = await start('behind', -10_000)
      ahead = await start('ahead', 10_000)
    })
    afterAll(async () => {
      await trace?.[Symbol.asyncDispose]()
      await postgres?.[Symbol.asyncDispose]()
    })

    async function databaseTime(): Promise<number> {
      const [row] = await postgres.query(
        'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
      )
      return Number(row?.now)
    }

    async function ask(node: Node, path: string, fields: object): Promise<Seen> {
      const before = await databaseTime()
      const answer = await node.server.post(path, { ...fields })
      return { answer, before, after: await databaseTime() }
    }

    async function sendBy(node: Node, phone: string): Promise<Seen & { readonly otp: string }> {
      const seen = await ask(node, '/otp/send', { phone })
      expectSuccess(seen.answer, ['expiresIn'])
      return { ...seen, otp: trace.history.codesOf(phone).at(-1) ?? '' }
    }

    const toldBy = ({ answer }: Seen): string =>
      answer.body.error === undefined ? String(answer.status) : `${answer.status} ${answer.body.error}`

    /** A period that began within a request does not end too early; Retry-After says when it ends. */
    function expectNotOver(seen: Seen, began: Seen, lengthMs: number): void {
      expect(seen.before).toBeLessThanOrEqual(began.after + lengthMs)
      const seconds = retryAfter(seen.answer)
      expect(seconds).toBeGreaterThan((began.before + lengthMs - seen.after) / 1000 - secondsOff)
      expect(seconds).toBeLessThan((began.after + lengthMs - seen.before) / 1000 + secondsOff)
    }

    /** The same period has ended, and not too early. */
    function expectOver(seen: Seen, began: Seen, lengthMs: number): void {
      expect(seen.after).toBeGreaterThanOrEqual(began.before + lengthMs)
    }

    test('the clocks differ that much', async () => {
      const times = await Promise.all(
        [behind, ahead].map(async ({ server }) => {
          await server.get('/health')
          const { time } = JSON.parse(server.lines[0] ?? '')
          return Date.parse(time)
        }),
      )
      const [early = 0, late = 0] = times
      expect(late - early).toBeGreaterThan(19_000)
    })

    test.concurrent('a code of either node has the same lifetime on both', async () => {
      const live = async (by: Node) => {
        const phone = freshPhone()
        const sent = await sendBy(by, phone)
        const wrong = otherThan(sent.otp)
        for (const node of [behind, ahead, by]) {
          expectError(await node.server.post('/otp/verify', { phone, otp: wrong }), 401, 'mismatch')
        }
        // Locked from here on, until it expires.
        const isOver = new Map<Node, boolean>()
        let looks = 0
        while (isOver.size < 2) {
          for (const node of [behind, ahead]) {
            const seen = await ask(node, '/otp/verify', { phone, otp: sent.otp })
            looks++
            if (toldBy(seen) === '404 not_found') {
              expectOver(seen, sent, ttlMs)
              isOver.set(node, true)
            } else {
              expect(toldBy(seen)).toBe('429 max_attempts')
              expectNotOver(seen, sent, ttlMs)
            }
          }
        }
        return looks
      }
      tell('life of a code', { looks: await Promise.all([behind, ahead].map(live)) })
    })

    test.concurrent('a code from one node verifies on the other until it expires', async () => {
      const phones = [freshPhone(), freshPhone(), freshPhone(), freshPhone()] as const
      const early = await sendBy(behind, phones[0])
      expectSuccess(await ahead.server.post('/otp/verify', { phone: phones[0], otp: early.otp }))
      const late = await sendBy(ahead, phones[1])
      expectSuccess(await behind.server.post('/otp/verify', { phone: phones[1], otp: late.otp }))

      const first = await sendBy(behind, phones[2])
      const second = await sendBy(ahead, phones[3])
      while ((await databaseTime()) < second.after + ttlMs) await Bun.sleep(20)
      for (const [phone, { otp }] of [
        [phones[2], first],
        [phones[3], second],
      ] as const) {
        for (const { server } of [behind, ahead]) {
          expectError(await server.post('/otp/verify', { phone, otp }), 404, 'not_found')
        }
      }
    })

    test.concurrent('a cooldown and a window of either node last equally long on both', async () => {
      const wait = async (by: Node, other: Node) => {
        const phone = freshPhone()
        const sent = await sendBy(by, phone)
        let next: Seen | undefined
        let looks = 0
        while (!next) {
          const seen = await ask(other, '/otp/send', { phone })
          looks++
          if (toldBy(seen) === '200') next = seen
          else {
            expect(toldBy(seen)).toBe('429 cooldown_active')
            expectNotOver(seen, sent, cooldownMs)
          }
        }
        expectOver(next, sent, cooldownMs)
        // After the second cooldown, both sends of the minute are used up.
        const isLimited = new Set<Node>()
        while (isLimited.size < 2) {
          for (const node of [by, other]) {
            const seen = await ask(node, '/otp/send', { phone })
            looks++
            if (toldBy(seen) === '429 rate_limited') {
              expectNotOver(seen, sent, 60_000)
              isLimited.add(node)
            } else {
              expect(toldBy(seen)).toBe('429 cooldown_active')
              expectNotOver(seen, next, cooldownMs)
            }
          }
        }
        return looks
      }
      tell('cooldown and window', { looks: await Promise.all([wait(behind, ahead), wait(ahead, behind)]) })
    })
  },
)
