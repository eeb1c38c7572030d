import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { saltedHash } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase } from '../../src/adapters/postgres/database.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import type { Claim, Grant, LimitDecision } from '../../src/domain/otp/limits.ts'
import {
  abandon,
  begin,
  type Code,
  judge,
  type Ledger,
  type Ledgers,
  prune,
  rekey,
  reschedule,
  take,
} from '../../src/domain/otp/state.ts'
import type { OtpRecord, OtpStore, Verdict } from '../../src/domain/otp/store.ts'
import { clockToleranceMs } from '../../src/domain/ports.ts'
import { targetOf } from '../store/postgres-database.ts'
import { type DatabaseOfATest, freshDatabase, withoutSharedPostgres } from '../support/postgres.ts'

// PostgreSQL has the rules of src/domain/otp/state.ts a second time, as functions of its own. Random steps are taken by those
// functions and by the rules themselves on ledgers in memory: each answer must be the same, and so must be what is kept.
// A failure prints seed and path, which are for `fc.assert`.

// ---------------------------------------------------------------------------------------------------------------------
// The rules, in memory
// ---------------------------------------------------------------------------------------------------------------------

class MemoryLedgers implements Ledgers {
  constructor(private readonly kept = new Map<string, Ledger>()) {}

  read(subject: string): Ledger {
    return this.kept.get(subject) ?? { windows: new Map(), codes: new Map() }
  }

  change(subject: string): Ledger {
    const ledger = this.read(subject)
    this.kept.set(subject, ledger)
    return ledger
  }

  copy(): MemoryLedgers {
    return new MemoryLedgers(
      new Map(
        Array.from(this.kept, ([subject, { windows, codes }]) => [
          subject,
          { windows: new Map(windows), codes: new Map(codes) },
        ]),
      ),
    )
  }

  /** Drops what is over, and tells the rest. */
  settle(now: number): Kept {
    return settled(this.kept, now)
  }
}

/** What is kept of each subject, without what is over. */
type Kept = Readonly<Record<string, { readonly windows: object; readonly codes: object }>>

function settled(ledgers: Map<string, Ledger>, now: number): Kept {
  for (const [subject, ledger] of ledgers) {
    if (prune(ledger, now) === undefined) ledgers.delete(subject)
  }
  return Object.fromEntries(
    Array.from(ledgers, ([subject, { windows, codes }]) => [
      subject,
      { windows: Object.fromEntries(windows), codes: Object.fromEntries(codes) },
    ]),
  )
}

