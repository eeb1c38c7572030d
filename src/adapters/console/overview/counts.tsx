/** @jsxImportSource preact */

import { count, counted } from '../../../domain/ground/format.ts'
import { minuteMs } from '../../../domain/ground/time.ts'
import type { CallFilter, DeliveryFilter, DeliveryStatus } from '../../../domain/log/log-search.ts'
import type { Statistics } from '../../../domain/log/statistics.ts'
import { classes } from '../../pages/components.tsx'
import { logUrl } from '../deliveries/query.ts'

/** The rows of each figure. The log has no other figures. */
export const rowsOf = {
  sends: { call: 'code', result: 'success' },
  sendsFailed: { call: 'code', result: 'failed' },
  notified: { call: 'notify', result: 'success' },
  notifyFailed: { call: 'notify', result: 'failed' },
  notSent: { result: 'failed' },
  verified: { call: 'verify', result: 'success' },
  wrongCodes: { call: 'verify', result: 'wrong-code' },
  limited: { result: 'limited' },
  refused: { result: 'brand' },
  blocked: { result: 'destination' },
  // As the provider answered. Its delivery report may have come since.
  accepted: { statuses: ['accepted', 'delivered', 'failed'] },
  failed: { statuses: ['rejected', 'retryable'] },
  unknown: { statuses: ['unknown'] },
  failedOrUnknown: { statuses: ['rejected', 'retryable', 'unknown'] },
  delivered: { statuses: ['delivered'] },
  undelivered: { statuses: ['failed'] },
} as const satisfies Readonly<Record<string, CallFilter | { readonly statuses: readonly DeliveryStatus[] }>>

/** To the minute, as the fields of the log. */
export function spanOf({
  from,
  until,
}: Pick<Statistics, 'from' | 'until'>): Pick<DeliveryFilter, 'since' | 'until'> {
  return { since: from, until: Math.ceil((until + 1) / minuteMs) * minuteMs }
}

interface CountProps {
  readonly value: number
  /** After the number. */
  readonly unit?: string
  readonly of: keyof typeof rowsOf
  /** What the number counts, besides its kind. */
  readonly where: DeliveryFilter
  readonly class?: string | undefined
}

/** A number that links to its rows. */
export function Count({ value, unit, of, where, class: extra }: CountProps) {
  const text = unit === undefined ? count(value) : counted(value, unit)
  if (value === 0) return <span class={extra}>{text}</span>
  const list = 'statuses' in rowsOf[of] ? 'deliveries' : 'calls'
  return (
    <a class={classes('count', extra)} href={logUrl(list, { ...where, ...rowsOf[of] })}>
      {text}
    </a>
  )
}
