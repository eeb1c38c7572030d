import { and, desc, eq, gte, inArray, lt } from 'drizzle-orm'
import type { AuditEntry, AuditReader } from '../../domain/operator/audit.ts'
import type { AuditRow, StoreDatabase } from './database.ts'

export function createAuditReader({ orm, tables: { audit } }: StoreDatabase): AuditReader {
  return {
    list: async ({ before, since, target, actions, limit }) => {
      const rows = await orm
        .select()
        .from(audit)
        .where(
          and(
            before === undefined ? undefined : lt(audit.id, before),
            since === undefined ? undefined : gte(audit.at, since),
            target === undefined ? undefined : eq(audit.target, target),
            actions && inArray(audit.action, [...actions]),
          ),
        )
        .orderBy(desc(audit.id))
        .limit(limit)
      return rows.map(({ by, name, ...row }) => ({ ...row, actor: { by, name } }))
    },
  }
}

export function auditRow({ actor, ...entry }: AuditEntry): Omit<AuditRow, 'id'> {
  return { ...entry, ...actor }
}
