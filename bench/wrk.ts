import { join } from 'node:path'

/** What wrk measured. */
export interface Load {
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers with a status of 400 or more. */
  readonly above399: number
}

export interface LoadOptions {
  readonly seconds: number
  /** What the phone numbers are drawn from. */
  readonly seed: number
  /** Draw from the numbers that so many requests of this seed went to, instead of new ones. */
  readonly population?: number
  readonly connections?: number
}

/** The connections of every measurement that does not say otherwise. */
export const connections = 64

/** The first line of `wrk -v`, or undefined where it is not installed. */
export function wrkVersion(): string | undefined {
  if (Bun.which('wrk') === null) return undefined
  const { stdout } = Bun.spawnSync(['wrk', '-v'])
  return /^wrk \S+/.exec(String(stdout))?.[0]
}

/** Drives a server as fast as it answers, from one thread of wrk, which leaves a core to the server on two. */
export async function wrk(url: URL, request: string, options: LoadOptions): Promise<Load> {
  const { seconds, seed, population = 0 } = options
  const child = Bun.spawn(
    [
      'wrk',
      ...['--threads', '1', '--connections', String(options.connections ?? connections)],
      ...['--duration', `${seconds}s`, '--timeout', '10s', '--script', join(import.meta.dir, 'requests.lua')],
      ...[url.origin, '--', request, String(seed), String(population)],
    ],
    { stdout: 'pipe', stderr: 'pipe' },
  )
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  const result = /^RESULT (.*)$/m.exec(stdout)?.[1]
  if (result === undefined) throw new Error(`wrk failed:\n${stdout}${stderr}`)
  const { broken, seconds: lasted, ...load } = JSON.parse(result)
  if (broken > 0) throw new Error(`${broken} requests broke off: ${request.split('\r\n')[0]}`)
  return { ...load, perSecond: load.requests / lasted }
}
