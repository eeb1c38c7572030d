import { expect, test } from 'bun:test'
import { migratedTestDatabase } from './support/database.ts'
import { probed } from './support/rows.ts'
import { otpost, startServer } from './support/server.ts'

const phone = '12025550143'

/** A server with brand `acme` on a database of its own; both end with the scene. */
async function serving(env: Readonly<Record<string, string>>) {
  const database = await migratedTestDatabase()
  const { code } = await otpost(['brand', 'put', 'acme', '--name', 'Acme'], database.env)
  expect(code).toBe(0)
  const server = await startServer({ ...database.env, SMS_PLAIN: 'discard', ...env })
  return {
    server,
    async [Symbol.asyncDispose]() {
      await server.stop('SIGKILL')
      await database.remove()
    },
  }
}

test.concurrent('with SHUTDOWN_DELAY_SECONDS a stopping server still serves but is not ready; a second signal stops it at once', async () => {
  await using trace = await serving({ SHUTDOWN_DELAY_SECONDS: '300' })
  const { server } = trace
  expect(await probed(server.get)).toEqual(['200 ok', '200 ready', '200 ok'])
  server.child.kill('SIGTERM')
  await server.logged('stopping')
  expect(await probed(server.get)).toEqual(['200 ok', '503 draining', '200 ok'])
  const sent = await server.post('/otp/send', { phone })
  expect(sent.status).toBe(200)
  // No request is rejected before the load balancers have noticed the stop.
  expect(sent.headers.get('connection')).not.toBe('close')
  const startedAt = performance.now()
  expect(await server.stop()).toBe(1)
  expect(performance.now() - startedAt).toBeLessThan(100_000)
})

test.concurrent('after SHUTDOWN_DELAY_SECONDS the server stops as usual', async () => {
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
