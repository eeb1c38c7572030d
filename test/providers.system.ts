import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, codeIn, credentials } from './support/app.ts'
import { migratedTestDatabase, type TestDatabase } from './support/database.ts'
import {
  type Asked,
  type ProviderName,
  providerNames,
  providerSecrets,
  registered,
  startProviderDoubles,
} from './support/provider-doubles.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'
import { startSmtp } from './support/smtp.ts'

// Every provider with the real process, from the request of an application to what the operator reads afterwards. The
// event log is complete once the servers have ended. Two servers share a database to save processes.

/** The URL of a proxy in front of the server. Vonage accepts no longer one. */
const publicUrl = 'https://otp.example/codes'
const mail = 'canary.jane@example.com'
const customer = 'Canary Jane'
const [smtpPassword, secretKey] = ['canary-smtp:pass/word@&%', 'canary-secret+key/of-the-server-itself=']

/** The providers of each route, in their order. */
const order: Readonly<Record<Asked['route'], readonly ProviderName[]>> = {
  plain: providerNames,
  template: ['msg91', 'vonage', 'sns', 'aws-sms', 'webhook'],
}

/** How a code is sent: by which provider and route, after which other providers, and for which brand. */
interface Way {
  readonly name: ProviderName
  readonly route: Asked['route']
  /** The providers before it, which reject the message. */
  readonly before: readonly ProviderName[]
  readonly brandId: string
  readonly brandName: string
}

function waysOf(route: Asked['route'], brandId: string, brandName: string): Way[] {
  const names = order[route]
  return names.map((name, index) => ({ name, route, before: names.slice(0, index), brandId, brandName }))
}

const ways = [...waysOf('plain', 'acme', 'Acme'), ...waysOf('template', 'dlt', 'Ācme')]
const inWords = ({ name, route }: Way) => `${name} on the ${route} route`

/** The reason in the log when a provider rejects the sender or the template of a text. */
const refusals: Readonly<Record<Way['route'], Readonly<Record<string, string>>>> = {
  plain: {
    twilio: '21606',
    vonage: 'status 15',
    msg91: 'code 203',
    sns: 'InvalidParameter',
    'aws-sms': 'SENDER_ID_NOT_REGISTERED',
    webhook: 'HTTP 422',
  },
  template: {
    vonage: 'status 15',
    msg91: 'code 211',
    sns: 'InvalidParameter',
    'aws-sms': 'SENDER_ID_NOT_REGISTERED',
    webhook: 'HTTP 422',
  },
}

/** The reason in the log for the reason of a delivery report. */
const failures: Readonly<Record<ProviderName, string>> = {
  twilio: '30005',
  vonage: 'err-code 50',
  msg91: '16',
  sns: 'Phone number is opted out',
  'aws-sms': 'TEXT_CARRIER_BLOCKED',
  webhook: 'absent',
}

/** The sender and the registration of a message, as each provider gets them. */
const registrations: Readonly<
  Record<Way['route'], Readonly<Partial<Record<ProviderName, Record<string, unknown>>>>>
> = {
  plain: {
    twilio: {},
    vonage: { from: 'Acme' },
    msg91: { sender: 'ACMEXX' },
    sns: { 'AWS.SNS.SMS.SMSType': 'Transactional' },
    'aws-sms': { sender: 'pool-0123456789' },
    webhook: {},
  },
  template: {
    msg91: { sender: registered.sender, template_id: registered.msg91 },
    vonage: { from: registered.sender, 'entity-id': registered.entity, 'content-id': registered.dlt },
    sns: {
      'AWS.SNS.SMS.SMSType': 'Transactional',
      'AWS.SNS.SMS.SenderID': registered.sender,
      'AWS.MM.SMS.EntityId': registered.entity,
      'AWS.MM.SMS.TemplateId': registered.dlt,
    },
    'aws-sms': {
      sender: registered.sender,
      IN_ENTITY_ID: registered.entity,
      IN_TEMPLATE_ID: registered.dlt,
    },
    webhook: { templateKey: 'LOGIN_OTP' },
  },
}

let database: TestDatabase
let providerSpecs: ReturnType<typeof startProviderDoubles>
let smtp: Awaited<ReturnType<typeof startSmtp>>
let env: Record<string, string>
/** All providers on both routes; the mode is `template`, which for a brand without DLT is the plain route. */
let server: TestServer
let hybrid: TestServer

