import { processorUs } from './processor.ts'
import type { Server } from './servers.ts'
import type { Workload } from './workloads.ts'
import { connections, type Load, type LoadOptions, wrk } from './wrk.ts'

/** A load, and the processor time of one of its requests over all processes of the server. */
export interface Measured extends Load {
  readonly cpuUs: number
}

/** How many answers may have another status: repeated random numbers, and codes guessed by chance. */
const mayDiffer = 0.005

/** For what a server does after its answers, such as its event log. */
const settleMs = 200

/**
 * Drives a server, and checks that it did the measured work: a rejection is faster than a send. The log of otpost has
 * the status of each request; of another server, wrk counts the failures.
 */
export async function measure(
  server: Pick<Server, 'url' | 'pids' | 'statuses'>,
  workload: Workload,
  options: LoadOptions,
): Promise<Measured> {
  const before = processorUs(server.pids)
  const load = await wrk(server.url, workload.request, options)
  await Bun.sleep(settleMs)
  const cpuUs = (processorUs(server.pids) - before) / load.requests
  const [expected = 0] = workload.statuses
  const right = expected < 400 ? load.requests - load.above399 : load.above399
  const logged = workload.isLogged === false ? undefined : await server.statuses?.(load.requests)
  const counted = new Map([
    [expected, right],
    [0, load.requests - right],
  ])
  requireStatus(workload, logged ?? counted)
  return { ...load, cpuUs }
}

export function requireStatus(
  { name, statuses: expected }: Workload,
  statuses: ReadonlyMap<number, number>,
): void {
  const all = [...statuses]
  const total = all.reduce((sum, [, count]) => sum + count, 0)
  const right = all.reduce((sum, [status, count]) => sum + (expected.includes(status) ? count : 0), 0)
  // wrk abandons a request of each connection at its end. The log can have it with the next load.
  if (right > total / 2 && total - right <= connections + total * mayDiffer) return
  const found = all.map(([code, count]) => `${count} × ${code}`).join(', ')
  throw new Error(`${name} should answer ${expected.join(' or ')}, but answered ${found || 'nothing'}`)
}

/** How much longer the sends take than the wrong codes that follow, so that no code runs out of attempts. */
export const sendFactor = 2

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
