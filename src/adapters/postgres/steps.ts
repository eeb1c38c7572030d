import type { Subject } from '../../domain/limits/limits.ts'
import type { State } from '../../domain/otp/state.ts'
import { DatabaseUnavailable, type Pool } from './pool.ts'
import { ofOneKey, ofSeveralKeys } from './record-statements.ts'
import { isOvertaken, openRecords, sendChanges } from './record-table.ts'

export interface Step<Answer> {
  readonly subjects: readonly Subject[]
  /** May run again after a rollback. `now` is the server's time in epoch milliseconds. */
  run(state: State, now: number): Answer
}

interface Waiting {
  readonly subjects: readonly Subject[]
  /** The application, or the first subject if there is none. */
  readonly owner: string
  readonly since: number
  /** The returned function resolves the step's promise after the commit. */
  readonly run: (state: State, now: number) => () => void
  readonly reject: (error: unknown) => void
}

const mostTries = 10
const retryPauseMs = 4

/** Many times a normal transaction on a busy machine. */
const slowMs = 250

interface Group {
  waiting: Waiting[]
  running: number
}

interface Batch {
  readonly steps: readonly Waiting[]
  readonly group: Group
  readonly since: number
  isSlow: boolean
}

interface Settings {
  readonly batchSize: number
  /** Concurrent transactions if each has one step. */
  readonly mostAtOnce: number
  readonly queueTimeoutMs: number
  startReading(): (at: number) => void
}

/**
 * Steps that arrive together share a transaction; after an error each is retried alone.
 * Owners of steps in a slow transaction get separate groups until it ends, so that others do not wait.
 */
export function createSteps(
  pool: Pick<Pool, 'transaction'>,
  { batchSize, mostAtOnce, queueTimeoutMs, startReading }: Settings,
) {
  const statements = batchSize === 1 ? ofOneKey : ofSeveralKeys
  // Steps that arrive during a batch share the next one. A separate group has slow transactions.
  const slots = (group: Group) => (batchSize === 1 && group === shared ? mostAtOnce : 1)
  const shared: Group = { waiting: [], running: 0 }
  /** `slow` counts the slow transactions with steps of this owner. */
  const apart = new Map<string, Group & { slow: number }>()
  const batches = new Set<Batch>()
  let isDue = false

  function take<Answer>({ subjects, run }: Step<Answer>): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const owner = ownerOf(subjects)
    const group = apart.get(owner) ?? shared
    group.waiting.push({
      subjects,
      owner,
      since: performance.now(),
      run: (state, now) => {
        const answer = run(state, now)
        return () => resolve(answer)
      },
      reject,
    })
    if (group.running < slots(group)) runSoon()
    return promise
  }

  const groups = () => [shared, ...apart.values()]

  /** In the next turn of the event loop, so that the steps of this turn share a transaction. */
  function runSoon(): void {
    if (isDue) return
    isDue = true
    setImmediate(() => {
      isDue = false
      for (const group of groups()) {
        while (group.waiting.length > 0 && group.running < slots(group)) {
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

  /** Frees the slow transaction's slot, and moves its owners' steps to groups of their own. */
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
      else for (const each of batch) await runTogether([each])
    }
  }

  async function committed(steps: readonly Waiting[]): Promise<readonly (() => void)[]> {
    const subjects = steps.flatMap((step) => step.subjects)
    for (let tries = 1; ; tries++) {
      try {
        return await pool.transaction(async (connection) => {
          const { records, now } = await openRecords(statements, connection, subjects, startReading())
          const answers = steps.map(({ run }) => run(records, now))
          sendChanges(statements, connection, records.changes())
          return answers
        })
      } catch (error) {
        if (!isOvertaken(error) || tries === mostTries) throw error
      }
      await Bun.sleep(Math.random() * retryPauseMs * tries)
    }
  }

  const polling = setInterval(() => {
    const now = performance.now()
    for (const batch of batches) {
      // A separate group gets no further slots, since the pool is shared.
      if (!batch.isSlow && batch.group === shared && now - batch.since > slowMs) setAside(batch)
    }
    for (const { waiting } of groups()) {
      while (waiting[0] && now - waiting[0].since > queueTimeoutMs) {
        waiting.shift()?.reject(new DatabaseUnavailable('PostgreSQL did not answer in time.'))
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
