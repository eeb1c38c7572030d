import { percentile } from '../statistics.ts'

// A small model of nodes that share transactions, in front of databases: queues, and the time that each piece of work
// takes. It has no part of otpost except its costs.

/** Processor time and waiting, in milliseconds. */
export interface Costs {
  /** Of a node: for a request, and for a transaction that several requests may share. */
  readonly nodeRequestMs: number
  readonly nodeTransactionMs: number
  /** Of the database, likewise. */
  readonly databaseRequestMs: number
  readonly databaseTransactionMs: number
  /** The part of `databaseRequestMs` during which the row of the application is locked. */
  readonly lockedShare: number
  /** Of the client, where it is on the same machine. */
  readonly clientMs: number
  /** How long a commit waits for the disk. Those that come meanwhile share the next wait. */
  readonly commitMs: number
}

export interface Layout {
  readonly nodes: number
  /** Databases, each with the recipients that fall to it by their hash. */
  readonly shards: number
  /** Processors that all share, clients too; or those of each database, where a node has one of its own. */
  readonly processors: { readonly shared: number } | { readonly each: number }
  readonly applications: number
  /** Whether the requests of an application go to the same node, so that few meet in a transaction. */
  readonly isSticky: boolean
  readonly batchSize: number
  /** Clients that send a request after each answer, or requests at random times. */
  readonly load: { readonly connections: number } | { readonly perSecond: number }
}

export interface Outcome {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly stepsPerTransaction: number
  readonly transactionsPerSecond: number
  /** Waits for the disk. */
  readonly flushesPerSecond: number
}

/** Transactions of a node on one database at a time, as in the program. */
const atOnce = 2

/** The queue of events. */
class Calendar {
  now = 0
  private readonly heap: { at: number; order: number; action: () => void }[] = []
  private order = 0

  after(ms: number, action: () => void): void {
    const { heap } = this
    const entry = { at: this.now + ms, order: this.order++, action }
    let index = heap.push(entry) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent]
      if (!above || !isBefore(entry, above)) break
      heap[index] = above
      index = parent
    }
    heap[index] = entry
  }

  run(untilMs: number): void {
    for (let next = this.heap[0]; next && next.at <= untilMs; next = this.heap[0]) {
      this.removeFirst()
      this.now = next.at
      next.action()
    }
    this.now = untilMs
  }

  private removeFirst(): void {
    const { heap } = this
    const last = heap.pop()
    if (!last || heap.length === 0) return
    let index = 0
    for (;;) {
      const [left, right] = [heap[2 * index + 1], heap[2 * index + 2]]
      const child = left && right && isBefore(right, left) ? right : left
      if (!child || !isBefore(child, last)) break
      heap[index] = child
      index = 2 * index + (child === right ? 2 : 1)
    }
    heap[index] = last
  }
}

