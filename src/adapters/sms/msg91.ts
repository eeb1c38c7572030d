import { Failure } from '../../domain/failures.ts'
import type {
  CallbackRequest,
  DeliveryReport,
  Outcome,
  Sms,
  SmsRoute,
} from '../../domain/messages/providers.ts'
import { meaningOfStatus, post } from './http.ts'
import { failure, type Meaning, type SmsProviderSpec } from './provider.ts'
import { fieldsOf, reportJson } from './reading.ts'
import { segmentsOf } from './segments.ts'

/**
 * MSG91. The template route is its Flow API v5 ("Send SMS via FLOW"): it renders its own template with our variables. The
 * plain route is its older "Send SMS" v2, which in India carries what matches a template saved there, and nothing else.
 */
export const msg91: SmsProviderSpec = {
  name: 'msg91',
  routes: ['plain', 'template'],
  configure(settings, route) {
    const why = 'the SMS provider msg91 needs it'
    const authKey = settings.credential('MSG91_AUTH_KEY', why)
    const sender = settings.required('MSG91_SENDER', why).trim()
    if (!/^[A-Za-z0-9]{0,15}$/.test(sender)) {
      settings.refuse('MSG91_SENDER', 'must be of letters and digits, such as ACMEIN')
    }
    const url = settings.baseUrl('MSG91_BASE_URL', usualHosts[route]) + paths[route]
    const headers = { authkey: authKey, 'content-type': 'application/json', accept: 'application/json' }
    return () => ({
      name: 'msg91',
      endpoint: url,
      async send(sms, timeoutMs) {
        const request = route === 'template' ? flowRequest(sms, sender) : plainRequest(sms, sender)
        if (!request) return { ...failure('content', 'no template id'), unasked: true }
        const answer = await post(url, { headers, body: JSON.stringify(request) }, timeoutMs)
        return answer.answered ? outcomeOf(answer.status, answer.text) : answer.outcome
      },
      deliveryReports: { namedBy: 'providerMessageId', read: readReports },
    })
  },
}

/** The hosts that MSG91's own pages name; it has two, and documents `sendsms` for the second only. */
const usualHosts: Readonly<Record<SmsRoute, string>> = {
  template: 'https://control.msg91.com',
  plain: 'https://api.msg91.com',
}

const paths: Readonly<Record<SmsRoute, string>> = { template: '/api/v5/flow', plain: '/api/v2/sendsms' }

/** Undefined where MSG91 would have no template to render. */
function flowRequest({ to, template, senderId }: Sms, sender: string) {
  if (!template?.id) return undefined
  return {
    template_id: template.id,
    sender: senderId ?? sender,
    short_url: '0',
    // Errors are told in the answer, rather than in MSG91's log of failures afterwards.
    realTimeResponse: '1',
    // The number comes last, so that no variable takes its place.
    recipients: [{ ...template.variables, mobiles: to }],
  }
}

function plainRequest({ to, text, senderId }: Sms, sender: string) {
  return {
    sender: senderId ?? sender,
    // Transactional; and country 0 takes the number as it is, with its country code.
    route: '4',
    country: '0',
    unicode: segmentsOf(text).encoding === 'UCS-2' ? 1 : 0,
    sms: [{ message: text, to: [to] }],
  }
}

/**
 * MSG91's list of error codes, for both APIs. 311 is a message that was the same as one of the last ten seconds and was
 * not sent; 306 is a route, chosen by the template, that is closed at this hour.
 */
const codes: ReadonlyMap<string, Meaning> = new Map([
  ['001', 'retryable'],
  ['002', 'retryable'],
  ['101', 'content'],
  ['102', 'content'],
  ['103', 'content'],
  ['104', 'account'],
  ['105', 'account'],
  ['106', 'account'],
  ['107', 'content'],
  ['201', 'account'],
  ['202', 'recipient'],
  ['203', 'content'],
  ['205', 'account'],
  ['207', 'account'],
  ['208', 'account'],
  ['209', 'account'],
  ['210', 'account'],
  ['211', 'content'],
  ['301', 'account'],
  ['302', 'account'],
  ['303', 'account'],
  ['306', 'content'],
  ['307', 'content'],
  ['308', 'content'],
  ['309', 'content'],
  ['310', 'content'],
  ['311', 'content'],
  ['401', 'account'],
  ['418', 'account'],
  ['505', 'account'],
  ['506', 'account'],
  ['601', 'retryable'],
])

/** What MSG91 says where it gives no code: the letters and digits of its message, and our words for it. */
const messages: ReadonlyMap<string, readonly [Meaning, string]> = new Map([
  ['authenticationfailure', ['account', 'bad credentials']],
  ['authkeymissing', ['account', 'bad credentials']],
  ['invalidauthkey', ['account', 'bad credentials']],
  ['missingauthenticationkey', ['account', 'bad credentials']],
  ['unauthorized', ['account', 'bad credentials']],
  ['ipnotwhitelisted', ['account', 'IP not allowed']],
  ['ipisnotwhitelisted', ['account', 'IP not allowed']],
  ['flowidmissing', ['content', 'unknown template']],
  ['templateidmissing', ['content', 'unknown template']],
  ['templateidmissingorinvalidtemplate', ['content', 'unknown template']],
  ['theprovidedflowidortemplateidisinvalid', ['content', 'unknown template']],
  ['pleaseenteratleastonenumbertosendsms', ['content', 'no number']],
])

/** The status alone says little: most failures are answered with 200. */
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
  const byMessage = messages.get(words.toLowerCase())
  if (byMessage) return failure(...byMessage)
  // An error that isn't listed is taken as one of this message: it was not sent, and others may well be.
  const byStatus = isOk ? 'content' : status === 418 ? 'account' : meaningOfStatus(status)
  return failure(byStatus, number ? `code ${number}` : isOk ? 'unlisted error' : `HTTP ${status}`)
}

/** A code is a string or a number, which loses its zeros. */
function codeOf(code: unknown): string | undefined {
  const digits = typeof code === 'number' ? String(code) : code
  return typeof digits === 'string' && /^[0-9]{1,4}$/.test(digits) ? digits.padStart(3, '0') : undefined
}

/** MSG91's numbers for the end of a message: delivered; and failed, on the do-not-call list, rejected, blocked. */
const delivered = '1'
const failed: ReadonlySet<string> = new Set(['2', '9', '16', '17', '25'])

/**
 * A delivery report, unsigned, in the versions of MSG91's webhook: v2 is a form whose field `data` is a JSON array of
 * requests with a `report` for each number, v3 a JSON object for one. v4 names no request, so that it tells nothing.
 */
function readReports({ fields, body }: CallbackRequest): readonly DeliveryReport[] {
  const deliveryReports = [reportJson(fields.data ?? body)].flat().flatMap(reportsOf)
  if (deliveryReports.length === 0) {
    throw new Failure(
      'validation_error',
      'requestId and status are required, as versions v2 and v3 have them',
    )
  }
  return deliveryReports
}

function reportsOf(request: unknown): DeliveryReport[] {
  const { requestId, report = [request] } = Object(request)
  if (typeof requestId !== 'string' || requestId === '') return []
  return [report].flat().flatMap((each) => {
    const { status } = Object(each)
    if (typeof status !== 'string' && typeof status !== 'number') return []
    return [{ providerMessageId: requestId, ...meaningOfReport(String(status)) }]
  })
}

function meaningOfReport(status: string): Omit<DeliveryReport, 'providerMessageId'> {
  if (status === delivered) return { status: 'delivered', reason: null }
  return failed.has(status) ? { status: 'failed', reason: status } : { status: 'pending', reason: null }
}
