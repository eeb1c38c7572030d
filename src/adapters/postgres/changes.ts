import { eq, sql } from 'drizzle-orm'
import { drizzle, type PgRemoteDatabase } from 'drizzle-orm/pg-proxy'
import { type DatabaseClock, serverTime } from './clock.ts'
import type { Queryable } from './pool.ts'
import { tables } from './schema.ts'

const { revision } = tables

const freshMs = 10

const pollStatement = {
  name: 'otpost_revision',
  text: drizzle(async () => ({ rows: [] }))
    .select({ number: revision.number, at: serverTime.as('at') })
    .from(revision)
    .where(sql`${revision.id} = 1`)
    .toSQL().sql,
}

/** Makes all nodes read cached rows again. Such transactions run one after another. */
export async function raiseRevision(orm: Pick<PgRemoteDatabase, 'update'>): Promise<void> {
  await orm
    .update(revision)
    .set({ number: sql`${revision.number} + 1` })
    .where(eq(revision.id, 1))
}

/** Detects changes of cached rows by one number, which concurrent requests read together. */
export class Changes {
  private revision = 0
  private last: { readonly promise: Promise<number>; readonly began: number } | undefined
  private readonly listeners: (() => void)[] = []

  constructor(
    private readonly connection: Queryable,
    private readonly clock: DatabaseClock,
  ) {}

  /** Differs after a change. Rejects if the database does not answer. */
  token(): Promise<number> {
    const now = performance.now()
    if (!this.last || now - this.last.began > freshMs) this.last = { promise: this.poll(), began: now }
    return this.last.promise
  }

  invalidate(): void {
    this.last = undefined
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener)
  }

  async poll(): Promise<number> {
    const setTime = this.clock.startReading()
    const [row] = await this.connection.query<{ number: number; at: number }>(pollStatement)
    if (!row) throw new Error('the table revision is empty: it must have its one row')
    setTime(row.at)
    // After a failover or a restore the number may be lower.
    if (row.number !== this.revision) {
      this.revision = row.number
      for (const listener of this.listeners) listener()
    }
    return this.revision
  }
}
