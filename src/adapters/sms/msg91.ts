import { declare, printable } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import { call, meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf, reportJson } from './reading.ts'
import { segmentsOf } from './segments.ts'

const msg91Settings = declare('MSG91', {
  MSG91_AUTH_KEY: { format: 'printable ASCII', valid: printable, secret: true, meaning: 'The auth key.' },
  MSG91_SENDER: {
    format: 'up to 15 letters and digits',
    valid: [/^\s*[A-Za-z0-9]{0,15}\s*$/, 'must be of letters and digits, such as ACMEIN'],
    meaning: 'The sender id, such as `ACMEIN`.',
  },
  MSG91_BASE_URL: { ...apiUrl, unset: 'the provider’s URL for the route' },
})

/** Both APIs. 311: the same message was sent within 10 s. 306: the template's route is closed. */
const codes = wordTable<Meaning>({
  recipient: '202',
  content: '101 102 103 107 203 211 306 307 308 309 310 311',
  account: '104 105 106 201 205 207 208 209 210 301 302 303 401 418 505 506',
  retryable: '001 002',
  unknown: '601',
})

/**
 * The template route uses Flow API v5, which renders MSG91's own template. In India the plain route ("Send
 * SMS" v2) accepts only texts that match a template saved at MSG91.
 */
export const msg91: SmsProviderSpec = {
  name: 'msg91',
  routes: ['plain', 'template'],
  settings: msg91Settings,
  codes: { meanings: codes, prefix: 'code ' },
  configure(settings, route) {
    const why = 'the SMS provider msg91 needs it'
    const authKey = settings.required(msg91Settings.MSG91_AUTH_KEY, why)
    const sender = settings.required(msg91Settings.MSG91_SENDER, why).trim()
    const api = apis[route === 'template' ? 'template' : 'plain']
    const url = settings.baseUrl(msg91Settings.MSG91_BASE_URL, api.host) + api.path
    const headers = { authkey: authKey, 'content-type': 'application/json', accept: 'application/json' }
    return () => ({
      name: 'msg91',
      endpoint: url,
      async send(sms, timeoutMs) {
        const request = route === 'template' ? flowRequest(sms, sender) : plainRequest(sms, sender)
        if (!request) return { ...failure('content', 'no template id'), notCalled: true }
        return call(url, { headers, body: JSON.stringify(request) }, timeoutMs, outcomeOf)
      },
      deliveryReports: { namedBy: 'providerMessageId', read: readReports },
    })
  },
}

/** MSG91 documents `sendsms` for its second host only. */
const apis = {
  template: { host: 'https://control.msg91.com', path: '/api/v5/flow' },
  plain: { host: 'https://api.msg91.com', path: '/api/v2/sendsms' },
} as const

function flowRequest({ to, template, senderId }: Sms, sender: string) {
  if (!template?.id) return undefined
  return {
    template_id: template.id,
    sender: senderId ?? sender,
    short_url: '0',
    realTimeResponse: '1',
    // Last, so that no variable overrides the number.
    recipients: [{ ...(template.values ?? template.variables), mobiles: to }],
  }
}

function plainRequest({ to, text, senderId }: Sms, sender: string) {
  return {
    sender: senderId ?? sender,
    // Transactional. Country 0: the number includes its country code.
    route: '4',
    country: '0',
    unicode: segmentsOf(text).encoding === 'UCS-2' ? 1 : 0,
    sms: [{ message: text, to: [to] }],
  }
}

/** Errors without a code, by the letters and digits of MSG91's message. */
const messages = wordTable({
  'bad credentials':
    'authenticationfailure authkeymissing invalidauthkey missingauthenticationkey unauthorized',
  'IP not allowed': 'ipnotwhitelisted ipisnotwhitelisted',
  'unknown template':
    'flowidmissing templateidmissing templateidmissingorinvalidtemplate theprovidedflowidortemplateidisinvalid',
  'no number': 'pleaseenteratleastonenumbertosendsms',
})

function outcomeOf(status: number, text: string): Outcome {
  const isOk = status >= 200 && status < 300
  const { type, message, code } = fieldsOf(text)
  if (isOk && type === 'success' && typeof message === 'string' && message.trim() !== '') {
    return { kind: 'accepted', providerMessageId: message }
  }
  if (isOk && type !== 'error') return failure('unknown', 'unreadable answer')
  const number = codeOf(code)
  const byCode = codes.get(number ?? '')
  if (byCode) return failure(byCode, `code ${number}`)
  const words = typeof message === 'string' ? message.replace(/[^A-Za-z0-9]/g, '') : ''
  const reason = messages.get(words.toLowerCase())
  if (reason) {
    return failure(
      reason === 'bad credentials' || reason === 'IP not allowed' ? 'account' : 'content',
      reason,
    )
  }
  // An unlisted error is about this message, which was not sent.
  const byStatus = isOk ? 'content' : status === 418 ? 'account' : meaningOfStatus(status)
  return failure(byStatus, number ? `code ${number}` : isOk ? 'unlisted error' : `HTTP ${status}`)
}

/** A code is a string, or a number without its leading zeros. */
function codeOf(code: unknown): string | undefined {
  const digits = typeof code === 'number' ? String(code) : code
  return typeof digits === 'string' && /^[0-9]{1,4}$/.test(digits) ? digits.padStart(3, '0') : undefined
}

/** 9: on the do-not-call list. */
const reportStatuses = wordTable({ delivered: '1', failed: '2 9 16 17 25' })

/** Unsigned. v2 is a form whose field `data` is JSON, v3 is one JSON object. v4 has no message ID. */
function readReports({ fields, body }: CallbackRequest): readonly DeliveryReport[] {
  const reports = [reportJson(fields.data ?? body)].flat().flatMap(reportsOf)
  if (reports.length > 0) return reports
  throw invalid('`requestId` and `status` are required, as in versions v2 and v3 of the webhook.')
}

function reportsOf(request: unknown): DeliveryReport[] {
  const { requestId, report = [request] } = Object(request)
  if (typeof requestId !== 'string' || requestId === '') return []
  return [report].flat().flatMap((each) => {
    const { status } = Object(each)
    if (typeof status !== 'string' && typeof status !== 'number') return []
    const known = reportStatuses.get(String(status)) ?? 'pending'
    const reason = known === 'failed' ? String(status) : null
    return [{ providerMessageId: requestId, status: known, reason }]
  })
}
