import type { Action } from './action.ts'
import { budgetLift, budgetRemove, budgetSet, type MoneyPorts } from './money.ts'

/** What all actions need. */
export interface ActionPorts extends MoneyPorts {}

/** Every declared action. */
export const actions: readonly Action<ActionPorts>[] = [budgetSet, budgetLift, budgetRemove]

export function actionOf(name: string): Action<ActionPorts> | undefined {
  return actions.find((action) => action.name === name)
}
