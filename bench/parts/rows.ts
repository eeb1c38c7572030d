import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { fill } from '../fill.ts'
import { type Measured, measure, newSeed, repeat } from '../measure.ts'
import { loadText, type PartResult, spread, whole } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { median } from '../statistics.ts'
import { send } from '../workloads.ts'

/** The least share of the smallest table's throughput that is aimed at. */
const aim = 0.8

/**
 * Sends with few and with many live recipients in the tables, in turns. A table of few is filled anew for each
 * measurement, since the sends of one would multiply it.
 */
export async function rows(
  bench: Bench,
  { rows: sizes, rounds, seconds, warmupSeconds }: Scale,
): Promise<PartResult> {
  const [few, many] = sizes
  const manyFile = await bench.database('rows-many')
  fill(manyFile, many, Date.now())
  const pairs: { few: Measured; many: Measured }[] = []
  const sends = async (databaseFile: string) => {
    const service = await bench.otpost({ databaseFile })
    try {
      // Short, since its sends fill the smaller table.
      await measure(service, send, { seconds: Math.min(3, warmupSeconds), seed: newSeed() })
      return await measure(service, send, { seconds, seed: newSeed() })
    } finally {
      await service.stop()
    }
  }
  await repeat(rounds, async () => {
    const fewFile = await bench.database('rows-few')
    fill(fewFile, few, Date.now())
    pairs.push({ few: await sends(fewFile), many: await sends(manyFile) })
  })
  rmSync(dirname(manyFile), { recursive: true })

  const shares = pairs.map((pair) => pair.many.perSecond / pair.few.perSecond)
  const costs = pairs.map((pair) => pair.many.cpuUs / pair.few.cpuUs)
  const share = median(shares)
  return {
    title: 'Sends by live recipients in the tables',
    figures: [
      {
        name: `${whole(few)} recipients`,
        measured: `${loadText(pairs.map((pair) => pair.few))}, share 1.00`,
      },
      {
        name: `${whole(many)} recipients`,
        measured: `${loadText(pairs.map((pair) => pair.many))}, share ${spread(share, shares)}; CPU × ${spread(median(costs), costs)}`,
        aim: { text: `share ≥ ${aim.toFixed(2)}`, holds: share >= aim },
      },
    ],
  }
}
