import { type EpochMs, minuteMs } from '../ground/time.ts'
import { type BucketRow, unverifiedAt } from './bucket.ts'
import type { CountryCodes, GuardCount, GuardTotals } from './counts.ts'
import type { GuardMode } from './guard.ts'
import type { GuardPrefix } from './store.ts'

/** A country to which codes were recorded, or denied for a bucket of a country or IP address, in the last hour. */
export interface PumpingStatus extends CountryCodes, GuardTotals {
  /** Codes of the last 2 minutes that were sent although the guard would have denied them. */
  readonly recordedLately: number
  readonly deniedLately: number
  /** Codes of the last hour, and of the last 2 minutes, that a budget rejected. */
  readonly stopped: number
  readonly stoppedLately: number
  /** Whether an operator blocks a prefix of the country, perhaps another one. */
  readonly hasBlock: boolean
  /** Of the codes that were denied or recorded, most first. Empty: they have only the country in common. */
  readonly prefixes: readonly PumpedPrefix[]
  /** That requested the denied and recorded codes, most first. */
  readonly apps: readonly PumpingApp[]
}

export interface PumpedPrefix {
  /** With `+`. */
  readonly prefix: string
  /** From 0 to 1, of the codes to the country; older codes count less. */
  readonly share: number
  /** By an operator. */
  readonly isBlocked: boolean
}

interface PumpingApp {
  readonly app: string
  readonly brand: string
  readonly codes: number
}

/**
 * Most codes first.
 * @param input.counts of the last hour
 * @param input.recent of the last 2 minutes
 * @param input.codes of the last hour
 * @param input.flagged rows of this kind that changed in the last hour
 * @param input.prefixes entries in force
 * @param input.countryOfPrefix null: none, or several
 */
export function pumpingStatuses(
  input: {
    readonly counts: readonly GuardCount[]
    readonly recent: readonly GuardCount[]
    readonly codes: readonly CountryCodes[]
    readonly flagged: readonly BucketRow[]
    readonly prefixes: readonly GuardPrefix[]
    countryOfPrefix(prefix: string): string | null
  },
  now: EpochMs,
  isOfAttack = isOfCountry,
): readonly PumpingStatus[] {
  const { counts, recent, codes, flagged, prefixes, countryOfPrefix } = input
  const pumped = new Set(counts.filter(isOfAttack).map(({ country }) => country))
  const weights = new Map<string, Map<string, number>>()
  for (const row of flagged) {
    const country = countryOfPrefix(row.key) ?? ''
    const ofCountry = weights.get(country) ?? new Map<string, number>()
    ofCountry.set(row.key, (ofCountry.get(row.key) ?? 0) + unverifiedAt(row, now))
    weights.set(country, ofCountry)
  }
  /** The shortest prefix of a country is the country. */
  const isNarrower = (prefix: string, country: string) =>
    countryOfPrefix(prefix) === country && countryOfPrefix(prefix.slice(0, -1)) === country
  const isBlocked = (prefix: string) =>
    prefixes.some(
      (entry) => entry.by === 'operator' && entry.action === 'block' && prefix.startsWith(entry.prefix),
    )
  const hasBlock = (country: string) =>
    prefixes.some(
      ({ by, action, prefix }) =>
        by === 'operator' && action === 'block' && countryOfPrefix(prefix) === country,
    )
  const sumOf = (all: readonly GuardCount[], country: string, verdict: GuardCount['verdict']) =>
    all.reduce(
      (sum, each) => sum + (each.country === country && each.verdict === verdict ? each.count : 0),
      0,
    )
  return Array.from(pumped, (country): PumpingStatus => {
    const { sent = 0, verified = 0 } = codes.find((each) => each.country === country) ?? {}
    return {
      country,
      sent,
      verified,
      denied: sumOf(counts, country, 'denied'),
      recorded: sumOf(counts, country, 'recorded'),
      recordedLately: sumOf(recent, country, 'recorded'),
      deniedLately: sumOf(recent, country, 'denied'),
      stopped: sumOf(counts, country, 'budget'),
      stoppedLately: sumOf(recent, country, 'budget'),
      hasBlock: hasBlock(country),
      prefixes: commonPrefixes(weights.get(country) ?? new Map())
        .filter(({ prefix }) => isNarrower(prefix, country))
        .map(({ prefix, share }) => ({ prefix: `+${prefix}`, share, isBlocked: isBlocked(prefix) })),
      apps: appsOf(counts.filter((each) => each.country === country)),
    }
  }).sort((one, other) => foundCodes(other) - foundCodes(one))
}

