import type { Command } from 'commander'
import { counted } from '../domain/ground/format.ts'
import { unknownCountry } from '../domain/guard/bucket.ts'
import type { GuardTotals } from '../domain/guard/counts.ts'
import type { GuardMode } from '../domain/guard/guard.ts'
import type { PumpingStatus } from '../domain/guard/pumping.ts'
import type { GuardStatus, PrefixStatus } from '../domain/guard/status.ts'
import { dryRunOf } from '../domain/operator/dry-run.ts'
import {
  defaultDurations,
  type PrefixAction,
  readGuardStatus,
  removeGuardPrefix,
  setGuardPrefix,
} from '../domain/operator/guard.ts'
import type { PolicyPorts } from '../domain/policy/policy-store.ts'
import {
  type ConfirmOptions,
  codesTo,
  commandActor,
  complain,
  confirm,
  confirmOption,
  type DryRunOptions,
  dryRunOption,
  type Env,
  isoTime,
  nothingChanged,
  print,
  printTable,
  withContext,
} from './common.ts'

const prefixMeaning = 'the first 1 to 15 digits of the numbers, with the country code, such as +3712000'

export function guardCommands(program: Command, env: Env): void {
  const guard = program
    .command('guard')
    .description('see what the SMS pumping guard does, and allow or block number ranges')
  guard
    .command('status')
    .description(
      'print pumped countries with their prefixes and apps, blocked and allowed prefixes, the fullest buckets, and the conversion of each country',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe command reads GUARD and SMS_COUNTRIES, so run it with the settings of the server.',
    )
    .action((options: { json?: true }) =>
      withContext(env, async ({ guardReader, policy, now }) => {
        const { countryOfPrefix, ...config } = await settingsIn(env)
        const status = await readGuardStatus({ guard: guardReader, policy, now, countryOfPrefix }, config)
        if (options.json) print(JSON.stringify(status))
        else printStatus(status)
      }),
    )
  setCommand(guard, env, 'allow', 'send codes to these numbers without counting them in the guard')
  setCommand(guard, env, 'block', 'deny codes to these numbers, also with GUARD=record')
  guard
    .command('remove')
    .description('end the allow or block of a prefix, also one of the guard itself')
    .argument('<prefix>', prefixMeaning)
    .action((prefix: string) =>
      withContext(env, async ({ acting }) => {
        const removed = await removeGuardPrefix(acting(await commandActor(env)), prefix)
        for (const entry of removed) {
          print(`Ended the ${entry.action} of +${entry.prefix} by the ${entry.by}.`)
        }
      }),
    )
}

function setCommand(guard: Command, env: Env, action: PrefixAction, description: string): void {
  const command = guard.command(action)
  if (action === 'block') command.addOption(confirmOption())
  command
    .description(description)
    .argument('<prefix>', prefixMeaning)
    .option(
      '--for <duration>',
      'how long, such as 30m, 12h or 7d; at most 366d. Numbers of a longer prefix with its own entry follow that entry',
      defaultDurations[action],
    )
    .addOption(dryRunOption())
    .action((prefix: string, options: SetOptions) =>
      withContext(env, async ({ acting, guardReader, now }) => {
        const { mode, countryOfPrefix, countriesWithin } = await settingsIn(env)
        const ports = acting(await commandActor(env))
        const set = (how: PolicyPorts) => setGuardPrefix(how, action, prefix, options.for)
        const preview = await set(dryRunOf(ports))
        const country = countryOfPrefix(preview.prefix)
        const whole = countriesWithin(preview.prefix)
        const place = `+${preview.prefix}${country === null ? '' : ` (${country})`}`
        const what = action === 'allow' ? 'allowed' : 'blocked'
        const covered = `+${preview.prefix} covers every number of ${counted(whole.length, 'country', 'countries')}: ${whole.join(', ')}.`
        if (options.dryRun) {
          print(`${place} would be ${what} until ${isoTime(preview.expiresAt)}.`)
          if (whole.length > 0) print(covered)
          print(
            codesTo(
              await guardReader.countries(now()),
              whole.length > 0 || country === null ? whole : [country],
            ),
          )
          print(nothingChanged)
          return
        }
        if (action === 'block' && whole.length > 0) {
          await confirm(`${covered} They would get no code.`, { ...options, cutsOffMany: true })
        }
        const entry = await set(ports)
        print(`${place} is ${what} until ${isoTime(entry.expiresAt)}.`)
        if (mode === 'off') {
          complain('GUARD is off, so the entry has no effect. Set GUARD to record or deny.')
        }
      }),
    )
}

interface SetOptions extends ConfirmOptions, DryRunOptions {
  readonly for: string
}

async function settingsIn(env: Env) {
  const [{ readGuardConfig }, { countriesWithin, countryOfPrefix }] = await Promise.all([
    import('../config/guard.ts'),
    import('../adapters/phone/destination.ts'),
  ])
  return { ...readGuardConfig(env), countriesWithin, countryOfPrefix }
}

const modeWords: Readonly<Record<GuardMode, string>> = {
  off: 'GUARD=off: the guard counts nothing, and blocked prefixes have no effect.',
  record: 'GUARD=record: codes that the guard would deny are sent and recorded.',
  deny: 'GUARD=deny: codes that the guard denies are not sent.',
}

function printStatus(status: GuardStatus): void {
  const { mode, blocked, allowed, buckets, countries, lastHour, last24Hours } = status
  print(modeWords[mode])
  print(`In the last hour: ${totalsWords(lastHour)}. In the last 24 hours: ${totalsWords(last24Hours)}.`)
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
