import { expect, setDefaultTimeout, test } from 'bun:test'
import { createApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'
import { providerPath } from '../src/domain/delivery/delivery-reports.ts'
import { credentials, verdict } from './support/app.ts'
import {
  cloudApi,
  cloudApiEnv,
  cloudSigned,
  cloudStatus,
  cloudWebhook,
  startCloudApi,
} from './support/cloud-api.ts'
import { startProviderDouble } from './support/provider-server.ts'
import { held } from './support/receiver.ts'
import type { TestServer } from './support/server.ts'
import { serverScene } from './support/server-scene.ts'

// Real processes that send a code by the ways of a ladder, and are killed in each of its states.

setDefaultTimeout(60_000)

const phone = '12025550143'
/** Of a message by a process that has ended: both provider calls of 30 s, and a margin. */
const leaseSeconds = 66

async function scene() {
  const whatsapp = startCloudApi({ [cloudApi.template]: { languages: ['en'], values: 1 } })
  // Twilio, which calls.
  const voice = startProviderDouble(() => Response.json({ sid: `CA${'0'.repeat(32)}` }, { status: 201 }))
  const base = await serverScene({
    PUBLIC_URL: 'https://otp.example',
    LADDER: 'whatsapp,sms,voice',
    VOICE_PROVIDER: 'twilio-voice',
    TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
    TWILIO_AUTH_TOKEN: 'a-token-of-the-test',
    TWILIO_VOICE_FROM: '+12025550100',
    TWILIO_VOICE_BASE_URL: voice.url,
    ...cloudApiEnv(whatsapp.url),
  })
  base.ending.defer(() => whatsapp.stop())
  base.ending.defer(() => voice.stop())
  const { received } = base.receiver
  const keys = JSON.stringify({ [credentials.appId]: credentials.apiKey })
  return {
    ...base,
    whatsapp,
    /** Of each way, in the order of LADDER. */
    codes: () => [
      whatsapp.messages.map(({ button: [code] }) => code),
      received.map(({ body }) => /\d{6}/.exec(body.text)?.[0]),
      voice.received.map(({ body }) => spoken(new URLSearchParams(body).get('Twiml') ?? '')),
    ],
    /** Another server looks at what is due, so much later than this time. */
    async later(seconds: number, at = Date.now()) {
      const config = readConfig({ ...base.settings, APP_CREDENTIALS: keys })
      const app = await createApp(config, { now: () => at + seconds * 1000 })
      app.ladders?.tick()
      await app.ladders?.idle()
      const { secrets } = app.context
      await app.close()
      return { whatsappPath: providerPath(secrets, 'whatsapp') }
    },
  }
}

/** The digits that a call speaks one by one. */
function spoken(twiml: string): string | undefined {
  return /(?:\d, ){5}\d/.exec(twiml.replaceAll(/<[^>]*>/g, ''))?.[0].replaceAll(/\D/g, '')
}

type Scene = Awaited<ReturnType<typeof scene>>

/** Meta reports on the latest message. */
async function report(trace: Scene, server: TestServer, status: string, code?: number): Promise<void> {
  const message = trace.whatsapp.messages.at(-1)
  if (!message) throw new Error('no message by WhatsApp')
  const { whatsappPath } = await trace.later(0)
  const body = cloudWebhook([cloudStatus(message, status, code)])
  const { status: answer } = await server.request('POST', whatsappPath, cloudSigned(body))
  expect(answer).toBe(200)
}

const counts = (trace: Scene) => trace.codes().map(({ length }) => length)

/** The whole code, of which one verify succeeds. */
async function expectVerified(trace: Scene, server: TestServer): Promise<void> {
  const [code, ...others] = new Set(trace.codes().flat())
  expect(others).toEqual([])
  const verify = async () => verdict(await server.post('/otp/verify', { phone, otp: code }))
  expect([await verify(), await verify()]).toEqual(['200', '404 not_found'])
}

async function until(isReached: () => boolean): Promise<void> {
  while (!isReached()) await Bun.sleep(5)
}

test('WhatsApp reports a failure, SMS is silent, a call follows, with the same code', async () => {
  await using trace = await scene()
  const server = await trace.start()
  expect(verdict(await server.post('/otp/send', { phone }))).toBe('200')
  await report(trace, server, 'sent')
  expect(counts(trace)).toEqual([1, 0, 0])
  await report(trace, server, 'failed', 131026)
  await until(() => counts(trace)[1] === 1)
  // Late and repeated.
  await report(trace, server, 'failed', 131026)
  expect(counts(trace)).toEqual([1, 1, 0])
  await trace.later(22)
  expect(counts(trace)).toEqual([1, 1, 1])
  await expectVerified(trace, server)
  await trace.later(120)
  expect(counts(trace)).toEqual([1, 1, 1])
})

interface State {
  readonly name: string
  /** Brings a server to the state, and kills it there. */
  reach(trace: Scene, server: TestServer): Promise<void>
  /** The messages so far, and those once the time has passed. */
  readonly before: readonly number[]
  readonly seconds: number
  readonly after: readonly number[]
}

const states: readonly State[] = [
  {
    name: 'WhatsApp has the message, and has not answered',
    async reach({ whatsapp }, server) {
      const { promise } = held()
      whatsapp.answer(() => promise)
      const sending = server.post('/otp/send', { phone }).then(verdict, () => 'no answer')
      await until(() => whatsapp.received.length === 1)
      await server.stop('SIGKILL')
      expect(await sending).toBe('no answer')
    },
    // Its code is not known here.
    before: [0, 0, 0],
    seconds: leaseSeconds,
    after: [0, 1, 0],
  },
  {
    name: 'the code waits for its report',
    async reach(_, server) {
      expect(verdict(await server.post('/otp/send', { phone }))).toBe('200')
      await server.stop('SIGKILL')
    },
    before: [1, 0, 0],
    seconds: 21,
    after: [1, 1, 0],
  },
  {
    name: 'the report of a failure was answered',
    async reach(trace, server) {
      // If the next message is faster than the end of the process, it counts all the same.
      expect(verdict(await server.post('/otp/send', { phone }))).toBe('200')
      await report(trace, server, 'failed', 131026)
      await server.stop('SIGKILL')
    },
    before: [1, 0, 0],
    seconds: 1,
    after: [1, 1, 0],
  },
  {
    name: 'the next message is at the gateway, which has not answered',
    async reach(trace, server) {
      const { promise } = held()
      trace.receiver.answer(() => promise)
      expect(verdict(await server.post('/otp/send', { phone }))).toBe('200')
      await report(trace, server, 'failed', 131026)
      await until(() => trace.receiver.received.length === 1)
      await server.stop('SIGKILL')
    },
    before: [1, 1, 0],
    seconds: leaseSeconds,
    after: [1, 1, 1],
  },
]

test.concurrent.each(states)(
  'a server is killed while $name: each way is used once, in order',
  async (state) => {
    await using trace = await scene()
    await state.reach(trace, await trace.start())
    const at = Date.now()
    trace.receiver.answer(() => new Response(null, { status: 204 }))
    if (state.seconds > 10) {
      // The message was sent some seconds before.
      await trace.later(state.seconds / 4, at)
      expect(counts(trace)).toEqual([...state.before])
    }
    await trace.later(state.seconds, at)
    expect(counts(trace)).toEqual([...state.after])
    await expectVerified(trace, await trace.start())
    await trace.later(2 * leaseSeconds, at)
    expect(counts(trace)).toEqual([...state.after])
  },
)
