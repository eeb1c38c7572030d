/** @jsxImportSource preact */

import { count, counted } from '../../../domain/ground/format.ts'
import { type DeliveryFilter, figureRows, type LogList } from '../../../domain/log/log-search.ts'
import { classes } from '../../pages/components.tsx'
import { logUrl } from '../deliveries/query.ts'

interface CountProps {
  readonly value: number
  /** After the number. */
  readonly unit?: string
  readonly of: keyof typeof figureRows
  /** What the number counts, besides its kind. */
  readonly where: DeliveryFilter
  readonly class?: string | undefined
}

/** A number that links to its rows. */
export function Count({ value, unit, of, where, class: extra }: CountProps) {
  const text = unit === undefined ? count(value) : counted(value, unit)
  if (value === 0) return <span class={extra}>{text}</span>
  return (
    <a class={classes('count', extra)} href={logUrl(listOf(of), { ...where, ...figureRows[of] })}>
      {text}
    </a>
  )
}

/** The list that has the rows of a figure. */
export function listOf(figure: keyof typeof figureRows): LogList {
  return 'statuses' in figureRows[figure] ? 'deliveries' : 'calls'
}
