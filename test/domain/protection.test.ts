import { describe, expect, test } from 'bun:test'
import { countryRules } from '../../src/domain/delivery/destination.ts'
import type { GuardMode } from '../../src/domain/guard/guard.ts'
import type { StoredMode } from '../../src/domain/guard/mode.ts'
import { ignoredGuard, missingProtection } from '../../src/domain/health/protection.ts'
import type { Budget } from '../../src/domain/money/budgets.ts'

// What `serve` and doctor warn of. The words are in test/process.system.ts.

const now = Date.UTC(2030, 0, 1)
const budget: Budget = {
  scope: 'server',
  of: 'all',
  period: 'day',
  amountMicros: 1,
  currency: 'units',
  alertAt: [],
  stops: true,
  liftedUntil: null,
  countsFrom: 0,
}
const deny: StoredMode = { mode: 'deny', temporary: null }
const temporarily = (mode: GuardMode, next: GuardMode): StoredMode => ({
  mode: next,
  temporary: { mode, since: now, until: now + 1000 },
})
const listed = countryRules(['IN'])

describe('protection against SMS pumping', () => {
  const complete = { rules: listed, budgets: [budget], guardMode: deny }
  const rows: readonly (readonly [string, Partial<typeof complete>, readonly string[]])[] = [
    ['of a server that has all of it', {}, []],
    ['without a list of countries', { rules: [] }, ['destinations']],
    ['with a list that blocks no other country', { rules: listed.slice(0, 1) }, ['destinations']],
    ['without a budget', { budgets: [] }, ['budgets']],
    ['by a budget for each country', { budgets: [{ ...budget, scope: 'country:*' }] }, []],
    ['by a budget of codes', { budgets: [{ ...budget, of: 'codes' }] }, []],
    ['by a budget of notifications only', { budgets: [{ ...budget, of: 'notifications' }] }, ['budgets']],
    ['by a budget of one country only', { budgets: [{ ...budget, scope: 'country:FR' }] }, ['budgets']],
    ['by a budget of one app only', { budgets: [{ ...budget, scope: 'app:shop' }] }, ['budgets']],
    ['by a budget that only alerts', { budgets: [{ ...budget, stops: false }] }, ['budgets']],
    ['in mode record', { guardMode: { mode: 'record', temporary: null } }, ['guard']],
    ['in mode off', { guardMode: { mode: 'off', temporary: null } }, ['guard']],
    ['in mode deny that record follows', { guardMode: temporarily('deny', 'record') }, []],
    ['in mode off that deny follows', { guardMode: temporarily('off', 'deny') }, ['guard']],
  ]
  test.each(rows)('%s', (_, change, missing) => {
    const problems = missingProtection({ ...complete, ...change }, { smsCountries: [], guard: 'record' }, now)
    expect(problems.map(({ what }) => what)).toEqual([...missing])
  })
})

test.each([
  ['deny', temporarily('deny', 'record'), undefined],
  ['record', temporarily('deny', 'record'), undefined],
  ['record', temporarily('off', 'deny'), 'off until 2030-01-01 00:00:01 UTC, then deny.'],
  ['record', deny, 'deny.'],
] as const)('GUARD=%s has no effect if another mode is in force and follows', (set, stored, mode) => {
  const text = mode && `GUARD is ${set}, but has no effect: the mode of the SMS pumping guard is ${mode}`
  expect(ignoredGuard(set, stored, now)?.text).toBe(text)
})
