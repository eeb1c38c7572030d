import { type Admission, type Claim, decide, type Refusal, type Taking } from '../../domain/limits.ts'
import type { OtpStore, Verdict } from '../../domain/otp.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'
import type { Step } from './steps.ts'

const adopt = {
  name: 'otpost_adopt',
  text: 'SELECT otpost_adopt($1::text, $2::jsonb, $3::bigint) AS answer',
}
const lookStatement = {
  name: 'otpost_ledger',
  text: 'SELECT otpost_now($2::bigint) AS at, (SELECT state FROM ledgers WHERE subject = $1) AS state',
}

interface Looked {
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
}: Pick<Database, 'take' | 'given'> & { readonly pool: Connection }): OtpStore {
  const looks = new Map<string, { readonly look: Promise<Looked>; readonly began: number }>()

  /** Looks at a ledger. Requests that come at the same time, nearly all from the same few addresses, share a look. */
  function lookAt(subject: string, time: number | null): Promise<Looked> {
    const key = `${time} ${subject}`
    const began = performance.now()
    const known = looks.get(key)
    if (known && began - known.began <= freshMs) return known.look
    if (looks.size > 1000) looks.clear()
    const look = pool.query<Looked>(lookStatement, [subject, time]).then(([row]) => {
      if (!row) throw new Error('the database gave no answer')
      return row
    })
    looks.set(key, { look, began })
    return look
  }

  /** Takes a step, after which what was seen of its subjects counts no more. */
  async function takeStep<Answer>(step: Step, now: number): Promise<Answer> {
    const answer = await take<Answer>(step)
    if (looks.size > 0) {
      step((subject) => {
        looks.delete(`${given(now)} ${subject}`)
        return 0
      })
    }
    return answer
  }

  const admitAll = async (claims: readonly Claim[], now: number) =>
    admissionOf(
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
      const { at, state } = await lookAt(claim.subject, given(now))
      const uncounted = { ...claim, counted: false }
      const window = state?.w[claim.name]
      const kept = window && { count: window[0], endsAt: window[1] }
      const { admission, changes } = decide([uncounted], () => kept, at)
      if (changes.length > 0) return admitAll([uncounted], now)
      return admission.admitted ? admission : { ...admission, endsAt: admission.endsAt - at + now }
    },
    beginSend: async (claims, { subject, brandSlug, id, hash, createdAt, expiresAt }, now) =>
      admissionOf(
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
    moveEnd: async ({ subject, name, endsAt: takenEndsAt }, endsAt, now) => {
      await takeStep(
        (placeOf) => ['move', given(now), placeOf(subject, true), name, takenEndsAt, endsAt - now],
        now,
      )
    },
    abandonSend: async ({ subject, brandSlug, id }, takings, now) => {
      await takeStep(
        (placeOf) => [
          'abandon',
          given(now),
          placeOf(subject, false),
          brandSlug,
          id,
          takings.map((taking) => [placeOf(taking.subject, false), taking.name, taking.endsAt]),
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
    adopt: async (subject, former, now) => {
      await pool.query(adopt, [subject, JSON.stringify(former), given(now)])
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

function admissionOf(claims: readonly Claim[], answer: Admitting, now: number): Admission {
  if ('refused' in answer) return refusalOf(claims, answer, now)
  return {
    admitted: true,
    takings: answer.takings.map(([place, count, endsAt]): Taking => {
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
