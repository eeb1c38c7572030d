import { declare, printable } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome } from '../../domain/ground/providers.ts'
import { call, meaningOfStatus } from './http.ts'
import { failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { segmentsOf } from './segments.ts'

const tlvName = [/^[A-Za-z0-9_-]+$/, 'must be of letters, digits, "_" and "-"'] as const

const kannelSettings = declare('Kannel', {
  KANNEL_URL: {
    format: 'https URL',
    secret: true,
    meaning:
      'The URL of the smsbox, such as `http://127.0.0.1:13013`. Without a path, otpost uses `/cgi-bin/sendsms`.',
  },
  KANNEL_USERNAME: {
    format: 'printable ASCII',
    valid: printable,
    secret: true,
    meaning: 'The user of a `sendsms-user` group.',
  },
  KANNEL_PASSWORD: {
    format: 'printable ASCII',
    valid: printable,
    secret: true,
    meaning: 'The password of that user.',
  },
  KANNEL_FROM: {
    format: 'printable ASCII',
    valid: printable,
    meaning: 'The sender: a phone number or a name.',
  },
  KANNEL_SMSC: {
    default: '',
    unset: 'unset: Kannel chooses',
    format: 'printable ASCII',
    valid: printable,
    meaning: 'The SMSC connection that Kannel must use.',
  },
  KANNEL_ENTITY_TLV: {
    default: 'PE_ID',
    format: 'letters, digits, `_` and `-`',
    valid: tlvName,
    meaning: 'The name of the TLV for the entity id of the brand, as in the `smpp-tlv` group of Kannel.',
  },
  KANNEL_TEMPLATE_TLV: {
    default: 'TEMPLATE_ID',
    format: 'letters, digits, `_` and `-`',
    valid: tlvName,
    meaning: 'The name of the TLV for the id of the registered template.',
  },
})

/** Kannel 1.4.5 User's Guide, "Extended headers": these keep password and text out of URLs. */
export const kannel: SmsProviderSpec = {
  name: 'kannel',
  routes: ['plain', 'template'],
  settings: kannelSettings,
  configure(settings) {
    const why = 'the SMS provider kannel needs it'
    const url = sendsmsUrl(settings.serviceUrl(kannelSettings.KANNEL_URL, why))
    const username = settings.required(kannelSettings.KANNEL_USERNAME, why)
    const password = settings.required(kannelSettings.KANNEL_PASSWORD, why)
    const from = settings.required(kannelSettings.KANNEL_FROM, why)
    const smsc = settings.text(kannelSettings.KANNEL_SMSC)
    const entityTlv = settings.text(kannelSettings.KANNEL_ENTITY_TLV)
    const templateTlv = settings.text(kannelSettings.KANNEL_TEMPLATE_TLV)
    return () => ({
      name: 'kannel',
      endpoint: url,
      async send({ to, text, template, senderId, validitySeconds, callbackUrl }, timeoutMs) {
        // A space would separate several recipients.
        if (!/^[0-9]+$/.test(to)) return failure('recipient', 'not digits')
        const tlvs = metaData({ [entityTlv]: template?.entityId, [templateTlv]: template?.id })
        const validityMinutes = validitySeconds === null ? null : Math.ceil(validitySeconds / 60)
        const headers = {
          'content-type': 'text/plain; charset=utf-8',
          'x-kannel-username': username,
          'x-kannel-password': password,
          'x-kannel-from': senderId ?? from,
          'x-kannel-to': to,
          // By default Kannel sends GSM-7, with question marks for other characters.
          'x-kannel-coding': segmentsOf(text).encoding === 'UCS-2' ? '2' : '0',
          ...(smsc === '' ? {} : { 'x-kannel-smsc': smsc }),
          ...(validityMinutes === null ? {} : { 'x-kannel-validity': String(validityMinutes) }),
          ...(tlvs === undefined ? {} : { 'x-kannel-meta-data': tlvs }),
          ...(callbackUrl === null
            ? {}
            : { 'x-kannel-dlr-mask': String(allReports), 'x-kannel-dlr-url': dlrUrl(callbackUrl) }),
        }
        if (!Object.values(headers).every((value) => printable[0].test(value)))
          return failure('content', 'unprintable header')
        return call(url, { headers, body: text }, timeoutMs, outcomeOf)
      },
      deliveryReports: { namedBy: 'attempt', read: readCallback },
    })
  },
}

/** Responses whose status alone is ambiguous, by status and text. */
const answers: ReadonlyMap<string, readonly [meaning: Meaning, reason: string]> = new Map([
  // The SMSC is disconnected. Kannel sends the message after a reconnect, while it is valid.
  ['202 3: Queued for later delivery', ['unknown', 'queued']],
  // With immediate-sendsms-reply smsbox answers before bearerbox has the message.
  ['202 Sent.', ['unknown', 'not confirmed']],
  ['400 Number(s) has/have been denied by white- and/or black-lists.', ['recipient', 'denied number']],
  ['400 Sender missing and no global set, rejected', ['content', 'no sender']],
  ['400 Charset or body misformed, rejected', ['content', 'misformed body']],
  ['400 DLR-URL field misformed, rejected', ['content', 'misformed DLR-URL']],
  ['403 Authorization failed for sendsms', ['account', 'authorization failed']],
  ['403 Not routable. Do not try again.', ['content', 'not routable']],
])

function outcomeOf(status: number, body: string): Outcome {
  const text = body.trim()
  if (status === 202 && text === '0: Accepted for delivery') return { kind: 'accepted' }
  const answer = answers.get(`${status} ${text}`)
  if (answer) return failure(...answer)
  return failure(status >= 200 && status < 300 ? 'unknown' : meaningOfStatus(status), `HTTP ${status}`)
}

/** X-Kannel-DLR-Mask: delivered 1, failed 2, buffered 4, accepted by the SMSC 8, rejected by it 16. */
const allReports = 31

/** A bit of the mask; a failure may have another bit (gw/dlr.h): expired 32, unknown 64. */
const statuses = wordTable<DeliveryReport['status']>({ delivered: '1', failed: '2 16 34 66', pending: '4 8' })

/** Not the SMSC's whole answer (%A): an SMPP report repeats the text, and with it the code. */
function dlrUrl(callbackUrl: string): string {
  return `${callbackUrl.replaceAll('%', '%%')}?type=%d&answer=%k&error=%#smpp#dlr_err#`
}

function readCallback({ fields, url }: CallbackRequest): readonly DeliveryReport[] {
  const { type = '', answer = '' } = fields
  const status = statuses.get(type)
  if (!status) throw invalid('`type` must be a delivery report type of Kannel.')
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

/** `dlr_err`: one octet of network type, two of error number (0: none). Not UTF-8, so not in `fields`. */
function networkError(url: string): number {
  const [, encoded = ''] = /[?&]error=([^&#]*)/.exec(url) ?? []
  const octets = encoded
    .replaceAll('+', ' ')
    .replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return octets.length === 3 ? Buffer.from(octets, 'latin1').readUInt16BE(1) : 0
}

/** By their names in Kannel's smpp-tlv groups. */
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
