import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, credentials } from './support/app.ts'
import {
  type CloudMessage,
  cloudApi,
  cloudApiEnv,
  cloudError,
  cloudSigned,
  cloudStatus,
  cloudWebhook,
  startCloudApi,
} from './support/cloud-api.ts'
import { migratedTestDatabase, type TestDatabase } from './support/database.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'
import {
  startTelegramGateway,
  telegramEnv,
  telegramReport,
  telegramSigned,
  telegramToken,
} from './support/telegram-gateway.ts'

// WhatsApp and Telegram with the real process: from the request of an application to what the operator reads afterwards.

const publicUrl = 'https://otp.example/codes'
const customer = 'Canary Jane'

let database: TestDatabase
let cloud: ReturnType<typeof startCloudApi>
let gateway: ReturnType<typeof startTelegramGateway>
let env: Record<string, string>
let server: TestServer
/** Of WhatsApp, in front of the server. */
let webhookPath: string

/** Everything that someone could read: answers, logs and output of commands. */
const told: string[] = []
const phones: string[] = []
const codes: string[] = []

beforeAll(async () => {
  database = await migratedTestDatabase()
  cloud = startCloudApi({
    [cloudApi.template]: { languages: ['en', 'pt_BR'], values: 1 },
    order_placed: { languages: ['en_US'], values: 3 },
  })
  gateway = startTelegramGateway()
  env = {
    ...database.env,
    ...cloudApiEnv(cloud.url),
    ...telegramEnv(gateway.url),
    PUBLIC_URL: publicUrl,
    OTP_SMS_MODE: 'template',
    SMS_TEMPLATE: 'whatsapp',
    LADDER: 'whatsapp,telegram',
    LADDER_WAIT_SECONDS: '0',
    SMS_COOLDOWN_SECONDS: '0',
    SMS_COUNTRIES: 'GB',
    LOG_LEVEL: 'trace',
  }
  await command('brand', 'put', 'acme', '--name', 'Acme', '--notify', 'ORDER_PLACED')
  await command('brand', 'template', 'acme', 'ORDER_PLACED', '--id', 'whatsapp=order_placed')
  await command('destination', 'set', 'GB', 'allow', '--route', 'template')
  server = await startServer(env)
  const { stdout } = await otpost(['callbacks'], env)
  const [, path] =
    /^whatsapp: https:\/\/otp\.example\/codes(\/callbacks\/whatsapp\/[\w-]{16})$/m.exec(stdout) ?? []
  expect(stdout).toContain('telegram: nothing to enter, each message has its own URL')
  if (path === undefined) throw new Error(stdout)
  webhookPath = path
})

afterAll(async () => {
  await server?.stop('SIGKILL')
  await cloud?.stop()
  await gateway?.stop()
  await database?.remove()
})

