import type { Contacts } from '../ground/contact.ts'
import type { Secrets } from '../ground/ports.ts'
import { type AccountActionPorts, accountActions } from './accounts.ts'
import type { Action } from './action.ts'
import { type AppPorts, appActions } from './apps.ts'
import { type BrandPorts, brandActions } from './brands.ts'
import type { BrandStore, OperatorPorts } from './changes.ts'
import { type DestinationPorts, ruleActions } from './destinations.ts'
import { type GuardChangePorts, guardActions } from './guard.ts'
import { type AcknowledgePorts, incidentActions } from './incidents.ts'
import { tokenActions } from './manage-tokens.ts'
import { type MoneyPorts, moneyActions, type PriceImportPorts } from './money.ts'
import { providerActions } from './providers.ts'
import { type QueueOperatorPorts, queueActions } from './queue.ts'
import { type RelayChangePorts, relayActions } from './relays.ts'
import { type RequestPorts, requestActions } from './requests.ts'
import { type ReviewActionPorts, reviewNumberActions } from './review-numbers.ts'
import { type RestorePorts, textActions } from './texts.ts'
import { type StoredEventPorts, type WebhookPorts, webhookActions } from './webhooks.ts'

/** What all actions need. */
export interface ActionPorts
  extends OperatorPorts,
    AcknowledgePorts,
    AccountActionPorts,
    AppPorts,
    BrandPorts,
    DestinationPorts,
    StoredEventPorts,
    GuardChangePorts,
    MoneyPorts,
    PriceImportPorts,
    QueueOperatorPorts,
    RelayChangePorts,
    ReviewActionPorts,
    RequestPorts,
    RestorePorts,
    WebhookPorts {
  readonly brands: BrandStore
  readonly contacts: Contacts
  readonly secrets: Secrets
}

/** Every declared action. */
export const actions: readonly Action<ActionPorts>[] = [
  ...brandActions,
  ...textActions,
  ...requestActions,
  ...appActions,
  ...webhookActions,
  ...moneyActions,
  ...ruleActions,
  ...providerActions,
  ...guardActions,
  ...queueActions,
  ...incidentActions,
  ...reviewNumberActions,
  ...relayActions,
  ...accountActions,
  ...tokenActions,
]

export function actionOf(name: string): Action<ActionPorts> | undefined {
  return actions.find((action) => action.name === name)
}
