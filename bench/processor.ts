import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Ticks per second, the unit of processor time in /proc. */
const ticksPerSecond = Number(Bun.spawnSync(['getconf', 'CLK_TCK']).stdout.toString()) || 100

/** The processor time, in microseconds, that some processes and their children have used since they started. */
export function processorUs(pids: readonly number[]): number {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? statOf(Number(name)) : []))
  const ticksOf = (pid: number): number =>
    all.reduce(
      (sum, stat) => sum + (stat.pid === pid ? stat.ticks : stat.parent === pid ? ticksOf(stat.pid) : 0),
      0,
    )
  return (pids.reduce((sum, pid) => sum + ticksOf(pid), 0) * 1e6) / ticksPerSecond
}

/** Nothing of a process that has ended meanwhile. Its time counts for its parent. */
function statOf(pid: number): { pid: number; parent: number; ticks: number }[] {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return []
  }
  // The name, in parentheses, may have spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  return [{ pid, parent: Number(fields[1]), ticks }]
}

/** The memory of a process that is in RAM: now, or the most since its start. */
export function residentBytes({ pid }: { readonly pid: number }, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  const status = `/proc/${pid}/status`
  const text = existsSync(status) ? readFileSync(status, 'utf8') : ''
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]
  if (!kilobytes) throw new Error('the server has ended by itself')
  return Number(kilobytes) * 1024
}