/** The output of `otpost callbacks`, and the URLs in it. */
let reportLines: string
const callbackUrls = new Map<string, string>()

/** Everything that someone could read: answers, logs, output of commands; and where. */
const told: { where: string; text: string }[] = []
const requestIds = new Set<string>()

beforeAll(async () => {
  database = await migratedTestDatabase()
  providerSpecs = startProviderDoubles()
  smtp = await startSmtp({ users: { codes: smtpPassword } })
  env = {
    ...providerSpecs.env,
    ...database.env,
    SECRET_KEY: secretKey,
    PUBLIC_URL: publicUrl,
    OTP_SMS_MODE: 'template',
    SMS_PLAIN: order.plain.join(),
    SMS_TEMPLATE: order.template.join(),
    LOG_LEVEL: 'trace',
    SMTP_URL: smtp.url.replace('//', `//codes:${encodeURIComponent(smtpPassword)}@`),
    MAIL_FROM: 'codes@shop.example',
    PROVIDER_TIMEOUT_MS: '30000',
  }
  const options = ['--dlt', '--entity', registered.entity, '--domain', 'shop.example']
  await command('brand', 'put', 'dlt', '--name', 'Ācme', ...options)
  const ids = ['--id', registered.dlt, '--id', `msg91=${registered.msg91}`, '--sender', registered.sender]
  await Promise.all([
    command('brand', 'put', 'acme', '--name', 'Acme', '--notify', 'ORDER_PLACED'),
    command('brand', 'template', 'dlt', 'LOGIN_OTP', ...ids),
    start({}).then((started) => {
      server = started
    }),
    start({ OTP_SMS_MODE: 'hybrid', SMS_PLAIN: 'vonage,twilio', PROVIDER_TIMEOUT_MS: '8000' }).then(
      (started) => {
        hybrid = started
      },
    ),
    command('callbacks').then((lines) => {
      reportLines = lines
    }),
  ])
  for (const [, name = '', url = ''] of reportLines.matchAll(/^([\w-]+): (https:\S+)$/gm)) {
    callbackUrls.set(name, url)
  }
  const phone = newPhone()
  providerSpecs.decide('msg91', phone, 'refused')
  providerSpecs.decide('vonage', phone, 'held')
  timedOut = { phone, answer: ask(hybrid, '/otp/send', { phone, brandId: 'dlt' }) }
})

/** A code for a number for which a provider never answers. The request starts first, because it takes long. */
let timedOut: { phone: string; answer: ReturnType<typeof ask> }

/** Servers that a failed test may have left running. */
const running = new Set<TestServer>()

afterAll(async () => {
  await providerSpecs?.stop()
  await Promise.all(Array.from(running, (one) => one.stop('SIGKILL')))
  await smtp?.stop()
  await database?.remove()
})

async function start(changes: Record<string, string>): Promise<TestServer> {
  const started = await startServer({ ...env, ...changes })
  running.add(started)
  return started
}

