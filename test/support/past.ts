import type { Context } from '../../src/context.ts'
import type { MessageReport } from '../../src/domain/delivery/delivery-reports.ts'
import { type Channel, mask, type Recipient } from '../../src/domain/ground/contact.ts'
import { createEventLog } from '../../src/domain/log/event-log-writer.ts'
import { issueApp, rotateApp } from '../../src/domain/operator/apps.ts'
import { brandSetStatus, putBrand } from '../../src/domain/operator/brands.ts'
import {
  type Attempt,
  type LimitStatus,
  newRequestContext,
  type RequestContext,
} from '../../src/domain/request/request-context.ts'
import { operate, tester } from './operator.ts'

/** A past for pages and reports: the records that a service of some brands and providers would have in its event log. */
export interface Past {
  /** Epoch milliseconds. */
  readonly from: number
  readonly until: number
  /** The maximum number of sends in a period: fewer by night than by day. */
  readonly sends: number
}

const brands = [
  { slug: 'acme', app: 'shop', share: 0.62 },
  { slug: 'globex', app: 'globex-app', share: 0.27 },
  { slug: 'initech', app: 'till', share: 0.11 },
] as const
const [acme, globex, initech] = brands

const dayMs = 86_400_000

/** Whole numbers that look like chance and are the same in every run (xorshift32). */
function chance(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

/** Sets up what an operator has by then: three brands and one suspended, their apps, requests decided and waiting. */
export async function setUp(context: Context): Promise<void> {
  const ports = context.acting(tester)
  const app = { app: { context } }
  await putBrand(ports, 'acme', {
    displayName: 'Acme',
    notifyTemplates: ['ORDER_PLACED', 'OUT_FOR_DELIVERY', 'ORDER_DELIVERED'],
    loginIdEnabled: true,
    domain: 'shop.acme.example',
  })
  const registered = { ids: ['1107160000000000042'], senderId: 'ACMEIN' }
  await operate(app, 'brand template', { slug: 'acme', key: 'LOGIN_OTP', ...registered })
  await putBrand(ports, 'initech', { displayName: 'Initech', notifyTemplates: ['ORDER_PLACED'] })
  await putBrand(ports, 'umbrella', { displayName: 'Umbrella' })
  await brandSetStatus.run(ports, { slug: 'umbrella', status: 'suspended' })
  await issueApp(ports, 'shop')
  await rotateApp(ports, 'shop')
  await issueApp(ports, 'till')

  const asked = [
    {
      companyName: 'Globex Corporation',
      contactName: 'Hank Doe',
      contactEmail: 'hank@globex.example',
      brandName: 'Globex',
      website: 'https://globex.example',
      useCase: 'Codes for logging in, by SMS and e-mail.',
    },
    {
      companyName: 'Vandelay Industries',
      contactName: 'Art Doe',
      contactEmail: 'art@vandelay.example',
      brandName: 'Vandelay',
      website: null,
      useCase: null,
    },
    {
      companyName: 'Stark Flowers',
      contactName: 'Pepper Doe',
      contactEmail: 'pepper@stark.example',
      brandName: 'Stark Flowers',
      website: 'https://stark.example/shop',
      useCase: 'We deliver flowers and want to notify our customers when they are on their way.',
    },
  ] as const
  const ids: string[] = []
  for (const [index, request] of asked.entries()) {
    const id = context.secrets.newId()
    const channels: Channel[] = index === 1 ? ['SMS'] : ['SMS', 'EMAIL']
    const createdAt = context.now() - (3 - index) * 3 * 3_600_000
    await context.requests.add({ ...request, id, createdAt, channels }, 1000)
    ids.push(id)
  }
  const [first = '', second = ''] = ids
  await operate(app, 'request approve', { id: first, appId: 'globex-app', brandSlug: 'globex' })
  await operate(app, 'request reject', { id: second, reason: 'There is no contract with them yet.' })
}

/** Simulates a past: sends, failures, limits, delivery reports, verifications, notifications and mails, day by day. */
export async function livePast(context: Context, { from, until, sends }: Past, seed = 7): Promise<void> {
  const random = chance(seed)
  const eventLog = createEventLog(context.eventLog)
  const deliveryReports = new Map<string, MessageReport[]>()
  const digits = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join('')
  const pick = () => {
    const value = random()
    return value < acme.share ? acme : value < acme.share + globex.share ? globex : initech
  }
  const attemptOf = (
    at: number,
    attempt: number,
    to: { readonly channel: Channel; readonly recipient: string; readonly recipientHash: string },
    provider: string,
    outcome: 'accepted' | 'retryable' | 'unknown',
    template: string,
  ): Attempt => {
    const isReported = outcome === 'accepted' && to.channel === 'SMS'
    return {
      attempt,
      at,
      channel: to.channel,
      route: to.channel === 'SMS' ? 'plain' : null,
      provider,
      template: to.channel === 'SMS' ? template : null,
      lang: 'en',
      recipient: to.recipient,
      position: null,
      recipientHash: to.recipientHash,
      segments: to.channel === 'SMS' ? { count: 1, encoding: 'GSM-7' } : null,
      country: to.channel === 'SMS' ? 'US' : null,
      cost: null,
      outcome,
      errorClass: outcome === 'accepted' ? null : outcome,
      reason: outcome === 'retryable' ? 'HTTP 503' : outcome === 'unknown' ? 'time-out' : null,
      providerMessageId: isReported ? (provider === 'twilio' ? `SM${digits(32)}` : digits(16)) : null,
      reportKey: isReported ? `${provider}:${digits(32)}` : null,
      durationMs: outcome === 'unknown' ? 4000 : 90 + Math.floor(random() * 400),
    }
  }
  const tell = (
    at: number,
    request: Partial<RequestContext>,
    { status = 200, error }: { status?: number; error?: string } = {},
  ) => {
    if (at > until) return
    const id = Bun.randomUUIDv7('hex', at)
    const asked = request.attempts?.reduce((sum, { durationMs }) => sum + durationMs, 0) ?? 0
    const context = newRequestContext({
      requestId: `${id.slice(0, 14)}4${id.slice(15)}`,
      at,
      clientIp: 'unknown',
    })
    eventLog.ended({
      context: { ...context, ...request },
      method: 'POST',
      route: undefined,
      status,
      failure: undefined,
      error,
      durationMs: asked + 2 + Math.floor(random() * 8),
    })
  }
  /** The limit status of an accepted send. */
  const limitStatuses = (at: number, { channel }: Pick<Recipient, 'channel'>): LimitStatus[] => {
    const open = (limit: LimitStatus['limit'], max: number, used: number, windowMs: number): LimitStatus => ({
      limit,
      max,
      used,
      endsAt: at + Math.floor(random() * windowMs),
      refused: false,
    })
    const phone = [{ ...open('cooldown', 1, 1, 0), endsAt: at + 30_000 }, open('phone-minute', 3, 1, 60_000)]
    return [
      ...(channel === 'SMS' ? phone : []),
      open('recipient-hour', channel === 'SMS' ? 10 : 30, 1 + Math.floor(random() * 2), 3_600_000),
      open('app-minute', 120, 1 + Math.floor(random() * 60), 60_000),
    ]
  }
  /** Most accepted messages get a delivery report. */
  const receive = ({ reportKey, provider, at }: Attempt) => {
    if (reportKey === null || random() > 0.97) return
    const status = random() < 0.965 ? 'delivered' : 'failed'
    const reason = status === 'failed' ? '30003' : null
    const report: MessageReport = { key: reportKey, status, reason, at: at + 3000 }
    deliveryReports.set(provider, [...(deliveryReports.get(provider) ?? []), report])
  }
  const settle = async () => {
    await context.eventLog.flush()
    for (const [provider, reports] of deliveryReports)
      await context.eventLog.saveReports(provider, reports, false)
    deliveryReports.clear()
  }

  for (let index = 0; index < sends; index++) {
    const even = from + ((until - from) * index) / sends
    // More by day than by night.
    const hour = (even % dayMs) / 3_600_000
    if (random() > 0.35 + 0.65 * Math.max(0, Math.sin(((hour - 5) / 24) * 2 * Math.PI))) continue
    const at = Math.round(even + random() * 30_000)
    const number = String(Math.floor(random() * 1e4)).padStart(4, '0')
    const mailbox = `${'abcdefghij'[Number(number) % 10]}${number}@example.com`
    const to: Recipient =
      random() < 0.18 ? { channel: 'EMAIL', to: mailbox } : { channel: 'SMS', to: `1202555${number}` }
    const { channel } = to
    const [recipientHash] = context.secrets.subjects(channel, to.to)
    const about = { channel, recipient: mask(to), recipientHash }
    const { slug, app } = pick()
    const request = { ...about, brand: slug, app }
    if (random() < 0.04) {
      const limits: LimitStatus[] = [
        { limit: 'cooldown', max: 1, used: 1, endsAt: at + 20_000, refused: true },
      ]
      tell(at, { ...request, operation: 'send', limits }, { error: 'cooldown_active', status: 429 })
      continue
    }
    const isOutage = channel === 'SMS' && hour > 9.2 && hour < 9.9
    const provider = channel === 'EMAIL' ? 'smtp' : 'twilio'
    const fails = random() < (isOutage ? 0.6 : 0.012)
    const outcome = !fails ? 'accepted' : random() < 0.8 ? 'retryable' : 'unknown'
    const attempts = [attemptOf(at, 1, about, provider, outcome, 'LOGIN_OTP')]
    if (outcome === 'retryable' && channel === 'SMS') {
      const second = random() < 0.97 ? 'accepted' : 'retryable'
      const [first] = attempts
      attempts.push(attemptOf(at + (first?.durationMs ?? 0), 2, about, 'vonage', second, 'LOGIN_OTP'))
    }
    const taken = attempts.at(-1)
    const isSent = taken?.outcome === 'accepted'
    const limits = limitStatuses(at, to)
    tell(
      at,
      { ...request, operation: 'send', attempts, limits },
      isSent ? {} : { error: 'sms_failed', status: 502 },
    )
    if (taken) receive(taken)
    if (isSent && random() < 0.86) {
      const later = at + Math.round(6000 + 40_000 * random() ** 3 + (random() < 0.05 ? 150_000 : 0))
      const verify = { ...request, operation: 'verify' } as const
      if (random() < 0.06) tell(later - 4000, verify, { error: 'mismatch', status: 401 })
      tell(later, verify)
    }
    if (random() < 0.3) {
      const done = attemptOf(at + 60, 1, about, provider, 'accepted', 'ORDER_PLACED')
      tell(at + 50, { ...request, operation: 'notify', recipients: 1, attempts: [done] })
      receive(done)
    }
    if (index % 200 === 0) await settle()
  }
  await settle()
}

/** Codes that no provider accepted, evenly over a time, to so many people in turn. */
export async function failSends(
  context: Context,
  { from, until, sends }: Past,
  people: number,
): Promise<void> {
  const eventLog = createEventLog(context.eventLog)
  for (let index = 0; index < sends; index++) {
    const at = Math.round(from + ((until - from) * index) / sends)
    const to: Recipient = { channel: 'SMS', to: `1202556${1000 + (index % people)}` }
    const [recipientHash] = context.secrets.subjects('SMS', to.to)
    const about = { channel: to.channel, recipient: mask(to), recipientHash: recipientHash ?? '' }
    const attempt: Attempt = {
      ...about,
      attempt: 1,
      at,
      route: 'plain',
      provider: 'twilio',
      template: 'LOGIN_OTP',
      lang: 'en',
      position: null,
      segments: null,
      country: 'US',
      cost: null,
      outcome: 'retryable',
      errorClass: 'retryable',
      reason: 'HTTP 503',
      providerMessageId: null,
      reportKey: null,
      durationMs: 100,
    }
    const id = Bun.randomUUIDv7('hex', at)
    const requestId = `${id.slice(0, 14)}4${id.slice(15)}`
    const request: Partial<RequestContext> = {
      ...about,
      operation: 'send',
      brand: 'acme',
      app: 'shop',
      attempts: [attempt],
    }
    eventLog.ended({
      context: { ...newRequestContext({ requestId, at, clientIp: 'unknown' }), ...request },
      method: 'POST',
      route: undefined,
      status: 502,
      failure: undefined,
      error: 'sms_failed',
      durationMs: 110,
    })
  }
  await context.eventLog.flush()
}
