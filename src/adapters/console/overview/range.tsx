/** @jsxImportSource preact */

import { minuteMs } from '../../../domain/ground/time.ts'
import type { Span } from '../../../domain/log/log-search.ts'
import { type Period, periods, type Range } from '../../../domain/log/ranges.ts'
import { Button, ExactTime, Field, LinkButton, UtcNote } from '../../pages/components.tsx'
import { timeText } from '../deliveries/query.ts'

const periodNames: Readonly<Record<Period, string>> = {
  hour: 'Hour',
  day: 'Day',
  week: '7 days',
  month: '30 days',
}

/** The overview of this time, in whole minutes. */
export function rangeUrl({ from, until }: Span): string {
  const [first, last] = [Math.floor(from / minuteMs), Math.ceil(until / minuteMs)]
  const query = { from: `${timeText(first * minuteMs)}Z`, until: `${timeText(last * minuteMs)}Z` }
  return `/admin?${new URLSearchParams(query)}`
}

/** A time, and as much again before and after it. */
export function around({ from, until }: Span): Span {
  const margin = Math.max(until - from, 10 * minuteMs)
  return { from: from - margin, until: until + margin }
}

interface RangeProps {
  readonly range: Range
  readonly now: number
}

/** Chooses the time of the page. charts.js does so too. */
export function RangeNav({ range, now }: RangeProps) {
  const { period, from, until } = range
  const length = until - from
  const label = (text: string) => (
    <>
      {text}
      <UtcNote> (UTC)</UtcNote>
    </>
  )
  return (
    <>
      {period === 'range' && (
        <nav class="actions" aria-label="Time">
          <span class="hint">
            <ExactTime at={from} toMinute /> to <ExactTime at={until} toMinute />
          </span>
          <LinkButton small href={rangeUrl({ from: from - length, until: from })}>
            Earlier
          </LinkButton>
          {until < now && (
            <LinkButton small href={rangeUrl({ from: until, until: until + length })}>
              Later
            </LinkButton>
          )}
          <LinkButton small href={rangeUrl(around(range))}>
            Zoom out
          </LinkButton>
        </nav>
      )}
      <nav class="switch" aria-label="Period">
        {periods.map((each) => (
          <a key={each} href={`/admin?period=${each}`} aria-current={each === period ? 'true' : undefined}>
            <span class="sr-only">Last </span>
            {periodNames[each]}
          </a>
        ))}
      </nav>
      <details class="range">
        <summary class="button plain small">Choose times</summary>
        <form method="get" action="/admin" class="form" autocomplete="off">
          <Field label={label('From')} name="from" isTime value={timeText(from).slice(0, 16)} />
          <Field label={label('Until')} name="until" isTime value={timeText(until).slice(0, 16)} />
          <p class="buttons">
            <Button kind="primary">Show</Button>
          </p>
        </form>
      </details>
    </>
  )
}
