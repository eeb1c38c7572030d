import { and, eq } from 'drizzle-orm'
import type { NewEvent } from '../../domain/ground/webhook-events.ts'
import type { Effect } from '../../domain/limits/effects.ts'
import { auditRow } from './audit.ts'
import type { StoreDatabase, Tables } from './database.ts'
import { givenRows, type Orm, replacing, type Statement } from './statements.ts'

export function eventInsert(orm: Orm, events: Tables['events'], event: NewEvent): Statement<unknown> {
  return orm.insert(events).values({ ...event, state: 'new', tries: 0, dueAt: event.at })
}

type EffectTables = Pick<Tables, 'audit' | 'events' | 'idempotencyKeys' | 'notifyOrders' | 'notifyJobs'>

/** For the transaction of the step. */
export function effectStatements(
  orm: Orm,
  { audit, events, idempotencyKeys, notifyOrders, notifyJobs }: EffectTables,
  effect: Effect,
  jsonElements: StoreDatabase['jsonElements'],
): readonly Statement<unknown>[] {
  /** Another request may have the key by now. */
  const isOf = ({ hash, requestId }: { readonly hash: string; readonly requestId: string }) =>
    and(eq(idempotencyKeys.hash, hash), eq(idempotencyKeys.requestId, requestId))
  switch (effect.kind) {
    case 'event':
      return [eventInsert(orm, events, effect.event)]
    case 'audit':
      return [orm.insert(audit).values(auditRow(effect.entry))]
    case 'key': {
      const unanswered = { ...effect.key, status: null, answer: null }
      const target = [idempotencyKeys.hash]
      return [
        orm.insert(idempotencyKeys).values(unanswered).onConflictDoUpdate(replacing(idempotencyKeys, target)),
      ]
    }
    case 'answer': {
      const { status, answer, expiresAt } = effect
      return [orm.update(idempotencyKeys).set({ status, answer, expiresAt }).where(isOf(effect))]
    }
    case 'free-key':
      return [orm.delete(idempotencyKeys).where(isOf(effect))]
    case 'queue':
      return [
        orm.insert(notifyOrders).values(effect.order),
        orm
          .insert(notifyJobs)
          .select(givenRows(jsonElements, notifyJobs, effect.jobs, [notifyJobs.position])),
      ]
  }
}