function storeInMemory(ledgers: Ledgers): OtpStore {
  const isHashOf = (hash: string, recordId: string, keyedCode: string) =>
    hash === saltedHash(recordId, keyedCode)
  return {
    admit: async (claims, now) => take(ledgers, claims, now),
    check: async (claim, now) => take(ledgers, [{ ...claim, counted: false }], now),
    beginSend: async (claims, record, now) => begin(ledgers, claims, record, now),
    reschedule: async (grant, endsAt, now) => reschedule(ledgers, grant, endsAt, now),
    abandonSend: async (record, grants) => abandon(ledgers, record, grants),
    guess: async (attempt, now) => judge(ledgers, attempt, now, isHashOf),
    rekey: async (subject, former, now) => rekey(ledgers, subject, former, now),
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Steps
// ---------------------------------------------------------------------------------------------------------------------

/** Two names of one recipient, another recipient, and two applications, which are locked last. */
const subjects = ['ann', 'former ann', 'ben', 'app:desk', 'app:shop'] as const
const brands = ['acme', '1'] as const
const limitNames = ['minute', 'hour', 'cooldown:acme', 'failures:acme'] as const
const spansMs = [1, 1000, 30_000, 60_000, 3_600_000] as const

const subject = fc.constantFrom('ann', 'ann', 'ann', ...subjects)
const brand = fc.constantFrom('acme', ...brands)

function claimOf(name: fc.Arbitrary<string>): fc.Arbitrary<Claim> {
  return fc.record({
    subject,
    name,
    max: fc.constantFrom(0, 1, 1, 2, 3, 3, 1000),
    windowMs: fc.constantFrom(...spansMs),
    counted: fc.constantFrom(true, true, true, false),
    limit: fc.constant('app-minute' as const),
    failure: fc.constant('rate_limited' as const),
    message: fc.constant('Too many.'),
  })
}
const limitName = fc.constantFrom('minute', 'minute', ...limitNames)

/** Claims of which each is on a window of its own, as those of a step are. */
function claimsOn(name: fc.Arbitrary<string>): fc.Arbitrary<readonly Claim[]> {
  return fc.uniqueArray(claimOf(name), {
    maxLength: 4,
    selector: ({ subject, name }) => `${subject} ${name}`,
  })
}
const claims = claimsOn(limitName)
/** The budget of wrong guesses is none of them. */
const claimsOfGuess = fc.oneof(
  { weight: 2, arbitrary: fc.constant<readonly Claim[]>([]) },
  { weight: 1, arbitrary: claimsOn(limitName.filter((name) => name !== 'failures:acme')) },
)

/** A little before or after what a step would have said, as two servers may differ. */
const shiftMs = fc.constantFrom(0, 0, 0, -1, 1, -clockToleranceMs, clockToleranceMs, clockToleranceMs + 1)
const code = fc.constantFrom('1', '1', '2', '3')
/** Of those that have come about so far, counted from the last; more than there are means one that there never was. */
const place = fc.constantFrom(0, 0, 0, 1, 2, 5)

const beginSend = fc.record({
  kind: fc.constant('beginSend' as const),
  claims,
  subject,
  brandSlug: brand,
  code,
  createdInMs: shiftMs,
  lifeMs: fc.constantFrom(...spansMs),
})

const guess = fc.record({
  kind: fc.constant('guess' as const),
  claims: claimsOfGuess,
  budget: fc.option(claimOf(fc.constant('failures:acme')), { nil: undefined }),
  subject,
  brandSlug: brand,
  codes: fc.array(code, { minLength: 1, maxLength: 2 }),
})

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('admit' as const), claims }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('check' as const),
      claim: claimOf(limitName),
    }),
  },
  { weight: 4, arbitrary: beginSend },
  { weight: 5, arbitrary: guess },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('reschedule' as const),
      grant: place,
      shiftMs,
      endsInMs: fc.constantFrom(-1000, 0, ...spansMs),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('abandonSend' as const),
      record: place,
      grants: fc.array(place, { maxLength: 4 }),
      shiftMs,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('rekey' as const),
      subject,
      former: fc.array(subject, { maxLength: 3 }),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** What each limit is, wherever it is asked. */
const usualLimits = {
  minute: { max: 3, windowMs: 60_000 },
  hour: { max: 4, windowMs: 3_600_000 },
  'cooldown:acme': { max: 1, windowMs: 30_000 },
  'failures:acme': { max: 2, windowMs: 3_600_000 },
} as const

function isApp(subject: string): boolean {
  return subject.startsWith('app:')
}

/**
 * The step as the use cases take it: about one subject and applications, and by the same limits each time. Only for those
 * is a step atomic to the last: who asks for a code while it is made may be told that there is none, and counted after it.
 */
function usual(step: Step): Step {
  const own = 'subject' in step && !isApp(step.subject) ? step.subject : 'ann'
  const usualClaim = (claim: Claim): Claim => ({
    ...claim,
    ...usualLimits[claim.name as keyof typeof usualLimits],
    subject: isApp(claim.subject) ? claim.subject : own,
  })
  const usualClaims = (claims: readonly Claim[]): Claim[] => [
    ...new Map(claims.map(usualClaim).map((claim) => [`${claim.subject} ${claim.name}`, claim])).values(),
  ]
  switch (step.kind) {
    case 'admit':
      return { ...step, claims: usualClaims(step.claims) }
    case 'check':
      return { ...step, claim: usualClaim(step.claim) }
    case 'beginSend':
      return { ...step, subject: own, claims: usualClaims(step.claims) }
    case 'guess':
      return {
        ...step,
        subject: own,
        claims: usualClaims(step.claims),
        budget: step.budget && usualClaim(step.budget),
      }
    case 'rekey':
      return { ...step, subject: own, former: step.former.filter((name) => !isApp(name)) }
    default:
      return step
  }
}

