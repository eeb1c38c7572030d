import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { migratedTestDatabase, store, type TestDatabase } from './support/database.ts'
import { type Exposition, readExposition } from './support/exposition.ts'
import { rawRequest } from './support/raw-http.ts'
import { expectError, expectSuccess, freshPhone } from './support/rows.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'

// Metrics of the real process: on their own port, while the server is busy.

const databases: TestDatabase[] = []
afterAll(() => Promise.all(databases.map((database) => database.remove())))

const token = 'token-of-the-scraper'

/** Settings with a database that has the brand `acme`. */
async function prepared(): Promise<Readonly<Record<string, string>>> {
  const database = await migratedTestDatabase()
  databases.push(database)
  const { env } = database
  expect((await otpost(['brand', 'put', 'acme', '--name', 'Acme'], env)).code).toBe(0)
  return env
}

/** The URL of the metrics, from the log. */
function metricsUrl({ lines }: TestServer): URL {
  const url = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'serving metrics')?.url
  return new URL('/metrics', url)
}

async function scrape(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<Exposition> {
  const response = await fetch(url, { headers })
  expect(response.status).toBe(200)
  return readExposition(await response.text())
}

async function refusal(url: URL, init: RequestInit = {}) {
  const response = await fetch(url, init)
  return { status: response.status, headers: response.headers, body: await response.json() }
}

describe('a separate port', () => {
  let server: TestServer
  let url: URL
  beforeAll(async () => {
    server = await startServer({ ...(await prepared()), METRICS_PORT: '0' })
    url = metricsUrl(server)
  })
  afterAll(() => server.stop())

  test('serves the metrics without credentials, and nothing else', async () => {
    expect(url.port).not.toBe(server.url.port)
    expect((await scrape(url)).value('otpost_database_up')).toBe(1)
    expectError(await refusal(new URL('/health', url)), 404, 'not_found')
    expectError(await refusal(new URL('/metrics/', url)), 404, 'not_found')
    const post = await refusal(url, { method: 'POST', body: '{}' })
    expectError(post, 405, 'method_not_allowed')
    expect(post.headers.get('allow')).toBe('GET, HEAD')
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expectError(await server.get('/metrics'), 404, 'not_found')
  })

  test('answers IP addresses and names of an own network, and no other site that rebinds its name', async () => {
    const statusOf = async (host: string) => {
      const { status } = await rawRequest(url, 'GET /metrics', [`Host: ${host}`])
      return `${host} ${status}`
    }
    for (const host of ['localhost', '10.1.2.3:9464', '[fd00::1]:9464', 'otpost:9464', 'o.m.svc', 'o.local'])
      expect(await statusOf(host)).toBe(`${host} 200`)
    for (const host of ['evil.example', 'evil.com:9464', 'svc.evil.com', '10.1.2.3.evil.com', 'a b'])
      expect(await statusOf(host)).toMatch(/ (404|400)$/)
    expect((await rawRequest(url, 'GET /metrics', ['Host: localhost', 'Host: localhost'])).status).toBe(400)
  })

  test('that is in use stops the start with an error that names it', async () => {
    const { code, stderr, stdout } = await otpost(['serve'], {
      ...(await prepared()),
      PORT: '0',
      METRICS_PORT: url.port,
    })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`METRICS_PORT ${url.port} on 127\\.0\\.0\\.1 is already in use`),
      ),
    })
    expect(stdout).not.toContain('"listening"')
  })

  test('on an IP address of another machine is an invalid setting', async () => {
    const { code, stderr } = await otpost(['serve'], {
      ...(await prepared()),
      PORT: '0',
      METRICS_PORT: '0',
      METRICS_HOST: '192.0.2.1',
    })
    expect({ code, stderr }).toEqual({
      code: 78,
      stderr: expect.stringContaining('METRICS_HOST is 192.0.2.1'),
    })
  })
})

test('both ports require the token if it is set', async () => {
  const server = await startServer({ ...(await prepared()), METRICS_PORT: '0', METRICS_TOKEN: token })
  const both = [metricsUrl(server), new URL('/metrics', server.url)]
  for (const url of both) {
    const answer = await refusal(url)
    expectError(answer, 401, 'unauthorized')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expectError(
      await refusal(url, { headers: { authorization: 'Bearer another-of-them' } }),
      401,
      'unauthorized',
    )
    await scrape(url, { authorization: `Bearer ${token}` })
  }
  expect(await server.stop()).toBe(0)
  expect(server.lines.join('\n')).not.toContain(token)
})

