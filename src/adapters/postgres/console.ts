import { and, desc, eq, gt, lte } from 'drizzle-orm'
import type { ConsoleStore } from '../../domain/operator/sessions.ts'
import { type Database, ormOn } from './database.ts'
import { auditTable } from './operator.ts'
import { consoleLinks, consoleSessions } from './schema.ts'

/** Sessions of the console and the links that open it, in PostgreSQL: they hold on every node. */
export function createConsoleStore({ orm, pool }: Pick<Database, 'orm' | 'pool'>): ConsoleStore {
  const isLive = (now: number) => gt(consoleSessions.expiresAt, now)
  return {
    addLink: (tokenSha256, expiresAt, entry) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        await inside.delete(consoleLinks).where(lte(consoleLinks.expiresAt, entry.at))
        await inside.insert(consoleLinks).values({ tokenSha256, expiresAt })
        await auditTable(inside).add(entry)
      }),
    hasLink: async (now) => {
      const links = await orm
        .select({ expiresAt: consoleLinks.expiresAt })
        .from(consoleLinks)
        .where(gt(consoleLinks.expiresAt, now))
        .limit(1)
      return links.length > 0
    },
    useLink: (tokenSha256, session, entry) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        // Of many who use it at once, one removes the row.
        const used = await inside
          .delete(consoleLinks)
          .where(and(eq(consoleLinks.tokenSha256, tokenSha256), gt(consoleLinks.expiresAt, entry.at)))
          .returning({ expiresAt: consoleLinks.expiresAt })
        if (used.length === 0) return false
        await inside.insert(consoleSessions).values(session)
        await auditTable(inside).add(entry)
        return true
      }),
    begin: (session, entry) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        await inside.delete(consoleSessions).where(lte(consoleSessions.expiresAt, entry.at))
        await inside.insert(consoleSessions).values(session)
        await auditTable(inside).add(entry)
      }),
    find: async (tokenSha256, now) => {
      const [session] = await orm
        .select()
        .from(consoleSessions)
        .where(and(eq(consoleSessions.tokenSha256, tokenSha256), isLive(now)))
      return session
    },
    list: async (now) =>
      orm.select().from(consoleSessions).where(isLive(now)).orderBy(desc(consoleSessions.lastSeenAt)),
    prolong: async (tokenSha256, lastSeenAt, expiresAt) => {
      await orm
        .update(consoleSessions)
        .set({ lastSeenAt, expiresAt })
        .where(eq(consoleSessions.tokenSha256, tokenSha256))
    },
    end: (tokenSha256, entry) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        const ended = await inside
          .delete(consoleSessions)
          .where(eq(consoleSessions.tokenSha256, tokenSha256))
          .returning({ by: consoleSessions.by })
        if (ended.length > 0) await auditTable(inside).add(entry)
        return ended.length > 0
      }),
    endAll: (entry) =>
      pool.transaction(async (connection) => {
        const inside = ormOn(connection)
        const ended = await inside.delete(consoleSessions).returning({ by: consoleSessions.by })
        if (ended.length > 0) await auditTable(inside).add(entry)
        return ended.length
      }),
  }
}