function isBefore(a: { at: number; order: number }, b: { at: number; order: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/** A resource with a number of places. Others wait in the order of their arrival. */
class Station {
  private readonly waiting: (() => void)[] = []
  private head = 0

  constructor(
    private readonly calendar: Calendar,
    private free: number,
  ) {}

  take(action: () => void): void {
    if (this.free === 0) {
      this.waiting.push(action)
      return
    }
    this.free -= 1
    action()
  }

  release(): void {
    const next = this.waiting[this.head]
    if (!next) {
      this.free += 1
      return
    }
    this.head += 1
    if (this.head > 1000) this.waiting.splice(0, this.head)
    if (this.head > 1000) this.head = 0
    this.calendar.after(0, next)
  }

  use(ms: number, then: () => void): void {
    this.take(() =>
      this.calendar.after(ms, () => {
        this.release()
        then()
      }),
    )
  }
}

interface Request {
  readonly application: number
  readonly answered: () => void
}

/** Lets a layout run for some seconds of its own time; the first fifth is not counted. The same seed gives the same. */
export function simulate(costs: Costs, layout: Layout, seconds: number, seed = 1): Outcome {
  const { load, processors, applications } = layout
  const calendar = new Calendar()
  const random = numbersFrom(seed)
  const shared = 'shared' in processors ? new Station(calendar, processors.shared) : undefined
  const startsAt = (seconds * 1000) / 5
  const latencies: number[] = []
  let [steps, transactions, flushes] = [0, 0, 0]
  const isCounted = () => calendar.now >= startsAt

  const shards = Array.from({ length: layout.shards }, () => {
    const cores = shared ?? new Station(calendar, 'each' in processors ? processors.each : 1)
    const rows = Array.from({ length: applications }, () => new Station(calendar, 1))
    let due: (() => void)[] = []
    let isFlushing = false
    const flush = () => {
      const committed = due
      due = []
      isFlushing = committed.length > 0
      if (!isFlushing) return
      if (isCounted()) flushes += 1
      calendar.after(costs.commitMs, () => {
        for (const then of committed) then()
        flush()
      })
    }
    return {
      /** The work before the rows of applications are locked; then those, one after another; then the commit. */
      transact(batch: readonly Request[], then: () => void): void {
        const locked = [...new Set(batch.map(({ application }) => application))].sort((a, b) => a - b)
        const workMs = costs.databaseRequestMs * batch.length
        const lock = (index: number): void => {
          const row = rows[locked[index] ?? -1]
          if (row) row.take(() => lock(index + 1))
          else cores.use(workMs * costs.lockedShare, commit)
        }
        const commit = () => {
          due.push(() => {
            for (const application of locked) rows[application]?.release()
            then()
          })
          if (!isFlushing) flush()
        }
        cores.use(costs.databaseTransactionMs + workMs * (1 - costs.lockedShare), () => lock(0))
      },
    }
  })

  const nodes = Array.from({ length: layout.nodes }, () => {
    const thread = new Station(calendar, 1)
    const cores = shared ?? new Station(calendar, 1)
    const work = (ms: number, then: () => void) =>
      thread.take(() =>
        cores.use(ms, () => {
          thread.release()
          then()
        }),
      )
    const batchers = shards.map((shard) => {
      const waiting: Request[] = []
      let running = 0
      let isDue = false
      const run = () => {
        if (isDue || running >= atOnce || waiting.length === 0) return
        isDue = true
        work(costs.nodeTransactionMs, () => {
          isDue = false
          running += 1
          const batch = waiting.splice(0, layout.batchSize)
          if (isCounted()) {
            transactions += 1
            steps += batch.length
          }
          shard.transact(batch, () => {
            running -= 1
            for (const { answered } of batch) work(costs.nodeRequestMs / 2, answered)
            run()
          })
          run()
        })
      }
      return (request: Request) => {
        waiting.push(request)
        run()
      }
    })
    return (shard: number, request: Request) =>
      work(costs.nodeRequestMs / 2, () => batchers[shard]?.(request))
  })

  let count = 0
  const ask = (answered: () => void) => {
    const application = Math.floor(random() * applications)
    const node = nodes[(layout.isSticky ? application : count++) % nodes.length]
    const shard = Math.floor(random() * shards.length)
    const sentAt = calendar.now
    const end = () => {
      if (isCounted()) latencies.push(calendar.now - sentAt)
      answered()
    }
    const go = () => node?.(shard, { application, answered: end })
    if (shared) shared.use(costs.clientMs, go)
    else go()
  }
  if ('connections' in load) {
    const again = () => ask(again)
    for (let index = 0; index < load.connections; index += 1) again()
  } else {
    const arrive = () => {
      ask(() => {})
      calendar.after((-Math.log(1 - random()) * 1000) / load.perSecond, arrive)
    }
    arrive()
  }
  calendar.run(seconds * 1000)

  const countedSeconds = (seconds * 4) / 5
  const ascending = latencies.sort((a, b) => a - b)
  return {
    perSecond: ascending.length / countedSeconds,
    p50Ms: ascending.length === 0 ? Number.POSITIVE_INFINITY : percentile(ascending, 50),
    p99Ms: ascending.length === 0 ? Number.POSITIVE_INFINITY : percentile(ascending, 99),
    stepsPerTransaction: steps / Math.max(1, transactions),
    transactionsPerSecond: transactions / countedSeconds,
    flushesPerSecond: flushes / countedSeconds,
  }
}

/** Numbers from 0 up to 1 that look random (mulberry32). */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
