import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { databaseUrl, type PostgresServer, queryOnce, startPostgres } from '../../test/support/postgres.ts'
import { syncMs } from '../machine.ts'
import { newSeed, repeat, requireStatus } from '../measure.ts'
import { measureLimit } from '../postgres/limit.ts'
import { Observer, type Statements, type StatementUse, storageIn } from '../postgres/observer.ts'
import { processorTimes, ticksPerSecond, usedBetween } from '../postgres/processor.ts'
import {
  type Kind,
  type Point,
  type PostgresResults,
  resultsFile,
  type Storage,
  type Work,
} from '../postgres/results.ts'
import { postgresFigures } from '../postgres/table.ts'
import type { PartResult } from '../report.ts'
import { full, type Scale } from '../scale.ts'
import type { Bench, Otpost, Server } from '../servers.ts'
import { median } from '../statistics.ts'
import { credentials, send, verifyAbsent, verifyWrong, type Workload } from '../workloads.ts'
import { connections, type Load, wrk } from '../wrk.ts'

/** What is driven at a time. */
interface Setup {
  readonly processes: number
  /** Each has a row that all its requests change: 1 or 100. */
  readonly applications: 1 | 100
  /** DATABASE_BATCH_SIZE: 1 is a transaction for each step. */
  readonly batchSize: number
}

const setupsOf = (processes: readonly number[], applications: 1 | 100, batchSize: number): Setup[] =>
  processes.map((count) => ({ processes: count, applications, batchSize }))

const fullSetups = [
  ...setupsOf([1, 2, 4], 1, 32),
  ...setupsOf([1, 2, 4], 100, 32),
  ...setupsOf([1, 4], 1, 1),
  ...setupsOf([4], 100, 1),
]
const quickSetups = [...setupsOf([1, 4], 1, 32), ...setupsOf([4], 100, 32), ...setupsOf([1, 4], 1, 1)]

/** The wrong codes come right after the sends whose recipients they go to. */
const workloads: readonly (readonly [Kind, Workload])[] = [
  ['send', send],
  ['wrong', verifyWrong],
  ['absent', verifyAbsent],
]

const databaseName = 'bench'

/** Commits wait for the disk, as by PostgreSQL's default. Checkpoints start by time, and none during a measurement. */
const serverSettings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '512MB',
  max_wal_size: '8GB',
  shared_preload_libraries: 'pg_stat_statements',
}

/**
 * Several processes on one PostgreSQL: how many requests they answer beside a bare Elysia route, what a request costs the
 * processes and the server, and what the server can do at most with one row. The server is a real one, on this machine.
 */
