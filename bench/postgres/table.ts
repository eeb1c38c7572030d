import { type Figure, markdown, milliseconds, type PartResult, perSecond, whole } from '../report.ts'
import { send, verifyAbsent, verifyWrong } from '../workloads.ts'
import type { Kind, Point, PostgresResults } from './results.ts'

const names: Readonly<Record<Kind, string>> = {
  send: send.name,
  wrong: verifyWrong.name,
  absent: verifyAbsent.name,
}
const kinds = ['send', 'wrong', 'absent'] as const

/** The unused share of the processors, at most, if they are the bottleneck. */
const mostUnused = 0.1

/** Rows that a verify may write. */
const mostWritten = 3

/** The start of the title, which identifies the rows of this part. */
const titleStart = 'PostgreSQL '

/** What was measured, as rows of the bench's table. */
export function postgresFigures(results: PostgresResults): PartResult {
  const { serverVersion, syncMs, limit, points, work, isQuick } = results
  const setups = [
    { applications: 1, batchSize: 32, name: 'one application' },
    { applications: 100, batchSize: 32, name: '100 applications' },
    { applications: 1, batchSize: 1, name: 'one application, a transaction for each step' },
    { applications: 100, batchSize: 1, name: '100 applications, a transaction for each step' },
  ]
  const rates = kinds.flatMap((kind) =>
    setups.flatMap(({ applications, batchSize, name }): Figure[] => {
      const found = points.filter(
        (point) =>
          point.kind === kind && point.applications === applications && point.batchSize === batchSize,
      )
      if (found.length === 0) return []
      const each = (of: (point: Point) => string) => found.map(of).join(' / ')
      return [
        {
          name: `${names[kind]}, ${name}, ${processes(found)}`,
          measured: `${each(({ share }) => share.toFixed(2))}: ${each((point) => whole(point.perSecond))} requests/s; p50 ${each(({ p50Ms }) => milliseconds(p50Ms))}, p99 ${each(({ p99Ms }) => milliseconds(p99Ms))}`,
        },
      ]
    }),
  )
  const many = kinds.flatMap((kind) => points.find((point) => point.kind === kind && isMost(point)) ?? [])
  const ofKinds = (of: (point: Point) => string) => many.map(of).join(' / ')
  return {
    title: `${titleStart}${serverVersion}, every commit on the disk (${milliseconds(syncMs)} a write), on this machine too: share of a bare Elysia route's requests per second${isQuick ? ' (a short run)' : ''}`,
    figures: [
      ...rates,
      {
        name: 'statements a send / wrong code / no live code: steps; looks for changes; all (4 processes, one application)',
        measured: `${ofKinds(({ stepTrips }) => stepTrips.toFixed(2))}; ${ofKinds(({ pollTrips }) => pollTrips.toFixed(2))}; ${ofKinds(({ roundTrips }) => roundTrips.toFixed(2))}`,
        aim: { text: 'steps ≤ 1', holds: many.every(({ stepTrips }) => stepTrips <= 1.005) },
      },
      {
        name: 'transactions that write, and write-ahead log, each',
        measured: `${ofKinds(({ transactions }) => transactions.toFixed(2))}; ${ofKinds(({ walBytes }) => whole(walBytes))} bytes`,
      },
      {
        name: 'processor time of otpost, PostgreSQL and client, each',
        measured: many
          .map((point) => [point.otpostUs, point.databaseUs, point.clientUs].map(whole).join(' + '))
          .join(' / ')
          .concat(' µs'),
      },
      {
        name: 'processors unused meanwhile',
        measured: ofKinds(({ unused }) => `${(unused * 100).toFixed(0)} %`),
        aim: {
          text: `≤ ${mostUnused * 100} %`,
          holds: many.every(({ unused }) => unused <= mostUnused),
        },
      },
      {
        name: 'rows written for a send / wrong code / no live code',
        measured: work.map(({ rowsWritten }) => rowsWritten.toFixed(2)).join(' / '),
        aim: {
          text: `verify ≤ ${mostWritten}`,
          holds: work.every(({ kind, rowsWritten }) => kind === 'send' || rowsWritten <= mostWritten + 0.01),
        },
      },
      {
        name: 'pages of memory looked at, and changed, for each',
        measured: `${work.map(({ blocksHit }) => blocksHit.toFixed(1)).join(' / ')}; ${work.map(({ blocksDirtied }) => blocksDirtied.toFixed(2)).join(' / ')}`,
      },
      {
        name: `\`UPDATE one SET n = n + 1 WHERE id = 1\` by ${limit.by}, 1 / 8 clients`,
        measured: `${whole(limit.oneClientPerSecond)} / ${whole(limit.eightClientsPerSecond)} a second`,
      },
    ],
    chart: {
      title: `Requests per second on PostgreSQL ${serverVersion}`,
      bars: kinds.flatMap((kind) =>
        points
          .filter((point) => point.kind === kind && point.applications === 1 && point.batchSize === 32)
          .map((point) => ({
            label: `${kind === 'send' ? 'send' : `verify, ${kind === 'wrong' ? 'wrong code' : 'no live code'}`}, ${point.processes} ${point.processes === 1 ? 'process' : 'processes'}`,
            value: point.perSecond,
            text: `${perSecond(point.perSecond)} (${point.share.toFixed(2)})`,
          })),
      ),
    },
  }
}

function processes(points: readonly Point[]): string {
  const counts = points.map((point) => point.processes)
  return `${counts.join(' / ')} ${counts.at(-1) === 1 ? 'process' : 'processes'}`
}

function isMost({ processes, applications, batchSize }: Point): boolean {
  return processes === 4 && applications === 1 && batchSize === 32
}

/** The first line of the table that `markdown` writes, also with its columns padded. */
const tableHeader = /^\| +\| measured +\| aim +\| holds +\|$/

/**
 * A page with the rows of this part replaced in the table of the bench, or added to the end of that table.
 *
 * @param page has a table as `markdown` writes it, and may have others
 */
export function withPostgresRows(page: string, result: PartResult): string {
  const lines = page.split('\n')
  const isRow = (line: string | undefined) => line?.startsWith('|') === true
  const rows = markdown([], [result]).trim().split('\n').filter(isRow).slice(2)
  const header = lines.findIndex((line) => tableHeader.test(line))
  if (header < 0) throw new Error('the page has no table of the bench')
  const endOfRows = (start: number, isLast: (line: string) => boolean) => {
    const length = lines.slice(start).findIndex((line) => !isRow(line) || isLast(line))
    return length < 0 ? lines.length : start + length
  }
  const tableEnd = endOfRows(header, () => false)
  const own = lines.findIndex(
    (line, index) => index > header && index < tableEnd && line.startsWith(`| **${titleStart}`),
  )
  if (own < 0) return lines.toSpliced(tableEnd, 0, ...rows).join('\n')
  const end = endOfRows(own + 1, (line) => line.startsWith('| **'))
  return lines.toSpliced(own, end - own, ...rows).join('\n')
}
