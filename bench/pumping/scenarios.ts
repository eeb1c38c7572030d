import { type CountryCode, getExampleNumber, parsePhoneNumberFromString } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { Random } from '../soak/random.ts'

// The traffic of the pumping simulation. All of it is decided by the seed before a run, so that each setting gets
// the same visits.

/** One use of the sign-in form: by a genuine user, or one try of the attacker. */
export interface Visit {
  readonly atMs: number
  readonly isAttack: boolean
  readonly country: CountryCode
  /** E.164 digits. */
  readonly phone: string
  /** Of the form's user, as the app reports it. */
  readonly clientIp: string
  /** After the first send. Undefined: no second code. */
  readonly resendAfterMs: number | undefined
  /** Undefined: the code is never entered. Greater than `resendAfterMs`. */
  readonly enterAfterMs: number | undefined
  /** Whether a wrong code is entered first. */
  readonly hasTypo: boolean
}

/** How much traffic there is. */
export interface Volume {
  readonly usersPerDay: number
  /** Days of genuine traffic before the simulated day. */
  readonly historyDays: number
  /** Multiplies the duration of each attack. */
  readonly attackShare: number
}

export interface Scenario {
  readonly name: string
  /** When the service is launched, without a history. Undefined: it has a history. */
  readonly launchHour?: number
  /** False: shows a limit of the guard. */
  readonly hasAim: boolean
  readonly attack: Attack
}

interface Attack {
  readonly startHour: number
  readonly hours: number
  readonly perHour: number
  /** The share of its codes that the attacker enters. */
  readonly verifies?: number
  /** Returns the numbers and client IP addresses, one for each try. */
  victims(random: Random): () => Victim
}

interface Victim {
  readonly country: CountryCode
  readonly phone: string
  readonly clientIp: string
}

const hourMs = 3_600_000
const dayMs = 86_400_000

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

/** Expensive destinations that pay a share to the attacker. */
const expensive: readonly CountryCode[] = ['AZ', 'UZ', 'TJ', 'MM', 'DZ', 'TN', 'NG', 'BD', 'LK', 'ID']

/** The marketing spike, which is also the first hour of a launch: ten times the traffic of the hour. */
const spikeHour = 9
const spikeFactor = 10

export const scenarios: readonly Scenario[] = [
  {
    name: 'sequential numbers in one range',
    hasAim: true,
    attack: { startHour: 10, hours: 3, perHour: 3600, victims: sequential(['UZ']) },
  },
  {
    name: 'random mobile numbers of ten expensive countries',
    hasAim: true,
    attack: { startHour: 10, hours: 3, perHour: 3600, victims: randomNumbers },
  },
  {
    name: 'slow drip: 2 an hour in each of 600 prefixes',
    hasAim: true,
    attack: { startHour: 8, hours: 12, perHour: 1200, victims: drip },
  },
  {
    name: 'botnet of 1,000 client IP addresses',
    hasAim: true,
    attack: { startHour: 10, hours: 4, perHour: 3000, victims: botnet },
  },
  {
    name: 'attacker that verifies 10 % of its codes',
    hasAim: true,
    attack: { startHour: 10, hours: 3, perHour: 3600, verifies: 0.1, victims: sequential(expensive) },
  },
  {
    name: 'during a launch',
    hasAim: true,
    launchHour: spikeHour,
    attack: { startHour: 9.5, hours: 3, perHour: 3600, victims: randomNumbers },
  },
  {
    name: 'during a night',
    hasAim: true,
    attack: { startHour: 1, hours: 4, perHour: 3600, victims: randomNumbers },
  },
  {
    name: 'random mobile numbers of the home country',
    hasAim: false,
    attack: { startHour: 10, hours: 3, perHour: 3600, victims: homeNumbers },
  },
]

/** All visits are ordered by time. */
export interface Traffic {
  readonly history: readonly Visit[]
  /** Of the simulated day, without an attack. */
  readonly genuine: readonly Visit[]
  /** Of the simulated day. */
  dayOf(scenario: Scenario): readonly Visit[]
}

