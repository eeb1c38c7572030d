import { expect, test } from 'bun:test'
import { play } from '../../bench/pumping/play.ts'
import { scenarios, trafficOf } from '../../bench/pumping/scenarios.ts'
import type { Site } from '../../bench/pumping/traffic.ts'
import { openTestDatabase } from '../support/database.ts'

const startAtMs = Date.UTC(2026, 0, 5)
const site: Site = { name: 'small', usersPerDay: 20, attackedUsers: { each: 2, all: 5 } }

test('the pumping simulation repeats the traffic of a seed, with genuine users and attackers in the order of time', () => {
  for (const scenario of scenarios) {
    const [visits = [], repeated, other] = [1, 1, 2].map(
      (seed) => trafficOf(scenario, site, seed, startAtMs).visits,
    )
    expect(Bun.deepEquals(repeated, visits)).toBe(true)
    expect(Bun.deepEquals(other, visits)).toBe(false)
    const times = visits.map(({ atMs }) => atMs)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  }
})

test('the pumping simulation plays genuine users and an attacker against the request handler', async () => {
  const database = await openTestDatabase()
  const [scenario] = scenarios
  if (!scenario) throw new Error('there is no scenario')
  const visits = trafficOf(scenario, site, 1, startAtMs).visits.slice(0, 100)
  const setting = { mode: 'off', hasRules: true, client: 'clientIp' } as const
  const outcomes = await play(database.env, setting, visits)
  await database.remove()
  expect(new Set(visits.map(({ by }) => by))).toContain('attacker')
  expect(outcomes.filter(({ isRefused }) => isRefused)).toEqual([])
  for (const { visit, segments } of outcomes) expect(segments).toBe(visit.resendAfterMs === undefined ? 1 : 2)
})