function foundCodes({ recorded, denied, stopped }: PumpingStatus): number {
  return recorded + denied + stopped
}

/** Whether the count is of an attack that one blocked prefix does not stop. */
function isOfCountry({ bucket, verdict }: GuardCount): boolean {
  return verdict !== 'denied' || (bucket !== 'prefix' && bucket !== 'blocked-prefix')
}

/** Whether such codes are still sent, as far as the counts of the last minutes and the blocks say. */
export function isStillSent({ recordedLately, prefixes }: PumpingStatus): boolean {
  return recordedLately > 0 && !isBlockedByOperator({ prefixes })
}

/**
 * `sent`: as `isStillSent`. `blocked`: by operators. `denied`: by the guard, or by a block of some of the prefixes.
 * `stopped`: by a budget, and by nothing else. `unblocked`: in the last 2 minutes codes were denied, and no block is in force now. `none`: in the last 2 minutes.
 */
export type PumpingState = 'sent' | 'stopped' | 'blocked' | 'denied' | 'unblocked' | 'none'

export function pumpingState(status: PumpingStatus, mode: GuardMode): PumpingState {
  const { recorded, stopped, deniedLately, hasBlock, prefixes } = status
  if (isBlockedByOperator(status)) return 'blocked'
  if (isStillSent(status)) return 'sent'
  if (status.stoppedLately > 0) return 'stopped'
  if (mode === 'deny') return deniedLately > 0 || recorded + stopped === 0 ? 'denied' : 'none'
  if (deniedLately === 0) return 'none'
  return hasBlock || prefixes.some(({ isBlocked }) => isBlocked) ? 'denied' : 'unblocked'
}

/** Codes a minute that the guard finds now. The counts have the last whole minute and the current one. */
export function pumpingRate(
  { recordedLately, deniedLately, stoppedLately }: PumpingStatus,
  now: EpochMs,
): number {
  return Math.round((recordedLately + deniedLately + stoppedLately) / (1 + (now % minuteMs) / minuteMs))
}

/** Whether operators block the prefixes of most codes. */
export function isBlockedByOperator({ prefixes }: Pick<PumpingStatus, 'prefixes'>): boolean {
  const blocked = prefixes.filter(({ isBlocked }) => isBlocked)
  return blocked.reduce((sum, { share }) => sum + share, 0) >= mostlyShare
}

function appsOf(counts: readonly GuardCount[]): PumpingApp[] {
  const apps = new Map<string, PumpingApp>()
  for (const { app, brand, count } of counts) {
    const key = `${app} ${brand}`
    apps.set(key, { app, brand, codes: (apps.get(key)?.codes ?? 0) + count })
  }
  return [...apps.values()].sort((one, other) => other.codes - one.codes)
}

/** Each prefix has at least this share of the codes, so there are at most three. */
const leastShare = 0.3
/** Longer prefixes replace a shorter one if they have at least this share of its codes. */
const mostlyShare = 0.8

/** The longest prefixes that have most of the codes together. @param codes by prefix */
export function commonPrefixes(
  codes: ReadonlyMap<string, number>,
): readonly { readonly prefix: string; readonly share: number }[] {
  const total = [...codes.values()].reduce((sum, count) => sum + count, 0)
  if (total <= 0) return []
  const found: { prefix: string; share: number }[] = []
  const open = ['']
  for (let prefix = open.pop(); prefix !== undefined; prefix = open.pop()) {
    const { length } = prefix
    let own = 0
    const longer = new Map<string, number>()
    for (const [key, count] of codes) {
      if (!key.startsWith(prefix)) continue
      own += count
      const next = key.slice(0, length + 1)
      if (next !== prefix) longer.set(next, (longer.get(next) ?? 0) + count)
    }
    const large = [...longer].filter(([, count]) => count >= total * leastShare)
    const covered = large.reduce((sum, [, count]) => sum + count, 0)
    if (large.length > 0 && covered >= own * mostlyShare) open.push(...large.map(([next]) => next))
    else if (prefix !== '') found.push({ prefix, share: own / total })
  }
  return found.sort((one, other) => other.share - one.share)
}
