import type { CountryCode } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { Random } from '../soak/random.ts'
import {
  dayMs,
  home,
  hourMs,
  lastFour,
  Numbers,
  randomIp,
  randomMobile,
  randomPrefix,
  randomRange,
  type Site,
  spikeHour,
  Users,
  type Visit,
} from './traffic.ts'

// The attackers of the pumping simulation. An attacker uses the app's own form, and goes on after refusals.

export const variants = ['deny', 'tenth', 'clientIp', 'deviceId', 'budgets', 'record'] as const

/** `deny` without budgets, and the app reports nothing of the form's user; or with one difference. `tenth`: of the tries. */
export type Variant = (typeof variants)[number]

export interface Scenario {
  /** With `{large|small}` for what differs by site. */
  readonly name: string
  /** Default: `deny` alone. */
  readonly variants?: readonly Variant[]
  readonly attack?: Attack
  /** When the service is launched, without a history. Undefined: it has a history. */
  readonly launchHour?: number
  readonly hasSpike?: boolean
  readonly hasFault?: boolean
  /** False: the operator has no rules of destinations. */
  readonly hasRules?: boolean
  /** Without an attack. */
  readonly days?: number
}

type BySite = Readonly<Record<Site['name'], number>>

interface Attack {
  /** Of the first day. */
  readonly from: number
  readonly hours: number
  readonly perHour: BySite
  /** All tries of each such time are in its first five minutes. */
  readonly pulseHours?: number
  /** Numbers that verified a code once before the attack: those of the first tries. */
  readonly prepared?: BySite
  readonly tries: (ports: AttackPorts) => () => Try
}

interface AttackPorts {
  readonly random: Random
  readonly site: Site
  /** Of genuine users. */
  readonly users: Users
  readonly numbers: Numbers
}

interface Try {
  readonly country: CountryCode
  readonly phone: string
  readonly clientIp?: string
  readonly deviceId?: string
  readonly isOwn?: boolean
  /** Whether the code is entered. */
  readonly isVerified?: boolean
}

/** Expensive destinations that pay a share to the attacker. */
export const expensive: readonly CountryCode[] = ['AZ', 'UZ', 'TJ', 'MM', 'DZ', 'TN', 'NG', 'BD', 'LK', 'ID']

/** Of 40 countries, most of them without genuine users. */
const forty: readonly CountryCode[] = [
  ...expensive,
  ...(['AF', 'AL', 'AM', 'AO', 'BF', 'BJ', 'BO', 'BY', 'CD', 'CM', 'EC', 'EG', 'ET', 'GE', 'GH'] as const),
  ...(['GN', 'IQ', 'JO', 'KE', 'KG', 'KH', 'KZ', 'LA', 'MG', 'ML', 'MZ', 'NP', 'PK', 'TR', 'IT'] as const),
]

const everywhere = (Object.keys(examples) as CountryCode[]).filter((country) => country !== home)

const tenth = (large: number): BySite => ({ large, small: large / 10 })
const both = (each: number): BySite => ({ large: each, small: each })

const withClients: readonly Variant[] = ['deny', 'clientIp', 'deviceId']

