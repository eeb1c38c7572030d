import { readdirSync, readFileSync } from 'node:fs'

/** Ticks of a processor that some have used, since they began. */
export interface ProcessorTimes {
  readonly otpost: number
  readonly database: number
  readonly client: number
  /** Of all processors of the machine: in which nothing ran, also while a disk was waited for. */
  readonly unused: number
  readonly all: number
}

/** Ticks per second, the unit of time in /proc. */
export const ticksPerSecond = Number(Bun.spawnSync(['getconf', 'CLK_TCK']).stdout.toString()) || 100

/**
 * @param otpost ids of the processes of the service
 * @param postmaster id of the process that has those of the server as its children
 */
export function processorTimes(otpost: readonly number[], postmaster: number): ProcessorTimes {
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === postmaster)
  const of = (pids: readonly (number | string)[]) => sum(pids.map((pid) => statOf(pid).own))
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softIrq = 0, stolen = 0] =
    machineTimes()
  return {
    otpost: of(otpost),
    // The time of a backend that has ended counts for its parent.
    database: of([postmaster, ...children]) + statOf(postmaster).ended,
    // The clients were children of this process, and have ended by now.
    client: statOf('self').ended,
    unused: idle + waiting,
    all: user + nice + system + idle + waiting + irq + softIrq + stolen,
  }
}

/** The processor time between two measurements. */
export function usedBetween(before: ProcessorTimes, after: ProcessorTimes): ProcessorTimes {
  return {
    otpost: after.otpost - before.otpost,
    database: after.database - before.database,
    client: after.client - before.client,
    unused: after.unused - before.unused,
    all: after.all - before.all,
  }
}

function machineTimes(): number[] {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n')
  return line.trim().split(/\s+/).slice(1).map(Number)
}

function parentOf(pid: string): number {
  return statOf(pid).parent
}

/** Nothing of a process that has ended meanwhile. */
function statOf(pid: number | string): { parent: number; own: number; ended: number } {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return { parent: 0, own: 0, ended: 0 }
  }
  // The name, in parentheses, may have spaces.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15)
  return { parent: fields[1] ?? 0, own: user + system, ended: endedUser + endedSystem }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
