import { count, counted } from '../ground/format.ts'
import { formatMicros } from './amounts.ts'
import { type DaySpend, spendBy } from './spending.ts'

/** Of the last 30 days. */
interface SmsOfBrand {
  readonly spending: readonly DaySpend[]
  /** SMS by template. */
  readonly messages: ReadonlyMap<string, number>
  /** Segments of each template. */
  readonly segments: ReadonlyMap<string, number>
}

/**
 * What another number of segments would cost in 30 days like the last. After a change of the currency, only the latest currency counts.
 * @param change segments now and later
 * @returns a sentence for operators
 */
export function costOfSegments(
  templateKey: string,
  { spending, messages, segments }: SmsOfBrand,
  { now, later }: Readonly<Record<'now' | 'later', number>>,
): string {
  const change = `${counted(now, 'segment')} now, ${count(later)} with this text.`
  const sent = messages.get(templateKey) ?? 0
  if (sent === 0) return `${change} No SMS of ${templateKey} was sent in the last 30 days.`
  const all = [...messages].reduce((sum, [key, number]) => sum + number * (segments.get(key) ?? 1), 0)
  const currency = spending.at(-1)?.currency ?? ''
  const micros = spendBy(spending, () => '').find((each) => each.currency === currency)?.micros ?? 0
  const more = sent * Math.abs(later - now)
  const direction = later > now ? 'more' : 'fewer'
  // An average has no more digits than a price list.
  const cost = Math.round((micros / all) * more * 1e-4) * 1e4
  const money = cost === 0 ? '' : `, about ${formatMicros(cost, currency)} ${later > now ? 'more' : 'less'}`
  return `${change} With the ${count(sent)} SMS of ${templateKey} in the last 30 days: ${counted(more, `${direction} segment`)}${money}.`
}
