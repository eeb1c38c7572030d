import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseUrl, queryOnce, startPostgres } from '../../test/support/postgres.ts'
import { measure, newSeed, repeat, sendFactor } from '../measure.ts'
import { processorUs } from '../processor.ts'
import { loadText, type PartResult, spread, whole } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench, Otpost } from '../servers.ts'
import { median } from '../statistics.ts'
import { send, verifyWrong, type Workload } from '../workloads.ts'
import { connections, type LoadOptions } from '../wrk.ts'

/** How many processes share the database. */
const setups = [1, 4] as const
const databaseName = 'bench'

/** PostgreSQL's defaults for durability. Checkpoints start by time, and none during a measurement. */
const serverSettings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '512MB',
  max_wal_size: '8GB',
}

/** A load on all processes. Processor time and bytes are those of one request. */
interface Point {
  readonly requests: readonly number[]
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of all processes of otpost. */
  readonly cpuUs: number
  readonly databaseUs: number
  readonly walBytes: number
  readonly storedBytes: number
}

interface Target {
  readonly url: string
  /** Empties it, if it is of this run. */
  prepare(): Promise<void>
  /** Undefined: on a server that was given. */
  readonly dataFolder: string | undefined
}

/**
 * What a request costs otpost and a real PostgreSQL on this machine, with one process and with four. With DATABASE_URL,
 * the rate on that server, whose database keeps what the run writes.
 */
export async function postgres(bench: Bench, { rounds, seconds, warmupSeconds }: Scale): Promise<PartResult> {
  const { DATABASE_URL: given } = process.env
  await using own = given === undefined ? await startPostgres(serverSettings) : undefined
  const target: Target = own
    ? {
        url: databaseUrl(own.url, databaseName),
        prepare: async () => {
          await own.query(`DROP DATABASE IF EXISTS ${databaseName} WITH (FORCE)`)
          await own.database(databaseName)
        },
        dataFolder: own.dataFolder,
      }
    : { url: given ?? '', prepare: async () => {}, dataFolder: undefined }
  await target.prepare()
  const [row] = await queryOnce(target.url, "SELECT current_setting('server_version') AS version")
  const keys = setups.flatMap((processes) => [send, verifyWrong].map((workload) => ({ processes, workload })))
  const measured = keys.map((): Point[] => [])
  await repeat(rounds, async () => {
    const points: Point[] = []
    for (const processes of setups) {
      const nodes = await start(bench, target, processes)
      try {
        for (const isWarmUp of [true, false]) {
          const lasting = isWarmUp ? warmupSeconds : seconds
          const draws = nodes.map(() => ({ seconds: lasting * sendFactor, seed: newSeed() }))
          const sends = await drive(target, nodes, send, draws)
          const guesses = sends.requests.map((population, index) => ({
            seed: draws[index]?.seed ?? 0,
            seconds: lasting,
            population,
          }))
          const pair = [sends, await drive(target, nodes, verifyWrong, guesses)]
          if (!isWarmUp) points.push(...pair)
        }
      } finally {
        await Promise.all(nodes.map((node) => node.stop()))
      }
    }
    for (const [index, point] of points.entries()) measured[index]?.push(point)
  })
  return {
    title: `PostgreSQL ${row?.version}${own ? ' on this machine, every commit on disk' : ', the server in DATABASE_URL'}, median of ${rounds} rounds`,
    figures: keys.map(({ processes, workload }, index) => {
      const points = measured[index] ?? []
      const middle = (of: (point: Point) => number) => whole(median(points.map(of)))
      const alone = measured[index % 2] ?? []
      const ratios = points.map((point, round) => point.perSecond / (alone[round]?.perSecond ?? Number.NaN))
      return {
        name: `${workload.name}, ${processes === 1 ? '1 process' : `${processes} processes`}`,
        measured: `otpost ${loadText(points)}; ${
          own
            ? `database ${middle(({ databaseUs }) => databaseUs)} µs, write-ahead log ${middle(({ walBytes }) => walBytes)} bytes, stored ${middle(({ storedBytes }) => storedBytes)} bytes; `
            : ''
        }rate ${spread(median(ratios), ratios)} of 1 process`,
      }
    }),
  }
}

async function start(bench: Bench, { url, prepare }: Target, processes: number): Promise<Otpost[]> {
  await prepare()
  const env = {
    DATABASE_URL: url,
    SECRET_KEY: 'the secret key of the benchmark that is 32 bytes or more',
  }
  await bench.putBrand(env)
  // After a checkpoint, the first change of a page writes the whole page to the log.
  await queryOnce(url, 'CHECKPOINT')
  return Promise.all(
    Array.from({ length: processes }, (_, index) =>
      // The file is that of its log.
      bench.otpost({ databaseFile: join(bench.folder, `postgres-${index}`), env }),
    ),
  )
}

/** Drives all processes at once, each with its share of the connections by a client of its own. */
async function drive(
  { url, dataFolder }: Target,
  nodes: readonly Otpost[],
  workload: Workload,
  draws: readonly LoadOptions[],
): Promise<Point> {
  const postmaster =
    dataFolder && Number(readFileSync(join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0])
  const used = async () => {
    const [row] = await queryOnce(
      url,
      "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 AS wal, pg_database_size(current_database())::float8 AS stored",
    )
    return {
      us: postmaster ? processorUs([postmaster]) : Number.NaN,
      wal: Number(row?.wal),
      stored: Number(row?.stored),
    }
  }
  const before = await used()
  const loads = await Promise.all(
    nodes.map((node, index) =>
      measure(node, workload, {
        seed: 0,
        seconds: 1,
        ...draws[index],
        connections: connections / nodes.length,
      }),
    ),
  )
  const after = await used()
  const sum = (of: (load: (typeof loads)[number]) => number) =>
    loads.reduce((total, load) => total + of(load), 0)
  const requests = sum((load) => load.requests)
  return {
    requests: loads.map((load) => load.requests),
    perSecond: sum((load) => load.perSecond),
    p50Ms: sum((load) => load.p50Ms * load.requests) / requests,
    p99Ms: Math.max(...loads.map((load) => load.p99Ms)),
    cpuUs: sum((load) => load.cpuUs * load.requests) / requests,
    databaseUs: (after.us - before.us) / requests,
    walBytes: (after.wal - before.wal) / requests,
    storedBytes: (after.stored - before.stored) / requests,
  }
}
