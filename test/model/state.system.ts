import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { isHashOf, saltedHash } from '../../src/adapters/crypto/secrets.ts'
import { type Database, openDatabase } from '../../src/adapters/postgres/database.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import { tables } from '../../src/adapters/postgres/schema.ts'
import { Records } from '../../src/adapters/store/records.ts'
import { clockToleranceMs } from '../../src/domain/ground/ports.ts'
import { grantsOf } from '../../src/domain/limits/gates.ts'
import type { Claim, Grant, LimitDecision, Subject } from '../../src/domain/limits/limits.ts'
import { otpSteps } from '../../src/domain/otp/state.ts'
import type {
  AgainDecision,
  CodeRef,
  GuessDecision,
  OtpStore,
  SendDecision,
} from '../../src/domain/otp/store.ts'
import { targetOf } from '../store/postgres-database.ts'
import { type DatabaseOfATest, freshDatabase, withoutPostgres } from '../support/postgres.ts'

const { codesAndLimits } = tables

// Runs random steps on PostgreSQL, from one node and from several at once, and the same steps on records in
// memory. The results and the stored rows must be equal. A failure prints seed and path, which are parameters
// of `fc.assert`.

/** A store that keeps all its records in one transaction that never ends. */
function storeInMemory(): OtpStore & { rows(): readonly object[] } {
  const steps = otpSteps(isHashOf)
  const records = new Records(() => [])
  return {
    admit: async (...input) => steps.admit(records, ...input),
    beginSend: async (...input) => steps.beginSend(records, ...input),
    sendAgain: async (...input) => steps.sendAgain(records, ...input),
    setProvider: async (...input) => steps.setProvider(records, ...input),
    reschedule: async (...input) => steps.reschedule(records, ...input),
    giveBack: async (...input) => steps.giveBack(records, ...input),
    abandonSend: async (...input) => steps.abandonSend(records, ...input),
    guess: async (...input) => steps.guess(records, ...input),
    rows: () => records.changes().inserts,
  }
}

/** A recipient, as nodes name it in the steps of a documented rotation of the secret key. */
const rotation = [
  [['former ann'], ['former ann', 'ann']],
  [
    ['former ann', 'ann'],
    ['ann', 'former ann'],
  ],
  [['ann', 'former ann'], ['ann']],
] as const satisfies readonly Subject[][]
/** Another recipient, and two apps. */
const others: readonly Subject[] = [['ben'], ['app:desk'], ['app:shop']]
const spansMs = [1, 1000, 30_000, 60_000, 3_600_000] as const
/** The maximum of each limit, when several nodes claim it concurrently. */
const usualLimits = {
  minute: { max: 3, windowMs: 60_000 },
  hour: { max: 4, windowMs: 3_600_000 },
  'cooldown:acme': { max: 1, windowMs: 30_000 },
  failures: { max: 2, windowMs: 3_600_000 },
} as const
type LimitKey = keyof typeof usualLimits

/** Mostly one of these. */
function subjectOf(...names: readonly Subject[]): fc.Arbitrary<Subject> {
  return fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...names) },
    { weight: 3, arbitrary: fc.constantFrom(...others) },
  )
}
const anySubject = subjectOf(...rotation.flat())
const brandSlug = fc.constantFrom('acme', 'acme', '1')
const code = fc.constantFrom('1', '1', '2', '3')
const provider = fc.constantFrom('twilio', 'vonage')
const spanMs = fc.constantFrom(...spansMs)
/** A time just before or after the result of a step. */
const shiftMs = fc.constantFrom(0, 0, 0, -1, 1)
/** An index into the grants and codes so far, counted from the last; a higher one refers to none. */
const place = fc.constantFrom(0, 0, 0, 1, 2, 5)

function claimOf(
  name: fc.Arbitrary<LimitKey>,
  subject: fc.Arbitrary<Subject>,
  isUsual: boolean,
): fc.Arbitrary<Claim> {
  const claim = fc.record({
    subject,
    name,
    max: fc.constantFrom(0, 1, 1, 2, 3, 3, 1000),
    windowMs: spanMs,
    counted: fc.constantFrom(true, true, true, false),
    limit: fc.constant('app-minute' as const),
    failure: fc.constant('rate_limited' as const),
    scope: fc.constant('per minute'),
  })
  return isUsual
    ? claim.map((each) => ({ ...each, ...usualLimits[each.name as LimitKey], counted: true }))
    : claim
}

