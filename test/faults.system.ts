import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { call as callProvider } from '../src/adapters/sms/http.ts'
import { readConfig } from '../src/config/config.ts'
import { readStoreConfig } from '../src/config/store.ts'
import { openContext } from '../src/context.ts'
import { putBrand } from '../src/domain/operator/brands.ts'
import { type Answer, codeIn, credentials, otherThan, temporaryFolder } from './support/app.ts'
import { signedIn } from './support/console.ts'
import { tester } from './support/operator.ts'
import { programEnv, programLine } from './support/program.ts'
import { held, startReceiver } from './support/receiver.ts'
import { expectError, expectSuccess, freshPhone, retryAfter } from './support/rows.ts'
import { startServer } from './support/server.ts'

const compiler = process.platform === 'linux' ? Bun.which('cc') : null
if (!compiler) {
  console.warn(
    'faults of disk and clock: skipped, since they need Linux and a C compiler (apt-get install gcc libc6-dev)',
  )
}

const shared = temporaryFolder()
const library = join(shared.path, 'faults.so')
/** The folder of a database with brand `acme`, as a template. */
const prepared = join(shared.path, 'data')

beforeAll(async () => {
  const context = await openContext(readConfig({ DATABASE_URL: `file:${join(prepared, 'otpost.db')}` }))
  await putBrand(context.acting(tester), 'acme', { displayName: 'Acme' })
  await context.close()
  if (!compiler) return
  const source = join(import.meta.dir, 'support/faults.c')
  const built = Bun.spawnSync([compiler, '-O2', '-shared', '-fPIC', '-o', library, source])
  expect(built.stderr.toString()).toBe('')
})

afterAll(() => shared.remove())

/** The error numbers of failed writes. */
const errno = { EIO: 5, ENOSPC: 28, EROFS: 30 } as const

/** A server with brand `acme`, an SMS gateway, and a disk and a clock that fail on request. */
async function scene(env: Readonly<Record<string, string>> = {}) {
  const ending = new AsyncDisposableStack()
  const folder = temporaryFolder()
  ending.defer(() => folder.remove())
  const receiver = startReceiver()
  ending.defer(() => receiver.stop())
  const disk = join(folder.path, 'data')
  const faults = join(folder.path, 'faults')
  mkdirSync(faults)
  const file = join(disk, 'otpost.db')
  cpSync(prepared, disk, { recursive: true })
  const server = await startServer({
    DATABASE_URL: `file:${file}`,
    SMS_PLAIN: 'webhook',
    ...receiver.env,
    ...(compiler ? { LD_PRELOAD: library, FAULTS: faults, FAULTY_DISK: disk } : {}),
    ...env,
  })
  ending.defer(async () => void (await server.stop('SIGKILL')))

  const trace = {
    server,
    receiver,
    /** The folder of the database. */
    disk,
    /** The database file. */
    file,
    /** Starts a fault, or ends it without a number. */
    fault(name: 'write' | 'sync' | 'hang' | 'clock', number?: number): void {
      const path = join(faults, name)
      if (number === undefined) rmSync(path, { force: true })
      else {
        // Through a draft: an existing file always contains its number.
        writeFileSync(`${path}.draft`, String(number))
        renameSync(`${path}.draft`, path)
      }
    },
    send: (phone: string) => server.post('/otp/send', { phone }),
    verify: (phone: string, otp: string) => server.post('/otp/verify', { phone, otp }),
    /** How many SMS the gateway received for a phone. */
    smsTo: (phone: string) => receiver.received.filter(({ body }) => body.to === phone).length,
    /** The code in the last SMS to a phone. */
    codeOf: (phone: string) => codeIn(receiver.received.findLast(({ body }) => body.to === phone)?.body.text),
    /** A phone that a code was sent to. */
    async sent(): Promise<{ phone: string; otp: string }> {
      const phone = freshPhone()
      expectSuccess(await trace.send(phone), ['expiresIn'])
      return { phone, otp: trace.codeOf(phone) }
    },
    /** Waits until all messages so far have been written. */
    async logged(): Promise<void> {
      const { requestId } = receiver.received.at(-1)?.body ?? {}
      const context = await openContext(readStoreConfig({ DATABASE_URL: `file:${file}` }))
      while (!(await context.eventLog.trace(requestId))?.end)
        await new Promise((resolve) => setImmediate(resolve))
      await context.close()
    },
    /** No write succeeds: requests that need one fail, nothing is sent, and the health check reports it. */
    async expectClosed(code: { phone: string; otp: string }): Promise<void> {
      const phone = freshPhone()
      expectError(await trace.send(phone), 500, 'internal_error')
      expectError(await trace.verify(code.phone, code.otp), 500, 'internal_error')
      expectError(await trace.verify(code.phone, otherThan(code.otp)), 500, 'internal_error')
      expect(trace.smsTo(phone)).toBe(0)
      await trace.expectHealth(503, 'unavailable')
    },
    /** The same server serves again, and an earlier code is still valid. */
    async expectHealed(code: { phone: string; otp: string }): Promise<void> {
      await trace.expectHealth(200, 'ok')
      const next = await trace.sent()
      expectSuccess(await trace.verify(next.phone, next.otp))
      expectSuccess(await trace.verify(code.phone, code.otp))
      expectError(await trace.verify(code.phone, code.otp), 404, 'not_found')
    },
    async expectHealth(status: number, word: string): Promise<void> {
      const { status: answered, body } = await server.get('/health')
      expect({ status: answered, body }).toMatchObject({ status, body: { status: word } })
    },
    /** Stops the server and runs an integrity check on the file. */
    async expectSoundFile(): Promise<void> {
      expect(await server.stop()).toBe(0)
      const db = new Database(file, { readonly: true })
      expect(db.query('PRAGMA integrity_check').values()).toEqual([['ok']])
      db.close()
    },
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  }
  return trace
}

