import { countryRules, type Numbers } from '../delivery/destination.ts'
import { advice, see } from '../ground/advice.ts'
import type { AuditRecord } from '../ground/audit.ts'
import { counted, utc } from '../ground/format.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { dayMs, type EpochMs } from '../ground/time.ts'
import type { CountryCodes } from '../guard/counts.ts'
import type { GuardMode } from '../guard/guard.ts'
import { endWords, type ModeInForce, modeInForce, modeWords, type StoredMode } from '../guard/mode.ts'
import {
  effectivePrefixes,
  type GuardStatus,
  guardStatus,
  type PumpingPorts,
  readPumping,
} from '../guard/status.ts'
import type { GuardPrefix } from '../guard/store.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { action, type Group } from './action.ts'
import { durationIn, field, oneOf, optional } from './fields.ts'

type PrefixAction = GuardPrefix['action']

export interface GuardChangePorts extends PolicyPorts, Pick<Numbers, 'countryOfPrefix' | 'countriesWithin'> {
  /** GUARD, the mode until a server has stored it. */
  readonly guardMode: () => Promise<GuardMode>
  readonly countriesOfCodes: () => Promise<readonly CountryCodes[]>
}

export const guardGroup: Group = {
  name: 'guard',
  does: 'see what the SMS pumping guard does, change its mode, and allow or block number ranges',
  entries: 'the guard',
  target: 'prefix, or mode',
}

/** At the start of a server. Later changes of GUARD change nothing. */
export async function storeFirstMode({ policy, now, actor }: PolicyPorts, first: GuardMode): Promise<void> {
  if ((await policy.rows()).guardMode) return
  await policy.change({ actor, now: now() }, ({ guardMode }) => ({
    ...(guardMode === null && { saveGuardMode: { mode: first, temporary: null } }),
    entry: null,
  }))
}

/** Design D41. A mode with an end replaces another one with an end, and then the mode without an end applies again. */
export const guardModeSet = action(guardGroup, 'mode', {
  role: 'operator',
  isSensitive: ({ mode }) => mode !== 'deny',
  does: 'change the mode of the guard',
  fields: {
    mode: field(
      oneOf('mode', {
        deny: 'deny: do not send them',
        record: 'record: send them, and record that they would be denied',
        off: 'off: send them, and count nothing',
      }),
      { label: 'Mode', help: 'what the guard does with codes that it finds too many', hint: '' },
    ),
    duration: optional((text) => durationIn(text, 1), {
      label: 'For',
      as: '--for <duration>',
      help: 'how long, such as 30m, 12h or 7d; at most 366d. Then the previous mode applies again',
      hint: 'Such as `30m`, `12h` or `7d`. Then the former mode applies again. Empty: without an end.',
    }),
  },
  audit: { 'guard.mode': 'Guard mode set' },
  form: { path: 'guard/mode' },
  run: async (ports: GuardChangePorts, { mode, duration }) => {
    const first = await ports.guardMode()
    const now = ports.now()
    const { saveGuardMode } = await ports.policy.change({ actor: ports.actor, now }, ({ guardMode }) => {
      const before = modeInForce(guardMode, first, now)
      const saveGuardMode: StoredMode =
        duration === undefined
          ? { mode, temporary: null }
          : { mode: before.next ?? before.mode, temporary: { mode, since: now, until: now + duration } }
      const after = modeInForce(saveGuardMode, first, now)
      const [was, is] = [modeEntry(before), modeEntry(after)]
      const details = { mode: `${was} → ${is}` }
      return { saveGuardMode, entry: was === is ? null : { action: 'guard.mode', target: mode, details } }
    })
    return modeInForce(saveGuardMode, first, now)
  },
  said: (inForce) => `The mode of the guard is ${inForce.mode}${endWords(inForce)}.`,
})

function modeEntry({ mode, until }: ModeInForce): string {
  return until === null ? mode : `${mode} until ${utc(until)}`
}

