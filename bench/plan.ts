import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Costs, type Layout, type Outcome, simulate } from './postgres/model.ts'
import { type Kind, type Point, type PostgresResults, resultsFile } from './postgres/results.ts'
import { milliseconds, whole } from './report.ts'
import { slope } from './statistics.ts'

// What so many sends a second need, each with one verify: `bun bench/plan.ts [--readme]`, from the measured figures of
// `bun run bench --only postgres`. With --readme it puts its tables into docs/scale.md.

/** Assumptions that are not measured. */
export const assumed = {
  /** The planned load of a processor. Queues grow above it. */
  utilization: 0.6,
  coresPerPrimary: 16,
  walBytesPerSecondPerPrimary: 100e6,
  /** A commit on a network's disk, or with a synchronous standby. */
  commitMs: 1,
  providerMs: 200,
  /** Of one process to one provider, as otpost bounds them. */
  providerCallsAtOnce: 120,
  checkpointSeconds: 900,
  /** A delivery's place in the index by recipient, which is in no order. */
  deliveryKeyBytes: 150,
  poolSize: 10,
  /** Connections that one primary serves well by itself. */
  connectionsPerPrimary: 500,
  pageBytes: 8192,
} as const

/** How long a recipient's rows are kept: the hour of its limit. */
const recipientSeconds = 3600

/**
 * The cost of a kind of request, from the setups with one application, which differ in their batch size. The model
 * predicts the other setups.
 */
export function costsOf({ points, work, limit }: PostgresResults, kind: Kind): Costs {
  const own = points.filter((point) => point.kind === kind && point.applications === 1)
  const node = lineThrough(own.map(({ stepTrips, otpostUs }) => [stepTrips, otpostUs]))
  const database = lineThrough(own.map(({ stepTrips, databaseUs }) => [stepTrips, databaseUs]))
  const client = own.reduce((sum, { clientUs }) => sum + clientUs, 0) / Math.max(1, own.length)
  return {
    nodeRequestMs: node.atNone / 1000,
    nodeTransactionMs: node.slope / 1000,
    databaseRequestMs: database.atNone / 1000,
    databaseTransactionMs: database.slope / 1000,
    lockedShare: work.find((each) => each.kind === kind)?.stepShare ?? 1,
    clientMs: client / 1000,
    commitMs: 1000 / limit.oneClientPerSecond,
  }
}

/** The cost of a request, and of each transaction in addition. Neither is negative, even with noise in the points. */
export function lineThrough(points: readonly (readonly [number, number])[]): {
  slope: number
  atNone: number
} {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / Math.max(1, points.length)
  const [meanX, meanY] = [mean(([x]) => x), mean(([, y]) => y)]
  const steepest = meanX === 0 ? 0 : meanY / meanX
  const found = Math.min(Math.max(0, slope(points)), steepest)
  return { slope: found, atNone: meanY - found * meanX }
}

/** A send and a verify in equal parts. */
export function mixed(a: Costs, b: Costs): Costs {
  const names = Object.keys(a) as (keyof Costs)[]
  return Object.fromEntries(names.map((name) => [name, (a[name] + b[name]) / 2])) as Record<
    keyof Costs,
    number
  >
}

/** The result of the model for a measured setup. */
export function modelled(point: Point, costs: Costs, cores: number): Outcome {
  const { processes, applications, batchSize, connections } = point
  return simulate(
    costs,
    {
      nodes: processes,
      shards: 1,
      processors: { shared: cores },
      applications,
      isSticky: false,
      batchSize,
      load: { connections },
    },
    2,
  )
}

/** The most steps per second of one application with full batches. Each step changes the same row. */
export function stepsOfOneApplication(costs: Costs, commitMs: number, batchSize: number): number {
  const heldMs = commitMs + costs.databaseRequestMs * costs.lockedShare * batchSize
  return (batchSize * 1000) / heldMs
}

/** How many different pages a number of random changes touches. */
export function pagesTouched(pages: number, changes: number): number {
  return pages <= 0 ? 0 : pages * (1 - Math.exp(-changes / pages))
}

export interface Need {
  readonly sendsPerSecond: number
  readonly nodes: number
  readonly nodesForProvider: number
  readonly databaseCores: number
  readonly primaries: number
  readonly connectionsPerPrimary: number
  readonly walBytesPerSecond: number
  readonly recipientBytes: number
  readonly eventLogBytesPerDay: number
  readonly pagesWrittenPerSecond: number
  /** Applications among which the load must be spread. */
  readonly applications: number
  /** One primary with its share of nodes and load, each node with an application of its own. */
  readonly simulated: Outcome
}

