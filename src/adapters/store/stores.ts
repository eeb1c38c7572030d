import { createAlertStore } from './alerts.ts'
import { createAuditReader } from './audit.ts'
import { createBrandStore } from './brands.ts'
import { createBudgetCounters } from './budgets.ts'
import type { StoreDatabase } from './database.ts'
import { createEventLogReader } from './event-log.ts'
import { createEventStore } from './events.ts'
import { createRecipientCounter } from './forget.ts'
import { createGuardStore } from './guard.ts'
import { createIdempotencyKeys } from './idempotency-keys.ts'
import { createIntegrationRequestStore } from './integration-requests.ts'
import { createKeyStore } from './keys.ts'
import { createLadderStore } from './ladders.ts'
import { createNotifyJobStore } from './notify-jobs.ts'
import { createOperatorStore } from './operator.ts'
import { createOutbox } from './outbox.ts'
import { createPolicyStore } from './policy.ts'
import { createPriceStore } from './prices.ts'
import { createConsoleStore } from './sessions.ts'
import { createStatistics } from './statistics.ts'

export type Stores = ReturnType<typeof createStores>

export function createStores(database: StoreDatabase) {
  const large = { ...database, orm: database.reader }
  return {
    eventLog: createEventLogReader(database),
    statistics: createStatistics(database),
    brands: createBrandStore(database),
    keys: createKeyStore(database),
    ladderStore: createLadderStore(database),
    operator: createOperatorStore(database),
    policy: createPolicyStore(database),
    guard: createGuardStore(database),
    idempotencyKeys: createIdempotencyKeys(database),
    prices: createPriceStore(database),
    budgets: createBudgetCounters(database),
    alerts: createAlertStore(database),
    jobs: createNotifyJobStore(database),
    events: createEventStore(database),
    requests: createIntegrationRequestStore(database),
    audit: createAuditReader(large),
    sessions: createConsoleStore(database),
    outbox: createOutbox(database),
    countRecipient: createRecipientCounter(large),
  }
}
