import { eq, sql } from 'drizzle-orm'
import { drizzle, type PgRemoteDatabase } from 'drizzle-orm/pg-proxy'
import { type DatabaseClock, serverTime } from './clock.ts'
import type { Queryable } from './pool.ts'
import { revision } from './schema.ts'

/** How long one look counts: what an operator changes on one node, the others go by after this time at most. */
const freshMs = 10

const pollStatement = {
  name: 'otpost_look',
  text: drizzle(async () => ({ rows: [] }))
    .select({ number: revision.number, at: serverTime.as('at') })
    .from(revision)
    .where(sql`${revision.id} = 1`)
    .toSQL().sql,
}

/**
 * Says, as part of a transaction that changes what nodes remember, that they are to read it again. Until it ends others that
 * do the same wait.
 */
export async function raiseRevision(orm: Pick<PgRemoteDatabase, 'update'>): Promise<void> {
  await orm
    .update(revision)
    .set({ number: sql`${revision.number} + 1` })
    .where(eq(revision.id, 1))
}

/**
 * Tells whether what was read before may have changed, by the one number that grows with whatever is remembered: brands,
 * keys and resting providers. Requests share a look, which is a few milliseconds old at most; there is no channel that
 * could fall silent.
 */
export class Changes {
  private revision = 0
  /** A look that goes on or is over, and when it began. */
  private last: { readonly promise: Promise<number>; readonly began: number } | undefined
  private readonly listeners: (() => void)[] = []

  constructor(
    private readonly connection: Queryable,
    private readonly clock: DatabaseClock,
  ) {}

  /** Another number whenever something may have changed. Rejects where the database can't tell. */
  token(): Promise<number> {
    const now = performance.now()
    if (!this.last || now - this.last.began > freshMs) this.last = { promise: this.poll(), began: now }
    return this.last.promise
  }

  /** Says that this process has changed something: the next look is a new one. */
  tell(): void {
    this.last = undefined
  }

  /** Is called whenever a look found that something has changed. */
  onChange(listener: () => void): void {
    this.listeners.push(listener)
  }

  /** Looks now. */
  async poll(): Promise<number> {
    const hear = this.clock.hearing()
    const [row] = await this.connection.query<{ number: number; at: number }>(pollStatement)
    if (!row) throw new Error('the table revision is empty: it must have its one row')
    hear(row.at)
    // Also a lower one: after a failover, or a restore, it may be.
    if (row.number !== this.revision) {
      this.revision = row.number
      for (const listener of this.listeners) listener()
    }
    return this.revision
  }
}
