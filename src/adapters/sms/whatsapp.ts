import { createHmac } from 'node:crypto'
import { declare, printable } from '../../config/setting.ts'
import type { Meaning } from '../../domain/delivery/provider-codes.ts'
import { Failure, invalid } from '../../domain/ground/failures.ts'
import type { CallbackRequest, DeliveryReport, Outcome, Sms } from '../../domain/ground/providers.ts'
import { isSame, sha256 } from '../crypto/secrets.ts'
import { call, meaningOfStatus } from './http.ts'
import { apiUrl, failure, type SmsProviderSpec, wordTable } from './provider.ts'
import { fieldsOf, reportJson } from './reading.ts'

export const whatsappSettings = declare('WhatsApp', {
  WHATSAPP_PHONE_NUMBER_ID: {
    unset: 'unset',
    format: 'digits',
    valid: [/^[0-9]{1,30}$/, 'must be the ID of the phone number at Meta, which has only digits'],
    meaning: 'The ID of your phone number at Meta. It turns on the way `whatsapp`.',
  },
  WHATSAPP_ACCESS_TOKEN: {
    format: 'printable ASCII',
    valid: printable,
    secret: true,
    meaning: 'The access token of a system user.',
  },
  WHATSAPP_APP_SECRET: {
    format: 'text',
    secret: true,
    meaning: 'The app secret. otpost rejects delivery reports that it does not sign.',
  },
  WHATSAPP_VERIFY_TOKEN: {
    format: 'text',
    secret: true,
    meaning: 'The verify token of the webhook, a text of your choice.',
  },
  WHATSAPP_TEMPLATE: {
    format: 'template name',
    valid: [/^[a-z0-9_]{1,512}$/, 'must be a template name of lower-case letters, digits and underscores'],
    meaning: 'The name of the authentication template, which has a copy code button.',
  },
  WHATSAPP_BASE_URL: {
    default: 'https://graph.facebook.com/v26.0',
    ...apiUrl,
    meaning: 'The URL of the API, with its version.',
  },
})

/** "WhatsApp error codes", of answers and of delivery reports. */
const codes = wordTable<Meaning>({
  recipient: '130472 131021 131026 131049 131050',
  content: `
    100 130497 131008 131009 131030 131047 131051 131055
    132000 132001 132005 132007 132012 132015 132016 132018 132068 132069 134101 134102 135000
  `,
  account: '0 3 10 33 190 200 368 131005 131031 131037 131042 131045 131048 133006 133010 133015',
  retryable: '2 4 80007 130429 131016 131056 131057 133004',
  unknown: '1 131000',
})

/** Cloud API: codes by an authentication template, notifications by the template that is registered for them. */
export const whatsapp: SmsProviderSpec = {
  name: 'whatsapp',
  routes: ['whatsapp', 'template'],
  settings: whatsappSettings,
  codes: {
    meanings: codes,
    page: () =>
      'https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes/',
  },
  configure(settings) {
    const why = 'the provider whatsapp needs it'
    const numberId = settings.required(whatsappSettings.WHATSAPP_PHONE_NUMBER_ID, why)
    const token = settings.required(whatsappSettings.WHATSAPP_ACCESS_TOKEN, why)
    const appSecret = settings.required(whatsappSettings.WHATSAPP_APP_SECRET, why)
    const verifyToken = settings.required(whatsappSettings.WHATSAPP_VERIFY_TOKEN, why)
    const codeTemplate = settings.required(whatsappSettings.WHATSAPP_TEMPLATE, why)
    const url = `${settings.baseUrl(whatsappSettings.WHATSAPP_BASE_URL)}/${numberId}/messages`
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return ({ now }) => {
      /** Templates and languages that the account lacks, and until when they are not tried. */
      const missing = new Map<string, number>()
      const isMissing = (template: string) => (missing.get(template) ?? 0) > now()
      return {
        name: 'whatsapp',
        endpoint: url,
        async send(sms, timeoutMs) {
          const name = templateNameOf(sms, codeTemplate)
          if (name === undefined) return { ...failure('content', 'no template name'), notCalled: true }
          const giveUpAt = performance.now() + timeoutMs
          const all = languagesOf(sms)
          const known = all.filter((language) => !isMissing(`${name} ${language}`))
          let last: Outcome = { kind: 'retryable', reason: 'no time left', notCalled: true }
          for (const language of known.length > 0 ? known : all) {
            const leftMs = giveUpAt - performance.now()
            if (leftMs <= 0) break
            const body = JSON.stringify(requestOf(sms, name, language))
            last = await call(url, { headers, body }, leftMs, outcomeOf)
            if (last.kind === 'accepted') return { ...last, lang: language.replace('_', '-') }
            if (last.kind !== 'rejected' || last.reason !== noSuchTemplate) break
            missing.set(`${name} ${language}`, now() + missingMs)
          }
          return last
        },
        deliveryReports: {
          namedBy: 'providerMessageId',
          read: (call) =>
            call.body.length === 0
              ? readChallenge(call, verifyToken)
              : readStatuses(call, appSecret, numberId),
          answer: ({ fields, body }) => (body.length === 0 ? fields['hub.challenge'] : undefined),
        },
      }
    }
  },
}

