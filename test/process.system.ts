import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../src/config/config.ts'
import { openContext } from '../src/context.ts'
import { putBrand } from '../src/domain/operator/brands.ts'
import { codeIn, otherThan, temporaryFolder, verdict } from './support/app.ts'
import { openTestDatabase, sqliteAlone, store } from './support/database.ts'
import { tester } from './support/operator.ts'
import { programEnv, programLine } from './support/program.ts'
import { held, startReceiver } from './support/receiver.ts'
import { demoIn, otpost, startServer, type TestServer } from './support/server.ts'

const phone = '12025550143'

/** What a test needs around its servers: a database of its own, a gateway, a mail server. All end after the test. */
async function scene() {
  const ending = new AsyncDisposableStack()
  const folder = temporaryFolder()
  ending.defer(() => folder.remove())
  const database = await openTestDatabase()
  ending.defer(() => database.remove())
  const receiver = startReceiver()
  ending.defer(() => receiver.stop())

  return {
    folder: folder.path,
    database,
    receiver,
    /** Creates an active brand before a server starts. */
    async brand(slug: string, displayName: string): Promise<void> {
      const context = await openContext(readConfig(database.env))
      await putBrand(context.acting(tester), slug, { displayName })
      await context.close()
    },
    async start(env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
      const server = await startServer({ ...database.env, PROVIDER_TIMEOUT_MS: '30000', ...env })
      ending.defer(async () => void (await server.stop('SIGKILL')))
      return server
    },
    /** Runs a command that must succeed. Resolves to its standard output. */
    async command(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await otpost(args, database.env)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return stdout
    },
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  }
}

/** The code of the last message to a recipient in a server's outbox. */
async function codeOf(server: TestServer, to: string): Promise<string> {
  const { body } = await server.get(`/outbox/messages?to=${encodeURIComponent(to)}&wait=20`)
  return codeIn(body.messages.at(-1)?.text)
}

