import { maskEmail, maskPhone } from './contact.ts'
import type {
  Attempt,
  Call,
  Clock,
  Mail,
  Mailer,
  Outcome,
  SmsMessage,
  SmsProvider,
  SmsRoute,
} from './ports.ts'

/** Which route the SMS of registered templates take (design D14). */
export type SmsMode = 'plain' | 'template' | 'hybrid'

export interface DeliveryPorts {
  /** The providers of each route, in the order they are tried. */
  readonly smsRoutes: Readonly<Record<SmsRoute, readonly SmsProvider[]>>
  readonly mailer: Mailer
  /** Monotonic milliseconds, for spans: the time of day may be set while a delivery is under way. */
  readonly stopwatch: Clock
  /** For one provider call (design D26). */
  readonly providerTimeoutMs: number
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

/**
 * Hands an SMS to the first provider that takes it, route by route, the same message each time. A rejected number ends
 * the attempt, since no other way leads to it; so does the deadline.
 */
export async function deliverSms(
  ports: DeliveryPorts,
  call: Call,
  message: SmsMessage,
  routes: readonly SmsRoute[],
): Promise<Outcome> {
  const deadline = ports.stopwatch() + longestDeliveryMs(ports.providerTimeoutMs)
  let last: Outcome = { kind: 'unavailable', reason: 'no provider' }
  for (const route of routes) {
    for (const provider of ports.smsRoutes[route]) {
      const timeoutMs = Math.min(ports.providerTimeoutMs, deadline - ports.stopwatch())
      if (timeoutMs <= 0) return last
      last = await attempt(
        call,
        ports.stopwatch,
        { recipient: maskPhone(message.to), provider: provider.name, route },
        () => provider.send(message, route, timeoutMs),
      )
      if (last.kind === 'accepted' || (last.kind === 'rejected' && last.scope === 'recipient')) return last
    }
  }
  return last
}

/** Hands one mail to the mailer. */
export function deliverMail(ports: DeliveryPorts, call: Call, mail: Mail): Promise<Outcome> {
  return attempt(call, ports.stopwatch, { recipient: maskEmail(mail.to), provider: ports.mailer.name }, () =>
    ports.mailer.send(mail, ports.providerTimeoutMs),
  )
}

async function attempt(
  call: Call,
  stopwatch: Clock,
  what: Pick<Attempt, 'recipient' | 'provider' | 'route'>,
  send: () => Promise<Outcome>,
): Promise<Outcome> {
  const startedAt = stopwatch()
  let outcome: Outcome
  let error: unknown
  try {
    outcome = await send()
  } catch (fault) {
    // A provider that breaks its promise not to throw may have sent the message before it did.
    outcome = { kind: 'unknown', reason: 'provider fault' }
    error = fault
  }
  call.trail.attempts.push({
    ...what,
    outcome: outcome.kind,
    durationMs: Math.round(stopwatch() - startedAt),
    ...('reason' in outcome ? { reason: outcome.reason } : {}),
    ...(error === undefined ? {} : { error }),
  })
  return outcome
}
