import { maskEmail, maskPhone } from '../ground/contact.ts'
import type {
  Mail,
  Mailer,
  Outcome,
  PhoneRoute,
  Segments,
  Sms,
  SmsMessage,
  SmsProvider,
} from '../ground/providers.ts'
import type { Clock, Stopwatch } from '../ground/time.ts'
import { type Attempt, type Cost, mayBeSent, type RequestContext } from '../request/request-context.ts'
import type { EventLog } from '../request/request-trace.ts'
import { type Breakers, isFailing } from './breaker.ts'
import { attemptKey, isProviderMessageId, providerReportKey } from './delivery-reports.ts'
import type { DestinationRule, NumberKind } from './destination.ts'
import { type Called, callerOf, type Turns } from './turns.ts'
import { type RoutedProvider, type RouteStep, withoutProvider } from './way.ts'

export interface DeliveryPorts {
  readonly mailer: Mailer
  readonly breakers: Breakers
  readonly turns: Turns
  readonly eventLog: EventLog
  readonly now: Clock
  readonly stopwatch: Stopwatch
  /** Per provider call (design D26). */
  readonly providerTimeoutMs: number
  /** Null: this server has no public URL. */
  readonly callbackUrl: (provider: string, requestId: string, attempt: number) => string | null
}

/** Over all routes of a message (design D26). */
export function longestDeliveryMs(providerTimeoutMs: number): number {
  return 2 * providerTimeoutMs
}

interface AttemptedStep {
  readonly route: PhoneRoute | null
  readonly provider: Pick<SmsProvider, 'name' | 'languageOf'>
  readonly segments: Segments | null
}

export interface OutgoingSms extends SmsMessage {
  readonly kind: NumberKind
  /** In the order of the settings. */
  readonly steps: readonly RouteStep[]
  /** They are not called. */
  readonly paused: readonly RoutedProvider[]
  /** Of its destination. */
  readonly rule: DestinationRule | null
}

export type Outgoing = OutgoingSms | Mail

/** In the event log, of a message without steps. */
export const noStep: AttemptedStep = { route: null, provider: { name: 'none' }, segments: null }

/** The order in which a delivery tries the steps, unless circuits open or close meanwhile. */
export function orderedSteps<Each extends RouteStep>(
  { breakers }: Pick<DeliveryPorts, 'breakers'>,
  steps: readonly Each[],
  avoid: string | null,
): readonly Each[] {
  const later =
    avoid !== null && steps.some(({ provider }) => provider.name === avoid)
      ? [...new Set(steps.map(({ route }) => route))].flatMap((route) =>
          stablePartition(
            steps.filter((step) => step.route === route),
            ({ provider }) => provider.name === avoid,
          ),
        )
      : steps
  return stablePartition(later, ({ provider }) => breakers.isOpen(provider.name))
}

/** What a delivery costs. */
export interface Charging {
  /** Whether the budgets allow another attempt, after one that may have been sent. Never rejects. */
  mayContinue(sms: OutgoingSms, step: RouteStep): Promise<boolean>
  /** Called for each attempt that may have been sent. */
  spend(sms: OutgoingSms, step: RouteStep): Cost
}

/** Of an SMS. `avoid`: the provider that is tried last. */
interface SmsOptions {
  readonly charging: Charging
  readonly avoid?: string | null
  /** By the stopwatch: of the ways of a request together. */
  readonly deadline?: number
  /** Another way follows. Then the message leaves it a part of the time, and no open circuit is tried. */
  readonly isFollowed?: boolean
}

export function deliver(
  ports: DeliveryPorts,
  context: RequestContext,
  message: Outgoing,
  options: SmsOptions,
): Promise<Outcome> {
  return 'steps' in message
    ? deliverSms(ports, context, message, options)
    : deliverMail(ports, context, message)
}

/**
 * Design D14 and D26: one step after the other, until a provider accepts the message or rejects the recipient. A step also follows
 * `unknown`: the recipient may get the same message twice, instead of none. Open circuits come last. The routes that are left share
 * the time that is left. A step is skipped if that is too little for a response.
 */
