import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { otpost, startServer, type TestServer } from '../support/server.ts'
import { startSilentServer } from '../support/smtp.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ DATABASE_URL: 'file::memory:', SHUTDOWN_DELAY_SECONDS: '300' })
})
afterAll(() => server.stop('SIGKILL'))

/** The output of `otpost health` with these settings. */
async function health(settings: Readonly<Record<string, string>>, ...options: string[]) {
  const { code, stdout, stderr } = await otpost(['health', ...options], settings)
  return { code, stdout, stderr }
}

describe('otpost health', () => {
  test('calls the server of the same settings, without a proxy', async () => {
    const { port } = server.url
    const proxy = { HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1' }
    expect(await health({ HOST: '0.0.0.0', PORT: port, ...proxy })).toEqual({
      code: 0,
      stdout: `http://127.0.0.1:${port} is ready\n`,
      stderr: '',
    })
  })

  test('reports why the server is not ready, and exits with status 1', async () => {
    const silent = startSilentServer()
    const stranger = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response('{"status":"ready"}', { status: 404 }),
    })
    server.child.kill('SIGTERM')
    await server.logged('stopping')
    const [late, nobody, wrong, draining] = await Promise.all([
      health({ PORT: String(silent.port) }, '--timeout', '1'),
      health({ PORT: '1' }),
      health({ PORT: String(stranger.port) }),
      health({ PORT: server.url.port }),
    ])
    silent.stop()
    await stranger.stop(true)
    for (const { code, stdout } of [late, nobody, wrong, draining]) {
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    }
    expect(late.stderr).toBe(
      `otpost: http://127.0.0.1:${silent.port} did not answer within 1 s. See its log.\n`,
    )
    expect(nobody.stderr).toContain('http://127.0.0.1:1 cannot be reached. Check that the server is running')
    expect(wrong.stderr).toContain('which is not an answer of this version of otpost')
    expect(draining.stderr).toBe(
      `otpost: http://127.0.0.1:${server.url.port} is draining. The server is stopping.\n`,
    )
  })

  test('reports invalid settings', async () => {
    const { code, stderr } = await health({ PORT: '0', HOST: 'no host' })
    expect(code).toBe(78)
    expect(stderr).toContain('PORT is 0, so the server chose a free port')
    expect(stderr).toContain('HOST must be an IP address or a host name')
  })
})
