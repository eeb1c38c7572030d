import { countryName } from '../delivery/destination.ts'
import { advice, type Reference, see } from '../ground/advice.ts'
import { count, counted } from '../ground/format.ts'
import { type EpochMs, hourMs } from '../ground/time.ts'
import type { GuardCount } from '../guard/counts.ts'
import type { GuardMode } from '../guard/guard.ts'
import { type PumpingState, type PumpingStatus, pumpingState } from '../guard/pumping.ts'
import { effectivePrefixes, type PumpingPorts, readPumping } from '../guard/status.ts'
import type { GuardPrefix } from '../guard/store.ts'
import { unknownCountry } from '../guard/thresholds.ts'
import type { ConditionVerdict } from './conditions.ts'
import { bad, noHarm, type Problem, warn } from './problem.ts'

/** What the pumping guard warns about. Cheaper than its status. */
export interface GuardWarnings {
  readonly mode: GuardMode
  /** How many prefixes of each country the guard has blocked. */
  readonly blocked: ReadonlyMap<string | null, number>
  /** By operators. */
  readonly blocks: readonly BlockedPrefix[]
  readonly pumping: readonly PumpingStatus[]
}

export interface BlockedPrefix extends Pick<GuardPrefix, 'prefix' | 'createdAt' | 'expiresAt'> {
  readonly country: string | null
  /** Codes to the country that were denied in the last hour. */
  readonly denied: number
}

export async function readGuardWarnings(
  { guard, countryOfPrefix }: PumpingPorts,
  mode: GuardMode,
  now: EpochMs,
): Promise<GuardWarnings> {
  if (mode === 'off') return { mode, blocked: new Map(), blocks: [], pumping: [] }
  const [prefixes, counts] = await Promise.all([guard.prefixes(), guard.guardCounts('hour', now)])
  const all = effectivePrefixes(prefixes, now).filter(({ action }) => action === 'block')
  const blocked = new Map<string | null, number>()
  const blocks: BlockedPrefix[] = []
  for (const { prefix, by, createdAt, expiresAt } of all) {
    const country = countryOfPrefix(prefix)
    if (by === 'guard') blocked.set(country, (blocked.get(country) ?? 0) + 1)
    else blocks.push({ prefix, createdAt, expiresAt, country, denied: deniedTo(country, counts) })
  }
  const pumping = await readPumping({ guard, countryOfPrefix }, prefixes, counts, now)
  return { mode, blocked, blocks, pumping }
}

function deniedTo(country: string | null, counts: readonly GuardCount[]): number {
  return counts.reduce(
    (sum, each) => (each.verdict === 'denied' && each.country === country ? sum + each.count : sum),
    0,
  )
}

/** A country with fewer codes in an hour may have no attack. */
const manyUnverified = 20

const stateWords: Readonly<Record<PumpingState, string>> = {
  sent: 'Such codes are still sent until you block their prefix or country.',
  stopped: 'Only a budget stops such codes. Block their prefix or country before you lift the budget.',
  unblocked: 'Such codes were denied until a moment ago, and nothing blocks them now.',
  blocked: 'An operator blocked the prefix.',
  denied: 'Such codes are denied now.',
  none: 'In the last 2 minutes, the guard found none.',
}

/** In mode deny, codes of the last minutes may be from before the mode, or of a home country. */
function remedyWords(status: PumpingStatus, mode: GuardMode): string {
  const state = pumpingState(status, mode)
  return state === 'sent' && mode === 'deny'
    ? 'Some were sent in the last 2 minutes. The mode is deny now: the guard denies codes above its thresholds, and a block denies all.'
    : stateWords[state]
}

/** The codes of the last hour. */
function figuresOf({ sent, verified, denied, recorded, stopped }: PumpingStatus): string {
  const codes = Math.max(sent, recorded)
  const figures = [
    codes > 0 && `${counted(codes, 'code')} sent, ${verified === 0 ? 'none' : count(verified)} verified`,
    denied > 0 && `${counted(denied, 'code')} denied`,
    stopped > 0 && `${counted(stopped, 'code')} rejected by a budget`,
  ]
  return `in the last hour ${figures.filter(Boolean).join(', ')}`
}

