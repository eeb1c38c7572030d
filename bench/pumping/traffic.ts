import { type CountryCode, getExampleNumber } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { destinationOf } from '../../src/adapters/phone/destination.ts'
import { Random } from '../soak/random.ts'

// The genuine users of the pumping simulation, and the numbers of all. The seed decides all of it before a run.

/** One use of the sign-in form. */
export interface Visit {
  readonly atMs: number
  /** `known`: a genuine user who entered a code before. `preparation`: an attacker's, before the attack. */
  readonly by: 'newcomer' | 'known' | 'attacker' | 'preparation'
  readonly country: CountryCode
  /** E.164 digits. */
  readonly phone: string
  /** Whether the attacker can read SMS to it. */
  readonly isOwn: boolean
  /** Of the form's user, as the app reports them. */
  readonly clientIp: string
  readonly deviceId: string
  /** After the first send. Undefined: no second code. */
  readonly resendAfterMs: number | undefined
  /** Undefined: the code is never entered. Greater than `resendAfterMs`. */
  readonly enterAfterMs: number | undefined
  /** Whether a wrong code is entered first. */
  readonly hasTypo: boolean
}

/** A service that is attacked. */
export interface Site {
  readonly name: 'large' | 'small'
  readonly usersPerDay: number
  /** New genuine users a day in each attacked foreign country, and in all of them. */
  readonly attackedUsers: { readonly each: number; readonly all: number }
}

export const sites: readonly Site[] = [
  { name: 'large', usersPerDay: 4000, attackedUsers: { each: 4, all: 24 } },
  { name: 'small', usersPerDay: 400, attackedUsers: { each: 2, all: 8 } },
]

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

export const home: CountryCode = 'GB'
const homePrefixes = 3000

const frequentAbroad: readonly CountryCode[] = ['IE', 'FR', 'DE', 'ES', 'US', 'PL', 'IN']

/** The countries of the operator's rules. */
export const allowed: readonly CountryCode[] = [home, ...frequentAbroad]

/** Where roaming and foreign users have their numbers, by weight. */
const abroad: readonly (readonly [weight: number, country: CountryCode])[] = [
  ...frequentAbroad.map((country) => [6, country] as const),
  ...(['IT', 'NL', 'PT', 'RO', 'AU', 'CA', 'BE', 'SE', 'CH', 'GR'] as const).map(
    (country) => [3, country] as const,
  ),
  ...(['NO', 'DK', 'CZ', 'HU', 'TR', 'AE', 'ZA', 'PK', 'CN'] as const).map(
    (country) => [2, country] as const,
  ),
  // These are also attacked.
  ...(['NG', 'BD', 'LK', 'ID'] as const).map((country) => [1, country] as const),
]

/** Relative traffic by hour of the day. */
const byHour = [
  0.3, 0.2, 0.1, 0.1, 0.1, 0.2, 0.5, 1, 1.3, 1.4, 1.4, 1.4, 1.5, 1.4, 1.3, 1.3, 1.3, 1.4, 1.5, 1.6, 1.5, 1.2,
  0.8, 0.5,
]
const wholeDay = byHour.reduce((sum, weight) => sum + weight, 0)

/** Ten times the traffic of the hour, for a marketing spike and for the first hour of a launch. */
export const spikeHour = 9
const spikeFactor = 10

/** Codes are accepted by the provider and never arrive. */
const faultHours = { from: 10, to: 12 } as const

export interface Days {
  readonly atMs: number
  /** The last one may end early. */
  readonly count: number
  readonly hasSpike?: boolean
  readonly hasFault?: boolean
}

interface User {
  readonly country: CountryCode
  readonly phone: string
  readonly deviceId: string
  lastAtMs: number
}

/** Genuine users: new ones and those that entered a code before. */
export class Users {
  readonly sharedIps: readonly string[]
  private readonly random: Random
  private readonly entered: User[] = []
  private devices = 0

  constructor(
    private readonly seed: number,
    private readonly numbers: Numbers,
  ) {
    this.random = new Random(seed)
    this.sharedIps = Array.from({ length: 40 }, () => randomIp(this.random))
  }

  /** Their visits, oldest first. */
  visits(perDay: number, { atMs, count, hasSpike = false, hasFault = false }: Days): Visit[] {
    return hoursOf(count).flatMap((hour) => {
      const factor = hasSpike && hour === spikeHour ? spikeFactor : 1
      const users = (perDay * factor * (byHour[hour % 24] ?? 0)) / wholeDay
      const isFault = hasFault && hour >= faultHours.from && hour < faultHours.to
      const times = this.times(atMs + hour * hourMs, users)
      return times.map((time) => this.visit(time, this.returning(time), isFault))
    })
  }

  /** New users of some countries at any time of the days, oldest first. Other visits do not depend on them. */
  visitors(countries: readonly CountryCode[], perDay: number, { atMs, count }: Days): Visit[] {
    const users = new Users(this.seed + 1, this.numbers)
    const times = hoursOf(count).flatMap((hour) => users.times(atMs + hour * hourMs, perDay / 24))
    return times.map((time) => users.visit(time, users.newcomer(users.random.of(countries)), false))
  }

