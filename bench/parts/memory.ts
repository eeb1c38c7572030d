import { measure, newSeed } from '../measure.ts'
import { residentBytes } from '../processor.ts'
import { type Figure, megabytes, type PartResult, whole } from '../report.ts'
import { idleMs, type Scale } from '../scale.ts'
import type { Bench } from '../servers.ts'
import { send } from '../workloads.ts'

const mebibyte = 2 ** 20

/** The memory of the server, idle and after many sends without a pause. */
export async function memory(bench: Bench, { memorySends, seconds }: Scale): Promise<PartResult> {
  const service = await bench.otpost({ databaseFile: await bench.database('memory') })
  await Bun.sleep(idleMs)
  const figures: Figure[] = [atMost('idle', residentBytes(service), 60 * mebibyte)]
  let sent = 0
  for (const sends of memorySends) {
    while (sent < sends) sent += (await measure(service, send, { seconds, seed: newSeed() })).requests
    figures.push(atMost(`after ${whole(sent)} sends`, residentBytes(service), 120 * mebibyte))
  }
  await service.stop()
  return { title: 'Memory of the process (RSS)', figures }
}

function atMost(name: string, bytes: number, aimBytes: number): Figure {
  const aim = { text: `≤ ${megabytes(aimBytes)}`, holds: bytes <= aimBytes }
  return { name, measured: megabytes(bytes), aim }
}
