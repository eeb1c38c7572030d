import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { destinationOf } from '../../src/adapters/phone/destination.ts'
import { relativePrices } from '../../src/domain/money/relative-prices.ts'
import { databaseUrl, startPostgres } from '../../test/support/postgres.ts'
import { installFigures } from '../pumping/installs.ts'
import { type Outcome, play, type Setting } from '../pumping/play.ts'
import { type Scenario, scenarios, trafficOf, type Variant } from '../pumping/scenarios.ts'
import { dayMs, home, hourMs, type Site, sites, type Visit } from '../pumping/traffic.ts'
import { type Figure, type PartResult, whole } from '../report.ts'
import { type Bench, root } from '../servers.ts'

/** Thresholds are tuned with the seeds 1 to 12. */
export const reportedSeeds: readonly number[] = [101, 102, 103]

export interface PumpingOptions {
  readonly seeds: readonly number[]
  readonly usesPostgres: boolean
  /** A part of the names of scenarios. */
  readonly attack: string
  readonly sites: readonly string[]
  /** Undefined: those of each scenario. */
  readonly variants: readonly Variant[] | undefined
  /** Writes the page of the documentation. */
  readonly isWhole: boolean
}

const startAtMs = Date.UTC(2040, 0, 2)

const most = {
  smsADay: 120,
  ofTries: 0.01,
  toOwnNumber: 3,
  home: 0.02,
  homeWithClient: 0.002,
  attacked: 0.25,
} as const

/** Later refusals after an attack are counted apart. */
const soonMs = hourMs

/** SMS pumping against the real request handler and a real database. */
export async function pumping(_: Bench, __: unknown, options: PumpingOptions): Promise<PartResult> {
  await using databases = options.usesPostgres ? await postgresDatabases() : sqliteDatabases()
  const chosen = scenarios.filter(({ name }) => name.includes(options.attack))
  const groups = sites
    .filter(({ name }) => options.sites.includes(name))
    .flatMap((site) =>
      chosen.flatMap((scenario) =>
        (options.variants ?? scenario.variants ?? ['deny']).map(
          (variant): Group => ({ site, scenario, variant, results: [] }),
        ),
      ),
    )
  for (const seed of options.seeds) {
    for (const group of groups) {
      group.results.push(await run(databases, group, seed))
      process.stderr.write('.')
    }
  }
  const table = [...Map.groupBy(groups, ({ site }) => site)].map(tableOf).join('\n')
  if (options.isWhole) writePage(table)
  const [seed = 0] = options.seeds
  const installs =
    options.attack === '' ? await installFigures(() => databases.create('install'), startAtMs, seed) : []
  return {
    title: `SMS pumping on ${options.usesPostgres ? 'PostgreSQL' : 'SQLite'}, seeds ${options.seeds.join(', ')}`,
    figures: [...[...ofAttacks, ...withoutAttack].map((aim) => figureOf(aim, groups)), ...installs],
    table,
  }
}

async function run(databases: Databases, { site, scenario, variant }: Group, seed: number): Promise<Result> {
  const { history, visits } = trafficOf(scenario, site, seed, startAtMs, variant === 'tenth' ? 0.1 : 1)
  const { hasRules = true } = scenario
  const client = variant === 'clientIp' || variant === 'deviceId' ? variant : undefined
  const name = `history-${hasRules}-${site.name}-${seed}`
  if (history.length > 0 && !databases.has(name))
    await play(await databases.create(name), { mode: 'record', hasRules }, history)
  const env = await databases.create('day', history.length > 0 ? name : undefined)
  const setting: Setting = {
    hasRules,
    client,
    mode: variant === 'record' ? 'record' : 'deny',
    budgets: variant === 'budgets' ? budgetsOf(history) : undefined,
  }
  return resultOf(await play(env, setting, visits))
}

/** As the guide says: twice the busiest day of the home country, and of the busiest other one. */
function budgetsOf(history: readonly Visit[]): Readonly<Record<string, number>> {
  const units = new Map<string, number>()
  const most = { home: 0, abroad: 0 }
  for (const { atMs, country, phone, resendAfterMs } of history) {
    const key = `${country} ${Math.floor(atMs / dayMs)}`
    const price = relativePrices.perSegment(phone, destinationOf(phone).kind, null) / 1_000_000
    const spent = (units.get(key) ?? 0) + price * (resendAfterMs === undefined ? 1 : 2)
    units.set(key, spent)
    const which = country === home ? 'home' : 'abroad'
    most[which] = Math.max(most[which], spent)
  }
  return { [`country:${home}`]: 2 * most.home, 'country:*': 2 * most.abroad }
}

/** The runs of all seeds. */
interface Group {
  readonly site: Site
  readonly scenario: Scenario
  readonly variant: Variant
  readonly results: Result[]
}

interface Share {
  readonly refused: number
  readonly of: number
}

