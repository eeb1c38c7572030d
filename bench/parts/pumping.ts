import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { relativePrices } from '../../src/domain/money/relative-prices.ts'
import { databaseUrl, startPostgres } from '../../test/support/postgres.ts'
import { clientFields, type Outcome, play, type Setting } from '../pumping/play.ts'
import { type Scenario, scenarios, trafficOf } from '../pumping/scenarios.ts'
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
  readonly clients: readonly string[]
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

type Client = Setting['client']

/** SMS pumping against the real request handler and a real database. */
export async function pumping(_: Bench, __: unknown, options: PumpingOptions): Promise<PartResult> {
  await using databases = options.usesPostgres ? await postgresDatabases() : sqliteDatabases()
  const groups: Group[] = []
  const clients = (Object.keys(clientFields) as Client[]).filter((each) => options.clients.includes(each))
  const chosen = scenarios.filter(({ name }) => name.includes(options.attack))
  for (const site of sites.filter(({ name }) => options.sites.includes(name))) {
    for (const scenario of chosen)
      for (const client of clients) groups.push({ site, scenario, client, results: [] })
    for (const seed of options.seeds) {
      for (const { scenario, client, results } of groups.filter((each) => each.site === site)) {
        const { history, visits } = trafficOf(scenario, site, seed, startAtMs)
        const { hasRules = true } = scenario
        const name = `history-${client}-${hasRules}-${site.name}-${seed}`
        const setting = { hasRules, client, mode: 'record' } as const
        if (history.length > 0 && !databases.has(name))
          await play(await databases.create(name), setting, history)
        const env = await databases.create('day', history.length > 0 ? name : undefined)
        results.push(resultOf(await play(env, { ...setting, mode: 'deny' }, visits)))
        process.stderr.write('.')
      }
    }
  }
  const table = tableOf(groups)
  if (options.isWhole) writePage(table)
  return {
    title: `SMS pumping on ${options.usesPostgres ? 'PostgreSQL' : 'SQLite'}, with \`deny\`, seeds ${options.seeds.join(', ')}`,
    figures: groups.map(figureOf),
    table,
  }
}

/** The runs of all seeds. */
interface Group {
  readonly site: Site
  readonly scenario: Scenario
  readonly client: Client
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
    ({ visit, segments }) => segments * relativePrices.perSegment(visit.phone, null),
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
function missed({ scenario, client, results }: Group): string[] {
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
    home: isMore(total('home'), client === 'neither' ? aims.home : aims.homeWithClient),
    'attacked country': isMore(total('attackedCountries'), aims.attackedCountry),
    'an hour after': total('later').refused > 0,
  }
  return Object.entries(found).flatMap(([name, isMissed]) => (isMissed ? name : []))
}

function figureOf(group: Group): Figure {
  const found = missed(group)
  return {
    name: `${group.scenario.name}: ${group.site.name} site, ${group.client}`,
    measured: cellsOf(group).slice(3, -1).join('; '),
    aim: { text: found.join(', '), holds: found.length === 0 },
  }
}

const head = [
  'attack',
  'site',
  'the app gives',
  'tries a day',
  'SMS a day',
  'units a day',
  'refused: new at home',
  'new in an attacked country',
  'new elsewhere',
  'known',
  'hours until the last',
  'missed aims',
] as const

function cellsOf(group: Group): string[] {
  const { site, scenario, client, results } = group
  const most = (value: (result: Result) => number) => Math.max(...results.map(value))
  const share = (which: 'home' | 'attackedCountries' | 'elsewhere' | 'known') => {
    const { refused, of } = sumOf(results.map((result) => result[which]))
    return of === 0 ? '–' : `${refused} of ${whole(of)}, ${((100 * refused) / of).toFixed(1)} %`
  }
  const isAttack = scenario.attack !== undefined
  const amount = (value: (result: Result) => number) => (isAttack ? whole(most(value)) : '–')
  return [
    scenario.name,
    site.name,
    client,
    amount(({ tries }) => tries),
    amount(({ sms }) => sms),
    amount(({ units }) => units),
    share('home'),
    share('attackedCountries'),
    share('elsewhere'),
    share('known'),
    isAttack ? most(({ hoursUntilLast }) => hoursUntilLast).toFixed(1) : '–',
    missed(group).join(', '),
  ]
}

function tableOf(groups: readonly Group[]): string {
  const rows = groups.map(cellsOf)
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
