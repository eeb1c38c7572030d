import type { Subject } from '../../domain/limits/limits.ts'
import type { State } from '../../domain/otp/state.ts'
import { DatabaseUnavailable, type Pool } from './pool.ts'
import { ofOneKey, ofSeveralKeys } from './record-statements.ts'
import { isOvertaken, openRecords, sendChanges } from './record-table.ts'

export interface BatchedStep<Answer> {
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
  /** Concurrent transactions with a full batch each. */
  readonly mostAtOnce: number
  readonly queueTimeoutMs: number
  startReading(): (at: number) => void
}

/**
 * Steps that arrive together share a transaction; after an error each is retried alone.
 * Owners of steps in a slow transaction get separate groups until it ends, so that others do not wait.
 */
export class StepBatches {
  private readonly statements: typeof ofOneKey
  private readonly shared: Group = { waiting: [], running: 0 }
  /** `slow` counts the slow transactions with steps of this owner. */
  private readonly apart = new Map<string, Group & { slow: number }>()
  private readonly batches = new Set<Batch>()
  private readonly polling: Timer
  private isDue = false

  constructor(
    private readonly pool: Pick<Pool, 'transaction'>,
    private readonly settings: Settings,
  ) {
    this.statements = settings.batchSize === 1 ? ofOneKey : ofSeveralKeys
    this.polling = setInterval(() => this.poll(), 50)
    this.polling.unref()
  }

  readonly take = <Answer>({ subjects, run }: BatchedStep<Answer>): Promise<Answer> => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const owner = ownerOf(subjects)
    const group = this.apart.get(owner) ?? this.shared
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
    if (group.running < this.slotsOf(group)) this.runSoon()
    return promise
  }

  get queueLength(): number {
    return this.groups().reduce((sum, { waiting }) => sum + waiting.length, 0)
  }

  close(): void {
    clearInterval(this.polling)
  }

  private groups(): readonly Group[] {
    return [this.shared, ...this.apart.values()]
  }

  /** Steps that arrive during a batch share the next one, which waits unless it is full. A separate group has slow transactions. */
  private slotsOf(group: Group): number {
    const { batchSize, mostAtOnce } = this.settings
    return group === this.shared && group.waiting.length >= batchSize ? mostAtOnce : 1
  }

  /** In the next turn of the event loop, so that the steps of this turn share a transaction. */
  private runSoon(): void {
    if (this.isDue) return
    this.isDue = true
    setImmediate(() => {
      this.isDue = false
      for (const group of this.groups()) {
        while (group.waiting.length > 0 && group.running < this.slotsOf(group)) {
          void this.run(group, group.waiting.splice(0, this.settings.batchSize))
        }
      }
    })
  }

  private async run(group: Group, steps: readonly Waiting[]): Promise<void> {
    const batch: Batch = { steps, group, since: performance.now(), isSlow: false }
    this.batches.add(batch)
    group.running++
    try {
      await this.runTogether(steps)
    } finally {
      this.batches.delete(batch)
      if (batch.isSlow) for (const owner of ownersOf(batch)) this.bringBack(owner)
      else group.running--
      if (this.groups().some(({ waiting }) => waiting.length > 0)) this.runSoon()
    }
  }

  /** Frees the slow transaction's slot, and moves its owners' steps to groups of their own. */
  private setAside(batch: Batch): void {
    const { shared, apart } = this
    batch.isSlow = true
    batch.group.running--
    for (const owner of ownersOf(batch)) {
      const group = apart.get(owner) ?? { waiting: [], running: 0, slow: 0 }
      group.slow++
      group.waiting.push(...shared.waiting.filter((each) => each.owner === owner))
      shared.waiting = shared.waiting.filter((each) => each.owner !== owner)
      apart.set(owner, group)
    }
    this.runSoon()
  }

  private bringBack(owner: string): void {
    const group = this.apart.get(owner)
    if (!group) return
    group.slow--
    if (group.slow > 0) return
    this.apart.delete(owner)
    this.shared.waiting.push(...group.waiting.splice(0))
  }

  private async runTogether(batch: readonly Waiting[]): Promise<void> {
    try {
      for (const answer of await this.committed(batch)) answer()
    } catch (error) {
      const isOfOne = batch.length > 1 && !(error instanceof DatabaseUnavailable)
      if (!isOfOne) for (const { reject } of batch) reject(error)
      else for (const each of batch) await this.runTogether([each])
    }
  }

  private async committed(steps: readonly Waiting[]): Promise<readonly (() => void)[]> {
    const subjects = steps.flatMap((step) => step.subjects)
    const { statements, pool, settings } = this
    for (let tries = 1; ; tries++) {
      try {
        return await pool.transaction(async (connection) => {
          const reading = settings.startReading()
          const { records, now } = await openRecords(statements, connection, subjects, reading)
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

  private poll(): void {
    const now = performance.now()
    for (const batch of this.batches) {
      // A separate group gets no further slots, since the pool is shared.
      const isLate = batch.group === this.shared && now - batch.since > slowMs
      if (!batch.isSlow && isLate) this.setAside(batch)
    }
    for (const { waiting } of this.groups()) {
      while (waiting[0] && now - waiting[0].since > this.settings.queueTimeoutMs) {
        waiting.shift()?.reject(new DatabaseUnavailable('PostgreSQL did not answer in time.'))
      }
    }
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
