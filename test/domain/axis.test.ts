import { expect, test } from 'bun:test'
import { axisTops } from '../../src/domain/log/axis.ts'

const day = (usual: number, ...peaks: readonly number[]) => [
  ...peaks,
  ...Array.from({ length: 24 - peaks.length }, () => usual),
]

test.each([
  ['an even day', day(100), [], { counts: 108, failures: 10.8 }],
  ['a peak of an hour', day(100, 4000), [], { counts: 162, failures: 16.2 }],
  ['a peak of three hours', day(100, 900, 4000, 800), [], { counts: 162, failures: 16.2 }],
  ['an afternoon that is busy', day(100, 900, 1000, 950, 900), [], { counts: 1080, failures: 108 }],
  ['a peak that leaves the rest visible', day(100, 400), [], { counts: 432, failures: 43.2 }],
  ['a peak of a quiet day', day(2, 100), [], { counts: 108, failures: 10.8 }],
  ['the first hours of a server', [300, 2000, 200, ...day(0)], [], { counts: 2160, failures: 216 }],
  ['nothing', [], [], { counts: 4.32, failures: 4.32 }],
  ['one failure of many messages', day(1000), day(0, 1), { counts: 1080, failures: 108 }],
  ['failures of few messages', day(20), day(0, 19), { counts: 21.6, failures: 20.52 }],
  ['a short outage, which is a peak of failures', day(100), day(1, 90), { counts: 108, failures: 97.2 }],
  ['small amounts of money', day(0, 0.5), [], { counts: 0.54, failures: 4.32 }],
])('the axes of %s', (_, counts, failures, tops) => {
  const found = axisTops([counts.map((value) => value / 2), counts], failures)
  expect(found.counts).toBeCloseTo(tops.counts)
  expect(found.failures).toBeCloseTo(tops.failures)
})

test('the axis has the day before, also on a day without messages', () => {
  expect(axisTops([day(0), day(100)], []).counts).toBeCloseTo(108)
})