export async function deliverSms(
  ports: DeliveryPorts,
  context: RequestContext,
  message: OutgoingSms,
  {
    charging,
    avoid = null,
    deadline = ports.stopwatch() + longestDeliveryMs(ports.providerTimeoutMs),
    isFollowed = false,
  }: SmsOptions,
): Promise<Outcome> {
  const { steps } = message
  const isOpen = ({ provider }: RouteStep) => ports.breakers.isOpen(provider.name)
  const open = steps.filter(isOpen)
  let waiting = orderedSteps(ports, isFollowed ? steps.filter((step) => !open.includes(step)) : steps, avoid)
  let mayHaveArrived = false
  let last: Outcome = { kind: 'retryable', reason: 'no provider' }
  if (steps.length === 0 && message.paused.length > 0) last = { kind: 'retryable', reason: 'paused' }
  else if (steps.length === 0) {
    if (!isFollowed) context.fault = withoutProvider(message.rule)
    saveSkipped(ports, context, message, noStep, 'no provider')
  }
  for (let step = waiting[0]; step; step = waiting[0]) {
    waiting = waiting.slice(1)
    const { provider } = step
    const routesLeft = isFollowed || waiting.some(({ route }) => route !== step.route) ? 2 : 1
    const timeoutMs = Math.min(ports.providerTimeoutMs, (deadline - ports.stopwatch()) / routesLeft)
    if (timeoutMs < ports.providerTimeoutMs * leastShare) {
      saveSkipped(ports, context, message, step, 'no time left')
      continue
    }
    if (mayHaveArrived && !(await charging.mayContinue(message, step))) {
      saveSkipped(ports, context, message, step, 'budget exhausted')
      continue
    }
    last = await tryProvider(ports, context, message, step, { timeoutMs, charging })
    if (last.kind === 'accepted' || (last.kind === 'rejected' && last.scope === 'recipient')) break
    if (last.kind === 'unknown') mayHaveArrived = true
    // A failing provider is likely to fail on the next route too.
    if (isFailing(last)) waiting = stablePartition(waiting, (later) => later.provider.name === provider.name)
  }
  for (const step of isFollowed ? open : waiting) {
    if (open.includes(step)) saveSkipped(ports, context, message, step, 'keeps failing')
  }
  for (const step of message.paused) {
    saveSkipped(ports, context, message, { ...step, segments: null }, 'paused')
  }
  return last
}

const leastShare = 0.25

function stablePartition<T>(all: readonly T[], isLast: (each: T) => boolean): readonly T[] {
  return all.some(isLast) ? [...all.filter((each) => !isLast(each)), ...all.filter(isLast)] : all
}

async function tryProvider(
  ports: DeliveryPorts,
  context: RequestContext,
  message: OutgoingSms,
  step: RouteStep,
  { timeoutMs, charging }: { readonly timeoutMs: number; readonly charging: Charging },
): Promise<Outcome> {
  const attempt = ++context.attemptsBegun
  const { provider } = step
  const { name, deliveryReports } = provider
  const url = deliveryReports ? ports.callbackUrl(name, message.requestId, attempt) : null
  const namedBy = url === null ? undefined : deliveryReports?.namedBy
  const callbackUrl = namedBy === 'attempt' ? url : null
  const sms = smsFor(step, message, callbackUrl)
  const end = ports.breakers.begin(name)
  const about = { called: provider, to: message.to, timeoutMs }
  const { outcome, result } = await call(ports, context, about, (leftMs) => provider.send(sms, leftMs))
  end(outcome)
  const { providerMessageId } = result
  const reportKey = callbackUrl
    ? attemptKey(message.requestId, attempt)
    : (namedBy === 'providerMessageId' || provider.reportsItself) && providerMessageId !== null
      ? providerReportKey(name, providerMessageId)
      : null
  const cost = mayBeSent(result) ? charging.spend(message, step) : null
  saveSmsAttempt(ports, context, message, step, { attempt, reportKey, cost }, result)
  return outcome
}

export function saveSkipped(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  step: AttemptedStep,
  reason:
    | 'keeps failing'
    | 'paused'
    | 'no time left'
    | 'budget exhausted'
    | 'no provider'
    | 'blocked destination'
    | 'no calls to this country'
    | `rate-limited: ${string}`,
): void {
  const about = { outcome: 'skipped', errorClass: null, reason, providerMessageId: null } as const
  const result = { ...about, at: ports.now(), durationMs: 0 }
  const attempt = ++context.attemptsBegun
  saveSmsAttempt(ports, context, message, step, { attempt, reportKey: null, cost: null }, result)
}