/** Time goes on, or the clock is set: to just before, at and just after where things are over. */
const passing = fc.record({
  kind: fc.constant('pass' as const),
  ms: fc.constantFrom(
    ...spansMs,
    ...[999, 1001, 29_999, 59_999, 30_001, clockToleranceMs],
    ...[-1, -1000, -clockToleranceMs, -clockToleranceMs - 1, -60_000, -3_600_000],
  ),
})

type Passing = typeof passing extends fc.Arbitrary<infer Value> ? Value : never
type Asked = Step | Passing
/** Steps that are asked of several servers at once. */
type Round = readonly { readonly step: Step; readonly node: number }[] | Passing

type Answer = LimitDecision | Verdict | undefined

/** What has come about, for later steps to refer to. */
class Past {
  readonly grants: Grant[] = []
  readonly records: Pick<OtpRecord, 'id' | 'subject' | 'brandSlug'>[] = []
  private ids = 0

  newId(): string {
    // So long that PostgreSQL drops what is over from a row with two.
    return `record ${++this.ids}`.padEnd(150, '.')
  }

  grant(place: number, shiftMs: number): Grant {
    const grant = this.grants.at(-1 - place)
    if (!grant) return { subject: 'ann', name: 'cooldown:acme', endsAt: start, count: 1 }
    return { ...grant, endsAt: grant.endsAt + shiftMs }
  }

  record(place: number) {
    return this.records.at(-1 - place) ?? { id: 'no record', subject: 'ann', brandSlug: 'acme' }
  }
}

/** A step as it is asked of any store, of several the same. */
type Call = (store: OtpStore) => Promise<Answer>

function callOf(step: Step, past: Past, now: number): Call {
  switch (step.kind) {
    case 'admit':
      return (store) => store.admit(step.claims, now)
    case 'check':
      return (store) => store.check(step.claim, now)
    case 'beginSend': {
      const { subject, brandSlug, createdInMs, lifeMs } = step
      const id = past.newId()
      const hash = saltedHash(id, `keyed ${step.code}`)
      const createdAt = now + createdInMs
      const record = { subject, brandSlug, id, hash, createdAt, expiresAt: createdAt + lifeMs }
      past.records.push(record)
      return (store) => store.beginSend(step.claims, record, now)
    }
    case 'guess': {
      const { claims, budget, subject, brandSlug, codes } = step
      const attempt = {
        claims,
        failureBudget: budget && { ...budget, subject, counted: true },
        scope: { brandSlug, subject },
        keyedCodes: codes.map((code) => `keyed ${code}`),
      }
      return (store) => store.guess(attempt, now)
    }
    case 'reschedule': {
      const grant = past.grant(step.grant, step.shiftMs)
      return async (store) => void (await store.reschedule(grant, now + step.endsInMs, now))
    }
    case 'abandonSend': {
      const record = past.record(step.record)
      const grants = step.grants.map((place) => past.grant(place, step.shiftMs))
      return async (store) => void (await store.abandonSend(record, grants, now))
    }
    case 'rekey':
      return async (store) => void (await store.rekey(step.subject, step.former, now))
  }
}

const start = Date.UTC(2026, 0, 1, 12)

// ---------------------------------------------------------------------------------------------------------------------
// What is kept in PostgreSQL
// ---------------------------------------------------------------------------------------------------------------------

interface Row {
  readonly subject: string
  readonly ends_at: number
  readonly state: {
    readonly w: Readonly<Record<string, readonly [count: number, endsAt: number]>>
    readonly c: Readonly<
      Record<
        string,
        readonly [id: string, hash: string, attempts: number, createdAt: number, expiresAt: number]
      >
    >
  }
}

const selectRows = { name: 'all ledgers', text: 'SELECT subject, ends_at, state FROM ledgers' }
const updateRow = {
  name: 'update',
  text: 'UPDATE ledgers SET state = $2::jsonb, ends_at = $3 WHERE subject = $1',
}
const deleteRow = { name: 'delete one', text: 'DELETE FROM ledgers WHERE subject = $1' }
const deleteRows = { name: 'delete', text: 'DELETE FROM ledgers' }

