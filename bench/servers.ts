import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brandId, credentials } from './workloads.ts'

export const root = join(import.meta.dir, '..')

/** How a process ended: with a code of its own, or by a signal. */
export interface End {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | number | null
}

/** A server process under measurement. */
export interface Server {
  readonly url: URL
  readonly pid: number
  /** Of all its processes, such as a database. Their children count too. */
  readonly pids: readonly number[]
  /** How many requests were answered with each status since the last call, if its log says so. */
  statuses?(atLeast: number): Promise<ReadonlyMap<number, number>>
  /** Ends it, and waits until it has; resolves to how it ended. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<End>
}

/** The service itself. */
export interface Otpost extends Server {
  statuses(atLeast: number): Promise<ReadonlyMap<number, number>>
  /** The lines of its log since the last call, which empties it: in a long run it would fill the disk. */
  takeLog(): string[]
}

export interface OtpostOptions {
  readonly databaseFile: string
  readonly env?: Readonly<Record<string, string>>
  /** A compiled otpost to start instead of what the run measures. */
  readonly binary?: string
  readonly port?: number
}

/** Where a run keeps its databases and logs, and what ends with it. */
export class Bench implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'otpost-bench-'))
  private readonly running = new Set<Bun.Subprocess>()

  /** @param binary a compiled otpost to measure instead of the source */
  constructor(readonly binary: string | undefined = undefined) {
    // No process and no file is left behind, however the run ends.
    process.on('exit', () => this.clear())
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  }

  /** A database with the brand that the requests name, in a folder of its own. */
  async database(name: string): Promise<string> {
    const databaseFile = join(this.emptyFolder(name), 'otpost.db')
    await this.putBrand({ DATABASE_URL: `file:${databaseFile}` })
    return databaseFile
  }

  emptyFolder(name: string): string {
    const folder = join(this.folder, name)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    return folder
  }

  /** Makes the brand that the requests name in the database of these settings, which gets its schema by that. */
  async putBrand(env: Readonly<Record<string, string>>): Promise<void> {
    await this.command(env, 'migrate')
    await this.command(env, 'brand', 'put', brandId, '--name', 'Acme')
  }

  /** Runs a command of otpost, and resolves to what it prints. */
  async command(env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<string> {
    const child = Bun.spawn([...this.program, ...args], {
      cwd: root,
      env: cleanEnv(env),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const printed = [child.stdout, child.stderr].map((stream) => new Response(stream).text())
    const [stdout = '', stderr] = await Promise.all(printed)
    if ((await child.exited) !== 0) throw new Error(`otpost ${args.join(' ')} failed: ${stderr}`)
    return stdout
  }

  /** Starts the service as an operator would, with a provider that takes no time; its log goes to a file. */
  async otpost({ databaseFile, env = {}, binary, port }: OtpostOptions): Promise<Otpost> {
    const logFile = `${databaseFile}.log`
    const program = binary === undefined ? this.program : [binary]
    const server = await this.start([...program, 'serve'], {
      env: { ...serviceEnv, DATABASE_URL: `file:${databaseFile}`, ...env },
      logFile,
      ...(port === undefined ? {} : { port }),
    })
    return {
      ...server,
      takeLog: () => {
        const text = readFileSync(logFile, 'utf8')
        truncateSync(logFile)
        return text.split('\n')
      },
      statuses: (atLeast) => readStatuses(logFile, atLeast),
    }
  }

  /** What runs the service. */
  private get program(): string[] {
    return this.binary === undefined ? [process.execPath, join(root, 'src/main.ts')] : [this.binary]
  }

  /** Starts a server that takes its port from PORT, and resolves once it answers. */
  async start(
    command: readonly string[],
    options: {
      readonly env?: Readonly<Record<string, string>>
      readonly logFile?: string
      readonly port?: number
      /** Whether the log file has its standard error too. */
      readonly logsErrors?: boolean
      readonly cwd?: string
      readonly healthPath?: string
      /** Whether it answers, if that is not a request to its health path. */
      readonly isUp?: (url: URL) => Promise<boolean>
    } = {},
  ): Promise<Server> {
    const {
      env = {},
      logFile,
      logsErrors = false,
      port = freePort(),
      cwd = root,
      healthPath = '/health',
      isUp = async (url) => (await fetch(new URL(healthPath, url), { headers: { connection: 'close' } })).ok,
    } = options
    // Opened for appending, so that it can be emptied while the server writes to it.
    const log = logFile === undefined ? undefined : openSync(logFile, 'a')
    const child = Bun.spawn([...command], {
      cwd,
      env: cleanEnv({ NODE_ENV: 'production', PORT: String(port), ...env }),
      stdin: 'ignore',
      stdout: log ?? 'ignore',
      stderr: logsErrors && log !== undefined ? log : 'inherit',
    })
    if (log !== undefined) closeSync(log)
    this.running.add(child)
    const url = new URL(`http://127.0.0.1:${port}`)
    await answered(() => isUp(url), child)
    return {
      url,
      pid: child.pid,
      pids: [child.pid],
      stop: async (signal = 'SIGTERM') => {
        child.kill(signal)
        await child.exited
        this.running.delete(child)
        return { exitCode: child.exitCode, signal: child.signalCode }
      },
    }
  }

  /** Ends all processes that still run. */
  async killAll(): Promise<void> {
    const left = [...this.running]
    for (const child of left) child.kill('SIGKILL')
    await Promise.all(left.map((child) => child.exited))
    this.running.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killAll()
    this.clear()
  }

  /** The same without waiting, for the end of this process. */
  private clear(): void {
    for (const child of this.running) child.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The service in production mode, without a provider: it drops SMS at once, and sends no mail. */
const serviceEnv = {
  NODE_ENV: 'production',
  OUTBOX_IN_PRODUCTION: '1',
  SMS_PLAIN: 'discard',
  APP_CREDENTIALS: JSON.stringify({ [credentials.appId]: credentials.apiKey }),
  GLOBAL_LIMIT_PER_MINUTE: '1000000000',
}

/** An environment with nothing of the developer's own settings in it. */
function cleanEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env
  return { PATH, HOME, ...env }
}

/** A port that nothing listens on. */
export function freePort(): number {
  const socket = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => undefined } })
  const { port } = socket
  socket.stop(true)
  return port
}

