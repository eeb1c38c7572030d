/** @jsxImportSource preact */

import type { ComponentChildren } from 'preact'
import { count, utc } from '../../../domain/ground/format.ts'
import { type Period, type Point, periodWords, type Statistics } from '../../../domain/log/statistics.ts'
import { ExactTime, UtcNote } from '../../pages/components.tsx'
import { Card } from '../components.tsx'
import { Count } from './counts.tsx'

/** The length of a chart's step. Days are UTC days in every time zone. */
const stepHints: Readonly<Record<Period, ComponentChildren>> = {
  hour: (
    <>
      Per minute<UtcNote>, in UTC</UtcNote>
    </>
  ),
  day: (
    <>
      Per hour<UtcNote>, in UTC</UtcNote>
    </>
  ),
  month: 'Per day, in UTC',
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
  readonly lines: readonly Line[]
}

/** charts.js draws it. The table has the same figures. */
export function Chart({ id, title, statistics, lines }: ChartProps) {
  const { period, points, stepMs } = statistics
  const data = {
    period,
    stepSeconds: stepMs / 1000,
    at: points.map(({ at }) => at / 1000),
    lines: lines.map(([label, kind, , of]) => ({ label, kind, values: points.map(of) })),
  }
  return (
    <Card title={title} hint={stepHints[period]}>
      <figure id={`chart-${id}`} data-chart={JSON.stringify(data)}>
        <figcaption class="sr-only">
          {title} {periodWords[period]}. The table below has the same figures.
        </figcaption>
        <ul class="legend">
          {lines.map(([label, kind, , of]) => (
            <li key={label} class={kind}>
              {label}{' '}
              <span class="num" data-legend>
                {count(points.reduce((sum, point) => sum + of(point), 0))}
              </span>
            </li>
          ))}
          <li class="at" data-legend-at aria-hidden="true" />
        </ul>
        <div class="plot" data-plot aria-hidden="true" />
      </figure>
      <details id={`table-${id}`}>
        <summary>Show as a table</summary>
        <div class="scroll">
          <table>
            <caption class="sr-only">
              {title} {periodWords[period]}
            </caption>
            <thead>
              <tr>
                <th scope="col">From{period === 'month' ? ' (UTC)' : <UtcNote> (UTC)</UtcNote>}</th>
                {lines.map(([label]) => (
                  <th key={label} scope="col" class="end">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {points.toReversed().map((point) => (
                <tr key={point.at}>
                  <th scope="row" class="num">
                    {period === 'month' ? utc(point.at).slice(0, 10) : <ExactTime at={point.at} toMinute />}
                  </th>
                  {lines.map(([label, , figure, of]) => (
                    <td key={label} class="end">
                      <Count
                        value={of(point)}
                        of={figure}
                        where={{ since: point.at, until: point.at + stepMs }}
                      />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </Card>
  )
}
