import { measure, newSeed } from '../measure.ts'
import { residentBytes } from '../processor.ts'
import { megabytes, type PartResult, whole } from '../report.ts'
import type { Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { send } from '../workloads.ts'

/** How much the memory may grow from few sends to many. */
const mayGrow = 0.1

/** The memory of the server, idle and after many sends. */
export async function memory(
  bench: Bench,
  { memorySends: [few, many], seconds }: Scale,
): Promise<PartResult> {
  const service = await bench.otpost({ databaseFile: await bench.database('memory') })
  const idle = residentBytes(service)
  let sent = 0
  const after = async (sends: number) => {
    while (sent < sends) sent += (await measure(service, send, { seconds, seed: newSeed() })).requests
    return { sent, bytes: residentBytes(service) }
  }
  const early = await after(few)
  const late = await after(many)
  await service.stop()

  const growth = late.bytes / early.bytes - 1
  return {
    title: 'Memory of the process (RSS)',
    figures: [
      { name: 'idle', measured: megabytes(idle) },
      { name: `after ${whole(early.sent)} sends`, measured: megabytes(early.bytes) },
      {
        name: `after ${whole(late.sent)} sends`,
        measured: `${megabytes(late.bytes)} (${growth < 0 ? '−' : '+'}${Math.abs(growth * 100).toFixed(0)} %)`,
        aim: { text: `≤ +${mayGrow * 100} %`, holds: growth <= mayGrow },
      },
    ],
  }
}
