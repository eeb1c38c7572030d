import { expect, test } from 'bun:test'
import { createApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'
import { type Answer, credentials } from './support/app.ts'
import { type Ask, contradictions, History, load, NotServed, readBack } from './support/history.ts'
import type { TestServer } from './support/server.ts'
import { serverScene } from './support/server-scene.ts'

const shop = {
  APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
  GLOBAL_LIMIT_PER_MINUTE: '1000000',
}

/** A database with brand `acme`, a gateway and the history of both; all end with the scene. */
async function scene() {
  const base = await serverScene({ SMS_COOLDOWN_SECONDS: '1' })
  const { database, receiver, settings } = base
  const history = new History(receiver)
  const scene = {
    ...base,
    history,
    /** Serves in this process; `lines` is its log. */
    async serve() {
      const lines: object[] = []
      const take = (fields: object) => void lines.push(fields)
      const config = readConfig({ ...settings, ...shop, PORT: '0' })
      const app = await createApp(config, { log: { info: take, warn: take, error: take } })
      return { app, url: app.listen(), lines }
    },
    /** Compares the state of a server with the history; fails at each difference. */
    async check(seed: number): Promise<void> {
      const server = await scene.start()
      await readBack(history, server.post)
      expect(await server.stop()).toBe(0)
      const problems = contradictions(history, { cooldownMs: 1000, phonePerMinute: 3 })
      if (problems.length > 0) throw new Error(`STOP_SEED=${seed}\n${problems.join('\n')}`)
      expect(await database.isWhole()).toBe(true)
    },
  }
  return scene
}

/**
 * An HTTP/1.1 client that keeps its connection as long as the server does, or opens one per request. An incomplete answer
 * is an error of its own.
 */
class Client {
  private connection: Queryable | undefined

  constructor(
    private readonly url: URL,
    private readonly keepsAlive: boolean,
  ) {}

  async connect(): Promise<void> {
    this.connection = await connect(this.url)
  }

  /** Whether the connection can take another request. */
  get isConnected(): boolean {
    return this.connection?.isOpen ?? false
  }

  /** A POST as the shop. On a kept connection, all of it is written before this returns. */
  readonly ask: Ask = (path, fields) => {
    if (this.connection?.isOpen) return this.httpRequest(this.connection, path, fields)
    return connect(this.url).then((connection) => {
      this.connection = connection
      return this.httpRequest(connection, path, fields)
    })
  }

  private async httpRequest(
    connection: Queryable,
    path: string,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<Answer> {
    const body = JSON.stringify({ ...credentials, brandId: 'acme', ...fields })
    const head = [
      `POST ${path} HTTP/1.1`,
      `host: ${this.url.host}`,
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
      ...(this.keepsAlive ? [] : ['connection: close']),
    ]
    connection.write(`${head.join('\r\n')}\r\n\r\n${body}`)
    const answer = await connection.answer()
    if (!this.keepsAlive || answer.headers.get('connection') === 'close') {
      connection.end()
      this.connection = undefined
    }
    return answer
  }
}

type Queryable = Awaited<ReturnType<typeof connect>>

async function connect(url: URL) {
  let text = ''
  let isOpen = true
  let wake = () => {}
  const socket = await Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      data: (_, bytes) => {
        text += bytes.toString()
        wake()
      },
      end: () => {
        isOpen = false
        wake()
      },
      error: () => {},
      close: () => {
        isOpen = false
        wake()
      },
    },
  })
  return {
    get isOpen() {
      return isOpen
    },
    write(request: string): void {
      if (socket.write(request) !== request.length) throw new NotServed('the connection takes no more')
    },
    end: () => socket.end(),
    /** The next complete answer. */
    async answer(): Promise<Answer> {
      for (;;) {
        const parsed = parse(text)
        if (parsed) {
          text = text.slice(parsed.length)
          return parsed.answer
        }
        if (!isOpen && text === '') throw new NotServed('the connection ended without an answer')
        if (!isOpen) throw new Error(`an answer without its end: ${text}`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

/** The first answer in a text, and its length; undefined while it is incomplete. */
function parse(text: string): { answer: Answer; length: number } | undefined {
  const bodyStart = text.indexOf('\r\n\r\n') + 4
  const [statusLine = '', ...fields] = text.slice(0, Math.max(0, bodyStart - 4)).split('\r\n')
  const headers = new Headers(fields.map((line) => line.split(/:\s*/, 2) as [string, string]))
  const length = bodyStart + Number(headers.get('content-length'))
  if (bodyStart < 4 || text.length < length) return undefined
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1])
  return { answer: { status, headers, body: JSON.parse(text.slice(bodyStart, length)) }, length }
}

/** With STOP_SEED, the same clients send the same requests again, as far as a busy machine allows. */
function newSeed(): number {
  return Number(process.env.STOP_SEED ?? Date.now() % 1_000_000)
}

/** The phones of a load. */
const phones = Array.from({ length: 90 }, (_, index) => `1${2_000_000_000 + index}`)

/** The number of log lines with answered requests of a history, and how many of the requests are in them. */
function logLines(history: History, lines: readonly object[]): Record<number, number> {
  const logged = Map.groupBy(lines, (line) => ('requestId' in line ? line.requestId : undefined))
  const counts: Record<number, number> = {}
  for (const { requestId } of history.operations) {
    if (requestId === undefined) continue
    const count = logged.get(requestId)?.length ?? 0
    counts[count] = (counts[count] ?? 0) + 1
  }
  return counts
}

function logOf(servers: readonly TestServer[]): object[] {
  return servers.flatMap(({ lines }) => lines.map((line) => JSON.parse(line)))
}

test('a stop answers the requests that arrive as it begins, with `connection: close`', async () => {
  await using trace = await scene()
  const { history } = trace
  const { app, url, lines } = await trace.serve()
  const kept = Array.from({ length: 32 }, () => new Client(url, true))
  const fresh = Array.from({ length: 32 }, () => new Client(url, false))
  await Promise.all(
    kept.map((client, index) => history.verify(client.ask, `1300${1_000_000 + index}`, '123456')),
  )
  await Promise.all(fresh.map((client) => client.connect()))

  const closed = app.close()
  // In the same turn: the server finds these on idle connections, or on ones that it has not accepted yet.
  const sends = [...kept, ...fresh].map((client, index) =>
    history.send(client.ask, '/otp/send', phones[index] ?? ''),
  )
  const verdicts = (await Promise.allSettled(sends)).map((it) =>
    it.status === 'fulfilled' ? it.value.verdict : String(it.reason),
  )
  expect(verdicts).toEqual(sends.map(() => '200'))
  expect(kept.filter((client) => client.isConnected)).toEqual([])
  await closed
  expect(logLines(history, lines)).toEqual({ 1: 96 })
  await trace.check(0)
})

test('SIGTERM under load: accepted requests are answered and stored, and others have no effect', async () => {
  const seed = newSeed()
  await using trace = await scene()
  const { history } = trace
  const server = await trace.start()
  const clients = Array.from({ length: 64 }, () => new Client(server.url, true))
  await Promise.all(clients.map((client) => client.connect()))
  let answersLeft = 300 + (seed % 300)
  let stoppedAt = 0
  await load(
    history,
    (index) => clients[index]?.ask ?? server.post,
    { seed, clients: clients.length, phones },
    () => {
      if (--answersLeft !== 0) return
      stoppedAt = history.operations.length
      server.child.kill('SIGTERM')
    },
  )

  expect(await server.exited).toBe(0)
  expect(await server.stderr).toBe('')
  expect(JSON.parse(server.lines.at(-1) ?? '').msg).toBe('stopped')
  const before = history.operations.slice(0, stoppedAt)
  expect(before.filter(({ requestId }) => requestId === undefined)).toEqual([])
  const answered = history.operations.filter(({ requestId }) => requestId !== undefined)
  expect(logLines(history, logOf([server]))).toEqual({ 1: answered.length })
  await trace.check(seed)
})

test('with REUSE_PORT=1 answers stay consistent during zero-downtime restarts under load', async () => {
  const seed = newSeed()
  await using trace = await scene()
  const { history } = trace
  const servers = [await trace.start({ REUSE_PORT: '1' })]
  const [{ url } = { url: new URL('http://nobody') }] = servers
  const [handOvers, clients] = [2, 24]
  let isOver = false
  let answersLeft = 0
  let enough = () => {}
  /** Resolves after this many answers, or when no client is left. */
  const answers = (count: number) => {
    answersLeft = count
    const { promise, resolve } = Promise.withResolvers<void>()
    enough = resolve
    return Promise.race([promise, loading])
  }
  const loading = load(
    history,
    (index) => new Client(url, index % 2 === 0).ask,
    { seed, clients, phones, goesOn: () => !isOver },
    () => {
      if (--answersLeft === 0) enough()
    },
  )
  for (let handOver = 0; handOver < handOvers; handOver++) {
    const old = servers.at(-1)
    servers.push(await trace.start({ REUSE_PORT: '1', PORT: url.port }))
    await answers(50)
    expect(await old?.stop()).toBe(0)
    expect(await old?.stderr).toBe('')
  }
  await answers(50)
  isOver = true
  await loading
  expect(await servers.at(-1)?.stop()).toBe(0)

  expect(history.operations.filter(({ verdict }) => verdict === undefined)).toEqual([])
  // The system resets queued connections of a server that stops listening, and the client sees the reset. Such requests
  // must have no effect, which the history checks.
  const answered = history.operations.filter(({ requestId }) => requestId !== undefined)
  expect(logLines(history, logOf(servers))).toEqual({ 1: answered.length })
  await trace.check(seed)
})