/** @param isUsual as the use cases call it: every limit has one fixed maximum, and all claims count */
function stepOf(isUsual: boolean, subject = anySubject) {
  const limitName = fc.constantFrom<LimitKey>('minute', 'minute', 'hour', 'cooldown:acme', 'failures')
  const ofGuess = limitName.filter((name) => name !== 'failures')
  /** Each claim is of a different window. */
  const claimsOn = (name: fc.Arbitrary<LimitKey>) =>
    fc.uniqueArray(claimOf(name, subject, isUsual), {
      maxLength: 4,
      selector: ({ subject, name }) => `${subject[0]} ${name}`,
    })
  const beginSend = fc.record({
    kind: fc.constant('beginSend' as const),
    claims: claimsOn(limitName),
    ...{ subject, brandSlug, code, ttlMs: spanMs, provider: fc.option(provider) },
  })
  const guess = fc.record({
    kind: fc.constant('guess' as const),
    claims: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: claimsOn(ofGuess) }),
    budget: fc.option(claimOf(fc.constant('failures'), subject, isUsual), { nil: undefined }),
    ...{ subject, brandSlug, codes: fc.array(code, { minLength: 1, maxLength: 2 }) },
  })
  const admit = fc.record({ kind: fc.constant('admit' as const), claims: claimsOn(limitName) })
  const reschedule = fc.record({
    kind: fc.constant('reschedule' as const),
    ...{ grant: place, shiftMs, durationMs: fc.constantFrom(-1000, 0, ...spansMs) },
  })
  const setProvider = fc.record({
    kind: fc.constant('setProvider' as const),
    ...{ sent: place, provider, messageId: fc.option(fc.constantFrom('SM1', 'SM2')) },
  })
  const sendAgain = fc.record({
    kind: fc.constant('sendAgain' as const),
    ...{ sent: place, claims: claimsOn(limitName) },
  })
  const abandonSend = fc.record({
    kind: fc.constant('abandonSend' as const),
    ...{ sent: place, grants: fc.array(place, { maxLength: 4 }), shiftMs },
    lastProvider: fc.option(provider),
  })
  const giveBack = fc.record({
    kind: fc.constant('giveBack' as const),
    ...{ grants: fc.array(place, { maxLength: 4 }), shiftMs },
  })
  const step = fc.oneof(
    { weight: 3, arbitrary: admit },
    { weight: 4, arbitrary: beginSend },
    { weight: 5, arbitrary: guess },
    { weight: 2, arbitrary: reschedule },
    { weight: 1, arbitrary: giveBack },
    { weight: 2, arbitrary: abandonSend },
    { weight: 1, arbitrary: setProvider },
    { weight: 2, arbitrary: sendAgain },
  )
  return { step, beginSend, guess, claim: claimOf(limitName, subject, isUsual) }
}
type Step = ReturnType<typeof stepOf>['step'] extends fc.Arbitrary<infer Value> ? Value : never

/** Time passes, or the clock is set just before, at or just after the expiry of records. */
const passing = fc.record({
  kind: fc.constant('pass' as const),
  ms: fc.constantFrom(
    ...[...spansMs, 999, 1001, 29_999, 59_999, 30_001, clockToleranceMs],
    ...[-1, -1000, -clockToleranceMs, -clockToleranceMs - 1, -60_000, -3_600_000],
  ),
})
type Passing = typeof passing extends fc.Arbitrary<infer Value> ? Value : never

type Answer = LimitDecision | SendDecision | GuessDecision | AgainDecision | undefined
/** A step that can run on any store. */
type Call = (store: OtpStore) => Promise<Answer>

const start = Date.UTC(2026, 0, 1, 12)

/** What later steps refer to. */
class Past {
  readonly grants: Grant[] = []
  readonly sent: CodeRef[] = []

  callOf(step: Step, now: number): Call {
    switch (step.kind) {
      case 'admit':
        return (store) => store.admit(step.claims, now)
      case 'beginSend': {
        const { subject, brandSlug, ttlMs, provider } = step
        const id = `record ${this.sent.length}`
        // One that is for something.
        const hashes = step.code === '3' ? ' aaaaaa bbbbbb cccccc dddddd' : ''
        const hash = `${saltedHash(id, `keyed ${step.code}`)}${hashes}`
        const code = { subject, brandSlug, id, hash, ttlMs, provider }
        this.sent.push(code)
        return (store) => store.beginSend(step.claims, code, now)
      }
      case 'guess': {
        const { claims, budget, subject, brandSlug, codes } = step
        const failureBudget = budget && { ...budget, subject, counted: true }
        const checked = failureBudget ? [{ ...failureBudget, counted: false }] : []
        const keyedCodes = codes.map((code) => `keyed ${code}`)
        const attempt = { claims: [...claims, ...checked], failureBudget, subject, brandSlug, keyedCodes }
        return (store) => store.guess(attempt, now)
      }
      case 'reschedule': {
        const grant = this.grant(step.grant, step.shiftMs)
        return async (store) => void (await store.reschedule(grant, step.durationMs, now))
      }
      case 'giveBack': {
        const grants = step.grants.map((place) => this.grant(place, step.shiftMs))
        return async (store) => void (await store.giveBack(grants, now))
      }
      case 'setProvider': {
        const code = this.code(step.sent)
        return async (store) => void (await store.setProvider(code, step.provider, step.messageId, now))
      }
      case 'sendAgain': {
        const code = this.code(step.sent)
        return (store) => store.sendAgain(code, step.claims, now, [])
      }
      case 'abandonSend': {
        const code = this.code(step.sent)
        const grants = step.grants.map((place) => this.grant(place, step.shiftMs))
        return async (store) => void (await store.abandonSend(code, grants, step.lastProvider, now))
      }
    }
  }

