import { declare } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import {
  longestCallSeconds,
  ringingSeconds,
  spokenCode,
  spokenLanguageOf,
} from '../../domain/texts/spoken.ts'
import { call } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf } from './reading.ts'
import { isSuccess, refusalOf, signedForm, twilioAccount } from './twilio.ts'

const twilioVoiceSettings = declare('Twilio voice', {
  TWILIO_VOICE_FROM: {
    format: 'number with `+`',
    valid: [/^\+[1-9][0-9]{6,14}$/, 'must be a number with + and country code'],
    meaning: 'The number that calls: one of the account, or a verified caller ID.',
  },
  TWILIO_VOICE_BASE_URL: {
    default: 'https://api.twilio.com',
    ...apiUrl,
    meaning: 'The URL of the API.',
  },
})

/** Twilio's error dictionary. */
const codes = wordTable<Meaning>({
  recipient: '13224 13225 21211 21214 21217',
  content: `
    12100 13214 13223 13227 20001 20422 21201 21203 21205 21210 21212 21213 21215 21216 21218 21219 21220 21264
    21609
  `,
  account: '10001 10002 20003 20005 20006 20008 20010 20403 20404 90010',
  retryable: '10004 20429 20503 21221',
  unknown: '20500',
})

/** Google's voices have no Urdu at Twilio. */
const silent: ReadonlySet<string> = new Set(['ur'])

/** REST API 2010-04-01: a call with inline TwiML. */
export const twilioVoice: SmsProviderSpec = {
  name: 'twilio-voice',
  routes: ['voice'],
  settings: twilioVoiceSettings,
  codes: { meanings: codes, page: (code) => `https://www.twilio.com/docs/api/errors/${code}` },
  configure(settings) {
    const why = 'the provider twilio-voice needs it'
    const { account, token, headers } = twilioAccount(settings, why)
    const from = settings.required(twilioVoiceSettings.TWILIO_VOICE_FROM, why)
    const base = settings.baseUrl(twilioVoiceSettings.TWILIO_VOICE_BASE_URL)
    const url = `${base}/2010-04-01/Accounts/${account}/Calls.json`
    return () => ({
      name: 'twilio-voice',
      endpoint: url,
      languageOf: (message) => spokenLanguageOf(message, silent).tag,
      async send(sms, timeoutMs) {
        const { code } = sms
        if (code === null) return { ...failure('content', 'speaks codes only'), notCalled: true }
        return call(url, { headers, body: form(sms, code, from) }, timeoutMs, outcomeOf)
      },
      deliveryReports: { namedBy: 'attempt', read: (call) => readCallback(call, token) },
    })
  },
}

function form(sms: Sms, code: string, from: string): string {
  const language = spokenLanguageOf(sms, silent)
  const locale = language.tag === 'ar' ? 'ar-XA' : language.locale
  const voice = `Google.${locale}-Standard-A`
  const said = spokenCode(sms.brandName, code, language)
  const fields = new URLSearchParams({
    To: `+${sms.to}`,
    From: from,
    Twiml: `<Response><Pause length="1"/><Say language="${locale}" voice="${voice}" loop="2">${said}</Say></Response>`,
    Timeout: String(ringingSeconds),
    TimeLimit: String(longestCallSeconds),
  })
  if (sms.callbackUrl !== null) {
    fields.set('StatusCallback', sms.callbackUrl)
    fields.set('StatusCallbackEvent', 'completed')
  }
  return fields.toString()
}

const statuses = wordTable<DeliveryReport['status']>({
  pending: 'queued initiated ringing in-progress',
  delivered: 'completed',
  failed: 'busy no-answer failed canceled',
})

function outcomeOf(httpStatus: number, text: string): Outcome {
  if (!isSuccess(httpStatus)) return refusalOf(httpStatus, text, codes)
  const { sid } = fieldsOf(text)
  return typeof sid === 'string' && /^CA[0-9a-fA-F]{32}$/.test(sid)
    ? { kind: 'accepted', providerMessageId: sid }
    : failure('unknown', 'unreadable answer')
}

/** "StatusCallback Request Parameters" of the call resource. Completed: the call was answered. */
function readCallback(call: CallbackRequest, token: string): readonly DeliveryReport[] {
  const fields = signedForm(call, token)
  const word = fields.get('CallStatus') ?? ''
  const status = statuses.get(word)
  if (!status) throw invalid('`CallStatus` must be a call status of Twilio.')
  const sip = fields.get('SipResponseCode') ?? ''
  const detail = word === 'failed' && /^[0-9]{3}$/.test(sip) ? ` SIP ${sip}` : ''
  return [{ status, reason: status === 'failed' ? word + detail : null }]
}
