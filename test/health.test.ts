import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'
import { createTestApp } from './support/app.ts'
import { openTestDatabase } from './support/database.ts'
import { createBrokenApp } from './support/rows.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'

// Processes share two cores with the tests beside these; each is there for what it answers, not for how soon.
setDefaultTimeout(120_000)

const phone = '12025550143'

/** Ended here should a story have failed before it ended them. */
const running = new Set<TestServer>()
afterAll(() => {
  for (const server of running) server.child.kill('SIGKILL')
})

/** A server with brand `acme` on a database of its own; both are ended after it. */
async function serving(env: Readonly<Record<string, string>>) {
  const database = await openTestDatabase()
  const { code } = await otpost(['brand', 'put', 'acme', '--name', 'Acme'], database.env)
  expect(code).toBe(0)
  const server = await startServer({ ...database.env, SMS_PLAIN: 'discard', ...env })
  running.add(server)
  return {
    server,
    async [Symbol.asyncDispose]() {
      await server.stop('SIGKILL')
      running.delete(server)
      await database.remove()
    },
  }
}

const probes = ['/health/live', '/health/ready', '/health'] as const

/** What the probes answer, in the order above. */
async function probed(ask: (path: string) => Promise<{ status: number; body: { status: string } }>) {
  const answers = await Promise.all(probes.map((path) => ask(path)))
  return answers.map(({ status, body }) => `${status} ${body.status}`)
}

describe('the probes', () => {
  test('tell a state and the requestId, and nothing else', async () => {
    const app = await createTestApp()
    for (const path of ['/health/live', '/health/ready']) {
      const { body, headers } = await app.get(path)
      expect(body).toEqual({
        status: path === '/health/live' ? 'ok' : 'ready',
        requestId: headers.get('x-request-id'),
      })
      expect((await app.request('HEAD', path)).status).toBe(200)
      expect((await app.request('POST', path)).headers.get('allow')).toBe('GET, HEAD')
    }
    await app.close()
  })

  test('of a database that can not be used: the process lives, and is not ready', async () => {
    const broken = await createBrokenApp()
    expect(await probed(broken.get)).toEqual(['200 ok', '503 unavailable', '503 unavailable'])
    await broken.close()
  })

  test('say from the first moment of a stop that it has begun', async () => {
    const app = await createTestApp()
    const closed = app.app.close()
    expect(await probed(app.get)).toEqual(['200 ok', '503 draining', '200 ok'])
    await closed
    await app.close()
  })
})

test.concurrent('with SHUTDOWN_DELAY_SECONDS a stop goes on serving, not ready; a second signal ends it at once', async () => {
  await using trace = await serving({ SHUTDOWN_DELAY_SECONDS: '300' })
  const { server } = trace
  expect(await probed(server.get)).toEqual(['200 ok', '200 ready', '200 ok'])
  server.child.kill('SIGTERM')
  await server.logged('stopping')
  expect(await probed(server.get)).toEqual(['200 ok', '503 draining', '200 ok'])
  const sent = await server.post('/otp/send', { phone })
  expect(sent.status).toBe(200)
  // Nobody is sent away while the load balancers still learn of it.
  expect(sent.headers.get('connection')).not.toBe('close')
  const startedAt = performance.now()
  expect(await server.stop()).toBe(1)
  expect(performance.now() - startedAt).toBeLessThan(100_000)
})

test.concurrent('after SHUTDOWN_DELAY_SECONDS a stop ends as any other', async () => {
  // Long enough for a request on a busy machine.
  await using trace = await serving({ SHUTDOWN_DELAY_SECONDS: '6' })
  const { server } = trace
  const startedAt = performance.now()
  server.child.kill('SIGTERM')
  await server.logged('stopping')
  expect((await server.post('/otp/send', { phone })).status).toBe(200)
  expect(await server.exited).toBe(0)
  // A timer counts whole milliseconds.
  expect(performance.now() - startedAt).toBeGreaterThan(5990)
  expect(JSON.parse(server.lines.at(-1) ?? '').msg).toBe('stopped')
  expect(await server.stderr).toBe('')
})

test('what ends for a fault is not delayed', async () => {
  const database = await openTestDatabase()
  const env = {
    ...database.env,
    PORT: '0',
    SHUTDOWN_DELAY_SECONDS: '300',
  }
  const app = await createApp(readConfig(env))
  app.listen()
  // With the delay this would outlast the test.
  await app.close({ isFault: true })
  await database.remove()
})