export function trafficOf(seed: number, startAtMs: number, volume: Volume): Traffic {
  const numbers = new Numbers(new Random(seed))
  const users = new Users(new Random(seed + 1), numbers)
  const days = Array.from({ length: volume.historyDays }, (_, day) =>
    users.day(startAtMs + day * dayMs, volume.usersPerDay, false),
  )
  const dayAtMs = startAtMs + volume.historyDays * dayMs
  const genuine = users.day(dayAtMs, volume.usersPerDay, true)
  return {
    history: days.flat(),
    genuine,
    dayOf(scenario) {
      const launchAtMs = dayAtMs + (scenario.launchHour ?? 0) * hourMs
      const random = new Random(seed + 2 + scenarios.indexOf(scenario))
      const attack = attackVisits(scenario.attack, dayAtMs, random, volume.attackShare)
      return [...genuine.filter(({ atMs }) => atMs >= launchAtMs), ...attack].sort((a, b) => a.atMs - b.atMs)
    },
  }
}

/** Relative traffic by hour of the day. */
const byHour = [
  0.3, 0.2, 0.1, 0.1, 0.1, 0.2, 0.5, 1, 1.3, 1.4, 1.4, 1.4, 1.5, 1.4, 1.3, 1.3, 1.3, 1.4, 1.5, 1.6, 1.5, 1.2,
  0.8, 0.5,
]
const wholeDay = byHour.reduce((sum, weight) => sum + weight, 0)

interface User {
  readonly country: CountryCode
  readonly phone: string
  lastAtMs: number
}

/** Genuine users: new ones and those that verified a number before. */
class Users {
  private readonly verified: User[] = []
  private readonly sharedIps: readonly string[]

  constructor(
    private readonly random: Random,
    private readonly numbers: Numbers,
  ) {
    this.sharedIps = Array.from({ length: 40 }, () => randomIp(random))
  }

  /** The visits of one day, oldest first. */
  day(atMs: number, users: number, hasSpike: boolean): Visit[] {
    const times = byHour.flatMap((weight, hour) => {
      const count = Math.round(
        ((users * weight) / wholeDay) * (hasSpike && hour === spikeHour ? spikeFactor : 1),
      )
      return Array.from({ length: count }, () => atMs + Math.floor((hour + this.random.next()) * hourMs))
    })
    return times.sort((a, b) => a - b).map((time) => this.visit(time))
  }

  private visit(atMs: number): Visit {
    const { random } = this
    const known = this.returning(atMs)
    const { country, phone } = known ?? this.newcomer()
    if (known) known.lastAtMs = atMs
    const isHome = country === home
    const converts = random.chance(isHome ? 0.92 : conversionAbroad(country))
    const resends = random.chance(converts ? 0.06 : 0.4)
    const resendAfterMs = resends ? random.integer(35_000, 60_000) : undefined
    const readMs = Math.min(120_000, Math.max(5000, 15_000 * Math.exp(0.6 * normal(random))))
    const enterAfterMs = converts ? Math.round((resendAfterMs ?? 0) + readMs) : undefined
    if (converts && !known) this.verified.push({ country, phone, lastAtMs: atMs })
    const clientIp = random.chance(0.15) ? random.of(this.sharedIps) : randomIp(random)
    const hasTypo = random.chance(0.03)
    return { atMs, isAttack: false, country, phone, clientIp, resendAfterMs, enterAfterMs, hasTypo }
  }

  /** Half of the users have an account, once there are some. */
  private returning(atMs: number): User | undefined {
    if (this.verified.length === 0 || !this.random.chance(0.5)) return undefined
    const user = this.random.of(this.verified)
    // A phone with two visits in an hour could exhaust its own limits.
    return user.lastAtMs + hourMs > atMs ? undefined : user
  }

  private newcomer(): Pick<User, 'country' | 'phone'> {
    const country = this.random.chance(0.04) ? this.random.weighted(abroad) : home
    return { country, phone: this.numbers.mobile(country, country === home ? homePrefixes : 200) }
  }
}

/** From 60 to 90 %, by country. */
function conversionAbroad(country: CountryCode): number {
  return 0.6 + (abroad.findIndex(([, each]) => each === country) % 11) * 0.03
}

function attackVisits(attack: Attack, dayAtMs: number, random: Random, share: number): Visit[] {
  const nextVictim = attack.victims(random)
  const spacingMs = hourMs / attack.perHour
  return Array.from({ length: Math.round(attack.hours * attack.perHour * share) }, (_, index) => {
    const atMs = dayAtMs + attack.startHour * hourMs + Math.floor((index + random.next()) * spacingMs)
    const enterAfterMs = random.chance(attack.verifies ?? 0) ? random.integer(5000, 30_000) : undefined
    return { ...nextVictim(), atMs, isAttack: true, resendAfterMs: undefined, enterAfterMs, hasTypo: false }
  })
}

