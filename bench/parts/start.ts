import { fill } from '../fill.ts'
import { milliseconds, type PartResult, rowCount } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { median } from '../statistics.ts'

const aimMs = { empty: 300, filled: 1000 } as const

/** From the start of the process to its first answer. */
export async function start(bench: Bench, { starts, sweptRows }: Scale): Promise<PartResult> {
  const empty = await bench.database('start-empty')
  const filled = await bench.database('start-filled')
  fill(filled, sweptRows, Date.now())
  const times = { empty: [] as number[], filled: [] as number[] }
  for (let count = 0; count < starts; count += 1) {
    times.empty.push(await startMs(bench, empty))
    times.filled.push(await startMs(bench, filled))
  }
  const [emptyMs, filledMs] = [median(times.empty), median(times.filled)]
  return {
    title: `Start of the process to its first answer, median of ${starts}`,
    figures: [
      {
        name: 'empty database',
        measured: milliseconds(emptyMs),
        aim: { text: `≤ ${aimMs.empty} ms`, holds: emptyMs <= aimMs.empty },
      },
      {
        name: `${rowCount(sweptRows)} rows`,
        measured: milliseconds(filledMs),
        aim: { text: `≤ ${aimMs.filled} ms`, holds: filledMs <= aimMs.filled },
      },
    ],
  }
}

async function startMs(bench: Bench, databaseFile: string): Promise<number> {
  const startedAt = performance.now()
  const service = await bench.otpost({ databaseFile })
  const elapsedMs = performance.now() - startedAt
  await service.stop()
  return elapsedMs
}
