import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { relativePrices } from '../../src/domain/money/relative-prices.ts'
import { databaseUrl, startPostgres } from '../../test/support/postgres.ts'
import { type Outcome, play, type Setting } from '../pumping/play.ts'
import { allowed, home, type Scenario, scenarios, trafficOf } from '../pumping/scenarios.ts'
import { type Figure, type PartResult, whole } from '../report.ts'
import { full, type Scale } from '../scale.ts'
import { type Bench, root } from '../servers.ts'

/** The traffic of the page in docs. */
export const reportedSeed = 2026

export interface PumpingOptions {
  readonly seed: number
  readonly usesPostgres: boolean
}

/** Later than the clock of the commands that set the rules and the budget. */
const startAtMs = Date.UTC(2040, 0, 2)

const record: Setting = { name: 'record', env: { GUARD: 'record' } }
const withBudget: Setting = { name: 'deny with budget', env: { GUARD: 'deny' } }
const settings = [
  { name: 'off', env: { GUARD: 'off' } },
  record,
  { name: 'deny', env: { GUARD: 'deny' } },
  withBudget,
] as const satisfies readonly Setting[]

/** The budget of a day, in usual days. */
const budgetDays = 3

const aims = { refusedShare: 0.95, genuineShare: 0.001 } as const

/** SMS pumping against the real request handler and a real database, with each setting of the guard. */
export async function pumping(
  bench: Bench,
  { pumping: volume }: Scale,
  { seed, usesPostgres }: PumpingOptions,
): Promise<PartResult> {
  await using databases = usesPostgres ? await postgresDatabases() : sqliteDatabases()
  const traffic = trafficOf(seed, startAtMs, volume)
  const launched = await databases.create('launched')
  for (const country of allowed) await bench.command(launched, 'destination', 'set', country, 'allow')
  const history = await play(await databases.create('history', 'launched'), record, traffic.history)
  const budget = Math.round((budgetDays * unitsOf(history)) / volume.historyDays)
  const results: Result[] = []
  for (const scenario of scenarios) {
    const visits = traffic.dayOf(scenario)
    for (const setting of settings) {
      const env = await databases.create('day', scenario.launchHour === undefined ? 'history' : 'launched')
      if (setting === withBudget)
        await bench.command(env, 'budget', 'set', 'server', '--per', 'day', '--amount', String(budget))
      results.push(resultOf(scenario, setting, await play(env, setting, visits)))
      process.stderr.write('.')
    }
  }
  const judged = results.filter(({ scenario, setting }) => scenario.hasAim && setting.env.GUARD === 'deny')
  const genuine = `${whole(traffic.genuine.length)} genuine users`
  const table = tableOf(results)
  if (seed === reportedSeed && volume === full.pumping && !usesPostgres) writePage(table)
  return {
    title: `SMS pumping on ${usesPostgres ? 'PostgreSQL' : 'SQLite'}: ${genuine}, seed ${seed}, a budget of ${whole(budget)} units a day`,
    figures: judged.map((result) => figureOf(result, budget)),
    table,
  }
}

/** What one setting did in one scenario. */
interface Result {
  readonly scenario: Scenario
  readonly setting: Setting
  readonly tries: number
  readonly sent: number
  /** The price of the SMS to the attacker. */
  readonly lostUnits: number
  /** The price of all SMS. */
  readonly spentUnits: number
  /** Undefined: not stopped. */
  readonly minutesUntilStopped: number | undefined
  readonly genuine: number
  readonly genuineRefused: number
  readonly homeRefused: number
}

function resultOf(scenario: Scenario, setting: Setting, outcomes: readonly Outcome[]): Result {
  const attack = outcomes.filter(({ visit }) => visit.isAttack)
  const genuine = outcomes.filter(({ visit }) => !visit.isAttack)
  const refused = genuine.filter(({ isRefused }) => isRefused)
  return {
    scenario,
    setting,
    tries: attack.length,
    sent: attack.reduce((sum, { segments }) => sum + segments, 0),
    lostUnits: unitsOf(attack),
    spentUnits: unitsOf(outcomes),
    minutesUntilStopped: minutesUntilStopped(attack),
    genuine: genuine.length,
    genuineRefused: refused.length,
    homeRefused: refused.filter(({ visit }) => visit.country === home).length,
  }
}

