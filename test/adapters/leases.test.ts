import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { leaseSize } from '../../src/adapters/postgres/claim-leases.ts'
import { createOtpStore } from '../../src/adapters/postgres/otp-store.ts'
import type { BatchedStep } from '../../src/adapters/postgres/steps.ts'
import type { LimitCount, StoredClaim } from '../../src/domain/limits/limits.ts'
import type { State } from '../../src/domain/otp/state.ts'
import type { OtpStore } from '../../src/domain/otp/store.ts'

// Nodes with leases on one database in memory, with transactions that are delayed, retried and lost.

type Fault = 'none' | 'before' | 'after'

/** A database with limits only. */
class World {
  now = 1_000_000
  /** Of each transaction. */
  readonly steps: { readonly isOfUnits: boolean; readonly subjects: readonly string[] }[] = []
  private readonly limits = new Map<string, LimitCount>()

  /** @param delays how many turns of the event loop each transaction waits */
  constructor(
    private readonly delays: Iterator<number>,
    private readonly faults: Iterator<Fault>,
  ) {}

  node(): { store: OtpStore; close(): Promise<void> } {
    const closing: (() => Promise<void>)[] = []
    const store = createOtpStore(
      {
        take: (step) => this.transaction(step, false),
        takeUnits: (step) => this.transaction(step, true),
        now: () => this.now,
        given: () => undefined,
        beforeClose: (work) => void closing.push(work),
      },
      () => false,
    )
    return { store, close: async () => void (await Promise.all(closing.map((work) => work()))) }
  }

  count({ subject, name }: Pick<StoredClaim, 'subject' | 'name'>): LimitCount | undefined {
    return this.stateOf(this.limits).limit(subject, name, this.now)
  }

  private async transaction<Answer>(
    { subjects, run }: BatchedStep<Answer>,
    isOfUnits: boolean,
  ): Promise<Answer> {
    this.steps.push({ isOfUnits, subjects: [...new Set(subjects.flat())] })
    for (let turns = this.delays.next().value ?? 0; turns > 0; turns--) await undefined
    const fault = this.faults.next().value ?? 'none'
    if (fault === 'before') throw new Error('the connection was lost')
    // Rolled back and retried.
    run(this.stateOf(new Map(this.limits)), this.now)
    const answer = run(this.stateOf(this.limits), this.now)
    if (fault === 'after') throw new Error('the connection was lost at the commit')
    return answer
  }

  private stateOf(limits: Map<string, LimitCount>): State {
    return {
      limit: ([subject], name, now) => {
        const limit = limits.get(`${subject} ${name}`)
        return limit && limit.expiresAt > now ? limit : undefined
      },
      setLimit: ([subject], name, limit) => {
        if (limit) limits.set(`${subject} ${name}`, limit)
        else limits.delete(`${subject} ${name}`)
      },
      code: () => undefined,
      setCode: () => {},
      write: () => {},
    }
  }
}

interface Request {
  readonly node: number
  readonly units: number
  readonly isRefusedByRecipient: boolean
  readonly isAppFirst: boolean
  /** The node that gives the units back, if any. */
  readonly givenBackBy: number | undefined
  /** After the next round. */
  readonly isGivenBackLate: boolean
}

interface Round {
  readonly requests: readonly Request[]
  readonly thenMs: number
  readonly killed: number | undefined
}

const nodes = 4

const request: fc.Arbitrary<Request> = fc.record({
  node: fc.nat(nodes - 1),
  units: fc.constantFrom(1, 1, 1, 3),
  isRefusedByRecipient: fc.boolean(),
  isAppFirst: fc.boolean(),
  givenBackBy: fc.constantFrom(undefined, undefined, 0, 1, 2, 3),
  isGivenBackLate: fc.boolean(),
})

const rounds = (canKill: boolean): fc.Arbitrary<Round[]> =>
  fc.array(
    fc.record({
      requests: fc.array(request, { minLength: 1, maxLength: 60 }),
      thenMs: fc.constantFrom(0, 1, 20, 240, 600, 1100, 59_000),
      killed: canKill ? fc.constantFrom(undefined, undefined, 0, 1, 2, 3) : fc.constant(undefined),
    }),
    { minLength: 1, maxLength: 12 },
  )