  /** In the hour. */
  private times(atMs: number, users: number): number[] {
    const { random } = this
    const whole = Math.floor(users) + (random.chance(users % 1) ? 1 : 0)
    const times = Array.from({ length: whole }, () => atMs + Math.floor(random.next() * hourMs))
    return times.sort((a, b) => a - b)
  }

  private visit(atMs: number, user: User, isFault: boolean): Visit {
    const { random } = this
    const { country, phone, deviceId } = user
    const isNew = user.lastAtMs === 0
    user.lastAtMs = atMs
    const converts = random.chance(country === home ? 0.92 : conversionAbroad(country)) && !isFault
    const resends = random.chance(isFault ? 0.8 : converts ? 0.06 : 0.4)
    const resendAfterMs = resends ? random.integer(35_000, 60_000) : undefined
    const readMs = Math.min(120_000, Math.max(5000, 15_000 * Math.exp(0.6 * normal(random))))
    const enterAfterMs = converts ? Math.round((resendAfterMs ?? 0) + readMs) : undefined
    if (converts && isNew) this.entered.push(user)
    return {
      atMs,
      by: isNew ? 'newcomer' : 'known',
      country,
      phone,
      isOwn: false,
      clientIp: random.chance(0.15) ? random.of(this.sharedIps) : randomIp(random),
      deviceId,
      resendAfterMs,
      enterAfterMs,
      hasTypo: random.chance(0.03),
    }
  }

  /** Half of the users have an account, once there are some. */
  private returning(atMs: number): User {
    const user = this.entered.length > 0 && this.random.chance(0.5) ? this.random.of(this.entered) : undefined
    // A phone with two visits in an hour could exhaust its own limits.
    return user && user.lastAtMs + hourMs <= atMs ? user : this.newcomer()
  }

  private newcomer(country = this.random.chance(0.04) ? this.random.weighted(abroad) : home): User {
    const phone = this.numbers.mobile(this.random, country, country === home ? homePrefixes : 200)
    return { country, phone, deviceId: `${this.seed}-${this.devices++}`, lastAtMs: 0 }
  }
}

function hoursOf(days: number): number[] {
  return Array.from({ length: Math.ceil(days * 24) }, (_, hour) => hour)
}

/** From 60 to 90 %, by country. */
function conversionAbroad(country: CountryCode): number {
  return 0.6 + ((country.charCodeAt(0) + country.charCodeAt(1)) % 11) * 0.03
}

/** Mobile numbers that are valid in their country. */
export class Numbers {
  private readonly prefixes = new Map<CountryCode, string[]>()

  constructor(private readonly seed: number) {}

  /** @param count the number of prefixes that its users have */
  mobile(random: Random, country: CountryCode, count: number): string {
    return this.prefix(country, random.integer(0, count - 1)) + lastFour(random)
  }

  homePrefix(index: number): string {
    return this.prefix(home, index % homePrefixes)
  }

  private prefix(country: CountryCode, index: number): string {
    const known = this.prefixes.get(country) ?? []
    this.prefixes.set(country, known)
    known[index] ??= randomPrefix(new Random(this.seed * 1e6 + index), country)
    return known[index]
  }
}

/** A mobile number without its last four digits. */
export function randomPrefix(random: Random, country: CountryCode): string {
  const { countryCallingCode, nationalNumber } = exampleOf(country)
  const free = nationalNumber.length - 4
  // Some countries have fewer numbers than a prefix.
  for (let tries = 0; tries < 1000; tries++) {
    const kept = nationalNumber.slice(0, random.integer(Math.min(2, free), Math.min(3, free)))
    const prefix = countryCallingCode + kept + digits(random, free - kept.length)
    if (isOf(country, `${prefix}0000`) && isOf(country, `${prefix}9999`)) return prefix
  }
  return countryCallingCode + nationalNumber.slice(0, -4)
}

/** The first of at least 30,000 mobile numbers in sequence. */
export function randomRange(random: Random, country: CountryCode): number {
  for (;;) {
    const first = Number(`${randomPrefix(random, country)}0000`)
    if (isOf(country, String(first + 29_999))) return first
  }
}

/** Also of a country with few numbers. */
export function randomMobile(random: Random, country: CountryCode): string {
  const { countryCallingCode, nationalNumber } = exampleOf(country)
  const kept = countryCallingCode + nationalNumber.slice(0, 3)
  for (let tries = 0; tries < 100; tries++) {
    const phone = kept + digits(random, nationalNumber.length - 3)
    if (isOf(country, phone)) return phone
  }
  return countryCallingCode + nationalNumber
}

function exampleOf(country: CountryCode) {
  const example = getExampleNumber(country, examples)
  if (!example) throw new Error(`no example of a mobile number in ${country}`)
  return example
}

function digits(random: Random, count: number): string {
  return Array.from({ length: count }, () => random.integer(0, 9)).join('')
}

function isOf(country: CountryCode, phone: string): boolean {
  const destination = destinationOf(phone)
  return destination.country === country && destination.kind === 'ordinary'
}

export function lastFour(random: Random): string {
  return digits(random, 4)
}

export function randomIp(random: Random): string {
  return [random.integer(11, 99), ...Array.from({ length: 3 }, () => random.integer(1, 254))].join('.')
}

/** From the standard normal distribution (Box–Muller). */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
}
