import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { migrations } from '../../drizzle/postgres/migrations.ts'
import { credentials, otherThan, verdict } from '../support/app.ts'
import { randomNumbers } from '../support/history.ts'
import { queryOnce } from '../support/postgres.ts'
import { held } from '../support/receiver.ts'
import { expectSuccess, freshPhone } from '../support/rows.ts'
import { otpost } from '../support/server.ts'
import {
  type Node,
  newSeed,
  openScene,
  phonesOf,
  type Scene,
  type SceneServer,
  sceneServer,
  tell,
  withoutSceneServer,
} from './scene.ts'

// Other tests use the same two cores.
setDefaultTimeout(300_000)

if (withoutSceneServer) console.warn(withoutSceneServer)

const names = ['one', 'two', 'three', 'four'] as const

/** The maximum waiting time for a change. */
const longestMs = 20_000

/** The documented time until a change takes effect on all nodes. */
const changeHoldsMs = 1000

describe.skipIf(withoutSceneServer !== undefined)('nodes on one PostgreSQL', () => {
  let postgres: SceneServer
  let trace: Scene
  const nodes = new Map<string, Node>()
  const present = () => [...nodes.values()]

  beforeAll(async () => {
    postgres = await sceneServer()
    trace = await openScene(postgres, {
      isEmpty: true,
      env: {
        // No node is away here; longer time-outs suit a busy machine.
        DATABASE_CONNECT_TIMEOUT_MS: '30000',
        DATABASE_STATEMENT_TIMEOUT_MS: '30000',
      },
    })
  })
  afterAll(async () => {
    await trace?.[Symbol.asyncDispose]()
    await postgres?.[Symbol.asyncDispose]()
  })

  /** Runs a command as an operator does, beside the nodes. Resolves to its output. */
  async function command(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await otpost(args, trace.settings)
    if (code !== 0) throw new Error(stderr)
    return stdout.trim()
  }

  /**
   * Sends the same request to the nodes in turn, all at once. Resolves to the number of each answer.
   *
   * @param answered is called at each answer
   */
  async function allAtOnce(
    count: number,
    path: string,
    fieldsOf: (index: number) => Readonly<Record<string, unknown>>,
    asked: readonly Node[] = present(),
    answered: () => void = () => {},
  ): Promise<Record<string, number>> {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        asked[index % asked.length]?.server.post(path, fieldsOf(index)).finally(answered),
      ),
    )
    const counts: Record<string, number> = {}
    for (const answer of answers) {
      const told = answer ? verdict(answer) : 'no node'
      counts[told] = (counts[told] ?? 0) + 1
    }
    return counts
  }

  test('start at once on an empty database: one creates the schema, and all serve', async () => {
    for (const node of await Promise.all(names.map((name) => trace.start(name)))) nodes.set(node.name, node)
    const applied = await queryOnce(
      trace.databaseUrl,
      'SELECT hash, xmin::text AS transaction FROM __drizzle_migrations',
    )
    expect(applied.map(({ hash }) => hash).sort()).toEqual(migrations.map(({ tag }) => tag).sort())
    expect(new Set(applied.map(({ transaction }) => transaction)).size).toBe(1)
    await command('brand', 'put', 'acme', '--name', 'Acme')
    for (const { ask } of present()) {
      expect((await trace.history.send(ask, '/otp/send', freshPhone())).verdict).toBe('200')
    }
  })

  test.each([
    [2, 'whole'],
    [4, 'partitioned'],
  ])(
    '%d under load on %s tables, killed at random and restarted, keep every answered change',
    async (count, tables) => {
      // The tests below use them too.
      if (tables === 'partitioned') await trace.partition()
      const seed = newSeed() + count
      const random = randomNumbers(seed)
      const alive = new Map([...nodes].slice(0, count))
      let answers = 0
      let kills = 0
      let isOver = false
      const loading = trace.load(
        () => [...alive.values()].map(({ ask }) => ask),
        { seed, clients: 10, phones: phonesOf(40, 1000 * count), goesOn: () => !isOver },
        () => {
          answers++
        },
      )
      for (; kills < 3; kills++) {
        const killAt = answers + 40 + 60 * random()
        while (answers < killAt) await Bun.sleep(2)
        const name = [...alive.keys()][Math.floor(random() * alive.size)] ?? ''
        const node = alive.get(name)
        alive.delete(name)
        await node?.kill()
        const next = await trace.start(name)
        alive.set(name, next)
        nodes.set(name, next)
      }
      const enoughAt = answers + 100
      while (answers < enoughAt) await Bun.sleep(2)
      isOver = true
      await loading

      const [one] = present()
      if (one) await trace.check(one, `FAULTS_SEED=${seed - count}`)
      trace.expectEnough(10, `FAULTS_SEED=${seed - count}`)
      // A killed node does not affect the others.
      expect(trace.refusals().count).toBe(0)
      tell(`${count} nodes`, { requests: trace.history.operations.length, answers, kills })
    },
  )

  /** Sends a code through the first node. */
  async function sendTo(phone: string): Promise<void> {
    const [one] = present()
    if (!one) throw new Error('no node was started')
    expectSuccess(await one.server.post('/otp/send', { phone }), ['expiresIn'])
  }

  test('accept a correct code once, and count three wrong ones', async () => {
    const phone = freshPhone()
    await sendTo(phone)
    const otp = trace.history.codesOf(phone)[0] ?? ''
    expect(await allAtOnce(50, '/otp/verify', () => ({ phone, otp }))).toEqual({
      '200': 1,
      '404 not_found': 49,
    })

    const other = freshPhone()
    await sendTo(other)
    const wrong = otherThan(trace.history.codesOf(other)[0] ?? '')
    expect(await allAtOnce(50, '/otp/verify', () => ({ phone: other, otp: wrong }))).toEqual({
      '401 mismatch': 3,
      '429 max_attempts': 47,
    })
  })

  test('share each limit', async () => {
    const brands = Array.from({ length: 5 }, (_, index) => `brand${index}`)
    for (const brand of brands) await command('brand', 'put', brand, '--name', brand)
    // The cooldown allows one, over all nodes.
    const phone = freshPhone()
    // The one message is not delivered until the others have been answered, so the cooldown can not end before.
    const gateway = held()
    trace.receiver.answer(({ body }) => {
      trace.history.deliver(body)
      return gateway.promise
    })
    let others = 39
    const release = () => {
      if (--others === 0) gateway.release(new Response(null, { status: 204 }))
    }
    expect(await allAtOnce(40, '/otp/send', () => ({ phone }), present(), release)).toEqual({
      '200': 1,
      '429 cooldown_active': 39,
    })
    trace.receiver.answer(({ body }) => {
      trace.history.deliver(body)
      return new Response(null, { status: 204 })
    })
    expect(trace.history.codesOf(phone)).toHaveLength(1)
    // Three a minute for the phone, over all brands.
    const other = freshPhone()
    const counts = await allAtOnce(40, '/otp/send', (index) => ({ phone: other, brandId: brands[index % 5] }))
    expect(counts['200']).toBe(3)
    expect(trace.history.codesOf(other)).toHaveLength(3)
    // The limit per minute of an application, with its default value.
    const limited = await Promise.all(
      ['five', 'six', 'seven', 'eight'].map((name) =>
        trace.start(name, { env: { GLOBAL_LIMIT_PER_MINUTE: '10', ...asApp('small') } }),
      ),
    )
    const fields = { appId: 'small', phone: freshPhone(), otp: '123456' }
    expect(await allAtOnce(60, '/otp/verify', () => fields, limited)).toEqual({
      '404 not_found': 10,
      '429 rate_limited': 50,
    })
    for (const { server } of limited) expect(await server.stop()).toBe(0)
  })

  const asApp = (appId: string) => ({ APP_CREDENTIALS: JSON.stringify({ [appId]: credentials.apiKey }) })

  test('lease units of a large limit: no kill lets them exceed it, and a stop loses none', async () => {
    const max = 600
    const start = (appId: string) =>
      Promise.all(
        [0, 1, 2, 3].map((index) =>
          trace.start(`${appId}${index}`, { env: { GLOBAL_LIMIT_PER_MINUTE: String(max), ...asApp(appId) } }),
        ),
      )
    /** Calls until each node has rejected a request or was ended. Resolves to the number that the limit admitted, and to its maximum. */
    const exhaust = async (
      appId: string,
      limited: readonly Node[],
      end: (node: Node) => Promise<unknown>,
    ) => {
      let admitted = 0
      let ending: Promise<unknown> | undefined
      const startedAt = performance.now()
      const fields = { appId, phone: freshPhone(), otp: '123456' }
      const isDone = new Set<Node>()
      await Promise.all(
        Array.from({ length: 32 }, async (_, index) => {
          const node = limited[index % limited.length]
          while (node && isDone.size < limited.length) {
            const answer = await node.server.post('/otp/verify', fields).catch(() => undefined)
            if (answer?.status === 404) admitted++
            else if (answer?.status === 429) isDone.add(node)
            else if (node === limited[0]) return void isDone.add(node)
            else throw new Error(`unexpected answer: ${answer && verdict(answer)}`)
            if (admitted > 200 && limited[0]) ending ??= end(limited[0])
          }
        }),
      )
      const windows = 1 + Math.floor((performance.now() - startedAt) / 60_000)
      await ending
      for (const { server } of limited.slice(1)) expect(await server.stop()).toBe(0)
      return { admitted, most: max * windows }
    }
    const killed = await exhaust('killed', await start('killed'), (node) => node.kill())
    // A sixteenth of the limit, and requests without an answer.
    expect(killed.admitted).toBeWithin(max * (15 / 16) - 8, killed.most + 1)
    const stopped = await exhaust('stopped', await start('stopped'), async ({ server }) => server.stop())
    expect(stopped.admitted).toBeWithin(max - 8, stopped.most + 1)
    tell('leases', { killed, stopped })
  })

  /**
   * Calls every node until it gives an answer. Resolves, in milliseconds, to the time until the last node did, and to the
   * time of the last call with another answer.
   */
  async function untilAll(
    fields: Readonly<Record<string, unknown>>,
    wanted: string,
  ): Promise<{ tookMs: number; lastOtherMs: number }> {
    const startedAt = performance.now()
    let lastOtherMs = 0
    await Promise.all(
      present().map(async ({ name, server }) => {
        for (;;) {
          const askedMs = performance.now() - startedAt
          const told = verdict(await server.post('/otp/verify', { otp: '123456', ...fields }))
          if (told === wanted) return
          lastOtherMs = Math.max(lastOtherMs, askedMs)
          if (askedMs > longestMs) throw new Error(`node ${name} still answers ${told}`)
          await Bun.sleep(5)
        }
      }),
    )
    return { tookMs: Math.round(performance.now() - startedAt), lastOtherMs }
  }

  test('apply the changes of operators, each within a second', async () => {
    const phone = freshPhone()
    const took: Record<string, number> = {}
    /** A change by a command, which ends before the nodes are called. */
    const expectChange = async (
      what: string,
      fields: object,
      before: string,
      change: () => Promise<unknown>,
      after: string,
    ) => {
      await untilAll({ phone, ...fields }, before)
      await change()
      const { tookMs, lastOtherMs } = await untilAll({ phone, ...fields }, after)
      took[what] = tookMs
      // The time of an answer depends on the machine; but no call after that time may get the old answer.
      expect(lastOtherMs).toBeLessThan(changeHoldsMs)
    }
    await expectChange(
      'brand suspended',
      {},
      '404 not_found',
      () => command('brand', 'status', 'acme', 'suspended'),
      '403 brand_suspended',
    )
    await expectChange(
      'brand active',
      {},
      '403 brand_suspended',
      () => command('brand', 'status', 'acme', 'active'),
      '404 not_found',
    )
    const issued: { appId: string; apiKey: string } = { appId: 'mobile', apiKey: 'not known yet' }
    await expectChange(
      'app issued',
      issued,
      '403 forbidden',
      async () => {
        issued.apiKey = await command('app', 'issue', 'mobile')
      },
      '404 not_found',
    )
    await expectChange(
      'key revoked',
      issued,
      '404 not_found',
      () => command('app', 'revoke-key', 'mobile', issued.apiKey.slice(-4)),
      '403 forbidden',
    )
    tell('changes, ms after the command has ended', took)
  })

  test('share the sessions of the console', async () => {
    const [one, two, three] = present()
    if (!one || !two || !three) throw new Error('four nodes were started')
    const ask = ({ server }: Node, path: string, init: RequestInit = {}) =>
      fetch(new URL(path, server.url), { redirect: 'manual', ...init })
    const form = (fields: Readonly<Record<string, string>>, cookie = ''): RequestInit => ({
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', cookie },
      body: new URLSearchParams(fields),
    })
    const [, token = ''] = (await command('admin', 'link')).split('#')
    const entered = await ask(one, '/admin/link', form({ token }))
    expect(entered.status).toBe(303)
    const cookie = entered.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const headers = { cookie }
    const page = await ask(two, '/admin', { headers })
    expect(page.status).toBe(200)
    const csrf = /name="csrf" value="([^"]*)"/.exec(await page.text())?.[1] ?? ''
    // Without an account there is no page to sign in again.
    expect((await ask(three, '/admin/logout', form({ csrf }, cookie))).status).toBe(200)
    for (const node of present()) expect((await ask(node, '/admin', { headers })).status).toBe(401)
  })

  test('stop cleanly', async () => {
    expect(await Promise.all(present().map(({ server }) => server.stop()))).toEqual([0, 0, 0, 0])
  })
})
