import { expect, test } from 'bun:test'
import { play } from '../../bench/pumping/play.ts'
import { scenarios, trafficOf } from '../../bench/pumping/scenarios.ts'
import { openTestDatabase } from '../support/database.ts'

const startAtMs = Date.UTC(2026, 0, 5)
const volume = { usersPerDay: 100, historyDays: 1, attackShare: 0.002 }

test('the pumping simulation repeats the traffic of a seed, with genuine users and attackers in the order of time', () => {
  const days = [1, 1].map((seed) => scenarios.map(trafficOf(seed, startAtMs, volume).dayOf))
  expect(days[0]).toEqual(days[1] ?? [])
  expect(trafficOf(2, startAtMs, volume).genuine).not.toEqual(trafficOf(1, startAtMs, volume).genuine)
  for (const visits of days.flat()) {
    const times = visits.map(({ atMs }) => atMs)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  }
})

test('the pumping simulation plays genuine users and an attacker against the request handler', async () => {
  const database = await openTestDatabase()
  const [scenario] = scenarios
  const visits = scenario ? trafficOf(1, startAtMs, volume).dayOf(scenario) : []
  const outcomes = await play(database.env, { name: 'off', env: {} }, visits)
  await database.remove()
  expect(visits.filter(({ isAttack }) => isAttack)).toHaveLength(22)
  expect(outcomes.filter(({ isRefused }) => isRefused)).toEqual([])
  for (const { visit, segments } of outcomes) expect(segments).toBe(visit.resendAfterMs === undefined ? 1 : 2)
})