  learn(step: Step, answer: Answer): void {
    if ('claims' in step && answer && 'counts' in answer) this.grants.push(...grantsOf(step.claims, answer))
  }

  private code(place: number): CodeRef {
    return this.sent.at(-1 - place) ?? { id: 'no code', subject: ['ann'], brandSlug: 'acme' }
  }

  private grant(place: number, shiftMs: number): Grant {
    const grant = this.grants.at(-1 - place)
    if (!grant) return { subject: ['ann'], name: 'cooldown:acme', expiresAt: start, count: 1 }
    return { ...grant, expiresAt: grant.expiresAt + shiftMs }
  }
}

/** The test fails if the steps did not reach these states. */
const reached = new Set<string>()

function note(kind: Step['kind'], answer: Answer): void {
  const what = !answer
    ? 'done'
    : 'verdict' in answer
      ? answer.verdict.kind
      : answer.allowed
        ? 'allowed'
        : 'isGone' in answer
          ? 'gone'
          : 'refused'
  reached.add(`${kind}: ${what}`)
}

describe.skipIf(withoutPostgres !== undefined)(
  `steps on PostgreSQL and in memory${withoutPostgres ? ` (${withoutPostgres})` : ''}`,
  () => {
    let own: DatabaseOfATest
    let database: Database
    const servers: Database[] = []

    /** Each step has its own time. */
    async function open(batchSize: number): Promise<Database> {
      const server = await openDatabase(
        { ...targetOf(own.url), batchSize },
        () => start,
        () => {},
      )
      servers.push(server)
      return server
    }

    beforeAll(async () => {
      own = await freshDatabase()
      database = await open(32)
      await open(1)
      await open(1)
    })
    afterAll(async () => {
      for (const server of servers) await server.close()
      await own.remove()
    })

    const storeOn = (server: Database) => createOtpStore(server, isHashOf)
    const empty = () => database.orm.delete(codesAndLimits)
    const rows = () =>
      database.orm.select().from(codesAndLimits).orderBy(codesAndLimits.subject, codesAndLimits.name)

    test('have the same results and rows, one after another', async () => {
      // The rows of an app have what its lease took in advance.
      const recipient = fc.constantFrom<Subject[]>(...rotation.flat(), ['ben'])
      const { step, beginSend, guess, claim } = stepOf(false, recipient)
      const one = fc.oneof({ weight: 3, arbitrary: step }, { weight: 1, arbitrary: passing })
      // Enough guesses to lock a code.
      const locking = fc.tuple(beginSend, guess).map(([sent, guessed]): (Step | Passing)[] => {
        const { subject, brandSlug } = sent
        return [sent, ...Array.from({ length: 4 }, () => ({ ...guessed, subject, brandSlug, claims: [] }))]
      })
      // A guess just before a code expires, and one just after.
      const late = fc
        .tuple(beginSend, guess, fc.constantFrom(-1, 0, 1))
        .map(([sent, guessed, shiftMs]): (Step | Passing)[] => {
          const { subject, brandSlug, ttlMs } = sent
          return [
            { ...sent, claims: [] },
            { kind: 'pass', ms: ttlMs + shiftMs },
            { ...guessed, subject, brandSlug },
          ]
        })
      // A window that has counted several requests expires, and is rescheduled for another one.
      const lateReschedule = claim.map((claim): (Step | Passing)[] => {
        const counted: Step = { kind: 'admit', claims: [{ ...claim, max: 1000, counted: true }] }
        return [
          ...[counted, counted],
          { kind: 'pass', ms: claim.windowMs + 1 },
          { kind: 'reschedule', grant: 0, shiftMs: -1, durationMs: 1000 },
        ]
      })
      const steps = fc
        .array(
          fc.oneof(
            { weight: 14, arbitrary: one.map((each): (Step | Passing)[] => [each]) },
            { weight: 1, arbitrary: locking },
            { weight: 1, arbitrary: late },
            { weight: 1, arbitrary: lateReschedule },
          ),
          { minLength: 1, maxLength: 14, size: 'max' },
        )
        .map((parts) => parts.flat())
      const property = fc.asyncProperty(steps, async (steps) => {
        await empty()
        const [store, reference, past] = [storeOn(database), storeInMemory(), new Past()]
        let now = start
        for (const step of steps) {
          if (step.kind === 'pass') {
            now += step.ms
            continue
          }
          const call = past.callOf(step, now)
          const answer = await call(store)
          expect(answer).toEqual(await call(reference))
          expect<readonly object[]>(await rows()).toEqual(reference.rows())
          note(step.kind, answer)
          past.learn(step, answer)
        }
      })
      await fc.assert(property, { numRuns: 300 })
      expect([...reached].sort()).toEqual([
        'abandonSend: done',
        ...['admit: allowed', 'admit: refused', 'beginSend: allowed', 'beginSend: refused'],
        'giveBack: done',
        ...['guess: absent', 'guess: locked', 'guess: mismatch', 'guess: refused', 'guess: verified'],
        'reschedule: done',
        ...['sendAgain: allowed', 'sendAgain: gone', 'sendAgain: refused'],
        'setProvider: done',
      ])
    }, 180_000)

    test('have results and rows that some sequential order explains, on several nodes at once', async () => {
      const nodes = servers.map(storeOn)
      const askedWith = (name: Subject) =>
        fc.record({ step: stepOf(true, subjectOf(name)).step, node: fc.constantFrom(...nodes) })
      const roundDuring = (names: readonly Subject[]) =>
        fc.array(fc.oneof(...names.map(askedWith)), { minLength: 1, maxLength: 3, size: 'max' })
      const round = fc.oneof(...rotation.map(roundDuring))
      const rounds = fc.array(fc.oneof({ weight: 4, arbitrary: round }, { weight: 1, arbitrary: passing }), {
        minLength: 1,
        maxLength: 10,
        size: 'max',
      })
      let differing = 0
      const property = fc.asyncProperty(rounds, async (rounds) => {
        await empty()
        const past = new Past()
        /** In an order that explains all results so far. */
        let before: readonly Call[] = []
        let now = start
        for (const round of rounds) {
          if ('kind' in round) {
            now += round.ms
            continue
          }
          const calls = round.map(({ step }) => past.callOf(step, now))
          const answers = await Promise.all(calls.map((call, index) => call(at(round, index).node)))
          const actual = { answers, rows: await rows() }
          const outcomes = await Promise.all(
            ordersOf(calls.map((_, index) => index)).map(async (order) => {
              const reference = storeInMemory()
              for (const call of before) await call(reference)
              const expected: Answer[] = []
              for (const index of order) expected[index] = await at(calls, index)(reference)
              const history = [...before, ...order.map((index) => at(calls, index))]
              return { history, seen: { answers: expected, rows: reference.rows() } }
            }),
          )
          const right = outcomes.find(({ seen }) => Bun.deepEquals(seen, actual))
          if (!right) {
            // No order does; the first shows the difference as well as any other.
            expect<object>(actual).toEqual(at(outcomes, 0).seen)
            return
          }
          if (outcomes.some(({ seen }) => !Bun.deepEquals(seen.answers, answers))) differing++
          before = right.history
          for (const [index, answer] of answers.entries()) past.learn(at(round, index).step, answer)
        }
      })
      await fc.assert(property, { numRuns: 200 })
      expect(differing, 'rounds in which the order matters').toBeGreaterThan(10)
    }, 180_000)

    test('do not deadlock, with many steps on several nodes at once', async () => {
      await empty()
      const [nodes, past] = [servers.map(storeOn), new Past()]
      const steps = fc.sample(stepOf(true).step, { numRuns: 600, seed: 7 })
      // So many at once that each transaction locks a large part of all rows.
      for (let first = 0; first < steps.length; first += 30) {
        const calls = steps.slice(first, first + 30).map((step) => past.callOf(step, start))
        await Promise.all(calls.map((call, index) => call(at(nodes, index % nodes.length))))
      }
      // A connection reports its errors when it ends.
      for (const server of servers.splice(1)) await server.close()
      const countOf = async (query: string) => Number((await database.pool.rows(query, []))[0]?.[0])
      const connections = 'SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()'
      while ((await countOf(connections)) > database.pool.stats().size);
      const deadlocks = 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'
      expect(await countOf(deadlocks)).toBe(0)
    }, 180_000)
  },
)

function at<T>(list: readonly T[], index: number): T {
  const item = list[index]
  if (item === undefined) throw new RangeError(`${index} of ${list.length}`)
  return item
}

/** Every permutation of these. */
function ordersOf(items: readonly number[]): number[][] {
  if (items.length < 2) return [[...items]]
  return items.flatMap((first) =>
    ordersOf(items.filter((item) => item !== first)).map((rest) => [first, ...rest]),
  )
}