type Scene = Awaited<ReturnType<typeof scene>>

describe.skipIf(!compiler)('a disk that fails', () => {
  test.concurrent('full under load rejects requests that it can not store, sends none of them, and recovers when there is room', async () => {
    await using trace = await scene()
    const before = await Promise.all(Array.from({ length: 6 }, () => trace.sent()))
    const [first] = before
    if (!first) throw new Error('nothing was sent')
    const load = startLoad(trace, 12)
    await load.answers(60)
    trace.fault('write', errno.ENOSPC)
    const full = load.mark()
    await load.answers(60)
    await trace.expectClosed(first)
    const room = load.mark()
    trace.fault('write')
    await load.answers(60)
    const tries = await load.stop()

    const broken: string[] = []
    for (const { phone, begun, ended, sent, verified } of tries) {
      const told = `${phone}: send ${sent.status}, verify ${verified?.status}`
      const within = begun > full && ended < room
      const sms = trace.smsTo(phone)
      for (const answer of [sent, verified]) {
        if (answer === undefined || answer.status === 200) continue
        expectError(answer, 500, 'internal_error')
      }
      if (within && sent.status === 200) broken.push(`${told}, while nothing could be kept`)
      if (sms !== (sent.status === 200 ? 1 : 0) && (within || sent.status === 200))
        broken.push(`${told}, ${sms} SMS`)
      if (verified) {
        const again = (await trace.verify(phone, trace.codeOf(phone))).status
        const expected = verified.status === 200 ? 404 : 200
        if (again !== expected) broken.push(`${told}, then ${again}`)
      }
    }
    expect(broken).toEqual([])
    const count = (status: number) => tries.filter(({ sent }) => sent.status === status).length
    expect(count(200)).toBeGreaterThan(10)
    expect(count(500)).toBeGreaterThan(10)
    for (const code of before) await trace.expectHealed(code)
    await trace.expectSoundFile()
  })

  test.concurrent('full sends an alert though nothing can be stored, once in 10 minutes, and one when there is room', async () => {
    const alerts = startReceiver()
    const next = () =>
      new Promise<void>((resolve) => {
        alerts.answer(() => {
          resolve()
          return new Response()
        })
      })
    await using trace = await scene({ ALERT_WEBHOOK_URL: alerts.url, ALERT_WEBHOOK_SECRET: alerts.secret })
    const code = await trace.sent()
    trace.fault('write', errno.ENOSPC)
    await trace.expectClosed(code)
    const seconds = { check: 31, interval: 601 }
    const started = next()
    // The server compares its clock with the time of the next check every second.
    trace.fault('clock', seconds.check)
    await started
    await trace.server.logged('a problem lasts')
    const lasting = next()
    trace.fault('clock', seconds.check + seconds.interval)
    await lasting
    trace.fault('write')
    await trace.expectHealth(200, 'ok')
    const ended = next()
    trace.fault('clock', 2 * seconds.check + seconds.interval)
    await ended
    expect(alerts.received.map(({ body: { type, data } }) => `${type} ${data.state}`)).toEqual([
      'disk.full started',
      'disk.full lasting',
      'disk.full ended',
    ])
    expect(alerts.received[0]?.body.data).toMatchObject({ message: 'The disk of the database is full.' })
    await trace.expectSoundFile()
    await alerts.stop()
  })

  test.concurrent('read-only, faulty, or unable to sync once, it rejects requests that it can not store, and recovers', async () => {
    await using trace = await scene()
    for (const number of [errno.EROFS, errno.EIO]) {
      const code = await trace.sent()
      trace.fault('write', number)
      await trace.expectClosed(code)
      trace.fault('write')
      await trace.expectHealed(code)
    }
    // After a failed sync the content of the disk is unknown: the commit is not reliable, and the next one writes anew.
    const code = await trace.sent()
    await trace.logged()
    const phone = freshPhone()
    trace.fault('sync', 1)
    expectError(await trace.send(phone), 500, 'internal_error')
    expect(trace.smsTo(phone)).toBe(0)
    await trace.expectHealed(code)
    await trace.expectSoundFile()
  })

  test.concurrent('that is full does not keep a server from stopping cleanly', async () => {
    await using trace = await scene()
    await trace.sent()
    trace.fault('write', errno.ENOSPC)
    expectError(await trace.send(freshPhone()), 500, 'internal_error')
    expect(await trace.server.stop()).toBe(0)
    expect(JSON.parse(trace.server.lines.at(-1) ?? '{}').msg).toBe('stopped')
  })

  test.concurrent('that hangs delays only answers that need it, and the health check reports it', async () => {
    await using trace = await scene()
    const code = await trace.sent()
    const phone = freshPhone()
    trace.fault('hang', 1)
    const waiting = trace.send(phone)
    expect((await trace.server.get('/integrations/catalog')).status).toBe(200)
    await trace.expectHealth(503, 'unavailable')
    expect(trace.smsTo(phone)).toBe(0)
    trace.fault('hang')
    expectSuccess(await waiting, ['expiresIn'])
    await trace.expectHealed(code)
  })

  test.concurrent('is the first words of each page of the console, within a second, and a change says that it was not saved', async () => {
    await using trace = await scene()
    const context = await openContext(readStoreConfig({ DATABASE_URL: `file:${trace.file}` }))
    const request: typeof trace.server.request = (method, path, init) =>
      trace.server.request(method, path, { ...init, redirect: 'manual' })
    const visitor = await signedIn({ request, app: { context } })
    await context.close()
    const faults = [
      ['write', errno.ENOSPC, 'The disk of the database is full.'],
      ['write', errno.EROFS, 'The disk of the database has errors.'],
      ['hang', 1, 'The disk of the database does not answer.'],
    ] as const
    for (const [name, number, cause] of faults) {
      trace.fault(name, number)
      const waiting = trace.send(freshPhone())
      if (name === 'write') expectError(await waiting, 500, 'internal_error')
      else while ((await trace.server.get('/health')).status === 200);
      for (const path of ['', '/deliveries', '/money']) {
        const startedAt = performance.now()
        let { html } = await visitor.get(`/admin${path}`)
        // On a busy machine, a page can be read while its own check of the database has not ended.
        if (!html.includes(cause)) html = (await visitor.get(`/admin${path}`)).html
        expect([path, html.includes(cause)]).toEqual([path, true])
        // A second on a machine that does nothing else. The statements themselves would wait for 5 s or more.
        expect(performance.now() - startedAt, `${cause} ${path}`).toBeLessThan(4000)
      }
      const budget = { scope: 'server', period: 'day', amount: '20' }
      // A page that a busy machine cannot read in time is the message alone.
      let hasForm = false
      for (let tries = 0; tries < 20 && !hasForm; tries++) {
        const { status, html } = await visitor.post('/admin/money', budget)
        expect([status, /The change was not saved|Not saved/.test(html)]).toEqual([503, true])
        hasForm = html.includes('value="20"')
      }
      expect(hasForm).toBe(true)
      trace.fault(name)
      await waiting
      await trace.expectHealth(200, 'ok')
      expect((await visitor.get('/admin/money')).html).not.toContain(cause)
    }
  })

  test.concurrent('or a lock of more than five seconds: the overview says since when, how many people got an error and what to do', async () => {
    await using trace = await scene()
    const context = await openContext(readStoreConfig({ DATABASE_URL: `file:${trace.file}` }))
    const request: typeof trace.server.request = (method, path, init) =>
      trace.server.request(method, path, { ...init, redirect: 'manual' })
    const visitor = await signedIn({ request, app: { context } })
    await context.close()
    const lock = new Database(trace.file)
    lock.exec('BEGIN IMMEDIATE')
    const phones = [freshPhone(), freshPhone()]
    const calls = [...phones, ...phones].map((phone) => trace.send(phone))
    for (const call of calls) expectError(await call, 500, 'internal_error')
    const later = trace.send(freshPhone())
    for (const path of ['', '?period=week', '?period=month']) {
      const startedAt = performance.now()
      const { status, html } = await visitor.get(`/admin${path}`)
      expect(performance.now() - startedAt, path).toBeLessThan(4000)
      expect([path, status, html.includes('aria-label="Console"')]).toEqual([path, 200, true])
      const [, words = ''] = /<h2 id="verdict">(.*?)<p class="hint"/s.exec(html) ?? []
      expect(words.replaceAll(/<[^>]*>/g, '')).toMatch(
        /^Another process has locked the database since [\d: -]+: 2 people got an error\.Requests to send and verify fail\. End that process/,
      )
    }
    lock.exec('ROLLBACK')
    lock.close()
    await later
    expect((await visitor.get('/admin')).html).not.toContain('Another process')
  })

  test.concurrent('that fills up while an SMS is on its way leaves its code valid', async () => {
    // A cooldown shorter than the time-out of a delivery is written after the delivery, and that write fails here.
    await using trace = await scene({ SMS_COOLDOWN_SECONDS: '1' })
    const phone = freshPhone()
    trace.receiver.answer(() => {
      trace.fault('write', errno.ENOSPC)
      return new Response()
    })
    // The SMS was accepted, so the answer is a success; the next cooldown is rather longer than a second.
    expectSuccess(await trace.send(phone), ['expiresIn'])
    trace.fault('write')
    trace.receiver.answer(() => new Response())
    expectError(await trace.send(phone), 429, 'cooldown_active')
    expect(trace.smsTo(phone)).toBe(1)
    expectSuccess(await trace.verify(phone, trace.codeOf(phone)))
  })
})