/** @param changes records of `guard.mode`, oldest first @param current after them */
export function modeAt(
  changes: readonly Pick<AuditRecord, 'at' | 'target' | 'details'>[],
  current: GuardMode,
  at: EpochMs,
): GuardMode {
  const hasEnded = ({ details: { mode = '' } }: (typeof changes)[number]) =>
    Date.parse(/ until ([^→]*)$/.exec(mode)?.[1] ?? '') <= at
  const latest = changes.findLast((change) => change.at <= at && !hasEnded(change))
  const name = latest?.target ?? changes[0]?.details.mode?.split(' ')[0]
  return Object.keys(modeWords).find((mode): mode is GuardMode => mode === name) ?? current
}

const prefixField = field(prefixDigits, {
  label: 'Prefix',
  help: 'the first digits with the country code, such as +3712000',
  hint: 'The first 1 to 15 digits of the numbers, with the country code.',
  placeholder: '+3712000',
})

export const guardAllow = prefixAction(
  'allow',
  'send codes to these numbers without counting them in the guard',
)
export const guardBlock = prefixAction('block', 'deny codes to these numbers, also in mode record')

/**
 * Design D41. Replaces the operator's entry for the same prefix. Allowing also ends the guard's own blocks of the prefix. A block lasts as
 * long as the guard's own.
 */
function prefixAction(verb: PrefixAction, does: string) {
  const what = verb === 'allow' ? 'allowed' : 'blocked'
  const isBlock = verb === 'block'
  return action(guardGroup, verb, {
    role: 'operator',
    isSensitive: !isBlock,
    does,
    fields: {
      prefix: prefixField,
      duration: field((text) => durationIn(text, 1), {
        label: 'For',
        as: '--for <duration>',
        help: 'how long, such as 30m, 12h or 7d; at most 366d',
        hint: 'Such as `30m`, `12h` or `7d`, at most `366d`. Empty: 12 h for block, 24 h for allow.',
        byDefault: isBlock ? '12h' : '24h',
      }),
    },
    audit: { 'guard.set': 'Guard prefix set' },
    form: { path: 'guard' },
    run: async (ports: GuardChangePorts, { prefix, duration }) => {
      const first = await ports.guardMode()
      const now = ports.now()
      const entered: GuardPrefix = {
        prefix,
        by: 'operator',
        action: verb,
        createdAt: now,
        expiresAt: now + duration,
      }
      const { mode } = await ports.policy.change({ actor: ports.actor, now }, ({ prefixes, guardMode }) => {
        const active = prefixes.filter(({ expiresAt }) => expiresAt > now)
        const before = active.find((entry) => entry.by === 'operator' && entry.prefix === prefix)
        const lifted = isBlock
          ? []
          : active.filter((entry) => entry.by === 'guard' && entry.prefix.startsWith(prefix))
        return {
          mode: modeInForce(guardMode, first, now).mode,
          savePrefixes: [entered],
          removePrefixes: lifted,
          entry: {
            action: 'guard.set',
            target: `+${prefix}`,
            details: {
              entry: `${entryWords(before)} → ${entryWords(entered)}`,
              ...(lifted.length > 0 && { "guard's blocks": `${lifted.length} → 0` }),
            },
          },
        }
      })
      return { ...entered, mode, country: ports.countryOfPrefix(prefix) }
    },
    said: ({ mode, ...entered }) => ({
      text: `${placeOf(entered)} is ${what} until ${utc(entered.expiresAt)}.`,
      warnings:
        mode === 'off' ? [{ text: 'The guard is off, so the entry has no effect.', advice: turnOn }] : [],
    }),
    foretells: async (ports, entered) => {
      const whole = ports.countriesWithin(entered.prefix)
      const country = entered.country === null ? [] : [entered.country]
      return [
        `${placeOf(entered)} would be ${what} until ${utc(entered.expiresAt)}.`,
        ...(whole.length > 0 ? [covered(entered.prefix, whole)] : []),
        codesTo(await ports.countriesOfCodes(), whole.length > 0 ? whole : country),
      ]
    },
    ...(isBlock && {
      asks: async (ports: GuardChangePorts, { prefix }: { readonly prefix: string }) => {
        const whole = ports.countriesWithin(prefix)
        if (whole.length === 0) return undefined
        return { warning: `${covered(prefix, whole)} They would get no code.`, cutsOffMany: true }
      },
    }),
  })
}