export const scenarios: readonly Scenario[] = [
  {
    name: 'sequential numbers in one range',
    attack: { from: 10, hours: 3, perHour: tenth(3600), tries: sequential(['UZ']) },
  },
  {
    name: 'random numbers of ten expensive countries',
    variants: ['deny', 'tenth', 'budgets', 'record'],
    attack: { from: 10, hours: 3, perHour: tenth(3600), tries: randomNumbers(expensive) },
  },
  {
    name: 'slow drip: 2 an hour in each of {600|60} prefixes',
    variants: ['deny', 'tenth'],
    attack: { from: 8, hours: 12, perHour: tenth(1200), tries: inTurn(expensive, tenth(600)) },
  },
  {
    name: '{300|30} prefixes in 40 countries, 1 an hour each',
    attack: { from: 0, hours: 24, perHour: tenth(300), tries: inTurn(forty, tenth(300)) },
  },
  {
    name: 'botnet of 1,000 client IP addresses',
    variants: ['deny', 'tenth'],
    attack: { from: 10, hours: 4, perHour: tenth(3000), tries: botnet },
  },
  {
    name: 'during a launch',
    launchHour: spikeHour,
    hasSpike: true,
    attack: { from: 9.5, hours: 3, perHour: tenth(3600), tries: randomNumbers(expensive) },
  },
  {
    name: 'during a night',
    attack: { from: 1, hours: 4, perHour: tenth(3600), tries: randomNumbers(expensive) },
  },
  {
    name: '500 tries a day in ten countries',
    attack: { from: 0, hours: 24, perHour: both(500 / 24), tries: randomNumbers(expensive) },
  },
  {
    name: '200 tries a day in ten countries, 5 days',
    attack: { from: 0, hours: 120, perHour: both(200 / 24), tries: randomNumbers(expensive) },
  },
  {
    name: 'no country list: 3 numbers in each country, again and again',
    variants: ['deny', 'tenth', 'budgets'],
    hasRules: false,
    attack: { from: 0, hours: 24, perHour: both(3 * everywhere.length), tries: threeEverywhere },
  },
  {
    name: 'burst of 180 to a country with a rule',
    attack: { from: 10, hours: 0.5, perHour: both(360), tries: randomNumbers(['FR']) },
  },
  {
    name: 'burst of 180 to a country without a rule',
    attack: { from: 10, hours: 0.5, perHour: both(360), tries: randomNumbers(['IT']) },
  },
  {
    name: '{100|10} own numbers in ten countries, 9 an hour each',
    attack: ownNumbers(expensive, tenth(100), 9),
  },
  {
    name: '{60|5} own home numbers, 9 an hour each',
    variants: withClients,
    attack: ownNumbers([home], { large: 60, small: 5 }, 9),
  },
  {
    name: '{60|5} own home numbers, 1 an hour each',
    attack: ownNumbers([home], { large: 60, small: 5 }, 1),
  },
  {
    name: 'verifies 10 % of its codes, each number once',
    attack: { from: 10, hours: 3, perHour: tenth(3600), tries: verifying(0.1) },
  },
  {
    name: 'verifies 40 % of its codes, each number once',
    attack: { from: 10, hours: 3, perHour: tenth(1000), tries: verifying(0.4) },
  },
  {
    name: 'verifies 40 % of its codes with {50|5} own numbers',
    attack: { from: 10, hours: 3, perHour: tenth(1000), tries: verifying(0.4, tenth(50)) },
  },
  {
    name: 'random home numbers, 3 hours',
    attack: { from: 10, hours: 3, perHour: tenth(3600), tries: homeNumbers },
  },
  {
    name: 'random home numbers, {1,000|100} an hour, a day',
    variants: ['tenth', ...withClients, 'budgets'],
    attack: { from: 0, hours: 24, perHour: tenth(1000), tries: homeNumbers },
  },
  {
    name: 'six codes to each home prefix',
    variants: withClients,
    attack: { from: 8, hours: 12, perHour: tenth(1000), tries: homePrefixes },
  },
  {
    name: 'home numbers behind IP addresses of genuine users',
    variants: withClients,
    attack: { from: 0, hours: 24, perHour: tenth(200), tries: behindSharedIps([home]) },
  },
  {
    name: 'ten countries behind IP addresses of genuine users',
    variants: withClients,
    attack: { from: 0, hours: 24, perHour: tenth(200), tries: behindSharedIps(expensive) },
  },
  {
    name: 'sequential numbers in one home range',
    variants: withClients,
    attack: { from: 10, hours: 3, perHour: tenth(1000), tries: sequential([home]) },
  },
  {
    name: '10 tries an hour in three countries with a rule',
    attack: { from: 0, hours: 24, perHour: both(10), tries: randomNumbers(['IE', 'FR', 'DE']) },
  },
  // Written after the thresholds were fixed.
  {
    name: 'pulses: 40 tries in five minutes, every two hours, in ten countries',
    attack: { from: 0, hours: 24, perHour: both(20), pulseHours: 2, tries: randomNumbers(expensive) },
  },
  {
    name: 'another country each hour, 60 tries in each',
    attack: { from: 0, hours: 24, perHour: both(60), tries: hourly(forty) },
  },
  { name: 'no attack, 5 days', variants: withClients, days: 5 },
  { name: 'no attack, launch', launchHour: spikeHour, hasSpike: true },
  {
    name: 'no attack, marketing spike',
    variants: [...withClients, 'budgets'],
    hasSpike: true,
  },
  { name: 'no attack, codes do not arrive for 2 hours', hasFault: true },
]