/** A way to move the database file away, and to put it back. */
const losses: readonly {
  name: string
  lose(trace: Scene, aside: string): void
  restore(trace: Scene, aside: string): void
}[] = [
  {
    name: 'folder moved away',
    lose: ({ disk }, aside) => renameSync(disk, aside),
    restore: ({ disk }, aside) => renameSync(aside, disk),
  },
  {
    name: 'file moved away',
    lose: ({ file }, aside) => renameSync(file, aside),
    restore: ({ file }, aside) => renameSync(aside, file),
  },
  {
    name: 'file replaced by a copy',
    lose: ({ file }, aside) => {
      renameSync(file, aside)
      cpSync(aside, file)
    },
    restore: ({ file }, aside) => renameSync(aside, file),
  },
]

test.concurrent('a deleted or replaced database is not served from memory', async () => {
  await using trace = await scene()
  for (const { lose, restore } of losses) {
    const aside = `${trace.disk}.aside`
    const code = await trace.sent()
    lose(trace, aside)
    await trace.expectClosed(code)
    restore(trace, aside)
    await trace.expectHealed(code)
  }
  await trace.expectSoundFile()
})

test.concurrent('a lock of another process delays requests for a limited time, and only those that write', async () => {
  await using trace = await scene()
  const code = await trace.sent()
  const other = new Database(trace.file)
  // The server may be writing its event log.
  other.run('PRAGMA busy_timeout = 30000')
  other.run('BEGIN IMMEDIATE')
  const phones = Array.from({ length: 20 }, () => freshPhone())
  let answered = 0
  const sends = phones.map((phone) => trace.send(phone).finally(() => answered++))
  // Requests that write nothing are answered meanwhile, one after the other.
  let turns = 0
  for (; answered === 0; turns++) {
    expect((await trace.server.get('/integrations/catalog')).status).toBe(200)
    expect((await trace.server.get('/platform/brands')).status).toBe(200)
  }
  expect(turns).toBeGreaterThan(3)
  for (const send of await Promise.all(sends)) expectError(send, 500, 'internal_error')
  await trace.expectHealth(503, 'unavailable')
  const late = trace.send(freshPhone())
  other.run('ROLLBACK')
  other.close()
  expectSuccess(await late, ['expiresIn'])
  expect(phones.map((phone) => trace.smsTo(phone))).toEqual(phones.map(() => 0))
  await trace.expectHealed(code)
})

