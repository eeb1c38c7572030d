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
  delivered: 'A receipt says that it arrived.',
  accepted: 'The provider took it; no receipt has said more.',
  unknown: 'It may have been sent or not, as after a time-out.',
  retryable: 'The provider could not take it then.',
  skipped: 'The provider was not asked.',
  rejected: 'The provider refused it.',
  failed: 'The provider took it, and a receipt says that it did not arrive.',
}

/** The status of a delivery, as in `otpost deliveries`. */
export function DeliveryBadge({ row }: { row: Pick<Delivery, 'outcome' | 'report'> }) {
  const status = statusOf(row)
  return (
    <span title={deliveryMeanings[status]}>
      <Badge tone={deliveryTones[status]}>{status}</Badge>
    </span>
  )
}

/** The reason for a delivery's status; '' if there is none. */
export function whyOf(row: Delivery): string {
  const { errorClass, reason, report } = row
  // The badge says `retryable` and `unknown` already.
  const told = errorClass === statusOf(row) ? null : errorClass
  return [told, reason ?? report?.reason].filter(Boolean).join(': ')
}

export function segmentsInWords({ count, encoding }: NonNullable<Delivery['segments']>): string {
  return `${count} ${count === 1 ? 'segment' : 'segments'} · ${encoding}`
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The time to the second in UTC, with the date unless it is today. */
export function Instant({ at }: { at: number }) {
  const now = useContext(Now)
  const date = new Date(at)
  const iso = date.toISOString()
  const isToday = iso.slice(0, 10) === new Date(now).toISOString().slice(0, 10)
  return (
    <time class="instant" dateTime={iso} title={utc(at)}>
      {isToday ? '' : <span class="hint">{`${date.getUTCDate()} ${months[date.getUTCMonth()]} `}</span>}
      {iso.slice(11, 19)}
    </time>
  )
}

export function milliseconds(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** A URL that a caller entered: a link only if it is http(s), with the URL itself as text. */
export function WebLink({ url }: { url: string }) {
  if (!/^https?:\/\//i.test(url)) return <bdi>{url}</bdi>
  return (
    <a href={url} rel="noopener noreferrer nofollow">
      <bdi>{url}</bdi>
    </a>
  )
}

/** A mailto link; escapes what mail programs would read as commands. */
export function MailLink({ address }: { address: string }) {
  const href = `mailto:${encodeURIComponent(address).replace('%40', '@')}`
  return (
    <a href={href}>
      <bdi>{address}</bdi>
    </a>
  )
}
