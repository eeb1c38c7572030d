/** @jsxImportSource preact */
import { useContext } from 'preact/hooks'
import type { Delivery } from '../../domain/delivery/delivery-reports.ts'
import type { AuditFilters, AuditRecord } from '../../domain/ground/audit.ts'
import { statusOf } from '../../domain/log/event-log.ts'
import { type DeliveryStatus, deliveryStatuses } from '../../domain/log/log-search.ts'
import type { RequestTrace } from '../../domain/request/request-trace.ts'
import type { BrandStatus } from '../../domain/texts/brand.ts'
import { Badge, ExactTime, Now, type Tone } from '../pages/components.tsx'
import { counted, utc } from '../pages/words.ts'
import { logUrl } from './log-query.ts'

const brandTones: Readonly<Record<BrandStatus, Tone>> = { pending: 'warn', active: 'good', suspended: 'bad' }

export function BrandStatusBadge({ status }: { status: BrandStatus }) {
  return <Badge tone={brandTones[status]}>{status}</Badge>
}

export function DeliveryBadge({ row }: { row: Pick<Delivery, 'outcome' | 'report'> }) {
  const status = statusOf(row)
  return (
    <span title={deliveryStatuses[status].meaning}>
      <StatusBadge status={status} />
    </span>
  )
}

export function StatusBadge({ status }: { status: DeliveryStatus }) {
  const { tone, name } = deliveryStatuses[status]
  return <Badge tone={tone}>{name}</Badge>
}

export const callPaths: Readonly<Record<RequestTrace['operation'], string>> = {
  send: 'POST /otp/send',
  resend: 'POST /otp/resend',
  verify: 'POST /otp/verify',
  notify: 'POST /notify',
}

/** Its end: request IDs start with their time. */
export function shortId(requestId: string): string {
  return `…${requestId.slice(-8)}`
}

/** @param place `before` or `after` an entry */
export function auditUrl(filters: AuditFilters, place: Readonly<Record<string, number>> = {}): string {
  const { group, actorName, target, withoutSignIns } = filters
  const query = new URLSearchParams()
  if (group !== undefined) query.set('group', group)
  if (actorName !== undefined) query.set('by', actorName)
  if (target !== undefined) query.set('target', target)
  if (withoutSignIns) query.set('hide', 'sign-ins')
  for (const [name, id] of Object.entries(place)) query.set(name, String(id))
  return `/admin/audit${query.size === 0 ? '' : `?${query}`}`
}

/** All requests to the recipient. */
export function requestsTo({ recipientSubject }: { readonly recipientSubject: string }): string {
  return logUrl('calls', { recipientSubjects: [recipientSubject] })
}

export function segmentsInWords({ count, encoding }: NonNullable<Delivery['segments']>): string {
  return `${counted(count, 'segment')} · ${encoding}`
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The time to the second, with the date unless it is today. page.js shows it in the viewer's time zone. */
export function Instant({ at }: { at: number }) {
  const now = useContext(Now)
  const date = new Date(at)
  const iso = date.toISOString()
  const isToday = iso.slice(0, 10) === new Date(now).toISOString().slice(0, 10)
  return (
    <time class="instant" dateTime={iso} title={utc(at)} data-local="clock">
      {isToday ? '' : <span class="hint">{`${date.getUTCDate()} ${months[date.getUTCMonth()]} `}</span>}
      {iso.slice(11, 19)}
    </time>
  )
}

/** A masked recipient; phone numbers get a plus sign. */
export function withPlus(masked: string): string {
  return /^\d+\*+\d+$/.test(masked) ? `+${masked}` : masked
}

/** A URL from a caller. Only http(s) becomes a link. */
export function WebLink({ url }: { url: string }) {
  if (!/^https?:\/\//i.test(url)) return <bdi>{url}</bdi>
  return (
    <a href={url} rel="noopener noreferrer nofollow">
      <bdi>{url}</bdi>
    </a>
  )
}

/** Escapes `?` and `&`, which mail programs read as header fields. */
export function MailLink({ address }: { address: string }) {
  const href = `mailto:${encodeURIComponent(address).replace('%40', '@')}`
  return (
    <a href={href}>
      <bdi>{address}</bdi>
    </a>
  )
}

/** When an entry was set, and who set it, with a link to the audit log. */
export function SetBy({ id, at, actor }: Pick<AuditRecord, 'id' | 'at' | 'actor'>) {
  return (
    <span class="two-lines">
      <a href={`/admin/audit?before=${id + 1}`}>
        <ExactTime at={at} toMinute />
      </a>
      <small>
        <bdi class="breaks">{actor.name}</bdi>
      </small>
    </span>
  )
}
