import { type Admission, type Claim, decide, type Taking } from '../../domain/limits.ts'
import { maxAttempts, type OtpStore, type Verdict } from '../../domain/otp.ts'
import { clockToleranceMs } from '../../domain/ports.ts'
import type { Database, StepAnswer } from './database.ts'

// Statements are prepared under their names, and each is one call of a function that the migrations own. The last
// parameter is the time of a test, or null.

const admit = {
  name: 'otpost_admit',
  text: 'SELECT otpost_admit($1::jsonb, $2::bigint, $3::bigint) AS answer',
}
const beginSend = {
  name: 'otpost_begin_send',
  text: 'SELECT otpost_begin_send($1::jsonb, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::bigint, $8::bigint, $9::bigint) AS answer',
}
const guess = {
  name: 'otpost_guess',
  text: 'SELECT otpost_guess($1::jsonb, $2::jsonb, $3::text, $4::text, $5::jsonb, $6::int, $7::bigint, $8::bigint) AS answer',
}
const moveEnd = {
  name: 'otpost_move_end',
  text: 'SELECT otpost_move_end($1::text, $2::text, $3::bigint, $4::bigint, $5::bigint) AS answer',
}
const abandonSend = {
  name: 'otpost_abandon_send',
  text: 'SELECT otpost_abandon_send($1::text, $2::text, $3::text, $4::jsonb, $5::bigint) AS answer',
}
const adopt = {
  name: 'otpost_adopt',
  text: 'SELECT otpost_adopt($1::text, $2::jsonb, $3::bigint) AS answer',
}
const look = {
  name: 'otpost_ledger',
  text: 'SELECT otpost_now($2::bigint) AS at, (SELECT state FROM ledgers WHERE subject = $1) AS state',
}

interface Admitting extends StepAnswer {
  /** The position of the claim that refused; null: all were taken. */
  readonly refused: number | null
  readonly endsAt: number
  readonly takings: readonly (readonly [subject: string, name: string, count: number, endsAt: number])[]
}

interface Guessed extends StepAnswer {
  readonly kind: Verdict['kind']
  readonly refused: number | null
  readonly endsAt: number
  readonly expiresAt: number | null
}

/** Codes and limits in PostgreSQL. Spans of time cross to the server, which alone says what time it is. */
export function createOtpStore({ step, pool, given }: Database): OtpStore {
  const admitAll = async (claims: readonly Claim[], now: number) =>
    admissionOf(claims, await step<Admitting>(admit, [encoded(claims), clockToleranceMs], now))

  return {
    admit: admitAll,
    check: async (claim, now) => {
      const [row] = await pool.query<{ at: number; state: LedgerState | null }>(look, [
        claim.subject,
        given(now),
      ])
      if (!row) throw new Error('the database gave no answer')
      const uncounted = { ...claim, counted: false }
      const window = row.state?.w[claim.name]
      const kept = window && { count: window[0], endsAt: window[1] }
      const { admission, changes } = decide([uncounted], () => kept, row.at)
      return changes.length === 0 ? admission : admitAll([uncounted], now)
    },
    beginSend: async (claims, { subject, brandSlug, id, hash, createdAt, expiresAt }, now) => {
      const values = [subject, brandSlug, id, hash, createdAt - now, expiresAt - now, clockToleranceMs]
      return admissionOf(claims, await step<Admitting>(beginSend, [encoded(claims), ...values], now))
    },
    moveEnd: async ({ subject, name, endsAt: takenEndsAt }, endsAt, now) => {
      await step(moveEnd, [subject, name, takenEndsAt, endsAt - now], now)
    },
    abandonSend: async ({ subject, brandSlug, id }, takings, now) => {
      const given = takings.map((taking) => [taking.subject, taking.name, taking.endsAt])
      await step(abandonSend, [subject, brandSlug, id, JSON.stringify(given)], now)
    },
    guess: async ({ claims, failureBudget, scope, keyedCodes }, now): Promise<Verdict> => {
      const { kind, refused, endsAt, expiresAt } = await step<Guessed>(
        guess,
        [
          encoded(claims),
          failureBudget ? JSON.stringify(position(failureBudget)) : null,
          scope.subject,
          scope.brandSlug,
          JSON.stringify(keyedCodes),
          maxAttempts,
          clockToleranceMs,
        ],
        now,
      )
      if (kind === 'locked') return { kind, expiresAt: expiresAt ?? now }
      if (kind !== 'refused') return { kind }
      const judges = failureBudget ? [...claims, { ...failureBudget, counted: false }] : claims
      return { kind, refusal: { admitted: false, refusedBy: claimAt(judges, refused), endsAt } }
    },
    adopt: async (subject, former, now) => {
      await step(adopt, [subject, JSON.stringify(former)], now)
    },
  }
}

/** A ledger as the functions keep it. */
interface LedgerState {
  readonly w: Readonly<Record<string, readonly [count: number, endsAt: number]>>
}

function encoded(claims: readonly Claim[]): string {
  return JSON.stringify(claims.map(position))
}

/** A claim by position. */
function position({ subject, name, max, windowMs, counted }: Claim) {
  return [subject, name, max, windowMs, counted] as const
}

function admissionOf(claims: readonly Claim[], { refused, endsAt, takings }: Admitting): Admission {
  if (refused !== null) return { admitted: false, refusedBy: claimAt(claims, refused), endsAt }
  return {
    admitted: true,
    takings: takings.map(([subject, name, count, endsAt]): Taking => ({ subject, name, count, endsAt })),
  }
}

function claimAt(claims: readonly Claim[], place: number | null): Claim {
  const claim = claims[place ?? -1]
  if (!claim) throw new Error('the database refused a claim that it was not asked for')
  return claim
}
