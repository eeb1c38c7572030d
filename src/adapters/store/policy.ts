import { and, asc, type Column, eq, type SQL } from 'drizzle-orm'
import type { DestinationRule } from '../../domain/delivery/destination.ts'
import { alertChannels } from '../../domain/ground/alert.ts'
import type { EpochMs } from '../../domain/ground/time.ts'
import { firstDueAt, whileOff } from '../../domain/ground/webhook-events.ts'
import type { StoredMode } from '../../domain/guard/mode.ts'
import { type AppScope, isUnscoped } from '../../domain/limits/scope.ts'
import { Policy, type ReadPolicy } from '../../domain/policy/policy.ts'
import {
  defaultThresholds,
  type IncidentThresholds,
  type PolicyChange,
  type PolicyRows,
  type PolicyStore,
} from '../../domain/policy/policy-store.ts'
import { addAlert } from './alerts.ts'
import { auditRow } from './audit.ts'
import { cached, type Row, type StoreDatabase, type Tables } from './database.ts'
import { createPriceReader } from './prices.ts'
import {
  allOf,
  type Orm,
  type ResultsOf,
  run,
  runAll,
  type StatementSteps,
  type StoreTable,
} from './statements.ts'

export function createPolicyStore(database: StoreDatabase): PolicyStore & {
  /** @returns the policy of the present revision. `latest`: of the latest call */
  readonly cached: (smsCountries: readonly string[]) => ReadPolicy & { latest(): Policy | undefined }
} {
  const { orm, tables, policyChanges, serialTransaction } = database
  const { guardPrefixes } = tables

  async function rows(): Promise<PolicyRows> {
    // The guard may have blocked thousands, which it reads itself.
    const statements = policyStatements(orm, tables, eq(guardPrefixes.by, 'operator'))
    const [stored, scopes, brands] = await Promise.all([
      allOf(statements),
      orm.select().from(tables.apps),
      orm.select().from(tables.appBrands).orderBy(asc(tables.appBrands.brandSlug)),
    ])
    return { scopes: scopesOf(scopes, brands), ...policyOf(stored) }
  }

  return {
    rows,
    cached: (smsCountries) => {
      const { list } = createPriceReader(database)
      let latest: Policy | undefined
      const read = cached(policyChanges, async () => {
        latest = new Policy(await rows(), await list(), smsCountries)
        return latest
      })
      return Object.assign(() => read(''), { latest: () => latest })
    },
    change: async ({ actor, now }, decide) => {
      try {
        return await serialTransaction(function* (inside) {
          const change = decide(policyOf(yield* runAll(policyStatements(inside, tables))))
          yield* saveRows(inside, tables, change, now)
          if (change.alert) yield* addAlert(inside, tables, change.alert, alertChannels)
          if (change.entry) {
            yield* run(inside.insert(tables.audit).values(auditRow({ at: now, actor, ...change.entry })))
          }
          return change
        })
      } finally {
        policyChanges.invalidate()
      }
    },
  }
}

/** @param ofPrefixes those that are read. Undefined: all */
function policyStatements(orm: Orm, tables: Tables, ofPrefixes?: SQL) {
  const { budgets, destinationRules, manageTokens, relays, reviewNumbers, webhooks } = tables
  return {
    rules: orm.select().from(destinationRules).orderBy(asc(destinationRules.rule)),
    prefixes: orm.select().from(tables.guardPrefixes).where(ofPrefixes),
    guardMode: orm.select().from(tables.guardMode),
    budgets: orm.select().from(budgets).orderBy(asc(budgets.scope), asc(budgets.of)),
    webhooks: orm.select().from(webhooks).orderBy(asc(webhooks.appId)),
    reviewNumbers: orm.select().from(reviewNumbers).orderBy(asc(reviewNumbers.createdAt)),
    pauses: orm.select().from(tables.providerPauses),
    thresholds: orm.select().from(tables.incidentThresholds),
    acknowledgements: orm.select().from(tables.acknowledgements),
    relays: orm.select().from(relays).orderBy(asc(relays.name)),
    manageTokens: orm.select().from(manageTokens).orderBy(asc(manageTokens.name)),
  }
}

function policyOf(stored: ResultsOf<ReturnType<typeof policyStatements>>): Omit<PolicyRows, 'scopes'> {
  const { rules, guardMode, thresholds } = stored
  return {
    ...stored,
    rules: rules.map(ruleOf),
    guardMode: modeOf(guardMode),
    thresholds: thresholdsOf(thresholds),
  }
}

