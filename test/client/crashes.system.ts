import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createClient, verifyEvent } from 'otpost/client'
import { providerPath } from '../../src/domain/delivery/delivery-reports.ts'
import type { CallbackRequest, Outcome } from '../../src/domain/ground/providers.ts'
import { createTestApp, credentials, type TestApp } from '../support/app.ts'
import { policyOf, rejected, testProvider } from '../support/policy.ts'
import { type Received, startReceiver } from '../support/receiver.ts'
import { freshPhone } from '../support/rows.ts'

// An application that sends a notification, asks for its status and receives its event. It crashes at every point of that, and
// continues from what it has stored.

/** What the application has stored. A crash leaves it as it is. */
interface Stored {
  readonly reference: string
  readonly phone: string
  readonly requestId: string | null
  readonly outcome: 'delivered' | 'failed' | null
  /** IDs of events, each stored with its effect. */
  readonly handled: readonly string[]
}

class Crash extends Error {}

const provider = testProvider('one')
let messages = 0
let service: TestApp
let receiver: ReturnType<typeof startReceiver>
let secret: string
let application: Application
/** Messages that the provider has accepted and not reported. */
let unreported: string[] = []
/** The provider answers after it. */
let hold = Promise.withResolvers<void>()
/** Resolved when the provider is called. */
let called = Promise.withResolvers<void>()
/** Requests whose answers a crash has lost. */
let inFlight: Promise<unknown>[] = []
let isEarly = false

beforeAll(async () => {
  const read = ({ fields: { id = '' } }: CallbackRequest) => [
    { providerMessageId: id, status: 'delivered', reason: null } as const,
  ]
  Object.assign(provider, { deliveryReports: { namedBy: 'providerMessageId', read } })
  service = await createTestApp({ PUBLIC_URL: 'https://otp.example' }, { phoneRoutes: { plain: [provider] } })
  receiver = startReceiver(
    async (received) => new Response(null, { status: await application.receive(received) }),
  )
  ;({ secret } = (await policyOf(service).webhook(receiver.url)).webhook)
})
afterAll(async () => {
  await service.close()
  receiver.stop()
})

class Application {
  private readonly end = new AbortController()
  private readonly client = createClient({
    url: 'http://localhost',
    ...credentials,
    brandId: 'acme',
    random: () => 0,
    wait: async (delayMs) => {
      service.advance(delayMs / 1000)
      hold.resolve()
      await Promise.allSettled(inFlight)
    },
    fetch: async (url, { method = '', headers = {}, body = '' }) => {
      this.point()
      const answer = service.app.handle(new Request(url, { method, headers, body }))
      inFlight.push(answer)
      await Promise.race([called.promise, answer])
      this.point()
      hold.resolve()
      await answer
      if (isEarly) await deliver()
      this.point()
      return answer
    },
  })

  /** @param crashesHere called at each point */
  constructor(
    private readonly disk: { stored: Stored },
    private readonly crashesHere: () => boolean,
  ) {}

  get hasCrashed(): boolean {
    return this.end.signal.aborted
  }

  /** What a crash at this point leaves undone is done after the restart. */
  private point(): void {
    if (!this.hasCrashed && this.crashesHere()) this.end.abort(new Crash())
    this.end.signal.throwIfAborted()
  }

  private store(change: Partial<Stored>): void {
    this.point()
    this.disk.stored = { ...this.disk.stored, ...change }
    this.point()
  }

  /** Begins or continues. */
  async work(): Promise<void> {
    const { signal } = this.end
    const { reference, phone } = this.disk.stored
    if (this.disk.stored.requestId === null) {
      const message = { channel: 'SMS', to: [phone], message: 'Hello', reference } as const
      const { requestId = '' } = await this.client.notify(message, { idempotencyKey: reference, signal })
      this.store({ requestId })
    }
    const { requestId, outcome } = this.disk.stored
    if (requestId === null || outcome !== null) return
    const answer = await this.client.messageStatus({ messageRequestId: requestId }, { signal })
    if (!answer.success) throw new Error(`no status: ${answer.error} ${answer.message}`)
    const status = answer.recipients[0]?.status
    if (status === 'delivered' || status === 'failed') this.store({ outcome: status })
  }

