import { countryRules } from '../delivery/destination.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { dayMs, type EpochMs } from '../ground/time.ts'
import type { GuardMode } from '../guard/guard.ts'
import {
  effectivePrefixes,
  type GuardStatus,
  guardStatus,
  type PumpingPorts,
  readPumping,
} from '../guard/status.ts'
import type { GuardPrefix } from '../guard/store.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { durationIn } from './fields.ts'

export type PrefixAction = GuardPrefix['action']

/** How long an entry lasts without `--for`. A block lasts as long as the guard's own. */
export const defaultDurations: Readonly<Record<PrefixAction, string>> = { allow: '24h', block: '12h' }

/**
 * `guard allow` and `guard block` (design D41). Replaces the operator's entry for the same prefix. Allowing also ends the guard's own
 * blocks of the prefix.
 * @param prefix as the operator entered it
 * @param duration such as `24h`
 * @throws OperatorError
 */
export async function setGuardPrefix(
  ports: PolicyPorts,
  action: PrefixAction,
  prefix: string,
  duration: string,
): Promise<GuardPrefix> {
  const digits = prefixDigits(prefix)
  const durationMs = durationIn(duration, 1)
  const now = ports.now()
  const { entered } = await ports.policy.change({ actor: ports.actor, now }, ({ prefixes }) => {
    const active = prefixes.filter(({ expiresAt }) => expiresAt > now)
    const before = active.find((entry) => entry.by === 'operator' && entry.prefix === digits)
    const lifted =
      action === 'allow'
        ? active.filter((entry) => entry.by === 'guard' && entry.prefix.startsWith(digits))
        : []
    const entered: GuardPrefix = {
      prefix: digits,
      by: 'operator',
      action,
      createdAt: now,
      expiresAt: now + durationMs,
    }
    return {
      entered,
      savePrefixes: [entered],
      removePrefixes: lifted,
      entry: {
        action: 'guard.set',
        target: `+${digits}`,
        details: {
          entry: `${entryWords(before)} → ${entryWords(entered)}`,
          ...(lifted.length > 0 && { "guard's blocks": `${lifted.length} → 0` }),
        },
      },
    }
  })
  return entered
}

/**
 * `guard remove`: ends the operator's entry for exactly this prefix, and the guard's own block of it.
 * @throws OperatorError if there is neither
 */
export async function removeGuardPrefix(ports: PolicyPorts, prefix: string): Promise<readonly GuardPrefix[]> {
  const digits = prefixDigits(prefix)
  const now = ports.now()
  const { removePrefixes } = await ports.policy.change({ actor: ports.actor, now }, ({ prefixes }) => {
    const removePrefixes = prefixes.filter((entry) => entry.prefix === digits && entry.expiresAt > now)
    if (removePrefixes.length === 0) {
      throw new OperatorError(`+${digits} is neither allowed nor blocked. See \`otpost guard status\`.`)
    }
    const details = removePrefixes.map((entry) => [
      entry.by === 'operator' ? 'entry' : "guard's block",
      `${entryWords(entry)} → -`,
    ])
    const entry = {
      action: 'guard.removed',
      target: `+${digits}`,
      details: Object.fromEntries(details),
    } as const
    return { removePrefixes, entry }
  })
  return removePrefixes
}

function prefixDigits(text: string): string {
  const digits = text.replace(/(?<=[0-9])[ -]/g, '').replace(/^\+/, '')
  if (/^[1-9][0-9]{0,14}$/.test(digits)) return digits
  throw new InvalidInput(
    'A prefix is "+" and 1 to 15 digits, beginning with the country code, such as +3712000. Spaces and hyphens between digits are ignored.',
  )
}

function entryWords(entry: GuardPrefix | undefined): string {
  return entry ? `${entry.action} until ${new Date(entry.expiresAt).toISOString()}` : '-'
}

/** The entry for a number: an operator's of the longest prefix, else the guard's own. */
export function guardEntryOf(
  digits: string,
  prefixes: readonly GuardPrefix[],
  now: EpochMs,
): GuardPrefix | undefined {
  const matching = effectivePrefixes(prefixes, now).filter(({ prefix }) => digits.startsWith(prefix))
  const byOperator = matching.filter(({ by }) => by === 'operator')
  // Sorted by prefix, so that the longest is last.
  return byOperator.at(-1) ?? matching.at(-1)
}

/** What the entry does with codes by SMS, as sentences. */
export function guardWords({ prefix, by, action, expiresAt }: GuardPrefix, mode: GuardMode): string {
  const until = new Date(expiresAt).toISOString().slice(0, 16).replace('T', ' ')
  const what = action === 'allow' ? 'allows' : 'blocks'
  const entry = `${by === 'guard' ? 'the guard itself' : 'an operator'} ${what} +${prefix} until ${until} UTC.`
  if (mode === 'off') return `The guard is off: ${entry}`
  if (action === 'allow') return `The guard does not check codes: ${entry}`
  if (by === 'guard' && mode === 'record') return `The guard records codes, which are sent: ${entry}`
  return `The guard denies codes, except to numbers that verified one in the last 180 days: ${entry}`
}

export interface GuardSettings {
  readonly mode: GuardMode
  readonly smsCountries: readonly string[]
}

export interface GuardStatusPorts extends Pick<PolicyPorts, 'policy' | 'now'>, PumpingPorts {}

/** `guard status`. */
export async function readGuardStatus(
  { guard, policy, now, countryOfPrefix }: GuardStatusPorts,
  { mode, smsCountries }: GuardSettings,
): Promise<GuardStatus> {
  const at = now()
  const [{ rules }, prefixes, rows, history, countries, lastHour, lastDay] = await Promise.all([
    policy.rows(),
    guard.prefixes(),
    guard.bucketsSince(at - 2 * dayMs, ''),
    guard.verifiedHistory(),
    guard.countries(at),
    guard.guardCounts('hour', at),
    guard.guardCounts('day', at),
  ])
  const all = [...countryRules(smsCountries), ...rules].filter(({ brandSlug }) => brandSlug === null)
  const actions = new Map(all.map(({ rule, action }) => [rule, action]))
  const isAllowedCountry = (country: string) => actions.get(country) === 'allow'
  const counts = { lastHour, lastDay }
  const pumping = await readPumping({ guard, countryOfPrefix }, prefixes, lastHour, at)
  const input = {
    mode,
    prefixes,
    rows,
    history,
    pumping,
    countries,
    counts,
    isAllowedCountry,
    countryOfPrefix,
  }
  return guardStatus(input, at)
}
