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
import { type PartResult, whole } from '../report.ts'
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

const aims = {
  smsADay: 120,
  shareOfTries: 0.01,
  ofEachOwnNumber: 3,
  home: 0.02,
  homeWithClient: 0.002,
  attackedCountry: 0.25,
  hoursAfter: 1,
} as const

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
  const table = sites
    .map((site) =>
      tableOf(
        site,
        groups.filter((group) => group.site === site),
      ),
    )
    .join('\n')
  if (options.isWhole) writePage(table)
  const [seed = 0] = options.seeds
  const installs =
    options.attack === '' ? await installFigures(() => databases.create('install'), startAtMs, seed) : []
  const failing = groups.filter((group) => missed(group).length > 0)
  return {
    title: `SMS pumping on ${options.usesPostgres ? 'PostgreSQL' : 'SQLite'}, seeds ${options.seeds.join(', ')}`,
    figures: [
      {
        name: 'rows of the table that meet all aims',
        measured: `${groups.length - failing.length} of ${groups.length}`,
        aim: { text: 'all', holds: failing.length === 0 },
      },
      ...failing.map((group) => ({
        name: `${nameOf(group)}, ${group.site.name} site`,
        measured: missed(group).join(', '),
        aim: { text: '', holds: false },
      })),
      ...installs,
    ],
    table,
  }
}

async function run(databases: Databases, { site, scenario, variant }: Group, seed: number): Promise<Result> {
  const { history, visits } = trafficOf(scenario, site, seed, startAtMs)
  const { hasRules = true } = scenario
  const client = variant === 'clientIp' || variant === 'deviceId' ? variant : undefined
  const recorded: Setting = { mode: 'record', hasRules, client }
  const name = `history-${client}-${hasRules}-${site.name}-${seed}`
  if (history.length > 0 && !databases.has(name)) await play(await databases.create(name), recorded, history)
  const env = await databases.create('day', history.length > 0 ? name : undefined)
  const setting: Setting = {
    ...recorded,
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
  /** To numbers that are not the attacker's, and what is aimed at. */
  readonly strangers: { readonly sms: number; readonly aim: number }
  /** To own numbers, without the verified ones. */
  readonly own: { readonly sms: number; readonly aim: number }
  /** New genuine users, from the beginning of the attack until an hour after its end. */
  readonly home: Share
  readonly attackedCountries: Share
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
  const lastMs = endMs + aims.hoursAfter * hourMs
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
      aim: Math.max(aims.smsADay, aims.shareOfTries * worst((day) => strangers(day).length)),
    },
    own: {
      sms: worst((day) => segmentsOf(own(day))),
      aim:
        aims.ofEachOwnNumber * new Set(attack.flatMap(({ visit }) => (visit.isOwn ? visit.phone : []))).size,
    },
    home: during((visit) => isNew(visit) && visit.country === home),
    attackedCountries: during((visit) => isNew(visit) && isAttacked(visit)),
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

function sumOf(shares: readonly Share[]): Share {
  return shares.reduce((sum, { refused, of }) => ({ refused: sum.refused + refused, of: sum.of + of }), {
    refused: 0,
    of: 0,
  })
}

/** What is not as it should be. */
function missed({ scenario, variant, results }: Group): string[] {
  if (variant === 'record') return []
  const total = (which: 'home' | 'attackedCountries' | 'elsewhere' | 'known' | 'later') =>
    sumOf(results.map((result) => result[which]))
  const isMore = ({ refused, of }: Share, most: number) => refused > most * of
  if (scenario.attack === undefined) {
    const all = sumOf([total('home'), total('elsewhere'), total('known')])
    return all.refused > 0 ? ['refused'] : []
  }
  const found = {
    SMS: results.some(({ strangers }) => strangers.sms > strangers.aim),
    'own numbers': results.some(({ own }) => own.sms > own.aim),
    home: isMore(
      total('home'),
      variant === 'clientIp' || variant === 'deviceId' ? aims.homeWithClient : aims.home,
    ),
    'attacked country': isMore(total('attackedCountries'), aims.attackedCountry),
    'an hour after': total('later').refused > 0,
  }
  return Object.entries(found).flatMap(([name, isMissed]) => (isMissed ? name : []))
}

function nameOf({ scenario, variant }: Group): string {
  const words = {
    deny: '',
    clientIp: ', with `clientIp`',
    deviceId: ', with `deviceId`',
    budgets: ', with budgets',
    record: ', with `record`',
  } as const satisfies Record<Variant, string>
  return scenario.name + words[variant]
}

const head = [
  'attack',
  'tries a day',
  'SMS a day',
  'units a day',
  'refused: new at home',
  'new in attacked countries',
  'new elsewhere',
  'known',
  'hours until the last',
  'missed aims',
] as const

function cellsOf(group: Group): string[] {
  const { scenario, results } = group
  const most = (value: (result: Result) => number) => Math.max(...results.map(value))
  const share = (which: 'home' | 'attackedCountries' | 'elsewhere' | 'known') => {
    const { refused, of } = sumOf(results.map((result) => result[which]))
    return of === 0 ? '' : `${refused} of ${whole(of)} (${((100 * refused) / of).toFixed(1)} %)`
  }
  const amount = (value: (result: Result) => number) => (scenario.attack ? whole(most(value)) : '')
  return [
    nameOf(group),
    amount(({ tries }) => tries),
    amount(({ sms }) => sms),
    amount(({ units }) => units),
    share('home'),
    share('attackedCountries'),
    share('elsewhere'),
    share('known'),
    scenario.attack ? most(({ hoursUntilLast }) => hoursUntilLast).toFixed(1) : '',
    missed(group).join(', '),
  ]
}

function tableOf({ name, usersPerDay }: Site, groups: readonly Group[]): string {
  if (groups.length === 0) return ''
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
  const page = join(root, 'docs/pumping-simulation.md')
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
