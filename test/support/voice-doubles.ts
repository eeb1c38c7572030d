import { createHash, createHmac, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { jwtVerify, SignJWT } from 'jose'
import { startProviderDouble } from './provider-server.ts'

// The voice APIs in place of Twilio and Vonage. Twilio: CreateCall of twilio_api_v2010.json and "StatusCallback Request
// Parameters". Vonage: createCall of definitions/voice.yml (github.com/Nexmo/api-specification), "JSON Web Tokens",
// "Event webhook" and "Decoding signed webhooks".

/** A call, as the person would hear it. */
export interface Call {
  /** The digits. */
  readonly to: string
  readonly locale: string
  readonly ssml: string
  readonly eventUrl: string | undefined
  readonly id: string
}

/** The words of a call without its markup. */
export function heard({ ssml }: Pick<Call, 'ssml'>): string {
  return ssml
    .replace(/<break time="\d+ms"\/>/g, '')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
}

/** The digits that a call speaks, each a number of its own. */
export function spokenDigits(call: Call): string {
  return [...heard(call).matchAll(/(?<![\d,.])(\d)(?=[,.])/g)].map(([, digit]) => digit).join('')
}

export const twilioAccount = 'AC0123456789abcdef0123456789abcdef'
export const twilioToken = 'canary-twilio+auth/token=&%'
export const twilioFrom = '+12025550123'

export function twilioVoiceEnv(url: string): Record<string, string> {
  return {
    VOICE_PROVIDER: 'twilio-voice',
    TWILIO_ACCOUNT_SID: twilioAccount,
    TWILIO_AUTH_TOKEN: twilioToken,
    TWILIO_VOICE_FROM: twilioFrom,
    TWILIO_VOICE_BASE_URL: url,
  }
}

/** An error as Twilio answers it. Its text contains what no log may have. */
export function twilioError(code: number, status = 400): Response {
  const message = `Canary +919812345678 4, 9, 3`
  return Response.json(
    { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
    { status },
  )
}

interface Double {
  readonly calls: Call[]
  /** Of calls that do not match the documentation. */
  readonly problems: string[]
}

export function startTwilioVoice() {
  const told: Double = { calls: [], problems: [] }
  const double = startProviderDouble(() => {
    try {
      const { method, path, headers, body } = double.received.at(-1) ?? {}
      must(
        method === 'POST' && path === `/2010-04-01/Accounts/${twilioAccount}/Calls.json`,
        `${method} ${path}`,
      )
      const basic = `Basic ${Buffer.from(`${twilioAccount}:${twilioToken}`).toString('base64')}`
      must(headers?.get('authorization') === basic, 'authorization')
      must(headers?.get('content-type') === 'application/x-www-form-urlencoded', 'content-type')
      const { To, From, Twiml, Timeout, TimeLimit, StatusCallback, StatusCallbackEvent, ...rest } =
        Object.fromEntries(new URLSearchParams(body))
      must(Object.keys(rest).length === 0, `fields ${Object.keys(rest)}`)
      must(/^\+[1-9]\d{6,14}$/.test(To ?? '') && From === twilioFrom, 'To and From')
      must(Number(Timeout) >= 5 && Number(Timeout) <= 600 && TimeLimit === '40', 'Timeout and TimeLimit')
      must((StatusCallback === undefined) === (StatusCallbackEvent === undefined), 'StatusCallbackEvent')
      must((Twiml ?? '').length <= 4000, 'the length of Twiml')
      const said =
        /^<Response><Pause length="1"\/><Say language="([\w-]+)" voice="Google\.([\w-]+)-Standard-A" loop="2">(.*)<\/Say><\/Response>$/s
      const [, locale = '', voice, ssml = ''] = said.exec(Twiml ?? '') ?? []
      must(locale !== '' && locale === voice, `Twiml ${Twiml}`)
      must(!/[<&](?!break time="\d+ms"\/>|#\d+;)/.test(ssml), `markup ${ssml}`)
      const id = `CA${randomBytes(16).toString('hex')}`
      told.calls.push({ to: String(To).slice(1), locale, ssml, eventUrl: StatusCallback, id })
      return Response.json(
        { sid: id, status: 'queued', to: To, from: From, direction: 'outbound-api' },
        { status: 201 },
      )
    } catch (error) {
      told.problems.push(String(error))
      return twilioError(21201)
    }
  })
  return { ...double, ...told }
}

/** A status callback of a call. */
export function twilioStatus(
  { id, to, eventUrl = '' }: Call,
  status: string,
  { token = twilioToken, sip = '' } = {},
) {
  const fields = new URLSearchParams({
    CallSid: id,
    AccountSid: twilioAccount,
    From: twilioFrom,
    To: `+${to}`,
    CallStatus: status,
    Direction: 'outbound-api',
    ...(sip && { SipResponseCode: sip }),
    SequenceNumber: '3',
  })
  const sorted = [...fields].sort(([one], [other]) => (one < other ? -1 : 1))
  const signature = createHmac('sha1', token)
    .update(eventUrl + sorted.flat().join(''))
    .digest('base64')
  return {
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': signature },
    body: fields.toString(),
  }
}

export const vonageSecret = 'canary-vonage+signature/secret=&%'
const application = '78d335fa-323d-0114-9c3d-d6f0d48968cf'
const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })

/** @param keyFile is written */
export function vonageVoiceEnv(url: string, keyFile: string): Record<string, string> {
  writeFileSync(keyFile, keys.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return {
    VOICE_PROVIDER: 'vonage-voice',
    VONAGE_APPLICATION_ID: application,
    VONAGE_PRIVATE_KEY_FILE: keyFile,
    VONAGE_VOICE_FROM: '442079460000',
    VONAGE_SIGNATURE_SECRET: vonageSecret,
    VONAGE_VOICE_BASE_URL: url,
  }
}

export function startVonageVoice(now = Date.now) {
  const told: Double = { calls: [], problems: [] }
  const double = startProviderDouble(async () => {
    try {
      const { method, path, headers, body = '' } = double.received.at(-1) ?? {}
      must(method === 'POST' && path === '/v1/calls', `${method} ${path}`)
      must(headers?.get('content-type') === 'application/json', 'content-type')
      const [, token = ''] = /^Bearer (.+)$/.exec(headers?.get('authorization') ?? '') ?? []
      const { payload } = await jwtVerify(token, keys.publicKey, {
        algorithms: ['RS256'],
        currentDate: new Date(now()),
      })
      must(payload.application_id === application && /^[\w-]{36}$/.test(payload.jti ?? ''), 'claims')
      must(Number(payload.exp) - Number(payload.iat) <= 900, 'exp')
      const { to, from, ncco, event_url: eventUrls, event_method: eventMethod, ...timers } = JSON.parse(body)
      must(to.length === 1 && to[0].type === 'phone' && /^\d{7,15}$/.test(to[0].number), 'to')
      must(from.type === 'phone' && from.number === '442079460000', 'from')
      const { ringing_timer: ringing, length_timer: length, ...rest } = timers
      must(ringing >= 1 && ringing <= 120 && length === 40 && Object.keys(rest).length === 0, 'timers')
      must(eventUrls === undefined || (eventUrls.length === 1 && eventMethod === 'POST'), 'event_url')
      const [{ action, text, language, loop, ...others }] = ncco
      must(ncco.length === 1 && action === 'talk' && loop === 2 && Object.keys(others).length === 0, 'ncco')
      const [, ssml = ''] = /^<speak>(.*)<\/speak>$/s.exec(text) ?? []
      must(ssml !== '' && !/[<&](?!break time="\d+ms"\/>|#\d+;)/.test(ssml), `text ${text}`)
      const id = randomUUID()
      told.calls.push({ to: to[0].number, locale: language, ssml, eventUrl: eventUrls?.[0], id })
      const conversation = `CON-${randomUUID()}`
      return Response.json(
        { uuid: id, status: 'started', direction: 'outbound', conversation_uuid: conversation },
        { status: 201 },
      )
    } catch (error) {
      told.problems.push(String(error))
      return Response.json({ type: 'BAD_REQUEST', title: 'Canary +919812345678' }, { status: 400 })
    }
  })
  return { ...double, ...told }
}

/** An event of a call. */
export async function vonageEvent(
  { id, to }: Call,
  status: string,
  { secret = vonageSecret, detail = '' } = {},
) {
  const body = JSON.stringify({
    from: '442079460000',
    to,
    uuid: id,
    conversation_uuid: 'CON-f972836a-550f-45fa-956c-12a2ab5b7d22',
    status,
    direction: 'outbound',
    timestamp: '2026-01-01T12:00:00.000Z',
    ...(detail && { detail }),
  })
  const hash = createHash('sha256').update(body).digest('hex')
  const token = await new SignJWT({
    iss: 'Vonage',
    payload_hash: hash,
    api_key: 'abcd1234',
    application_id: application,
  })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setIssuedAt()
    .setJti(randomUUID())
    .sign(new TextEncoder().encode(secret))
  return { headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` }, body }
}

function must(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`wrong: ${what}`)
}
