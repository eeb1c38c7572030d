import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { signedHeaders, webhookKey } from '../../src/adapters/crypto/standard-webhooks.ts'
import { credentials } from '../support/app.ts'
import { freePorts } from '../support/ports.ts'
import { otpost, startServer } from '../support/server.ts'
import { copyOf } from './copy.ts'

// The receiver of events on Node, with the package of the client.

const node = Bun.which('node')
const ending = new AsyncDisposableStack()
let folder: Awaited<ReturnType<typeof copyOf>>
afterAll(() => ending.disposeAsync())

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const nextSecret = `whsec_${Buffer.alloc(32, 8).toString('base64')}`

/** Starts the receiver, on a free port unless `env` has one. Resolves once it listens. */
async function startReceiver(file: string, env: Readonly<Record<string, string>> = {}) {
  const child = Bun.spawn([node ?? '', 'receiver.mjs'], {
    cwd: folder.path,
    env: { PORT: '0', EVENTS_FILE: file, OTPOST_WEBHOOK_SECRET: `${nextSecret} ${secret}`, ...env },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const kill = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  ending.defer(kill)
  let said = ''
  const decoder = new TextDecoder()
  const reader = child.stdout.getReader()
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    said += decoder.decode(chunk.value)
    const url = /^http:\S+$/m.exec(said)?.[0]
    if (url) return { url, kill, reader }
  }
  throw new Error(`the receiver ended: ${said}`)
}

function bodyOf(type = 'message.delivered'): string {
  const data = { requestId: 'r-1', reference: 'Zoë', brandId: 'acme', channel: 'SMS', to: '12*******43' }
  return JSON.stringify({ type, timestamp: '2026-03-14T15:09:26.000Z', data })
}

function headersOf(id: string, body: string, { by = secret, at = Date.now() } = {}) {
  return signedHeaders(webhookKey(by) ?? Buffer.alloc(0), id, body, at)
}

async function post(url: string, body: string, headers: Record<string, string>): Promise<number> {
  return (await fetch(url, { method: 'POST', headers, body })).status
}

function storedIn(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => (line.endsWith('}') ? [JSON.parse(line).id as string] : []))
}

describe.skipIf(node === null)(
  node ? 'the receiver of events' : 'The receiver of events is not tested: there is no Node. It',
  () => {
    let files = 0
    let file: string
    let receiver: Awaited<ReturnType<typeof startReceiver>>

    beforeAll(async () => {
      folder = await copyOf('event-receiver')
      ending.defer(folder.remove)
    })
    beforeEach(async () => {
      file = join(folder.path, `events-${files++}.jsonl`)
      receiver = await startReceiver(file)
    })

    test('stores an event once, whether its tries come one after another or at the same time', async () => {
      const body = bodyOf()
      for (const id of ['evt_1', 'evt_2', 'evt_1']) {
        expect(await post(receiver.url, body, headersOf(id, body))).toBe(204)
      }
      const tries = Array.from({ length: 20 }, () => post(receiver.url, body, headersOf('evt_3', body)))
      expect(new Set(await Promise.all(tries))).toEqual(new Set([204]))
      const signedByNext = headersOf('evt_4', body, { by: nextSecret })
      expect(await post(receiver.url, body, signedByNext)).toBe(204)
      expect(storedIn(file)).toEqual(['evt_1', 'evt_2', 'evt_3', 'evt_4'])
    })

    test('remembers events after a crash, and stores again what the crash cut off', async () => {
      const body = bodyOf()
      for (const id of ['evt_1', 'evt_2']) await post(receiver.url, body, headersOf(id, body))
      await receiver.kill()
      truncateSync(file, readFileSync(file).length - 10)
      const { url } = await startReceiver(file)
      for (const id of ['evt_1', 'evt_2', 'evt_3']) {
        expect(await post(url, body, headersOf(id, body))).toBe(204)
      }
      expect(storedIn(file)).toEqual(['evt_1', 'evt_2', 'evt_3'])
    })

    test('gets the event of a server, with the secret that the command prints', async () => {
      const env = {
        // Events may then go to this machine.
        NODE_ENV: 'development',
        DATABASE_URL: `file:${join(folder.path, 'data/otpost.db')}`,
        APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
      }
      const PORT = String(freePorts(1)[0])
      await otpost(['migrate'], env)
      await otpost(['brand', 'put', 'acme', '--name', 'Acme'], env)
      const url = `http://127.0.0.1:${PORT}/otpost/events`
      const { stdout } = await otpost(['app', 'webhook', credentials.appId, '--url', url], env)
      const { reader } = await startReceiver(file, { PORT, OTPOST_WEBHOOK_SECRET: stdout.trim() })
      const server = await startServer(env)
      ending.defer(async () => void (await server.stop()))
      const code = { channel: 'EMAIL', email: 'pat@example.com' }
      await server.post('/otp/send', { ...code, reference: 'login-1042' })
      const { body } = await server.get('/outbox/messages?to=pat@example.com')
      const otp = /\d{6}/.exec(body.messages[0]?.text)?.[0]
      expect((await server.post('/otp/verify', { ...code, otp })).status).toBe(200)
      // The receiver writes a line when the event is stored.
      const { value } = await reader.read()
      expect(new TextDecoder().decode(value)).toBe('otp.verified login-1042\n')
      expect(storedIn(file)).toHaveLength(1)
    })

    test('rejects what otpost has not signed, and goes on', async () => {
      const body = bodyOf()
      const old = Date.now() - 3_600_000
      const other = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
      for (const [sent, headers, status] of [
        [`${body} `, headersOf('evt_1', body), 400],
        [body, headersOf('evt_1', body, { by: other }), 400],
        [body, headersOf('evt_1', body, { at: old }), 400],
        [body, {}, 400],
        [bodyOf('message.read'), headersOf('evt_2', bodyOf('message.read')), 204],
      ] as const) {
        expect(await post(receiver.url, sent, headers)).toBe(status)
      }
      await post(receiver.url, 'x'.repeat(1_000_000), {}).catch(() => undefined)
      expect((await fetch(receiver.url)).status).toBe(405)
      expect((await fetch(new URL('/', receiver.url), { method: 'POST' })).status).toBe(404)
      expect(await post(receiver.url, body, headersOf('evt_3', body))).toBe(204)
      expect(storedIn(file)).toEqual(['evt_3'])
    })
  },
)
