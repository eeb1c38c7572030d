import { type Claim, decide, type Grant, type LimitDecision, type Refusal } from '../../domain/otp/limits.ts'
import type { OtpStore, Verdict } from '../../domain/otp/store.ts'
import type { Database } from './database.ts'
import type { Queryable } from './pool.ts'
import type { Step } from './steps.ts'

const rekey = {
  name: 'otpost_adopt',
  text: 'SELECT otpost_adopt($1::text, $2::jsonb, $3::bigint) AS answer',
}
const pollStatement = {
  name: 'otpost_ledger',
  text: 'SELECT otpost_now($2::bigint) AS at, (SELECT state FROM ledgers WHERE subject = $1) AS state',
}

interface Polled {
  readonly at: number
  readonly state: LedgerState | null
}

/** How long a look at a ledger counts for a check, which counts nothing: what is counted is decided exactly, by a step. */
const freshMs = 10

/** Places are those of claims in their list. */
type Admitting =
  | { readonly refused: number; readonly endsInMs: number }
  | { readonly takings: readonly (readonly [place: number, count: number, endsAt: number])[] }

type Guessed =
  | { readonly kind: 'verified' | 'mismatch' | 'absent' }
  | { readonly kind: 'locked'; readonly endsInMs: number }
  | { readonly kind: 'refused'; readonly refused: number; readonly endsInMs: number }

/**
 * Codes and limits in PostgreSQL. Spans of time cross to the server, which alone says what time it is, and back: what a
 * caller has to wait is the same by any clock. Ends of takings are the server's own, by which it finds them again.
 */
export function createOtpStore({
  take,
  pool,
  given,
}: Pick<Database, 'take' | 'given'> & { readonly pool: Queryable }): OtpStore {
  const polls = new Map<string, { readonly poll: Promise<Polled>; readonly began: number }>()

  /** Looks at a ledger. Requests that come at the same time, nearly all from the same few addresses, share a look. */
  function pollAt(subject: string, time: number | null): Promise<Polled> {
    const key = `${time} ${subject}`
    const began = performance.now()
    const known = polls.get(key)
    if (known && began - known.began <= freshMs) return known.poll
    if (polls.size > 1000) polls.clear()
    const poll = pool.query<Polled>(pollStatement, [subject, time]).then(([row]) => {
      if (!row) throw new Error('the database gave no answer')
      return row
    })
    polls.set(key, { poll, began })
    return poll
  }

  /** Takes a step, after which what was seen of its subjects counts no more. */
  async function takeStep<Answer>(step: Step, now: number): Promise<Answer> {
    const answer = await take<Answer>(step)
    if (polls.size > 0) {
      step((subject) => {
        polls.delete(`${given(now)} ${subject}`)
        return 0
      })
    }
    return answer
  }

  const admitAll = async (claims: readonly Claim[], now: number) =>
    decisionOf(
      claims,
      await takeStep<Admitting>(
        (placeOf) => ['admit', given(now), claims.map((claim) => positioned(claim, placeOf))],
        now,
      ),
      now,
    )

  return {
    admit: admitAll,
    check: async (claim, now) => {
      const { at, state } = await pollAt(claim.subject, given(now))
      const uncounted = { ...claim, counted: false }
      const window = state?.w[claim.name]
      const kept = window && { count: window[0], endsAt: window[1] }
      const { decision, changes } = decide([uncounted], () => kept, at)
      if (changes.length > 0) return admitAll([uncounted], now)
      return decision.admitted ? decision : { ...decision, endsAt: decision.endsAt - at + now }
    },
    beginSend: async (claims, { subject, brandSlug, id, hash, createdAt, expiresAt }, now) =>
      decisionOf(
        claims,
        await takeStep<Admitting>(
          (placeOf) => [
            'begin',
            given(now),
            claims.map((claim) => positioned(claim, placeOf)),
            placeOf(subject, true),
            brandSlug,
            id,
            hash,
            createdAt - now,
            expiresAt - now,
          ],
          now,
        ),
        now,
      ),
    reschedule: async ({ subject, name, endsAt: takenEndsAt }, endsAt, now) => {
      await takeStep(
        (placeOf) => ['move', given(now), placeOf(subject, true), name, takenEndsAt, endsAt - now],
        now,
      )
    },
    abandonSend: async ({ subject, brandSlug, id }, grants, now) => {
      await takeStep(
        (placeOf) => [
          'abandon',
          given(now),
          placeOf(subject, false),
          brandSlug,
          id,
          grants.map((grant) => [placeOf(grant.subject, false), grant.name, grant.endsAt]),
        ],
        now,
      )
    },
    guess: async ({ claims, failureBudget, scope, keyedCodes }, now): Promise<Verdict> => {
      const guessed = await takeStep<Guessed>(
        (placeOf) => [
          'guess',
          given(now),
          claims.map((claim) => positioned(claim, placeOf)),
          placeOf(scope.subject, false),
          scope.brandSlug,
          keyedCodes,
          failureBudget ? positioned({ ...failureBudget, counted: false }, placeOf) : null,
        ],
        now,
      )
      if (guessed.kind === 'locked') return { kind: 'locked', expiresAt: now + guessed.endsInMs }
      if (guessed.kind !== 'refused') return guessed
      const judges = failureBudget ? [...claims, { ...failureBudget, counted: false }] : claims
      return { kind: 'refused', refusal: refusalOf(judges, guessed, now) }
    },
    rekey: async (subject, former, now) => {
      await pool.query(rekey, [subject, JSON.stringify(former), given(now)])
    },
  }
}

/** A ledger as the functions keep it. */
interface LedgerState {
  readonly w: Readonly<Record<string, readonly [count: number, endsAt: number]>>
}

/** A claim by position. */
function positioned({ subject, name, max, windowMs, counted }: Claim, placeOf: Parameters<Step>[0]) {
  return [placeOf(subject, counted), name, max, windowMs, counted] as const
}

function decisionOf(claims: readonly Claim[], answer: Admitting, now: number): LimitDecision {
  if ('refused' in answer) return refusalOf(claims, answer, now)
  return {
    admitted: true,
    grants: answer.takings.map(([place, count, endsAt]): Grant => {
      const { subject, name } = claimAt(claims, place)
      return { subject, name, count, endsAt }
    }),
  }
}

function refusalOf(
  claims: readonly Claim[],
  { refused, endsInMs }: Extract<Admitting, { refused: number }>,
  now: number,
): Refusal {
  return { admitted: false, refusedBy: claimAt(claims, refused), endsAt: now + endsInMs }
}

function claimAt(claims: readonly Claim[], place: number): Claim {
  const claim = claims[place]
  if (!claim) throw new Error('the database answered for a claim that it was not asked for')
  return claim
}
