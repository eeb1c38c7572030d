import { expect, test } from 'bun:test'
import {
  isCountrySurge,
  isRangeSurge,
  type NotifiedHistory,
  NotifyWatch,
  type Surge,
} from '../../../src/domain/guard/notify-watch.ts'

const minuteMs = 60_000

const ofCountry: readonly (readonly [bestDay: number, inDay: number, inHour: number, boolean])[] = [
  [0, 20, 20, false],
  [0, 21, 1, true],
  [6, 20, 20, false],
  [10, 30, 15, false],
  [10, 31, 15, true],
  [100, 300, 150, false],
  [100, 300, 151, true],
  [100, 301, 20, true],
]
test.each(ofCountry)('best day %i, %i in a day, %i in an hour: %p', (bestDay, inDay, inHour, isSurge) => {
  expect(isCountrySurge({ bestDay, inDay, inHour })).toBe(isSurge)
})

const ofRange: readonly (readonly [inHour: number, bestHour: number, messages: number, number, boolean])[] = [
  [20, 0, 0, 0, false],
  [21, 0, 0, 0, true],
  [21, 7, 0, 0, false],
  [22, 7, 0, 0, true],
  // Average of the others: 1, 5.
  [21, 0, 100, 100, true],
  [50, 0, 500, 100, false],
  [51, 0, 500, 100, true],
]
test.each(ofRange)(
  '%i to a range in an hour, at most %i before, others %i in %i ranges: %p',
  (inHour, bestHour, messages, ranges, isSurge) => {
    expect(isRangeSurge({ inHour, bestHour }, { messages, ranges })).toBe(isSurge)
  },
)

function watch(history: () => Promise<readonly NotifiedHistory[]> = async () => []) {
  const clock = { now: Date.UTC(2026, 0, 1, 12) }
  const reports: string[] = []
  const errors: object[] = []
  const state = { fails: false }
  const report = async (app: string, surges: readonly Surge[]) => {
    if (state.fails) throw new Error('no database')
    reports.push(`${app} ${surges.map(({ country, range }) => range ?? country).join()}`)
  }
  const log = { info() {}, warn() {}, error: (fields: object) => void errors.push(fields) }
  return {
    clock,
    reports,
    errors,
    state,
    watch: new NotifyWatch({ history, report, now: () => clock.now, log }),
  }
}

/** Each to a range of its own. */
const many = (country: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ to: `${country}${1000 + index}0000`, country }))

test('a report has all that was found since the last one, which is at least 10 minutes ago, and each country once a day', async () => {
  const { clock, reports, watch: own } = watch()
  await own.ready()
  expect(own.add('shop', many('LV', 20)).size).toBe(0)
  expect([...own.add('shop', many('LV', 1))]).toEqual(['notify-country'])
  await own.tick()
  for (const country of ['EE', 'LT', 'LV']) own.add('shop', many(country, 21))
  own.add('bank', many('EE', 21))
  await own.tick()
  expect(reports).toEqual(['shop LV', 'bank EE'])
  clock.now += 10 * minuteMs - 1
  await own.tick()
  expect(reports).toHaveLength(2)
  clock.now++
  await own.tick()
  await own.tick()
  expect(reports.slice(2)).toEqual(['shop EE,LT'])
  clock.now += 12 * 60 * minuteMs
  await own.ready()
  await own.idle()
  own.add('shop', many('LV', 21))
  await own.tick()
  expect(reports.slice(3)).toEqual(['shop LV'])
})

test('a report that failed is repeated', async () => {
  const { clock, reports, errors, state, watch: own } = watch()
  await own.ready()
  own.add('shop', many('LV', 21))
  state.fails = true
  await own.tick()
  expect(errors).toHaveLength(1)
  state.fails = false
  clock.now += 10 * minuteMs
  await own.tick()
  expect(reports).toEqual(['shop LV'])
})

test('a range of a usual country is found, and its usual hour is learned', async () => {
  const usual = { app: 'shop', country: 'LV', bestDay: 1000, inDay: 0, inHour: 0 }
  const { clock, reports, watch: own } = watch(async () => [usual])
  await own.ready()
  const near = (count: number) => Array(count).fill({ to: '37120001234', country: 'LV' })
  own.add('shop', many('LV', 20))
  expect([...own.add('shop', near(20))]).toEqual([])
  expect([...own.add('shop', near(1))]).toEqual(['notify-range'])
  await own.tick()
  expect(reports).toEqual(['shop 3712000'])
  clock.now += 60 * minuteMs
  expect([...own.add('shop', near(63))]).toEqual([])
  expect([...own.add('shop', near(1))]).toEqual(['notify-range'])
})

test('nothing is found in countries while their history cannot be read', async () => {
  const { clock, errors, watch: own } = watch(() => Promise.reject(new Error('no database')))
  await own.ready()
  expect(own.add('shop', many('LV', 30)).size).toBe(0)
  expect(own.bestDay('shop', 'LV')).toBeUndefined()
  clock.now += minuteMs
  await own.ready()
  expect(errors).toHaveLength(2)
})