  /** @returns the status of the answer; after a crash the connection breaks, which is a failure too */
  async receive({ raw, headers }: Received): Promise<number> {
    try {
      this.point()
      const { id, data } = await verifyEvent(raw, headers, secret, { now: new Date(service.clock.now) })
      const { reference, handled } = this.disk.stored
      expect(data.reference).toBe(reference)
      const outcome = data.status === 'delivered' ? 'delivered' : 'failed'
      if (!handled.includes(id)) this.store({ handled: [...handled, id], outcome })
      this.point()
      return 204
    } catch (error) {
      if (error instanceof Crash) return 500
      throw error
    }
  }
}

/** The provider sends its reports, and the service its events. */
async function deliver(): Promise<void> {
  for (const id of unreported.splice(0)) {
    await service.get(`${providerPath(service.app.context.secrets, 'one')}?id=${id}`)
  }
  await service.app.context.eventLog.flush()
  service.app.events.tick()
  await service.app.events.idle()
}

/**
 * One message from its beginning to its end.
 *
 * @param crashes after how many points the application crashes, and then crashes again
 * @returns the number of points of the last start
 */
async function live(outcome: 'delivered' | 'failed', crashes: readonly number[]): Promise<number> {
  provider.answer(async (): Promise<Outcome> => {
    called.resolve()
    await hold.promise
    if (outcome === 'failed') return rejected
    unreported.push(`M${++messages}`)
    return { kind: 'accepted', providerMessageId: `M${messages}` }
  })
  const phone = freshPhone()
  const stored = { reference: `order-${phone}`, phone, requestId: null, outcome: null, handled: [] }
  const disk: { stored: Stored } = { stored }
  const left = [...crashes]
  const before = provider.sent.length
  let points = 0
  const crashesHere = () => {
    if (++points !== left[0]) return false
    left.shift()
    points = 0
    return true
  }
  unreported = []
  inFlight = []
  hold = Promise.withResolvers()
  called = Promise.withResolvers()
  const isDone = () =>
    !application.hasCrashed && disk.stored.outcome !== null && disk.stored.handled.length > 0
  for (let starts = 0; starts === 0 || !isDone(); starts++) {
    expect(starts).toBeLessThan(crashes.length + 5)
    if (starts === 0 || application.hasCrashed) application = new Application(disk, crashesHere)
    await application.work().catch((error: unknown) => {
      if (!(error instanceof Crash)) throw error
    })
    // A request in flight takes seconds.
    if (disk.stored.requestId === null) continue
    await deliver()
    // The next try of an event is due, after as many failures.
    service.advance(3 * 3600)
  }
  await Promise.allSettled(inFlight)
  left.length = 0
  await deliver()
  const { requestId, handled } = disk.stored
  expect(disk.stored).toEqual({ ...stored, requestId, outcome, handled })
  expect(handled).toHaveLength(1)
  expect(provider.sent.slice(before).map(({ to }) => to)).toEqual([phone.replaceAll(/\D/g, '')])
  const { body } = await service.post('/messages/status', { messageRequestId: requestId })
  expect(body.recipients).toMatchObject([{ index: 0, status: outcome }])
  return points
}

test.each([
  ['delivered', false],
  ['delivered', true],
  ['failed', false],
  ['failed', true],
] as const)(
  'an application that crashes at each point sends one message, and ends with %s (events before the answer: %p)',
  async (outcome, early) => {
    isEarly = early
    const points = await live(outcome, [])
    expect(points).toBeGreaterThan(8)
    for (let point = 1; point <= points; point++) await live(outcome, [point])
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: points }), { minLength: 2, maxLength: 4 }),
        async (crashes) => void (await live(outcome, crashes)),
      ),
      { numRuns: 25 },
    )
  },
)