async function command(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await otpost(args, env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  told.push({ where: `otpost ${args.join(' ')}`, text: stdout })
  return stdout
}

function noted(where: string, answer: Answer): Answer {
  told.push({ where, text: JSON.stringify([...answer.headers]) + JSON.stringify(answer.body) })
  requestIds.add(answer.headers.get('x-request-id') ?? '-')
  return answer
}

/** The answer to a request in one word, and its id. */
async function ask(to: TestServer, path: string, fields: Readonly<Record<string, unknown>>) {
  const { status, body } = noted(path, await to.post(path, fields))
  return { verdict: body.success ? status : `${status} ${body.error}`, id: String(body.requestId), body }
}

let lastPhone = 919_812_345_100
const newPhone = () => String(++lastPhone)

const masked = (phone: string) => `91********${phone.slice(-2)}`

/** Sends a server the delivery report of a message, as its provider does, through the operator's proxy. */
async function report(
  to: TestServer,
  message: Asked,
  status: 'delivered' | 'failed',
  { forged = false, url = message.callbackUrl ?? callbackUrls.get(message.double) ?? '' } = {},
): Promise<Answer> {
  const { url: called, ...init } = providerSpecs.report(message, url, status, forged)
  expect(called).toStartWith(`${publicUrl}/callbacks/${message.double}/`)
  return noted('receipt', await to.request(init.method, called.slice(publicUrl.length), init))
}

/** The providers that got a message for a number, each with its route; and the code that all of them got. */
function journeyOf(phone: string) {
  const messages = providerSpecs.askedFor(phone)
  const [code = '', ...others] = new Set(messages.map(({ text }) => codeIn(text)))
  expect(others).toEqual([])
  return { messages, route: messages.map(({ double, route }) => `${double}/${route}`), code }
}

/** The last message to a number that a provider got. */
function carrierOf(phone: string): Asked {
  const last = providerSpecs.askedFor(phone).at(-1)
  if (!last) throw new Error(`no provider got a message for ${phone}`)
  return last
}

/** What the tests sent, for the tests that check what is stored of it. */
const sent = new Map<string, { id: string; carrier: Asked }>()
const nameOf = (way: Way, status: string) => `${inWords(way)}, ${status}`

function kept(name: string): { id: string; carrier: Asked } {
  const one = sent.get(name)
  if (!one) throw new Error(`${name} was not sent`)
  return one
}

test('the command prints the URL of each provider with one status callback URL', () => {
  const lines = reportLines.replace(/[\w-]{16}$/gm, 'TOKEN').split('\n')
  expect(lines.sort()).toEqual([
    '',
    `aws-sms: ${publicUrl}/callbacks/aws-sms/TOKEN`,
    `msg91: ${publicUrl}/callbacks/msg91/TOKEN`,
    `sns: ${publicUrl}/callbacks/sns/TOKEN`,
    'twilio: nothing to enter, each message has its own URL',
    'vonage: nothing to enter, each message has its own URL',
    `webhook: ${publicUrl}/callbacks/webhook/TOKEN`,
  ])
})

describe('a code', () => {
  for (const way of ways) {
    const { name, route, before, brandId, brandName } = way

    test.each(['delivered', 'failed'] as const)(
      `is sent by ${inWords(way)}, verifies, and has the delivery report %s`,
      async (status) => {
        const phone = newPhone()
        for (const other of before) providerSpecs.decide(other, phone, 'refused')
        const { verdict, id } = await ask(server, '/otp/send', { phone, brandId })
        expect(verdict).toBe(200)
        const journey = journeyOf(phone)
        expect(journey.route).toEqual([...before, name].map((each) => `${each}/${route}`))
        const carrier = carrierOf(phone)
        expect(carrier.text).toBe(
          `${journey.code} is your ${brandName} verification code. It expires in 5 minutes. Do not share it with anyone.`,
        )
        expect(carrier.registration).toEqual(registrations[route][name] ?? {})
        const right = { phone, otp: journey.code, brandId }
        expect((await ask(server, '/otp/verify', right)).verdict).toBe(200)

        // If the server accepted this report, it would take precedence over the later one.
        const url = carrier.callbackUrl ?? callbackUrls.get(name) ?? ''
        const elsewhere = url.replace(/.(?=..$)/, (digit) => (digit === 'A' ? 'B' : 'A'))
        expect((await report(server, carrier, 'delivered', { url: elsewhere })).status).toBe(404)
        if (name !== 'msg91') {
          expect((await report(server, carrier, 'delivered', { forged: true })).status).toBe(403)
        }
        const taken = await report(server, carrier, status)
        expect(taken.status).toBe(200)
        if (name === 'sns' || name === 'aws-sms') {
          expect(taken.headers.get('content-type')).toBe('application/json')
          expect(taken.body).toEqual({ requestId: carrier.id, timestamp: expect.any(Number) })
        }
        sent.set(nameOf(way, status), { id, carrier })
      },
    )
  }

  test('is sent by mail, and fails if the mail server rejects the password', async () => {
    const mailed = { channel: 'EMAIL', email: mail }
    smtp.refuse({ at: 'AUTH', code: 535, message: `wrong password ${smtpPassword} for ${mail}` })
    expect((await ask(server, '/otp/send', mailed)).verdict).toBe('502 sms_failed')
    smtp.refuse(undefined)
    expect((await ask(server, '/otp/send', mailed)).verdict).toBe(200)
    expect(smtp.received.map(({ user, to }) => ({ user, to }))).toEqual([{ user: 'codes', to: [mail] }])
  })
})

describe('in hybrid mode', () => {
  test('a template that all providers reject goes as a text through another, with the same code', async () => {
    const phone = newPhone()
    for (const name of order.template) providerSpecs.decide(name, phone, 'refused')
    const { verdict, id } = await ask(hybrid, '/otp/send', { phone, brandId: 'dlt' })
    expect(verdict).toBe(200)
    const { route, code } = journeyOf(phone)
    expect(route).toEqual([
      ...order.template.map((name) => `${name}/template`),
      'vonage/plain',
      'twilio/plain',
    ])
    const carrier = carrierOf(phone)
    expect(carrier.text).toEndWith(`\n\n@shop.example #${code}`)
    expect((await ask(hybrid, '/otp/verify', { phone, otp: code, brandId: 'dlt' })).verdict).toBe(200)
    sent.set('refused template', { id, carrier })
  })

  test.each(['msg91', 'vonage', 'sns', 'aws-sms'] as const)(
    'a number that %s rejects is not tried again',
    async (name) => {
      const phone = newPhone()
      const before = order.template.slice(0, order.template.indexOf(name))
      for (const other of before) providerSpecs.decide(other, phone, 'refused')
      providerSpecs.decide(name, phone, 'no such number')
      const { verdict, id } = await ask(hybrid, '/otp/send', { phone, brandId: 'dlt' })
      expect(verdict).toBe('502 sms_failed')
      const { route, code } = journeyOf(phone)
      expect(route).toEqual([...before, name].map((each) => `${each}/template`))
      expect((await ask(hybrid, '/otp/verify', { phone, otp: code, brandId: 'dlt' })).verdict).toBe(
        '404 not_found',
      )
      sent.set(`number rejected by ${name}`, { id, carrier: carrierOf(phone) })
    },
  )

  test('after a time-out the next provider gets the same code, and the first gets no second request', async () => {
    const { phone } = timedOut
    const { verdict, id } = await timedOut.answer
    expect(verdict).toBe(200)
    const { route, code } = journeyOf(phone)
    expect(route).toEqual(['msg91/template', 'vonage/template', 'sns/template'])
    expect((await ask(hybrid, '/otp/verify', { phone, otp: code, brandId: 'dlt' })).verdict).toBe(200)
    // The message that timed out may still arrive, and be the only one.
    for (const message of providerSpecs.askedFor(phone).slice(1)) {
      const status = message.double === 'vonage' ? 'delivered' : 'failed'
      expect((await report(hybrid, message, status)).status).toBe(200)
    }
    sent.set('time-out', { id, carrier: carrierOf(phone) })
  })
})

describe('a notification', () => {
  test('with one rejected number returns that it failed for one', async () => {
    const to = [newPhone(), newPhone(), newPhone()]
    const [one = '', two = '', three = ''] = to
    providerSpecs.decide('twilio', two, 'no such number')
    const variables = { customerName: customer, orderId: 'A-1', orderDate: '2026-11-21' }
    const message = { brandId: 'acme', channel: 'SMS', to, templateKey: 'ORDER_PLACED', variables }
    const { verdict, id, body } = await ask(server, '/notify', message)
    expect(verdict).toBe('500 notification_failed')
    expect(body.message).toContain('1 of 3')
    const text = `Hi ${customer}, we received your Acme order A-1 on 21 November 2026. Thank you!`
    for (const phone of to) {
      expect(providerSpecs.askedFor(phone)).toEqual([expect.objectContaining({ double: 'twilio', text })])
    }
    expect((await report(server, carrierOf(one), 'delivered')).status).toBe(200)
    expect((await report(server, carrierOf(three), 'failed')).status).toBe(200)
    sent.set('notification', { id, carrier: carrierOf(one) })
    sent.set('rejected notification', { id, carrier: carrierOf(two) })
    sent.set('undelivered notification', { id, carrier: carrierOf(three) })
  })
})

test('no provider got a request that its documentation does not have', () => {
  expect(providerSpecs.problems).toEqual([])
})

describe('the stored data', () => {
  interface Row {
    readonly requestId: string
    readonly attempt: number
    readonly provider: string
    readonly status: string
  }
  let rows: readonly Row[]
  const traces = new Map<string, string>()

  beforeAll(async () => {
    const bytes = async () => ({
      where: 'the database',
      text: (await database.contents()).toString('latin1'),
    })
    told.push(await bytes())
    expect(await Promise.all(Array.from(running, (one) => one.stop()))).toEqual([0, 0])
    for (const one of running) {
      const log = [...one.lines, await one.stderr].join('\n')
      told.push({ where: 'the log', text: log.replaceAll(`"pid":${one.child.pid}`, '') })
    }
    running.clear()
    told.push(await bytes())
    const names = [
      ...explained.map((way) => nameOf(way, 'failed')),
      'refused template',
      'time-out',
      'notification',
    ]
    await Promise.all([
      command('deliveries', '--json', '--limit', '1000').then((json) => {
        rows = JSON.parse(json)
      }),
      // A message that was not sent has failed its own test.
      ...names
        .filter((name) => sent.has(name))
        .map(async (name) => void traces.set(name, await command('explain', kept(name).id))),
    ])
  })

  /** Each provider once: a request trace needs a process. */
  const explained = ways.filter(({ name, route }) => route === 'template' || name === 'twilio')

  const rowsOf = (name: string) =>
    rows.filter(({ requestId }) => requestId === kept(name).id).sort((a, b) => a.attempt - b.attempt)

  /** The row of an accepted message, with its delivery report. */
  function taken({ double, route, id, to }: Asked, report: 'delivered' | 'failed' | null) {
    const reason = report === 'failed' ? failures[double] : null
    return expect.objectContaining({
      provider: double,
      route,
      recipient: masked(to),
      outcome: 'accepted',
      status: report ?? 'accepted',
      errorClass: null,
      reason: null,
      providerMessageId: id,
      report: report && { status: report, reason, at: expect.any(String) },
    })
  }

  function rejected(provider: ProviderName, errorClass: 'content' | 'recipient', reason: string | undefined) {
    const status = 'rejected'
    return expect.objectContaining({ provider, outcome: status, status, errorClass, reason, report: null })
  }

  const refused = (double: ProviderName, route: Asked['route']) =>
    rejected(double, 'content', refusals[route][double])

  /** The attempts of a request trace, a line each. */
  const attemptsIn = (name: string) => traces.get(name)?.match(/^ +\d+\. .*$/gm) ?? []

  for (const way of ways) {
    const { route, before, brandId } = way

    test.each(['delivered', 'failed'] as const)(`the code by ${inWords(way)} has the status %s`, (status) => {
      const all = rowsOf(nameOf(way, status))
      const { carrier } = kept(nameOf(way, status))
      expect(all).toEqual([...before.map((each) => refused(each, route)), taken(carrier, status)])
      const size = route === 'plain' ? { segments: 1, encoding: 'GSM-7' } : { segments: 2, encoding: 'UCS-2' }
      expect(all.at(-1)).toMatchObject({
        ...size,
        brand: brandId,
        app: credentials.appId,
        template: 'LOGIN_OTP',
      })
    })
  }

  for (const way of explained) {
    const { name, route, before } = way

    test(`explain prints the request trace of the code by ${inWords(way)}`, () => {
      const { carrier } = kept(nameOf(way, 'failed'))
      const lines = attemptsIn(nameOf(way, 'failed'))
      const size = route === 'plain' ? '1 GSM-7 segment' : '2 UCS-2 segments'
      for (const [index, other] of before.entries()) {
        expect(lines[index]).toContain(`${other} on the ${route} route (LOGIN_OTP, ${size}): rejected`)
        expect(lines[index]).toEndWith(`(${refusals[route][other]})`)
      }
      expect(lines).toHaveLength(before.length + 1)
      expect(lines.at(-1)).toContain(`${inWords(way)} (LOGIN_OTP, ${size}): accepted`)
      expect(lines.at(-1)).toContain(`, id ${carrier.id}; NOT delivered`)
      expect(lines.at(-1)).toMatch(new RegExp(`: ${failures[name]}(, [^)]+)?\\)$`))
    })
  }

  test('a template that all providers rejected has a row for each of them', () => {
    expect(rowsOf('refused template')).toEqual([
      ...order.template.map((name) => refused(name, 'template')),
      refused('vonage', 'plain'),
      taken(kept('refused template').carrier, null),
    ])
    expect(attemptsIn('refused template')[6]).toMatch(/twilio on the plain route .*: accepted/)
  })

  test.each([
    ['msg91', 'code 202'],
    ['vonage', 'status 7'],
    ['sns', 'OptedOut'],
    ['aws-sms', 'DESTINATION_PHONE_NUMBER_OPTED_OUT'],
  ] as const)('a number that %s rejected ends with that row', (name, reason) => {
    const before = order.template.slice(0, order.template.indexOf(name))
    const all = rowsOf(`number rejected by ${name}`)
    expect(all).toEqual([
      ...before.map((each) => refused(each, 'template')),
      rejected(name, 'recipient', reason),
    ])
  })

  test('a time-out has the status of its delivery report, and so does the next attempt', () => {
    expect(rowsOf('time-out')).toEqual([
      refused('msg91', 'template'),
      expect.objectContaining({
        provider: 'vonage',
        route: 'template',
        outcome: 'unknown',
        reason: 'time-out',
        providerMessageId: null,
        status: 'delivered',
      }),
      taken(kept('time-out').carrier, 'failed'),
    ])
    const [, byVonage, bySns] = attemptsIn('time-out')
    expect(byVonage).toMatch(/vonage on the template route .*timed out.*; delivered/)
    expect(bySns).toMatch(/sns on the template route .*; NOT delivered/)
  })

  test('a notification has a row for each number', () => {
    const { carrier: one } = kept('notification')
    const { carrier: two } = kept('rejected notification')
    const { carrier: three } = kept('undelivered notification')
    const all = rowsOf('notification')
    expect(all).toHaveLength(3)
    expect(all).toContainEqual(taken(one, 'delivered'))
    expect(all).toContainEqual(rejected('twilio', 'recipient', '21211'))
    expect(all).toContainEqual(taken(three, 'failed'))
    expect(traces.get('notification')).toContain('500 notification_failed')
    const lineOf = ({ to }: Asked) => attemptsIn('notification').find((line) => line.includes(masked(to)))
    expect(lineOf(one)).toMatch(/ORDER_PLACED.*: accepted .*; delivered/)
    expect(lineOf(two)).toMatch(/ORDER_PLACED.*: rejected .*\(21211\)/)
    expect(lineOf(three)).toMatch(/ORDER_PLACED.*: accepted .*; NOT delivered.*: 30005\)/)
  })

  test('no answer, log, file or output contains a secret', () => {
    const secrets = [...Object.values(providerSecrets), smtpPassword, secretKey, credentials.apiKey]
    const phones = new Set(providerSpecs.asked.map(({ to }) => to))
    const codes = new Set(providerSpecs.asked.flatMap(({ text }) => /^\d{6}/.exec(text) ?? []))
    codes.add(codeIn(smtp.received[0]?.mail.text))
    const urls = [...callbackUrls.values(), ...providerSpecs.asked.map(({ callbackUrl = '' }) => callbackUrl)]
    const tokens = new Set(urls.flatMap((url) => /[\w-]{16}$/.exec(url) ?? []))
    for (const all of [phones, codes, tokens]) expect(all.size).toBeGreaterThan(20)

    const nationalNumbers = Array.from(phones, (phone) => phone.slice(2))
    const hidden = [...secrets.flatMap(formsOf), ...nationalNumbers, mail, customer]
    const ids = new Set([...requestIds, ...providerSpecs.asked.map(({ id }) => id)])
    const finds = (text: string) => {
      // These are random, and have digits too.
      let rest = text
      for (const id of ids) rest = rest.replaceAll(id, '').replaceAll(id.replaceAll('-', ''), '')
      const numbers = rest.match(/(?<!\d)\d{6}(?!\d)/g) ?? []
      return [...hidden.filter((each) => text.includes(each)), ...numbers.filter((each) => codes.has(each))]
    }
    const found = told.flatMap(({ where, text }) => [
      ...finds(text).map((each) => `${each} in ${where}`),
      ...[...tokens]
        .filter((token) => where !== 'otpost callbacks' && text.includes(token))
        .map((token) => `${token} in ${where}`),
    ])
    expect(found).toEqual([])

    // The search covers the right places, and finds values.
    const { id, carrier } = kept('time-out')
    const placesOf = (given: string) =>
      told.filter(({ text }) => text.includes(given)).map((one) => one.where)
    expect(placesOf(carrier.id)).toContain('the database')
    expect(placesOf(carrier.id)).toContain(`otpost explain ${id}`)
    expect(placesOf(carrier.id)).toContain('otpost deliveries --json --limit 1000')
    expect(placesOf(id)).toContain('/otp/send')
    expect(placesOf(masked(carrier.to))).toContain('the log')
    for (const user of ['a', 'ab', 'abc']) expect(finds(btoa(`${user}:${smtpPassword}`))).toHaveLength(1)
  })

  /** Plain, URL-encoded, and in base64 at any offset. */
  function formsOf(secret: string): string[] {
    const encoded = [0, 1, 2].map((before) => Buffer.from(' '.repeat(before) + secret).toString('base64'))
    return [secret, encodeURIComponent(secret), ...encoded.map((text) => text.slice(4, -4))]
  }
})