async function command(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await otpost(args, env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  told.push(stdout)
  return stdout
}

function noted(answer: Answer): Answer {
  told.push(JSON.stringify([...answer.headers]) + JSON.stringify(answer.body))
  return answer
}

let lastPhone = 447_400_123_100
function newPhone(): string {
  const phone = String(++lastPhone)
  phones.push(phone)
  return phone
}

async function post(path: string, fields: Readonly<Record<string, unknown>>): Promise<Answer> {
  return noted(await server.post(path, fields))
}

/** The message of a code that was sent now. */
async function sent(path: string, fields: Readonly<Record<string, unknown>>) {
  const answer = await post(path, fields)
  expect(answer.status).toBe(200)
  const message = cloud.messages.at(-1)
  if (!message) throw new Error('nothing was sent')
  codes.push(...message.body)
  return { message, requestId: String(answer.body.requestId) }
}

async function statuses(
  about: readonly (readonly [message: CloudMessage, status: string, code?: number])[],
  secret?: string,
): Promise<Answer> {
  const body = cloudWebhook(about.map(([message, status, code]) => cloudStatus(message, status, code)))
  return noted(await server.request('POST', webhookPath, cloudSigned(body, secret)))
}

const explain = (requestId: string) => command('explain', requestId)

describe('WhatsApp', () => {
  test('gets the text of its challenge, with the right verify token', async () => {
    const query = { 'hub.mode': 'subscribe', 'hub.challenge': '1158201444' }
    const challenge = (token: string, path = webhookPath) =>
      server.get(`${path}?${new URLSearchParams({ ...query, 'hub.verify_token': token })}`)
    const { status, headers, body } = noted(await challenge(cloudApi.verifyToken))
    expect([status, body]).toEqual([200, '1158201444'])
    expect(headers.get('content-type')).toStartWith('text/plain')
    expect(noted(await challenge('another')).status).toBe(403)
    expect(noted(await challenge(cloudApi.verifyToken, `${webhookPath.slice(0, -1)}_`)).status).toBe(404)
  })

  test('sends a code in the language of the person, and reports it in any order', async () => {
    const phone = newPhone()
    const { message, requestId } = await sent('/otp/send', { phone, lang: 'pt' })
    expect(message).toMatchObject({ to: `+${phone}`, template: 'acme_code', language: 'pt_BR' })
    expect(message.button).toEqual(message.body)
    const [otp] = message.body
    expect((await post('/otp/verify', { phone, otp })).status).toBe(200)
    expect((await statuses([[message, 'delivered']], 'another')).status).toBe(403)
    expect((await statuses([[message, 'sent']])).status).toBe(200)
    expect(await explain(requestId)).toMatch(/whatsapp on the whatsapp route .*: accepted/)
    expect(
      (
        await statuses([
          [message, 'read'],
          [message, 'delivered'],
          [message, 'sent'],
        ])
      ).status,
    ).toBe(200)
    expect((await statuses([[message, 'failed', 131026]])).status).toBe(200)
    expect(await explain(requestId)).toMatch(/whatsapp on the whatsapp route .*; delivered/)
    expect(gateway.messages).toEqual([])
  })

  test('sends a code again when a person asks for it', async () => {
    const phone = newPhone()
    await sent('/otp/send', { phone })
    const { message } = await sent('/otp/resend', { phone, via: 'whatsapp' })
    expect((await post('/otp/verify', { phone, otp: message.body[0] })).status).toBe(200)
  })

  test('reports a number without WhatsApp later: the code then comes from Telegram, and verifies once', async () => {
    const phone = newPhone()
    const { message, requestId } = await sent('/otp/send', { phone })
    const others = gateway.received.length
    for (const _ of ['the report', 'its repetition']) {
      expect((await statuses([[message, 'failed', 131026]])).status).toBe(200)
    }
    await gateway.calls(others + 1)
    const next = gateway.messages.at(-1)
    if (!next) throw new Error('Telegram got nothing')
    const [code = ''] = message.body
    expect(next).toMatchObject({ phone_number: `+${phone}`, code, ttl: expect.any(Number) })
    const reported = async (body: object, at = Date.now(), token?: string) => {
      const path = String(next.callback_url).slice(publicUrl.length)
      return noted(await server.request('POST', path, telegramSigned(body, at, token))).status
    }
    expect(await reported(telegramReport(next, 'delivered'), Date.now(), 'another')).toBe(403)
    expect(await reported(telegramReport(next, 'delivered'), Date.now() - 400_000)).toBe(403)
    for (const status of ['sent', 'read', 'delivered']) {
      expect(await reported(telegramReport(next, status))).toBe(200)
    }
    expect((await post('/otp/verify', { phone, otp: code })).status).toBe(200)
    expect((await post('/otp/verify', { phone, otp: code })).status).not.toBe(200)
    const story = await explain(requestId)
    expect(story).toMatch(/whatsapp on the whatsapp route .*; NOT delivered[^\n]*131026/)
    expect(gateway.received).toHaveLength(others + 1)
  })

  test('rejects a number, with the code of its error in the log', async () => {
    cloud.answer(() => cloudError(131_000, 500))
    gateway.answer(() => Response.json({ ok: false, error: 'ACCESS_TOKEN_INVALID' }))
    const answer = await post('/otp/send', { phone: newPhone() })
    expect(await explain(String(answer.body.requestId))).toContain('131000')
  })
})

describe('a notification', () => {
  test('is a registered template of WhatsApp', async () => {
    await server.stop()
    server = await startServer(env)
    const phone = newPhone()
    const before = cloud.messages.length
    cloud.answer(cloud.usual)
    const variables = { customerName: customer, orderId: 'A-1', orderDate: '2026-01-01' }
    const about = { channel: 'SMS', brandId: 'acme', to: [phone], templateKey: 'ORDER_PLACED', variables }
    expect((await post('/notify', about)).status).toBe(200)
    expect(cloud.messages.slice(before)).toMatchObject([
      {
        to: `+${phone}`,
        template: 'order_placed',
        language: 'en_US',
        body: [customer, 'A-1', expect.any(String)],
      },
    ])
  })
})

test('no answer, log, file or output contains a secret, a number or a code', async () => {
  told.push(await command('deliveries', '--json', '--limit', '1000'))
  await server.stop()
  const texts = [...told, ...server.lines, (await database.contents()).toString('latin1')]
  const numbers = phones.flatMap((phone) => [
    phone.slice(2),
    // As Meta encodes it in the ID of a message.
    ...[0, 1, 2].map((before) =>
      Buffer.from(' '.repeat(before) + phone)
        .toString('base64')
        .slice(4, -4),
    ),
  ])
  const { token, appSecret, verifyToken } = cloudApi
  const secrets = [token, appSecret, verifyToken, telegramToken, credentials.apiKey, customer, 'wamid.']
  expect(codes.length).toBeGreaterThan(3)
  const found = [
    ...numbers,
    ...secrets,
    ...codes.map((code) => new RegExp(`(?<![\\w-])${code}(?![\\w-])`)),
  ].filter((each) => texts.some((text) => (typeof each === 'string' ? text.includes(each) : each.test(text))))
  expect(found).toEqual([])
  expect([cloud.problems, gateway.problems]).toEqual([[], []])
})
