import { type Body, isGiven } from '../ground/body.ts'
import { Failure, invalidField } from '../ground/failures.ts'
import type { Sealing } from '../ground/ports.ts'
import { hourMs } from '../ground/time.ts'
import { permitted } from '../limits/credentials.ts'
import { keyLimitName } from '../limits/idempotency-store.ts'
import { type AppOperation, unscoped } from '../limits/scope.ts'
import { type NotifyPorts, notifyAs } from '../notify/notify.ts'
import { type SendOtpPorts, sendCode } from '../otp/send.ts'
import type { NewCode } from '../otp/store.ts'
import { noteVerified, type VerifyOtpPorts, verifyCode } from '../otp/verify.ts'
import type { Policy } from '../policy/policy.ts'
import type { Relay } from '../policy/relay.ts'
import { noteRecipient, type RequestContext } from '../request/request-context.ts'

// What identity systems request of a relay (design D53). Their formats are in src/adapters/http/relays.

export type RelayPorts = SendOtpPorts &
  VerifyOtpPorts &
  NotifyPorts & {
    readonly sealing: Sealing
    readonly pause: (ms: number) => Promise<void>
    /** Stores that the caller reports verified codes. */
    readonly relayReports: (name: string) => Promise<void>
  }

/** A code to a phone number or an e-mail address. */
export interface RelayedCode {
  readonly asks: 'code'
  readonly phone?: unknown
  readonly email?: unknown
  /** Of the caller: 4 to 10 letters or digits. Undefined: otpost makes and verifies it. */
  readonly code?: unknown
  /** Of the caller, with the placeholder `{{code}}`. Undefined: the brand's text. */
  readonly text?: string
  readonly lang?: unknown
  readonly clientIp?: unknown
  /** Equal in all repetitions of the request, which is sent once. */
  readonly key?: string
}

/** An SMS with a text of the caller. */
interface RelayedText {
  readonly asks: 'text'
  readonly phone: unknown
  readonly text: unknown
}

/** Verification of a code that otpost made. */
interface RelayedGuess {
  readonly asks: 'verification'
  /** Undefined: that of the code. */
  readonly phone?: unknown
  readonly code: unknown
  /** The ID of the request that sent the code. */
  readonly codeId: unknown
}

/** The caller has verified its own code. */
interface ReportedVerification {
  readonly asks: 'nothing'
  readonly verifiedPhone: unknown
}

/** What a request asks for, as the parser of its kind returns it. */
export type RelayRequest = RelayedCode | RelayedText | RelayedGuess | ReportedVerification

interface Called {
  readonly relay: Relay
  readonly policy: Policy
  /** How long the caller waits for the answer. */
  readonly waitsMs: number
}

/** After the check of the proof. @throws Failure as send, notify and verify */
export async function relayed(
  ports: RelayPorts,
  context: RequestContext,
  called: Called,
  request: RelayRequest,
): Promise<void> {
  const { relay, policy, waitsMs } = called
  const operation: AppOperation = request.asks === 'text' ? 'notify' : 'otp'
  const scope = relay.appId === null ? unscoped(appOf(relay)) : permitted(policy, relay.appId, operation)
  const providerTimeoutMs = Math.min(ports.providerTimeoutMs, waitsMs / 2)
  const about = { brandId: relay.brandSlug, reference: relay.name }
  switch (request.asks) {
    case 'code': {
      const { code, text, key } = request
      const otpTtlSeconds = code === undefined ? ports.otpTtlSeconds : relay.minutes * 60
      const isUnreported = code !== undefined && !relay.reportsVerified
      if (isUnreported) context.isUnreported = true
      if (key !== undefined) context.idempotencyKey = key
      const own = { code: givenCode(code), text, isUnreported, keep: keeping(ports, context, relay, code) }
      const body = { ...about, ...fieldsOf(ports, request) }
      const sending = { ...ports, providerTimeoutMs, otpTtlSeconds }
      await ended(ports, () => sendCode(sending, context, body, { policy, scope, relayed: own }))
      return
    }
    case 'text': {
      const { phone, text } = request
      const body = { ...about, channel: 'SMS', to: [phone], message: text }
      await notifyAs({ ...ports, providerTimeoutMs }, context, body, { policy, scope })
      return
    }
    case 'verification': {
      context.operation = 'verify'
      const { code, codeId } = request
      const id = typeof codeId === 'string' ? codeId : ''
      const phone = await phoneOf(ports, relay, id, request.phone)
      const body = { ...about, phone, otp: code }
      await verifyCode(ports, context, body, { policy, scope, id })
      return
    }
    case 'nothing':
      context.operation = 'verify'
      await reported(ports, context, relay, request.verifiedPhone)
  }
}

