import { maskEmail, maskPhone } from '../contact.ts'
import type { EventLog } from '../events/event-log.ts'
import type { Attempt, RequestContext } from '../events/request-context.ts'
import type { Clock, Stopwatch } from '../time.ts'
import { type Breakers, isFailing } from './breaker.ts'
import { attemptKey, isProviderMessageId, providerReportKey } from './delivery-reports.ts'
import type { Mail, Mailer, Outcome, Segments, Sms, SmsMessage, SmsProvider, SmsRoute } from './providers.ts'

/** Which route registered templates take (design D14). */
export type SmsMode = 'plain' | 'template' | 'hybrid'

export interface DeliveryPorts {
  readonly smsRoutes: Readonly<Record<SmsRoute, readonly SmsProvider[]>>
  readonly mailer: Mailer
  readonly breakers: Breakers
  readonly eventLog: EventLog
  readonly now: Clock
  readonly stopwatch: Stopwatch
  /** Per provider call (design D26). */
  readonly providerTimeoutMs: number
  readonly segmentsOf: (text: string) => Segments
  /** Null: this server has no public URL. */
  readonly callbackUrl: (provider: string, requestId: string, attempt: number) => string | null
}

/** The routes of a registered template, in order (design D14). */
export function routesOf(mode: SmsMode, dltEnabled: boolean): readonly SmsRoute[] {
  if (mode === 'plain' || !dltEnabled) return ['plain']
  return mode === 'template' ? ['template'] : ['template', 'plain']
}

/** Over all routes of a message (design D26). */
export function longestDeliveryMs(providerTimeoutMs: number): number {
  return 2 * providerTimeoutMs
}

export interface Routing {
  readonly routes: readonly SmsRoute[]
  readonly avoid?: string | null
}

/**
 * Design D26. Open circuits come last. A provider is skipped if too little time is left for its response.
 * After `unknown`, which may have been sent, only the next route continues, without this provider.
 */
export async function deliverSms(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  { routes, avoid }: Routing,
): Promise<Outcome> {
  const deadline = ports.stopwatch() + longestDeliveryMs(ports.providerTimeoutMs)
  const steps = routes.flatMap((route) => {
    const providers = stablePartition(ports.smsRoutes[route], ({ name }) => name === avoid)
    return providers.map((provider): Step => ({ route, provider }))
  })
  const { openCircuits, ready } = Object.groupBy(steps, ({ provider }) =>
    ports.breakers.isOpen(provider.name) ? 'openCircuits' : 'ready',
  )
  let waiting: readonly Step[] = [...(ready ?? []), ...(openCircuits ?? [])]
  const unknown = { routes: new Set<SmsRoute>(), providers: new Set<string>() }
  let last: Outcome = { kind: 'retryable', reason: 'no provider' }
  for (;;) {
    const [step, ...rest] = waiting
    if (!step) break
    waiting = rest
    const { route, provider } = step
    if (unknown.routes.has(route) || unknown.providers.has(provider.name)) continue
    const timeoutMs = Math.min(ports.providerTimeoutMs, deadline - ports.stopwatch())
    if (timeoutMs < ports.providerTimeoutMs * leastShare) {
      saveSkipped(ports, context, message, step, 'no time left')
      continue
    }
    last = await tryProvider(ports, context, message, step, timeoutMs)
    if (last.kind === 'accepted' || (last.kind === 'rejected' && last.scope === 'recipient')) break
    if (last.kind === 'unknown') {
      unknown.routes.add(route)
      unknown.providers.add(provider.name)
    }
    // A failing provider is likely to fail on the next route too.
    if (isFailing(last)) waiting = stablePartition(waiting, (later) => later.provider.name === provider.name)
  }
  for (const step of waiting) {
    if (openCircuits?.includes(step)) saveSkipped(ports, context, message, step, 'keeps failing')
  }
  return last
}

const leastShare = 0.25

interface Step {
  readonly route: SmsRoute
  readonly provider: SmsProvider
}

function stablePartition<T>(all: readonly T[], isLast: (each: T) => boolean): readonly T[] {
  return all.some(isLast) ? [...all.filter((each) => !isLast(each)), ...all.filter(isLast)] : all
}

