import { maxAttempts } from '../../domain/otp/store.ts'
import { clockToleranceMs } from '../../domain/ports.ts'
import { DatabaseUnavailable, type Pool, StatementError } from './pool.ts'

/**
 * A step as the function takes it, by position; it names subjects by the place that `placeOf` gives each.
 *
 * @param placeOf `isNeeded`: the subject needs a row, since something of it may be counted
 */
export type Step = (placeOf: (subject: string, isNeeded: boolean) => number) => readonly unknown[]

interface Waiting {
  readonly step: Step
  /** Its application or, where it changes the row of none, its one subject. */
  readonly owner: string
  readonly since: number
  readonly resolve: (answer: never) => void
  readonly reject: (error: unknown) => void
}

const statement = {
  name: 'otpost_steps',
  text: 'SELECT otpost_steps($1::text[], $2::boolean[], $3::jsonb, $4::bigint, $5::int) AS taken',
}

/** Transactions at a time; what comes meanwhile shares the next. */
const atOnce = 2

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
export function createSteps(pool: Pick<Pool, 'query'>, { batchSize, patienceMs, hearing }: Settings) {
  const shared: Group = { waiting: [], running: 0 }
  /** By owner, with how many slow transactions have steps of it. */
  const apart = new Map<string, Group & { slow: number }>()
  const batches = new Set<Batch>()
  let isDue = false

  /** Resolves to the answer of the function. */
  function take<Answer>(step: Step): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const owner = ownerOf(step)
    const group = apart.get(owner) ?? shared
    const since = performance.now()
    group.waiting.push({ step, owner, since, resolve: resolve as (answer: never) => void, reject })
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
      const answers = await answersTo(batch.map(({ step }) => step))
      for (const [place, { resolve }] of batch.entries()) resolve(answers[place] as never)
    } catch (error) {
      const isOfOne = batch.length > 1 && error instanceof StatementError
      if (!isOfOne) for (const { reject } of batch) reject(error)
      // Nothing of it has happened.
      else for (const each of batch) await runTogether([each])
    }
  }

  async function answersTo(steps: readonly Step[]): Promise<readonly unknown[]> {
    const hear = hearing()
    const { subjects, needed, positional } = arranged(steps)
    const [row] = await pool.query<{ taken: { at: number; answers: readonly unknown[] } }>(statement, [
      subjects,
      needed,
      JSON.stringify(positional),
      clockToleranceMs,
      maxAttempts,
    ])
    if (!row) throw new Error('the database gave no answer')
    hear(row.taken.at)
    return row.taken.answers
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

function ownerOf(step: Step): string {
  let first = ''
  let application = ''
  step((subject) => {
    first ||= subject
    if (isApplication(subject)) application = subject
    return 0
  })
  return application || first
}

function isApplication(subject: string): boolean {
  return subject.startsWith('app:')
}

/**
 * The subjects of steps in the order in which every node locks them, so that no two wait for each other: applications last,
 * which many wait for; else by their names. And the steps, with the places of theirs.
 */
function arranged(steps: readonly Step[]) {
  const isNeededBy = new Map<string, boolean>()
  const gather = (subject: string, isNeeded: boolean) => {
    isNeededBy.set(subject, isNeeded || isNeededBy.get(subject) === true)
    return 0
  }
  for (const step of steps) step(gather)
  const subjects = [...isNeededBy.keys()].sort(byLockOrder)
  const places = new Map(subjects.map((subject, index) => [subject, index + 1]))
  return {
    subjects,
    needed: subjects.map((subject) => isNeededBy.get(subject) === true),
    positional: steps.map((step) => step((subject) => places.get(subject) ?? 0)),
  }
}

function byLockOrder(a: string, b: string): number {
  const [isAppA, isAppB] = [isApplication(a), isApplication(b)]
  if (isAppA !== isAppB) return isAppA ? 1 : -1
  return a < b ? -1 : a > b ? 1 : 0
}
