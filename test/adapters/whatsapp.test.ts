import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { failure } from '../../src/adapters/sms/provider.ts'
import { whatsapp } from '../../src/adapters/sms/whatsapp.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { CallbackRequest, Outcome, Sms } from '../../src/domain/ground/providers.ts'
import { otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import {
  cloudApi,
  cloudApiEnv,
  cloudError,
  cloudSigned,
  cloudStatus,
  cloudWebhook,
  startCloudApi,
} from '../support/cloud-api.ts'
import { anySms, patienceMs, providerTools } from '../support/provider-server.ts'

const code: Sms = { ...anySms, route: 'whatsapp', lang: 'en' }
const notification: Sms = {
  ...anySms,
  route: 'template',
  code: null,
  text: 'Hi Jane, we received your Acme order A-1 on 1 Jan. Thank you!',
  lang: 'en',
  template: {
    key: 'ORDER_PLACED',
    variables: { customerName: 'Jane', orderId: 'A-1', orderDate: '2026-01-01', businessName: 'Acme' },
    values: { customerName: 'Jane', orderId: 'A-1', orderDate: '1 Jan', businessName: 'Acme' },
    id: 'order_placed',
    entityId: '1101456324675322134',
  },
}

let double: ReturnType<typeof startCloudApi>
/** Every outcome and delivery report of a test: none may reveal a number, a code, a text or a secret. */
const told: unknown[] = []

beforeEach(() => {
  double = startCloudApi({
    [cloudApi.template]: { languages: ['en', 'hi', 'pt_BR'], values: 1 },
    order_placed: { languages: ['en_US'], values: 3 },
    only_american: { languages: ['en_US'], values: 1 },
  })
})

afterEach(async () => {
  await double.stop()
  const said = JSON.stringify(told.splice(0))
  const number = Buffer.from('919812345678').toString('base64')
  for (const secret of ['canary', 'Canary', '123456', '9812345678', number, 'wamid', 'Jane', 'Acme']) {
    expect(said).not.toContain(secret)
  }
})

function providerOf(env: Record<string, string> = {}, now = Date.now) {
  const settings = new Settings({ ...cloudApiEnv(double.url), ...env })
  const provider = whatsapp.configure(settings, 'whatsapp')({ ...providerTools, now })
  expect(settings.problems).toEqual([])
  return provider
}

async function send(sms: Partial<Sms> = {}, provider = providerOf(), timeoutMs = patienceMs) {
  const outcome = await provider.send({ ...code, ...sms }, timeoutMs)
  told.push(outcome)
  return outcome
}

const accepted: Outcome = {
  kind: 'accepted',
  providerMessageId: expect.stringMatching(/^[\w-]{43}$/),
  lang: expect.any(String),
}

describe('the request', () => {
  test('of a code has the authentication template with the code in its body and its button', async () => {
    expect(await send({ template: { ...plainTemplate, id: '1107457532145798767' } })).toEqual(accepted)
    expect(double.problems).toEqual([])
    expect(double.messages).toEqual([
      {
        to: '+919812345678',
        template: 'acme_code',
        language: 'en',
        body: ['123456'],
        button: ['123456'],
        id: expect.any(String),
      },
    ])
  })

  test('of a code can have a template of the brand', async () => {
    expect(await send({ template: { ...plainTemplate, id: 'only_american' } })).toEqual(accepted)
    expect(double.messages).toMatchObject([{ template: 'only_american', language: 'en_US' }])
  })

  test('of a notification has the values of its registered template in order', async () => {
    expect(await send(notification)).toEqual(accepted)
    expect(double.problems).toEqual([])
    expect(double.messages).toMatchObject([
      { template: 'order_placed', language: 'en_US', body: ['Jane', 'A-1', '1 Jan'], button: [] },
    ])
  })

  test.each([null, '1107457532145798767'])('of a notification with the name %p is not made', async (id) => {
    const template = { ...plainTemplate, id }
    const outcome = { ...failure('content', 'no template name'), notCalled: true as const }
    expect(await send({ ...notification, template })).toEqual(outcome)
    expect(await send({ code: null, template: null })).toEqual(outcome)
    expect(double.received).toEqual([])
  })
})

const plainTemplate = { key: 'LOGIN_OTP', variables: {}, id: null, entityId: null }

describe('the language', () => {
  const asked = () => double.received.map(({ body }) => JSON.parse(body).template.language.code)

  test.each([
    ['hi', ['hi']],
    ['pt', ['pt_BR']],
    ['pt-PT', ['pt_PT', 'en']],
    ['zh', ['zh_CN', 'en']],
    ['zh-Hant', ['zh_TW', 'en']],
    ['zh-HK', ['zh_HK', 'en']],
    ['en-GB', ['en_GB', 'en']],
    ['es', ['es', 'es_ES', 'en']],
    ['es-MX', ['es_MX', 'es', 'en']],
    ['hi-IN', ['hi']],
    ['de-CH', ['de', 'en']],
    [undefined, ['en']],
  ])('%s asks for %j', async (lang, wanted) => {
    expect(await send({ lang })).toEqual(accepted)
    expect(asked()).toEqual(wanted)
  })

  test.each([
    ['pt-PT', 'pt', ['pt_PT', 'pt_BR'], 'pt-BR'],
    ['es-MX,hi', 'en', ['es_MX', 'es', 'hi'], 'hi'],
    ['zh-TW', 'zh', ['zh_TW', 'zh_CN', 'en'], 'en'],
    // No language of WhatsApp.
    ['xx', 'hi', ['hi'], 'hi'],
  ])('of the request %s comes before that of the text', async (askedLang, lang, wanted, sent) => {
    expect(await send({ askedLang, lang })).toEqual({ ...accepted, lang: sent })
    expect(asked()).toEqual(wanted)
  })

  test('each language of the built-in texts is one of WhatsApp', async () => {
    // "Supported languages", without those that otpost has no text in.
    const supported = 'ar bn de en es fr gu hi id it ja ko mr nl pl pt_BR ru ta te th tr uk ur vi zh_CN'
    const first: string[] = []
    for (const { tag } of otpLanguages) {
      double.received.length = 0
      await send({ lang: tag })
      first.push(asked()[0])
    }
    expect(first.sort()).toEqual(supported.split(' ').sort())
  })

  test('that the account lacks is not tried again for five minutes', async () => {
    let now = 0
    const provider = providerOf({}, () => now)
    for (const at of [0, 1000, 299_999, 300_000]) {
      now = at
      expect(await send({ lang: 'fr' }, provider)).toEqual(accepted)
    }
    expect(asked()).toEqual(['fr', 'en', 'en', 'en', 'fr', 'en'])
  })

  test('is the only one of a notification', async () => {
    expect(await send({ ...notification, lang: 'fr' })).toEqual(failure('content', '132001'))
    expect(asked()).toEqual(['fr'])
  })

  test('without any template is an error, also the next time', async () => {
    const env = { WHATSAPP_TEMPLATE: 'unknown' }
    const provider = providerOf(env)
    expect(await send({}, provider)).toEqual(failure('content', '132001'))
    expect(await send({}, provider)).toEqual(failure('content', '132001'))
    expect(asked()).toEqual(['en', 'en_US', 'en', 'en_US'])
  })
})

describe('the answer', () => {
  test.each([
    [130472, 'recipient'],
    [131021, 'recipient'],
    [131026, 'recipient'],
    [131049, 'recipient'],
    [131050, 'recipient'],
    [100, 'content'],
    [130497, 'content'],
    [131008, 'content'],
    [131009, 'content'],
    [131030, 'content'],
    [131047, 'content'],
    [131051, 'content'],
    [132000, 'content'],
    [132005, 'content'],
    [132007, 'content'],
    [132012, 'content'],
    [132015, 'content'],
    [132016, 'content'],
    [0, 'account'],
    [3, 'account'],
    [10, 'account'],
    [33, 'account'],
    [190, 'account'],
    [200, 'account'],
    [368, 'account'],
    [131005, 'account'],
    [131031, 'account'],
    [131037, 'account'],
    [131042, 'account'],
    [131045, 'account'],
    [131048, 'account'],
    [133010, 'account'],
    [2, 'retryable'],
    [4, 'retryable'],
    [80007, 'retryable'],
    [130429, 'retryable'],
    [131016, 'retryable'],
    [131056, 'retryable'],
    [131057, 'retryable'],
    [133004, 'retryable'],
    [1, 'unknown'],
    [131000, 'unknown'],
    [999999, 'content'],
  ] as const)('with error %i is an error of %s', async (error, meaning) => {
    double.answer(() => cloudError(error))
    expect(await send()).toEqual(failure(meaning, String(error)))
  })

  test.each<[number, unknown, Outcome]>([
    [200, {}, failure('unknown', 'unreadable answer')],
    [200, { messages: [{}] }, failure('unknown', 'unreadable answer')],
    [200, { messages: {} }, failure('unknown', 'unreadable answer')],
    [200, { error: { code: 190 } }, failure('account', '190')],
    [400, { error: { code: 'wamid' } }, failure('content', 'HTTP 400')],
    [401, { error: null }, failure('account', 'HTTP 401')],
    [429, 'Canary', failure('retryable', 'HTTP 429')],
    [500, null, failure('unknown', 'HTTP 500')],
    [403, { error: { code: 299 } }, failure('account', '299')],
  ])('%i %j', async (status, body, outcome) => {
    double.answer(() => Response.json(body, { status }))
    expect(await send()).toEqual(outcome)
  })
})

function read(call: Partial<CallbackRequest>) {
  const { deliveryReports } = providerOf()
  const url = 'https://otp.example/callbacks/whatsapp/token'
  const whole = { url, fields: {}, headers: {}, body: new Uint8Array(), ...call }
  const reports = deliveryReports?.read(whole)
  told.push(reports)
  return { reports, answer: deliveryReports?.answer?.(whole, 0) }
}

function webhook(body: unknown, secret?: string) {
  const signed = cloudSigned(body, secret)
  return { ...signed, body: Buffer.from(signed.body) }
}

function failureOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof Failure ? error.kind : String(error)
  }
  return undefined
}

