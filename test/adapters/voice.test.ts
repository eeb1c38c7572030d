import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { failure } from '../../src/adapters/sms/provider.ts'
import { twilioVoice } from '../../src/adapters/sms/twilio-voice.ts'
import { vonageVoice } from '../../src/adapters/sms/vonage-voice.ts'
import { Settings } from '../../src/config/settings.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { CallbackRequest, Outcome, Sms, SmsProvider } from '../../src/domain/ground/providers.ts'
import { otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { temporaryFolder } from '../support/folder.ts'
import { anySms, patienceMs, providerTools } from '../support/provider-server.ts'
import {
  type Call,
  heard,
  spokenDigits,
  startTwilioVoice,
  startVonageVoice,
  twilioError,
  twilioStatus,
  twilioVoiceEnv,
  vonageEvent,
  vonageVoiceEnv,
} from '../support/voice-doubles.ts'

const callbackUrl = 'https://otp.example/callbacks/voice/d2a0b3f6.1.Xy_z-0'
const code: Sms = { ...anySms, route: 'voice', code: '493817', lang: 'en', callbackUrl }

/** Every outcome and delivery report of a test: none may reveal a number, a code or a secret. */
const told: unknown[] = []
let folder: ReturnType<typeof temporaryFolder>
let keyFile: string
let double: ReturnType<typeof startTwilioVoice>

beforeEach(() => {
  folder = temporaryFolder()
  keyFile = join(folder.path, 'private.key')
})

afterEach(async () => {
  await double?.stop()
  folder.remove()
  const said = JSON.stringify(told.splice(0))
  for (const secret of ['canary', 'Canary', '493817', '4, 9', '9812345678'])
    expect(said).not.toContain(secret)
})

function made(spec: typeof twilioVoice, env: Record<string, string>): SmsProvider {
  const settings = new Settings(env)
  const provider = spec.configure(settings, 'voice')(providerTools)
  expect(settings.problems).toEqual([])
  return provider
}

const twilio = (env = {}) => made(twilioVoice, { ...twilioVoiceEnv(double.url), ...env })
const vonage = (env = {}) => made(vonageVoice, { ...vonageVoiceEnv(double.url, keyFile), ...env })

async function send(provider: SmsProvider, given: Partial<Sms> = {}): Promise<Outcome> {
  const outcome = await provider.send({ ...code, ...given }, patienceMs)
  told.push(outcome)
  return outcome
}

async function readBy(
  provider: SmsProvider,
  { headers, body }: { headers: CallbackRequest['headers']; body: string },
) {
  const call = { url: callbackUrl, fields: {}, headers, body: Buffer.from(body) }
  try {
    const reports = provider.deliveryReports?.read(call)
    told.push(reports)
    return reports
  } catch (error) {
    return error instanceof Failure ? error.kind : String(error)
  }
}

const providers = [
  ['twilio-voice', startTwilioVoice, twilio, { ar: 'ar-XA' }, ['ur']],
  ['vonage-voice', startVonageVoice, vonage, { ar: 'ar' }, ['mr', 'ur']],
] as const

describe.each(providers)('%s', (name, start, provider, locales, silent) => {
  beforeEach(() => {
    double = start()
  })

  test('speaks the brand, and each digit, to the number', async () => {
    const outcome = await send(provider())
    const [call] = double.calls as [Call]
    expect(double.problems).toEqual([])
    expect(outcome).toEqual({ kind: 'accepted', providerMessageId: call.id })
    expect(call).toMatchObject({ to: '919812345678', locale: 'en-US', eventUrl: callbackUrl })
    expect(heard(call)).toBe('Acme. Your code is: 4, 9, 3, 8, 1, 7.')
    expect(spokenDigits(call)).toBe('493817')
  })

  test('needs no callback URL, and escapes the name', async () => {
    await send(provider(), { callbackUrl: null, brandName: 'A&B <Dial>' })
    const [call] = double.calls as [Call]
    expect(double.problems).toEqual([])
    expect(call.eventUrl).toBeUndefined()
    expect(heard(call)).toStartWith('A&B <Dial>. Your code is')
  })

  test('speaks each language that it has a voice for, others in English or the language of the brand', async () => {
    const own = provider()
    for (const { tag } of otpLanguages) {
      const isSilent = (silent as readonly string[]).includes(tag)
      const lang = own.languageOf?.({ lang: tag, brandLang: 'hi' })
      expect(lang).toBe(isSilent ? 'hi' : tag)
      await send(own, { lang })
      const locale = { zh: 'cmn-CN', ...locales }[tag as 'zh'] ?? new RegExp(`^${lang}-`)
      expect(double.calls.at(-1)?.locale).toMatch(locale)
    }
    expect(double.problems).toEqual([])
    await send(own, { lang: 'ur' })
    expect(double.calls.at(-1)?.locale).toBe('en-US')
  })

  test('speaks no notification', async () => {
    const outcome = await send(provider(), { code: null, text: 'Your order is on its way.' })
    expect(outcome).toMatchObject({ ...failure('content', 'speaks codes only'), notCalled: true })
    expect(double.received).toEqual([])
  })

  test.each([
    [401, 'account'],
    [402, 'account'],
    [403, 'account'],
    [400, 'content'],
    [422, 'content'],
    [429, 'retryable'],
    [503, 'retryable'],
    [500, 'unknown'],
    [502, 'unknown'],
  ] as const)('HTTP %i is an error of %s', async (status, meaning) => {
    double.answer(() => new Response('Canary +919812345678', { status }))
    expect(await send(provider())).toEqual(failure(meaning, `HTTP ${status}`))
  })

  test('an answer without the ID of a call is unknown', async () => {
    for (const body of ['{}', 'no JSON', '{"sid":"Canary","uuid":"Canary"}']) {
      double.answer(() => new Response(body, { status: 201 }))
      expect(await send(provider())).toEqual(failure('unknown', 'unreadable answer'))
    }
  })

  test('each code of its list is explained', () => {
    const spec = name === 'twilio-voice' ? twilioVoice : vonageVoice
    expect(spec.codes?.meanings.size).toBeGreaterThan(10)
    expect(spec.routes).toEqual(['voice'])
  })
})

describe('twilio-voice', () => {
  beforeEach(() => {
    double = startTwilioVoice()
  })

  test.each([
    [21211, 'recipient'],
    [21214, 'recipient'],
    [13224, 'recipient'],
    [21210, 'content'],
    [21215, 'content'],
    [21220, 'content'],
    [20003, 'account'],
    [20429, 'retryable'],
    [10004, 'retryable'],
    [20500, 'unknown'],
    [29999, 'content'],
  ] as const)('error %i is an error of %s', async (error, meaning) => {
    double.answer(() => twilioError(error))
    expect(await send(twilio())).toEqual(failure(meaning, String(error)))
  })

  const call: Call = {
    id: `CA${'0'.repeat(32)}`,
    to: '919812345678',
    locale: '',
    ssml: '',
    eventUrl: callbackUrl,
  }

  test.each([
    ['completed', 'delivered', null],
    ['busy', 'failed', 'busy'],
    ['no-answer', 'failed', 'no-answer'],
    ['canceled', 'failed', 'canceled'],
    ['failed', 'failed', 'failed SIP 404'],
    ['in-progress', 'pending', null],
    ['ringing', 'pending', null],
  ] as const)('the status %s is %s', async (status, known, reason) => {
    const report = twilioStatus(call, status, { sip: '404' })
    expect(await readBy(twilio(), report)).toEqual([{ status: known, reason }])
  })

  test('a report needs the signature of the auth token, and a status', async () => {
    expect(await readBy(twilio(), twilioStatus(call, 'completed', { token: 'another' }))).toBe('forbidden')
    const { headers, body } = twilioStatus(call, 'completed')
    expect(await readBy(twilio(), { headers: {}, body })).toBe('forbidden')
    expect(await readBy(twilio(), { headers, body: body.replace('completed', 'busy') })).toBe('forbidden')
    expect(await readBy(twilio(), twilioStatus(call, 'Canary'))).toBe('validation_error')
  })
})

describe('vonage-voice', () => {
  beforeEach(() => {
    double = startVonageVoice()
  })

  const call: Call = {
    id: '63f61863-4a51-4f6b-86e1-46edebcf9356',
    to: '919812345678',
    locale: '',
    ssml: '',
    eventUrl: callbackUrl,
  }

  test.each([
    ['answered', 'delivered', null],
    ['completed', 'delivered', null],
    ['busy', 'failed', 'busy'],
    ['timeout', 'failed', 'timeout'],
    ['unanswered', 'failed', 'unanswered'],
    ['rejected', 'failed', 'rejected'],
    ['failed', 'failed', 'failed'],
    ['cancelled', 'failed', 'cancelled'],
    ['started', 'pending', null],
    ['ringing', 'pending', null],
    ['machine', 'pending', null],
  ] as const)('the status %s is %s', async (status, known, reason) => {
    expect(await readBy(vonage(), await vonageEvent(call, status))).toEqual([{ status: known, reason }])
  })

  test('a failure has its detail, if that is a word', async () => {
    const of = async (detail: string) => readBy(vonage(), await vonageEvent(call, 'failed', { detail }))
    expect(await of('cannot_route')).toEqual([{ status: 'failed', reason: 'failed cannot_route' }])
    expect(await of('Canary +919812345678')).toEqual([{ status: 'failed', reason: 'failed' }])
  })

  test('an event needs the signature of its body, and a status', async () => {
    const { headers, body } = await vonageEvent(call, 'completed')
    const [head = '', claims = '', signature = ''] = headers.authorization.slice(7).split('.')
    const unsigned = Buffer.from('{"alg":"none"}').toString('base64url')
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      `Bearer ${head}.${claims}.`,
      `Bearer ${unsigned}.${claims}.`,
      `Bearer ${unsigned}.${claims}.${signature}`,
      `Basic ${head}.${claims}.${signature}`,
    ])
      expect(await readBy(vonage(), { headers: { authorization }, body })).toBe('forbidden')
    expect(await readBy(vonage(), { headers, body: body.replace('completed', 'busy') })).toBe('forbidden')
    expect(await readBy(vonage(), await vonageEvent(call, 'busy', { secret: 'another' }))).toBe('forbidden')
    const none = vonage({ VONAGE_SIGNATURE_SECRET: '' })
    expect(await readBy(none, { headers: {}, body })).toEqual([{ status: 'delivered', reason: null }])
    for (const other of ['{}', 'null', '[]', 'no JSON'])
      expect(await readBy(none, { headers: {}, body: other })).toBe('validation_error')
  })

  test('needs an RSA private key that it can read', () => {
    const problems = (file: string) => {
      const settings = new Settings({ ...vonageVoiceEnv(double.url, keyFile), VONAGE_PRIVATE_KEY_FILE: file })
      vonageVoice.configure(settings, 'voice')
      return settings.problems
    }
    expect(problems('/nowhere/private.key')).toEqual([
      'VONAGE_PRIVATE_KEY_FILE (/nowhere/private.key) cannot be read (ENOENT): correct the path, or let this user read it',
    ])
    const other = join(folder.path, 'other.key')
    const { privateKey } = generateKeyPairSync('ed25519')
    for (const content of ['canary', '', String(privateKey.export({ type: 'pkcs8', format: 'pem' }))]) {
      writeFileSync(other, content)
      expect(problems(other)).toEqual([
        `VONAGE_PRIVATE_KEY_FILE (${other}) has no RSA private key in PEM without a passphrase`,
      ])
    }
  })
})

test('the other settings are required', () => {
  for (const [spec, missing] of [
    [twilioVoice, ['TWILIO_ACCOUNT_SID', 'TWILIO_AUTH_TOKEN', 'TWILIO_VOICE_FROM']],
    [vonageVoice, ['VONAGE_APPLICATION_ID', 'VONAGE_PRIVATE_KEY_FILE', 'VONAGE_VOICE_FROM']],
  ] as const) {
    const settings = new Settings({})
    spec.configure(settings, 'voice')
    expect(settings.problems).toEqual(
      missing.map((name) => `${name} is not set, but the provider ${spec.name} needs it`),
    )
  }
})