/** "Template does not exist in the language". */
const noSuchTemplate = '132001'
const missingMs = 300_000

/** Undefined: a notification that has no name at WhatsApp. An ID of digits is that of India's DLT. */
function templateNameOf({ code, template }: Sms, codeTemplate: string): string | undefined {
  const id = template?.id ?? ''
  if (/^(?=.*[a-z_])[a-z0-9_]+$/.test(id)) return id
  return code === null ? undefined : codeTemplate
}

/** "Supported languages". */
const supported: ReadonlySet<string> = new Set(
  `af sq ar az bn bg ca hr cs da nl en en_GB en_US et fil fi fr ka de el gu ha he hi hu id ga it ja kn kk rw_RW
  ko ky_KG lo lv lt mk ms ml mr nb fa pl pt_BR pt_PT pa ro ru sr sk sl es es_AR es_ES es_MX sw sv ta te th tr uk ur
  uz vi zh_CN zh_HK zh_TW zu`.split(/\s+/),
)

/** In order: those of the request, that of the text. English is the last resort of a code, whose text is Meta's. */
function languagesOf({ askedLang, lang = 'en', code }: Sms): readonly string[] {
  const asked = code === null || askedLang === undefined ? [] : askedLang.split(',')
  const own = [...asked, lang].flatMap((tag) => {
    const { language, region } = new Intl.Locale(tag)
    return [`${language}_${region}`, language, `${language}_${new Intl.Locale(tag).maximize().region}`]
  })
  const all = new Set([...own, ...(code === null ? [] : ['en', 'en_US'])])
  return [...all].filter((each) => supported.has(each))
}

function requestOf({ to, code, template }: Sms, name: string, language: string) {
  // The brand's name is fixed text of a registered template.
  const { businessName: _, ...values } = template?.values ?? template?.variables ?? {}
  const given = code === null ? Object.values(values) : [code]
  const parameters = given.map((text) => ({ type: 'text', text }))
  const body = { type: 'body', parameters }
  const button = { type: 'button', sub_type: 'url', index: '0', parameters }
  return {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: `+${to}`,
    type: 'template',
    template: {
      name,
      language: { policy: 'deterministic', code: language },
      components: code !== null ? [body, button] : given.length > 0 ? [body] : [],
    },
  }
}

/** A message ID of WhatsApp contains the number, so that the log has its hash. */
function outcomeOf(status: number, text: string): Outcome {
  const { messages, error } = fieldsOf(text)
  const { id } = Object([messages].flat()[0])
  if (status >= 200 && status < 300 && error === undefined) {
    return typeof id === 'string' && id !== ''
      ? { kind: 'accepted', providerMessageId: sha256(id) }
      : failure('unknown', 'unreadable answer')
  }
  const code = codeOf(error)
  if (code === undefined) return failure(meaningOfStatus(status), `HTTP ${status}`)
  return failure(codes.get(code) ?? meaningOfStatus(status), code)
}

function codeOf(error: unknown): string | undefined {
  const { code } = Object(error)
  return typeof code === 'number' && /^[0-9]{1,7}$/.test(String(code)) ? String(code) : undefined
}

/** Meta verifies the URL of a webhook by a GET, and expects the text of `hub.challenge`. */
function readChallenge({ fields }: CallbackRequest, verifyToken: string): readonly DeliveryReport[] {
  if (!isSame(fields['hub.verify_token'] ?? '', verifyToken)) {
    throw new Failure('forbidden', 'The verify token is not WHATSAPP_VERIFY_TOKEN.')
  }
  if (fields['hub.mode'] !== 'subscribe' || !/^[\w-]{1,200}$/.test(fields['hub.challenge'] ?? '')) {
    throw invalid('`hub.mode` must be `subscribe`, and `hub.challenge` is required.')
  }
  return []
}

const statuses = wordTable({ delivered: 'delivered read played', failed: 'failed' })

/** "Status messages webhook reference". Other fields and other numbers of the account come to the same URL. */
function readStatuses(
  { headers, body }: CallbackRequest,
  appSecret: string,
  numberId: string,
): readonly DeliveryReport[] {
  const expected = `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`
  if (!isSame(headers['x-hub-signature-256'] ?? '', expected)) {
    throw new Failure('forbidden', 'The signature is wrong.')
  }
  const { object, entry } = Object(reportJson(body))
  if (object !== 'whatsapp_business_account' || !Array.isArray(entry)) {
    throw invalid('The request must be a webhook of a WhatsApp business account.')
  }
  return entry
    .flatMap((each) => [Object(each).changes].flat())
    .map((change) => Object(Object(change).value))
    .filter(({ metadata }) => Object(metadata).phone_number_id === numberId)
    .flatMap(({ statuses: each }) => [each].flat().flatMap(reportsOf))
}

function reportsOf(about: unknown): readonly DeliveryReport[] {
  const { id, status, errors } = Object(about)
  if (typeof id !== 'string' || typeof status !== 'string') return []
  const known = statuses.get(status) ?? 'pending'
  const reason = known === 'failed' ? (codeOf([errors].flat()[0]) ?? status) : null
  return [{ providerMessageId: sha256(id), status: known, reason }]
}
