import { isDear, type NumberKind } from '../delivery/destination.ts'
import type { Micros } from './amounts.ts'

/** The price of one segment of an SMS to the numbers that begin with a prefix (D42). */
export interface PriceRow {
  /** 1 to 15 digits in international form, without `+`. */
  readonly prefix: string
  /** The provider whose price this is. Null: the price of every provider without a price for the same prefix. */
  readonly provider: string | null
  readonly priceMicros: Micros
  /** ISO 4217, or `units`. The same in every row. */
  readonly currency: string
}

/** The stored prices of a provider, in one currency. */
export interface PriceGroup extends Pick<PriceRow, 'provider' | 'currency'> {
  readonly count: number
}

export interface FoundPrice {
  readonly priceMicros: Micros
  /** The prefix whose price it is. Null: the dearest known price, for a number without a known prefix or of a dear kind. */
  readonly prefix: string | null
}

type ProviderPrices = ReturnType<typeof compile>

/** Prices that are compiled for lookups. Immutable. */
export class PriceList {
  readonly currency: string

  private readonly general: ProviderPrices

  private readonly own = new Map<string, ProviderPrices>()

  /** Throws if there is no row, or if the rows have several currencies. */
  constructor(rows: Iterable<PriceRow>) {
    const byProvider = new Map<string | null, PriceRow[]>()
    const currencies = new Set<string>()
    for (const row of rows) {
      byProvider.getOrInsertComputed(row.provider, () => []).push(row)
      currencies.add(row.currency)
    }
    const [currency, ...others] = currencies
    if (currency === undefined || others.length > 0)
      throw new Error('A price list needs prices in one currency.')
    this.currency = currency
    const general = byProvider.get(null) ?? []
    // Without general prices, a provider without prices is as dear as the dearest provider.
    this.general = compile(general, general.length > 0 ? general : [...byProvider.values()].flat())
    for (const [provider, own] of byProvider) {
      if (provider !== null) this.own.set(provider, compile(own, [...own, ...general]))
    }
  }

  /**
   * The price of one segment through a provider; null is a provider without own prices. The longest prefix decides, whether it is
   * the provider's or general; of two with the same length, the provider's. Without a known prefix: the dearest of these prices.
   * Of a dear kind too, as a prefix whose price is that of mobile numbers, such as +447, can contain the number.
   */
  find(digits: string, kind: NumberKind, provider: string | null): FoundPrice {
    const own = provider === null ? undefined : this.own.get(provider)
    const { longest, dearestMicros } = own ?? this.general
    let priceMicros: Micros | undefined
    let length = 0
    // A number that begins with 0 has no country code, so it has no known prefix.
    const end = isDear(kind) || digits.startsWith('0') ? 0 : Math.min(longest, digits.length)
    for (let index = 0, prefix = 0; index < end; index++) {
      prefix = prefix * 10 + digits.charCodeAt(index) - zero
      const found = own?.byPrefix.get(prefix) ?? this.general.byPrefix.get(prefix)
      if (found === undefined) continue
      priceMicros = found
      length = index + 1
    }
    return priceMicros === undefined
      ? { priceMicros: dearestMicros, prefix: null }
      : { priceMicros, prefix: digits.slice(0, length) }
  }

  perSegment(digits: string, kind: NumberKind, provider: string | null): Micros {
    return this.find(digits, kind, provider).priceMicros
  }
}

/** The code of the digit 0. */
const zero = 48

/** By the number that a prefix is: it does not begin with 0, so each has its own. `longest`: in digits. */
function compile(rows: readonly PriceRow[], searched: readonly PriceRow[]) {
  let longest = 0
  let dearestMicros = 0
  for (const { prefix, priceMicros } of searched) {
    longest = Math.max(longest, prefix.length)
    dearestMicros = Math.max(dearestMicros, priceMicros)
  }
  const byPrefix = new Map(rows.map(({ prefix, priceMicros }) => [Number(prefix), priceMicros]))
  return { byPrefix, longest, dearestMicros }
}