const patienceMs = 30_000

/** Waits until a server answers. Fails if the process ends or does not answer in time. */
async function answered(isUp: () => Promise<boolean>, child: Bun.Subprocess): Promise<void> {
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    if (child.exitCode !== null) throw new Error(`a server ended with ${child.exitCode} instead of listening`)
    if (performance.now() > giveUpAt) throw new Error(`a server did not answer within ${patienceMs} ms`)
    if (await isUp().catch(() => false)) return
    await Bun.sleep(1)
  }
}

/**
 * Counts the log's requests by their status and empties it. A line is written a little after its answer, and wrk leaves
 * requests unanswered when its time is up, so that the log is read when nothing has been added to it for a moment.
 */
async function readStatuses(logFile: string, atLeast: number): Promise<ReadonlyMap<number, number>> {
  const giveUpAt = performance.now() + 5000
  for (let size = -1; ; await Bun.sleep(50)) {
    const before = size
    size = fileBytes(logFile)
    if (size !== before && performance.now() < giveUpAt) continue
    const found = [...readFileSync(logFile, 'latin1').matchAll(/"status":(\d{3})/g)]
    if (found.length < atLeast && performance.now() < giveUpAt) continue
    truncateSync(logFile)
    const counts = new Map<number, number>()
    for (const [, status] of found) counts.set(Number(status), (counts.get(Number(status)) ?? 0) + 1)
    return counts
  }
}

/** The size of a file; 0 where there is none. */
export function fileBytes(path: string): number {
  return existsSync(path) ? Bun.file(path).size : 0
}