test.concurrent.skipIf(!compiler)(
  'a clock that is set back an hour and corrected extends no period and locks no user out',
  async () => {
    await using trace = await scene({ GLOBAL_LIMIT_PER_MINUTE: '30', SMS_COOLDOWN_SECONDS: '30' })
    const timestamp = () => Number(trace.receiver.received.at(-1)?.headers.get('webhook-timestamp'))
    const old = await trace.sent()
    const wentAt = timestamp()
    trace.fault('clock', -3600)
    // The code is from the future, so its remaining lifetime is unknown.
    expectError(await trace.verify(old.phone, old.otp), 404, 'not_found')
    const again = await trace.send(old.phone)
    expectError(again, 429, 'cooldown_active')
    expect(retryAfter(again)).toBeLessThanOrEqual(30)
    const past = await trace.sent()
    expect(timestamp()).toBeLessThan(wentAt - 3500)
    const wrong = await trace.verify(past.phone, otherThan(past.otp))
    expectError(wrong, 401, 'mismatch')
    await trace.expectHealth(200, 'ok')
    const isNoticed = (line: string) => /"bySeconds":-3[56]\d\d,.*the clock was set back/.test(line)
    while (!trace.server.lines.some(isNoticed)) await Bun.sleep(20)

    trace.fault('clock')
    expectError(await trace.verify(past.phone, past.otp), 404, 'not_found')
    // All windows of that hour have ended, and so has the cooldown.
    expectSuccess(await trace.send(past.phone), ['expiresIn'])
    expectSuccess(await trace.verify(past.phone, trace.codeOf(past.phone)))
  },
)

