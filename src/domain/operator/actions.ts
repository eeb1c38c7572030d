import type { Contacts } from '../ground/contact.ts'
import type { Secrets } from '../ground/ports.ts'
import {
  type AccountActionPorts,
  operatorInvite,
  operatorRemove,
  operatorReset,
  operatorRole,
} from './accounts.ts'
import type { Action } from './action.ts'
import { type AppPorts, appIssue, appRevoke, appRevokeKey, appRotate, appSet } from './apps.ts'
import { brandSetStatus } from './brands.ts'
import type { OperatorPorts } from './changes.ts'
import { type DestinationPorts, destinationRemove, destinationSet } from './destinations.ts'
import { type GuardChangePorts, guardAllow, guardBlock, guardRemove } from './guard.ts'
import { budgetLift, budgetRemove, budgetSet, type MoneyPorts } from './money.ts'
import { type QueueOperatorPorts, queueCancel, queueRetry } from './queue.ts'
import { type ReviewActionPorts, reviewNumberAdd, reviewNumberRemove } from './review-numbers.ts'
import {
  appWebhook,
  appWebhookResend,
  appWebhookTest,
  type StoredEventPorts,
  type WebhookPorts,
} from './webhooks.ts'

/** What all actions need. */
export interface ActionPorts
  extends OperatorPorts,
    AccountActionPorts,
    AppPorts,
    DestinationPorts,
    StoredEventPorts,
    GuardChangePorts,
    MoneyPorts,
    QueueOperatorPorts,
    ReviewActionPorts,
    WebhookPorts {
  readonly contacts: Contacts
  readonly secrets: Secrets
}

/** Every declared action. */
export const actions: readonly Action<ActionPorts>[] = [
  brandSetStatus,
  appIssue,
  appSet,
  appRotate,
  appRevokeKey,
  appRevoke,
  appWebhook,
  appWebhookTest,
  appWebhookResend,
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
  reviewNumberAdd,
  reviewNumberRemove,
  operatorInvite,
  operatorRole,
  operatorReset,
  operatorRemove,
]

export function actionOf(name: string): Action<ActionPorts> | undefined {
  return actions.find((action) => action.name === name)
}