/** By the built-in price list. */
function unitsOf(outcomes: readonly Outcome[]): number {
  const micros = outcomes.map(
    ({ visit, segments }) => segments * relativePrices.perSegment(visit.phone, null),
  )
  return micros.reduce((sum, price) => sum + price, 0) / 1_000_000
}

/** From the first try to the one from which 95 of 100 tries are refused. */
function minutesUntilStopped(attack: readonly Outcome[]): number | undefined {
  const stopped = attack.find((_, index) => {
    const next = attack.slice(index, index + 100)
    return next.filter(({ isRefused }) => isRefused).length >= aims.refusedShare * 100
  })
  const [first] = attack
  return first && stopped && (stopped.visit.atMs - first.visit.atMs) / 60_000
}

function figureOf(result: Result, budget: number): Figure {
  const { scenario, setting, tries, sent, genuine, genuineRefused, homeRefused, spentUnits } = result
  const isWithinBudget = setting !== withBudget || spentUnits <= budget
  const holds =
    sent <= (1 - aims.refusedShare) * tries &&
    genuineRefused < aims.genuineShare * genuine &&
    homeRefused === 0 &&
    isWithinBudget
  const measured = [
    `${percent(1 - sent / tries)} of the attacker's SMS refused`,
    `${percent(genuineRefused / genuine)} of genuine users refused, ${homeRefused} in the home country`,
    `${whole(spentUnits)} units spent`,
  ]
  return {
    name: `${scenario.name}: ${setting.name}`,
    measured: measured.join('; '),
    aim: { text: `≥ 95 %; < 0.1 %, 0${setting === withBudget ? `; ≤ ${whole(budget)}` : ''}`, holds },
  }
}

function tableOf(results: readonly Result[]): string {
  const rows = results.map((result) => {
    const { scenario, setting, tries, sent, lostUnits, minutesUntilStopped: minutes, genuine } = result
    return [
      scenario.name,
      setting.name,
      `${whole(sent)} of ${whole(tries)} (${percent(sent / tries)})`,
      whole(lostUnits),
      minutes === undefined ? 'never' : minutes.toFixed(minutes < 10 ? 1 : 0),
      `${result.genuineRefused} of ${whole(genuine)} (${percent(result.genuineRefused / genuine)})`,
      String(result.homeRefused),
      whole(result.spentUnits),
    ]
  })
  const head = [
    'attack',
    'guard',
    'SMS sent to the attacker',
    'units lost',
    'minutes until stopped',
    'genuine users refused',
    'of them at home',
    'units for all SMS',
  ]
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((cells) => cells[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |\n`
  return [head, widths.map((width) => '-'.repeat(width)), ...rows].map(line).join('')
}

/** Replaces the table of the page. */
function writePage(table: string): void {
  const page = join(root, 'docs/pumping-simulation.md')
  const text = readFileSync(page, 'utf8')
  writeFileSync(page, text.replace(/(?<=writes the table\. -->\n\n)[^<]*/, `${table}\n`))
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`
}

/** Databases for one run each. */
interface Databases extends AsyncDisposable {
  /** Replaces the database of that name, with a copy of another if one is given. Returns the settings for it. */
  create(name: string, original?: string): Promise<Readonly<Record<string, string>>>
}

/** In memory if possible: the simulation measures no durability, and the disk would take most of its time. */
function sqliteDatabases(): Databases {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'otpost-pumping-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.on('exit', remove)
  return {
    async create(name, original) {
      rmSync(join(folder, name), { recursive: true, force: true })
      if (original !== undefined) cpSync(join(folder, original), join(folder, name), { recursive: true })
      return { DATABASE_URL: `file:${join(folder, name, 'otpost.db')}` }
    },
    async [Symbol.asyncDispose]() {
      remove()
    },
  }
}

async function postgresDatabases(): Promise<Databases> {
  const server = await startPostgres({ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' })
  return {
    async create(name, original = 'template1') {
      await server.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`)
      await server.query(`CREATE DATABASE "${name}" TEMPLATE "${original}"`)
      return {
        DATABASE_URL: databaseUrl(server.url, name),
        SECRET_KEY: 'the secret key of the simulation that is 32 bytes or more',
      }
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