/** Days of genuine traffic before the attack. */
const historyDays = 3
/** After an attack. */
const calmMs = 13 * hourMs

/** All visits are ordered by time. */
interface Traffic {
  readonly history: readonly Visit[]
  readonly visits: readonly Visit[]
}

/** @param attackShare of the tries of the attack */
export function trafficOf(
  scenario: Scenario,
  site: Site,
  seed: number,
  startAtMs: number,
  attackShare = 1,
): Traffic {
  const { attack, launchHour, hasSpike = false, hasFault = false, days = 1 } = scenario
  const numbers = new Numbers(seed)
  const users = new Users(seed, numbers)
  const history = users.visits(site.usersPerDay, {
    atMs: startAtMs,
    count: launchHour === undefined ? historyDays : 0,
  })
  const dayAtMs = startAtMs + historyDays * dayMs
  const attacks = attack
    ? attackVisits(attack, dayAtMs, attackShare, { random: new Random(seed + 2), site, users, numbers })
    : []
  const attackAtMs = attacks.find(({ by }) => by === 'attacker')?.atMs ?? dayAtMs
  const endsAtMs = attack ? (attacks.at(-1)?.atMs ?? dayAtMs) + calmMs : dayAtMs + days * dayMs
  const lasting = { atMs: dayAtMs, count: (endsAtMs - dayAtMs) / dayMs, hasSpike, hasFault }
  const genuine = users.visits(site.usersPerDay, lasting)
  const countries = [...new Set(attacks.map(({ country }) => country))].filter((country) => country !== home)
  const { each, all } = site.attackedUsers
  const visitors = users.visitors(countries, Math.min(all, each * countries.length), {
    atMs: attackAtMs,
    count: (endsAtMs - attackAtMs) / dayMs,
  })
  const fromMs = dayAtMs + (launchHour ?? 0) * hourMs
  const visits = [...genuine, ...visitors, ...attacks].filter(({ atMs }) => atMs >= fromMs && atMs < endsAtMs)
  return { history, visits: visits.sort((a, b) => a.atMs - b.atMs) }
}

function attackVisits(
  { from, hours, perHour, pulseHours, prepared, tries }: Attack,
  dayAtMs: number,
  share: number,
  ports: AttackPorts,
) {
  const { random, site } = ports
  const nextTry = tries(ports)
  const perHourHere = perHour[site.name] * share
  const spacingMs = hourMs / perHourHere
  const visits = Array.from({ length: Math.round(hours * perHourHere) }, (_, index): Visit => {
    const { isOwn = false, isVerified = false, ...tried } = nextTry()
    return {
      clientIp: randomIp(random),
      deviceId: `attacker-${index}`,
      ...tried,
      atMs: dayAtMs + from * hourMs + Math.floor(pulsed((index + random.next()) * spacingMs, pulseHours)),
      by: 'attacker',
      isOwn,
      resendAfterMs: undefined,
      enterAfterMs: isVerified ? random.integer(5000, 30_000) : undefined,
      hasTypo: false,
    }
  })
  const preparations = visits.slice(0, prepared?.[site.name] ?? 0).map(
    (visit): Visit => ({
      ...visit,
      atMs: dayAtMs + Math.floor(random.next() * (from - 1) * hourMs),
      by: 'preparation',
      enterAfterMs: random.integer(5000, 30_000),
    }),
  )
  return [...preparations.sort((a, b) => a.atMs - b.atMs), ...visits]
}

function pulsed(ms: number, pulseHours: number | undefined): number {
  if (pulseHours === undefined) return ms
  const periodMs = pulseHours * hourMs
  const withinMs = ms % periodMs
  return ms - withinMs + (withinMs / periodMs) * 300_000
}

function hourly(countries: readonly CountryCode[]) {
  return ({ random }: AttackPorts) => {
    let index = 0
    return (): Try => {
      const country = countries[Math.floor(index++ / 60) % countries.length] ?? home
      return { country, phone: randomMobile(random, country) }
    }
  }
}

