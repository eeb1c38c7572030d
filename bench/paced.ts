import { requireStatus } from './measure.ts'
import { percentile } from './statistics.ts'
import type { Workload } from './workloads.ts'
import { connections } from './wrk.ts'

/** The latency of requests at a fixed rate, each from the time it was due. */
export interface Latency {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/**
 * Sends requests at a fixed rate during `work`, over as many connections as wrk has. A request is timed from the instant
 * it was due, so its wait for a connection counts too. A client that waits for each answer would hide a stall of the
 * server ("coordinated omission"). The delay of this client's timer, at most about a millisecond, counts too.
 *
 * @param nextPhone the phone number of the next request
 */
export async function pace(
  url: URL,
  workload: Workload,
  { nextPhone, perSecond }: { nextPhone: () => string; perSecond: number },
  work: () => Promise<unknown>,
): Promise<Latency> {
  const latenciesMs: number[] = []
  const statuses = new Map<number, number>()
  /** When each request was or is due, and how many of them have been sent. */
  const due: number[] = []
  let begun = 0
  const idle: Connection[] = []
  let failure: Error | undefined
  let settle = () => {}

  const dispatch = () => {
    for (;;) {
      const instant = due[begun]
      if (instant === undefined) break
      // In turns: the server closes a connection that is never used.
      const connection = idle.shift()
      if (!connection) return
      begun += 1
      connection.send(workload.request.replace('PHONE_NUMBER', nextPhone()), instant)
    }
    if (idle.length === connections) settle()
  }
  const answered = (connection: Connection, text: string, dueAt: number) => {
    latenciesMs.push(performance.now() - dueAt)
    const status = text.includes(workload.says ?? '') ? Number(text.slice(9, 12)) : 0
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    idle.push(connection)
    dispatch()
  }
  const broken = () => {
    failure = new Error('the server closed a connection')
    settle()
  }
  for (let count = 0; count < connections; count += 1) {
    idle.push(await Connection.open(url, answered, broken))
  }
  const all = [...idle]

  const startedAt = performance.now()
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - startedAt
    while ((due.length * 1000) / perSecond <= elapsedMs) {
      due.push(startedAt + (due.length * 1000) / perSecond)
    }
    dispatch()
  }, 1)

  try {
    await work()
  } finally {
    clearInterval(timer)
    await new Promise<void>((resolve) => {
      settle = resolve
      if (failure) resolve()
      else dispatch()
    })
    for (const connection of all) connection.close()
  }
  if (failure) throw failure
  requireStatus(workload, statuses)
  const ascending = latenciesMs.sort((a, b) => a - b)
  return {
    p50Ms: percentile(ascending, 50),
    p99Ms: percentile(ascending, 99),
    maxMs: percentile(ascending, 100),
  }
}

export function randomPhone(): string {
  return `91${String(Math.floor(Math.random() * 1e10)).padStart(10, '0')}`
}

type Answered = (connection: Connection, text: string, dueAt: number) => void

/** One connection with at most one request in progress. It parses only as much HTTP as these answers need, for speed. */
class Connection {
  private text = ''
  private dueAt = 0
  private closing = false
  private socket: Bun.Socket<undefined> | undefined

  private constructor(private readonly answered: Answered) {}

  static async open(url: URL, answered: Answered, broken: () => void): Promise<Connection> {
    const connection = new Connection(answered)
    connection.socket = await Bun.connect({
      hostname: url.hostname,
      port: Number(url.port),
      socket: {
        data: (_, bytes) => connection.read(bytes),
        close: () => {
          if (!connection.closing) broken()
        },
      },
    })
    return connection
  }

  send(request: string, dueAt: number): void {
    this.dueAt = dueAt
    this.socket?.write(request)
  }

  close(): void {
    this.closing = true
    this.socket?.end()
  }

  private read(bytes: Uint8Array): void {
    this.text += Buffer.from(bytes).toString('latin1')
    const headEnd = this.text.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = this.text.slice(0, headEnd)
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
    if (this.text.length < headEnd + 4 + length) return
    const { text } = this
    this.text = ''
    this.answered(this, text, this.dueAt)
  }
}