describe('a status', () => {
  const id = 'wamid.HBgMOTE5ODEyMzQ1Njc4FQIAERgSMDhFNzkzQ0QzQUMzQTVGQjA2AA=='
  const message = { id, to: '+919812345678' }

  test.each([
    ['sent', undefined, 'pending', null],
    ['delivered', undefined, 'delivered', null],
    ['read', undefined, 'delivered', null],
    ['failed', 131026, 'failed', '131026'],
    ['failed', 131049, 'failed', '131049'],
    ['something new', undefined, 'pending', null],
  ] as const)('%s %s', (status, error, known, reason) => {
    const { reports, answer } = read(webhook(cloudWebhook([cloudStatus(message, status, error)])))
    expect(reports).toEqual([
      { providerMessageId: expect.stringMatching(/^[\w-]{43}$/), status: known, reason },
    ])
    expect(answer).toBeUndefined()
  })

  test('without its error is the reason', () => {
    expect(read(webhook(cloudWebhook([{ id, status: 'failed' }]))).reports).toMatchObject([
      { status: 'failed', reason: 'failed' },
    ])
  })

  test('has the ID of the accepted message, which does not reveal the number', async () => {
    const { providerMessageId } = (await send()) as { providerMessageId?: string }
    const [sent] = double.messages
    if (!sent) throw new Error('nothing was sent')
    const { reports } = read(webhook(cloudWebhook([cloudStatus(sent, 'delivered')])))
    expect(reports).toMatchObject([{ providerMessageId }])
  })

  test('of several messages, numbers and kinds come in one request', () => {
    const own = cloudWebhook([cloudStatus(message, 'sent'), cloudStatus(message, 'delivered')])
    const others = cloudWebhook([cloudStatus(message, 'failed', 131026)], '1')
    const text = { from: '919812345678', id, timestamp: '1', type: 'text', text: { body: 'Canary' } }
    const { metadata } = own.entry[0]?.changes[0]?.value ?? {}
    const incoming = { field: 'messages', value: { metadata, messages: [text] } }
    const account = { field: 'account_update', value: { event: 'VERIFIED_ACCOUNT' } }
    const entry = [...own.entry, ...others.entry, { id: '1', changes: [incoming, account, null] }, null]
    expect(read(webhook({ ...own, entry })).reports).toMatchObject([
      { status: 'pending' },
      { status: 'delivered' },
    ])
  })

  test('is signed with the app secret', () => {
    const body = cloudWebhook([cloudStatus(message, 'delivered')])
    const signed = webhook(body)
    expect(failureOf(() => read(webhook(body, 'another')))).toBe('forbidden')
    expect(failureOf(() => read({ ...signed, headers: {} }))).toBe('forbidden')
    expect(failureOf(() => read({ ...signed, body: Buffer.from(`${signed.body} `) }))).toBe('forbidden')
    expect(failureOf(() => read({ ...signed, body: new Uint8Array() }))).toBe('forbidden')
  })

  // printf '{"object":"whatsapp_business_account","entry":[]}' | openssl dgst -sha256 -hmac "$WHATSAPP_APP_SECRET"
  test('has the signature of an independent implementation', () => {
    const signature = '13adba63d277a20be94c5f60c6680fc49af690a24db1540219041d48a7219ab4'
    const body = Buffer.from('{"object":"whatsapp_business_account","entry":[]}')
    expect(read({ headers: { 'x-hub-signature-256': `sha256=${signature}` }, body }).reports).toEqual([])
  })

  test.each<[unknown]>([['no JSON'], [null], [[]], [{ object: 'page', entry: [] }], [{ entry: {} }]])(
    '%j is rejected',
    (body) => {
      expect(failureOf(() => read(webhook(body)))).toBe('validation_error')
    },
  )
})