function sequential(countries: readonly CountryCode[]) {
  return ({ random }: AttackPorts) => {
    const next = new Map(countries.map((country) => [country, randomRange(random, country)]))
    return (): Try => {
      const country = random.of(countries)
      const phone = next.get(country) ?? 0
      next.set(country, phone + 1)
      return { country, phone: String(phone) }
    }
  }
}

function randomNumbers(countries: readonly CountryCode[]) {
  return ({ random }: AttackPorts) => {
    const numbers = new Numbers(random.integer(0, 1e6))
    return (): Try => {
      const country = random.of(countries)
      return { country, phone: numbers.mobile(random, country, 1000) }
    }
  }
}

/** One prefix after the other, again and again. */
function inTurn(countries: readonly CountryCode[], count: BySite) {
  return ({ random, site }: AttackPorts) => {
    const prefixes = Array.from({ length: count[site.name] }, (_, index) => {
      const country = countries[index % countries.length] ?? home
      return { country, prefix: randomPrefix(random, country) }
    })
    let index = 0
    return (): Try => {
      const { country = home, prefix = '' } = prefixes[index++ % prefixes.length] ?? {}
      return { country, phone: prefix + lastFour(random) }
    }
  }
}

/** Each client IP address and device sends to numbers of one country only. */
function botnet(ports: AttackPorts) {
  const { random } = ports
  const numbers = new Numbers(random.integer(0, 1e6))
  const bots = Array.from({ length: 1000 }, (_, index) => {
    return { country: random.of(expensive), clientIp: randomIp(random), deviceId: `bot-${index}` }
  })
  return (): Try => {
    const bot = random.of(bots)
    return { ...bot, phone: numbers.mobile(random, bot.country, 1000) }
  }
}

function threeEverywhere({ random }: AttackPorts) {
  const numbers = everywhere.flatMap((country) =>
    Array.from({ length: 3 }, () => ({ country, phone: randomMobile(random, country) })),
  )
  let index = 0
  return (): Try => numbers[index++ % numbers.length] ?? random.of(numbers)
}

/** Each number verified one code before. */
function ownNumbers(countries: readonly CountryCode[], count: BySite, perHourEach: number): Attack {
  return {
    from: 6,
    hours: 24,
    perHour: { large: count.large * perHourEach, small: count.small * perHourEach },
    prepared: count,
    tries({ random, site }) {
      const own = Array.from({ length: count[site.name] }, (_, index): Try => {
        const country = countries[index % countries.length] ?? home
        return { country, phone: randomMobile(random, country), isOwn: true }
      })
      let index = 0
      return () => own[index++ % own.length] ?? random.of(own)
    },
  }
}

/** @param count of own numbers, which are used in turn; undefined: each is used once */
function verifying(share: number, count?: BySite) {
  return (ports: AttackPorts) => {
    const { random, site } = ports
    const nextVictim = randomNumbers(expensive)(ports)
    const create = (): Try => {
      const country = random.of(expensive)
      return { country, phone: randomMobile(random, country), isOwn: true, isVerified: true }
    }
    const pool = Array.from({ length: count?.[site.name] ?? 0 }, create)
    let index = 0
    return (): Try => {
      if (!random.chance(share)) return nextVictim()
      return pool.length === 0 ? create() : (pool[index++ % pool.length] ?? create())
    }
  }
}

function homeNumbers({ random, numbers }: AttackPorts) {
  return (): Try => ({
    country: home,
    phone: numbers.homePrefix(random.integer(0, 1e6)) + lastFour(random),
  })
}

/** So that the guard blocks as many as possible. */
function homePrefixes({ random, numbers }: AttackPorts) {
  let index = 0
  return (): Try => ({
    country: home,
    phone: numbers.homePrefix(Math.floor(index++ / 6)) + lastFour(random),
  })
}

function behindSharedIps(countries: readonly CountryCode[]) {
  return (ports: AttackPorts) => {
    const { random, users } = ports
    const nextTry = countries.includes(home) ? homeNumbers(ports) : randomNumbers(countries)(ports)
    return (): Try => ({ ...nextTry(), clientIp: random.of(users.sharedIps) })
  }
}
