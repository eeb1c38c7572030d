import { hostKindWith } from '../../src/adapters/events/host-kind.ts'
import { isRegion } from '../../src/adapters/phone/e164.ts'
import type { DestinationRule } from '../../src/domain/delivery/destination.ts'
import type { Outcome, Sms, SmsProvider } from '../../src/domain/ground/providers.ts'
import type { EventType } from '../../src/domain/ground/webhook-events.ts'
import { parseMicros } from '../../src/domain/money/amounts.ts'
import { budgetName } from '../../src/domain/money/budgets.ts'
import { budgetLift, budgetRemove, budgetSet, priceImport } from '../../src/domain/operator/money.ts'
import { removeWebhook, setWebhook } from '../../src/domain/operator/webhooks.ts'
import { credentials, type TestApp } from './app.ts'
import { tester } from './operator.ts'

/** Rules, prices and budgets of a running service, as operators set them. */
export function policyOf({ app: { context } }: { readonly app: Pick<TestApp['app'], 'context'> }) {
  const { acting, brands, apps, prices, budgets, policy, now } = context
  const ports = { ...acting(tester), brands, apps, prices, isCountry: isRegion }
  const entry = { action: 'destination.set', target: 'test', details: {} } as const
  return {
    /** Without the checks for operators. */
    rule: (
      rule: string,
      action: DestinationRule['action'],
      options: Partial<Omit<DestinationRule, 'rule' | 'action'>> = {},
    ) =>
      policy.change({ actor: tester, now: now() }, () => ({
        saveRules: [{ rule, action, brandSlug: null, providers: [], sender: null, route: null, ...options }],
        entry,
      })),
    removeRule: (rule: string) =>
      policy.change({ actor: tester, now: now() }, () => ({
        removeRules: [{ rule, brandSlug: null }],
        entry,
      })),
    webhook: (url: string, eventTypes?: readonly EventType[], appId: string = credentials.appId) =>
      setWebhook({ ...ports, isProduction: false, hostKind: hostKindWith([]) }, appId, url, eventTypes),
    removeWebhook: (appId: string = credentials.appId) => removeWebhook(ports, appId),
    budget: (
      scope: string,
      amount: string,
      { period = 'day', alertAt = '80,100', stops = true, of = 'all' } = {},
    ) => budgetSet.perform(ports, { scope, of, period, amount, alertAt, stops }),
    lift: (scope: string, duration: string, of = 'all') => budgetLift.perform(ports, { scope, of, duration }),
    removeBudget: (scope: string, of = 'all') => budgetRemove.perform(ports, { scope, of }),
    /** `371 0.08`, or with a provider `371 0.08 one`, in EUR. Replaces the prices of these providers. */
    prices: (...rows: readonly string[]) =>
      priceImport.run(
        {
          ...ports,
          parsePrices: () => ({
            problems: [],
            rows: rows.map((row) => {
              const [prefix = '', price = '', provider = null] = row.split(' ')
              return { prefix, provider, priceMicros: parseMicros(price) ?? 0, currency: 'EUR' }
            }),
          }),
        },
        { prices: '' },
      ),
    /** What was spent of each budget in its present period, in thousandths. Of `country:*`, by country. */
    async spent(): Promise<Readonly<Record<string, number>>> {
      const all = (await policy.rows()).budgets
      const spent = await budgets.spent(all, now())
      return Object.fromEntries(spent.map(({ budget, micros }) => [budgetName(budget), micros / 1000]))
    },
  }
}

/** A provider that answers as a test says, and keeps what it got. */
export function testProvider(
  name: string,
  answer: (sms: Sms) => Outcome | Promise<Outcome> = () => accepted,
) {
  const sent: Sms[] = []
  const state = { answer }
  return {
    name,
    sent,
    /** How the next calls are answered. */
    answer(next: typeof answer): void {
      state.answer = next
    },
    async send(sms: Sms): Promise<Outcome> {
      sent.push(sms)
      return state.answer(sms)
    },
  } satisfies SmsProvider & Record<string, unknown>
}

export const accepted: Outcome = { kind: 'accepted' }
export const unknown: Outcome = { kind: 'unknown', reason: 'time-out' }
export const temporary: Outcome = { kind: 'retryable', reason: 'HTTP 503' }
export const rejected: Outcome = { kind: 'rejected', scope: 'recipient', reason: 'no such number' }
