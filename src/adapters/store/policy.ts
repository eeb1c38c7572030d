import { and, asc, eq } from 'drizzle-orm'
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
import { type Orm, run, type StatementSteps } from './statements.ts'

export function createPolicyStore(database: StoreDatabase): PolicyStore & {
  /** @returns the policy of the present revision. `latest`: of the latest call */
  readonly cached: (smsCountries: readonly string[]) => ReadPolicy & { latest(): Policy | undefined }
} {
  const { orm, tables, policyChanges, serialTransaction } = database
  const {
    acknowledgements,
    audit,
    budgets,
    destinationRules,
    guardMode,
    guardPrefixes,
    incidentThresholds,
    providerPauses,
    relays,
    reviewNumbers,
    webhooks,
  } = tables

  async function rows(): Promise<PolicyRows> {
    const [scopes, brands, rules, prefixes, modes, all, hooks, numbers, pauses, thresholds, known, named] =
      await Promise.all([
        orm.select().from(tables.apps),
        orm.select().from(tables.appBrands).orderBy(asc(tables.appBrands.brandSlug)),
        orm.select().from(destinationRules).orderBy(asc(destinationRules.rule)),
        // The guard may have blocked thousands, which it reads itself.
        orm.select().from(guardPrefixes).where(eq(guardPrefixes.by, 'operator')),
        orm.select().from(guardMode),
        orm.select().from(budgets).orderBy(asc(budgets.scope), asc(budgets.of)),
        orm.select().from(webhooks).orderBy(asc(webhooks.appId)),
        orm.select().from(reviewNumbers).orderBy(asc(reviewNumbers.createdAt)),
        orm.select().from(providerPauses),
        orm.select().from(incidentThresholds),
        orm.select().from(acknowledgements),
        orm.select().from(relays).orderBy(asc(relays.name)),
      ])
    return {
      scopes: scopesOf(scopes, brands),
      rules: rules.map(ruleOf),
      prefixes,
      guardMode: modeOf(modes),
      budgets: all,
      webhooks: hooks,
      reviewNumbers: numbers,
      pauses,
      thresholds: thresholdsOf(thresholds),
      acknowledgements: known,
      relays: named,
    }
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
          const rules = yield* run(inside.select().from(destinationRules))
          const prefixes = yield* run(inside.select().from(guardPrefixes))
          const modes = yield* run(inside.select().from(guardMode))
          const all = yield* run(inside.select().from(budgets))
          const hooks = yield* run(inside.select().from(webhooks))
          const numbers = yield* run(inside.select().from(reviewNumbers))
          const pauses = yield* run(inside.select().from(providerPauses))
          const thresholds = yield* run(inside.select().from(incidentThresholds))
          const known = yield* run(inside.select().from(acknowledgements))
          const named = yield* run(inside.select().from(relays))
          const change = decide({
            rules: rules.map(ruleOf),
            prefixes,
            guardMode: modeOf(modes),
            budgets: all,
            webhooks: hooks,
            reviewNumbers: numbers,
            pauses,
            thresholds: thresholdsOf(thresholds),
            acknowledgements: known,
            relays: named,
          })
          yield* saveRows(inside, tables, change, now)
          if (change.alert) yield* addAlert(inside, tables, change.alert, alertChannels)
          if (change.entry) {
            yield* run(inside.insert(audit).values(auditRow({ at: now, actor, ...change.entry })))
          }
          return change
        })
      } finally {
        policyChanges.invalidate()
      }
    },
  }
}