/** The resources for a rate of sends, each with one verify. */
export function needOf(results: PostgresResults, sendsPerSecond: number): Need {
  const costs = { ...mixed(costsOf(results, 'send'), costsOf(results, 'wrong')), commitMs: assumed.commitMs }
  const steps = 2 * sendsPerSecond
  const { recipientBytes, traceBytes, deliveryBytes } = results.storage
  const live = sendsPerSecond * recipientSeconds
  const inADay = sendsPerSecond * 86_400
  const touched =
    pagesTouched((live * recipientBytes) / assumed.pageBytes, steps * assumed.checkpointSeconds) +
    pagesTouched(
      (inADay * 30 * assumed.deliveryKeyBytes) / assumed.pageBytes,
      sendsPerSecond * assumed.checkpointSeconds,
    )
  const pagesWrittenPerSecond = touched / assumed.checkpointSeconds
  const walBytesPerSecond =
    sendsPerSecond * (walOf(results, 'send') + walOf(results, 'wrong')) +
    pagesWrittenPerSecond * assumed.pageBytes

  const layoutAt = (stepsPerTransaction: number) => {
    const nodeMs = costs.nodeRequestMs + costs.nodeTransactionMs / stepsPerTransaction
    const databaseMs = costs.databaseRequestMs + costs.databaseTransactionMs / stepsPerTransaction
    const databaseCores = (steps * databaseMs) / 1000 / assumed.utilization
    const primaries = Math.max(
      Math.ceil(databaseCores / assumed.coresPerPrimary),
      Math.ceil(walBytesPerSecond / assumed.walBytesPerSecondPerPrimary),
    )
    return { nodes: Math.ceil((steps * nodeMs) / 1000 / assumed.utilization), databaseCores, primaries }
  }
  const simulated = ({ nodes, primaries }: ReturnType<typeof layoutAt>) => {
    const own = Math.ceil(nodes / primaries)
    const layout: Layout = {
      nodes: own,
      shards: 1,
      processors: { each: assumed.coresPerPrimary },
      applications: own,
      isSticky: true,
      batchSize: 32,
      load: { perSecond: steps / primaries },
    }
    return simulate(costs, layout, 1)
  }
  // The batch size and the layout depend on each other. The second iteration is close enough.
  const layout = layoutAt(simulated(layoutAt(1)).stepsPerTransaction)
  const nodesForProvider = Math.ceil(
    (sendsPerSecond * assumed.providerMs) / 1000 / assumed.providerCallsAtOnce / assumed.utilization,
  )
  return {
    sendsPerSecond,
    ...layout,
    nodesForProvider,
    connectionsPerPrimary:
      Math.ceil(Math.max(layout.nodes, nodesForProvider) / layout.primaries) * assumed.poolSize,
    walBytesPerSecond,
    recipientBytes: live * recipientBytes,
    eventLogBytesPerDay: inADay * (2 * traceBytes + deliveryBytes),
    pagesWrittenPerSecond,
    applications: Math.ceil(steps / stepsOfOneApplication(costs, assumed.commitMs, 32) / assumed.utilization),
    simulated: simulated(layout),
  }
}

/** Of the setup with the most requests in a transaction, as under high load. */
function walOf({ points }: PostgresResults, kind: Kind): number {
  const own = points.filter((point) => point.kind === kind).sort((a, b) => a.stepTrips - b.stepTrips)
  return own[0]?.walBytes ?? 0
}

