import { join } from 'node:path'
import { fill } from '../fill.ts'
import { type Figure, milliseconds, type PartResult, whole } from '../report.ts'
import type { Scale } from '../scale.ts'
import { type Bench, root } from '../servers.ts'
import { median } from '../statistics.ts'

const aimMs = 200

/** From the start of the compiled program to its first answer, and of the source where no binary was given. */
export async function start(bench: Bench, { starts, filledRows }: Scale): Promise<PartResult> {
  const empty = await bench.database('start-empty')
  const filled = await bench.database('start-filled')
  fill(filled, filledRows, Date.now())
  const binary = bench.binary ?? compiled()
  const cases = [
    { name: 'binary, empty database', databaseFile: empty, binary, aimMs },
    { name: `binary, ${whole(filledRows)} recipients`, databaseFile: filled, binary, aimMs: undefined },
    ...(bench.binary === undefined
      ? [{ name: 'source, empty database', databaseFile: empty, binary: undefined, aimMs: undefined }]
      : []),
  ]
  const times = cases.map((): number[] => [])
  for (let count = 0; count < starts; count += 1) {
    for (const [index, { databaseFile, binary }] of cases.entries()) {
      const startedAt = performance.now()
      const service = await bench.otpost({ databaseFile, ...(binary === undefined ? {} : { binary }) })
      times[index]?.push(performance.now() - startedAt)
      await service.stop()
    }
  }
  return {
    title: `Start of the process to its first answer, median of ${starts}`,
    figures: cases.map(({ name, aimMs }, index): Figure => {
      const middle = median(times[index] ?? [])
      return {
        name,
        measured: milliseconds(middle),
        aim: aimMs === undefined ? undefined : { text: `≤ ${aimMs} ms`, holds: middle <= aimMs },
      }
    }),
  }
}

/** The binary of this source: built now, so that it is no older one. */
function compiled(): string {
  const { success, stderr } = Bun.spawnSync([process.execPath, 'release/build.ts'], { cwd: root })
  if (!success) throw new Error(`the binary could not be built: ${stderr.toString()}`)
  return join(root, 'dist', process.platform === 'win32' ? 'otpost.exe' : 'otpost')
}
