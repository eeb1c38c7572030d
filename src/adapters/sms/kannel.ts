import type { Settings } from '../../config/settings.ts'
import { Failure } from '../../domain/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome } from '../../domain/messages/providers.ts'
import { meaningOfStatus, post } from './http.ts'
import { failure, type Meaning, type SmsProviderSpec } from './provider.ts'
import { segmentsOf } from './segments.ts'

/**
 * Hands each SMS to a Kannel of the operator's own: to `sendsms` of its smsbox, as a POST with X-Kannel headers, so that
 * neither password nor text is in a URL (Kannel 1.4.5 User's Guide, "Extended headers" and appendix "Meta Data"). Kannel
 * gives messages no id; each takes the URL for its receipts with it.
 */
export const kannel: SmsProviderSpec = {
  name: 'kannel',
  routes: ['plain', 'template'],
  configure(settings) {
    const why = 'the SMS provider kannel needs it'
    const url = sendsmsUrl(settings.serviceUrl('KANNEL_URL', why))
    const username = headerText(settings, 'KANNEL_USERNAME', settings.required('KANNEL_USERNAME', why))
    const password = headerText(settings, 'KANNEL_PASSWORD', settings.required('KANNEL_PASSWORD', why))
    const from = headerText(settings, 'KANNEL_FROM', settings.required('KANNEL_FROM', why))
    const smsc = headerText(settings, 'KANNEL_SMSC', settings.text('KANNEL_SMSC', ''))
    const entityTlv = tlvName(settings, 'KANNEL_ENTITY_TLV', 'PE_ID')
    const templateTlv = tlvName(settings, 'KANNEL_TEMPLATE_TLV', 'TEMPLATE_ID')
    return () => ({
      name: 'kannel',
      endpoint: url,
      async send({ to, text, template, senderId, validitySeconds, callbackUrl }, timeoutMs) {
        // A space would make it several recipients, whatever Kannel's sendsms-chars say.
        if (!/^[0-9]+$/.test(to)) return failure('recipient', 'not digits')
        const tlvs = metaData({ [entityTlv]: template?.entityId, [templateTlv]: template?.id })
        const headers = {
          'content-type': 'text/plain; charset=utf-8',
          'x-kannel-username': username,
          'x-kannel-password': password,
          'x-kannel-from': senderId ?? from,
          'x-kannel-to': to,
          // Without it Kannel takes all for GSM-7, and what that can't say arrives as question marks.
          'x-kannel-coding': segmentsOf(text).encoding === 'UCS-2' ? '2' : '0',
          ...(smsc === '' ? {} : { 'x-kannel-smsc': smsc }),
          // In minutes.
          ...(validitySeconds === null
            ? {}
            : { 'x-kannel-validity': String(Math.ceil(validitySeconds / 60)) }),
          ...(tlvs === undefined ? {} : { 'x-kannel-meta-data': tlvs }),
          ...(callbackUrl === null
            ? {}
            : { 'x-kannel-dlr-mask': String(allReports), 'x-kannel-dlr-url': dlrUrl(callbackUrl) }),
        }
        if (!Object.values(headers).every(isPrintable)) return failure('content', 'unprintable header')
        const result = await post(url, { headers, body: text }, timeoutMs)
        return result.answered ? outcomeOf(result.status, result.text.trim()) : result.outcome
      },
      deliveryReports: { namedBy: 'attempt', read: readCallback },
    })
  },
}

/**
 * What Kannel says, by status and text, where the status leaves it open. The rest means what its status does: 400 a fault in
 * the request, 404 another path than that of sendsms, 500 that bearerbox could not be told, 503 that its queues are full.
 */
const answers: ReadonlyMap<string, readonly [meaning: Meaning, reason: string]> = new Map([
  // The link to the SMSC is down. Kannel keeps the message for as long as it is valid, and sends it when the link is back.
  ['202 3: Queued for later delivery', ['unknown', 'queued']],
  // What smsbox answers with immediate-sendsms-reply, before bearerbox has the message.
  ['202 Sent.', ['unknown', 'not confirmed']],
  ['400 Number(s) has/have been denied by white- and/or black-lists.', ['recipient', 'denied number']],
  ['400 Sender missing and no global set, rejected', ['content', 'no sender']],
  ['400 Charset or body misformed, rejected', ['content', 'misformed body']],
  ['400 DLR-URL field misformed, rejected', ['content', 'misformed DLR-URL']],
  ['403 Authorization failed for sendsms', ['account', 'authorization failed']],
  // No smsc group may carry it, or one of bearerbox's own lists is against it.
  ['403 Not routable. Do not try again.', ['content', 'not routable']],
])

