import { type Delivery, requestIdOfKey } from '../delivery/delivery-reports.ts'
import type { DestinationOf } from '../delivery/destination.ts'
import { type Clock, type EpochMs, periodOf } from '../ground/time.ts'
import type { ClaimStore } from '../limits/claim-store.ts'
import type { Grant } from '../limits/limits.ts'
import { mayBeSent, newRequestContext, testAppId } from '../request/request-context.ts'
import { Charge, type Tariff } from './charge.ts'
import type { Spend } from './spending.ts'

interface RefundPorts {
  readonly store: Pick<ClaimStore, 'admit' | 'giveBack'>
  readonly policy: () => Tariff | Promise<Tariff>
  readonly destinationOf: DestinationOf
  readonly deliveries: (query: { requestId: string; limit: number }) => Promise<readonly Delivery[]>
  /** In the statistics. */
  readonly countSpend: (at: EpochMs, spend: Spend, micros: number) => void
  readonly now: Clock
}

/**
 * A message that its provider refunded cost nothing: each budget receives its present price, if the period in which it was sent has not
 * ended, and the statistics of that time too.
 * @param reportKey of an attempt with its own callback URL
 * @param to the digits of the number
 */
export async function refund(ports: RefundPorts, reportKey: string, to: string): Promise<void> {
  const requestId = requestIdOfKey(reportKey)
  if (requestId === undefined) return
  const attempts = await ports.deliveries({ requestId, limit: 1000 })
  const attempt = attempts.find((each) => each.reportKey === reportKey && mayBeSent(each))
  if (!attempt) return
  const { at, app, country, provider, route } = attempt
  const brand = attempt.brand ?? ''
  const segments = { count: attempt.segments?.count ?? 1 }
  const step = { route: route ?? 'plain', provider: { name: provider }, segments }
  const message = { to, country, kind: ports.destinationOf(to).kind, steps: [step] }
  const about = { app, brand, of: app === testAppId ? 'notifications' : 'codes' } as const
  const context = newRequestContext({ requestId, at, clientIp: '' })
  const tariff = await ports.policy()
  // A budget that began later did not count it.
  const budgetsOf = (scope: string) => tariff.budgetsOf(scope).filter(({ countsFrom }) => countsFrom <= at)
  const charge = new Charge({ ...tariff, budgetsOf }, about, context, ports, [message])
  const grants = charge.claims.flatMap(({ subject, name, units, period }): Grant[] =>
    units && period ? [{ subject, name, units, count: 0, expiresAt: periodOf(period, at).end }] : [],
  )
  const { micros, currency } = charge.spend(message, step)
  if (grants.length > 0) await ports.store.giveBack(grants, ports.now())
  ports.countSpend(at, { currency, country, app, brand, provider }, -micros)
}