/** Of one run. SMS and tries are of the worst day. */
interface Result {
  readonly tries: number
  readonly sms: number
  readonly units: number
  /** To numbers that are not the attacker's, and the most that is aimed at. */
  readonly strangers: { readonly sms: number; readonly most: number }
  /** To own numbers, without the verified ones. */
  readonly own: { readonly sms: number; readonly most: number }
  /** New genuine users, from the beginning of the attack until an hour after its end. */
  readonly home: Share
  readonly attacked: Share
  readonly elsewhere: Share
  readonly known: Share
  /** Later than an hour after the attack: new users of attacked foreign countries. */
  readonly later: Share
  /** Of a new user, after the end of the attack. */
  readonly hoursUntilLast: number
}

function resultOf(outcomes: readonly Outcome[]): Result {
  const attack = outcomes.filter(({ visit }) => visit.by === 'attacker')
  const startMs = attack[0]?.visit.atMs ?? 0
  const endMs = attack.at(-1)?.visit.atMs ?? Number.POSITIVE_INFINITY
  const days = Object.values(
    Object.groupBy(attack, ({ visit }) => Math.floor((visit.atMs - startMs) / dayMs)),
  )
  const worst = (count: (day: readonly Outcome[]) => number) =>
    Math.max(0, ...days.map((day = []) => count(day)))
  const strangers = (day: readonly Outcome[]) => day.filter(({ visit }) => !visit.isOwn)
  const own = (day: readonly Outcome[]) =>
    day.filter(({ visit }) => visit.isOwn && visit.enterAfterMs === undefined)
  const attacked = new Set(attack.map(({ visit }) => visit.country))
  const isAttacked = ({ country }: Visit) => country !== home && attacked.has(country)
  const isNew = ({ by }: Visit) => by === 'newcomer'
  const lastMs = endMs + soonMs
  const share = (isCounted: (visit: Visit) => boolean): Share => {
    const all = outcomes.filter(({ visit }) => visit.atMs >= startMs && isCounted(visit))
    return { refused: all.filter(({ isRefused }) => isRefused).length, of: all.length }
  }
  const during = (isCounted: (visit: Visit) => boolean) =>
    share((visit) => visit.atMs <= lastMs && isCounted(visit))
  const refusedMs = outcomes
    .filter(({ visit, isRefused }) => isRefused && isNew(visit) && visit.atMs > endMs)
    .map(({ visit }) => visit.atMs - endMs)
  return {
    tries: worst((day) => day.length),
    sms: worst(segmentsOf),
    units: worst(unitsOf),
    strangers: {
      sms: worst((day) => segmentsOf(strangers(day))),
      most: Math.max(most.smsADay, most.ofTries * worst((day) => strangers(day).length)),
    },
    own: {
      sms: worst((day) => segmentsOf(own(day))),
      most: most.toOwnNumber * new Set(attack.flatMap(({ visit }) => (visit.isOwn ? visit.phone : []))).size,
    },
    home: during((visit) => isNew(visit) && visit.country === home),
    attacked: during((visit) => isNew(visit) && isAttacked(visit)),
    elsewhere: during((visit) => isNew(visit) && visit.country !== home && !isAttacked(visit)),
    known: during(({ by }) => by === 'known'),
    later: share((visit) => visit.atMs > lastMs && isNew(visit) && isAttacked(visit)),
    hoursUntilLast: Math.max(0, ...refusedMs) / hourMs,
  }
}

function segmentsOf(outcomes: readonly Outcome[]): number {
  return outcomes.reduce((sum, { segments }) => sum + segments, 0)
}

/** By the built-in price list. */
function unitsOf(outcomes: readonly Outcome[]): number {
  const micros = outcomes.map(
    ({ visit, segments }) =>
      segments * relativePrices.perSegment(visit.phone, destinationOf(visit.phone).kind, null),
  )
  return micros.reduce((sum, price) => sum + price, 0) / 1_000_000
}

type Users = 'home' | 'attacked' | 'elsewhere' | 'known' | 'later'

function total({ results }: Group, which: Users): Share {
  return sumOf(results.map((result) => result[which]))
}

function isMore({ refused, of }: Share, share: number): boolean {
  return refused > share * of
}

function sumOf(shares: readonly Share[]): Share {
  return shares.reduce((sum, { refused, of }) => ({ refused: sum.refused + refused, of: sum.of + of }), {
    refused: 0,
    of: 0,
  })
}

interface Aim {
  readonly name: string
  readonly text: string
  readonly isMissed: (group: Group) => boolean
}