function saveSmsAttempt(
  ports: DeliveryPorts,
  context: RequestContext,
  message: SmsMessage,
  step: AttemptedStep,
  about: Pick<Attempt, 'attempt' | 'reportKey' | 'cost'>,
  result: CallResult,
): void {
  const { template, to, country, position, recipientHash } = message
  const { route, provider, segments } = step
  saveAttempt(ports, context, {
    ...result,
    attempt: about.attempt,
    reportKey: about.reportKey,
    cost: about.cost,
    channel: 'SMS',
    route,
    provider: provider.name,
    template: template?.key ?? null,
    lang: result.lang ?? langOf(step, message) ?? null,
    recipient: context.recipient ?? maskPhone(to),
    position,
    recipientHash,
    segments,
    country,
  })
}

function saveAttempt({ eventLog }: DeliveryPorts, context: RequestContext, attempt: Attempt): void {
  context.attempts.push(attempt)
  eventLog.note(context)
}

/** Of the text that goes this way. */
function langOf({ route, provider }: AttemptedStep, message: SmsMessage): string | undefined {
  const { template, lang } = message
  return provider.languageOf?.(message) ?? (route === 'template' && template ? template.lang : lang)
}

function smsFor(step: RouteStep, message: SmsMessage, callbackUrl: string | null): Sms {
  const { route, provider } = step
  const { id, requestId, brandSlug, brandName, to, text, askedLang, code, template } = message
  const { senderId, validitySeconds } = message
  const registered = route !== 'plain' && template ? registeredFor(provider.name, template) : undefined
  return {
    id,
    requestId,
    brandSlug,
    brandName,
    to,
    askedLang,
    code,
    validitySeconds,
    expectsFeedback: message.expectsFeedback,
    route,
    text: registered?.text ?? text,
    lang: langOf(step, message),
    template: registered?.template ?? null,
    // A registered template has its registered sender.
    senderId: registered?.senderId ?? senderId,
    callbackUrl,
  }
}

function registeredFor(
  provider: string,
  { key, text, variables, values, registration }: NonNullable<SmsMessage['template']>,
): Pick<Sms, 'text' | 'template' | 'senderId'> {
  const { ids, entityId, senderId } = registration
  const id = (Object.hasOwn(ids, provider) ? ids[provider] : registration.id) ?? null
  return { text, template: { key, variables, values, id, entityId }, senderId }
}

export async function deliverMail(
  ports: DeliveryPorts,
  context: RequestContext,
  mail: Mail,
): Promise<Outcome> {
  const { mailer, providerTimeoutMs } = ports
  const attempt = ++context.attemptsBegun
  const about = { called: mailer, to: mail.to, timeoutMs: providerTimeoutMs }
  const { outcome, result } = await call(ports, context, about, (leftMs) =>
    mailer.send(mail, attempt, leftMs),
  )
  const { template, lang, position, recipientHash } = mail
  saveAttempt(ports, context, {
    attempt,
    channel: 'EMAIL',
    route: null,
    provider: mailer.name,
    template,
    lang: lang ?? null,
    recipient: maskEmail(mail.to),
    position,
    recipientHash,
    segments: null,
    country: null,
    cost: null,
    reportKey: null,
    ...result,
  })
  return outcome
}

type CallResult = Pick<
  Attempt,
  'outcome' | 'errorClass' | 'reason' | 'providerMessageId' | 'at' | 'durationMs' | 'error'
> & { readonly lang?: string }

const noTurn: Outcome = { kind: 'retryable', reason: 'too many calls under way', notCalled: true }

/** Waits at most half of the time-out for its turn. A provider that throws may have sent the message. */
async function call(
  { now, stopwatch, turns }: DeliveryPorts,
  context: RequestContext,
  { called, to, timeoutMs }: { readonly called: Called; readonly to: string; readonly timeoutMs: number },
  send: (leftMs: number) => Promise<Outcome>,
): Promise<{ outcome: Outcome; result: CallResult }> {
  const [at, startedAt] = [now(), stopwatch()]
  const caller = callerOf(context)
  let outcome = noTurn
  let error: unknown
  const turn = turns.enter(called, caller, timeoutMs / 2)
  if (turn === true || (await turn)) {
    try {
      outcome = await send(turn === true ? timeoutMs : timeoutMs - (stopwatch() - startedAt))
    } catch (thrown) {
      outcome = { kind: 'unknown', reason: 'provider fault' }
      error = thrown
    } finally {
      turns.leave(called, caller)
    }
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
    error,
    ...('lang' in outcome && { lang: outcome.lang }),
  }
  return { outcome, result }
}
