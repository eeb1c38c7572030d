import { and, eq } from 'drizzle-orm'
import type { NewEvent } from '../../domain/ground/webhook-events.ts'
import type { Effect } from '../../domain/limits/effects.ts'
import { auditRow } from './audit.ts'
import type { StoreDatabase, Tables } from './database.ts'
import { isClimbing, ladderEnd } from './ladders.ts'
import { givenRows, type Orm, replacing, type Statement } from './statements.ts'

export function eventInsert(orm: Orm, events: Tables['events'], event: NewEvent): Statement<unknown> {
  return orm.insert(events).values({ ...event, state: 'new', tries: 0, dueAt: event.at })
}

type EffectTables = Pick<
  Tables,
  'audit' | 'events' | 'idempotencyKeys' | 'ladders' | 'notifyOrders' | 'notifyJobs'
>

/** For the transaction of the step. */
export function effectStatements(
  orm: Orm,
  { audit, events, idempotencyKeys, ladders, notifyOrders, notifyJobs }: EffectTables,
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
    case 'ladder':
      return [orm.insert(ladders).values(effect.row)]
    case 'ladder-way': {
      const { requestId, ways, attempts, dueAt } = effect
      const sending = { ways, attempts, dueAt, sentAt: null, reportKey: null }
      return [orm.update(ladders).set(sending).where(isClimbing(ladders, requestId))]
    }
    case 'ladder-end':
      return [ladderEnd(orm, ladders, effect.requestId, effect.ended)]
    case 'queue':
      return [
        orm.insert(notifyOrders).values(effect.order),
        orm
          .insert(notifyJobs)
          .select(givenRows(jsonElements, notifyJobs, effect.jobs, [notifyJobs.position])),
      ]
  }
}