test.concurrent('a gateway that never answers delays only the 500 sends to it, and leaves no connections open', async () => {
  await using trace = await scene({ PROVIDER_TIMEOUT_MS: '10000', PHONE_LIMIT_PER_MINUTE: '1' })
  const codes = await Promise.all(Array.from({ length: 50 }, () => trace.sent()))
  const { pid } = trace.server.child
  const before = { descriptors: descriptorsOf(pid), kibibytes: residentKibibytes(pid) }
  trace.receiver.received.length = 0
  const dead = new Promise<Response>(() => {})
  trace.receiver.answer(() => dead)

  const phones = Array.from({ length: 500 }, () => freshPhone())
  let answered = 0
  // Each on a connection of its own: fetch would queue half of them.
  const sends = phones.map((phone) => postOnSocket(trace.server.url, { phone }).finally(() => answered++))
  // How many are answered depends on the machine; each is answered while all of these wait.
  let turns = 0
  for (const { phone, otp } of codes) {
    expectError(await trace.verify(phone, otherThan(otp)), 401, 'mismatch')
    expectSuccess(await trace.verify(phone, otp))
    await trace.expectHealth(200, 'ok')
    if (answered > 0) break
    turns++
  }
  expect(turns).toBeGreaterThan(3)

  const statKey = Map.groupBy(await Promise.all(sends), (answer) => answer)
  expect(Object.fromEntries([...statKey].map(([answer, alike]) => [answer, alike.length]))).toEqual({
    '502 sms_failed': 500,
  })
  // A call that timed out in the queue is not sent later.
  const calls = trace.receiver.received.length
  const reached = new Set(trace.receiver.received.map(({ body }) => body.to))
  expect(reached.size).toBe(calls)
  // Connections of calls that timed out are closed a moment later.
  while (descriptorsOf(pid) >= before.descriptors + 20) await Bun.sleep(20)
  expect(residentKibibytes(pid)).toBeLessThan(before.kibibytes + 100 * 1024)

  trace.receiver.answer(() => new Response())
  for (const phone of [phones[0], phones[250], phones[499]] as string[]) {
    expectError(await trace.verify(phone, '123456'), 404, 'not_found')
    const again = await trace.send(phone)
    // The limit of one per minute counts an SMS that may have been sent (D26), and not one that was certainly not sent.
    if (reached.has(phone)) {
      expectError(again, 429, 'rate_limited')
    } else {
      expectSuccess(again, ['expiresIn'])
      expectSuccess(await trace.verify(phone, trace.codeOf(phone)))
    }
  }

  expect(await trace.server.stop()).toBe(0)
  const attempts = trace.server.lines
    .map((line) => JSON.parse(line))
    .filter(({ status }) => status === 502)
    .flatMap(({ attempts }) =>
      attempts.map(({ outcome, reason }: Record<string, string>) => `${outcome}: ${reason}`),
    )
  const attemptsOf = Map.groupBy(attempts, (attempt) => attempt)
  expect(Object.fromEntries([...attemptsOf].map(([attempt, alike]) => [attempt, alike.length]))).toEqual({
    'unknown: time-out': calls,
    [['retryable', 'too many calls under way'].join(': ')]: 500 - calls,
  })
})

