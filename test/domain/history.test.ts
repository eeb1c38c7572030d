import { expect, test } from 'bun:test'
import type { Alert } from '../../src/domain/ground/alert.ts'
import { outagesIn, reportedIn } from '../../src/domain/health/history.ts'
import { none } from '../support/health.ts'

const minute = 60_000
const hour = 60 * minute
const start = Date.UTC(2026, 2, 1, 12)

const pointsOf = (
  figures: readonly (readonly [sends: number, failed: number])[],
  from: number,
  stepMs: number,
) =>
  figures.map(([sends, sendsFailed], index) => ({ at: from + index * stepMs, ...none, sends, sendsFailed }))

const hours: readonly (readonly [number, number])[] = [
  [100, 2],
  [3, 40],
  [0, 0],
  [60, 10],
  [90, 5],
  [1, 2],
]

test('an outage is each time with trouble, without hours that had no traffic', async () => {
  const points = pointsOf(hours, start, hour)
  // Minutes are kept for four days.
  const outages = await outagesIn({ points, stepMs: hour }, start + 60 * 24 * hour, () => {
    throw new Error('there are no minutes')
  })
  expect(outages).toEqual([{ from: start + hour, until: start + 4 * hour, failed: 50, all: 113 }])
})

test('an outage of a few minutes counts, and a stray failure does not lengthen it', async () => {
  const points = pointsOf(hours.with(4, [90, 9]), start, hour)
  const minutes: Readonly<Record<number, readonly (readonly [number, number])[]>> = {
    1: Array.from({ length: 60 }, (_, at) => (at < 20 ? [0, 2] : [1, 0])),
    3: Array.from({ length: 60 }, (_, at) =>
      at === 3 ? [5, 0] : at < 7 ? [0, 1] : at === 50 ? [0, 1] : [1, 0],
    ),
    4: Array.from({ length: 60 }, (_, at) => [2, at % 7 === 0 ? 1 : 0]),
  }
  const outages = await outagesIn({ points, stepMs: hour }, start + 6 * hour, async ({ from, stepMs }) =>
    pointsOf(minutes[(from - start) / hour] ?? [], from, stepMs),
  )
  const [first, second] = outages
  expect(first).toEqual({ from: start + hour, until: start + hour + 20 * minute, failed: 40, all: 40 })
  expect(second).toEqual({ from: start + 3 * hour, until: start + 3 * hour + 7 * minute, failed: 6, all: 11 })
})

test('the alerts about a condition are one incident', () => {
  const alert = (number: number, at: number, state: string, since: number): Alert => ({
    key: `provider twilio #${number}`,
    at,
    kind: 'provider.failing',
    title: state === 'ended' ? 'Provider twilio accepts messages again' : 'Provider twilio fails',
    text: JSON.stringify({ state, since: new Date(since).toISOString(), provider: 'twilio' }),
  })
  const alerts = [
    alert(1, start, 'started', start),
    alert(2, start + 10 * minute, 'lasting', start),
    alert(3, start + 12 * minute, 'ended', start),
    alert(4, start + hour, 'started', start + hour),
  ]
  const incidents = reportedIn(alerts, { from: start - hour, until: start + 2 * hour })
  expect(incidents.map(({ from, until, isOpen, text }) => [from, until, isOpen, text])).toEqual([
    [start, start + 12 * minute, false, 'Provider twilio fails.'],
    [start + hour, start + 2 * hour, true, 'Provider twilio fails.'],
  ])
  const part = { from: start + 5 * minute, until: start + 11 * minute }
  expect(reportedIn(alerts, part)).toMatchObject([{ ...part, isOpen: true }])
})
