import { join } from 'node:path'
import { type Measured, measure, newSeed, repeat, sendFactor } from '../measure.ts'
import { loadText, type PartResult } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { median } from '../statistics.ts'
import { send, type Workload, workloads } from '../workloads.ts'

/**
 * The processor time of each kind of request, of the whole server, and of a bare Elysia route in turns with it. The
 * rates are shares of the bare route's, since a machine gets slower and faster over the minutes.
 */
export async function cpu(bench: Bench, { rounds, seconds, warmupSeconds }: Scale): Promise<PartResult> {
  const service = await bench.otpost({ databaseFile: await bench.database('cpu') })
  const bare = await bench.start([process.execPath, join(import.meta.dir, '../bare.ts')])
  const bareRoute: Workload = { ...send, name: 'a bare Elysia route', maxUs: undefined }
  const measured = new Map([bareRoute, ...workloads].map((workload) => [workload, [] as Measured[]]))

  await repeat(rounds + 1, async (round) => {
    // The first round warms both up and is left out.
    const lasting = round === 0 ? warmupSeconds : seconds
    let sent = { seed: 0, population: 0 }
    const loads: [Workload, Measured][] = []
    for (const workload of measured.keys()) {
      const draw = workload.to === 'recipients' ? sent : { seed: newSeed(), population: 0 }
      const load = await measure(workload === bareRoute ? bare : service, workload, {
        seconds: workload === send ? lasting * sendFactor : lasting,
        ...draw,
      })
      if (workload === send) sent = { seed: draw.seed, population: load.requests }
      loads.push([workload, load])
    }
    if (round > 0) for (const [workload, load] of loads) measured.get(workload)?.push(load)
  })
  await Promise.all([service.stop(), bare.stop()])

  const bares = measured.get(bareRoute) ?? []
  return {
    title: `CPU time of a request, all threads of the server, median of ${rounds} rounds`,
    figures: [...measured].map(([workload, loads]) => {
      const cpuUs = median(loads.map((load) => load.cpuUs))
      const share = median(loads.map((load, round) => load.perSecond / (bares[round]?.perSecond ?? 0)))
      const { maxUs } = workload
      return {
        name: workload.name,
        measured: `${loadText(loads)}; ${share.toFixed(2)} of the bare route's rate`,
        aim: maxUs === undefined ? undefined : { text: `≤ ${maxUs} µs`, holds: cpuUs <= maxUs },
      }
    }),
  }
}
