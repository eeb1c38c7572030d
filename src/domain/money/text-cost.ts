import { count, counted } from '../ground/format.ts'
import { dayMs, periodOf } from '../ground/time.ts'
import { formatMicros, type Micros } from './amounts.ts'
import type { DaySpend } from './spending.ts'

/** What a brand sent by SMS in some days, and what it cost. */
export interface SmsVolume {
  /** SMS by template. */
  readonly messages: ReadonlyMap<string, number>
  readonly micros: Micros
  readonly currency: string
}

/** The last 30 days, in UTC, with today; `until` is exclusive. */
export function volumeSpan(now: number): { readonly from: number; readonly until: number } {
  const { start, end: until } = periodOf('day', now)
  return { from: start - 29 * dayMs, until }
}

/** @param spending the latest day last. After a change of the currency, only the latest currency counts. */
export function smsVolume(
  brand: string,
  spending: readonly DaySpend[],
  messages: ReadonlyMap<string, number>,
): SmsVolume {
  const own = spending.filter((each) => each.brand === brand)
  const currency = own.at(-1)?.currency ?? ''
  const micros = own.filter((each) => each.currency === currency).reduce((sum, each) => sum + each.micros, 0)
  return { messages, micros, currency }
}

/**
 * What another number of segments would cost in 30 days like the last.
 * @param segments now and later, and of each template of the brand
 * @returns a sentence for operators
 */
export function costOfSegments(
  templateKey: string,
  { messages, micros, currency }: SmsVolume,
  {
    now,
    later,
    each,
  }: { readonly now: number; readonly later: number; readonly each: ReadonlyMap<string, number> },
): string {
  const change = `${counted(now, 'segment')} now, ${count(later)} with this text.`
  const sent = messages.get(templateKey) ?? 0
  if (sent === 0) return `${change} No SMS of ${templateKey} was sent in the last 30 days.`
  const all = [...messages].reduce((sum, [key, number]) => sum + number * (each.get(key) ?? 1), 0)
  const more = sent * Math.abs(later - now)
  const direction = later > now ? 'more' : 'fewer'
  // An average has no more digits than a price list.
  const cost = Math.round((micros / all) * more * 1e-4) * 1e4
  const money = cost === 0 ? '' : `, about ${formatMicros(cost, currency)} ${later > now ? 'more' : 'less'}`
  return `${change} With the ${count(sent)} SMS of ${templateKey} in the last 30 days: ${counted(more, `${direction} segment`)}${money}.`
}