/** A repetition waits for the answer of the request in progress, since the caller takes a failure as final. */
async function ended(ports: RelayPorts, send: () => Promise<unknown>, left = 10): Promise<void> {
  try {
    await send()
  } catch (error) {
    const isInProgress = error instanceof Failure && error.kind === 'idempotency_in_progress'
    if (!isInProgress || left === 0) throw error
    await ports.pause(250)
    await ended(ports, send, left - 1)
  }
}

/** Of its requests in the event log, if it has no app. */
export function appOf({ name, appId }: Pick<Relay, 'name' | 'appId'>): string {
  return appId ?? `relay:${name}`
}

/** A code of a caller. */
export const codePattern = /^[A-Za-z0-9]{4,10}$/

function givenCode(code: unknown): string | undefined {
  if (code === undefined) return undefined
  if (code === null || code === '')
    throw invalidField(
      'code',
      'is missing. The message of the caller has none, and a relay sends only codes.',
    )
  if (typeof code === 'string' && codePattern.test(code)) return code
  throw invalidField('code', 'must be 4 to 10 letters or digits.')
}

/** As those of /otp/send. A client IP address that is none is ignored, as the caller cannot correct it. */
function fieldsOf({ ipIdentity }: RelayPorts, request: RelayedCode): Body {
  const { phone, email, lang, clientIp } = request
  const isIp = typeof clientIp === 'string' && ipIdentity(clientIp) !== undefined
  // Its value may be missing in what the caller sent.
  const to = 'email' in request ? { channel: 'EMAIL', email } : { channel: 'SMS', phone }
  return { ...to, lang, ...(isIp && { clientIp }) }
}

/** Keeps the phone number of a code, encrypted: callers verify by the ID of the code, and codes of this relay only. */
function keeping(
  { secrets, sealing, owner, now }: RelayPorts,
  { requestId }: RequestContext,
  relay: Relay,
  code: unknown,
) {
  return ({ id, ttlMs }: NewCode, to: string) => {
    if (code !== undefined) return []
    const hash = secrets.subjects('idempotency-key', keptName(relay, id))[0]
    // An expired code is known as such for a while.
    const expiresAt = now() + ttlMs + hourMs
    const key = { hash, requestId, bodyHash: keyLimitName, owner, expiresAt }
    const answer = { hash, requestId, status: 200, answer: sealing.seal(to, id), expiresAt }
    return [{ kind: 'key', key } as const, { kind: 'answer', ...answer } as const]
  }
}

async function phoneOf(
  { secrets, sealing, idempotencyKeys, contacts }: RelayPorts,
  relay: Relay,
  id: string,
  given: unknown,
): Promise<string> {
  const kept = await idempotencyKeys.find(secrets.subjects('idempotency-key', keptName(relay, id)))
  const phone = kept?.answer ? sealing.unseal(kept.answer, id)?.text : undefined
  const isOther = given !== undefined && contacts.phone(given)?.to !== phone
  if (phone === undefined || isOther) throw new Failure('message_not_found', 'No code has this ID.')
  return `+${phone}`
}

function keptName({ name }: Relay, id: string): string {
  return JSON.stringify(['relay', name, id])
}

async function reported(
  ports: RelayPorts,
  context: RequestContext,
  { name, brandSlug, reportsVerified }: Relay,
  phone: unknown,
): Promise<void> {
  const recipient = isGiven(phone) ? ports.contacts.phone(phone) : undefined
  if (!recipient) throw invalidField('phone', ports.contacts.faultOf(phone, 'SMS'))
  noteRecipient(context, recipient)
  context.brand = brandSlug
  const subject = ports.secrets.subjects('SMS', recipient.to)
  context.recipientHash = subject[0]
  noteVerified(ports, context, { provider: '', providerMessageId: null, ageMs: null }, { recipient, subject })
  if (!reportsVerified) await ports.relayReports(name)
}