describe('the challenge', () => {
  const fields = {
    'hub.mode': 'subscribe',
    'hub.verify_token': cloudApi.verifyToken,
    'hub.challenge': '1158201444',
  }

  test('is answered with its text', () => {
    expect(read({ fields })).toEqual({ reports: [], answer: '1158201444' })
  })

  test('with another verify token is rejected', () => {
    for (const token of ['', 'another', `${cloudApi.verifyToken}x`]) {
      expect(failureOf(() => read({ fields: { ...fields, 'hub.verify_token': token } }))).toBe('forbidden')
    }
  })

  test('must be a word', () => {
    for (const challenge of ['', '<b>', 'a'.repeat(201)]) {
      const given = { ...fields, 'hub.challenge': challenge }
      expect(failureOf(() => read({ fields: given }))).toBe('validation_error')
    }
    expect(failureOf(() => read({ fields: { ...fields, 'hub.mode': 'unsubscribe' } }))).toBe(
      'validation_error',
    )
  })
})

test('the other settings are required', () => {
  const settings = new Settings({ WHATSAPP_PHONE_NUMBER_ID: '1', WHATSAPP_APP_SECRET: 's' })
  whatsapp.configure(settings, 'whatsapp')
  expect(settings.problems).toEqual([
    'WHATSAPP_ACCESS_TOKEN is not set, but the provider whatsapp needs it',
    'WHATSAPP_VERIFY_TOKEN is not set, but the provider whatsapp needs it',
    'WHATSAPP_TEMPLATE is not set, but the provider whatsapp needs it',
  ])
})