/** Saves and removes the rows that a change names. */
function* saveRows(inside: Orm, tables: Tables, change: PolicyChange, now: EpochMs): StatementSteps<void> {
  const {
    acknowledgements,
    budgets,
    destinationRules,
    events,
    guardMode,
    guardPrefixes,
    incidentThresholds,
    providerPauses,
    relays,
    reviewNumbers,
    webhooks,
  } = tables
  const isWaiting = (appId: string) => and(eq(events.appId, appId), eq(events.state, 'waiting'))
  for (const rule of change.saveRules ?? []) {
    const row = { ...rule, brandSlug: rule.brandSlug ?? '' }
    const target = [destinationRules.rule, destinationRules.brandSlug]
    yield* run(inside.insert(destinationRules).values(row).onConflictDoUpdate({ target, set: row }))
  }
  for (const { rule, brandSlug } of change.removeRules ?? []) {
    const isRule = and(eq(destinationRules.rule, rule), eq(destinationRules.brandSlug, brandSlug ?? ''))
    yield* run(inside.delete(destinationRules).where(isRule))
  }
  for (const row of change.savePrefixes ?? []) {
    const target = [guardPrefixes.prefix, guardPrefixes.by]
    yield* run(inside.insert(guardPrefixes).values(row).onConflictDoUpdate({ target, set: row }))
  }
  for (const { prefix, by } of change.removePrefixes ?? []) {
    const isPrefix = and(eq(guardPrefixes.prefix, prefix), eq(guardPrefixes.by, by))
    yield* run(inside.delete(guardPrefixes).where(isPrefix))
  }
  if (change.saveGuardMode) {
    const { mode, temporary } = change.saveGuardMode
    const { mode: temporaryMode = null, since = null, until = null } = temporary ?? {}
    const set = { id: 1, mode, temporaryMode, since, until }
    yield* run(inside.insert(guardMode).values(set).onConflictDoUpdate({ target: guardMode.id, set }))
  }
  for (const row of change.saveBudgets ?? []) {
    const target = [budgets.scope, budgets.of]
    yield* run(inside.insert(budgets).values(row).onConflictDoUpdate({ target, set: row }))
  }
  for (const { scope, of } of change.removeBudgets ?? []) {
    yield* run(inside.delete(budgets).where(and(eq(budgets.scope, scope), eq(budgets.of, of))))
  }
  for (const row of change.savePauses ?? []) {
    const target = providerPauses.provider
    yield* run(inside.insert(providerPauses).values(row).onConflictDoUpdate({ target, set: row }))
  }
  for (const { provider } of change.removePauses ?? []) {
    yield* run(inside.delete(providerPauses).where(eq(providerPauses.provider, provider)))
  }
  if (change.saveThresholds) {
    const set = { id: 1, ...change.saveThresholds }
    const target = incidentThresholds.id
    yield* run(inside.insert(incidentThresholds).values(set).onConflictDoUpdate({ target, set }))
  }
  for (const row of change.saveAcknowledgements ?? []) {
    const target = acknowledgements.about
    yield* run(inside.insert(acknowledgements).values(row).onConflictDoUpdate({ target, set: row }))
  }
  for (const { about } of change.removeAcknowledgements ?? []) {
    yield* run(inside.delete(acknowledgements).where(eq(acknowledgements.about, about)))
  }
  for (const row of change.saveWebhooks ?? []) {
    const target = webhooks.appId
    yield* run(inside.insert(webhooks).values(row).onConflictDoUpdate({ target, set: row }))
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
    yield* run(inside.delete(webhooks).where(eq(webhooks.appId, appId)))
    yield* run(inside.delete(events).where(isWaiting(appId)))
  }
  for (const row of change.saveRelays ?? []) {
    yield* run(inside.insert(relays).values(row).onConflictDoUpdate({ target: relays.name, set: row }))
  }
  for (const { name } of change.removeRelays ?? []) {
    yield* run(inside.delete(relays).where(eq(relays.name, name)))
  }
  for (const { subject, brandSlug } of change.removeReviewNumbers ?? []) {
    const isNumber = and(eq(reviewNumbers.subject, subject), eq(reviewNumbers.brandSlug, brandSlug))
    yield* run(inside.delete(reviewNumbers).where(isNumber))
  }
  for (const row of change.saveReviewNumbers ?? []) {
    yield* run(inside.insert(reviewNumbers).values(row))
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
  const { failedPercent, unverifiedPercent, silentMinutes } = row
  return { failedPercent, unverifiedPercent, silentMinutes }
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
