import { join } from 'node:path'
import { measure, newSeed, repeat } from '../measure.ts'
import { type PartResult, perSecond, spread } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { median } from '../statistics.ts'
import { send, verifyAbsent, verifyWrong, type Workload, workloads } from '../workloads.ts'
import { type Load, wrk } from '../wrk.ts'

/** The least share of a bare route's requests per second that is aimed at. */
const aims = new Map<Workload, number>([
  [send, 0.5],
  [verifyWrong, 0.65],
  [verifyAbsent, 0.65],
])

interface Pair {
  readonly own: Load
  readonly bare: Load
}

/**
 * Requests per second over those of a bare Elysia route that answers the same. Both are measured in turns, the first of
 * them alternately, so that a machine that gets slower or faster over the minutes does so for both.
 */
export async function ratios(bench: Bench, { rounds, seconds, warmupSeconds }: Scale): Promise<PartResult> {
  const service = await bench.otpost({ databaseFile: await bench.database('ratios') })
  const bare = await bench.start([process.execPath, join(import.meta.dir, '../bare.ts')])
  const measured = new Map(workloads.map((workload) => [workload, [] as Pair[]]))

  await repeat(rounds + 1, async (round) => {
    // The first round warms both up and is left out.
    const options = { seconds: round === 0 ? warmupSeconds : seconds }
    let sent = { seed: 0, population: 0 }
    const pairs: [Workload, Pair][] = []
    for (const workload of workloads) {
      const draw = workload.to === 'recipients' ? sent : { seed: newSeed(), population: 0 }
      const turns = {
        own: () => measure(service, workload, { ...options, ...draw }),
        bare: () => wrk(bare.url, { ...workload.call, path: workload.barePath }, { ...options, ...draw }),
      }
      const pair =
        round % 2 === 0
          ? { own: await turns.own(), bare: await turns.bare() }
          : { bare: await turns.bare(), own: await turns.own() }
      if (workload === send) sent = { seed: draw.seed, population: pair.own.requests }
      pairs.push([workload, pair])
    }
    if (round > 0) for (const [workload, pair] of pairs) measured.get(workload)?.push(pair)
  })
  await Promise.all([service.stop(), bare.stop()])

  const rows = [...measured].map(([workload, pairs]) => {
    const shares = pairs.map(({ own, bare }) => own.perSecond / bare.perSecond)
    return {
      workload,
      shares,
      share: median(shares),
      own: median(pairs.map(({ own }) => own.perSecond)),
      bare: median(pairs.map(({ bare }) => bare.perSecond)),
      aim: aims.get(workload),
    }
  })
  return {
    title: `Share of a bare Elysia route's requests per second, median of ${rounds} rounds (least–greatest)`,
    figures: rows.map(({ workload, shares, share, own, bare, aim }) => ({
      name: workload.name,
      measured: `${spread(share, shares)}: ${perSecond(own)} of ${perSecond(bare)}`,
      ...(aim === undefined ? {} : { aim: { text: `≥ ${aim.toFixed(2)}`, holds: share >= aim } }),
    })),
    chart: {
      title: 'Requests per second, as a share of a bare Elysia route’s',
      bars: rows.map(({ workload, share, aim }) => ({
        label: workload.name.replaceAll('`', ''),
        value: share,
        text: share.toFixed(2),
        ...(aim === undefined ? {} : { aim }),
      })),
    },
  }
}
