import { maskEmail, maskPhone } from '../contact.ts'
import type { EventLog } from '../events/event-log.ts'
import type { Attempt, RequestContext } from '../events/request-context.ts'
import type { Clock } from '../ports.ts'
import { type Breakers, isFailing } from './breaker.ts'
import { attemptKey, isProviderMessageId, providerReportKey } from './delivery-reports.ts'
import type { Mail, Mailer, Outcome, Segments, Sms, SmsMessage, SmsProvider, SmsRoute } from './providers.ts'

/** Which route the SMS of registered templates take (design D14). */
export type SmsMode = 'plain' | 'template' | 'hybrid'

export interface DeliveryPorts {
  /** The providers of each route, in the order they are tried. */
  readonly smsRoutes: Readonly<Record<SmsRoute, readonly SmsProvider[]>>
  readonly mailer: Mailer
  readonly breakers: Breakers
  readonly eventLog: EventLog
  readonly now: Clock
  /** Monotonic milliseconds, for spans: the time of day may be set while a delivery is under way. */
  readonly stopwatch: Clock
  /** For one provider call (design D26). */
  readonly providerTimeoutMs: number
  readonly segmentsOf: (text: string) => Segments
  /** Where the receipts of an attempt may be sent; null: this server has no public address. */
  readonly callbackUrl: (provider: string, requestId: string, attempt: number) => string | null
}

/** The routes of a message on a registered template, in order: by the mode and the brand's policy (design D14). */
export function routesOf(mode: SmsMode, dltEnabled: boolean): readonly SmsRoute[] {
  if (mode === 'plain' || !dltEnabled) return ['plain']
  return mode === 'template' ? ['template'] : ['template', 'plain']
}

/** Over all routes and fallbacks of one message, twice the time of one call (design D26). */
export function longestDeliveryMs(providerTimeoutMs: number): number {
  return 2 * providerTimeoutMs
}

/** How an SMS is to be handed over. */
export interface Routing {
  readonly routes: readonly SmsRoute[]
  /** A provider that is asked after the others of its route: what it carried last did not serve. */
  readonly avoid?: string | undefined
}

/**
 * Hands an SMS over, provider by provider and route by route, the same message and code each time, within one deadline
 * (design D26), until
 *
 * - one accepts it, or says that no way leads to that number: this is the end;
 * - one leaves it open (`unknown`, as after a time-out): the next route may carry the same code, but no other provider of
 *   this one, and that provider is not asked again;
 * - one refuses or can't (its text, our account, throttled, down, refused connection): the next is asked.
 *
 * A provider whose circuit breaker is open is passed over, and asked only after all that are not. None is asked with too
 * little time left to answer in: it would carry a message that is given up meanwhile.
 */
export async function deliverSms(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  { routes, avoid }: Routing,
): Promise<Outcome> {
  const deadline = ports.stopwatch() + longestDeliveryMs(ports.providerTimeoutMs)
  const steps: readonly Step[] = routes.flatMap((route) =>
    stablePartition(ports.smsRoutes[route], ({ name }) => name === avoid).map((provider) => ({
      route,
      provider,
    })),
  )
  const { openCircuits, ready } = Object.groupBy(steps, ({ provider }) =>
    ports.breakers.isOpen(provider.name) ? 'openCircuits' : 'ready',
  )
  let waiting: readonly Step[] = [...(ready ?? []), ...(openCircuits ?? [])]
  const leftOpen = { routes: new Set<SmsRoute>(), providers: new Set<string>() }
  let last: Outcome = { kind: 'retryable', reason: 'no provider' }
  for (;;) {
    const [step, ...rest] = waiting
    if (!step) break
    waiting = rest
    const { route, provider } = step
    if (leftOpen.routes.has(route) || leftOpen.providers.has(provider.name)) continue
    const timeoutMs = Math.min(ports.providerTimeoutMs, deadline - ports.stopwatch())
    if (timeoutMs < ports.providerTimeoutMs * leastShare) {
      noteSkipped(ports, context, message, step, 'no time left')
      continue
    }
    last = await tryProvider(ports, context, message, route, provider, timeoutMs)
    if (last.kind === 'accepted' || (last.kind === 'rejected' && last.scope === 'recipient')) break
    if (last.kind === 'unknown') {
      leftOpen.routes.add(route)
      leftOpen.providers.add(provider.name)
    }
    // What fails on one route is not likely to work on the next: others first.
    if (isFailing(last)) waiting = stablePartition(waiting, (later) => later.provider.name === provider.name)
  }
  for (const step of waiting) {
    if (openCircuits?.includes(step)) noteSkipped(ports, context, message, step, 'keeps failing')
  }
  return last
}

