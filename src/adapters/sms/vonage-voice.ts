import { createHash, createHmac, createPrivateKey, type KeyObject, randomUUID } from 'node:crypto'
import { declare } from '../../config/setting.ts'
import { ConfigError, type Settings } from '../../config/settings.ts'
import { Failure, invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import {
  longestCallSeconds,
  ringingSeconds,
  spokenCode,
  spokenLanguageOf,
} from '../../domain/texts/spoken.ts'
import { readPem } from '../crypto/pem.ts'
import { isSame } from '../crypto/secrets.ts'
import { call, meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf, reportJson } from './reading.ts'
import { vonageSettings } from './vonage.ts'

const vonageVoiceSettings = declare('Vonage voice', {
  VONAGE_APPLICATION_ID: {
    format: 'UUID',
    valid: [/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a UUID, as the dashboard shows it'],
    meaning: 'The ID of the application, which has the capability Voice.',
  },
  VONAGE_PRIVATE_KEY_FILE: {
    format: 'path',
    meaning: 'The private key of the application (PEM), which otpost reads at its start.',
  },
  VONAGE_VOICE_FROM: {
    format: 'number',
    valid: [/^\+?[1-9][0-9]{6,14}$/, 'must be a number with country code'],
    meaning: 'The number that calls, which is linked to the application.',
  },
  VONAGE_VOICE_BASE_URL: {
    default: 'https://api.nexmo.com',
    ...apiUrl,
    meaning: 'The URL of the API.',
  },
})

/** HTTP statuses of the Voice API. */
const statusCodes = [400, 401, 402, 403, 404, 422, 429, 500, 502, 503, 504]

/** Languages without a voice at Vonage. */
const silent: ReadonlySet<string> = new Set(['mr', 'ur'])

/** Voice API v1: a call with an inline NCCO. */
export const vonageVoice: SmsProviderSpec = {
  name: 'vonage-voice',
  routes: ['voice'],
  settings: vonageVoiceSettings,
  codes: {
    meanings: new Map(statusCodes.map((status) => [String(status), meaningOfStatus(status)])),
    prefix: 'HTTP ',
    page: () => 'https://developer.vonage.com/voice/voice-api/guides/troubleshooting',
  },
  configure(settings) {
    const why = 'the provider vonage-voice needs it'
    const application = settings.required(vonageVoiceSettings.VONAGE_APPLICATION_ID, why)
    const key = readKey(settings, why)
    const from = settings.required(vonageVoiceSettings.VONAGE_VOICE_FROM, why).replace(/^\+/, '')
    const secret = settings.optional(vonageSettings.VONAGE_SIGNATURE_SECRET)
    const url = `${settings.baseUrl(vonageVoiceSettings.VONAGE_VOICE_BASE_URL)}/v1/calls`
    return ({ now }) => ({
      name: 'vonage-voice',
      endpoint: url,
      languageOf: (message) => spokenLanguageOf(message, silent).tag,
      async send(sms, timeoutMs) {
        const { code } = sms
        if (code === null || !key) return { ...failure('content', 'speaks codes only'), notCalled: true }
        const authorization = `Bearer ${await tokenOf(application, key, now())}`
        const headers = { authorization, 'content-type': 'application/json' }
        return call(url, { headers, body: JSON.stringify(requestOf(sms, code, from)) }, timeoutMs, outcomeOf)
      },
      deliveryReports: { namedBy: 'attempt', read: (call) => readEvent(call, secret) },
    })
  },
}

/** Undefined: refused. */
function readKey(settings: Settings, why: string): KeyObject | undefined {
  const { VONAGE_PRIVATE_KEY_FILE } = vonageVoiceSettings
  const file = settings.required(VONAGE_PRIVATE_KEY_FILE, why)
  if (file === '') return undefined
  try {
    return readPem(VONAGE_PRIVATE_KEY_FILE.name, file, 'RSA private key', (pem) => {
      const key = createPrivateKey(pem)
      if (key.asymmetricKeyType !== 'rsa') throw new Error('another kind of key')
      return key
    }).parsed
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    settings.problems.push(...error.problems)
  }
}

/** "JSON Web Tokens" of Vonage. */
async function tokenOf(application: string, key: KeyObject, now: number): Promise<string> {
  const { SignJWT } = await import('jose')
  const issuedAt = Math.floor(now / 1000)
  return new SignJWT({ application_id: application })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + 300)
    .setJti(randomUUID())
    .sign(key)
}

function requestOf(sms: Sms, code: string, from: string) {
  const language = spokenLanguageOf(sms, silent)
  const text = `<speak>${spokenCode(sms.brandName, code, language)}</speak>`
  return {
    to: [{ type: 'phone', number: sms.to }],
    from: { type: 'phone', number: from },
    ncco: [{ action: 'talk', text, language: language.locale, loop: 2 }],
    ...(sms.callbackUrl !== null && { event_url: [sms.callbackUrl], event_method: 'POST' }),
    ringing_timer: ringingSeconds,
    length_timer: longestCallSeconds,
  }
}

function outcomeOf(status: number, text: string): Outcome {
  if (status < 200 || status >= 300) return failure(meaningOfStatus(status), `HTTP ${status}`)
  const { uuid } = fieldsOf(text)
  return typeof uuid === 'string' && /^[0-9a-f-]{36}$/i.test(uuid)
    ? { kind: 'accepted', providerMessageId: uuid }
    : failure('unknown', 'unreadable answer')
}

const statuses = wordTable<DeliveryReport['status']>({
  delivered: 'answered completed',
  failed: 'busy cancelled failed rejected timeout unanswered',
})

/** "Event webhook", as JSON. */
function readEvent(call: CallbackRequest, secret: string | undefined): readonly DeliveryReport[] {
  if (secret !== undefined && !isSigned(call, secret))
    throw new Failure('forbidden', 'The signature is wrong.')
  const { status: word, detail } = Object(reportJson(call.body))
  if (typeof word !== 'string') throw invalid('`status` is required.')
  const status = statuses.get(word) ?? 'pending'
  const isCode = typeof detail === 'string' && /^[a-z][a-z_]{0,39}$/.test(detail)
  return [{ status, reason: status === 'failed' ? `${word}${isCode ? ` ${detail}` : ''}` : null }]
}

/** "Decoding signed webhooks": a JWT by HS256, whose `payload_hash` is the SHA-256 of the body. */
function isSigned({ headers, body }: CallbackRequest, secret: string): boolean {
  const [, head = '', claims = '', signature = ''] =
    /^Bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/i.exec(headers.authorization ?? '') ?? []
  const decoded = (part: string) => fieldsOf(Buffer.from(part, 'base64url').toString())
  const expected = createHmac('sha256', secret).update(`${head}.${claims}`).digest('base64url')
  if (!isSame(signature, expected) || decoded(head).alg !== 'HS256') return false
  return isSame(String(decoded(claims).payload_hash), createHash('sha256').update(body).digest('hex'))
}
