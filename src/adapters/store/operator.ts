import { and, asc, desc, eq, inArray, isNull } from 'drizzle-orm'
import { actorName, requestMailActions } from '../../domain/ground/audit.ts'
import type { OperatorStore } from '../../domain/operator/changes.ts'
import { auditRow } from './audit.ts'
import { readBrand, saveBrand } from './brands.ts'
import type { StoreDatabase } from './database.ts'
import { listedKey } from './keys.ts'
import { readScope, saveScope } from './policy.ts'
import { run } from './statements.ts'

export function createOperatorStore({
  orm,
  tables,
  changes,
  write,
  serialTransaction,
}: StoreDatabase): OperatorStore {
  const { appKeys, audit, brands, integrationRequests } = tables
  return {
    change: async ({ brandSlug = '', appId = '', requestId = '' }, { actor, now }, decide) => {
      try {
        return await serialTransaction(function* (inside) {
          const ofApp = eq(appKeys.appId, appId)
          const isRequest = eq(integrationRequests.id, requestId)
          const brand = yield* readBrand(inside, tables, brandSlug)
          const slugs = yield* run(inside.select({ slug: brands.slug }).from(brands))
          const keys = yield* run(inside.select().from(appKeys).where(ofApp).orderBy(asc(appKeys.createdAt)))
          const [request] = yield* run(inside.select().from(integrationRequests).where(isRequest))
          const { id, at, action } = audit
          const isMail = and(eq(audit.target, requestId), inArray(action, [...requestMailActions]))
          const mails = inside.select({ id, at, action }).from(audit).where(isMail).orderBy(desc(id)).limit(1)
          // The audit log has no index by target.
          const [lastMail] = requestId === '' ? [] : yield* run(mails)
          const scope = yield* readScope(inside, tables, appId)
          const decision = decide({
            brand,
            brandSlugs: slugs.map(({ slug }) => slug),
            keys: keys.map(listedKey),
            scope,
            request,
            lastMail,
          })
          const { newKey, revokedKeys = [], verdict, entry } = decision
          if (decision.scope) yield* saveScope(inside, tables, decision.scope)
          yield* saveBrand(inside, tables, brandSlug, decision)
          for (const lastFour of revokedKeys) {
            const isKey = and(ofApp, eq(appKeys.lastFour, lastFour), isNull(appKeys.revokedAt))
            yield* run(inside.update(appKeys).set({ revokedAt: now }).where(isKey))
          }
          if (newKey) {
            const { sha256: keySha256, lastFour } = newKey
            // The keys of an app must differ in time, even within a millisecond.
            const createdAt = Math.max(now, ...keys.map((key) => key.createdAt + 1))
            yield* run(inside.insert(appKeys).values({ appId, keySha256, lastFour, createdAt }))
          }
          if (verdict) {
            const decided = { ...verdict, decidedAt: now, decidedBy: actorName(actor) }
            yield* run(inside.update(integrationRequests).set(decided).where(isRequest))
          }
          if (entry) yield* run(inside.insert(audit).values(auditRow({ at: now, actor, ...entry })))
          return decision
        })
      } finally {
        changes.invalidate()
      }
    },
    note: (entry) => write(orm.insert(audit).values(auditRow(entry))),
  }
}
