import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Answer } from '../support/app.ts'
import { givenDatabase, queryOnce } from '../support/postgres.ts'
import { expectError, expectSuccess, freshPhone } from '../support/rows.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import {
  type Node,
  openScene,
  type Scene,
  type SceneServer,
  sceneServer,
  tell,
  withoutSceneServer,
} from './scene.ts'

// Other tests use the same two cores.
setDefaultTimeout(300_000)

if (withoutSceneServer) console.warn(withoutSceneServer)

/** The time-outs of the far node for a connection and a statement, and more for a busy machine. */
const [connectMs, statementMs] = [3000, 3000]
const longestAnswerMs = connectMs + statementMs + 10_000

/** Before version 17, PostgreSQL has no time-out that ends a statement whose end does not arrive. */
const endsTransactions =
  givenDatabase === undefined ||
  (await queryOnce(givenDatabase, "SELECT FROM pg_settings WHERE name = 'transaction_timeout'")).length > 0

describe.skipIf(withoutSceneServer !== undefined)(
  'of two nodes on partitioned tables, the far one, whose network to PostgreSQL',
  () => {
    let postgres: SceneServer
    let proxy: TcpProxy
    let trace: Scene
    /** Connects to the database through the proxy. */
    let far: Node
    let near: Node

    beforeAll(async () => {
      postgres = await sceneServer()
      proxy = await startTcpProxy(postgres.port, new URL(postgres.url).hostname)
      trace = await openScene(postgres)
      await trace.partition()
      const env = {
        DATABASE_CONNECT_TIMEOUT_MS: String(connectMs),
        DATABASE_STATEMENT_TIMEOUT_MS: String(statementMs),
      }
      far = await trace.start('far', { port: proxy.port, env })
      // Its network is sound; longer time-outs suit a busy machine.
      const patience = { DATABASE_CONNECT_TIMEOUT_MS: '30000', DATABASE_STATEMENT_TIMEOUT_MS: '30000' }
      near = await trace.start('near', { env: patience })
    })
    afterAll(async () => {
      await trace?.[Symbol.asyncDispose]()
      await proxy?.[Symbol.asyncDispose]()
      await postgres?.[Symbol.asyncDispose]()
    })

    const smsTo = (phone: string) => trace.history.codesOf(phone)
    const send = (node: Node, phone: string) => node.server.post('/otp/send', { phone })
    const verify = (node: Node, phone: string, otp: string | undefined) =>
      node.server.post('/otp/verify', { phone, otp })

    /** A phone with a code from the near node. */
    async function sent(): Promise<{ phone: string; otp: string }> {
      const phone = freshPhone()
      expectSuccess(await send(near, phone), ['expiresIn'])
      return { phone, otp: smsTo(phone)[0] ?? '' }
    }

    /** An answer with its time in milliseconds. */
    async function timed(asked: Promise<Answer>): Promise<{ answer: Answer; tookMs: number }> {
      const startedAt = performance.now()
      const answer = await asked
      return { answer, tookMs: Math.round(performance.now() - startedAt) }
    }

    /** The node rejects every request, in time and in the envelope, and sends nothing. */
    async function expectClosed(node: Node): Promise<number> {
      const code = await sent()
      const phones = [freshPhone(), freshPhone(), freshPhone()]
      const asked = await Promise.all([
        ...phones.map((phone) => timed(send(node, phone))),
        timed(verify(node, code.phone, code.otp)),
      ])
      for (const { answer, tookMs } of asked) {
        expectError(answer, 500, 'internal_error')
        expect(tookMs).toBeLessThan(longestAnswerMs)
      }
      expect((await node.server.get('/health')).status).toBe(503)
      expect(phones.flatMap(smsTo)).toEqual([])
      return Math.max(...asked.map(({ tookMs }) => tookMs))
    }

    /** Resolves when the node sends again, to the waiting time in milliseconds. */
    async function healed(node: Node): Promise<number> {
      const startedAt = performance.now()
      while ((await send(node, freshPhone())).status !== 200) await Bun.sleep(10)
      expect((await node.server.get('/health')).status).toBe(200)
      return Math.round(performance.now() - startedAt)
    }

    /** The near node serves meanwhile, and none of its requests waits for the far one. */
    async function servedMeanwhile(
      goesOn: Promise<unknown>,
    ): Promise<{ requests: number; longestMs: number }> {
      let isOver = false
      void goesOn.finally(() => {
        isOver = true
      })
      let [requests, longestMs] = [0, 0]
      do {
        const phone = freshPhone()
        const { answer, tookMs } = await timed(send(near, phone))
        expectSuccess(answer, ['expiresIn'])
        expectSuccess(await verify(near, phone, smsTo(phone)[0]))
        requests += 2
        longestMs = Math.max(longestMs, tookMs)
      } while (!isOver)
      return { requests, longestMs }
    }

    test('is slow, is slow but correct, and the other is as fast as before', async () => {
      proxy.slowDown(100)
      const phones = Array.from({ length: 20 }, freshPhone)
      const asked = Promise.all(phones.map((phone) => timed(send(far, phone))))
      const meanwhile = await servedMeanwhile(asked)
      const slowest = Math.max(...(await asked).map(({ tookMs }) => tookMs))
      for (const { answer } of await asked) expectSuccess(answer, ['expiresIn'])
      for (const phone of phones) expectSuccess(await verify(near, phone, smsTo(phone)[0]))
      proxy.recover()
      expect(meanwhile.requests).toBeGreaterThanOrEqual(4)
      tell('slow', { slowest, near: meanwhile, healedAfterMs: await healed(far) })
    })

    test('stops passing data, fails in time and sends nothing; it recovers with the network', async () => {
      await healed(far)
      proxy.fallSilent()
      const closed = (async () => [await expectClosed(far), await expectClosed(far)])()
      const meanwhile = await servedMeanwhile(closed)
      const refusedAfterMs = await closed
      proxy.recover()
      expect(meanwhile.requests).toBeGreaterThanOrEqual(4)
      tell('silent', { refusedAfterMs, near: meanwhile, healedAfterMs: await healed(far) })
    })

    test('is cut, fails at once and sends nothing; it recovers with the network', async () => {
      await healed(far)
      proxy.refuse()
      proxy.cut()
      const closed = expectClosed(far)
      const meanwhile = await servedMeanwhile(closed)
      const refusedAfterMs = await closed
      proxy.recover()
      tell('cut', { refusedAfterMs, near: meanwhile, healedAfterMs: await healed(far) })
    })

    test('stops passing data within a commit: its change is kept, and its locks are released', async () => {
      await healed(far)
      const code = await sent()
      // All of the statement arrives, and the answer is lost.
      proxy.breakOff(['otpost_delete_row', 'COMMIT'], 0)
      const lost = timed(verify(far, code.phone, code.otp))
      const meanwhile = await servedMeanwhile(lost)
      const { answer, tookMs } = await lost
      expectError(answer, 500, 'internal_error')
      expect(tookMs).toBeLessThan(longestAnswerMs)
      // A code with an unconfirmed verification is used up, like any other correct code.
      expectError(await verify(near, code.phone, code.otp), 404, 'not_found')
      proxy.recover()
      expect(meanwhile.requests).toBeGreaterThanOrEqual(4)
      tell('no answer', { refusedAfterMs: tookMs, near: meanwhile, healedAfterMs: await healed(far) })
    })

    test.skipIf(!endsTransactions)(
      'stops passing data within a statement: the locks of the first half are released',
      async () => {
        await healed(far)
        const phone = freshPhone()
        // Everything but the message that ends the statement: the server has executed it, and waits for that message.
        proxy.breakOff(['otpost_lock_', 'otpost_read_'], 5)
        const lost = timed(send(far, phone))
        const startedAt = performance.now()
        let refused = 0
        // It has a lock on the row of the application, which requests of a node without a lease change.
        const held = async () => {
          const rows = await postgres.query(
            "SELECT FROM pg_stat_activity WHERE application_name = 'otpost' AND wait_event = 'ClientRead' AND state = 'active'",
          )
          return rows.length > 0
        }
        while (!(await held())) await Bun.sleep(5)
        for (;;) {
          const { status } = await send(near, freshPhone())
          if (status === 200) break
          refused++
        }
        const heldMs = Math.round(performance.now() - startedAt)
        const { answer, tookMs } = await lost
        expectError(answer, 500, 'internal_error')
        expect(tookMs).toBeLessThan(longestAnswerMs)
        expect(heldMs).toBeLessThan(30_000)
        expect(smsTo(phone)).toEqual([])
        proxy.recover()
        tell('half a statement', {
          heldMs,
          refused,
          refusedAfterMs: tookMs,
          healedAfterMs: await healed(far),
        })
        // The first half was rolled back.
        expectSuccess(await send(near, phone), ['expiresIn'])
      },
    )
  },
)
