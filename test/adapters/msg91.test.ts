import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { msg91 } from '../../src/adapters/sms/msg91.ts'
import { failure } from '../../src/adapters/sms/provider.ts'
import { Settings } from '../../src/config/settings.ts'
import type {
  CallbackRequest,
  DeliveryReport,
  Outcome,
  Sms,
  SmsRoute,
} from '../../src/domain/ground/providers.ts'
import { anySms, patienceMs, providerTools, startProviderDouble } from '../support/provider-server.ts'

const authKey = '123456AbCdEfGh7890'
const providerMessageId = '5762846b4f8d285d378b4567'
const accepted = { type: 'success', message: providerMessageId }

/**
 * Sends on the given route: Indian rules require MSG91's template on the template route; the plain route
 * sends our text.
 */
const messages: Readonly<Record<SmsRoute, Sms>> = {
  plain: {
    ...anySms,
    text: '123456 is your Acme verification code.\n\n@acme.example #123456',
    validitySeconds: 300,
  },
  template: {
    ...anySms,
    route: 'template',
    text: '123456 is your Acme verification code. It expires in 5 minutes.',
    template: {
      key: 'LOGIN_OTP',
      variables: { otp: '123456', businessName: 'Acme', lifetime: '5 minutes' },
      id: '6a76c9555ae4f51bdf041782',
      entityId: '1201159123456789012',
    },
    validitySeconds: 300,
  },
}

const routes = ['plain', 'template'] as const

let double: ReturnType<typeof startProviderDouble>

/** Sets MSG91's response to the next calls. */
function answer(body: unknown, status = 200): void {
  double.answer(() =>
    typeof body === 'string' ? new Response(body, { status }) : Response.json(body, { status }),
  )
}

/** Every outcome of every test: none may reveal a number, a text or a secret. */
const outcomes: Outcome[] = []

beforeEach(() => {
  double = startProviderDouble(() => Response.json(accepted))
})

afterEach(async () => {
  await double.stop()
  const said = JSON.stringify(outcomes.splice(0))
  for (const secret of [authKey, '123456', '9812345678', 'verification', 'Acme'])
    expect(said).not.toContain(secret)
})

function providerOf(route: SmsRoute, url = double.url) {
  const settings = new Settings({ MSG91_AUTH_KEY: authKey, MSG91_SENDER: 'ACMEIN', MSG91_BASE_URL: url })
  const provider = msg91.configure(settings, route)(providerTools)
  expect(settings.problems).toEqual([])
  return provider
}

async function send(
  route: SmsRoute = 'template',
  {
    timeoutMs = patienceMs,
    url = double.url,
    ...changes
  }: Partial<Sms> & { timeoutMs?: number; url?: string } = {},
): Promise<Outcome> {
  const outcome = await providerOf(route, url).send({ ...messages[route], ...changes }, timeoutMs)
  outcomes.push(outcome)
  return outcome
}

/** The only call that MSG91 got. */
function onlyCall() {
  const call = double.onlyCall()
  return { ...call, body: JSON.parse(call.body) }
}

describe('the template route', () => {
  test("selects MSG91's template and fills it with our variables", async () => {
    expect(await send('template')).toEqual({ kind: 'accepted', providerMessageId })
    const { method, path, body } = onlyCall()
    expect({ method, path, body }).toEqual({
      method: 'POST',
      path: '/api/v5/flow',
      body: {
        template_id: '6a76c9555ae4f51bdf041782',
        sender: 'ACMEIN',
        short_url: '0',
        realTimeResponse: '1',
        recipients: [{ mobiles: '919812345678', otp: '123456', businessName: 'Acme', lifetime: '5 minutes' }],
      },
    })
  })

  test('prefers the sender of the registration to that of the settings', async () => {
    await send('template', { senderId: 'ACMEOT' })
    expect(onlyCall().body.sender).toBe('ACMEOT')
  })

  test('does not let a variable replace the number', async () => {
    const variables = { mobiles: '919999999999', otp: '123456' }
    await send('template', { template: { key: 'LOGIN_OTP', variables, id: 'T', entityId: null } })
    expect(onlyCall().body.recipients).toEqual([{ mobiles: '919812345678', otp: '123456' }])
  })

  test.each([
    ['a template without an id', { key: 'LOGIN_OTP', variables: {}, id: null, entityId: '12' }],
    ['a template with an empty id', { key: 'LOGIN_OTP', variables: {}, id: '', entityId: '12' }],
    ['no template', null],
  ])('makes no call with %s', async (_, template) => {
    expect(await send('template', { template })).toEqual({
      kind: 'rejected',
      scope: 'content',
      reason: 'no template id',
      notCalled: true,
    })
    expect(double.received).toHaveLength(0)
  })
})

