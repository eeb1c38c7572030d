import { describe, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { createTestApp } from '../support/app.ts'
import { openTestDatabase } from '../support/database.ts'
import { createBrokenApp, probed } from '../support/rows.ts'

describe('the probes', () => {
  test('return a state and the requestId only', async () => {
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

  test('with an unusable database report the process as live and not ready', async () => {
    const broken = await createBrokenApp()
    expect(await probed(broken.get)).toEqual(['200 ok', '503 unavailable', '503 unavailable'])
    await broken.close()
  })

  test('report a stop as soon as it begins', async () => {
    const app = await createTestApp()
    const closed = app.app.close()
    expect(await probed(app.get)).toEqual(['200 ok', '503 draining', '200 ok'])
    await closed
    await app.close()
  })
})

test('a stop after an error is not delayed', async () => {
  const database = await openTestDatabase()
  const env = { ...database.env, PORT: '0', SHUTDOWN_DELAY_SECONDS: '300' }
  const app = await createApp(readConfig(env))
  app.listen()
  // With the delay this would exceed the test's time-out.
  await app.close({ isFault: true })
  await database.remove()
})
