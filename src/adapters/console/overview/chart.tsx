/** @jsxImportSource preact */

import type { ComponentChildren, ComponentProps } from 'preact'
import { count } from '../../../domain/ground/format.ts'
import { dayMs, hourMs } from '../../../domain/ground/time.ts'
import type { History } from '../../../domain/health/history.ts'
import { axisTops } from '../../../domain/log/axis.ts'
import { figureRows } from '../../../domain/log/log-search.ts'
import { isUnfinished, periodWords } from '../../../domain/log/ranges.ts'
import type { Point, Statistics } from '../../../domain/log/statistics.ts'
import { ExactTime, UtcNote } from '../../pages/components.tsx'
import { Card, end, Table } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { Count, listOf } from './counts.tsx'

function stepHint({ stepMs, from }: Statistics): ComponentChildren {
  if (stepMs < dayMs) return stepMs < hourMs ? 'Per minute.' : 'Per hour.'
  return (
    <>
      Per day, from <ExactTime at={from} toMinute />
      <UtcNote> UTC</UtcNote>.
    </>
  )
}

type Line = readonly [
  label: string,
  kind: 'area' | 'gold' | 'bad',
  figure: Parameters<typeof Count>[0]['of'],
  of: (point: Point) => number,
]

interface ChartProps {
  readonly id: string
  readonly title: string
  readonly statistics: Statistics
  readonly history: Pick<History, 'before' | 'incidents' | 'changes'>
  /** The first is compared with the time before. */
  readonly lines: readonly Line[]
}

/** charts.js draws it. The table has the same figures. */
export function Chart({ id, title, statistics, history, lines }: ChartProps) {
  const { period, points, stepMs } = statistics
  const before = beforeOf(history, lines)
  const rows = rowsOf(points).toReversed()
  const data = {
    page: '/admin',
    stepSeconds: stepMs / 1000,
    at: points.map(({ at }) => at / 1000),
    isUnfinished: isUnfinished(points.at(-1)?.at ?? 0, statistics),
    lines: lines.map(([label, kind, figure, of]) => {
      return { label, kind, values: points.map(of), rows: logUrl(listOf(figure), figureRows[figure]) }
    }),
    before: before?.values,
    incidents: history.incidents.map(({ from, until }) => [from / 1000, until / 1000]),
    changes: history.changes.map(({ at }) => at / 1000),
  }
  return (
    <Card title={title} hint={stepHint(statistics)}>
      <ChartFigure
        id={id}
        caption={`${title} ${periodWords[period]}`}
        data={data}
        before={before?.words}
        columns={['From (UTC)', ...lines.map(([label]) => end(label))]}
        rows={rows.map((row) => [
          <ExactTime at={row[0]?.at ?? 0} toMinute />,
          ...lines.map(([, , figure, of]) => (
            <Count
              value={row.reduce((sum, point) => sum + of(point), 0)}
              of={figure}
              where={{ since: row[0]?.at, until: (row.at(-1)?.at ?? 0) + stepMs }}
            />
          )),
        ])}
        keys={rows.map((row) => String(row[0]?.at))}
      />
    </Card>
  )
}

/** What charts.js draws. Times are in seconds. */
interface ChartData {
  readonly at: readonly number[]
  readonly stepSeconds: number
  readonly isUnfinished: boolean
  readonly isOfUtcDays?: boolean
  readonly lines: readonly {
    readonly label: string
    readonly kind: Line[1]
    readonly values: readonly number[]
    /** Default: that of the values. */
    readonly sum?: string | undefined
    readonly rows: string
  }[]
  readonly before?: readonly number[] | undefined
}

interface ChartFigureProps extends Omit<ComponentProps<typeof Table>, 'empty' | 'figures'> {
  readonly id: string
  readonly data: ChartData
  /** The words of `data.before`. */
  readonly before?: string | undefined
}

/** A chart, which without script is a legend with sums, and a table with the same figures. */
export function ChartFigure({ id, data, before, ...table }: ChartFigureProps) {
  const all =
    before && data.before ? [{ label: before, kind: 'before', values: data.before, sum: undefined }] : []
  const sumOf = (values: readonly number[]) => count(values.reduce((sum, value) => sum + value, 0))
  const [failures = [], counts = []] = [true, false].map((isBad) =>
    data.lines.filter(({ kind }) => (kind === 'bad') === isBad).map(({ values }) => values),
  )
  const tops = axisTops([...counts, data.before ?? []], failures.flat())
  return (
    <>
      <figure id={`chart-${id}`} data-chart={JSON.stringify({ ...data, tops })}>
        <figcaption class="sr-only">{table.caption}. The table below has the same figures.</figcaption>
        <ul class="legend">
          {[...data.lines, ...all].map(({ label, kind, values, sum = sumOf(values) }) => (
            <li key={label} class={kind}>
              {label}{' '}
              <span class="num" data-legend={sum}>
                {sum}
              </span>
            </li>
          ))}
          <li class="at" data-legend-at aria-hidden="true" />
        </ul>
        <div class="plot" data-plot aria-hidden="true" />
      </figure>
      <details id={`table-${id}`}>
        <summary>Show as a table</summary>
        <Table {...table} figures empty="" />
      </details>
    </>
  )
}

function beforeOf({ before }: Pick<History, 'before'>, [first]: readonly Line[]) {
  const values = first && before?.points.map(first[3])
  return before && values?.some((value) => value > 0) ? { words: before.words, values } : undefined
}

const mostRows = 60

/** Several steps share a row of a long table. */
function rowsOf(points: readonly Point[]): readonly (readonly Point[])[] {
  const each = Math.ceil(points.length / mostRows)
  return Array.from({ length: Math.ceil(points.length / each) }, (_, row) =>
    points.slice(row * each, (row + 1) * each),
  )
}