describe('the plain route', () => {
  test('sends the text', async () => {
    expect(await send('plain')).toEqual({ kind: 'accepted', providerMessageId })
    const { method, path, body } = onlyCall()
    expect({ method, path, body }).toEqual({
      method: 'POST',
      path: '/api/v2/sendsms',
      body: {
        sender: 'ACMEIN',
        route: '4',
        country: '0',
        unicode: 0,
        sms: [{ message: messages.plain.text, to: ['919812345678'] }],
      },
    })
  })

  test.each([
    ['GSM-7', 'Grüße: 1 € \\ {ok}', 0],
    ['Hindi', 'आपका कोड 123456 है', 1],
    ['an emoji', 'Code 123456 🎁', 1],
    ['a letter that GSM-7 lacks', 'Code 123456, François', 1],
  ])('flags a text that needs Unicode: %s', async (_, text, unicode) => {
    await send('plain', { text })
    expect(onlyCall().body).toMatchObject({ unicode, sms: [{ message: text }] })
  })

  test('prefers the sender of the message to that of the settings', async () => {
    await send('plain', { senderId: 'ACMEOT' })
    expect(onlyCall().body.sender).toBe('ACMEOT')
  })
})

test.each(routes)('the %s route has the key in a header only', async (route) => {
  await send(route)
  const { headers, path, body } = onlyCall()
  expect(headers.get('authkey')).toBe(authKey)
  expect(headers.get('content-type')).toBe('application/json')
  expect(headers.get('accept')).toBe('application/json')
  expect(path + JSON.stringify(body)).not.toContain(authKey)
})

describe('an error code', () => {
  test.each([['919812345678'], ['SMS to Acme'], [-207], [207.5], [{}], [null], [true]])(
    'that is invalid is not repeated: %p',
    async (code) => {
      answer({ type: 'error', message: 'for 919812345678', code })
      expect(await send()).toEqual(failure('content', 'unlisted error'))
    },
  )
})

describe('an error without a code', () => {
  test.each<[string, 'account' | 'content', string]>([
    ['AuthenticationFailure', 'account', 'bad credentials'],
    ['Authentication failure', 'account', 'bad credentials'],
    ['Auth Key missing', 'account', 'bad credentials'],
    ['Invalid authkey', 'account', 'bad credentials'],
    ['Missing Authentication Key', 'account', 'bad credentials'],
    ['Unauthorized', 'account', 'bad credentials'],
    ['IP not whitelisted', 'account', 'IP not allowed'],
    ['IP is not whitelisted', 'account', 'IP not allowed'],
    ['flow id missing', 'content', 'unknown template'],
    ['template id missing', 'content', 'unknown template'],
    ['Template ID Missing or Invalid Template', 'content', 'unknown template'],
    ['The provided flow ID or template ID is invalid.', 'content', 'unknown template'],
    ['Please enter atleast one number to send sms.', 'content', 'no number'],
  ])('is classified by its message: %s', async (message, scope, reason) => {
    answer({ message, type: 'error' })
    expect(await send()).toEqual(failure(scope, reason))
    answer({ message, type: 'error' }, 400)
    expect(await send()).toEqual(failure(scope, reason))
  })

  test.each([
    ['another message', { type: 'error', message: `Your SMS "123456" to 919812345678 by ${authKey}` }],
    ['no message', { type: 'error' }],
    ['a message that is an object', { type: 'error', message: { text: 'Auth Key missing' } }],
    ['a message that cannot be converted to text', { type: 'error', message: { toString: null } }],
    ['a message named like an object property', { type: 'error', message: 'constructor' }],
  ])('with an unknown message is a rejection of this SMS: %s', async (_, body) => {
    answer(body)
    expect(await send()).toEqual(failure('content', 'unlisted error'))
  })
})

describe('the settings', () => {
  test.each([
    ['plain', 'https://api.msg91.com/api/v2/sendsms'],
    ['template', 'https://control.msg91.com/api/v5/flow'],
  ] as const)('need no URL: the %s route has a default', async (route, url) => {
    const settings = new Settings({ MSG91_AUTH_KEY: authKey, MSG91_SENDER: 'ACMEIN' })
    const provider = msg91.configure(settings, route)(providerTools)
    expect(settings.problems).toEqual([])
    const answer = Object.assign(async () => Response.json(accepted), { preconnect: fetch.preconnect })
    const network = spyOn(globalThis, 'fetch').mockImplementation(answer)
    outcomes.push(await provider.send(messages[route], patienceMs))
    const called = network.mock.calls.map(([to]) => to)
    network.mockRestore()
    expect(called).toEqual([url])
  })
})

