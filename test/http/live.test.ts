import { afterEach, beforeEach, expect, test } from 'bun:test'
import { LiveStreams } from '../../src/adapters/console/live.ts'
import { addAccount } from '../support/accounts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn, Visitor } from '../support/console.ts'

// The server-sent events of the console, from a real server whose clock the tests move.

let app: TestApp
let url: URL
let visitor: Visitor

beforeEach(async () => {
  app = await createTestApp({ PORT: '0' })
  url = app.app.listen()
  visitor = await signedIn(app)
})

afterEach(() => app.close())

const cookieOf = ({ cookies }: Visitor) =>
  Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ')

/** A stream of a browser; `next` is its next event, or undefined after its end. */
async function watch(by = visitor) {
  const leaving = new AbortController()
  const response = await fetch(new URL('/admin/live', url), {
    headers: { cookie: cookieOf(by) },
    redirect: 'manual',
    signal: leaving.signal,
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    response,
    async next(): Promise<string | undefined> {
      for (;;) {
        const [line, rest] = text.split(/\n\n(.*)/s, 2)
        if (rest !== undefined) {
          text = rest
          if (line !== ':') return line
          continue
        }
        const { value, done: isDone } = (await reader?.read()) ?? { value: undefined, done: true }
        if (isDone) return undefined
        text += value
      }
    },
    leave: () => leaving.abort(),
  }
}

/** Ends once no stream is open. */
async function allClosed(): Promise<void> {
  while (app.app.live.size > 0) await new Promise((resolve) => setImmediate(resolve))
}

test('each viewer gets an event for each change: a send, a delivery report, a new minute', async () => {
  const viewers = [await watch(), await watch()]
  const seen = () => Promise.all(viewers.map((each) => each.next()))
  const changed = ['data: changed', 'data: changed']
  const [{ response } = await watch()] = viewers
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(response.headers.get('x-accel-buffering')).toBe('no')

  // What happened between the page and the stream.
  await app.app.live.tick()
  expect(await seen()).toEqual(changed)

  const sent = await app.eventsOf(await app.post('/otp/send', { phone: '12025550143' }))
  await app.app.live.tick()
  expect(await seen()).toEqual(changed)

  const report = {
    key: sent.deliveries[0]?.reportKey ?? 'key',
    status: 'delivered',
    reason: null,
    at: app.clock.now,
  } as const
  await app.app.context.eventLog.saveReports('outbox', [report], false)
  await app.app.live.tick()
  expect(await seen()).toEqual(changed)

  app.advance(60)
  await app.app.live.tick()
  expect(await seen()).toEqual(changed)
})

test('without a change there is no event, and without a viewer no query', async () => {
  let queries = 0
  const mark = async () => `same for ${++queries > 0}`
  const live = new LiveStreams({ mark, now: () => 0, stopping: new AbortController().signal })
  await live.tick()
  expect(queries).toBe(0)
  const viewers = [1, 2].map((session) => live.open(`${session}`, async () => true).getReader())
  for (let seconds = 0; seconds < 5; seconds++) await live.tick()
  expect(queries).toBe(5)
  for (const viewer of viewers) {
    const events = [await viewer.read(), await viewer.read()].map(({ value }) =>
      Buffer.from(value ?? []).toString(),
    )
    expect(events).toEqual([':\n\n', 'data: changed\n\n'])
    await viewer.cancel()
  }
  await live.tick()
  expect([live.size, queries]).toEqual([0, 5])
})

test('twelve viewers of a busy server take turns, so that it renders at most four pages a second', async () => {
  let changes = 0
  const mark = async () => `${++changes}`
  const live = new LiveStreams({ mark, now: () => 0, stopping: new AbortController().signal })
  const viewers = Array.from({ length: 12 }, (_, session) =>
    live.open(`${session}`, async () => true).getReader(),
  )
  for (const viewer of viewers) await viewer.read()
  const updates = viewers.map(() => 0)
  for (const [index, viewer] of viewers.entries()) {
    void (async () => {
      while (!(await viewer.read()).done) updates[index] = (updates[index] ?? 0) + 1
    })()
  }
  const totals: number[] = []
  for (let seconds = 0; seconds < 6; seconds++) {
    await live.tick()
    await new Promise((resolve) => setImmediate(resolve))
    totals.push(updates.reduce((sum, each) => sum + each, 0))
  }
  expect(totals).toEqual([4, 8, 12, 16, 20, 24])
  expect(updates).toEqual(updates.map(() => 2))
})

test('without a session there is no stream, and a stream does not extend its session', async () => {
  await addAccount(app, 'ana@example.com', 'owner')
  const { response } = await watch(new Visitor(app))
  expect([response.status, response.headers.get('location')]).toEqual([303, '/admin/login'])
  for (let minutes = 0; minutes < 30; minutes += 10) {
    const viewer = await watch()
    expect(viewer.response.status).toBe(200)
    viewer.leave()
    await allClosed()
    app.advance(600)
  }
  expect((await watch()).response.status).toBe(303)
})

test('a stream ends when its session is revoked or expires', async () => {
  const other = await signedIn(app)
  const viewers = [await watch(), await watch(other)]
  await other.post('/admin/logout')
  app.advance(10)
  await app.app.live.tick()
  expect(await viewers[1]?.next()).toBeUndefined()
  expect(await viewers[0]?.next()).toBe('data: changed')
  app.advance(1800)
  await app.app.live.tick()
  expect(await viewers[0]?.next()).toBeUndefined()
})

test('after ten minutes the stream asks the browser to open another', async () => {
  const viewer = await watch()
  app.advance(600)
  await app.app.live.tick()
  expect(await viewer.next()).toBe('data: renew')
  expect(await viewer.next()).toBeUndefined()
  expect(app.app.live.size).toBe(0)
})

test('there are at most four streams of a session, and 30 in all; a closed one frees its place', async () => {
  const own = await Promise.all([watch(), watch(), watch(), watch()])
  const fifth = await watch()
  expect([await fifth.next(), await fifth.next()]).toEqual(['data: full', undefined])
  for (const each of own) each.leave()
  await allClosed()

  for (let sessions = 0; sessions < 8; sessions++) {
    const by = await signedIn(app)
    for (let streams = 0; streams < 4 && app.app.live.size < 30; streams++) await watch(by)
  }
  const last = await watch()
  expect([app.app.live.size, await last.next()]).toEqual([30, 'data: full'])
})

test('a viewer that does not read is dropped', async () => {
  const headers = { cookie: cookieOf(visitor) }
  const response = await app.app.handle(new Request('http://localhost/admin/live', { headers }))
  for (let ticks = 0; app.app.live.size === 1 && ticks < 9; ticks++) {
    app.advance(60)
    await app.app.live.tick()
  }
  expect(app.app.live.size).toBe(0)
  expect(await response.text()).toContain('data: changed')
})

test('a server that stops ends its streams, and does not wait for them', async () => {
  const viewer = await watch()
  const startedAt = performance.now()
  await app.close()
  expect(await viewer.next()).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(2000)
  app = await createTestApp()
})
