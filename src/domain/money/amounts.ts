/** Millionths of a currency, or of a unit: an integer, exact up to 9 × 10^15. */
export type Micros = number

/** The currency of the built-in relative prices: one unit is the price of an SMS to the cheapest countries. */
export const unitCurrency = 'units'

const microsPerUnit = 1_000_000

/** How people write an amount, for messages. */
export const amountForm =
  'with at most 6 decimals and without a separator of thousands, such as 250, 99.50 or 99,50'

/**
 * Reads an amount as people write it: `0.075`, `20,50`, without sign or exponent. Otherwise undefined, also for `1,000`, which can be
 * one or a thousand.
 */
export function parseMicros(text: string): Micros | undefined {
  const [, whole, point, decimals = ''] = /^(\d{1,10})(?:([.,])(\d{1,6}))?$/.exec(text.trim()) ?? []
  if (point === ',' && decimals.length === 3 && whole !== '0') return undefined
  return whole === undefined ? undefined : Number(whole) * microsPerUnit + Number(decimals.padEnd(6, '0'))
}

/** As people see a sum: rounded down to two decimals, below one to four. So it is the amount of a budget only if nothing is left. */
export function shownMicros(micros: Micros): Micros {
  const step = micros < microsPerUnit ? 100 : 10_000
  return Math.floor(micros / step) * step
}

/** A sum, as all pages show it. */
export function sumWords(micros: Micros, currency: string): string {
  return formatMicros(shownMicros(micros), currency)
}

/** Returns `12.34 EUR`, `0.075 EUR`, `40 units`. A broken amount has at least two decimals. */
export function formatMicros(micros: Micros, currency: string): string {
  const size = Math.abs(micros)
  const decimals = String(size % microsPerUnit)
    .padStart(6, '0')
    .replace(/0+$/, '')
  const number = `${micros < 0 ? '-' : ''}${Math.floor(size / microsPerUnit)}${decimals && `.${decimals.padEnd(2, '0')}`}`
  return `${number} ${currency === unitCurrency && size === microsPerUnit ? 'unit' : currency}`
}
