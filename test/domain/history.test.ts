import { expect, test } from 'bun:test'
import type { Alert } from '../../src/domain/ground/alert.ts'
import { narrowed, outagesIn, reportedIn } from '../../src/domain/health/history.ts'
import { none } from '../support/health.ts'

const minute = 60_000
const hour = 60 * minute
const start = Date.UTC(2026, 2, 1, 12)

test('an outage is each time with trouble, without hours that had no traffic', () => {
  const hours = [
    [100, 2],
    [3, 40],
    [0, 0],
    [60, 10],
    [90, 5],
    [1, 2],
  ]
  const points = hours.map(([sends = 0, sendsFailed = 0], index) => {
    return { at: start + index * hour, ...none, sends, sendsFailed }
  })
  expect(outagesIn({ points, stepMs: hour })).toEqual([
    { from: start + hour, until: start + 4 * hour, failed: 50, all: 113 },
  ])
})

test('an outage starts and ends with a minute of trouble', () => {
  const outage = { from: start, until: start + hour, failed: 33, all: 60 }
  const tries = [0, 0, 5, 1, 0, 7, 0].map((failed, index) => {
    return { at: start + index * minute, failed, all: 10 }
  })
  expect(narrowed(outage, tries, minute)).toEqual({
    from: start + 2 * minute,
    until: start + 6 * minute,
    failed: 13,
    all: 40,
  })
  expect(narrowed(outage, [], minute)).toEqual(outage)
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
