import { createHash, createHmac, randomBytes } from 'node:crypto'
import { type ProviderCall, startProviderDouble } from './provider-server.ts'

// Telegram's Gateway API in place of Telegram, as core.telegram.org/gateway/api describes `sendVerificationMessage`, RequestStatus,
// DeliveryStatus and "Report delivery".

export const telegramToken = 'canary-telegram+api/token=&%'

/** The settings that lead to it. */
export function telegramEnv(url: string): Record<string, string> {
  return { TELEGRAM_TOKEN: telegramToken, TELEGRAM_BASE_URL: url }
}

/** A message in a call. */
export interface TelegramMessage {
  readonly phone_number: string
  readonly code: string
  readonly ttl?: number
  readonly callback_url?: string
  readonly payload: string
  /** In the answer. */
  readonly request_id: string
}

export function startTelegramGateway() {
  const problems: string[] = []
  const messages: TelegramMessage[] = []
  const double = startProviderDouble(() => {
    try {
      const message = readMessage(double.received.at(-1))
      messages.push(message)
      const { request_id, phone_number, payload } = message
      const result = { request_id, phone_number, request_cost: 0.01, remaining_balance: 9.99, payload }
      return Response.json({ ok: true, result })
    } catch (error) {
      problems.push(String(error))
      return Response.json({ ok: false, error: 'BAD_REQUEST' }, { status: 400 })
    }
  })
  return { ...double, problems, messages }
}

function readMessage(call: ProviderCall | undefined): TelegramMessage {
  const { method, path, headers, body = '' } = call ?? {}
  // `checkSendAbility` is billed.
  must(method === 'POST' && path === '/sendVerificationMessage', `${method} ${path}`)
  must(headers?.get('authorization') === `Bearer ${telegramToken}`, 'authorization')
  must(headers?.get('content-type') === 'application/json', 'content-type')
  const { phone_number, code, ttl, callback_url, payload, ...rest } = JSON.parse(body)
  must(/^\+[1-9][0-9]{6,14}$/.test(phone_number), 'phone_number')
  must(/^[0-9]{4,8}$/.test(code), 'code')
  must(ttl === undefined || (Number.isInteger(ttl) && ttl >= 30 && ttl <= 3600), 'ttl')
  must(callback_url === undefined || /^https:\S{1,250}$/.test(callback_url), 'callback_url')
  must(typeof payload === 'string' && payload.length <= 128, 'payload')
  must(Object.keys(rest).length === 0, `fields ${Object.keys(rest)}`)
  return { phone_number, code, ttl, callback_url, payload, request_id: randomBytes(8).toString('hex') }
}

function must(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`wrong: ${what}`)
}

/** The body of a report. */
export function telegramReport(
  { request_id, phone_number, payload }: Pick<TelegramMessage, 'request_id' | 'phone_number' | 'payload'>,
  status: string,
  more: object = {},
) {
  const delivery_status = { status, updated_at: 1_767_268_800 }
  return { request_id, phone_number, request_cost: 0.01, delivery_status, payload, ...more }
}

/** @param at epoch milliseconds */
export function telegramSigned(body: unknown, at: number, token = telegramToken) {
  const raw = typeof body === 'string' ? body : JSON.stringify(body)
  const timestamp = String(Math.floor(at / 1000))
  const key = createHash('sha256').update(token).digest()
  const signature = createHmac('sha256', key).update(`${timestamp}\n${raw}`).digest('hex')
  return {
    headers: {
      'content-type': 'application/json',
      'x-request-timestamp': timestamp,
      'x-request-signature': signature,
    },
    body: raw,
  }
}
