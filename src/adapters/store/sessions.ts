import { and, asc, desc, eq, gt, lte, sql } from 'drizzle-orm'
import type { Account, AccountRow, Passkey } from '../../domain/accounts/accounts.ts'
import type { ConsoleStore } from '../../domain/accounts/sessions.ts'
import { auditRow } from './audit.ts'
import { cached, type Row, type StoreDatabase, type Tables } from './database.ts'
import { type Orm, run, type StatementSteps } from './statements.ts'

export function createConsoleStore({
  orm,
  tables,
  changes,
  write,
  serialTransaction,
}: StoreDatabase): ConsoleStore {
  const { audit, consoleLinks: links, consoleSessions: sessions, operators, passkeys, recoveryCodes } = tables
  const readOnce = cached(changes, async () =>
    accountsOf(
      ...(await Promise.all([
        orm.select().from(operators).orderBy(asc(operators.email)),
        orm.select().from(passkeys).orderBy(asc(passkeys.createdAt)),
        orm.select().from(recoveryCodes),
      ])),
    ),
  )
  return {
    accounts: async () => readOnce(''),
    invited: async (now) => {
      const valid = await orm.select({ id: links.operatorId }).from(links).where(gt(links.expiresAt, now))
      return new Set(valid.flatMap(({ id }) => id ?? []))
    },
    find: async (tokenSha256, now) => {
      const isLive = and(eq(sessions.tokenSha256, tokenSha256), gt(sessions.expiresAt, now))
      const [session] = await orm.select().from(sessions).where(isLive)
      return session
    },
    list: async (now) =>
      orm.select().from(sessions).where(gt(sessions.expiresAt, now)).orderBy(desc(sessions.lastSeenAt)),
    prolong: (tokenSha256, lastSeenAt, expiresAt) =>
      write(orm.update(sessions).set({ lastSeenAt, expiresAt }).where(eq(sessions.tokenSha256, tokenSha256))),
    noteFailedSignIn: (operatorId) =>
      write(
        orm
          .update(operators)
          .set({ failedSignIns: sql`${operators.failedSignIns} + 1` })
          .where(eq(operators.id, operatorId)),
      ),
    change: async ({ linkSha256 = '', now }, decide) => {
      try {
        return await serialTransaction(function* (inside) {
          yield* run(inside.delete(sessions).where(lte(sessions.expiresAt, now)))
          yield* run(inside.delete(links).where(lte(links.expiresAt, now)))
          const isLink = eq(links.tokenSha256, linkSha256)
          const [link] = yield* run(inside.select().from(links).where(isLink))
          const decision = decide({
            accounts: accountsOf(
              yield* run(inside.select().from(operators).orderBy(asc(operators.email))),
              yield* run(inside.select().from(passkeys).orderBy(asc(passkeys.createdAt))),
              yield* run(inside.select().from(recoveryCodes)),
            ),
            sessions: yield* run(inside.select().from(sessions)),
            link,
          })
          const {
            saveAccount,
            removeAccount,
            addLink,
            usesLink,
            saveSession,
            endSessions = [],
            entry,
          } = decision
          if (saveAccount) yield* save(inside, tables, saveAccount)
          if (removeAccount !== undefined) {
            yield* run(inside.delete(operators).where(eq(operators.id, removeAccount)))
            yield* run(inside.delete(passkeys).where(eq(passkeys.operatorId, removeAccount)))
            yield* run(inside.delete(recoveryCodes).where(eq(recoveryCodes.operatorId, removeAccount)))
            yield* run(inside.delete(links).where(eq(links.operatorId, removeAccount)))
          }
          if (usesLink) yield* run(inside.delete(links).where(isLink))
          if (addLink) {
            const { operatorId } = addLink
            if (operatorId !== null) yield* run(inside.delete(links).where(eq(links.operatorId, operatorId)))
            yield* run(inside.insert(links).values(addLink))
          }
          if (saveSession) {
            const target = sessions.tokenSha256
            yield* run(
              inside.insert(sessions).values(saveSession).onConflictDoUpdate({ target, set: saveSession }),
            )
          }
          for (const tokenSha256 of endSessions) {
            yield* run(inside.delete(sessions).where(eq(sessions.tokenSha256, tokenSha256)))
          }
          if (entry) yield* run(inside.insert(audit).values(auditRow(entry)))
          return decision
        })
      } finally {
        changes.invalidate()
      }
    },
  }
}

function accountsOf(
  rows: readonly AccountRow[],
  passkeys: readonly Passkey[],
  codes: readonly Row<'recoveryCodes'>[],
): readonly Account[] {
  return rows.map((row) => ({
    ...row,
    passkeys: passkeys.filter(({ operatorId }) => operatorId === row.id),
    recoveryCodes: codes
      .filter(({ operatorId }) => operatorId === row.id)
      .map(({ codeSha256 }) => codeSha256),
  }))
}

function* save(
  inside: Orm,
  { operators, passkeys, recoveryCodes }: Tables,
  { passkeys: keys, recoveryCodes: codes, ...row }: Account,
): StatementSteps<void> {
  const { id: operatorId } = row
  yield* run(inside.insert(operators).values(row).onConflictDoUpdate({ target: operators.id, set: row }))
  yield* run(inside.delete(passkeys).where(eq(passkeys.operatorId, operatorId)))
  for (const key of keys) yield* run(inside.insert(passkeys).values(key))
  yield* run(inside.delete(recoveryCodes).where(eq(recoveryCodes.operatorId, operatorId)))
  for (const codeSha256 of codes) yield* run(inside.insert(recoveryCodes).values({ operatorId, codeSha256 }))
}
