import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { requireStatus } from './measure.ts'
import type { Bench } from './servers.ts'
import { percentile } from './statistics.ts'
import type { Workload } from './workloads.ts'
import { connections, type LoadOptions } from './wrk.ts'

/** The latency of requests at a fixed rate, each from the instant it was due. */
export interface Latency {
  readonly requests: number
  /** Ascending. */
  readonly latenciesMs: readonly number[]
  /** How late this client itself sent the requests, ascending. It is a part of the latencies. */
  readonly delaysMs: readonly number[]
}

/**
 * Sends requests at a fixed rate during `work`, over as many connections as wrk has. A request is timed from the instant
 * it was due, so its wait for a connection counts too. A client that waits for each answer would hide a stall of the
 * server ("coordinated omission").
 */
export async function pace(
  bench: Bench,
  url: URL,
  workload: Workload,
  { perSecond, seed, population = 0 }: Omit<LoadOptions, 'seconds'> & { readonly perSecond: number },
  work: () => Promise<unknown>,
): Promise<Latency> {
  const numbers = [url.port, connections, perSecond, seed, population].map(String)
  const child = Bun.spawn([compiled(bench), ...numbers, workload.request, workload.says ?? ''], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const printed = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  try {
    await work()
  } finally {
    await child.stdin.end()
  }
  const [stdout, stderr] = await printed
  if ((await child.exited) !== 0) throw new Error(stderr.trim())
  const { statuses, latencyUs, lateUs } = JSON.parse(stdout)
  requireStatus(workload, new Map(statuses))
  return { requests: latencyUs.length, latenciesMs: ascendingMs(latencyUs), delaysMs: ascendingMs(lateUs) }
}

function ascendingMs(microseconds: number[]): number[] {
  return microseconds.sort((a, b) => a - b).map((value) => value / 1000)
}

export function percentilesOf({ latenciesMs, delaysMs }: Latency) {
  return {
    p50Ms: percentile(latenciesMs, 50),
    p99Ms: percentile(latenciesMs, 99),
    p999Ms: percentile(latenciesMs, 99.9),
    maxMs: percentile(latenciesMs, 100),
    delayP99Ms: percentile(delaysMs, 99),
  }
}

/** The client, which is in C for its precision. */
function compiled({ folder }: Bench): string {
  const program = join(folder, 'pacer')
  if (existsSync(program)) return program
  const { success, stderr } = Bun.spawnSync(['cc', '-O2', '-o', program, join(import.meta.dir, 'pacer.c')])
  if (!success) throw new Error(`the client could not be compiled: ${stderr}`)
  return program
}