/** Resolves once the server has the request; `answer` is everything it sends until it closes the connection. */
async function openRequest(url: URL, path: string): Promise<{ answer: Promise<string> }> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const socket = await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      data: (_, bytes) => {
        text += bytes.toString()
      },
      close: () => resolve(text),
    },
  })
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: close\r\n\r\n`)
  socket.flush()
  // The server accepts connections in order: an answer on a later one means that it has accepted this one.
  await fetch(new URL('/health', url), { headers: { connection: 'close' } })
  return { answer: promise }
}

/** Whether a process listens there. */
async function accepts(url: URL): Promise<boolean> {
  try {
    const socket = await Bun.connect({
      hostname: url.hostname,
      port: Number(url.port),
      socket: { data: () => undefined },
    })
    socket.end()
    return true
  } catch {
    return false
  }
}

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  test.concurrent(`code, attempts, cooldown and limits survive ${signal}`, async () => {
    await using trace = await scene()
    await trace.brand('acme', 'Acme')
    await trace.brand('other', 'Other')
    const settings = { SMS_COOLDOWN_SECONDS: '3600', PHONE_LIMIT_PER_HOUR: '1' }
    const neighbour = '12025550144'
    const before = await trace.start(settings)
    expect(verdict(await before.post('/otp/send', { phone }))).toBe('200')
    expect(verdict(await before.post('/otp/send', { phone: neighbour }))).toBe('200')
    const [otp, otherOtp] = [await codeOf(before, phone), await codeOf(before, neighbour)]
    const guess = (server: TestServer, otp: string) =>
      server.post('/otp/verify', { phone, otp }).then(verdict)
    expect(await guess(before, otherThan(otp))).toBe('401 mismatch')
    const exitCode = await before.stop(signal)
    if (signal === 'SIGTERM') expect(exitCode).toBe(0)

    const after = await trace.start(settings)
    expect(verdict(await after.post('/otp/send', { phone }))).toBe('429 cooldown_active')
    expect(verdict(await after.post('/otp/send', { phone, brandId: 'other' }))).toBe('429 rate_limited')
    expect(await guess(after, otherThan(otp))).toBe('401 mismatch')
    expect(await guess(after, otherThan(otp))).toBe('401 mismatch')
    expect(await guess(after, otp)).toBe('429 max_attempts')
    expect(verdict(await after.post('/otp/verify', { phone: neighbour, otp: otherOtp }))).toBe('200')
    expect(verdict(await after.post('/otp/verify', { phone: neighbour, otp: otherOtp }))).toBe(
      '404 not_found',
    )
  })
}

test.concurrent("what a command changes takes effect at the running server's next request", async () => {
  await using trace = await scene()
  await trace.brand('acme', 'Acme')
  const server = await trace.start({ SMS_COOLDOWN_SECONDS: '0', PHONE_LIMIT_PER_MINUTE: '100' })
  const send = async (fields: object = {}) => verdict(await server.post('/otp/send', { phone, ...fields }))
  expect(await send()).toBe('200')

  await trace.command('brand', 'status', 'acme', 'suspended')
  expect(await send()).toBe('403 brand_suspended')
  expect((await server.get('/platform/brands')).body.brands).toEqual([])
  await trace.command('brand', 'status', 'acme', 'active')
  expect(await send()).toBe('200')

  await trace.command('brand', 'put', 'acme', '--name', 'Zenith')
  expect(await send()).toBe('200')
  const { body } = await server.get(`/outbox/messages?to=${phone}`)
  expect(body.messages.at(-1).text).toContain('Zenith')

  const till = { appId: 'till', apiKey: (await trace.command('app', 'issue', 'till')).trim() }
  expect(await send(till)).toBe('200')
  await trace.command('app', 'revoke', 'till')
  expect(await send(till)).toBe('403 forbidden')

  expect(await send({ brandId: 'fresh' })).toBe('403 brand_not_approved')
  await trace.command('brand', 'put', 'fresh', '--name', 'Fresh')
  expect(await send({ brandId: 'fresh' })).toBe('200')
})

test.concurrent('the server answers a send under way after SIGTERM, and refuses new connections', async () => {
  await using trace = await scene()
  await trace.brand('acme', 'Acme')
  // Mail stays in the outbox, so that the end of a reader shows that the server has begun to stop.
  const server = await trace.start({ SMS_PLAIN: 'webhook', ...trace.receiver.env })
  const handedOver = Promise.withResolvers<void>()
  const gateway = held()
  trace.receiver.answer(() => {
    handedOver.resolve()
    return gateway.promise
  })
  const reader = await openRequest(server.url, '/outbox/messages?wait=60')
  const sending = server.post('/otp/send', { phone })
  await handedOver.promise

  server.child.kill('SIGTERM')
  await reader.answer
  expect(await accepts(server.url)).toBe(false)
  gateway.release(new Response())
  expect(verdict(await sending)).toBe('200')
  expect(await server.exited).toBe(0)
  expect(await server.stderr).toBe('')
  // The log has all requests, and its last line.
  const logged = server.lines.map((line) => JSON.parse(line))
  expect(logged.find(({ route }) => route === '/otp/send')?.status).toBe(200)
  expect(logged.at(-1)?.msg).toBe('stopped')

  // Answered changes are stored.
  const next = await trace.start({ SMS_PLAIN: 'webhook', ...trace.receiver.env })
  const otp = codeIn(trace.receiver.received[0]?.body.text)
  expect(verdict(await next.post('/otp/verify', { phone, otp }))).toBe('200')
})

test.concurrent('SIGTERM stops a server whose log reader has exited', async () => {
  await using trace = await scene()
  const child = Bun.spawn(programLine(['serve']), {
    env: programEnv({ ...trace.database.env, PORT: '0' }),
    stdout: 'pipe',
    stderr: 'ignore',
    // A server that does not end by itself fails the test with another exit code.
    timeout: 100_000,
    killSignal: 'SIGKILL',
  })
  // The first line says that it listens; leaving the loop closes the pipe.
  for await (const _ of child.stdout) break
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})

test.concurrent('SIGTERM does not wait for clients that have sent half a request', async () => {
  await using trace = await scene()
  const server = await trace.start({ PROVIDER_TIMEOUT_MS: '60000' })
  const halves = [
    'POST /otp/send HTT',
    'POST /otp/send HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\ncontent-type: application/json\r\n\r\n{',
  ]
  for (const half of halves) {
    const socket = await Bun.connect({
      hostname: server.url.hostname,
      port: Number(server.url.port),
      socket: { data: () => {} },
    })
    socket.write(half)
    socket.flush()
  }
  await server.get('/health')
  // Waiting for them would take two minutes, which is longer than the time-out of the test.
  expect(await server.stop()).toBe(0)
}, 90_000)

test.concurrent('SIGTERM answers requests that wait for the outbox at once', async () => {
  await using trace = await scene()
  const server = await trace.start()
  const reader = await openRequest(server.url, '/outbox/messages?wait=60')
  const startedAt = performance.now()
  server.child.kill('SIGTERM')
  const answer = await reader.answer
  expect(await server.exited).toBe(0)
  expect(performance.now() - startedAt).toBeLessThan(40_000)
  expect(answer).toStartWith('HTTP/1.1 200')
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ success: true, messages: [] })
})

test.concurrent('a second server on a port fails with a clear error', async () => {
  await using trace = await scene()
  const first = await trace.start()
  const { port } = first.url
  const second = await otpost(['serve'], { ...trace.database.env, PORT: port })
  expect(second.code).toBe(1)
  expect(second.stderr).toContain(port)
  expect(second.stderr).toContain('REUSE_PORT')
  expect(second.stderr).not.toMatch(/^\s+at |Error:/m)
  expect(second.stdout).not.toContain('"url"')
  expect((await first.get('/health')).status).toBe(200)
})

test.concurrent('with REUSE_PORT=1 on both a second server replaces the first without a failed request', async () => {
  await using trace = await scene()
  await trace.brand('acme', 'Acme')
  const first = await trace.start({ REUSE_PORT: '1' })
  const second = await trace.start({ REUSE_PORT: '1', PORT: first.url.port })
  expect(second.url.port).toBe(first.url.port)
  expect(await first.stop()).toBe(0)
  expect(verdict(await second.post('/otp/send', { phone }))).toBe('200')
})

test.concurrent.skipIf(store !== 'sqlite')(
  `only the owner can read the database, its log and the key${sqliteAlone}`,
  async () => {
    await using trace = await scene()
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
    const shared = join(trace.folder, 'shared')
    mkdirSync(shared, { mode: 0o755 })
    for (const folder of [join(trace.folder, 'deep', 'data'), shared]) {
      const server = await trace.start({ DATABASE_URL: `file:${join(folder, 'otpost.db')}` })
      await server.get('/health')
      const files = readdirSync(folder).sort()
      expect(files).toEqual([
        'otpost.db',
        'otpost.db-shm',
        'otpost.db-wal',
        'otpost.db.created',
        'otpost.db.key',
      ])
      expect(files.map((name) => `${name} ${modeOf(join(folder, name))}`)).toEqual(
        files.map((name) => `${name} 600`),
      )
    }
    expect(modeOf(join(trace.folder, 'deep', 'data'))).toBe('700')
    expect(modeOf(join(trace.folder, 'deep'))).toBe('700')
  },
)

test.concurrent('a production server warns once of what does not limit SMS pumping, with the commands', async () => {
  await using trace = await scene()
  const settings = {
    NODE_ENV: 'production',
    OUTBOX_IN_PRODUCTION: '1',
    APP_CREDENTIALS: '{}',
    GUARD: 'record',
  }
  const warnings = async (env: Readonly<Record<string, string>> = {}) => {
    const server = await trace.start({ ...settings, ...env })
    await server.stop()
    return server.lines
      .map((line) => JSON.parse(line))
      .flatMap(({ level, msg }) => (level === 40 ? [msg] : []))
  }
  const all = [
    'This server is not protected against SMS pumping.',
    'SMS go to every country.',
    '`otpost destination set COUNTRY allow`',
    "`otpost destination set '*' block`",
    'The cost of SMS is not limited.',
    "`otpost budget set 'country:*' --per day --amount N`",
    'The mode of the SMS pumping guard is record.',
    '`otpost guard mode deny`',
  ]
  const [first = '', ...others] = await warnings()
  for (const words of all) expect(first).toContain(words)
  expect(others).toEqual([])
  await trace.command('budget', 'set', 'server', '--per', 'day', '--amount', '9')
  await trace.command('guard', 'mode', 'deny')
  expect(await warnings({ SMS_COUNTRIES: 'LV', GUARD: 'deny' })).toEqual([])
  expect(await warnings({ SMS_COUNTRIES: 'LV' })).toEqual([
    expect.stringContaining('GUARD is record, but has no effect: the mode of the SMS pumping guard is deny.'),
  ])
  expect(await warnings({ NODE_ENV: 'development', GUARD: '' })).toEqual([])
})

test.concurrent.skipIf(!Bun.which('curl') || !Bun.which('bash'))(
  'the demo prints commands that send a code and verify it in a shell, and its app is one like others',
  async () => {
    const folder = temporaryFolder()
    const start = async () => {
      const child = Bun.spawn(programLine(['demo', '--port', '0']), {
        cwd: folder.path,
        // No other setting may deliver the demo's messages.
        env: programEnv({
          PORT: '1',
          SMTP_URL: 'smtp://127.0.0.1:1',
          SMS_PLAIN: 'webhook',
          NODE_ENV: 'production',
        }),
        stdout: 'pipe',
        stderr: 'pipe',
      })
      let welcome = ''
      const decoder = new TextDecoder()
      for await (const chunk of child.stdout) {
        welcome += decoder.decode(chunk, { stream: true })
        if (/Ctrl-C.*\n/.test(welcome)) break
      }
      const stop = async () => {
        child.kill('SIGINT')
        return [await child.exited, await new Response(child.stderr).text()]
      }
      return { welcome, stop }
    }
    const { welcome, stop } = await start()
    const outbox = /http:\S+\/outbox\b/.exec(welcome)?.[0] ?? 'no outbox URL'
    const page = await fetch(outbox)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toStartWith('text/html')

    // So that `otpost relay add` prints the URL of the demo.
    expect(welcome).toContain(`demo.db' PORT=${new URL(outbox).port} `)

    const paste = welcome.split('\n').filter((line) => /^\s*(?:curl|[A-Z]+=)/.test(line))
    expect(paste).toHaveLength(3)
    const shell = Bun.spawn(['bash'], {
      stdin: new Blob([paste.join('\n'), '\n']),
      env: programEnv(),
      stdout: 'pipe',
    })
    const output = await new Response(shell.stdout).text()
    const [, sent = '', code, verified = ''] = /^(\{.*\})\s*(\d{6})\n(\{.*\})\s*$/.exec(output) ?? []
    expect(JSON.parse(sent)).toMatchObject({ success: true, expiresIn: 300 })
    expect(code).toBeDefined()
    expect(JSON.parse(verified)).toMatchObject({ success: true })
    expect(existsSync(join(folder.path, 'data', 'demo.db'))).toBe(true)

    // The key is new for this demo.
    const keyFile = join(folder.path, 'data', 'demo.apikey')
    const key = readFileSync(keyFile, 'utf8').trim()
    expect(welcome).toContain(` -u 'demo:${key}' `)
    expect(statSync(keyFile).mode & 0o777).toBe(0o600)

    // The app is one like others, for the commands with the printed DATABASE_URL.
    const [, DATABASE_URL = ''] = /DATABASE_URL='(file:.*)' .*app list/.exec(welcome) ?? []
    const app = async (...args: string[]) => {
      const { code, stderr } = await otpost(['app', ...args], { DATABASE_URL })
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
    }
    await app('set', 'demo', '--per-minute', '100')
    await app('webhook', 'demo', '--url', 'https://shop.example')
    await app('rotate', 'demo')
    expect(await stop()).toEqual([0, ''])
    const again = await start()
    expect(again.welcome).toContain(`demo:${key}`)
    await app('revoke', 'demo')
    expect(await again.stop()).toEqual([0, ''])
    rmSync(join(folder.path, 'data', 'demo.db'))
    for (let round = 0; round < 2; round++) {
      const third = await start()
      const { apiKey } = demoIn(join(folder.path, 'data'))
      expect(third.welcome).toContain(`demo:${apiKey}`)
      expect(apiKey).not.toBe(key)
      const { stdout } = await otpost(['app', 'list', '--json'], { DATABASE_URL })
      expect(JSON.parse(stdout)).toMatchObject([{ appId: 'demo', revokedAt: null }])
      expect(await third.stop()).toEqual([0, ''])
    }
    folder.remove()
  },
)