const turnOn = advice`To turn it on, use ${see('guard mode', { mode: 'deny' })}.`

function placeOf({ prefix, country }: { readonly prefix: string; readonly country: string | null }): string {
  return `+${prefix}${country === null ? '' : ` (${country})`}`
}

function covered(prefix: string, whole: readonly string[]): string {
  return `+${prefix} covers every number of ${counted(whole.length, 'country', 'countries')}: ${whole.join(', ')}.`
}

/** What went to the countries in the last 24 hours. Empty: no country is known. */
function codesTo(codes: readonly CountryCodes[], countries: readonly string[]): string {
  if (countries.length === 0) return 'The digits do not decide which country the numbers are in.'
  const found = codes.filter(({ country }) => countries.includes(country))
  const sum = (what: 'sent' | 'verified') => found.reduce((total, each) => total + each[what], 0)
  const place = countries.length === 1 ? countries[0] : 'these countries'
  return `Codes by SMS to ${place} in the last 24 hours: ${sum('sent')} sent, ${sum('verified')} verified.`
}

/** Ends the operator's entry for exactly this prefix, and the guard's own block of it. */
export const guardRemove = action(guardGroup, 'remove', {
  role: 'operator',
  isSensitive: true,
  does: 'end the allow or block of a prefix, also one of the guard itself',
  fields: { prefix: prefixField },
  audit: { 'guard.removed': 'Guard prefix removed' },
  form: { path: 'guard/remove' },
  run: async (ports: PolicyPorts, { prefix }) => {
    const now = ports.now()
    const { removePrefixes } = await ports.policy.change({ actor: ports.actor, now }, ({ prefixes }) => {
      const removePrefixes = prefixes.filter((entry) => entry.prefix === prefix && entry.expiresAt > now)
      if (removePrefixes.length === 0) {
        throw new OperatorError(
          `+${prefix} is neither allowed nor blocked.`,
          advice`See ${see('guard status')}.`,
        )
      }
      const details = removePrefixes.map((entry) => [
        entry.by === 'operator' ? 'entry' : "guard's block",
        `${entryWords(entry)} → -`,
      ])
      const entry = {
        action: 'guard.removed',
        target: `+${prefix}`,
        details: Object.fromEntries(details),
      }
      return { removePrefixes, entry }
    })
    return removePrefixes
  },
  said: (removed) =>
    removed.map(({ action, prefix, by }) => `Ended the ${action} of +${prefix} by the ${by}.`).join('\n'),
})

function prefixDigits(text: string): string {
  const digits = text.replace(/(?<=[0-9])[ -]/g, '').replace(/^\+/, '')
  if (/^[1-9][0-9]{0,14}$/.test(digits)) return digits
  throw new InvalidInput(
    'A prefix is "+" and 1 to 15 digits, beginning with the country code, such as +3712000. Spaces and hyphens between digits are ignored.',
  )
}

function entryWords(entry: GuardPrefix | undefined): string {
  return entry ? `${entry.action} until ${utc(entry.expiresAt)}` : '-'
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
  if (by === 'operator') return `The guard denies codes: ${entry}`
  return `The guard denies codes, except a few to numbers that verified one in the last 180 days: ${entry}`
}

interface GuardSettings {
  /** GUARD. */
  readonly guard: GuardMode
  readonly smsCountries: readonly string[]
}

export interface GuardStatusPorts extends Pick<PolicyPorts, 'policy' | 'now'>, PumpingPorts {}

/** `guard status`. */
export async function readGuardStatus(
  { guard, policy, now, countryOfPrefix }: GuardStatusPorts,
  { guard: first, smsCountries }: GuardSettings,
): Promise<GuardStatus> {
  const at = now()
  const [{ rules, guardMode }, prefixes, rows, history, countries, lastHour, lastDay] = await Promise.all([
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
    mode: modeInForce(guardMode, first, at),
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

export const guardActions = [guardModeSet, guardAllow, guardBlock, guardRemove]