describe('delivery reports', () => {
  const deliveryReports = () => {
    const { deliveryReports } = providerOf('template')
    if (!deliveryReports) throw new Error('there is no reader of delivery reports')
    return deliveryReports
  }

  const call = (given: Partial<CallbackRequest>): CallbackRequest => ({
    url: 'https://otp.example/callbacks/msg91/token',
    fields: {},
    headers: {},
    body: new Uint8Array(),
    ...given,
  })

  const json = (value: unknown): CallbackRequest =>
    call({
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
    })

  const form = (data: string): CallbackRequest =>
    call({
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      fields: { data },
      body: Buffer.from(new URLSearchParams({ data }).toString()),
    })

  /** The sample of version 2, with this status. */
  const report = (status: unknown) => ({
    date: '2024-05-22 10:06:20',
    amount: '0.01',
    clientid: '',
    INMSID: '0',
    CRQID: '0',
    ctCode: '900',
    number: '919812345678',
    credit: '1',
    status,
    desc: 'DELIVERED',
    failedReason: 'no such number 919812345678',
  })
  const v2 = (status: unknown, requestId: unknown = providerMessageId) => ({
    senderId: 'ACMEIN',
    requestId,
    report: [report(status)],
    userId: '271234',
    campaignName: 'Sendhttp',
  })
  /** The sample of version 3. */
  const v3 = (status: unknown) => ({
    ...report(status),
    senderId: 'ACMEIN',
    requestId: providerMessageId,
    userId: '271234',
    campaignName: 'Sendhttp',
  })

  test('identify the message by the request', () => {
    expect(deliveryReports().namedBy).toBe('providerMessageId')
    expect(deliveryReports().answer).toBeUndefined()
  })

  const rows: [unknown, DeliveryReport][] = [
    ['1', { providerMessageId, status: 'delivered', reason: null }],
    ['2', { providerMessageId, status: 'failed', reason: '2' }],
    ['9', { providerMessageId, status: 'failed', reason: '9' }],
    ['16', { providerMessageId, status: 'failed', reason: '16' }],
    ['17', { providerMessageId, status: 'failed', reason: '17' }],
    ['25', { providerMessageId, status: 'failed', reason: '25' }],
    [1, { providerMessageId, status: 'delivered', reason: null }],
    [16, { providerMessageId, status: 'failed', reason: '16' }],
    ['0', { providerMessageId, status: 'pending', reason: null }],
    ['3', { providerMessageId, status: 'pending', reason: null }],
    ['919812345678', { providerMessageId, status: 'pending', reason: null }],
    ['', { providerMessageId, status: 'pending', reason: null }],
  ]

  test.each(rows)('of version 2 with status %p', (status, report) => {
    expect(deliveryReports().read(form(JSON.stringify([v2(status)])))).toEqual([report])
  })

  test.each(rows)('of version 3 with status %p', (status, report) => {
    expect(deliveryReports().read(json(v3(status)))).toEqual([report])
  })

  test('may contain several requests', () => {
    expect(deliveryReports().read(form(JSON.stringify([v2('1', 'one'), v2('2', 'two')])))).toEqual([
      { providerMessageId: 'one', status: 'delivered', reason: null },
      { providerMessageId: 'two', status: 'failed', reason: '2' },
    ])
  })

  test('without a request id are ignored, and the others are saved', () => {
    expect(deliveryReports().read(form(JSON.stringify([v2('2', ''), v2('1')])))).toEqual([
      { providerMessageId, status: 'delivered', reason: null },
    ])
  })

  const v4 = [
    { data: [{ meta: '0', INMSID: '0', description: 'DELIVERED', ts: 1_726_729_500 }], event: 'delivered' },
  ]

  test.each<[string, CallbackRequest]>([
    ['nothing', call({})],
    ['no JSON', json('delivered')],
    ['an incomplete object', json('{"requestId":"57')],
    ['a field that is not JSON', form('[{')],
    ['an empty field', form('')],
    ['null', json('null')],
    ['a number', json('1')],
    ['an empty list', json([])],
    ['an empty object', json({})],
    ['version 4, which names no request', json(v4)],
    ['no request', json({ status: '1' })],
    ['an empty request', json({ ...v3('1'), requestId: '' })],
    ['a number for a request', json({ ...v3('1'), requestId: 5 })],
    ['no status', json({ requestId: providerMessageId })],
    ['a list for a status', json({ ...v3('1'), status: ['1'] })],
    ['no report', form(JSON.stringify([{ ...v2('1'), report: [] }]))],
    ['a report that is not a list', form(JSON.stringify([{ ...v2('1'), report: 'DELIVERED' }]))],
    ['an empty report', form(JSON.stringify([{ ...v2('1'), report: [null] }]))],
  ])('that are invalid are rejected: %s', (_, given) => {
    expect(() => deliveryReports().read(given)).toThrow(expect.objectContaining({ kind: 'validation_error' }))
  })
})

test('HTTP 401 with the envelope of the newer APIs is an account error', async () => {
  answer({ status: 'fail', hasError: true, errors: 'Unauthorized', code: '401', apiError: '201' }, 401)
  expect(await send()).toEqual(failure('account', 'code 401'))
})

test('a response that breaks off with the connection leaves the outcome unknown', async () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 54\r\n\r\n'
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: (socket) => void socket.end(`${head}{"type":"success","mess`) },
  })
  const outcome = await send('template', { url: `http://127.0.0.1:${server.port}` })
  server.stop(true)
  expect(outcome.kind).toBe('unknown')
})