const ofAttacks: readonly Aim[] = [
  {
    name: 'SMS',
    text: `at most ${most.smsADay} SMS a day, or 1 % of the tries, to numbers that are not the attacker's`,
    isMissed: ({ results }) => results.some(({ strangers }) => strangers.sms > strangers.most),
  },
  {
    name: 'own numbers',
    text: `at most ${most.toOwnNumber} SMS a day to each number of the attacker's, besides verified codes`,
    isMissed: ({ results }) => results.some(({ own }) => own.sms > own.most),
  },
  {
    name: 'home',
    text: 'at most 2 % of new users at home refused, 0.2 % with clientIp or deviceId',
    isMissed: (group) => {
      const hasClient = group.variant === 'clientIp' || group.variant === 'deviceId'
      return isMore(total(group, 'home'), hasClient ? most.homeWithClient : most.home)
    },
  },
  {
    name: 'attacked country',
    text: 'at most 25 % of new users in attacked foreign countries refused',
    isMissed: (group) => isMore(total(group, 'attacked'), most.attacked),
  },
  {
    name: 'an hour after',
    text: 'none of them refused later than an hour after the attack',
    isMissed: (group) => isMore(total(group, 'later'), 0),
  },
]

const withoutAttack: readonly Aim[] = [
  {
    name: 'no attack',
    text: 'no user refused',
    isMissed: (group) =>
      isMore(sumOf((['home', 'elsewhere', 'known'] as const).map((which) => total(group, which))), 0),
  },
]

function aimsOf({ scenario, variant }: Group): readonly Aim[] {
  if (variant === 'record') return []
  return scenario.attack ? ofAttacks : withoutAttack
}

function missed(group: Group): string[] {
  return aimsOf(group).flatMap(({ name, isMissed }) => (isMissed(group) ? name : []))
}

function figureOf(aim: Aim, groups: readonly Group[]): Figure {
  const judged = groups.filter((group) => aimsOf(group).includes(aim))
  const failing = judged.filter(aim.isMissed)
  return {
    name: aim.name,
    measured: `${judged.length - failing.length} of ${judged.length} rows`,
    aim: { text: aim.text, holds: failing.length === 0 },
  }
}

function nameOf({ scenario, site, variant }: Group): string {
  const name = scenario.name.replace(/\{(.*)\|(.*)\}/, site.name === 'large' ? '$1' : '$2')
  const words = {
    deny: '',
    tenth: ', a tenth of the tries',
    clientIp: ', with `clientIp`',
    deviceId: ', with `deviceId`',
    budgets: ', with budgets',
    record: ', with `record`',
  } as const satisfies Record<Variant, string>
  return name + words[variant]
}

const head = [
  'attack',
  'tries a day',
  'SMS a day',
  'units a day',
  'refused: new at home',
  'in attacked countries',
  'elsewhere abroad',
  'later in attacked ones',
  'hours until the last',
  'aims missed',
] as const

function cellsOf(group: Group): string[] {
  const { scenario, results } = group
  const greatest = (value: (result: Result) => number) => Math.max(...results.map(value))
  const share = (which: Users) => {
    const { refused, of } = total(group, which)
    return of === 0 ? '' : `${refused} of ${whole(of)} (${((100 * refused) / of).toFixed(1)} %)`
  }
  const amount = (value: (result: Result) => number) => (scenario.attack ? whole(greatest(value)) : '')
  return [
    nameOf(group),
    amount(({ tries }) => tries),
    amount(({ sms }) => sms),
    amount(({ units }) => units),
    share('home'),
    share('attacked'),
    share('elsewhere'),
    share('later'),
    scenario.attack ? greatest(({ hoursUntilLast }) => hoursUntilLast).toFixed(1) : '',
    missed(group).join(', '),
  ]
}

function tableOf([{ name, usersPerDay }, groups]: [Site, readonly Group[]]): string {
  const rows = groups.map(cellsOf)
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((cells) => cells[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |\n`
  const lines = [head, widths.map((width) => '-'.repeat(width)), ...rows].map(line)
  return `The ${name} site, with ${whole(usersPerDay)} genuine users a day:\n\n${lines.join('')}`
}

/** Replaces the table of the page. */
function writePage(table: string): void {
  const page = join(root, 'docs/engineering/pumping-simulation.md')
  const text = readFileSync(page, 'utf8')
  writeFileSync(page, text.replace(/(?<=writes the table\. -->\n\n)[^<]*/, `${table}\n`))
}

/** Databases for one run each. */
interface Databases extends AsyncDisposable {
  /** Whether one was created. */
  has(name: string): boolean
  /** Replaces the database of that name, with a copy of another if one is given. Returns the settings for it. */
  create(name: string, original?: string): Promise<Readonly<Record<string, string>>>
}

/** In memory if possible: the simulation measures no durability, and the disk would take most of its time. */
function sqliteDatabases(): Databases {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'otpost-pumping-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.on('exit', remove)
  return {
    has: (name) => existsSync(join(folder, name)),
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
  const created = new Set<string>()
  return {
    has: (name) => created.has(name),
    async create(name, original = 'template1') {
      created.add(name)
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