export async function postgres(bench: Bench, scale: Scale): Promise<PartResult> {
  const results = await measurePostgres(bench, scale)
  if (!results.isQuick) writeFileSync(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`)
  return postgresFigures(results)
}

export async function measurePostgres(bench: Bench, scale: Scale): Promise<PostgresResults> {
  const isQuick = scale.rounds < full.rounds
  const rounds = isQuick ? 1 : 2
  const seconds = isQuick ? 1 : 2
  const { warmupSeconds } = scale
  await using server = await startPostgres(serverSettings)
  await server.query('CREATE EXTENSION pg_stat_statements')
  const [row] = await server.query("SELECT current_setting('server_version') AS version")
  const limit = await measureLimit(await server.database('bench_limit'), isQuick ? 1 : 5, bench.folder)
  const env = {
    SECRET_KEY: 'the secret key of the benchmark that is 32 bytes or more',
    APP_CREDENTIALS: allCredentials,
  }
  const scene = new Scene(bench, server, env)
  const bare = await bench.start([process.execPath, join(import.meta.dir, '../bare.ts')])

  const points: Point[] = []
  let storage: Storage | undefined
  for (const setup of isQuick ? quickSetups : fullSetups) {
    const nodes = await scene.open(setup)
    points.push(...(await measureSetup(scene, nodes, bare, setup, { rounds, seconds, warmupSeconds })))
    storage = (await storageIn((text) => queryOnce(scene.url, text))) ?? storage
    await scene.close(nodes)
  }
  await bare.stop()
  if (storage === undefined) throw new Error('too few requests to compute the size of a row')

  return {
    serverVersion: String(row?.version),
    cores: availableParallelism(),
    syncMs: syncMs(bench.folder),
    isQuick,
    limit,
    points,
    work: await measureWork(scene),
    storage,
  }
}

const allCredentials = JSON.stringify(
  Object.fromEntries(
    [
      credentials.appId,
      ...Array.from({ length: 100 }, (_, index) => `app${String(index).padStart(2, '0')}`),
    ].map((appId) => [appId, credentials.apiKey]),
  ),
)

/** A database that each setup has anew, and the processes on it. */
class Scene {
  readonly url: string
  readonly observer: Observer

  constructor(
    private readonly bench: Bench,
    private readonly server: PostgresServer,
    private readonly env: Readonly<Record<string, string>>,
  ) {
    this.url = databaseUrl(server.url, databaseName)
    this.observer = new Observer(server, databaseName)
  }

  async open({ processes, batchSize }: Setup): Promise<Otpost[]> {
    await this.server.query(`DROP DATABASE IF EXISTS ${databaseName} WITH (FORCE)`)
    await this.server.database(databaseName)
    const env = { ...this.env, DATABASE_URL: this.url, DATABASE_BATCH_SIZE: String(batchSize) }
    await this.bench.putBrand(env)
    // What a checkpoint makes of the log, whole pages after each, is the same for all.
    await this.server.query('CHECKPOINT')
    return Promise.all(
      Array.from({ length: processes }, (_, index) =>
        // The file is that of its log.
        this.bench.otpost({ databaseFile: join(this.bench.folder, `postgres-${index}`), env }),
      ),
    )
  }

  async close(nodes: readonly Otpost[]): Promise<void> {
    await Promise.all(nodes.map((node) => node.stop()))
  }
}

/** The load of one measurement. */
interface Driven {
  readonly seconds: number
  readonly applications: number
  readonly connections: number
}

/** What one process got: what the phone numbers of its requests can be drawn from again. */
interface Draw {
  readonly seed: number
  readonly population: number
}

type Measured = Omit<Point, keyof Setup | 'kind' | 'barePerSecond' | 'share' | 'connections'>

async function measureSetup(
  scene: Scene,
  nodes: readonly Otpost[],
  bare: Server,
  setup: Setup,
  { rounds, seconds, warmupSeconds }: { rounds: number; seconds: number; warmupSeconds: number },
): Promise<Point[]> {
  const measured = new Map(workloads.map(([kind]) => [kind, [] as { own: Measured; bare: Load }[]]))
  await repeat(rounds + 1, async (round) => {
    const isWarmUp = round === 0
    const driven = {
      seconds: isWarmUp ? warmupSeconds : seconds,
      applications: setup.applications,
      connections,
    }
    let sent: readonly Draw[] = []
    const pairs: [Kind, { own: Measured; bare: Load }][] = []
    // The first round, which warms up, is left out.
    for (const [kind, workload] of isWarmUp ? workloads.slice(0, 2) : workloads) {
      const draws =
        workload.to === 'recipients' ? sent : nodes.map(() => ({ seed: newSeed(), population: 0 }))
      const {
        draws: next,
        answered: _,
        statements: __,
        ...own
      } = await drive(scene, nodes, workload, draws, driven)
      if (workload === send) sent = next
      if (isWarmUp) continue
      const call = { ...workload.call, path: workload.barePath }
      pairs.push([kind, { own, bare: await wrk(bare.url, call, { seconds: 1, seed: newSeed() }) }])
    }
    for (const [kind, pair] of pairs) measured.get(kind)?.push(pair)
  })
  return [...measured].map(([kind, pairs]) => ({
    kind,
    ...setup,
    connections,
    ...mediansOf(pairs.map(({ own }) => own)),
    barePerSecond: median(pairs.map((pair) => pair.bare.perSecond)),
    share: median(pairs.map(({ own, bare: { perSecond } }) => own.perSecond / perSecond)),
  }))
}

function mediansOf(all: readonly Measured[]): Measured {
  const [first] = all
  if (!first) throw new Error('nothing was measured')
  const names = Object.keys(first) as (keyof Measured)[]
  return Object.fromEntries(names.map((name) => [name, median(all.map((each) => each[name]))])) as Record<
    keyof Measured,
    number
  >
}

/** Drives all processes at once, each with its share of the connections by a client of its own. */
async function drive(
  scene: Scene,
  nodes: readonly Otpost[],
  workload: Workload,
  draws: readonly Draw[],
  { seconds, applications, connections: all }: Driven,
): Promise<Measured & { draws: readonly Draw[]; answered: number; statements: Statements }> {
  const script = join(import.meta.dir, '../postgres/applications.lua')
  const { observer } = scene
  const pids = nodes.map(({ pid }) => pid)
  await observer.begin()
  const walBefore = await observer.walBytes()
  const before = processorTimes(pids, observer.postmaster)
  const loads = await Promise.all(
    nodes.map((node, index) => {
      const draw = draws[index]
      if (!draw) throw new Error('a process has no numbers to draw from')
      const options = { seconds, ...draw, connections: Math.max(1, Math.floor(all / nodes.length)) }
      return wrk(node.url, workload.call, applications > 1 ? { ...options, script } : options)
    }),
  )
  const used = usedBetween(before, processorTimes(pids, observer.postmaster))
  let answered = 0
  for (const [index, node] of nodes.entries()) {
    const requests = loads[index]?.requests ?? 0
    const statuses = await node.statuses(requests)
    // With those that the client did not wait for, which cost the server the same.
    for (const count of statuses.values()) answered += count
    // The count includes requests that the client sent before the measurement.
    const wanted = (statuses.get(workload.status) ?? 0) + connections
    if (wanted < requests) requireStatus(workload, statuses)
  }
  // By now what the requests leave for the event log is written too.
  const statements = await observer.statements()
  const walBytes = (await observer.walBytes()) - walBefore

  const requests = loads.reduce((sum, load) => sum + load.requests, 0)
  const { locks, reads, writes, transactions, look, eventLog, other } = statements
  const stepTrips = locks.calls + reads.calls + writes.calls + transactions.calls
  const microseconds = (ticks: number) => (ticks * 1e6) / ticksPerSecond / requests
  return {
    perSecond: loads.reduce((sum, load) => sum + load.perSecond, 0),
    p50Ms: loads.reduce((sum, load) => sum + load.p50Ms * load.requests, 0) / requests,
    p99Ms: Math.max(...loads.map((load) => load.p99Ms)),
    roundTrips: (stepTrips + look.calls + eventLog.calls + other.calls) / answered,
    stepTrips: stepTrips / answered,
    pollTrips: look.calls / answered,
    transactions: (locks.calls + eventLog.calls) / answered,
    walBytes: walBytes / answered,
    otpostUs: microseconds(used.otpost),
    databaseUs: microseconds(used.database),
    clientUs: microseconds(used.client),
    unused: used.unused / used.all,
    answered,
    draws: loads.map((load, index) => ({ seed: draws[index]?.seed ?? 0, population: load.requests })),
    statements,
  }
}

/** What the server does for one request that is alone. */
async function measureWork(scene: Scene): Promise<Work[]> {
  const setup = { processes: 1, applications: 1, batchSize: 1 } as const
  const nodes = await scene.open(setup)
  const driven = { seconds: 1, applications: 1, connections: 1 }
  let sent: readonly Draw[] = [{ seed: newSeed(), population: 0 }]
  await drive(scene, nodes, send, sent, driven)
  const found: Work[] = []
  for (const [kind, workload] of workloads) {
    const draws = workload.to === 'recipients' ? sent : [{ seed: newSeed(), population: 0 }]
    const { draws: next, answered, statements } = await drive(scene, nodes, workload, draws, driven)
    if (workload === send) sent = next
    const { locks, reads, writes, transactions, look, eventLog, other } = statements
    const ofSteps = [locks, reads, writes, transactions]
    const sum = (of: (use: StatementUse) => number) => ofSteps.reduce((total, use) => total + of(use), 0)
    found.push({
      kind,
      rowsLocked: locks.rows / answered,
      rowsWritten: writes.rows / answered,
      blocksHit: sum(({ blocksHit }) => blocksHit) / answered,
      blocksDirtied: sum(({ blocksDirtied }) => blocksDirtied) / answered,
      stepMs: sum(({ ms }) => ms) / locks.calls,
      stepShare: sum(({ ms }) => ms) / (sum(({ ms }) => ms) + look.ms + eventLog.ms + other.ms),
    })
  }
  await scene.close(nodes)
  return found
}