test('scrapes during requests are complete, never decrease, and finally count each request once', async () => {
  const server = await startServer({ ...(await prepared()), SMS_PLAIN: 'discard', METRICS_PORT: '0' })
  const url = metricsUrl(server)
  const rounds = 10
  const sends = 40
  const scrapes: Exposition[] = []
  for (let round = 0; round < rounds; round++) {
    const [told, again, ...answers] = await Promise.all([
      scrape(url),
      scrape(url),
      ...Array.from({ length: sends }, () => server.post('/otp/send', { phone: freshPhone() })),
    ])
    for (const answer of answers) expectSuccess(answer, ['expiresIn'])
    scrapes.push(told, again)
  }
  const last = await scrape(url)
  const route = { route: '/otp/send' }
  const counts = [...scrapes, last].map((told) => told.value('otpost_http_requests_total', route) ?? 0)
  // The two scrapes of a round may arrive in either order.
  expect(counts.filter((count, place) => count < (counts[place - 2] ?? 0))).toEqual([])
  expect(counts.at(-1)).toBe(rounds * sends)
  expect(last.value('otpost_http_request_duration_seconds_count', route)).toBe(rounds * sends)
  expect(last.value('otpost_codes_sent_total', { channel: 'SMS', operation: 'send' })).toBe(rounds * sends)
  expect(
    last.value('otpost_deliveries_total', { provider: 'discard', route: 'plain', outcome: 'accepted' }),
  ).toBe(rounds * sends)
  // Each send is at least one write, and writes of one moment share a commit, so the writer has counted them.
  if (store === 'sqlite') {
    const commits = last.value('otpost_store_commit_batch_size_count') ?? 0
    expect(last.value('otpost_store_commit_batch_size_sum')).toBeGreaterThanOrEqual(rounds * sends)
    expect(commits).toBeGreaterThan(0)
    expect(commits).toBeLessThan(last.value('otpost_store_commit_batch_size_sum') ?? 0)
  }
  expect(last.value('otpost_event_loop_lag_seconds_count')).toBeGreaterThan(0)
  // On their own port they are not counted as requests.
  expect(last.value('otpost_http_requests_total', { route: '/metrics' })).toBeUndefined()
  expect(await server.stop()).toBe(0)
  expect(server.lines.filter((line) => line.includes('"route":"/otp/send"'))).toHaveLength(rounds * sends)
  expect(server.lines.filter((line) => line.includes('/metrics"'))).toEqual([])
})

test('servers in a zero-downtime restart share the metrics port too, and the remaining one answers', async () => {
  const env = { ...(await prepared()), REUSE_PORT: '1' }
  const leaving = await startServer({ ...env, METRICS_PORT: '0' })
  const url = metricsUrl(leaving)
  const coming = await startServer({ ...env, METRICS_PORT: url.port })
  expect(metricsUrl(coming).port).toBe(url.port)
  await coming.get('/platform/brands')
  expect(await leaving.stop()).toBe(0)
  const told = await scrape(url, { connection: 'close' })
  expect(told.value('otpost_http_requests_total', { route: '/platform/brands' })).toBe(1)
  expect(await coming.stop()).toBe(0)
})

/** Whether a server with these settings loads the client library. */
async function loads(env: Readonly<Record<string, string>>): Promise<string> {
  const program = `
    const [{ createApp }, { readConfig }] = await Promise.all([import('./src/app.ts'), import('./src/config/config.ts')])
    const app = await createApp(readConfig(process.env))
    app.listen()
    await app.handle(new Request('http://localhost/health'))
    await app.handle(new Request('http://localhost/metrics', { headers: { authorization: 'Bearer ${token}' } }))
    await app.close()
    console.log(Object.keys(require.cache).some((file) => file.includes('/prom-client/')) ? 'loaded' : 'not loaded')
    process.exit()`
  const { PATH = '', HOME = '' } = process.env
  const own = await prepared()
  const child = Bun.spawn([process.execPath, '-e', program], {
    cwd: join(import.meta.dir, '..'),
    env: { PATH, HOME, PORT: '0', ...own, ...env },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return (await new Response(child.stdout).text()).trim()
}

test('the client library is loaded only if metrics are enabled', async () => {
  expect(await loads({})).toBe('not loaded')
  expect(await loads({ METRICS_TOKEN: token })).toBe('loaded')
})
