import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Names this process among those that share a database: its machine, ID and start time, separated by spaces. */
export function processOwner(): string {
  return `${machine()} ${process.pid} ${startOf(process.pid)}`
}

/**
 * Whether the process has certainly ended. False for a process of another machine.
 * @param isLocal only this machine uses the database, so that processes from before its last boot have ended
 */
export function hasEnded(owner: string, { isLocal }: { readonly isLocal: boolean }): boolean {
  const [ownMachine = '', pid, start] = owner.split(' ')
  if (ownMachine !== machine()) {
    const boot = bootOf(ownMachine)
    return isLocal && Boolean(boot) && boot !== bootOf(machine())
  }
  if (start !== unknownStart) return startOf(Number(pid)) !== start
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}

const unknownStart = '-'

/** In clock ticks since the system started; an ID is used again, a start time with it is not. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses that may have spaces.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? unknownStart
  } catch {
    return pid === process.pid ? unknownStart : ''
  }
}

function bootOf(machine: string): string | undefined {
  return machine.split('/')[1]
}

/** Containers of a machine have IDs of their own. */
function machine(): string {
  const part = (read: () => string) => {
    try {
      return read().trim()
    } catch {
      return ''
    }
  }
  const boot = part(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))
  const namespace = part(() => readlinkSync('/proc/self/ns/pid'))
  return [hostname(), boot, namespace].join('/').replaceAll(' ', '_')
}