/** Saves and removes the rows that a change names. */
function* saveRows(inside: Orm, tables: Tables, change: PolicyChange, now: EpochMs): StatementSteps<void> {
  const { destinationRules, events, guardPrefixes, incidentThresholds, webhooks } = tables
  const { saveGuardMode, saveThresholds } = change
  const isWaiting = (appId: string) => and(eq(events.appId, appId), eq(events.state, 'waiting'))
  const ruleRow = <Rule extends Pick<DestinationRule, 'brandSlug'>>(rule: Rule) => ({
    ...rule,
    brandSlug: rule.brandSlug ?? '',
  })
  const [saved, removed] = [change.saveRules?.map(ruleRow), change.removeRules?.map(ruleRow)]
  yield* replaceRows(inside, destinationRules, ['rule', 'brandSlug'], saved, removed)
  yield* replaceRows(inside, guardPrefixes, ['prefix', 'by'], change.savePrefixes, change.removePrefixes)
  if (saveGuardMode) {
    const { mode, temporary } = saveGuardMode
    const { mode: temporaryMode = null, since = null, until = null } = temporary ?? {}
    yield* replaceRows(inside, tables.guardMode, ['id'], [{ id: 1, mode, temporaryMode, since, until }])
  }
  yield* replaceRows(inside, tables.budgets, ['scope', 'of'], change.saveBudgets, change.removeBudgets)
  yield* replaceRows(inside, tables.providerPauses, ['provider'], change.savePauses, change.removePauses)
  if (saveThresholds) yield* replaceRows(inside, incidentThresholds, ['id'], [{ id: 1, ...saveThresholds }])
  yield* replaceRows(
    inside,
    tables.acknowledgements,
    ['about'],
    change.saveAcknowledgements,
    change.removeAcknowledgements,
  )
  yield* replaceRows(inside, webhooks, ['appId'], change.saveWebhooks, change.removeWebhooks)
  for (const row of change.saveWebhooks ?? []) {
    // While the webhook is off, its events are not due.
    const dueAt = firstDueAt(row, now)
    const isOther = row.disabledAt === null ? eq(events.dueAt, whileOff) : undefined
    yield* run(
      inside
        .update(events)
        .set({ dueAt })
        .where(and(isWaiting(row.appId), isOther)),
    )
  }
  for (const { appId } of change.removeWebhooks ?? []) {
    yield* run(inside.delete(events).where(isWaiting(appId)))
  }
  yield* replaceRows(inside, tables.relays, ['name'], change.saveRelays, change.removeRelays)
  yield* replaceRows(
    inside,
    tables.manageTokens,
    ['name'],
    change.saveManageTokens,
    change.removeManageTokens,
  )
  yield* replaceRows(
    inside,
    tables.reviewNumbers,
    ['subject', 'brandSlug'],
    change.saveReviewNumbers,
    change.removeReviewNumbers,
  )
}

/** Deletes the removed rows, then inserts or replaces the saved ones. @param key names of columns */
function* replaceRows<Row, Key extends keyof Row & string>(
  inside: Orm,
  table: StoreTable<Row>,
  key: readonly Key[],
  saved: readonly Row[] = [],
  removed: readonly Pick<Row, Key>[] = [],
): StatementSteps<void> {
  const columnOf = (name: Key): Column => table[name]
  for (const row of removed) {
    const isRow = key.map((name) => eq(columnOf(name), row[name]))
    yield* run(inside.delete(table).where(and(...isRow)))
  }
  const target = key.map(columnOf)
  for (const row of saved) {
    yield* run(inside.insert(table).values(row).onConflictDoUpdate({ target, set: row }))
  }
}

function scopesOf(scopes: readonly Row<'apps'>[], brands: readonly Row<'appBrands'>[]): AppScope[] {
  const ofApp = Map.groupBy(brands, ({ appId }) => appId)
  return scopes.map((scope) => ({
    ...scope,
    brands: (ofApp.get(scope.appId) ?? []).map(({ brandSlug }) => brandSlug),
  }))
}

function ruleOf(row: Row<'destinationRules'>): DestinationRule {
  return { ...row, brandSlug: row.brandSlug || null }
}

function modeOf([row]: readonly Row<'guardMode'>[]): StoredMode | null {
  if (!row) return null
  const { mode, temporaryMode, since, until } = row
  const isTemporary = temporaryMode !== null && since !== null && until !== null
  return { mode, temporary: isTemporary ? { mode: temporaryMode, since, until } : null }
}

function thresholdsOf([row]: readonly Row<'incidentThresholds'>[]): IncidentThresholds {
  if (!row) return defaultThresholds
  const { failedPercent, silentMinutes } = row
  return { failedPercent, silentMinutes }
}

type ScopeTables = Pick<Tables, 'apps' | 'appBrands'>

export function* readScope(
  orm: Orm,
  { apps, appBrands }: ScopeTables,
  appId: string,
): StatementSteps<AppScope | undefined> {
  const [scope] = yield* run(orm.select().from(apps).where(eq(apps.appId, appId)))
  const ofApp = eq(appBrands.appId, appId)
  const brands = yield* run(orm.select().from(appBrands).where(ofApp).orderBy(asc(appBrands.brandSlug)))
  return scope && { ...scope, brands: brands.map(({ brandSlug }) => brandSlug) }
}

/** An unscoped app has no rows. */
export function* saveScope(
  orm: Orm,
  { apps, appBrands }: ScopeTables,
  scope: AppScope,
): StatementSteps<void> {
  const { brands, ...row } = scope
  yield* run(
    isUnscoped(scope)
      ? orm.delete(apps).where(eq(apps.appId, scope.appId))
      : orm.insert(apps).values(row).onConflictDoUpdate({ target: apps.appId, set: row }),
  )
  yield* run(orm.delete(appBrands).where(eq(appBrands.appId, scope.appId)))
  for (const brandSlug of brands) {
    yield* run(orm.insert(appBrands).values({ appId: scope.appId, brandSlug }))
  }
}
