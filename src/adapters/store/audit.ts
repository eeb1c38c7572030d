import { and, asc, desc, eq, gt, gte, inArray, like, lt, notInArray } from 'drizzle-orm'
import { type AuditEntry, type AuditReader, signInActions } from '../../domain/ground/audit.ts'
import type { Row, StoreDatabase } from './database.ts'

export function createAuditReader({ orm, tables: { audit } }: StoreDatabase): AuditReader {
  return {
    list: async ({ before, after, limit, actions, ...filters }) => {
      const { since, until, group, action, actorName, target, withoutSignIns } = filters
      const rows = await orm
        .select()
        .from(audit)
        .where(
          and(
            before === undefined ? undefined : lt(audit.id, before),
            after === undefined ? undefined : gt(audit.id, after),
            since === undefined ? undefined : gte(audit.at, since),
            until === undefined ? undefined : lt(audit.at, until),
            action === undefined ? undefined : eq(audit.action, action),
            target === undefined ? undefined : eq(audit.target, target),
            actorName === undefined ? undefined : eq(audit.name, actorName),
            group === undefined ? undefined : like(audit.action, `${group}.%`),
            withoutSignIns ? notInArray(audit.action, [...signInActions]) : undefined,
            actions && inArray(audit.action, [...actions]),
          ),
        )
        .orderBy(after === undefined ? desc(audit.id) : asc(audit.id))
        .limit(limit)
      if (after !== undefined) rows.reverse()
      return rows.map(({ by, name, ...row }) => ({ ...row, actor: { by, name } }))
    },
  }
}

export function auditRow({ actor, ...entry }: AuditEntry): Omit<Row<'audit'>, 'id'> {
  return { ...entry, ...actor }
}
