import { and, desc, gte, lt } from 'drizzle-orm'
import { type AuditEntry, type AuditReader, actorName } from '../../domain/operator/audit.ts'
import type { OperatorStore } from '../../domain/operator/operator.ts'
import { appTable } from './apps.ts'
import { brandTable } from './brands.ts'
import type { Database } from './database.ts'
import { requestTable } from './integration-requests.ts'
import { audit } from './schema.ts'

/** Changes of an operator in SQLite: each is one step of the writer, its entry of the audit log included. */
export function createOperatorStore({
  orm,
  writer,
  changes,
}: Pick<Database, 'orm' | 'writer' | 'changes'>): OperatorStore {
  const brands = brandTable(orm)
  const apps = appTable(orm)
  const requests = requestTable(orm)
  const { add } = auditTable(orm)

  return {
    change: ({ brandSlug, appId, requestId }, { actor, now }, decide) =>
      writer.write(() => {
        changes.tell()
        const decision = decide({
          brand: brandSlug === undefined ? undefined : brands.read(brandSlug),
          keys: appId === undefined ? [] : apps.read(appId),
          request: requestId === undefined ? undefined : requests.read(requestId),
        })
        const { brand, newKey, revokedKeys = [], verdict, entry } = decision
        if (brand) brands.put(brand)
        if (appId !== undefined) {
          for (const lastFour of revokedKeys) apps.revoke(appId, lastFour, now)
          if (newKey) apps.add(appId, newKey, now)
        }
        if (verdict && requestId !== undefined) {
          requests.decide(requestId, { ...verdict, decidedAt: now, decidedBy: actorName(actor) })
        }
        if (entry) add({ at: now, actor, ...entry })
        // It is plain data, which the type of a step can't see of a type that is open.
        return decision as never
      }),
    note: (entry) => writer.write(() => add(entry)),
  }
}

/** The audit log in SQLite. */
export function createAuditReader({ orm }: Pick<Database, 'orm'>): AuditReader {
  return {
    list: async ({ before, since, limit }) =>
      orm
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
        .all()
        .map(({ by, name, action, ...row }) => ({
          ...row,
          actor: { by, name },
          action: action as AuditEntry['action'],
        })),
  }
}

/** The audit log as a step of the writer adds to it. */
export function auditTable(orm: Database['orm']) {
  return {
    add({ actor, ...entry }: AuditEntry): void {
      orm
        .insert(audit)
        .values({ ...entry, ...actor })
        .run()
    },
  }
}
