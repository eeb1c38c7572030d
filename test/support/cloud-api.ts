import { createHmac, randomBytes } from 'node:crypto'
import { type ProviderCall, startProviderDouble } from './provider-server.ts'

// WhatsApp's Cloud API in place of Meta. A message must have what the schemas BaseMessageProperties, TemplateObject,
// LanguageObject, TemplateComponent, ButtonComponent and TextParameter of business-messaging-api_v23.0.yaml
// (github.com/facebook/openapi) require; the answer is MessageResponsePayload. Webhooks are as in "Status messages webhook
// reference" and "Webhooks setup" of Meta's documentation.

export const cloudApi = {
  numberId: '106540352242922',
  token: 'canary-whatsapp+access/token=',
  appSecret: 'canary-whatsapp+app/secret=&%',
  verifyToken: 'canary-whatsapp+verify/token=&%',
  template: 'acme_code',
}

/** The settings that lead to it. */
export function cloudApiEnv(url: string): Record<string, string> {
  return {
    WHATSAPP_PHONE_NUMBER_ID: cloudApi.numberId,
    WHATSAPP_ACCESS_TOKEN: cloudApi.token,
    WHATSAPP_APP_SECRET: cloudApi.appSecret,
    WHATSAPP_VERIFY_TOKEN: cloudApi.verifyToken,
    WHATSAPP_TEMPLATE: cloudApi.template,
    WHATSAPP_BASE_URL: `${url}/v26.0`,
  }
}

/** An error as "Error response syntax" has it. Its texts contain what no log may have. */
export function cloudError(code: number, status = 400): Response {
  const details = 'Canary: +919812345678, 123456'
  const error = {
    message: `(#${code}) ${details}`,
    type: 'OAuthException',
    code,
    error_data: { messaging_product: 'whatsapp', details },
    fbtrace_id: 'AbCdEfGhIjKlMnOpQrStUv',
  }
  return Response.json({ error }, { status })
}

/** A message in a call. */
export interface CloudMessage {
  readonly to: string
  readonly template: string
  readonly language: string
  readonly body: readonly string[]
  /** Of the copy code button. */
  readonly button: readonly string[]
  /** The message ID in the answer, in which Meta encodes the number. */
  readonly id: string
}

/** @param templates of the account: their languages, and the number of their body parameters */
export function startCloudApi(
  templates: Readonly<Record<string, { readonly languages: readonly string[]; readonly values: number }>>,
) {
  const problems: string[] = []
  const messages: CloudMessage[] = []
  const usual = (): Response => {
    const call = double.received.at(-1)
    try {
      const message = readMessage(call)
      const known = templates[message.template]
      if (!known?.languages.includes(message.language)) return cloudError(132001, 404)
      if (known.values !== message.body.length) return cloudError(132000)
      messages.push(message)
      return Response.json({
        messaging_product: 'whatsapp',
        contacts: [{ input: message.to, wa_id: message.to.slice(1) }],
        messages: [{ id: message.id, message_status: 'accepted' }],
      })
    } catch (error) {
      problems.push(String(error))
      return cloudError(100)
    }
  }
  const double = startProviderDouble(usual)
  return { ...double, usual, problems, messages }
}

function readMessage(call: ProviderCall | undefined): CloudMessage {
  const { method, path, headers, body } = call ?? {}
  must(method === 'POST' && path === `/v26.0/${cloudApi.numberId}/messages`, `${method} ${path}`)
  must(headers?.get('authorization') === `Bearer ${cloudApi.token}`, 'authorization')
  must(headers?.get('content-type') === 'application/json', 'content-type')
  const { messaging_product: product, recipient_type: kind, to, type, template, ...rest } = parsed(body)
  must(product === 'whatsapp' && kind === 'individual' && type === 'template', 'the kind of message')
  must(/^\+[1-9][0-9]{6,14}$/.test(to), 'to')
  must(Object.keys(rest).length === 0, `fields ${Object.keys(rest)}`)
  const { name, language, components } = Object(template)
  must(/^[a-z0-9_]{1,512}$/.test(name), 'template.name')
  must(language.policy === 'deterministic' && typeof language.code === 'string', 'template.language')
  must(Array.isArray(components), 'template.components')
  const texts = (wanted: string) =>
    components
      .filter((each: { type: unknown }) => each.type === wanted)
      .flatMap(({ parameters }: { parameters: unknown }) => textsOf(parameters))
  for (const each of components) {
    must(['header', 'body', 'button'].includes(each.type), 'the type of a component')
    if (each.type !== 'button') continue
    must(['quick_reply', 'url', 'catalog'].includes(each.sub_type), 'sub_type')
    must(/^[0-9]$/.test(each.index) && each.parameters.length > 0, 'index and parameters of a button')
  }
  const id = `wamid.${Buffer.from(`\x1c\x18\x0c${to.slice(1)}\x15\x02${randomBytes(9).toString('hex')}`).toString('base64')}`
  return {
    to,
    template: name,
    language: language.code,
    body: texts('body'),
    button: texts('button'),
    id,
  }
}

function textsOf(parameters: unknown): string[] {
  must(Array.isArray(parameters), 'parameters')
  return (parameters as { type: unknown; text: unknown }[]).map(({ type, text }) => {
    must(type === 'text' && typeof text === 'string' && text.length <= 32_768, 'a parameter')
    return String(text)
  })
}

// biome-ignore lint/suspicious/noExplicitAny: the checks look at it.
function parsed(body: string | undefined): any {
  return JSON.parse(body ?? '')
}

function must(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`wrong: ${what}`)
}

/** A status of a message. */
export function cloudStatus({ id, to }: Pick<CloudMessage, 'id' | 'to'>, status: string, code?: number) {
  const error = { code, title: 'Message undeliverable', message: 'Message undeliverable' }
  return {
    id,
    status,
    timestamp: '1750030073',
    recipient_id: to.slice(1),
    ...(code === undefined
      ? { pricing: { billable: true, pricing_model: 'PMP', category: 'authentication', type: 'regular' } }
      : { errors: [{ ...error, error_data: { details: `Canary ${to}` } }] }),
  }
}

/** The body of a webhook with these statuses. */
export function cloudWebhook(statuses: readonly object[], numberId = cloudApi.numberId) {
  const metadata = { display_phone_number: '15550783881', phone_number_id: numberId }
  const value = { messaging_product: 'whatsapp', metadata, statuses }
  return {
    object: 'whatsapp_business_account',
    entry: [{ id: '102290129340398', changes: [{ value, field: 'messages' }] }],
  }
}

export function cloudSigned(body: unknown, secret = cloudApi.appSecret) {
  const raw = typeof body === 'string' ? body : JSON.stringify(body)
  const signature = createHmac('sha256', secret).update(raw).digest('hex')
  return {
    headers: { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` },
    body: raw,
  }
}
