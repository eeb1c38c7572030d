import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Answer, credentials } from './support/app.ts'
import { migratedTestDatabase, type TestDatabase } from './support/database.ts'
import { temporaryFolder } from './support/folder.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'
import {
  type Call,
  heard,
  spokenDigits,
  startTwilioVoice,
  startVonageVoice,
  twilioError,
  twilioStatus,
  twilioToken,
  twilioVoiceEnv,
  vonageEvent,
  vonageSecret,
  vonageVoiceEnv,
} from './support/voice-doubles.ts'

// Calls with the real process: from the request of an application to what the operator reads afterwards.

const publicUrl = 'https://otp.example/codes'
const folder = temporaryFolder()
const phones: string[] = []
const codes: string[] = []
/** Everything that someone could read: answers, logs and output of commands. */
const told: string[] = []

let database: TestDatabase
let env: Record<string, string>
let server: TestServer
let double: ReturnType<typeof startTwilioVoice>

let lastPhone = 447_400_124_100
function newPhone(): string {
  const phone = String(++lastPhone)
  phones.push(phone)
  return phone
}

function noted(answer: Answer): Answer {
  told.push(JSON.stringify([...answer.headers]) + JSON.stringify(answer.body))
  return answer
}

async function command(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await otpost(args, env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  told.push(stdout)
  return stdout
}

async function calledBack(fields: Readonly<Record<string, unknown>> = {}) {
  const phone = newPhone()
  const answer = noted(await server.post('/otp/resend', { phone, via: 'voice', ...fields }))
  expect(answer.status).toBe(200)
  const call = double.calls.at(-1)
  if (!call) throw new Error('no call')
  const code = spokenDigits(call)
  codes.push(code)
  return { phone, call, code, requestId: String(answer.body.requestId) }
}

const reported = async ({ eventUrl = '' }: Call, report: { headers: Record<string, string>; body: string }) =>
  noted(await server.request('POST', eventUrl.slice(publicUrl.length), report)).status

const explain = (requestId: string) => command('explain', requestId)

const providers = [
  ['twilio-voice', startTwilioVoice, (url: string) => twilioVoiceEnv(url)],
  ['vonage-voice', startVonageVoice, (url: string) => vonageVoiceEnv(url, join(folder.path, 'private.key'))],
] as const

const report = (call: Call, status: string, isForged = false) =>
  call.id.startsWith('CA')
    ? twilioStatus(call, status, isForged ? { token: 'another' } : {})
    : vonageEvent(call, status, isForged ? { secret: 'another' } : {})

describe.each(providers)('%s', (name, start, envOf) => {
  beforeAll(async () => {
    database = await migratedTestDatabase()
    double = start()
    env = {
      ...database.env,
      ...envOf(double.url),
      PUBLIC_URL: publicUrl,
      VOICE_COUNTRIES: 'GB',
      LADDER: 'sms,voice',
      SMS_COOLDOWN_SECONDS: '0',
      LOG_LEVEL: 'trace',
    }
    await command('brand', 'put', 'acme', '--name', 'Acme & Sons', '--lang', 'pl')
    server = await startServer(env)
  })

  afterAll(async () => {
    await server.stop()
    await double.stop()
    await database.remove()
  })

  test('speaks a code that verifies, and its reports may be late, doubled and out of order', async () => {
    const { phone, call, code, requestId } = await calledBack({ lang: 'de' })
    expect(call).toMatchObject({ to: phone, locale: 'de-DE' })
    expect(heard(call)).toStartWith('Acme & Sons. Ihr Code lautet:')
    expect(noted(await server.post('/otp/verify', { phone, otp: code })).status).toBe(200)
    expect(await reported(call, await report(call, 'completed', true))).toBe(403)
    expect(await explain(requestId)).toMatch(
      new RegExp(`${name} on the voice route .*; no delivery report yet`),
    )
    for (const status of ['completed', 'completed', 'ringing'])
      expect(await reported(call, await report(call, status))).toBe(200)
    expect(await explain(requestId)).toMatch(/on the voice route .*; delivered/)
  })

  test('reports a call without an answer', async () => {
    const { call, requestId } = await calledBack()
    expect(heard(call)).toContain('Twój kod to')
    expect(await reported(call, await report(call, 'busy'))).toBe(200)
    expect(await explain(requestId)).toMatch(/on the voice route .*; NOT delivered .*busy/)
  })

  test('has the language of the call in the log', async () => {
    const { call, requestId } = await calledBack({ lang: 'ur' })
    expect(call.locale).toBe('pl-PL')
    const [line] = JSON.parse(await command('deliveries', '--request', requestId, '--json'))
    expect(line).toMatchObject({ provider: name, route: 'voice', lang: 'pl' })
  })

  test('calls no other country', async () => {
    const before = double.received.length
    const answer = noted(await server.post('/otp/resend', { phone: '37120000001', via: 'voice' }))
    expect([answer.status, answer.body.error, answer.body.reason]).toEqual([
      400,
      'validation_error',
      'destination',
    ])
    expect(double.received).toHaveLength(before)
  })

  test('makes at most 100 calls in a day', async () => {
    const made = double.received.length
    const attack = Array.from({ length: 130 }, () =>
      server.post('/otp/resend', { phone: newPhone(), via: 'voice' }),
    )
    const answers = (await Promise.all(attack)).map(noted)
    codes.push(...double.calls.slice(made).map(spokenDigits))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(100 - made)
    for (const { status, body } of answers.filter((each) => each.status !== 200))
      expect([status, body.error, body.reason]).toEqual([429, 'rate_limited', 'budget'])
    expect(double.received).toHaveLength(100)
    await command('budget', 'set', 'way:voice', '--per', 'day', '--amount', '1000')
    const { requestId } = await calledBack()
    expect(await explain(requestId)).toContain('budget way:voice')
  })

  test('no answer, log, file or output contains a secret, a number or a code', async () => {
    double.answer(() => twilioError(20003, 401))
    const refused = noted(await server.post('/otp/resend', { phone: newPhone(), via: 'voice' }))
    expect(refused.status).toBe(502)
    told.push(await command('deliveries', '--json', '--limit', '1000'))
    await server.stop()
    const texts = [...told, ...server.lines, (await database.contents()).toString('latin1')]
    const secrets = [twilioToken, vonageSecret, 'PRIVATE KEY', 'Canary', credentials.apiKey]
    const found = [
      ...phones.map((phone) => phone.slice(2)),
      ...secrets,
      ...codes.map((code) => new RegExp(`(?<![\\w-])${code}(?![\\w-])`)),
    ].filter((each) =>
      texts.some((text) => (typeof each === 'string' ? text.includes(each) : each.test(text))),
    )
    expect(found).toEqual([])
    expect(double.problems).toEqual([])
  })
})

test('a server without the key of VONAGE_PRIVATE_KEY_FILE does not start', async () => {
  const settings = vonageVoiceEnv('https://api.nexmo.com', join(folder.path, 'private.key'))
  const { code, stderr, stdout } = await otpost(['serve'], {
    ...settings,
    DATABASE_URL: `file:${join(folder.path, 'otpost.db')}`,
    VONAGE_PRIVATE_KEY_FILE: join(folder.path, 'missing.key'),
  })
  expect(code).toBe(78)
  expect(stderr + stdout).toContain('missing.key) cannot be read (ENOENT)')
  folder.remove()
})
