import { and, desc, eq, gt, lte, type SQL } from 'drizzle-orm'
import type { AuditEntry } from '../../domain/operator/audit.ts'
import type { ConsoleStore } from '../../domain/operator/sessions.ts'
import { auditRow } from './audit.ts'
import type { StoreDatabase } from './database.ts'
import { run } from './statements.ts'

export function createConsoleStore({
  orm,
  tables: { audit, consoleLinks, consoleSessions: sessions },
  write,
  transaction,
}: StoreDatabase): ConsoleStore {
  return {
    addLink: (tokenSha256, expiresAt, entry) =>
      write(
        orm.delete(consoleLinks).where(lte(consoleLinks.expiresAt, entry.at)),
        orm.insert(consoleLinks).values({ tokenSha256, expiresAt }),
        orm.insert(audit).values(auditRow(entry)),
      ),
    useLink: (tokenSha256, session, entry) =>
      transaction(function* (inside) {
        const isUsable = and(eq(consoleLinks.tokenSha256, tokenSha256), gt(consoleLinks.expiresAt, entry.at))
        // Of concurrent uses, one deletes the row.
        const used = yield* run(
          inside.delete(consoleLinks).where(isUsable).returning({ expiresAt: consoleLinks.expiresAt }),
        )
        if (used.length === 0) return false
        yield* run(inside.insert(sessions).values(session))
        yield* run(inside.insert(audit).values(auditRow(entry)))
        return true
      }),
    begin: (session, entry) =>
      write(
        orm.delete(sessions).where(lte(sessions.expiresAt, entry.at)),
        orm.insert(sessions).values(session),
        orm.insert(audit).values(auditRow(entry)),
      ),
    find: async (tokenSha256, now) => {
      const isLive = and(eq(sessions.tokenSha256, tokenSha256), gt(sessions.expiresAt, now))
      const [session] = await orm.select().from(sessions).where(isLive)
      return session
    },
    list: async (now) =>
      orm.select().from(sessions).where(gt(sessions.expiresAt, now)).orderBy(desc(sessions.lastSeenAt)),
    prolong: (tokenSha256, lastSeenAt, expiresAt) =>
      write(orm.update(sessions).set({ lastSeenAt, expiresAt }).where(eq(sessions.tokenSha256, tokenSha256))),
    end: async (tokenSha256, entry) => (await end(eq(sessions.tokenSha256, tokenSha256), entry)) > 0,
    endAll: (entry) => end(undefined, entry),
  }

  function end(which: SQL | undefined, entry: AuditEntry): Promise<number> {
    return transaction(function* (inside) {
      const ended = yield* run(inside.delete(sessions).where(which).returning({ by: sessions.by }))
      if (ended.length > 0) yield* run(inside.insert(audit).values(auditRow(entry)))
      return ended.length
    })
  }
}