/** One number after the other in a range of each country, each from another client IP address. */
function sequential(countries: readonly CountryCode[]) {
  return (random: Random) => {
    const numbers = new Numbers(random)
    const next = new Map(countries.map((country) => [country, numbers.range(country)]))
    return (): Victim => {
      const country = random.of(countries)
      const phone = next.get(country) ?? 0
      next.set(country, phone + 1)
      return { country, phone: String(phone), clientIp: randomIp(random) }
    }
  }
}

function randomNumbers(random: Random): () => Victim {
  const numbers = new Numbers(random)
  return () => {
    const country = random.of(expensive)
    return { country, phone: numbers.mobile(country, 1000), clientIp: randomIp(random) }
  }
}

function homeNumbers(random: Random): () => Victim {
  const numbers = new Numbers(random)
  return () => ({
    country: home,
    phone: numbers.mobile(home, homePrefixes),
    clientIp: randomIp(random),
  })
}

/** In turn through 600 prefixes, so that each gets 2 an hour. */
function drip(random: Random): () => Victim {
  const numbers = new Numbers(random)
  const prefixes: { readonly country: CountryCode; readonly prefix: string }[] = []
  let index = 0
  return () => {
    const country = expensive[index % expensive.length] ?? home
    const next = prefixes[index % 600] ?? { country, prefix: numbers.prefix(country) }
    prefixes[index % 600] = next
    index += 1
    return { country: next.country, phone: next.prefix + lastFour(random), clientIp: randomIp(random) }
  }
}

/** Each client IP address sends to numbers of one country only. */
function botnet(random: Random): () => Victim {
  const numbers = new Numbers(random)
  const bots = Array.from({ length: 1000 }, () => ({
    country: random.of(expensive),
    clientIp: randomIp(random),
  }))
  return () => {
    const { country, clientIp } = random.of(bots)
    return { country, phone: numbers.mobile(country, 1000), clientIp }
  }
}

/** Mobile numbers that are valid in their country. */
class Numbers {
  private readonly prefixes = new Map<CountryCode, Map<number, string>>()

  constructor(private readonly random: Random) {}

  /** @param count the number of prefixes that the numbers of this country have */
  mobile(country: CountryCode, count: number): string {
    const own = this.prefixes.get(country) ?? new Map<number, string>()
    this.prefixes.set(country, own)
    const index = this.random.integer(0, count - 1)
    const prefix = own.get(index) ?? this.prefix(country)
    own.set(index, prefix)
    return prefix + lastFour(this.random)
  }

  /** A mobile number without its last four digits. */
  prefix(country: CountryCode): string {
    const example = getExampleNumber(country, examples)
    if (!example) throw new Error(`no example of a mobile number in ${country}`)
    const { countryCallingCode, nationalNumber } = example
    const free = nationalNumber.length - 4
    for (;;) {
      const kept = nationalNumber.slice(0, this.random.integer(1, Math.min(3, free)))
      const digits = Array.from({ length: free - kept.length }, () => this.random.integer(0, 9)).join('')
      const prefix = countryCallingCode + kept + digits
      if (isMobile(`${prefix}0000`, country) && isMobile(`${prefix}9999`, country)) return prefix
    }
  }

  /** The first of at least 30,000 mobile numbers in sequence. */
  range(country: CountryCode): number {
    for (;;) {
      const first = Number(`${this.prefix(country)}0000`)
      if (isMobile(String(first + 29_999), country)) return first
    }
  }
}

function isMobile(digits: string, country: CountryCode): boolean {
  const number = parsePhoneNumberFromString(`+${digits}`)
  const type = number?.getType()
  return number?.country === country && (type === 'MOBILE' || type === 'FIXED_LINE_OR_MOBILE')
}

function lastFour(random: Random): string {
  return String(random.integer(0, 9999)).padStart(4, '0')
}

function randomIp(random: Random): string {
  return [random.integer(11, 99), ...Array.from({ length: 3 }, () => random.integer(1, 254))].join('.')
}

/** From the standard normal distribution (Box–Muller). */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
}
