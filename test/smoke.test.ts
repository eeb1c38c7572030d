import { expect, test } from 'bun:test'
import { migratedTestDatabase } from './support/database.ts'
import { otpost, startServer } from './support/server.ts'

// The only fast test that starts the program; tests of its output and process are system tests.

test('a server starts, sends a code, verifies it once, and stops', async () => {
  const database = await migratedTestDatabase()
  const made = await otpost(['brand', 'put', 'acme', '--name', 'Acme'], database.env)
  expect(made).toMatchObject({ code: 0, stderr: '' })
  const server = await startServer(database.env)
  try {
    const phone = '12025550143'
    expect(await server.post('/otp/send', { phone })).toMatchObject({ status: 200, body: { success: true } })
    const { body } = await server.get(`/outbox/messages?to=${phone}`)
    const [otp] = /\b\d{6}\b/.exec(body.messages[0].text) ?? []
    expect(await server.post('/otp/verify', { phone, otp })).toMatchObject({ status: 200 })
    expect(await server.post('/otp/verify', { phone, otp })).toMatchObject({
      status: 404,
      body: { error: 'not_found' },
    })
    expect(await server.stop()).toBe(0)
    expect(await server.stderr).toBe('')
    expect(JSON.parse(server.lines.at(-1) ?? '')).toMatchObject({ msg: 'stopped' })
  } finally {
    await server.stop('SIGKILL')
    await database.remove()
  }
}, 60_000)
