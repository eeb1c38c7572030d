import type { Command } from 'commander'
import type { GuardTotals } from '../domain/guard/counts.ts'
import { modeWords } from '../domain/guard/mode.ts'
import type { PumpingStatus } from '../domain/guard/pumping.ts'
import type { GuardStatus, PrefixStatus } from '../domain/guard/status.ts'
import { unknownCountry } from '../domain/guard/thresholds.ts'
import { guardGroup, readGuardStatus } from '../domain/operator/guard.ts'
import { groupCommand } from './actions.ts'
import { destinationConfig, type Env, print, printTable, withContext } from './common.ts'

export function guardCommands(program: Command, env: Env): void {
  groupCommand(program, guardGroup)
    .command('status')
    .description(
      'print pumped countries, blocked and allowed prefixes, the fullest buckets, and the conversion of each country',
    )
    .option('--json', 'print JSON')
    .action((options: { json?: true }) =>
      withContext(env, async ({ guardReader, policy, now }) => {
        const { countryOfPrefix } = await import('../adapters/phone/destination.ts')
        const ports = { guard: guardReader, policy, now, countryOfPrefix }
        const status = await readGuardStatus(ports, await destinationConfig(env))
        if (options.json) print(JSON.stringify(status))
        else printStatus(status)
      }),
    )
}

function printStatus(status: GuardStatus): void {
  const {
    mode,
    modeUntil,
    nextMode,
    homeCountries,
    blocked,
    allowed,
    buckets,
    countries,
    lastHour,
    last24Hours,
  } = status
  const until = modeUntil === null ? '' : ` until ${modeUntil}, then ${nextMode}`
  print(`Mode ${mode}${until}: ${modeWords[mode]}`)
  print(`In the last hour: ${totalsWords(lastHour)}. In the last 24 hours: ${totalsWords(last24Hours)}.`)
  if (homeCountries.length > 0) print(`Home countries: ${homeCountries.join(', ')}.`)
  printPumping(status.pumping)
  printPrefixes(
    mode === 'record' ? 'Blocked prefixes (those by the guard: recorded only)' : 'Blocked prefixes',
    blocked,
  )
  printPrefixes('Allowed prefixes', allowed)
  section('Fullest buckets of unverified codes', buckets.length)
  if (buckets.length > 0) {
    printTable(undefined, buckets, [
      ['BUCKET', ({ kind }) => kind],
      ['KEY', ({ key }) => key.slice(0, 16)],
      ['LEVEL', ({ level }) => String(level)],
      ['THRESHOLD', ({ threshold }) => String(threshold)],
    ])
  }
  section('Codes by SMS in the last 24 hours', countries.length)
  if (countries.length === 0) return
  printTable(undefined, countries, [
    ['COUNTRY', ({ country }) => (country === unknownCountry ? 'none' : country)],
    ['SENT', ({ sent }) => String(sent)],
    ['VERIFIED', ({ verified }) => String(verified)],
    ['CONVERSION', ({ conversion }) => (conversion === null ? '-' : `${Math.floor(conversion * 100)}%`)],
    ['DENIED', ({ denied }) => String(denied)],
    ['RECORDED', ({ recorded }) => String(recorded)],
  ])
}

function printPumping(pumping: readonly PumpingStatus[]): void {
  section('Too many unverified codes in the last hour', pumping.length)
  if (pumping.length === 0) return
  printTable(undefined, pumping, [
    ['COUNTRY', ({ country }) => (country === unknownCountry ? 'none' : country)],
    ['SENT', ({ sent }) => String(sent)],
    ['VERIFIED', ({ verified }) => String(verified)],
    ['DENIED', ({ denied }) => String(denied)],
    ['RECORDED', ({ recorded, recordedLately }) => `${recorded} (${recordedLately} in 2 min)`],
    ['BY BUDGET', ({ stopped }) => String(stopped)],
    ['PREFIXES', ({ prefixes }) => listed(prefixes.map(prefixWords))],
    ['APPS', ({ apps }) => listed(apps.map(({ app, brand, codes }) => `${app} (${brand}) ${codes}`))],
  ])
}

function prefixWords({ prefix, share, isBlocked }: PumpingStatus['prefixes'][number]): string {
  return `${prefix} ${Math.floor(share * 100)}%${isBlocked ? ' blocked' : ''}`
}

function listed(words: readonly string[]): string {
  return words.length === 0 ? '-' : words.slice(0, 5).join(', ')
}

function printPrefixes(title: string, prefixes: readonly PrefixStatus[]): void {
  section(title, prefixes.length)
  if (prefixes.length === 0) return
  printTable(undefined, prefixes, [
    ['PREFIX', ({ prefix }) => prefix],
    ['COUNTRY', ({ country }) => country ?? '-'],
    ['BY', ({ by }) => by],
    ['UNVERIFIED', ({ unverified }) => String(unverified ?? '-')],
    ['SINCE', ({ since }) => since],
    ['UNTIL', ({ until }) => until],
  ])
}

function section(title: string, rows: number): void {
  print(`\n${title}${rows === 0 ? ': none' : ''}`)
}

function totalsWords({ denied, recorded }: GuardTotals): string {
  return `${denied} denied, ${recorded} recorded`
}
