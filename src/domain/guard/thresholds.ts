import { dayMs, type EpochMs, hourMs } from '../ground/time.ts'
import type { BucketKind } from './bucket.ts'

/** Verified codes of a country. */
export interface CountryHistory {
  /** ISO 3166-1, or `unknownCountry`. */
  readonly country: string
  /** The most in one of the 14 days before today. */
  readonly bestDay: number
  /** In the 14 days before today, and today. */
  readonly inFortnight: number
  readonly inDay: number
  readonly inHour: number
}

/** The key of buckets for numbers of no country; CLDR's code for an unknown region. */
export const unknownCountry = 'ZZ'

export interface PairThresholds {
  readonly hour: number
  readonly day: number
}

export const prefixThreshold = 5
/** Countries with unverified codes. */
export const countriesThreshold = 3
export const clientThresholds: PairThresholds = { hour: 5, day: 10 }
/** Of all countries without a verified code in 14 days together. */
export const quietThresholds: PairThresholds = { hour: 20, day: 60 }

/** Of one number. At home some users need more codes, and each costs less. */
export const numberThresholds = { home: 5, abroad: 3 } as const

const fixed = {
  number: numberThresholds.home,
  prefix: prefixThreshold,
  'quiet-hour': quietThresholds.hour,
  'quiet-day': quietThresholds.day,
  'ip-hour': clientThresholds.hour,
  'ip-day': clientThresholds.day,
  /** Above 0 for a day after an unverified code. */
  'ip-country': 1,
  'device-hour': clientThresholds.hour,
  'device-day': clientThresholds.day,
  'device-country': 1,
  spared: prefixThreshold,
  'known-country': 20,
  'known-ip': 3,
  'known-device': 3,
  flagged: prefixThreshold,
} as const satisfies Partial<Record<BucketKind, number>>

/** Those that do not follow the history of a country. */
export const fixedThresholds: Readonly<
  Record<keyof typeof fixed, number> & Partial<Record<BucketKind, number>>
> = fixed

/** Design D41: the greatest numbers of unverified codes in a day and in an hour. */
export function countryThresholds(
  { bestDay, inDay, inHour }: Pick<CountryHistory, 'bestDay' | 'inDay' | 'inHour'>,
  isAllowed: boolean,
): PairThresholds {
  const day = Math.max(20, 0.3 * bestDay, 0.3 * inDay)
  return { day, hour: Math.max(isAllowed ? 20 : 3, (0.2 * day) / 6, 0.2 * inHour) }
}

/**
 * In a day, of all countries that are not home together: scattered over many countries, an attack fills none of their own
 * buckets. The greater one applies: this, or this share of the verified codes of these countries in 24 hours.
 */
const abroadThreshold = { least: 30, share: 0.2 } as const

/** A home country has at least this share of the verified codes of 14 days. */
const homeShare = 1 / 5
/**
 * The first verified codes of a server would make any country home. A home country with fewer verified codes than this keeps its country
 * buckets, with at least this threshold.
 */
const fewVerified = 50
const leastOfYoungHome: PairThresholds = { hour: 60, day: 60 }
const none: PairThresholds = { hour: 0, day: 0 }

/** What a country is to the guard, with the thresholds of its buckets. */
export interface CountryStanding extends PairThresholds {
  /** Whether it has at least a fifth of the verified codes of 14 days. */
  readonly isHome: boolean
  /** Whether it has no verified code in 14 days. */
  readonly isQuiet: boolean
  /** Whether the buckets of the country deny. Those of a home country alert and record. */
  readonly isDenied: boolean
}

/**
 * The verified codes of all countries: as they were read, and those that this process verified since. Read it again every minute: a code
 * that is verified changes the standing of its own country only.
 */
export class VerifiedHistory {
  readonly #countries: ReadonlyMap<string, CountryHistory>
  readonly #since = new Map<string, number>()
  /** By country, each with whether a rule allows it. */
  readonly #standings = new Map<string, { readonly isAllowed: boolean; readonly standing: CountryStanding }>()
  #total = 0
  /** Verified codes in 24 hours of all countries that are not home. */
  #abroadInDay: number | undefined

  constructor(
    countries: readonly CountryHistory[],
    private readonly readAt: EpochMs,
  ) {
    this.#countries = new Map(countries.map((each) => [each.country, each]))
    for (const { inFortnight } of countries) this.#total += inFortnight
  }

  add(country: string): void {
    this.#since.set(country, (this.#since.get(country) ?? 0) + 1)
    this.#total++
    this.#standings.delete(country)
    if (this.#abroadInDay !== undefined && !this.#isHome(country)) this.#abroadInDay++
  }

  of(country: string, isAllowed: boolean, now: EpochMs): CountryStanding {
    const known = this.#standings.get(country)
    // Later, fewer codes are of the last hour or day.
    if (known?.isAllowed === isAllowed && now - this.readAt < hourMs) return known.standing
    const isHome = this.#isHome(country)
    const isYoung = isHome && this.#verified(country) < fewVerified
    const { hour, day } = countryThresholds(this.#counts(country, now), isAllowed)
    const least = isYoung ? leastOfYoungHome : none
    const standing = {
      isHome,
      isQuiet: this.#verified(country) === 0,
      isDenied: !isHome || isYoung,
      hour: Math.max(hour, least.hour),
      day: Math.max(day, least.day),
    }
    this.#standings.set(country, { isAllowed, standing })
    return standing
  }

  /** @param key a country, for buckets that have one */
  thresholdOf(kind: BucketKind, key: string, isAllowed: boolean, now: EpochMs): number {
    const fixed = fixedThresholds[kind]
    if (fixed !== undefined) return fixed
    if (kind === 'abroad') return this.abroad()
    const { hour, day } = this.of(key, isAllowed, now)
    return kind === 'country-hour' ? hour : day
  }

  /** Of the bucket `abroad`. */
  abroad(): number {
    this.#abroadInDay ??= this.#all().reduce(
      (sum, each) => sum + (this.#isHome(each) ? 0 : this.#inDay(each)),
      0,
    )
    return Math.max(abroadThreshold.least, abroadThreshold.share * this.#abroadInDay)
  }

  /** All that are home. */
  homes(): readonly string[] {
    return this.#all().filter((each) => this.#isHome(each))
  }

  #all(): readonly string[] {
    return [...new Set([...this.#countries.keys(), ...this.#since.keys()])]
  }

  #inDay(country: string): number {
    return (this.#countries.get(country)?.inDay ?? 0) + (this.#since.get(country) ?? 0)
  }

  #isHome(country: string): boolean {
    const verified = this.#verified(country)
    return verified > 0 && verified >= homeShare * this.#total
  }

  #verified(country: string): number {
    return (this.#countries.get(country)?.inFortnight ?? 0) + (this.#since.get(country) ?? 0)
  }

  #counts(country: string, now: EpochMs) {
    const { bestDay = 0, inDay = 0, inHour = 0 } = this.#countries.get(country) ?? {}
    const since = this.#since.get(country) ?? 0
    const ageMs = now - this.readAt
    return {
      bestDay,
      inDay: (ageMs < dayMs ? inDay : 0) + since,
      inHour: (ageMs < hourMs ? inHour : 0) + since,
    }
  }
}
