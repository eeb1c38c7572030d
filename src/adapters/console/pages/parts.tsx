/** @jsxImportSource preact */
import { useContext } from 'preact/hooks'
import type { BrandStatus } from '../../../domain/brands/brand.ts'
import { type Delivery, statusOf } from '../../../domain/events/event-log.ts'
import { Badge, Now, type Tone } from '../../pages/components.tsx'
import { utc } from '../../pages/words.ts'

const brandTones: Readonly<Record<BrandStatus, Tone>> = { pending: 'warn', active: 'good', suspended: 'bad' }

export function BrandStatusBadge({ status }: { status: BrandStatus }) {
  return <Badge tone={brandTones[status]}>{status}</Badge>
}

type DeliveryStatus = ReturnType<typeof statusOf>

const deliveryTones: Readonly<Record<DeliveryStatus, Tone>> = {
  delivered: 'good',
  accepted: 'good',
  unknown: 'warn',
  retryable: 'warn',
  skipped: 'quiet',
  rejected: 'bad',
  failed: 'bad',
}

const deliveryMeanings: Readonly<Record<DeliveryStatus, string>> = {
  delivered: 'A delivery report confirms delivery.',
  accepted: 'Accepted by the provider. No final delivery report yet.',
  unknown: 'The message may or may not have been sent, for example after a timeout.',
  retryable: 'The provider could not accept it at that time.',
  skipped: 'otpost did not call the provider.',
  rejected: 'The provider rejected it.',
  failed: 'The provider accepted it, and a delivery report says that it was not delivered.',
}

export function DeliveryBadge({ row }: { row: Pick<Delivery, 'outcome' | 'report'> }) {
  const status = statusOf(row)
  return (
    <span title={deliveryMeanings[status]}>
      <Badge tone={deliveryTones[status]}>{status === 'retryable' ? 'temporary failure' : status}</Badge>
    </span>
  )
}

export function whyOf(row: Delivery): string {
  const { errorClass, reason, report } = row
  // The badge has it already.
  const isStatus = errorClass === statusOf(row)
  return [isStatus ? null : errorClass, reason ?? report?.reason].filter(Boolean).join(': ')
}

export function segmentsInWords({ count, encoding }: NonNullable<Delivery['segments']>): string {
  return `${count} ${count === 1 ? 'segment' : 'segments'} · ${encoding}`
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