describe('a log reader', () => {
  test.concurrent('that stalls gets every line once it continues, and delays no request', async () => {
    await using logged = await startUnread()
    const ids = await logged.ask(1000)
    const rest = logged.readOn()
    expect(await logged.stop()).toBe(0)
    const lines = (await rest).map((line) => JSON.parse(line))
    const told = new Set(lines.map(({ requestId }) => requestId))
    expect(ids.filter((id) => !told.has(id))).toEqual([])
    expect(lines.at(-1).msg).toBe('stopped')
  })

  test.concurrent('that stalls for good does not keep the server from exiting', async () => {
    await using logged = await startUnread()
    await logged.ask(1000)
    expect(await logged.stop()).toBe(0)
  })

  test.concurrent('that exits does not stop the server', async () => {
    await using logged = await startUnread()
    await logged.hangUp()
    await logged.ask(200)
    expect(await logged.stop()).toBe(0)
  })
})

/** A server whose log is not read after the line that it listens. */
async function startUnread() {
  const folder = temporaryFolder()
  const child = Bun.spawn(programLine(['serve']), {
    env: programEnv({ DATABASE_URL: `file:${join(folder.path, 'otpost.db')}`, PORT: '0' }),
    stdout: 'pipe',
    stderr: 'inherit',
    // A server that does not end by itself fails the test with another exit code.
    timeout: 100_000,
    killSignal: 'SIGKILL',
  })
  const reader = child.stdout.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const listening = /^.*"url".*\n/m
  while (!listening.test(text)) text += decoder.decode((await reader.read()).value, { stream: true })
  const url = new URL(JSON.parse(listening.exec(text)?.[0] ?? '').url)
  return {
    /** Sends many requests, some at once; all must be answered. Resolves to the ids of the requests. */
    async ask(count: number): Promise<string[]> {
      const ids: string[] = []
      const client = async () => {
        while (ids.length < count) {
          const index = ids.push('') - 1
          // Unlike /health, it has no time limit, which a busy machine could exceed.
          const { status, headers } = await fetch(new URL('/platform/brands', url))
          expect(status).toBe(200)
          ids[index] = headers.get('x-request-id') ?? ''
        }
      }
      await Promise.all(Array.from({ length: 20 }, client))
      return ids
    },
    /** Reads the log to its end. */
    async readOn(): Promise<string[]> {
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return text.split('\n').filter((line) => line !== '')
        text += decoder.decode(value, { stream: true })
      }
    },
    hangUp: () => reader.cancel(),
    stop(): Promise<number> {
      child.kill('SIGTERM')
      return child.exited
    },
    async [Symbol.asyncDispose](): Promise<void> {
      child.kill('SIGKILL')
      await child.exited
      folder.remove()
    },
  }
}