function outcomeOf(status: number, text: string): Outcome {
  if (status === 202 && text === '0: Accepted for delivery') return { kind: 'accepted' }
  const answer = answers.get(`${status} ${text}`)
  if (answer) return failure(...answer)
  return failure(status >= 200 && status < 300 ? 'unknown' : meaningOfStatus(status), `HTTP ${status}`)
}

/** X-Kannel-DLR-Mask: delivered 1, failed 2, buffered 4, taken by the SMSC 8, refused by it 16. */
const allReports = 31

/** The types of receipts. A failure may be told more closely, in a bit of its own (gw/dlr.h): expired 32, unknown 64. */
const statuses: ReadonlyMap<string, DeliveryReport['status']> = new Map([
  ['1', 'delivered'],
  ['2', 'failed'],
  ['4', 'pending'],
  ['8', 'pending'],
  ['16', 'failed'],
  ['34', 'failed'],
  ['66', 'failed'],
])

/**
 * The URL for Kannel to fill in: the type of the receipt, the first word of the SMSC's answer, and the SMSC's error number.
 * Not the whole of that answer (%A), since an SMPP receipt repeats the beginning of the text, and with it the code.
 */
function dlrUrl(callbackUrl: string): string {
  return `${callbackUrl.replaceAll('%', '%%')}?type=%d&answer=%k&error=%#smpp#dlr_err#`
}

function readCallback({ fields, url }: CallbackRequest): readonly DeliveryReport[] {
  const { type = '', answer = '' } = fields
  const status = statuses.get(type)
  if (!status) throw new Failure('validation_error', 'type must be one of Kannel')
  return [{ status, reason: status === 'failed' ? reasonOf(type, answer, url) : null }]
}

function reasonOf(type: string, answer: string, url: string): string {
  const [, nack = ''] = /^NACK\/(\w+)/.exec(answer) ?? []
  if (/^0x[0-9a-f]{8}$/.test(nack)) return nack
  if (type === '34' || nack === 'validity') return 'expired'
  if (nack === 'Retries') return 'retries exceeded'
  const error = networkError(url)
  return error === 0 ? `type ${type}` : `err ${error}`
}

/**
 * `dlr_err` is what SMPP calls a network error code: an octet for the kind of network, and two for the number, 0 where there
 * is none. They are no UTF-8, and so not to be had from the fields.
 */
function networkError(url: string): number {
  const [, encoded = ''] = /[?&]error=([^&#]*)/.exec(url) ?? []
  const octets = encoded
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return octets.length === 3 ? Buffer.from(octets, 'latin1').readUInt16BE(1) : 0
}

/** Values for TLVs by the names that Kannel's smpp-tlv groups give them; undefined where none is known. */
function metaData(values: Readonly<Record<string, string | null | undefined>>): string | undefined {
  const known = Object.entries(values).filter((pair): pair is [string, string] => Boolean(pair[1]))
  return known.length > 0 ? `?smpp?${new URLSearchParams(known)}` : undefined
}

function sendsmsUrl(value: string): string {
  if (!URL.canParse(value)) return value
  const url = new URL(value)
  if (url.pathname === '/') url.pathname = '/cgi-bin/sendsms'
  return url.href
}

function headerText(settings: Settings, name: string, value: string): string {
  if (!isPrintable(value)) settings.refuse(name, 'must be printable ASCII, since it becomes an HTTP header')
  return value
}

function tlvName(settings: Settings, name: string, usual: string): string {
  const value = settings.text(name, usual)
  if (!/^[A-Za-z0-9_-]+$/.test(value)) settings.refuse(name, 'must be of letters, digits, "_" and "-"')
  return value
}

function isPrintable(value: string): boolean {
  return /^[ -~]*$/.test(value)
}