function stateOf({ windows, codes }: Ledger): Row['state'] {
  return {
    w: Object.fromEntries(Array.from(windows, ([name, { count, endsAt }]) => [name, [count, endsAt]])),
    c: Object.fromEntries(
      Array.from(codes, ([slug, { id, hash, attempts, createdAt, expiresAt }]) => [
        slug,
        [id, hash, attempts, createdAt, expiresAt],
      ]),
    ),
  }
}

function partsOf({ windows, codes }: Ledger): number {
  return windows.size + codes.size
}

function ledgerOf({ state }: Row): Ledger {
  return {
    windows: new Map(Object.entries(state.w).map(([name, [count, endsAt]]) => [name, { count, endsAt }])),
    codes: new Map(
      Object.entries(state.c).map(([slug, [id, hash, attempts, createdAt, expiresAt]]): [string, Code] => [
        slug,
        { id, hash, attempts, createdAt, expiresAt },
      ]),
    ),
  }
}

/** Everything that was seen over all runs: steps that reach nothing prove nothing. */
const reached = new Map<string, number>()

function note(kind: Step['kind'], answer: Answer): void {
  const what = !answer ? 'done' : 'kind' in answer ? answer.kind : answer.admitted ? 'admitted' : 'refused'
  const key = `${kind}: ${what}`
  reached.set(key, (reached.get(key) ?? 0) + 1)
}

