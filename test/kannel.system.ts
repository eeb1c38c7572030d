import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { kannel as double } from '../src/adapters/sms/kannel.ts'
import { Settings } from '../src/config/settings.ts'
import type { Outbox } from '../src/domain/ground/ports.ts'
import type { DeliveryReport, Outcome, Sms } from '../src/domain/ground/providers.ts'
import { temporaryFolder } from './support/app.ts'
import { Arrivals, type Submitted, startKannel, textOf, withoutKannel } from './support/kannel.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'

// The adapter against Debian's Kannel, and over its SMPP link against an SMSC on Net::SMPP: software of other projects.
if (withoutKannel) console.warn(withoutKannel)

/** Longer than an answer of Kannel takes on this machine. */
const patienceMs = 30_000

const tlvs = { '0x1400': '1101456324675322134', '0x1401': '1107457532145798767' }
const withCode = '123456 is your Acme code.\n\n@shop.example #123456'
const hindi = 'आपका Acme कोड 123456 है।'

describe.skipIf(withoutKannel !== undefined)('Kannel', () => {
  let kannel: Awaited<ReturnType<typeof startKannel>>
  let receiver: ReturnType<typeof startReceiver>

  beforeAll(async () => {
    kannel = await startKannel()
    receiver = startReceiver()
  })

  afterAll(async () => {
    await receiver?.stop()
    await kannel?.end()
  })

  function providerWith(env: Readonly<Record<string, string>> = {}) {
    const settings = new Settings({ ...kannel.env, ...env })
    const make = double.configure(settings, 'plain')
    expect(settings.problems).toEqual([])
    return make({ now: Date.now, outbox: {} as Outbox, reportLater: () => {} })
  }

  /** Sends an SMS with delivery reports to the receiver. */
  function send(
    to: string,
    fields: Partial<Sms> = {},
    env: Readonly<Record<string, string>> = {},
  ): Promise<Outcome> {
    const sms: Sms = {
      id: '0b54a5a2-6a3c-4d8e-9a39-0f6a3f0d7c11',
      requestId: 'd2a0b3f6-70ff-4a9c-9c05-1d1f5c6c8e77',
      brandSlug: 'acme',
      brandName: 'Acme',
      to,
      route: 'plain',
      text: withCode,
      code: null,
      template: null,
      senderId: null,
      validitySeconds: null,
      expectsFeedback: false,
      callbackUrl: receiver.urlFor(to),
      ...fields,
    }
    return providerWith(env).send(sms, patienceMs)
  }

  const submitted = (to: string): Promise<Submitted> => kannel.submitted.take((message) => message.to === to)

  /** The first delivery report for a number with this status. */
  async function report(to: string, status: DeliveryReport['status']): Promise<DeliveryReport> {
    const call = await receiver.calls.take((one) => one.to === to && one.report.status === status)
    return call.report
  }

  test('sends a text to its own fake SMSC', async () => {
    const outcome = await send('919812340001', { text: 'Your code is 123456' }, { KANNEL_SMSC: 'FAKE' })
    expect(outcome).toEqual({ kind: 'accepted' })
    const line = await kannel.handset.take((said) => said.includes('919812340001'))
    expect(line).toEndWith('Got message 1: <ACMEIN 919812340001 text Your code is 123456>')
  })

  test('sends a text over SMPP with its line breaks, and reports it delivered', async () => {
    expect(await send('919812340002')).toEqual({ kind: 'accepted' })
    const message = await submitted('919812340002')
    expect(textOf(message)).toBe(withCode)
    expect(message).toMatchObject({ from: 'ACMEIN', coding: 0, udh: false, validity: '', tlvs: {} })
    expect(await report('919812340002', 'pending')).toEqual({ status: 'pending', reason: null })
    expect(await report('919812340002', 'delivered')).toEqual({ status: 'delivered', reason: null })
  })

  test('sends Hindi over SMPP unchanged', async () => {
    expect(await send('919812340003', { text: hindi })).toEqual({ kind: 'accepted' })
    const message = await submitted('919812340003')
    expect(message.coding).toBe(8)
    expect(textOf(message)).toBe(hindi)
  })

  test('sends a long text over SMPP in parts', async () => {
    const text = `${'Dear customer, thank you. '.repeat(8)}Your code is 123456`
    expect(await send('919812340004', { text })).toEqual({ kind: 'accepted' })
    const parts = [await submitted('919812340004'), await submitted('919812340004')]
    expect(parts.map(({ udh }) => udh)).toEqual([true, true])
    expect(parts.map(textOf).join('')).toBe(text)
  })

  test('sends the DLT ids over SMPP as TLVs, with the sender of the template', async () => {
    const template = { key: 'OTP', variables: {}, id: tlvs['0x1401'], entityId: tlvs['0x1400'] }
    const fields = { route: 'template', template, senderId: 'ACMEOT' } as const
    expect(await send('919812340005', fields)).toEqual({ kind: 'accepted' })
    expect(await submitted('919812340005')).toMatchObject({ from: 'ACMEOT', tlvs })
  })

  test('sends the validity period of a text to the SMSC', async () => {
    expect(await send('919812340006', { validitySeconds: 300 })).toEqual({ kind: 'accepted' })
    // YYMMDDhhmmss, tenths, and the difference from UTC.
    expect((await submitted('919812340006')).validity).toMatch(/^\d{15}\+$/)
  })

  test('reports a text that the SMSC rejects, with its code', async () => {
    expect(await send('919812345000')).toEqual({ kind: 'accepted' })
    expect((await submitted('919812345000')).status).toBe(0x0b)
    expect(await report('919812345000', 'failed')).toEqual({ status: 'failed', reason: '0x0000000b' })
  })

  test('reports a text that the SMSC accepted and could not deliver, with its reason', async () => {
    expect(await send('919812345333')).toEqual({ kind: 'accepted' })
    expect(await report('919812345333', 'pending')).toEqual({ status: 'pending', reason: null })
    expect(await report('919812345333', 'failed')).toEqual({ status: 'failed', reason: 'err 640' })
  })

  test('puts no text into the URLs of delivery reports', async () => {
    expect(await send('919812340007')).toEqual({ kind: 'accepted' })
    const call = await receiver.calls.take(
      ({ to, report }) => to === '919812340007' && report.status === 'delivered',
    )
    expect(call.url).toContain('answer=id%3A')
    expect(call.url).not.toContain('123456')
  })

  test.each<[string, Record<string, string>, string, Outcome]>([
    [
      'a wrong password',
      { KANNEL_PASSWORD: 'canary' },
      '919812340008',
      { kind: 'rejected', scope: 'account', reason: 'authorization failed' },
    ],
    [
      'an SMSC that it does not have',
      { KANNEL_SMSC: 'NOWHERE' },
      '919812340008',
      { kind: 'rejected', scope: 'content', reason: 'not routable' },
    ],
    [
      'another path than its own',
      { KANNEL_URL: '/sendsms' },
      '919812340008',
      { kind: 'rejected', scope: 'account', reason: 'HTTP 404' },
    ],
    [
      'a number on its black list',
      {},
      '999990000000',
      { kind: 'rejected', scope: 'recipient', reason: 'denied number' },
    ],
  ])('refuses %s', async (_, env, to, outcome) => {
    const { KANNEL_URL: path, ...others } = env
    const changed = path ? { ...others, KANNEL_URL: kannel.env.KANNEL_URL + path } : others
    expect(await send(to, {}, changed)).toEqual(outcome)
  })

  test('gives up a text for which the SMSC has no room, and reports it', async () => {
    expect(await send('919812345111')).toEqual({ kind: 'accepted' })
    expect(await report('919812345111', 'failed')).toEqual({ status: 'failed', reason: 'retries exceeded' })
  })

  test('keeps a text while its link is down, and sends it when the link is back', async () => {
    await kannel.stopSmsc()
    expect(await send('919812340009')).toEqual({ kind: 'unknown', reason: 'queued' })
    await kannel.startSmsc()
    expect(textOf(await submitted('919812340009'))).toBe(withCode)
    expect(await report('919812340009', 'delivered')).toEqual({ status: 'delivered', reason: null })
  })

  test('that is stopped sends nothing, and sends after its restart', async () => {
    await kannel.stopKannel()
    expect((await send('919812340010')).kind).toBe('retryable')
    await kannel.startKannel()
    expect(await send('919812340011')).toEqual({ kind: 'accepted' })
    expect(textOf(await submitted('919812340011'))).toBe(withCode)
  })

  describe('behind otpost', () => {
    const answered = new Arrivals<{ query: URLSearchParams; status: number }>()
    let relay: Bun.Server<undefined>
    let server: TestServer
    let env: Record<string, string>
    let folder: ReturnType<typeof temporaryFolder>

    beforeAll(async () => {
      folder = temporaryFolder()
      // Kannel reaches the server through this, as through an operator's proxy.
      relay = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        async fetch(request) {
          const { pathname, search, searchParams } = new URL(request.url)
          const answer = await server.get(pathname + search)
          answered.add({ query: searchParams, status: answer.status })
          return Response.json(answer.body, { status: answer.status })
        },
      })
      env = {
        ...kannel.env,
        DATABASE_URL: `file:${join(folder.path, 'otpost.db')}`,
        OTP_SMS_MODE: 'hybrid',
        SMS_PLAIN: 'kannel',
        SMS_TEMPLATE: 'kannel',
        PROVIDER_TIMEOUT_MS: String(patienceMs),
        PUBLIC_URL: `http://127.0.0.1:${relay.port}`,
      }
      await command('migrate')
      await command('brand', 'put', 'acme', '--name', 'Acme', '--domain', 'shop.example')
      await command('brand', 'put', 'dlt', '--name', 'Acme', '--dlt', '--entity', tlvs['0x1400'])
      await command('brand', 'template', 'dlt', 'LOGIN_OTP', '--id', tlvs['0x1401'], '--sender', 'ACMEOT')
      server = await startServer(env)
    })

    afterAll(async () => {
      await server?.stop()
      await relay?.stop(true)
      folder?.remove()
    })

    async function command(...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await otpost(args, env)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return stdout
    }

    const reportOfType = (type: string) => answered.take(({ query }) => query.get('type') === type)

    test('a code goes through a shipped provider file, and is reported as delivered', async () => {
      const phone = '919812340013'
      const own = {
        ...env,
        SMS_PLAIN: 'kannel-get',
        KANNEL_GET_URL: new URL(kannel.env.KANNEL_URL).origin,
        KANNEL_GET_USERNAME: kannel.env.KANNEL_USERNAME,
        KANNEL_GET_PASSWORD: kannel.env.KANNEL_PASSWORD,
        KANNEL_GET_FROM: kannel.env.KANNEL_FROM,
      }
      await server.stop()
      server = await startServer(own)
      const sent = await server.post('/otp/send', { phone })
      expect(sent.status).toBe(200)
      expect(textOf(await submitted(phone))).toMatch(/^\d{6} is your Acme .*\n\n@shop\.example #\d{6}$/)
      const report = await answered.take(({ query }) => query.get('status') === '1')
      expect(report.status).toBe(200)
      expect(await command('explain', sent.body.requestId)).toContain('; delivered (delivery report of ')
      await server.stop()
      server = await startServer(env)
    })

    test('a code goes to the SMSC, verifies, and is reported as delivered', async () => {
      const phone = '919812340012'
      const sent = await server.post('/otp/send', { phone })
      expect(sent.status).toBe(200)
      const message = await submitted(phone)
      const text = textOf(message)
      expect(text).toMatch(/^\d{6} is your Acme .*\n\n@shop\.example #\d{6}$/)
      expect(message).toMatchObject({
        from: 'ACMEIN',
        tlvs: {},
        validity: expect.stringMatching(/^\d{15}\+$/),
      })
      expect((await server.post('/otp/verify', { phone, otp: text.slice(0, 6) })).status).toBe(200)
      expect((await reportOfType('1')).status).toBe(200)
      expect(await command('explain', sent.body.requestId)).toContain('; delivered (delivery report of ')
    })

    test('a registered template goes with its ids, and its failed delivery is reported', async () => {
      const phone = '919812346333'
      const sent = await server.post('/otp/send', { phone, brandId: 'dlt' })
      expect(sent.status).toBe(200)
      const message = await submitted(phone)
      expect(message).toMatchObject({ from: 'ACMEOT', tlvs })
      expect(textOf(message)).toMatch(/^\d{6} is your Acme verification code\. [^\n]*$/)
      expect((await reportOfType('2')).status).toBe(200)
      expect(await command('explain', sent.body.requestId)).toContain('err 640')
    })
  })

  describe("a brand's own text in Hindi, with its DLT ids", () => {
    const entity = '1101456324675322134'
    const [otpId, hindiOtpId, noticeId] = [
      '1107457532145798101',
      '1107457532145798102',
      '1107457532145798103',
    ]
    // With conjuncts, ZWJ and ZWNJ, a line break, and letters of two UTF-16 units.
    const login = 'नमस्ते! {{otp}} आपका {{businessName}} लॉग-इन कोड है।\nयह {{minutes}} मिनट में समाप्त होगा।'
    const notice =
      'प्रिय {{customerName}}, {{businessName}} की ओर से सूचना: आपकी मेज़ {{tableNo}} तैयार है। कृपया {{readyAt}} तक पहुँचें।\n' +
      'क्\u200dष और क्\u200cष अलग-अलग हैं, 👩\u200d🍳 और 𑄌𑄋𑄴𑄟𑄳𑄦 भी। अपनी रसीद दिखाएँ और बिल {{amount}} चुकाएँ। ' +
      'पार्किंग पीछे की ओर है। धन्यवाद, {{businessName}}'
    const folder = temporaryFolder()
    let env: Record<string, string>
    let server: TestServer

    beforeAll(async () => {
      env = {
        ...kannel.env,
        DATABASE_URL: `file:${join(folder.path, 'otpost.db')}`,
        OTP_SMS_MODE: 'template',
        SMS_PLAIN: 'kannel',
        SMS_TEMPLATE: 'kannel',
        PROVIDER_TIMEOUT_MS: String(patienceMs),
      }
      writeFileSync(join(folder.path, 'login.txt'), `${login}\n`)
      writeFileSync(join(folder.path, 'notice.txt'), `${notice}\n`)
      const text = (brand: string, key: string, file: string, ...more: string[]) =>
        command('text', 'set', brand, key, '--file', join(folder.path, file), ...more)
      const registered = (brand: string, key: string, id: string, ...more: string[]) =>
        command('brand', 'template', brand, key, '--id', id, '--sender', 'NAGARX', ...more)
      await command('migrate')
      await command('brand', 'put', 'acme', '--name', 'Acme', '--dlt', '--entity', entity)
      await text('acme', 'LOGIN_OTP', 'login.txt', '--lang', 'hi')
      await registered('acme', 'LOGIN_OTP', otpId)
      await registered('acme', 'LOGIN_OTP', hindiOtpId, '--lang', 'hi')
      await command('brand', 'put', 'nagar', '--name', 'नगर', '--lang', 'hi', '--dlt', '--entity', entity)
      await text('nagar', 'LOGIN_OTP', 'login.txt')
      await registered('nagar', 'LOGIN_OTP', hindiOtpId)
      const variables = [
        'customerName:text:30',
        'tableNo:number:999',
        'readyAt:datetime:40',
        'amount:text:12',
      ]
      await text('nagar', 'TABLE_READY', 'notice.txt', ...variables.flatMap((each) => ['--var', each]))
      await registered('nagar', 'TABLE_READY', noticeId, '--max-length', '40')
      await command('brand', 'put', 'nagar', '--notify', 'TABLE_READY')
      server = await startServer(env)
    })

    afterAll(async () => {
      await server?.stop()
      folder.remove()
    })

    async function command(...args: string[]): Promise<void> {
      const { code, stderr } = await otpost(args, env)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    }

    /** What a request sent: the messages over SMPP, and the text that a phone joins of them. */
    async function received(phone: string, { status, body }: Awaited<ReturnType<TestServer['post']>>) {
      expect({ status, body }).toMatchObject({ status: 200 })
      const { stdout } = await otpost(['deliveries', '--request', body.requestId, '--json'], env)
      const [{ segments, encoding, route }] = JSON.parse(stdout)
      expect({ encoding, route }).toEqual({ encoding: 'UCS-2', route: 'template' })
      const parts = [await submitted(phone)]
      // A part begins with 05 00 03, the number of the message, of all parts and of its own.
      const [, , , , total = 1] = parts[0]?.udh ? Buffer.from(parts[0].hex, 'hex') : []
      while (parts.length < total) parts.push(await submitted(phone))
      expect(parts.length).toBe(segments)
      const octets = parts.map(({ hex }) => Buffer.from(hex, 'hex'))
      const bytes = Buffer.concat(
        total === 1
          ? octets
          : octets
              .sort((one, other) => one.readUInt8(5) - other.readUInt8(5))
              .map((part) => part.subarray(6)),
      )
      return { parts, bytes }
    }

    const utf16 = (text: string) => Buffer.from(text, 'utf16le').swap16()

    test.each([
      ['the text of a language that the request names', 'acme', 'Acme', 'hi', '919812340021'],
      ["the text of the brand's language", 'nagar', 'नगर', undefined, '919812340022'],
    ])('a code has %s', async (_, brandId, name, lang, phone) => {
      const { parts, bytes } = await received(phone, await server.post('/otp/send', { phone, brandId, lang }))
      const otp = /\d{6}/.exec(new TextDecoder('utf-16be').decode(bytes))?.[0] ?? ''
      const stored = login
        .replace('{{otp}}', otp)
        .replace('{{businessName}}', name)
        .replace('{{minutes}}', '5')
      expect(bytes.toString('hex')).toBe(utf16(stored).toString('hex'))
      for (const part of parts) {
        expect(part).toMatchObject({
          from: 'NAGARX',
          coding: 8,
          tlvs: { '0x1400': entity, '0x1401': hindiOtpId },
        })
      }
      expect((await server.post('/otp/verify', { phone, otp, brandId })).status).toBe(200)
    })

    test('a code without a language has the registered English text and its id', async () => {
      const phone = '919812340023'
      expect((await server.post('/otp/send', { phone, brandId: 'acme' })).status).toBe(200)
      const message = await submitted(phone)
      expect(textOf(message)).toMatch(/^\d{6} is your Acme verification code\./)
      expect(message.tlvs).toEqual({ '0x1400': entity, '0x1401': otpId })
    })

    test('a long text of an own template goes in as many messages as otpost counts, each with the ids', async () => {
      const phone = '919812340024'
      const given = {
        customerName: 'श्री\u200cमान् राम',
        tableNo: 12,
        readyAt: '2026-11-21T14:30',
        amount: '₹1,250',
      }
      const request = {
        channel: 'SMS',
        to: [phone],
        brandId: 'nagar',
        templateKey: 'TABLE_READY',
        variables: given,
      }
      const { parts, bytes } = await received(phone, await server.post('/notify', request))
      const stored = notice
        .replace('{{customerName}}', given.customerName)
        .replaceAll('{{businessName}}', 'नगर')
        .replace('{{tableNo}}', '12')
        .replace('{{readyAt}}', '21 नवंबर 2026, 2:30 pm')
        .replace('{{amount}}', given.amount)
      expect(bytes.toString('hex')).toBe(utf16(stored).toString('hex'))
      expect(parts.length).toBeGreaterThan(3)
      for (const part of parts) {
        expect(part).toMatchObject({
          from: 'NAGARX',
          coding: 8,
          udh: true,
          tlvs: { '0x1400': entity, '0x1401': noticeId },
        })
      }
    })
  })

  /** An HTTP server that passes Kannel's delivery reports to the adapter. */
  function startReceiver() {
    const calls = new Arrivals<{ to: string; url: string; report: DeliveryReport }>()
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch({ url, headers }) {
        const { pathname, searchParams } = new URL(url)
        const fields = Object.fromEntries(searchParams)
        const call = { url, fields, headers: headers.toJSON(), body: new Uint8Array() }
        const deliveryReports = providerWith().deliveryReports?.read(call) ?? []
        for (const report of deliveryReports) calls.add({ to: pathname.slice(1), url, report })
        return new Response()
      },
    })
    return {
      calls,
      urlFor: (to: string) => `http://127.0.0.1:${server.port}/${to}`,
      stop: () => server.stop(true),
    }
  }
})