const limit = { subject: ['app:shop'], name: 'minute', windowMs: 60_000, counted: true } as const

/** Plays the rounds. Resolves to the granted units by window, without those given back. */
async function play(world: World, appMax: number, given: readonly Round[]) {
  const spent = new Map<number, number>()
  const add = (expiresAt: number, units: number) => {
    const sum = (spent.get(expiresAt) ?? 0) + units
    spent.set(expiresAt, sum)
    expect(sum).toBeLessThanOrEqual(appMax)
  }
  const present = Array.from({ length: nodes }, () => world.node())
  let recipients = 0
  let late: (() => Promise<void>)[] = []
  const playOne = async (each: Request) => {
    const { node, units, isRefusedByRecipient, isAppFirst, givenBackBy } = each
    const recipient = [`recipient ${recipients++}`] as const
    const max = isRefusedByRecipient ? 0 : 1
    const ofRecipient = { subject: recipient, name: 'minute', max, windowMs: 60_000, counted: true }
    const ofApp = { ...limit, max: appMax, units }
    const claims = isAppFirst ? [ofApp, ofRecipient] : [ofRecipient, ofApp]
    const decision = await present[node]?.store.admit(claims, world.now)
    if (!decision) return
    if (!decision.allowed) {
      const refusing = claims[decision.refusedBy]
      if (refusing === ofApp) expect(isAppFirst || !isRefusedByRecipient).toBe(true)
      else expect(refusing).toBe(isRefusedByRecipient ? ofRecipient : undefined)
      return
    }
    const [own, count] = isAppFirst ? decision.counts.toReversed() : decision.counts
    expect(own?.count).toBe(1)
    if (!count) throw new Error('a counted claim has no count')
    expect(count.count).toBeWithin(units, appMax + 1)
    add(count.expiresAt, units)
    if (givenBackBy === undefined) return
    const giveBack = async () => {
      // Others may use the units before it resolves.
      add(count.expiresAt, -units)
      await present[givenBackBy]?.store.giveBack([{ ...limit, units, ...count }], world.now)
    }
    if (each.isGivenBackLate) late.push(giveBack)
    else await giveBack()
  }
  for (const { requests, thenMs, killed } of given) {
    const due = late
    late = []
    await Promise.all(requests.map((each) => playOne(each).catch(ignoreLost)))
    await Promise.all(due.map((giveBack) => giveBack().catch(ignoreLost)))
    if (killed !== undefined) present[killed] = world.node()
    world.now += thenMs
  }
  await Promise.all(present.map((node) => node.close().catch(ignoreLost)))
  return spent
}

function ignoreLost(error: unknown): void {
  if (!(error instanceof Error && error.message.startsWith('the connection was lost'))) throw error
}

const maxima = fc.constantFrom(10, 60, 127, 128, 200, 500, 3000)
const delays = fc.infiniteStream(fc.nat(6))

