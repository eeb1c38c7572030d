import { timingSafeEqual } from 'node:crypto'
import { and, eq, gt, lt, sql } from 'drizzle-orm'
import { type Claim, decide, type Taking, type Window } from '../../domain/limits.ts'
import { type GuessAttempt, maxAttempts, type OtpStore, type Verdict } from '../../domain/otp.ts'
import { clockToleranceMs } from '../../domain/ports.ts'
import type { Database } from './database.ts'
import { otps, windows } from './schema.ts'

/** Codes and limits in SQLite: each step of the port is one synchronous callback of the writer. */
export function createOtpStore({ orm, writer }: Database): OtpStore {
  const statements = prepare(orm)

  const take = (claims: readonly Claim[], now: number) => {
    const { admission, changes } = decide(claims, windowOf, now)
    for (const change of changes) statements.putWindow.run({ ...change })
    return admission
  }
  const windowOf = ({ subject, name }: Claim): Window | undefined => statements.window.get({ subject, name })

  const judge = ({ claims, failureBudget, scope, guess }: GuessAttempt, now: number): Verdict => {
    // The budget is looked at with the other limits, and counted only once the code is known to be wrong.
    const budget = failureBudget && { ...failureBudget, counted: false }
    const admission = take(budget ? [...claims, budget] : claims, now)
    if (!admission.admitted) return { kind: 'refused', refusal: admission }
    if (!guess) return { kind: 'absent' }

    const key = { ...scope, id: guess.recordId }
    const charged = statements.charge.get({ ...key, now })
    if (!charged) {
      const locked = statements.live.get({ ...scope, now })
      return locked?.id === guess.recordId
        ? { kind: 'locked', expiresAt: locked.expiresAt }
        : { kind: 'absent' }
    }
    if (!equal(charged.hash, guess.hash)) {
      if (failureBudget) take([failureBudget], now)
      return { kind: 'mismatch' }
    }
    statements.remove.run(key)
    if (failureBudget) statements.removeWindow.run({ ...failureBudget })
    return { kind: 'verified' }
  }

  return {
    admit: (claims, now) => writer.write(() => take(claims, now)),
    check: async (claim, now) => {
      const uncounted = [{ ...claim, counted: false }]
      const { admission, changes } = decide(uncounted, windowOf, now)
      return changes.length === 0 ? admission : writer.write(() => take(uncounted, now))
    },
    beginSend: (claims, record, now) =>
      writer.write(() => {
        const admission = take(claims, now)
        if (admission.admitted) statements.replace.run({ ...record })
        return admission
      }),
    moveEnd: (taking, endsAt) =>
      writer.write(() => void statements.moveEnd.run({ ...taking, newEnd: endsAt })),
    abandonSend: ({ id, subject, brandSlug }, takings) =>
      writer.write(() => {
        statements.remove.run({ id, subject, brandSlug })
        for (const taking of takings) giveBack(taking)
      }),
    find: async (scope, now) => statements.live.get({ ...scope, now }),
    guess: (attempt, now) => writer.write(() => judge(attempt, now)),
  }

  /** A window that counted nothing else is closed again: windows open with their first counted request (design D3). */
  function giveBack(taking: Taking): void {
    if (statements.closeWindow.run({ ...taking }).changes === 0) statements.uncount.run({ ...taking })
  }
}

function equal(stored: string, computed: string): boolean {
  const [a, b] = [Buffer.from(stored), Buffer.from(computed)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function prepare(orm: Database['orm']) {
  const given = sql.placeholder
  const scope = and(eq(otps.subject, given('subject')), eq(otps.brandSlug, given('brandSlug')))
  const record = and(scope, eq(otps.id, given('id')))
  const alive = and(
    gt(otps.expiresAt, given('now')),
    sql`${otps.createdAt} <= ${given('now')} + ${sql.raw(String(clockToleranceMs))}`,
  )
  const window = and(eq(windows.subject, given('subject')), eq(windows.name, given('name')))
  const taken = and(window, eq(windows.endsAt, given('endsAt')))
  const fields = {
    id: given('id'),
    salt: given('salt'),
    hash: given('hash'),
    createdAt: given('createdAt'),
    expiresAt: given('expiresAt'),
    attempts: 0,
  }
  return {
    live: orm
      .select({ id: otps.id, salt: otps.salt, expiresAt: otps.expiresAt })
      .from(otps)
      .where(and(scope, alive))
      .prepare(),
    charge: orm
      .update(otps)
      .set({ attempts: sql`${otps.attempts} + 1` })
      .where(and(record, lt(otps.attempts, maxAttempts), alive))
      .returning({ hash: otps.hash })
      .prepare(),
    remove: orm.delete(otps).where(record).prepare(),
    replace: orm
      .insert(otps)
      .values({ subject: given('subject'), brandSlug: given('brandSlug'), ...fields })
      .onConflictDoUpdate({
        target: [otps.subject, otps.brandSlug],
        set: {
          id: sql`excluded.id`,
          salt: sql`excluded.salt`,
          hash: sql`excluded.hash`,
          attempts: sql`excluded.attempts`,
          createdAt: sql`excluded.created_at`,
          expiresAt: sql`excluded.expires_at`,
        },
      })
      .prepare(),
    window: orm
      .select({ count: windows.count, endsAt: windows.endsAt })
      .from(windows)
      .where(window)
      .prepare(),
    putWindow: orm
      .insert(windows)
      .values({
        subject: given('subject'),
        name: given('name'),
        count: given('count'),
        endsAt: given('endsAt'),
      })
      .onConflictDoUpdate({
        target: [windows.subject, windows.name],
        set: { count: sql`excluded.count`, endsAt: sql`excluded.ends_at` },
      })
      .prepare(),
    removeWindow: orm.delete(windows).where(window).prepare(),
    closeWindow: orm
      .delete(windows)
      .where(and(taken, eq(windows.count, 1)))
      .prepare(),
    uncount: orm
      .update(windows)
      .set({ count: sql`${windows.count} - 1` })
      .where(and(taken, gt(windows.count, 1)))
      .prepare(),
    moveEnd: orm
      .update(windows)
      .set({ endsAt: sql`${given('newEnd')}` })
      .where(taken)
      .prepare(),
  }
}