/** What attacks a country: one sentence for doctor, the console and alerts. */
function attackWords(status: PumpingStatus): string {
  const { country, prefixes, apps } = status
  const numbers = prefixes.map(({ prefix }) => `${prefix}…`).join(', ')
  const place = `${placeOf(country)}${numbers === '' ? '' : ` (${numbers})`}`
  const named = apps.slice(0, 3).map(({ app, brand }) => `app ${app} of brand ${brand}`)
  const byApps = named.length === 0 ? '' : `; requested by ${named.join(', ')}`
  return `Possible SMS pumping to ${place}: ${figuresOf(status)}${byApps}.`
}

/** Whether codes of it are sent, or would be without a budget. */
function isOpenAttack(status: PumpingStatus, mode: GuardMode): boolean {
  const state = pumpingState(status, mode)
  return state === 'sent' || state === 'stopped' || state === 'unblocked'
}

function isLargeAttack(status: PumpingStatus, mode: GuardMode): boolean {
  const { sent, stopped, verified } = status
  const codes = sent + stopped
  return isOpenAttack(status, mode) && codes - verified >= manyUnverified && verified <= codes / 3
}

/** Of the countries with the most codes: what attacks, and whether it goes on. */
export function pumpingProblems({ pumping, mode }: GuardWarnings, now: EpochMs): Problem[] {
  return pumping.slice(0, 3).map((status): Problem => {
    const { country, recorded } = status
    const isBad = isLargeAttack(status, mode)
    const rows = { country: country === unknownCountry ? undefined : country, since: now - hourMs }
    const isDenied = pumpingState(status, mode) === 'denied' && status.denied >= manyUnverified
    const problem = (isBad ? bad : warn)(
      'guard',
      attackWords(status),
      remedyWords(status, mode),
      isBad ? blockOf(status) : see('guard status'),
      recorded > 0
        ? { list: 'deliveries', filters: { ...rows, channel: 'SMS' } }
        : { list: 'calls', filters: { ...rows, result: 'limited' } },
    )
    const title = `SMS pumping to ${placeOf(country)}`
    const ongoing =
      isBad || isDenied
        ? {
            ongoing: {
              title,
              detail: figuresOf(status),
              cost: { country },
              ...(status.denied + status.stopped === 0 && { harm: noHarm }),
              ...(isBad && { act: blockOf(status) }),
            },
          }
        : {}
    return { ...problem, about: `pumping ${country}`, ...ongoing }
  })
}

/** What stops the attack. */
export function blockOf({ prefixes }: PumpingStatus): Reference {
  const open = prefixes.find(({ isBlocked }) => !isBlocked)
  return see('guard block', open && { prefix: open.prefix })
}

export function largeAttack({ pumping, mode }: Pick<GuardWarnings, 'pumping' | 'mode'>) {
  return pumping.find((status) => isLargeAttack(status, mode))
}

/** What a lift of a budget would send. Undefined: no attack is known. */
export function liftWarning(warnings: Pick<GuardWarnings, 'pumping' | 'mode'>): string | undefined {
  const attack = largeAttack(warnings)
  return attack && `${attackWords(attack)} A lift sends such codes. Block their prefix or country first.`
}

export function guardProblems(warnings: GuardWarnings): Problem[] {
  const { mode, blocked, blocks, pumping } = warnings
  const texts: string[] = []
  const prefixes = [...blocked].sort(([, one], [, other]) => other - one)
  if (prefixes.length > 0) {
    const named = prefixes
      .slice(0, 3)
      .map(([country, total]) => `${counted(total, 'prefix', 'prefixes')} of ${placeOf(country)}`)
    const others = prefixes.slice(3).reduce((sum, [, total]) => sum + total, 0)
    const all = [...named, ...(others === 0 ? [] : [`${count(others)} of other countries`])].join(', ')
    texts.push(`The SMS pumping guard ${mode === 'record' ? 'would block' : 'blocks'} ${all}.`)
  }
  if (blocks.length > 0) texts.push(`Operators block ${counted(blocks.length, 'prefix', 'prefixes')}.`)
  return [
    ...texts.map((text) => warn('guard', text, '', see('guard status'))),
    ...(recordedCodes(pumping) > 0 ? modeProblems(warnings) : []),
  ]
}

