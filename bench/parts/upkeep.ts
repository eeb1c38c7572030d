import { join } from 'node:path'
import { fill, hasExpiredRows } from '../fill.ts'
import { newSeed } from '../measure.ts'
import { pace, percentilesOf } from '../paced.ts'
import { type Figure, megabytes, milliseconds, type PartResult, whole } from '../report.ts'
import type { Scale } from '../scale.ts'
import { type Bench, fileBytes, type Otpost } from '../servers.ts'
import { send } from '../workloads.ts'

/** Sends that go on meanwhile. */
const perSecond = 500
const aims = { p99Ms: 20, logBytes: 16 * 2 ** 20 } as const
const quietMs = 5000

/** For the deletion of all rows, and until the file has its last size. */
const patienceMs = 600_000
const settleMs = 10_000

/** What `otpost backup`, `otpost forget` and the deletion of expired rows cost the sends that go on meanwhile. */
export async function upkeep(bench: Bench, { filledRows }: Scale): Promise<PartResult> {
  const live = await bench.database('live')
  fill(live, filledRows, Date.now())
  const env = { DATABASE_URL: `file:${live}` }
  const service = await bench.otpost({ databaseFile: live })
  await during(bench, 'warm-up', service, () => Bun.sleep(quietMs))
  const figures = [
    await during(bench, 'no other work', service, () => Bun.sleep(quietMs)),
    await during(bench, '`otpost backup`', service, () =>
      bench.command(env, 'backup', join(bench.folder, 'copy.db')),
    ),
    await during(bench, '`otpost forget`', service, () => bench.command(env, 'forget', '12025550143')),
  ]
  await service.stop()

  const expired = await bench.database('expired')
  const now = Date.now()
  fill(expired, filledRows, now - 2 * 3_600_000)
  const before = fileBytes(expired)
  const other = await bench.otpost({ databaseFile: expired })
  figures.push(
    await during(bench, 'deletion of all rows, which have expired', other, async () => {
      while (hasExpiredRows(expired, now)) {
        if (Date.now() > now + patienceMs) throw new Error('expired rows are not deleted')
        await Bun.sleep(250)
      }
    }),
  )
  await Bun.sleep(settleMs)
  const [after, log] = [fileBytes(expired), fileBytes(`${expired}-wal`)]
  await other.stop()
  return {
    title: `Upkeep of ${whole(filledRows)} recipients, with ${perSecond} sends/s meanwhile`,
    figures: [
      ...figures,
      {
        name: 'database file before and after the deletion',
        measured: `${megabytes(before)}, ${megabytes(after)}`,
        aim: { text: 'shrinks', holds: after < before / 2 },
      },
      {
        name: 'write-ahead log after it',
        measured: megabytes(log),
        aim: { text: `≤ ${megabytes(aims.logBytes)}`, holds: log <= aims.logBytes },
      },
    ],
  }
}

/** Sends at the fixed rate while something else goes on. */
async function during(
  bench: Bench,
  name: string,
  service: Otpost,
  work: () => Promise<unknown>,
): Promise<Figure> {
  let seconds = 0
  const latency = await pace(bench, service.url, send, { seed: newSeed(), perSecond }, async () => {
    const startedAt = performance.now()
    await work()
    seconds = (performance.now() - startedAt) / 1000
  })
  const { p50Ms, p99Ms, maxMs } = percentilesOf(latency)
  return {
    name: `${name}, ${seconds.toFixed(1)} s: p50, p99, longest`,
    measured: [p50Ms, p99Ms, maxMs].map(milliseconds).join(', '),
    aim: { text: `p99 ≤ ${aims.p99Ms} ms`, holds: p99Ms <= aims.p99Ms },
  }
}