/** The tables of docs/scale.md. */
export function planMarkdown(results: PostgresResults): string {
  const kinds = { send: 'send', wrong: 'verify, wrong code', absent: 'verify, no live code' } as const
  const checks = results.points.map((point) => {
    const model = modelled(point, costsOf(results, point.kind), results.cores)
    const { kind, processes, applications, batchSize, perSecond, p50Ms } = point
    return `| ${kinds[kind]} | ${processes} | ${applications} | ${batchSize} | ${whole(perSecond)}, ${milliseconds(p50Ms)} | ${whole(model.perSecond)}, ${milliseconds(model.p50Ms)} | ${(model.perSecond / perSecond).toFixed(2)} |`
  })
  const needs = [1e4, 1e5, 1e6].map((rate) => needOf(results, rate))
  const row = (name: string, of: (need: Need) => string) => `| ${name} | ${needs.map(of).join(' | ')} |`
  const costs = mixed(costsOf(results, 'send'), costsOf(results, 'wrong'))
  const ofApplication = [0.5, 1, 2, 5].map(
    (commitMs) =>
      `| ${commitMs} ms | ${[1, 8, 32].map((batch) => whole(stepsOfOneApplication(costs, commitMs, batch) / 2)).join(' | ')} |`,
  )
  return [
    `From PostgreSQL ${results.serverVersion} on ${results.cores} cores${results.isQuick ? ', **in a short run on a busy machine: these figures are rough**' : ''}: a send takes ${costText(costsOf(results, 'send'))}. A verify takes ${costText(costsOf(results, 'wrong'))}.`,
    '',
    '| sends a second, each with one verify | 10⁴ | 10⁵ | 10⁶ |',
    '| --- | --- | --- | --- |',
    row('otpost: processes, by processor time', ({ nodes }) => whole(nodes)),
    row('otpost: processes, by calls to the provider', ({ nodesForProvider }) => whole(nodesForProvider)),
    row('database: cores', ({ databaseCores }) => whole(databaseCores)),
    row('database: primaries, each with a standby', ({ primaries }) => whole(primaries)),
    row('connections to a primary, at most', connectionsText),
    row('applications that share the load, at least', ({ applications }) => whole(applications)),
    row('write-ahead log', ({ walBytesPerSecond }) => `${bytes(walBytesPerSecond)}/s`),
    row('page writes a second', ({ pagesWrittenPerSecond }) => whole(pagesWrittenPerSecond)),
    row('live codes and limits', ({ recipientBytes }) => bytes(recipientBytes)),
    row('event log, 1 day', ({ eventLogBytesPerDay }) => bytes(eventLogBytesPerDay)),
    row('event log, 30 days', ({ eventLogBytesPerDay }) => bytes(30 * eventLogBytesPerDay)),
    row('commits a second, all primaries (simulated)', ({ simulated, primaries }) => {
      return whole(simulated.transactionsPerSecond * primaries)
    }),
    row('waits for the disk a second, each primary (simulated)', ({ simulated }) => {
      return whole(simulated.flushesPerSecond)
    }),
    row('steps in a transaction, time to the answer p50, p99 (simulated)', ({ simulated }) => {
      return `${simulated.stepsPerTransaction.toFixed(1)}; ${milliseconds(simulated.p50Ms)}, ${milliseconds(simulated.p99Ms)}`
    }),
    '',
    'One application, at most, in sends a second with one verify each, by how long a commit waits and how many steps share it:',
    '',
    '| a commit waits | 1 | 8 | 32 |',
    '| --- | --- | --- | --- |',
    ...ofApplication,
    '',
    'The model beside what was measured, all on one machine with the client, requests a second and p50:',
    '',
    '| | processes | applications | batch | measured | model | model ÷ measured |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...checks,
    '',
  ].join('\n')
}

function connectionsText({ connectionsPerPrimary }: Need): string {
  const text = whole(connectionsPerPrimary)
  return connectionsPerPrimary > assumed.connectionsPerPrimary ? `${text}: PgBouncer` : text
}

function costText(costs: Costs): string {
  const us = (ms: number) => whole(ms * 1000)
  return `${us(costs.nodeRequestMs)} µs of a node and ${us(costs.databaseRequestMs)} µs of the database. Each transaction adds ${us(costs.nodeTransactionMs)} and ${us(costs.databaseTransactionMs)} µs`
}

/** Bytes with a decimal unit. */
function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, count)) / 3)))
  const value = count / 1000 ** power
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[power]}`
}

const fingerprints = { begin: '<!-- plan:begin -->', end: '<!-- plan:end -->' } as const

if (import.meta.main) {
  if (!existsSync(resultsFile)) {
    process.stderr.write('There are no figures yet: bun run bench --only postgres\n')
    process.exit(2)
  }
  const markdown = planMarkdown(JSON.parse(readFileSync(resultsFile, 'utf8')))
  process.stdout.write(markdown)
  if (process.argv.includes('--readme')) {
    const file = join(import.meta.dir, '../docs/scale.md')
    const page = readFileSync(file, 'utf8')
    const [begin, end] = [page.indexOf(fingerprints.begin), page.indexOf(fingerprints.end)]
    if (begin < 0 || end < begin)
      throw new Error(`docs/scale.md has no ${fingerprints.begin} with a ${fingerprints.end} after it`)
    writeFileSync(
      file,
      `${page.slice(0, begin + fingerprints.begin.length)}\n\n${markdown}\n${page.slice(end)}`,
    )
  }
}
