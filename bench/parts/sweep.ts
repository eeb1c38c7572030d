import { fill, hasRowsOver } from '../fill.ts'
import { measure, newSeed } from '../measure.ts'
import { pace, randomPhone } from '../paced.ts'
import { megabytes, milliseconds, type PartResult, rowCount, whole } from '../report.ts'
import type { Scale } from '../scale.ts'
import { type Bench, fileBytes } from '../servers.ts'
import { send } from '../workloads.ts'

const aimMs = { p99: 20, stall: 50 } as const
const walLimitBytes = 16 * 2 ** 20

/** After this time every row has expired: codes, windows of limits, and daily budgets. */
const pastEverythingMs = 25 * 3_600_000

/** Sends per second that go on while the old rows are removed. */
const meanwhilePerSecond = 1000

/** The time limit of each step. */
const patienceMs = 600_000

/** The file has settled when its size has not changed for so long: twice the sweeper's pause. */
const settleMs = 10_000

/**
 * Everything expires at once while sends go on: how long they take and the event loop stalls while the real sweeper
 * removes the rows, and what is left of the files when all is gone.
 */
export async function sweep(bench: Bench, { sweptRows, warmupSeconds }: Scale): Promise<PartResult> {
  const databaseFile = await bench.database('sweep')
  fill(databaseFile, sweptRows, Date.now())
  const sizes = () => ({ file: fileBytes(databaseFile), wal: fileBytes(`${databaseFile}-wal`) })
  const before = sizes()
  const service = await bench.otpost({ databaseFile, probe: true })
  await measure(service, send, { seconds: warmupSeconds, seed: newSeed() })
  const saturatedStallMs = await service.longestStallMs()

  const sending = await pace(service.url, send, { nextPhone: randomPhone, perSecond: meanwhilePerSecond })
  const walBytes: number[] = []
  const watch = async (isOver: () => boolean) => {
    const giveUpAt = performance.now() + patienceMs
    do {
      if (performance.now() > giveUpAt) throw new Error('what has expired is not removed')
      await Bun.sleep(250)
      walBytes.push(sizes().wal)
    } while (!isOver())
  }
  await service.advance(pastEverythingMs)
  const startedAt = performance.now()
  const expiredAt = Date.now() + pastEverythingMs
  await watch(() => !hasRowsOver(databaseFile, expiredAt))
  const sweepSeconds = (performance.now() - startedAt) / 1000
  const latency = await sending.stop()
  const stallMs = await service.longestStallMs()

  // Now the rows of the sends during the cleanup.
  await service.advance(pastEverythingMs)
  await watch(() => !hasRowsOver(databaseFile, Date.now() + 2 * pastEverythingMs))
  let settled = sizes()
  let settledAt = performance.now()
  await watch(() => {
    const now = sizes()
    if (now.file !== settled.file) settledAt = performance.now()
    settled = now
    return performance.now() - settledAt > settleMs
  })
  await service.stop()

  return {
    title: `Everything expires at once: ${rowCount(sweptRows)} recipients, with ${whole(meanwhilePerSecond)} sends/s meanwhile`,
    figures: [
      {
        name: 'longest stall of the event loop, at saturation before',
        measured: milliseconds(saturatedStallMs),
      },
      { name: 'until all rows were gone', measured: `${sweepSeconds.toFixed(1)} s` },
      {
        name: 'sends meanwhile, p50 and p99, and the longest stall',
        measured: `${milliseconds(latency.p50Ms)}, ${milliseconds(latency.p99Ms)}; stall ${milliseconds(stallMs)}`,
        aim: {
          text: `p99 ≤ ${aimMs.p99} ms, stall ≤ ${aimMs.stall} ms`,
          holds: latency.p99Ms <= aimMs.p99 && stallMs <= aimMs.stall,
        },
      },
      {
        name: 'database file, before and after',
        measured: `${megabytes(before.file)}, ${megabytes(settled.file)}`,
        aim: { text: 'shrinks', holds: settled.file < before.file / 2 },
      },
      {
        name: 'write-ahead log, at most and after',
        measured: `${megabytes(Math.max(...walBytes))}, ${megabytes(settled.wal)}`,
        aim: { text: `after ≤ ${megabytes(walLimitBytes)}`, holds: settled.wal <= walLimitBytes },
      },
    ],
  }
}