describe('leases', () => {
  test('are a small part of what remains, and none of a small limit', () => {
    const amount = fc.nat(1_000_000)
    fc.assert(
      fc.property(amount, amount, fc.integer({ min: 1, max: 1000 }), amount, (max, count, units, demand) => {
        const size = leaseSize({ max, units }, count, demand)
        expect(Number.isInteger(size)).toBe(true)
        expect(size).toBeWithin(0, Math.max(1, (max - count) / 16 + 1))
        expect(size).toBeLessThanOrEqual(demand)
        if (max - count < 128 * units) expect(size).toBe(0)
      }),
    )
  })

  test('give unused units back: the count is what was granted', async () => {
    await fc.assert(
      fc.asyncProperty(maxima, rounds(false), delays, async (max, given, turns) => {
        const world = new World(turns, [].values())
        const spent = await play(world, max, given)
        const open = world.count(limit)
        if (max < 128) expect(world.steps.some(({ isOfUnits }) => isOfUnits)).toBe(false)
        if (open) expect(open.count).toBe(spent.get(open.expiresAt) ?? 0)
        const rest = max - (open?.count ?? 0)
        const { store } = world.node()
        const last = { ...limit, max, units: rest }
        if (rest > 0) expect((await store.admit([last], world.now)).allowed).toBe(true)
        expect((await store.admit([{ ...last, units: 1 }], world.now)).allowed).toBe(false)
      }),
    )
  })

  test('never pass the limit, if nodes are killed and commits have no answer', async () => {
    const faults = fc.infiniteStream(
      fc.oneof(
        { weight: 30, arbitrary: fc.constant<Fault>('none') },
        fc.constantFrom<Fault>('before', 'after'),
      ),
    )
    await fc.assert(
      fc.asyncProperty(maxima, rounds(true), delays, faults, async (max, given, turns, lost) => {
        const world = new World(turns, lost)
        const spent = await play(world, max, given)
        const open = world.count(limit)
        if (open) expect(open.count).toBeWithin(spent.get(open.expiresAt) ?? 0, max + 1)
      }),
    )
  })

  test('a kill costs at most a sixteenth of the limit', async () => {
    await fc.assert(
      fc.asyncProperty(maxima, rounds(true), delays, async (max, given, turns) => {
        const world = new World(turns, [].values())
        const spent = await play(world, max, given)
        const open = world.count(limit)
        const kills = given.filter(({ killed }) => killed !== undefined).length
        if (open) expect(open.count - (spent.get(open.expiresAt) ?? 0)).toBeWithin(0, (kills * max) / 16 + 1)
      }),
    )
  })

  test('a request touches only the row of its recipient while its node has units', async () => {
    const world = new World([].values(), [].values())
    const { store } = world.node()
    const claim = { ...limit, max: 1000 }
    for (let index = 0; index < 20; index++) await store.admit([claim], world.now)
    world.steps.splice(0)
    const own = { subject: ['recipient'], name: 'minute', max: 1, windowMs: 60_000, counted: true } as const
    expect(await store.admit([own, claim], world.now)).toMatchObject({ allowed: true })
    expect(await store.admit([own, claim], world.now)).toMatchObject({ allowed: false, refusedBy: 0 })
    expect(await store.admit([claim, own], world.now)).toMatchObject({ allowed: false, refusedBy: 1 })
    const subjects = world.steps.filter(({ isOfUnits }) => !isOfUnits).map((step) => step.subjects)
    expect(subjects).toEqual([['recipient'], ['recipient'], ['recipient']])
  })

  test('grants of a window that has ended do not go to the next one', async () => {
    const world = new World([].values(), [].values())
    const { store } = world.node()
    const claim = { ...limit, max: 1000 }
    const claimed = async () => {
      const decision = await store.admit([claim], world.now)
      const [count] = decision.allowed ? decision.counts : []
      return count?.expiresAt ?? 0
    }
    const expiresAt = await claimed()
    world.now = expiresAt
    for (let index = 0; index < 20; index++) await claimed()
    const before = world.steps.length
    await store.giveBack([{ ...limit, count: 1, expiresAt }], world.now)
    expect(world.steps).toHaveLength(before + 1)
    expect(world.count(limit)?.count).toBeGreaterThanOrEqual(20)
  })

  test('a changed limit takes effect with the next request', async () => {
    const world = new World([].values(), [].values())
    const { store } = world.node()
    const claim = { ...limit, max: 1000 }
    for (let index = 0; index < 30; index++) await store.admit([claim], world.now)
    const lower = { ...claim, max: 31 }
    expect(await store.admit([lower], world.now)).toMatchObject({ allowed: true, counts: [{ count: 31 }] })
    expect(await store.admit([lower], world.now)).toMatchObject({ allowed: false, refusedBy: 0 })
    expect(await store.admit([claim], world.now)).toMatchObject({ allowed: true })
  })

  test('units go back when little remains, also if the transaction is retried', async () => {
    const world = new World([].values(), [].values())
    const [one, other] = [world.node(), world.node()]
    const claim = { ...limit, max: 1000 }
    for (let index = 0; index < 30; index++) await one.store.admit([claim], world.now)
    const count = world.count(limit)?.count ?? 0
    expect(count).toBeGreaterThan(30)
    expect(await other.store.admit([{ ...claim, units: 1000 - count }], world.now)).toMatchObject({
      allowed: true,
    })
    world.now += 600
    // The last of these begins a renewal, which finds that nothing remains.
    for (let index = 0; index < 4; index++)
      expect(await one.store.admit([claim], world.now)).toMatchObject({ allowed: true })
    await Bun.sleep(0)
    expect(world.count(limit)?.count).toBe(1000 - (count - 34))
  })
})
