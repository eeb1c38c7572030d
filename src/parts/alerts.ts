import { alertMail, alertWebhook, commandWords } from '../adapters/alerts/targets.ts'
import { createEventSender } from '../adapters/events/sender.ts'
import { call } from '../adapters/sms/http.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { minuteMs } from '../domain/ground/time.ts'
import { Alerts } from '../domain/health/alerts.ts'
import { ConditionAlerts } from '../domain/health/condition-alerts.ts'
import { pumpingVerdicts } from '../domain/health/pumping-problems.ts'
import { hoursBefore, silenceVerdicts } from '../domain/health/silence.ts'
import { EventDelivery, eventTimeoutMs } from '../domain/integration/event-delivery.ts'
import { withCallCap } from '../domain/money/budgets.ts'
import { webhookSwitch } from '../domain/operator/webhooks.ts'
import type { Shared } from './shared.ts'

/** Alerts for operators. */
export function createAlerts(
  { alerts: { email, webhook } }: Config,
  context: Context,
  shared: Shared,
): Alerts {
  const { alerts, stats, eventLog, budgets, requests } = context
  const { checkDatabase, breakers, mailer, policy, guardMode, countryOfPrefix, ownUrl, now, log } = shared
  const targets = [
    ...(email === undefined ? [] : [alertMail(mailer, email)]),
    ...(webhook ? [alertWebhook(webhook, call, now)] : []),
  ]
  const startedAt = now()
  const conditions = new ConditionAlerts({
    alerts,
    targets,
    checkDatabase,
    freeBytes: async () => (await stats.files())?.diskFree,
    pumping: () => pumpingVerdicts({ guard: context.guardReader, countryOfPrefix }, guardMode(), now()),
    silence: async (attempts) => {
      const { silentMinutes } = (await policy()).thresholds
      const at = now()
      // A server that has just started was no place to call.
      if (at - startedAt < 2 * silentMinutes * minuteMs) return []
      const traffic = await eventLog.traffic(at, hoursBefore(at, silentMinutes))
      return silenceVerdicts(traffic, attempts, silentMinutes, at)
    },
    words: commandWords,
    attempts: () => eventLog.recentAttempts(now()),
    openCircuits: () => breakers.openCircuits(),
    now,
    log,
  })
  return new Alerts({
    budgets: async () => withCallCap((await policy()).budgets, shared.phoneRoutes.voice),
    spent: budgets.spent,
    alerts,
    requests,
    ownUrl,
    targets,
    checkConditions: conditions.check,
    now,
    log,
  })
}

/** Events for the webhooks of apps. */
export function createEvents(
  context: Context,
  shared: Shared,
  alerts: Alerts,
  random: () => number = Math.random,
): EventDelivery {
  const { policy, now, log } = shared
  const sendEvent = createEventSender({ ...shared, timeoutMs: eventTimeoutMs })
  return new EventDelivery({
    events: context.events,
    policy,
    send: (webhook, id, body) => sendEvent(webhook, id, body, now()),
    random,
    ...webhookSwitch({ policy: context.policy, alerts, now }),
    now,
    log,
  })
}
