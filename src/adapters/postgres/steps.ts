import type { Subject } from '../../domain/otp/limits.ts'
import type { State } from '../../domain/otp/state.ts'
import { DatabaseUnavailable, type Pool } from './pool.ts'
import { isOvertaken, openRecords, sendChanges } from './record-table.ts'

/** One atomic step on codes and limits. */
export interface Step<Answer> {
  /** All whose records it reads or changes. */
  readonly subjects: readonly Subject[]
  /**
   * May run again on other records, where the transaction was rolled back.
   *
   * @param now the server's time, epoch milliseconds
   */
  run(state: State, now: number): Answer
}

interface Waiting {
  readonly subjects: readonly string[]
  /** Its application or, where it changes the row of none, its first subject. */
  readonly owner: string
  readonly since: number
  /** Runs the step, and returns what answers it once that is committed. */
  readonly run: (state: State, now: number) => () => void
  readonly reject: (error: unknown) => void
}

/** Transactions at a time; what comes meanwhile shares the next. */
const atOnce = 2

/** How often a transaction is tried that others overtake, and the longest pause before the first retry; later ones are longer. */
const mostTries = 10
const retryPauseMs = 4

/** From when on a transaction is slow: many times what one takes on a busy machine. */
const slowMs = 250

/** Steps that share transactions. */
interface Group {
  waiting: Waiting[]
  running: number
}

/** A transaction under way. */
interface Batch {
  readonly steps: readonly Waiting[]
  readonly group: Group
  readonly since: number
  isSlow: boolean
}

interface Settings {
  /** Steps that share a transaction at most. */
  readonly batchSize: number
  /** How long a step waits for its turn. */
  readonly patienceMs: number
  /** Is told of the server's time. */
  hearing(): (at: number) => void
}

/**
 * Takes atomic steps in the database. Those that come at the same time share a transaction: a commit waits for the disk,
 * and all requests of an application change one row. What a step's promise tells is committed. Where a transaction fails
 * by what one of its steps holds, each is taken alone.
 *
 * A row that somebody holds makes a transaction slow. Whose steps are in one go apart until it is over, each owner's for
 * itself, and its place is another's: so requests of others wait for a moment at most.
 */
export function createSteps(pool: Pick<Pool, 'transaction'>, { batchSize, patienceMs, hearing }: Settings) {
  const shared: Group = { waiting: [], running: 0 }
  /** By owner, with how many slow transactions have steps of it. */
  const apart = new Map<string, Group & { slow: number }>()
  const batches = new Set<Batch>()
  let isDue = false

  /** Resolves to the answer of the step once it is committed. */
  function take<Answer>({ subjects, run }: Step<Answer>): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const owner = ownerOf(subjects)
    const group = apart.get(owner) ?? shared
    group.waiting.push({
      subjects: subjects.flat(),
      owner,
      since: performance.now(),
      run: (state, now) => {
        const answer = run(state, now)
        return () => resolve(answer)
      },
      reject,
    })
    if (group.running < atOnce) runSoon()
    return promise
  }

  const groups = () => [shared, ...apart.values()]

  /** In the next turn of the event loop, so that what comes in this one goes together. */
  function runSoon(): void {
    if (isDue) return
    isDue = true
    setImmediate(() => {
      isDue = false
      for (const group of groups()) {
        while (group.waiting.length > 0 && group.running < atOnce) {
          void run(group, group.waiting.splice(0, batchSize))
        }
      }
    })
  }

  async function run(group: Group, steps: readonly Waiting[]): Promise<void> {
    const batch: Batch = { steps, group, since: performance.now(), isSlow: false }
    batches.add(batch)
    group.running++
    try {
      await runTogether(steps)
    } finally {
      batches.delete(batch)
      if (batch.isSlow) for (const owner of ownersOf(batch)) bringBack(owner)
      else group.running--
      if (groups().some(({ waiting }) => waiting.length > 0)) runSoon()
    }
  }

  /** A transaction of all gives its place to another, which is without the steps of those that are in it. */
  function setAside(batch: Batch): void {
    batch.isSlow = true
    batch.group.running--
    for (const owner of ownersOf(batch)) {
      const group = apart.get(owner) ?? { waiting: [], running: 0, slow: 0 }
      group.slow++
      group.waiting.push(...shared.waiting.filter((each) => each.owner === owner))
      shared.waiting = shared.waiting.filter((each) => each.owner !== owner)
      apart.set(owner, group)
    }
    runSoon()
  }

  function bringBack(owner: string): void {
    const group = apart.get(owner)
    if (!group) return
    group.slow--
    if (group.slow > 0) return
    apart.delete(owner)
    shared.waiting.push(...group.waiting.splice(0))
  }

  async function runTogether(batch: readonly Waiting[]): Promise<void> {
    try {
      for (const answer of await committed(batch)) answer()
    } catch (error) {
      const isOfOne = batch.length > 1 && !(error instanceof DatabaseUnavailable)
      if (!isOfOne) for (const { reject } of batch) reject(error)
      // Nothing of it has happened.
      else for (const each of batch) await runTogether([each])
    }
  }

  /** Runs steps in one transaction, one after another and all or none; resolves to what answers each. */
  async function committed(steps: readonly Waiting[]): Promise<readonly (() => void)[]> {
    const subjects = [...new Set(steps.flatMap((step) => step.subjects))]
    for (let tries = 1; ; tries++) {
      try {
        return await pool.transaction(async (connection) => {
          const { records, now } = await openRecords(connection, subjects, hearing())
          const answers = steps.map(({ run }) => run(records, now))
          sendChanges(connection, records.changes())
          return answers
        })
      } catch (error) {
        if (!isOvertaken(error) || tries === mostTries) throw error
      }
      await Bun.sleep(Math.random() * retryPauseMs * tries)
    }
  }

  /** Those that have waited too long fail, so that a database that does not answer holds nobody up for longer. */
  const polling = setInterval(() => {
    const now = performance.now()
    for (const batch of batches) {
      // An owner that is apart has its own places, and no more: the pool is for all.
      if (!batch.isSlow && batch.group === shared && now - batch.since > slowMs) setAside(batch)
    }
    for (const { waiting } of groups()) {
      while (waiting[0] && now - waiting[0].since > patienceMs) {
        waiting.shift()?.reject(new DatabaseUnavailable('PostgreSQL does not answer in time'))
      }
    }
  }, 50)
  polling.unref()

  return {
    take,
    queueLength: () => groups().reduce((sum, { waiting }) => sum + waiting.length, 0),
    close: () => clearInterval(polling),
  }
}

function ownersOf({ steps }: Batch): ReadonlySet<string> {
  return new Set(steps.map(({ owner }) => owner))
}

function ownerOf(subjects: readonly Subject[]): string {
  const [first = ['']] = subjects
  const [owner] = subjects.find(([subject]) => subject.startsWith('app:')) ?? first
  return owner
}