describe('calls to gateways', () => {
  const answered = (status: number) => ({ kind: 'accepted', providerMessageId: String(status) }) as const
  const call = (url: string, timeoutMs = 20_000) =>
    callProvider(url, { headers: {}, body: '{}' }, timeoutMs, answered)

  test('beyond the maximum number wait for their turn, and all are sent', async () => {
    const [gateway, other] = [startReceiver(), startReceiver()]
    let open = 0
    let most = 0
    const full = Promise.withResolvers<void>()
    const { promise: go, release } = held()
    gateway.answer(async () => {
      most = Math.max(most, ++open)
      if (open === 120) full.resolve()
      await go
      open--
      return new Response()
    })
    const calls = Array.from({ length: 300 }, () => call(gateway.url))
    await full.promise
    // Any further call would have arrived by the time another one is answered.
    expect(await call(other.url)).toEqual(answered(204))
    release(new Response())
    const results = await Promise.all(calls)
    expect(results).toEqual(Array(300).fill(answered(200)))
    expect({ received: gateway.received.length, most }).toEqual({ received: 300, most: 120 })
    await Promise.all([gateway.stop(), other.stop()])
  })

  test('that time out before their turn are not sent', async () => {
    const gateway = startReceiver()
    const late = call(gateway.url, 20)
    const standsStillUntil = performance.now() + 25
    while (performance.now() < standsStillUntil) {}
    const outcome = { kind: 'retryable', reason: 'too many calls under way', notCalled: true } as const
    expect(await late).toEqual(outcome)
    expect(await call(gateway.url)).toEqual(answered(204))
    expect(gateway.received).toHaveLength(1)
    await gateway.stop()
  })

  test('that hang leave room for another gateway, and for the next call after them', async () => {
    const [dead, healthy] = [startReceiver(() => new Promise<Response>(() => {})), startReceiver()]
    let ended = 0
    const hanging = Array.from({ length: 1200 }, () => call(dead.url, 6000).finally(() => ended++))
    // Calls beyond those under way and those in the queue fail at once.
    const refused = { kind: 'retryable', reason: 'too many calls under way', notCalled: true } as const
    for (const late of hanging.slice(-80)) expect(await late).toEqual(refused)
    expect(ended).toBe(80)
    expect(await call(healthy.url)).toEqual(answered(204))
    expect(ended).toBe(80)

    const outcomes = (await Promise.all(hanging)).map(({ kind }) => kind)
    const made = dead.received.length
    expect(outcomes.filter((kind) => kind === 'unknown')).toHaveLength(made)
    expect(outcomes.filter((kind) => kind === 'retryable')).toHaveLength(1200 - made)
    dead.answer(() => new Response())
    expect(await call(dead.url)).toEqual(answered(200))
    await Promise.all([dead.stop(), healthy.stop()])
  })
})

/** One step of the load: a send to a new phone and, if that succeeds, the verify of its code. */
interface Try {
  readonly phone: string
  /** Counts answers between two moments of the load. */
  readonly begun: number
  readonly ended: number
  readonly sent: Answer
  readonly verified: Answer | undefined
}

/** Sends and verifies from many clients at once until stopped. */
function startLoad(trace: Scene, clients: number) {
  const tries: Try[] = []
  let moment = 0
  let stopping = false
  let awaited = { count: Number.POSITIVE_INFINITY, resolve: () => {} }
  const client = async () => {
    while (!stopping) {
      const phone = freshPhone()
      const begun = ++moment
      const sent = await trace.send(phone)
      const verified = sent.status === 200 ? await trace.verify(phone, trace.codeOf(phone)) : undefined
      tries.push({ phone, begun, ended: ++moment, sent, verified })
      if (tries.length >= awaited.count) awaited.resolve()
    }
  }
  const running = Promise.all(Array.from({ length: clients }, client))
  // In case the test fails before it stops the load.
  running.catch(() => undefined)
  return {
    /** Resolves when this many more steps have ended. */
    answers(count: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      awaited = { count: tries.length + count, resolve }
      return promise
    },
    /** The current moment, to compare steps with. */
    mark: () => ++moment,
    async stop(): Promise<readonly Try[]> {
      stopping = true
      await running
      return tries
    },
  }
}

/** A send on a connection of its own. Resolves to its result in a few words. */
async function postOnSocket(url: URL, fields: object): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  const body = JSON.stringify({ ...credentials, brandId: 'acme', ...fields })
  await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      open(socket) {
        socket.write(
          `POST /otp/send HTTP/1.1\r\nhost: ${url.host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        )
      },
      data(_, bytes) {
        text += bytes.toString()
      },
      close: () => resolve(text),
    },
  })
  const [head = '', json = ''] = (await promise).split('\r\n\r\n')
  const envelope = json.startsWith('{') ? JSON.parse(json) : { error: json }
  return `${head.slice(9, 12)} ${envelope.error}`
}

function descriptorsOf(pid: number): number {
  return process.platform === 'linux' ? readdirSync(`/proc/${pid}/fd`).length : 0
}

function residentKibibytes(pid: number): number {
  if (process.platform !== 'linux') return 0
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
