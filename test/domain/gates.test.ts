import { describe, expect, test } from 'bun:test'
import { Failure } from '../../src/domain/ground/failures.ts'
import type { Effect } from '../../src/domain/limits/effects.ts'
import { admitting, type GateEntry, pass, ReadFields } from '../../src/domain/limits/gates.ts'
import {
  type Claim,
  decide,
  type Gate,
  type Grant,
  type StoredClaim,
} from '../../src/domain/limits/limits.ts'
import { newContext } from '../support/calls.ts'

const now = 1_000_000

function claim(name: string, properties: Partial<Claim> = {}): Claim {
  const about = { limit: 'app-minute', failure: 'rate_limited', scope: name } as const
  return { ...about, subject: ['someone'], name, max: 2, windowMs: 60_000, counted: true, ...properties }
}

/** A store in memory, which notes its steps. */
function scene() {
  const counts = new Map<string, number>()
  const steps: string[] = []
  const windowOf = ({ name }: Pick<StoredClaim, 'name'>) => {
    const count = counts.get(name)
    return count === undefined ? undefined : { count, expiresAt: now + 60_000 }
  }
  const store = {
    admit: async (claims: readonly StoredClaim[], _: number, effects: readonly Effect[] = []) => {
      const { decision, changes } = decide(claims, windowOf, now)
      for (const { name, count } of changes) counts.set(name, count)
      const names = claims.map(({ name, counted }) => (counted ? name : `(${name})`))
      steps.push(['admit', ...names, ...effects.map(({ kind }) => kind)].join(' '))
      return decision
    },
    giveBack: async (grants: readonly Grant[], _: number, effects: readonly Effect[] = []) => {
      steps.push(
        ['give back', ...grants.map(({ name }) => name), ...effects.map(({ kind }) => kind)].join(' '),
      )
    },
    reschedule: async ({ name }: Grant, durationMs: number) => {
      steps.push(`reschedule ${name} ${durationMs}`)
    },
  }
  const ports = { store, now: () => now }
  const context = newContext()
  const run = (entries: readonly GateEntry[]) => pass(ports, context, entries, admitting(ports))
  const rejection = async (entries: readonly GateEntry[]) => {
    try {
      await run(entries)
    } catch (failure) {
      if (failure instanceof Failure) return failure.message
      throw failure
    }
    return undefined
  }
  return { counts, steps, context, run, rejection }
}

const refusing = (failure: Failure): Gate => ({ refusal: failure })
const invalid = refusing(new Failure('validation_error', 'invalid'))
const denied = refusing(new Failure('rate_limited', 'denied'))
const audit = { kind: 'free-key', hash: '', requestId: '' } as const

describe('a list of gates', () => {
  test('claims in its order, in one step with the effects', async () => {
    const { steps, run } = scene()
    await run([{ claims: [claim('a')] }, undefined, { claims: [claim('b')], effects: [audit] }, () => ({})])
    expect(steps).toEqual(['admit a b free-key'])
  })

  test('without claims and effects takes no step', async () => {
    const { steps, run } = scene()
    await run([{}])
    expect(steps).toEqual([])
  })

  test('gives each gate its own grants, also to settle', async () => {
    const { steps, run } = scene()
    const seen: string[][] = []
    const gate = (names: readonly string[], counted = true): Gate => ({
      claims: names.map((name) => claim(name, { counted })),
      admitted: (grants) => void seen.push(grants.map(({ name }) => name)),
      settle: (_, grants) => ({ back: grants }),
    })
    const { settle } = await run([gate(['a', 'b']), gate(['c'], false), gate(['d'])])
    await settle([])
    expect(seen).toEqual([['a', 'b'], [], ['d']])
    expect(steps).toEqual(['admit a b (c) d', 'give back a b d'])
  })

  test('does not reach a function after a gate that rejects', async () => {
    const { rejection } = scene()
    expect(
      await rejection([
        invalid,
        () => {
          throw new Error('reached')
        },
      ]),
    ).toBe('invalid')
  })
})

describe('a request that a gate rejects', () => {
  test('is rejected by an exhausted limit before it first', async () => {
    const { counts, rejection } = scene()
    counts.set('full', 2)
    expect(await rejection([{ claims: [claim('full')] }, invalid])).toContain('Too many requests')
    expect(await rejection([invalid, { claims: [claim('full')] }])).toBe('invalid')
  })

  test('counts on no limit, unless it is invalid and a gate counts invalid requests', async () => {
    const gates = [{ claims: [claim('a')] }, { claims: [claim('calls')], countsInvalid: true }]
    const { counts, steps, rejection } = scene()
    expect(await rejection([...gates, invalid])).toBe('invalid')
    expect(await rejection([...gates, denied])).toBe('denied')
    expect(steps).toEqual(['admit (a) calls', 'admit (a) (calls)'])
    expect([...counts]).toEqual([['calls', 1]])
  })

  test('writes nothing, and undoes what gates did before', async () => {
    const { steps, rejection } = scene()
    let undone = 0
    const settle: Gate['settle'] = ({ sent }, grants) => {
      if (sent === 0 && grants.length === 0) undone++
      return { back: grants }
    }
    await rejection([{ claims: [claim('a')], effects: [audit], settle }, denied])
    expect([steps, undone]).toEqual([['admit (a)'], 1])
  })

  test('is noted by the gate only if no limit rejects it', async () => {
    const { counts, rejection } = scene()
    let noted = 0
    const noting = { ...denied, admitted: () => void noted++ }
    await rejection([{ claims: [claim('full')] }, noting])
    counts.set('full', 2)
    await rejection([{ claims: [claim('full')] }, noting])
    expect(noted).toBe(1)
  })
})

describe('after the delivery', () => {
  test('further attempts count before anything is given back', async () => {
    const { steps, context, run } = scene()
    const attempt = { outcome: 'unknown' } as (typeof context.attempts)[number]
    const grant = { subject: ['someone'], name: 'window', count: 1, expiresAt: now } as const
    const gates: Gate[] = [
      { claims: [claim('a')], settle: (_, back) => ({ back, effects: [audit] }) },
      { settle: ({ sent }) => ({ further: [claim(`further of ${sent}`)] }) },
      { settle: () => ({ restart: { grant, durationMs: 5 } }) },
    ]
    const { settle } = await run(gates)
    context.attempts.push(attempt, attempt, attempt)
    await settle([null])
    expect(steps.slice(1)).toEqual([
      'admit further of 3',
      'admit further of 3',
      'reschedule window 5',
      'give back a free-key',
    ])
  })
})

test('fields are a gate with a value', () => {
  expect(new ReadFields(() => 5)).toMatchObject({ refusal: undefined, value: 5 })
  const failed = new ReadFields(() => {
    throw new Failure('validation_error', 'bad')
  })
  expect(failed.refusal?.message).toBe('bad')
  expect(() => failed.value).toThrow(failed.refusal as unknown as Error)
  expect(
    () =>
      new ReadFields(() => {
        throw new Error('a bug')
      }),
  ).toThrow('a bug')
})