/** The share of the time of a call that must be left for one to be made. */
const leastShare = 0.25

interface Step {
  readonly route: SmsRoute
  readonly provider: SmsProvider
}

/** Those for which `isLast` holds after the others, each in their order. */
function stablePartition<T>(all: readonly T[], isLast: (each: T) => boolean): readonly T[] {
  return all.some(isLast) ? [...all.filter((each) => !isLast(each)), ...all.filter(isLast)] : all
}

async function tryProvider(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  route: SmsRoute,
  provider: SmsProvider,
  timeoutMs: number,
): Promise<Outcome> {
  const attempt = ++context.attemptsBegun
  // Without a public address no receipt comes, however it would name the message.
  const url = provider.deliveryReports ? ports.callbackUrl(provider.name, message.requestId, attempt) : null
  const namedBy = url === null ? undefined : provider.deliveryReports?.namedBy
  const callbackUrl = namedBy === 'attempt' ? url : null
  const sms = smsFor(provider.name, message, route, callbackUrl)
  const end = ports.breakers.begin(provider.name)
  const { outcome, ...taken } = await timed(ports, () => provider.send(sms, timeoutMs))
  end(outcome)
  const providerMessageId = providerMessageIdOf(outcome, message.to)
  context.attempts.push({
    attempt,
    ...aboutSms(ports, message, route, provider),
    ...inTheLog(outcome, message.to),
    reportKey: callbackUrl
      ? attemptKey(message.requestId, attempt)
      : namedBy === 'providerMessageId' && providerMessageId
        ? providerReportKey(provider.name, providerMessageId)
        : null,
    ...taken,
  })
  ports.eventLog.note(context)
  return outcome
}

function noteSkipped(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  { route, provider }: Step,
  reason: 'keeps failing' | 'no time left',
): void {
  context.attempts.push({
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
  ports.eventLog.note(context)
}

/** The message as one provider is asked to carry it. */
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

/** Hands one mail to the mailer. */
export async function deliverMail(
  ports: DeliveryPorts,
  context: RequestContext,
  mail: Mail,
): Promise<Outcome> {
  const { mailer, providerTimeoutMs } = ports
  const attempt = ++context.attemptsBegun
  const { outcome, ...taken } = await timed(ports, () => mailer.send(mail, attempt, providerTimeoutMs))
  context.attempts.push({
    attempt,
    channel: 'EMAIL',
    route: null,
    provider: mailer.name,
    template: mail.template,
    recipient: maskEmail(mail.to),
    position: mail.position,
    recipientSubject: mail.recipientSubject,
    segments: null,
    ...inTheLog(outcome, mail.to),
    reportKey: null,
    ...taken,
  })
  ports.eventLog.note(context)
  return outcome
}

/** Runs a provider call; one that breaks its promise not to throw may have sent the message before it did. */
async function timed(
  { now, stopwatch }: DeliveryPorts,
  send: () => Promise<Outcome>,
): Promise<Pick<Attempt, 'at' | 'durationMs' | 'error'> & { outcome: Outcome }> {
  const [at, startedAt] = [now(), stopwatch()]
  let outcome: Outcome
  let fault: { error: unknown } | undefined
  try {
    outcome = await send()
  } catch (error) {
    outcome = { kind: 'unknown', reason: 'provider fault' }
    fault = { error }
  }
  return { outcome, at, durationMs: Math.round(stopwatch() - startedAt), ...fault }
}

function inTheLog(
  outcome: Outcome,
  to: string,
): Pick<Attempt, 'outcome' | 'errorClass' | 'reason' | 'providerMessageId'> {
  const { kind } = outcome
  return {
    outcome: kind,
    errorClass: kind === 'accepted' ? null : kind === 'rejected' ? outcome.scope : kind,
    reason: kind === 'accepted' ? null : outcome.reason,
    providerMessageId: providerMessageIdOf(outcome, to) ?? null,
  }
}

/** A vendor's id, where it is one and does not tell the recipient. */
function providerMessageIdOf(outcome: Outcome, to: string): string | undefined {
  const providerMessageId = 'providerMessageId' in outcome ? outcome.providerMessageId : undefined
  return providerMessageId !== undefined &&
    isProviderMessageId(providerMessageId) &&
    !providerMessageId.includes(to)
    ? providerMessageId
    : undefined
}
