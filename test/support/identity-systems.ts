import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Answer } from './app.ts'
import { type AddedRelay, basic } from './relay.ts'

/** An identity system as a relay sees it: its bytes, its proof, and what it makes of an answer. Read in its own source. */
export interface IdentitySystem {
  /** Undefined: otpost makes the secret. */
  readonly ownSecret?: string
  /** A request that sends the code to the digits. */
  body(code: string, digits: string): string
  /** Headers of a request at this time. Several secrets: it has a new one beside the former. */
  proof(of: AddedRelay, body: string, at: number, ...others: readonly string[]): Record<string, string>
  /** `sent`, or its own error. */
  seen(answer: Answer): string
}

const json = { 'content-type': 'application/json' }

/** Go escapes these in strings. */
export function goJson(value: object): string {
  return JSON.stringify(value).replace(
    /[<>&]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** supabase/auth, internal/hooks: v0hooks.go and hookshttp.go. */
export function supabaseUser(fields: object = {}): object {
  return {
    id: '6481a5c1-3d37-4a56-9f6a-bee08c554965',
    aud: 'authenticated',
    role: 'authenticated',
    email: '',
    phone: '12025550143',
    confirmation_sent_at: '2026-01-01T11:58:00Z',
    app_metadata: { provider: 'phone', providers: ['phone'] },
    user_metadata: { name: 'A & B' },
    identities: [],
    created_at: '2026-01-01T11:58:00Z',
    updated_at: '2026-01-01T11:58:00Z',
    is_anonymous: false,
    ...fields,
  }
}

export function supabaseMetadata(
  name: 'send-sms' | 'send-email',
  uuid: string = crypto.randomUUID(),
): object {
  return { uuid, time: '2026-01-01T12:00:00.123456789Z', name, ip_address: '203.0.113.7' }
}

const supabase: IdentitySystem = {
  body: (otp, phone) =>
    goJson({ metadata: supabaseMetadata('send-sms'), user: supabaseUser(), sms: { otp, phone } }),
  proof: ({ secret = '' }, body, at, ...others) => {
    const id = crypto.randomUUID()
    const signatures = [secret, ...others].map((each) =>
      new Webhook(each.replace(/^v1,/, '')).sign(id, new Date(at), body),
    )
    return {
      ...json,
      'accept-encoding': 'identity',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at / 1000)),
      'webhook-signature': signatures.join(', '),
    }
  },
  seen: ({ status, headers, body }) => {
    if (status === 204) return 'sent'
    if (status === 200 || status === 202) {
      if (!headers.get('content-type')?.startsWith('application/json')) return '400 Invalid JSON response'
      return body.error?.message ? `${body.error.http_code || 500}` : 'sent'
    }
    if (status === 429 || status === 503)
      return headers.has('retry-after') ? 'repeated at once' : '500 Service currently unavailable due to hook'
    if (status === 400) return '500 Invalid payload sent to hook'
    if (status === 401) return '500 Hook requires authorization token'
    return `500 Unexpected status code returned from hook: ${status}`
  },
}

/** zitadel/zitadel: pkg/actions/signing.go, internal/notification/types and channels/webhook; a request captured from 4.15. */
const zitadel: IdentitySystem = {
  ownSecret: 'h3Kf0yC1vJ8sQ2mZ5xW7bN4tR6uP9aLd',
  body: (oTP, digits) =>
    goJson({
      contextInfo: {
        eventType: 'session.otp.sms.challenged',
        provider: { id: '376748582390204677', description: 'otpost' },
        recipientPhoneNumber: `+${digits}`,
      },
      templateData: {
        title: 'VerifySMSOTP.Title',
        text: `${oTP} is your one-time password for a.example. It is valid for 5m0s.\n@a.example #${oTP}`,
        subject: 'VerifySMSOTP.Subject',
      },
      args: {
        code: oTP,
        oTP,
        lastPhone: `+${digits}`,
        loginName: 'a@b.example',
        verifiedPhone: `+${digits}`,
      },
    }),
  proof: ({ secret = '' }, body, at, ...others) => {
    const seconds = Math.floor(at / 1000)
    const signatures = [secret, ...others].map(
      (each) => `v1=${createHmac('sha256', each).update(`${seconds}.${body}`).digest('hex')}`,
    )
    return { ...json, 'zitadel-signature': [`t=${seconds}`, ...signatures].join(',') }
  },
  seen: ({ status }) =>
    status >= 200 && status < 300 ? 'sent' : `webhook didn't return a success status: ${status}`,
}

/** logto-io/logto: packages/connectors/connector-http-sms and koa-connector-error-handler.ts. */
const logto: IdentitySystem = {
  body: (code, digits) =>
    JSON.stringify({
      to: `+${digits}`,
      type: 'SignIn',
      payload: { code, locale: 'en-US', uiLocales: 'en-US en' },
      ip: '203.0.113.7',
    }),
  proof: ({ secret = '' }) => ({ ...json, authorization: `Bearer ${secret}` }),
  seen: ({ status, body }) =>
    status >= 200 && status < 300 ? 'sent' : `connector.general ${body.error ?? body}`,
}

/** authgear/authgear-server: pkg/lib/infra/sms/custom and smsapi, pkg/lib/hook. */
const authgear: IdentitySystem = {
  ownSecret: 'AUTHGEARwebhookSECRETof32letters',
  body: (code, digits) =>
    goJson({
      to: `+${digits}`,
      body: `${code} is your My & App verification code.`,
      app_id: 'myapp',
      template_name: 'verification_sms.txt',
      language_tag: 'en',
      template_variables: { app_name: 'My & App', code },
    }),
  proof: ({ secret = '' }, body) => ({
    ...json,
    'x-authgear-body-signature': createHmac('sha256', secret).update(body).digest('hex'),
  }),
  seen: ({ status, body }) => {
    if (typeof body !== 'object') return status >= 200 && status < 300 ? 'sent' : 'UnexpectedError'
    const errors: Readonly<Record<string, string>> = {
      ok: 'sent',
      invalid_phone_number: 'SMSGatewayInvalidPhoneNumber',
      rate_limited: 'SMSGatewayRateLimited',
      unsupported_request: 'SMSGatewayUnsupportedRequest',
      authentication_failed: 'SMSGatewayAuthenticationFailed',
      delivery_rejected: 'SMSGatewayDeliveryRejected',
      timeout: 'SMSGatewayTimeout',
    }
    return errors[body.code] ?? 'UnexpectedError'
  },
}

/** goauthentik/authentik: authentik/stages/authenticator_sms/models.py. */
const authentik: IdentitySystem = {
  body: (token, digits) =>
    JSON.stringify({
      From: 'authentik',
      To: `+${digits}`,
      Body: token,
      Message: `Use this code to authenticate in authentik: ${token}`,
    }),
  proof: ({ user, secret }) => ({ ...json, authorization: basic(user, secret) }),
  seen: ({ status, body }) => (status >= 400 ? `ValidationError ${body.error ?? body}` : 'sent'),
}

export const identitySystems = { supabase, zitadel, logto, authgear, authentik }

export type IdentitySystemName = keyof typeof identitySystems