function recordedCodes(pumping: readonly PumpingStatus[]): number {
  return pumping.reduce((sum, { recorded }) => sum + recorded, 0)
}

/** A mode that sends the codes of an attack. */
export function modeProblems({ mode, pumping }: Pick<GuardWarnings, 'mode' | 'pumping'>): Problem[] {
  if (mode === 'deny') return []
  const recorded = recordedCodes(pumping)
  const figure = recorded === 0 ? '' : `: ${counted(recorded, 'code')} in the last hour`
  const text =
    mode === 'off'
      ? 'The SMS pumping guard is off. It sends every code and counts nothing.'
      : `The mode of the SMS pumping guard is record. It sends the codes that it finds too many${figure}.`
  return [warn('guard', text, '', see('guard mode', { mode: 'deny' }))]
}

export function placeOf(country: string | null): string {
  return country === null || country === unknownCountry ? 'no country' : countryName(country)
}

/**
 * All countries share one condition, so that there is at most one alert in 10 minutes. It has ended after an hour without a recorded or
 * denied code. Codes that an operator's block denies are no news.
 */
export async function pumpingVerdicts(
  { guard, countryOfPrefix }: PumpingPorts,
  mode: GuardMode,
  now: EpochMs,
): Promise<readonly ConditionVerdict[]> {
  if (mode === 'off') return []
  const found = await guard.guardCounts('hour', now)
  if (found.length === 0) return [{ condition: pumpingCondition(), lasts: false }]
  const prefixes = await guard.prefixes()
  const blocked = effectivePrefixes(prefixes, now)
    .filter(({ by, action }) => by === 'operator' && action === 'block')
    .map(({ prefix }) => countryOfPrefix(prefix))
  const isNews = ({ bucket, verdict, country }: GuardCount) =>
    bucket !== 'blocked-prefix' ||
    verdict === 'recorded' ||
    !blocked.some((each) => (each ?? country) === country)
  const reader: PumpingPorts['guard'] = {
    ...guard,
    guardCounts: async (period, at) => (await guard.guardCounts(period, at)).filter(isNews),
  }
  const counts = found.filter(isNews)
  if (counts.length === 0) return [{ condition: pumpingCondition(), lasts: false }]
  const ports = { guard: reader, countryOfPrefix }
  const all = await readPumping(ports, prefixes, counts, now, () => true)
  const present = all.find((status) => {
    const { recordedLately, deniedLately, stoppedLately } = status
    return recordedLately + deniedLately + stoppedLately > 0 && pumpingState(status, mode) !== 'blocked'
  })
  return present ? [{ condition: pumpingCondition(present, mode), lasts: true }] : []
}

function pumpingCondition(status?: PumpingStatus, mode?: GuardMode): ConditionVerdict['condition'] {
  const about = {
    kind: 'guard.pumping' as const,
    about: 'pumping',
    what: 'guard',
    level: 'bad' as const,
    see: [],
    ended: 'The SMS pumping guard has recorded and denied no code for an hour.',
  }
  if (!status || !mode) return { ...about, data: {}, text: '', remedy: '' }
  const { country, sent, verified, recorded, denied, stopped, prefixes, apps } = status
  const [prefix] = prefixes
  const [by] = apps
  const block = prefix
    ? see('guard block', { prefix: prefix.prefix })
    : see('destination set', { rule: country, action: 'block' })
  return {
    ...about,
    data: {
      country,
      ...(prefix && { prefix: `${prefix.prefix}…` }),
      ...(by && { app: by.app, brand: by.brand }),
      mode,
      sent,
      verified,
      recorded,
      denied,
      stopped,
    },
    text: attackWords(status),
    remedy: remedyWords(status, mode),
    advice: [
      ...(mode === 'record' ? advice`To deny them, run ${see('guard mode', { mode: 'deny' })}. ` : []),
      ...(country === unknownCountry && !prefix ? [] : advice`To block them now, run ${block}.`),
    ],
  }
}
