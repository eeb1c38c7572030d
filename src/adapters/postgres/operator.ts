import { and, desc, gte, lt, sql } from 'drizzle-orm'
import { type AuditEntry, type AuditReader, actorName } from '../../domain/operator/audit.ts'
import type { OperatorStore } from '../../domain/operator/operator.ts'
import { appTable } from './apps.ts'
import { brandTable } from './brands.ts'
import { type Database, type Orm, ormOn } from './database.ts'
import { requestTable } from './integration-requests.ts'
import { audit } from './schema.ts'
import { storableRow } from './text.ts'

/**
 * Changes of an operator in PostgreSQL: each is one transaction, its entry of the audit log included. They go one after
 * another over all nodes, by the lock on the row that they change anyway, so that each decides on what is.
 */
export function createOperatorStore({
  orm,
  pool,
  changes,
}: Pick<Database, 'orm' | 'pool' | 'changes'>): OperatorStore {
  return {
    change: async ({ brandSlug, appId, requestId }, { actor, now }, decide) => {
      try {
        return await pool.transaction(async (connection) => {
          const inside = ormOn(connection)
          const [brands, apps, requests] = [brandTable(inside), appTable(inside), requestTable(inside)]
          await inside.execute(sql`SELECT number FROM revision WHERE id = 1 FOR UPDATE`)
          const decision = decide({
            brand: brandSlug === undefined ? undefined : await brands.read(brandSlug),
            keys: appId === undefined ? [] : await apps.read(appId),
            request: requestId === undefined ? undefined : await requests.read(requestId),
          })
          const { brand, newKey, revokedKeys = [], verdict, entry } = decision
          if (brand) await brands.put(brand)
          if (appId !== undefined) {
            for (const lastFour of revokedKeys) await apps.revoke(appId, lastFour, now)
            if (newKey) await apps.add(appId, newKey, now)
          }
          if (verdict && requestId !== undefined) {
            await requests.decide(requestId, { ...verdict, decidedAt: now, decidedBy: actorName(actor) })
          }
          if (entry) await auditTable(inside).add({ at: now, actor, ...entry })
          return decision
        })
      } finally {
        changes.tell()
      }
    },
    note: (entry) => auditTable(orm).add(entry),
  }
}

/** The audit log in PostgreSQL. */
export function createAuditReader({ orm }: Pick<Database, 'orm'>): AuditReader {
  return {
    list: async ({ before, since, limit }) => {
      const rows = await orm
        .select()
        .from(audit)
        .where(
          and(
            before === undefined ? undefined : lt(audit.id, before),
            since === undefined ? undefined : gte(audit.at, since),
          ),
        )
        .orderBy(desc(audit.id))
        .limit(limit)
      return rows.map(({ by, name, action, ...row }) => ({
        ...row,
        actor: { by, name },
        action: action as AuditEntry['action'],
      }))
    },
  }
}

/** The audit log as a change adds to it. */
export function auditTable(orm: Orm) {
  return {
    async add({ actor, ...entry }: AuditEntry): Promise<void> {
      await orm.insert(audit).values(storableRow({ ...entry, ...actor }))
    },
  }
}
