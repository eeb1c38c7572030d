import type { Otpost } from './servers.ts'
import type { Workload } from './workloads.ts'
import { type Load, type LoadOptions, wrk } from './wrk.ts'

/**
 * The share of answers that must have the measured status. The others are repeated random numbers,
 * codes guessed by chance, and requests that wrk abandoned at its end.
 */
const leastShare = 0.995

/** Drives the service, and checks in its log that it did the measured work: a rejection is faster than a send. */
export async function measure(server: Otpost, workload: Workload, options: LoadOptions): Promise<Load> {
  const load = await wrk(server.url, workload.call, options)
  requireStatus(workload, await server.statuses(load.requests))
  return load
}

export function requireStatus(
  { name, status }: Pick<Workload, 'name' | 'status'>,
  statuses: ReadonlyMap<number, number>,
): void {
  const total = [...statuses.values()].reduce((sum, count) => sum + count, 0)
  if ((statuses.get(status) ?? 0) >= total * leastShare && total > 0) return
  const found = [...statuses].map(([code, count]) => `${count} × ${code}`).join(', ')
  throw new Error(`${name} should answer ${status}, but answered ${found || 'nothing'}`)
}

let nextSeed = 1

/** A seed that no other measurement of this run has, so that its phone numbers are new ones. */
export function newSeed(): number {
  nextSeed += 1
  return nextSeed
}

/**
 * Repeats a round until enough have succeeded. A round can fail after a pause of the machine, such as from a
 * lack of codes to guess. It is left out. A server that does not do the measured work fails all rounds.
 */
export async function repeat(rounds: number, round: (index: number) => Promise<void>): Promise<void> {
  let failures = 0
  for (let index = 0; index < rounds; ) {
    try {
      await round(index)
      index += 1
    } catch (error) {
      failures += 1
      if (failures > rounds) throw error
      process.stderr.write(`(a round is repeated: ${error instanceof Error ? error.message : error}) `)
    }
  }
}
