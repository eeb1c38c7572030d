import { and, desc, eq, gt, lte } from 'drizzle-orm'
import type { ConsoleStore } from '../../domain/operator/sessions.ts'
import type { Database } from './database.ts'
import { auditTable } from './operator.ts'
import { consoleLinks, consoleSessions } from './schema.ts'

/** Sessions of the console and the links that open it, in SQLite. */
export function createConsoleStore({ orm, writer }: Pick<Database, 'orm' | 'writer'>): ConsoleStore {
  const audit = auditTable(orm)
  const isLive = (now: number) => gt(consoleSessions.expiresAt, now)
  return {
    addLink: (tokenSha256, expiresAt, entry) =>
      writer.write(() => {
        orm.delete(consoleLinks).where(lte(consoleLinks.expiresAt, entry.at)).run()
        orm.insert(consoleLinks).values({ tokenSha256, expiresAt }).run()
        audit.add(entry)
      }),
    hasLink: async (now) =>
      orm.select().from(consoleLinks).where(gt(consoleLinks.expiresAt, now)).limit(1).get() !== undefined,
    useLink: (tokenSha256, session, entry) =>
      writer.write(() => {
        const used = orm
          .delete(consoleLinks)
          .where(and(eq(consoleLinks.tokenSha256, tokenSha256), gt(consoleLinks.expiresAt, entry.at)))
          .run()
        if (used.changes === 0) return false
        orm.insert(consoleSessions).values(session).run()
        audit.add(entry)
        return true
      }),
    begin: (session, entry) =>
      writer.write(() => {
        orm.delete(consoleSessions).where(lte(consoleSessions.expiresAt, entry.at)).run()
        orm.insert(consoleSessions).values(session).run()
        audit.add(entry)
      }),
    find: async (tokenSha256, now) =>
      orm
        .select()
        .from(consoleSessions)
        .where(and(eq(consoleSessions.tokenSha256, tokenSha256), isLive(now)))
        .get(),
    list: async (now) =>
      orm.select().from(consoleSessions).where(isLive(now)).orderBy(desc(consoleSessions.lastSeenAt)).all(),
    prolong: (tokenSha256, lastSeenAt, expiresAt) =>
      writer.write(() => {
        orm
          .update(consoleSessions)
          .set({ lastSeenAt, expiresAt })
          .where(eq(consoleSessions.tokenSha256, tokenSha256))
          .run()
      }),
    end: (tokenSha256, entry) =>
      writer.write(() => {
        const ended = orm.delete(consoleSessions).where(eq(consoleSessions.tokenSha256, tokenSha256)).run()
        if (ended.changes > 0) audit.add(entry)
        return ended.changes > 0
      }),
    endAll: (entry) =>
      writer.write(() => {
        const { changes } = orm.delete(consoleSessions).run()
        if (changes > 0) audit.add(entry)
        return changes
      }),
  }
}