describe.skipIf(withoutSharedPostgres !== undefined)(
  `the functions of PostgreSQL and the rules of the domain${withoutSharedPostgres ? ` (${withoutSharedPostgres})` : ''}`,
  () => {
    let own: DatabaseOfATest
    let database: Database

    // Each step says itself what time it is.
    const open = () =>
      openDatabase(
        targetOf(own.url),
        () => start,
        () => {},
      )

    beforeAll(async () => {
      own = await freshDatabase()
      database = await open()
    })
    afterAll(async () => {
      await database.close()
      await own.remove()
    })

    /** What PostgreSQL keeps, which is left without what is over: a clock that is set back finds the same on both sides. */
    async function keptAt(now: number): Promise<Kept> {
      const rows = await database.pool.query<Row>(selectRows)
      const ledgers = new Map(rows.map((row) => [row.subject, ledgerOf(row)]))
      for (const { subject, ends_at } of rows) {
        const ledger = ledgers.get(subject)
        const before = ledger ? partsOf(ledger) : 0
        expect(before, `parts of the row of ${subject}`).toBeGreaterThan(0)
        const endsAt = ledger && prune(ledger, now)
        if (endsAt === undefined || !ledger) await database.pool.query(deleteRow, [subject])
        else {
          expect(ends_at, `when the row of ${subject} may be removed`).toBeGreaterThanOrEqual(endsAt)
          if (partsOf(ledger) === before) continue
          await database.pool.query(updateRow, [subject, JSON.stringify(stateOf(ledger)), ends_at])
        }
      }
      return settled(ledgers, now)
    }

    /** How many there were; a connection tells what it has met when it is over. */
    async function deadlocks(): Promise<number> {
      const countOf = async (query: string) => Number((await database.pool.rows(query, []))[0]?.[0])
      const connections = () =>
        countOf('SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()')
      while ((await connections()) > database.pool.stats().size);
      return countOf('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
    }

    test('answer and keep the same, whatever is asked of them one after another', async () => {
      const one = fc.oneof({ weight: 3, arbitrary: step }, { weight: 1, arbitrary: passing })
      // Enough guesses to lock a code.
      const locking = fc.tuple(beginSend, guess).map(([sent, { claims: _, ...guessed }]): Asked[] => [
        sent,
        ...Array.from({ length: 4 }, () => ({
          ...guessed,
          subject: sent.subject,
          brandSlug: sent.brandSlug,
          claims: [],
        })),
      ])
      // A guess when the code is just not over, and just over.
      const lateGuess = fc
        .tuple(beginSend, guess, fc.constantFrom(-1, 0, 1))
        .map(([sent, guessed, shiftMs]): Asked[] => [
          { ...sent, claims: [] },
          { kind: 'pass', ms: sent.createdInMs + sent.lifeMs + shiftMs },
          { ...guessed, subject: sent.subject, brandSlug: sent.brandSlug },
        ])
      // The end of a window is moved that is over and has counted several, for another one.
      const lateMove = claimOf(limitName).map((claim): Asked[] => {
        const counted: Step = { kind: 'admit', claims: [{ ...claim, max: 1000, counted: true }] }
        return [
          counted,
          counted,
          { kind: 'pass', ms: claim.windowMs + 1 },
          { kind: 'reschedule', grant: 0, shiftMs: -1, endsInMs: 1000 },
        ]
      })
      // Two names of one recipient become one when a window of the one is just not over, or just over.
      const lateRekey = fc
        .tuple(claimOf(limitName), fc.constantFrom(-1, 0, 1), fc.constantFrom('ann', 'former ann'))
        .map(([claim, shiftMs, first]): Asked[] => {
          const countedFor = (subject: string): Step => ({
            kind: 'admit',
            claims: [{ ...claim, subject, max: 1000, counted: true }],
          })
          return [
            countedFor(first),
            { kind: 'pass', ms: Math.floor(claim.windowMs / 2) },
            countedFor(first === 'ann' ? 'former ann' : 'ann'),
            { kind: 'pass', ms: Math.ceil(claim.windowMs / 2) + shiftMs },
            { kind: 'rekey', subject: 'ann', former: ['former ann'] },
          ]
        })
      const steps = fc
        .array(
          fc.oneof(
            { weight: 14, arbitrary: one.map((each): Asked[] => [each]) },
            { weight: 1, arbitrary: locking },
            { weight: 1, arbitrary: lateGuess },
            { weight: 1, arbitrary: lateMove },
            { weight: 1, arbitrary: lateRekey },
          ),
          { minLength: 1, maxLength: 14, size: 'max' },
        )
        .map((parts) => parts.flat())
      const property = fc.asyncProperty(steps, async (steps) => {
        await database.pool.query(deleteRows)
        // A store remembers for a moment what it has looked at.
        const store = createOtpStore(database)
        const ledgers = new MemoryLedgers()
        const reference = storeInMemory(ledgers)
        const past = new Past()
        let now = start
        for (const step of steps) {
          if (step.kind === 'pass') {
            now += step.ms
            continue
          }
          const call = callOf(step, past, now)
          const [answer, expected] = [await call(store), await call(reference)]
          expect(answer).toEqual(expected)
          const kept = await keptAt(now)
          expect(kept).toEqual(ledgers.settle(now))
          note(step.kind, answer)
          if (answer && 'grants' in answer) past.grants.push(...answer.grants)
        }
      })
      await fc.assert(property, { numRuns: 500 })
      expect([...reached.keys()].sort()).toEqual([
        'abandonSend: done',
        'admit: admitted',
        'admit: refused',
        'adopt: done',
        'beginSend: admitted',
        'beginSend: refused',
        'check: admitted',
        'check: refused',
        'guess: absent',
        'guess: locked',
        'guess: mismatch',
        'guess: refused',
        'guess: verified',
        'moveEnd: done',
      ])
    }, 180_000)

    test('answer and keep, when several servers are asked at once, as if one thing had come after another', async () => {
      const servers = [await open(), await open(), await open()]
      const asked = fc.record({ step: step.map(usual), node: fc.nat({ max: servers.length - 1 }) })
      // A ledger is emptied while another is moved to it.
      const emptying = fc.tuple(beginSend, guess, code).map(([sent, guessed, right]): Round[] => {
        const own: Step = { ...sent, claims: [], subject: 'ann', code: right, createdInMs: 0, lifeMs: 60_000 }
        const former: Step = { ...own, subject: 'former ann' }
        const emptied: Step = {
          ...guessed,
          ...{ subject: 'ann', brandSlug: sent.brandSlug, codes: [right], claims: [], budget: undefined },
        }
        const moved: Step = { kind: 'rekey', subject: 'ann', former: ['former ann'] }
        return [
          [{ step: own, node: 0 }],
          [{ step: former, node: 0 }],
          [
            { step: emptied, node: 0 },
            { step: moved, node: 1 },
          ],
        ]
      })
      const rounds = fc
        .array(
          fc.oneof(
            {
              weight: 7,
              arbitrary: fc
                .array(asked, { minLength: 1, maxLength: 3, size: 'max' })
                .map((round): Round[] => [round]),
            },
            { weight: 2, arbitrary: passing.map((each): Round[] => [each]) },
            { weight: 1, arbitrary: emptying },
          ),
          { minLength: 1, maxLength: 10, size: 'max' },
        )
        .map((parts) => parts.flat())
      let differing = 0
      const property = fc.asyncProperty(rounds, async (rounds) => {
        await database.pool.query(deleteRows)
        let ledgers = new MemoryLedgers()
        const past = new Past()
        let now = start
        for (const round of rounds) {
          if ('kind' in round) {
            now += round.ms
            // Steps that share a transaction drop what is over together.
            await keptAt(now)
            ledgers.settle(now)
            continue
          }
          const calls = round.map(({ step, node }) => ({ call: callOf(step, past, now), node }))
          // A check may know of other servers what was so a moment ago: here, nothing of the rounds before.
          const stores = servers.map((server) => createOtpStore(server))
          const answers = await Promise.all(calls.map(({ call, node }) => call(at(stores, node))))
          const kept = await keptAt(now)
          const outcomes = await Promise.all(
            ordersOf(calls.map((_, index) => index)).map(async (order) => {
              const copy = ledgers.copy()
              const reference = storeInMemory(copy)
              const expected: Answer[] = []
              for (const index of order) {
                expected[index] = await calls[index]?.call(reference)
                copy.settle(now)
              }
              return { copy, answers: expected.map(withoutCounts), kept: copy.settle(now) }
            }),
          )
          const actual = { answers: answers.map(withoutCounts), kept }
          const right = outcomes.find(
            (outcome) =>
              Bun.deepEquals(outcome.answers, actual.answers) && Bun.deepEquals(outcome.kept, actual.kept),
          )
          if (!right) {
            // No order gives it: the first shows as well as any what differs.
            const [{ answers, kept } = { answers: [], kept: {} }] = outcomes
            expect<object>(actual).toEqual({ answers, kept })
            return
          }
          if (outcomes.some((outcome) => !Bun.deepEquals(outcome.answers, right.answers))) differing++
          ledgers = right.copy
          for (const answer of answers) {
            if (answer && 'grants' in answer) past.grants.push(...answer.grants)
          }
        }
      })
      try {
        await fc.assert(property, { numRuns: 200 })
      } finally {
        for (const server of servers) await server.close()
      }
      expect(differing, 'rounds in which the order matters').toBeGreaterThan(10)
    }, 180_000)

    test('of many steps on several servers no two wait for each other', async () => {
      const servers = [await open(), await open(), await open()]
      const nodes = servers.map((server) => createOtpStore(server))
      const past = new Past()
      const steps = fc.sample(step.map(usual), { numRuns: 600, seed: 7 })
      try {
        // So many at once that each transaction holds a good part of all ledgers.
        for (let first = 0; first < steps.length; first += 30) {
          const calls = steps.slice(first, first + 30).map((step) => callOf(step, past, start))
          await Promise.all(calls.map((call, index) => call(at(nodes, index % nodes.length))))
        }
      } finally {
        for (const server of servers) await server.close()
      }
      expect(await deadlocks()).toBe(0)
    }, 180_000)
  },
)

/** An answer as callers are told it; only the journal is told how many a window has counted. */
function withoutCounts(answer: Answer): Answer {
  if (!answer || !('grants' in answer)) return answer
  return { ...answer, grants: answer.grants.map((grant) => ({ ...grant, count: 0 })) }
}

function at<T>(list: readonly T[], index: number): T {
  const item = list[index]
  if (item === undefined) throw new RangeError(`${index} of ${list.length}`)
  return item
}

/** Every order of these. */
function ordersOf(items: readonly number[]): number[][] {
  if (items.length < 2) return [[...items]]
  return items.flatMap((first) =>
    ordersOf(items.filter((item) => item !== first)).map((rest) => [first, ...rest]),
  )
}
