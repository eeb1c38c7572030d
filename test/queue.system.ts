import { expect, test } from 'bun:test'
import { readConfig } from '../src/config/config.ts'
import { openContext } from '../src/context.ts'
import { held } from './support/receiver.ts'
import { otpost, type TestServer } from './support/server.ts'
import { serverScene } from './support/server-scene.ts'

// Asynchronous notifications of real processes (design D46): crashes, restarts, and several servers with one database.

async function scene() {
  const base = await serverScene({ PROVIDER_TIMEOUT_MS: '20000' })
  const context = await openContext(readConfig(base.settings))
  base.ending.defer(() => context.close())
  return {
    ...base,
    /** The state of each job, once none waits. */
    async endOf(...requestIds: readonly string[]): Promise<readonly string[]> {
      for (;;) {
        const jobs = await Promise.all(requestIds.map((requestId) => context.jobs.ofRequest(requestId)))
        const states = jobs.flat().map(({ state }) => state)
        if (!states.some((state) => state === 'queued' || state === 'sending')) return states
        await Bun.sleep(20)
      }
    },
  }
}

function notifyLater(server: TestServer, to: readonly string[]) {
  return server.post('/notify', { channel: 'SMS', brandId: 'acme', message: 'Hello', async: true, to })
}

const phones = (count: number) => Array.from({ length: count }, (_, index) => `1202555${1000 + index}`)

test('a server that is killed while it sends leaves these results unknown, and sends each message once', async () => {
  await using trace = await scene()
  const { receiver } = trace
  const hanging = held()
  receiver.answer(() => hanging.promise)
  const first = await trace.start()
  const { body } = await notifyLater(first, phones(12))
  while (receiver.received.length < 8) await Bun.sleep(5)
  await first.stop('SIGKILL')
  receiver.answer(() => new Response(null, { status: 204 }))
  const second = await trace.start()
  const statuses = await trace.endOf(body.requestId)
  expect(statuses.toSorted()).toEqual([...Array(4).fill('accepted'), ...Array(8).fill('unknown')])
  expect(receiver.received.map((call) => call.body.to).toSorted()).toEqual(phones(12))
  await second.stop()
})

test('a server that is stopped ends the messages in flight, and the next one sends the others', async () => {
  await using trace = await scene()
  const { receiver } = trace
  const hanging = held()
  receiver.answer(() => hanging.promise)
  const first = await trace.start()
  const { body } = await notifyLater(first, phones(12))
  while (receiver.received.length < 8) await Bun.sleep(5)
  const stopped = first.stop()
  receiver.answer(() => new Response(null, { status: 204 }))
  await first.logged('stopping')
  hanging.release(new Response(null, { status: 204 }))
  expect(await stopped).toBe(0)
  expect(receiver.received).toHaveLength(8)
  const second = await trace.start()
  expect(await trace.endOf(body.requestId)).toEqual(Array(12).fill('accepted'))
  expect(receiver.received.map((call) => call.body.to).toSorted()).toEqual(phones(12))
  await second.stop()
})

test('commands list and cancel jobs, and say why they cannot retry', async () => {
  await using trace = await scene()
  const { receiver, settings } = trace
  receiver.answer(() => new Response(null, { status: 503 }))
  const server = await trace.start()
  const { body } = await notifyLater(server, phones(2))
  const run = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await otpost(['queue', ...args], settings)
    return `${code} ${stdout}${stderr}`
  }
  const listed = async () => JSON.parse((await run('list', '--json', '--app', 'shop')).slice(2))
  while (!(await listed()).some(({ reason }: { reason: string | null }) => reason === 'HTTP 503'));
  expect(await listed()).toMatchObject([
    { requestId: body.requestId, index: 0, app: 'shop', to: '12*******00', state: 'queued' },
    { requestId: body.requestId, index: 1, app: 'shop', to: '12*******01', state: 'queued' },
  ])
  expect(await run('list')).toContain('HTTP 503')
  expect(await run('retry', body.requestId)).toBe('1 otpost: No job of this request has failed.\n')
  expect(await run('cancel', body.requestId)).toBe('0 2 jobs cancelled.\n')
  expect(await run('cancel', body.requestId)).toBe('1 otpost: No job of this request is queued.\n')
  expect(await listed()).toEqual([])
  expect(await run('cancel', '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7')).toContain(
    'has no asynchronous notification',
  )
  await server.stop()
})

test('two servers with one database send each message once, also if one is killed', async () => {
  await using trace = await scene()
  const { receiver } = trace
  const [one, other] = await Promise.all([trace.start(), trace.start()])
  receiver.answer(async () => {
    if (receiver.received.length === 150) one.child.kill('SIGKILL')
    await Bun.sleep(5)
    return new Response(null, { status: 204 })
  })
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      notifyLater(
        index % 2 ? one : other,
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `1303555${1000 + 10 * index + n}`),
      ),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(202))
  const statuses = await trace.endOf(...answers.map(({ body }) => body.requestId))
  const lost = statuses.filter((status) => status === 'unknown').length
  expect(lost).toBeWithin(0, 9)
  expect(statuses.filter((status) => status === 'accepted')).toHaveLength(300 - lost)
  const sent = receiver.received.map((call) => call.body.to)
  expect(new Set(sent).size).toBe(sent.length)
  expect(sent.length).toBeWithin(300 - lost, 301)
  await other.stop()
})
