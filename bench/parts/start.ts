import { join } from 'node:path'
import { fill } from '../fill.ts'
import { milliseconds, type PartResult, rowCount } from '../report.ts'
import type { Scale } from '../scale.ts'
import { type Bench, root } from '../servers.ts'
import { median } from '../statistics.ts'

const aimMs = { empty: 300, filled: 1000 } as const

/** From the start of the process to its first answer: what the run measures, and the compiled program beside it. */
export async function start(bench: Bench, { starts, sweptRows }: Scale): Promise<PartResult> {
  const empty = await bench.database('start-empty')
  const filled = await bench.database('start-filled')
  fill(filled, sweptRows, Date.now())
  const binary = compiled()
  const times = { empty: [] as number[], filled: [] as number[], compiled: [] as number[] }
  for (let count = 0; count < starts; count += 1) {
    times.empty.push(await startMs(bench, empty))
    times.compiled.push(await startMs(bench, empty, binary))
    times.filled.push(await startMs(bench, filled))
  }
  const [emptyMs, filledMs, compiledMs] = [median(times.empty), median(times.filled), median(times.compiled)]
  return {
    title: `Start of the process to its first answer, median of ${starts}`,
    figures: [
      {
        name: 'empty database',
        measured: milliseconds(emptyMs),
        aim: { text: `≤ ${aimMs.empty} ms`, holds: emptyMs <= aimMs.empty },
      },
      {
        name: 'empty database, `dist/otpost`',
        measured: milliseconds(compiledMs),
        aim: { text: `≤ ${aimMs.empty} ms`, holds: compiledMs <= aimMs.empty },
      },
      {
        name: `${rowCount(sweptRows)} rows`,
        measured: milliseconds(filledMs),
        aim: { text: `≤ ${aimMs.filled} ms`, holds: filledMs <= aimMs.filled },
      },
    ],
  }
}

/** The binary of this source: built now, so that it is no older one. */
function compiled(): string {
  const { success, stderr } = Bun.spawnSync([process.execPath, 'release/build.ts'], { cwd: root })
  if (!success) throw new Error(`the binary could not be built: ${stderr.toString()}`)
  return join(root, 'dist', process.platform === 'win32' ? 'otpost.exe' : 'otpost')
}

async function startMs(bench: Bench, databaseFile: string, binary?: string): Promise<number> {
  const startedAt = performance.now()
  const service = await bench.otpost({ databaseFile, ...(binary === undefined ? {} : { binary }) })
  const elapsedMs = performance.now() - startedAt
  await service.stop()
  return elapsedMs
}