async function tryProvider(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  { route, provider }: Step,
  timeoutMs: number,
): Promise<Outcome> {
  const attempt = ++context.attemptsBegun
  const { name, deliveryReports } = provider
  const url = deliveryReports ? ports.callbackUrl(name, message.requestId, attempt) : null
  const namedBy = url === null ? undefined : deliveryReports?.namedBy
  const callbackUrl = namedBy === 'attempt' ? url : null
  const sms = smsFor(name, message, route, callbackUrl)
  const end = ports.breakers.begin(name)
  const { outcome, result } = await call(ports, message.to, () => provider.send(sms, timeoutMs))
  end(outcome)
  const { providerMessageId } = result
  const reportKey = callbackUrl
    ? attemptKey(message.requestId, attempt)
    : namedBy === 'providerMessageId' && providerMessageId !== null
      ? providerReportKey(name, providerMessageId)
      : null
  saveAttempt(ports, context, { attempt, ...aboutSms(ports, message, route, provider), ...result, reportKey })
  return outcome
}

function saveSkipped(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  { route, provider }: Step,
  reason: 'keeps failing' | 'no time left',
): void {
  saveAttempt(ports, context, {
    attempt: ++context.attemptsBegun,
    ...aboutSms(ports, message, route, provider),
    outcome: 'skipped',
    errorClass: null,
    reason,
    providerMessageId: null,
    reportKey: null,
    at: ports.now(),
    durationMs: 0,
  })
}

function saveAttempt({ eventLog }: DeliveryPorts, context: RequestContext, attempt: Attempt): void {
  context.attempts.push(attempt)
  eventLog.note(context)
}

function smsFor(
  provider: string,
  { subject: _, position: __, text, template, ...message }: SmsMessage,
  route: SmsRoute,
  callbackUrl: string | null,
): Sms {
  if (route === 'plain' || !template) {
    return { ...message, route, text, template: null, senderId: null, callbackUrl }
  }
  const { key, variables, registration } = template
  const id =
    (Object.hasOwn(registration.ids, provider) ? registration.ids[provider] : registration.id) ?? null
  return {
    ...message,
    route,
    text: template.text,
    template: { key, variables, id, entityId: registration.entityId },
    senderId: registration.senderId,
    callbackUrl,
  }
}

function aboutSms(ports: DeliveryPorts, message: SmsMessage, route: SmsRoute, provider: SmsProvider) {
  const text = route === 'template' && message.template ? message.template.text : message.text
  return {
    channel: 'SMS',
    route,
    provider: provider.name,
    template: message.template?.key ?? null,
    recipient: maskPhone(message.to),
    position: message.position,
    recipientSubject: message.subject,
    segments: ports.segmentsOf(text),
  } as const
}

export async function deliverMail(
  ports: DeliveryPorts,
  context: RequestContext,
  mail: Mail,
): Promise<Outcome> {
  const { mailer, providerTimeoutMs } = ports
  const attempt = ++context.attemptsBegun
  const { outcome, result } = await call(ports, mail.to, () => mailer.send(mail, attempt, providerTimeoutMs))
  const { template, position, recipientSubject } = mail
  saveAttempt(ports, context, {
    attempt,
    channel: 'EMAIL',
    route: null,
    provider: mailer.name,
    template,
    recipient: maskEmail(mail.to),
    position,
    recipientSubject,
    segments: null,
    reportKey: null,
    ...result,
  })
  return outcome
}

type CallResult = Pick<
  Attempt,
  'outcome' | 'errorClass' | 'reason' | 'providerMessageId' | 'at' | 'durationMs' | 'error'
>

/** A provider that throws may have sent the message. */
async function call(
  { now, stopwatch }: DeliveryPorts,
  to: string,
  send: () => Promise<Outcome>,
): Promise<{ outcome: Outcome; result: CallResult }> {
  const [at, startedAt] = [now(), stopwatch()]
  let outcome: Outcome
  let fault: { error: unknown } | undefined
  try {
    outcome = await send()
  } catch (error) {
    outcome = { kind: 'unknown', reason: 'provider fault' }
    fault = { error }
  }
  const { kind } = outcome
  const id = 'providerMessageId' in outcome ? outcome.providerMessageId : undefined
  const result = {
    outcome: kind,
    errorClass: kind === 'accepted' ? null : kind === 'rejected' ? outcome.scope : kind,
    reason: kind === 'accepted' ? null : outcome.reason,
    // Some IDs contain the recipient.
    providerMessageId: id !== undefined && isProviderMessageId(id) && !id.includes(to) ? id : null,
    at,
    durationMs: Math.round(stopwatch() - startedAt),
    ...fault,
  }
  return { outcome, result }
}
