import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { fill } from '../fill.ts'
import { measure, newSeed, repeat } from '../measure.ts'
import { type PartResult, perSecond, rowCount, spread } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { median } from '../statistics.ts'
import { send } from '../workloads.ts'

/** The least share of the smallest table's throughput that is aimed at. */
const aim = 0.8

/** Up to so many rows a table is filled anew for each measurement, since the sends of one would multiply it. */
const soonOutgrown = 1e5

/**
 * Sends per second with ever more live rows in the tables, as a share of those with the fewest, measured in turns. The
 * rows are those at the start of a measurement, which adds the ones of its own sends.
 */
export async function rows(
  bench: Bench,
  { rows: sizes, rounds, seconds, warmupSeconds }: Scale,
): Promise<PartResult> {
  const files = new Map<number, string>()
  const fileOf = async (size: number) => {
    const existing = files.get(size)
    if (existing !== undefined) return existing
    const file = await bench.database(`rows-${size}`)
    fill(file, size, Date.now())
    files.set(size, file)
    return file
  }

  const measured = new Map(sizes.map((size) => [size, [] as number[]]))
  await repeat(rounds, async () => {
    const rates: [size: number, perSecond: number][] = []
    for (const size of sizes) {
      const service = await bench.otpost({ databaseFile: await fileOf(size) })
      await measure(service, send, { seconds: warmupSeconds, seed: newSeed() })
      const load = await measure(service, send, { seconds, seed: newSeed() })
      await service.stop()
      rates.push([size, load.perSecond])
      if (size <= soonOutgrown) files.delete(size)
    }
    for (const [size, perSecond] of rates) measured.get(size)?.push(perSecond)
  })
  for (const file of files.values()) rmSync(dirname(file), { recursive: true })

  const [fewest = 0] = sizes
  const base = measured.get(fewest) ?? []
  const results = [...measured].map(([size, rates]) => {
    const shares = rates.map((rate, round) => rate / (base[round] ?? 0))
    return { size, rate: median(rates), share: median(shares), shares }
  })
  const most = Math.max(...sizes)
  return {
    title: `Sends per second by live rows in the tables, as a share of those with ${rowCount(fewest)}`,
    figures: results.map(({ size, rate, share, shares }) => ({
      name: `${rowCount(size)} rows`,
      measured: size === fewest ? perSecond(rate) : `${spread(share, shares)}: ${perSecond(rate)}`,
      ...(size === most ? { aim: { text: `≥ ${aim.toFixed(2)}`, holds: share >= aim } } : {}),
    })),
  }
}
