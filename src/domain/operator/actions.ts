import type { Action } from './action.ts'
import { brandSetStatus } from './brands.ts'
import type { ChangePorts } from './changes.ts'
import { type DestinationPorts, destinationRemove, destinationSet } from './destinations.ts'
import { type GuardPorts, guardAllow, guardBlock, guardRemove } from './guard.ts'
import { budgetLift, budgetRemove, budgetSet, type MoneyPorts } from './money.ts'
import { type QueueOperatorPorts, queueCancel, queueRetry } from './queue.ts'

/** What all actions need. */
export interface ActionPorts
  extends ChangePorts,
    MoneyPorts,
    DestinationPorts,
    GuardPorts,
    QueueOperatorPorts {}

/** Every declared action. */
export const actions: readonly Action<ActionPorts>[] = [
  brandSetStatus,
  budgetSet,
  budgetLift,
  budgetRemove,
  destinationSet,
  destinationRemove,
  guardAllow,
  guardBlock,
  guardRemove,
  queueRetry,
  queueCancel,
]

export function actionOf(name: string): Action<ActionPorts> | undefined {
  return actions.find((action) => action.name === name)
}
