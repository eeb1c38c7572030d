import type Driver from 'better-sqlite3'
import { eq, sql } from 'drizzle-orm'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { type Ledger, type Ledgers, prune } from '../../domain/otp/state.ts'
import type { Changes } from './changes.ts'
import { ledgers } from './schema.ts'

/** How many ledgers are kept in memory: those of the applications and addresses that call, and recent recipients. */
const cachedLedgers = 1000

/**
 * The ledgers of a transaction: each is read once and written once, however many of the steps in it concern the same
 * subject. What has been read is kept beyond the transaction until another connection commits.
 */
export class LedgerTable implements Ledgers {
  private readonly known = new Map<string, Ledger>()
  private readonly changed = new Set<string>()
  private readonly select: Driver.Statement<[string], string>
  private readonly upsert: Driver.Statement<[string, number, string]>
  private readonly remove: Driver.Statement<[string]>
  private seen = -1

  constructor(
    driver: Driver.Database,
    orm: BetterSQLite3Database,
    private readonly changes: Changes,
  ) {
    // Made by Drizzle, run without it: these three are most of what the service asks of its database.
    const given = sql.placeholder
    const own = eq(ledgers.subject, given('subject'))
    this.select = driver.prepare<[string], string>(
      orm.select({ state: ledgers.state }).from(ledgers).where(own).toSQL().sql,
    )
    this.select.pluck()
    this.upsert = driver.prepare(
      orm
        .insert(ledgers)
        .values({ subject: given('subject'), endsAt: given('endsAt'), state: given('state') })
        .onConflictDoUpdate({
          target: ledgers.subject,
          set: { endsAt: sql`excluded.ends_at`, state: sql`excluded.state` },
        })
        .toSQL().sql,
    )
    this.remove = driver.prepare(orm.delete(ledgers).where(own).toSQL().sql)
  }

  read(subject: string): Ledger {
    const known = this.known.get(subject)
    if (known) return known
    const ledger = decode(this.select.get(subject))
    this.known.set(subject, ledger)
    return ledger
  }

  change(subject: string): Ledger {
    this.changed.add(subject)
    return this.read(subject)
  }

  /** To be called before the first look into the ledgers of a turn or transaction: forgets what others may have changed. */
  refresh(): void {
    const { token } = this.changes
    if (this.seen !== token || this.known.size > cachedLedgers) this.known.clear()
    this.seen = token
  }

  /** Writes what has been changed; part of the transaction that changed it. */
  flush(now: number): void {
    for (const subject of this.changed) {
      const ledger = this.read(subject)
      const endsAt = prune(ledger, now)
      if (endsAt === undefined) this.remove.run(subject)
      else this.upsert.run(subject, endsAt, encode(ledger))
    }
    this.changed.clear()
  }

  /** Forgets everything, since what was changed is undone. */
  discard(): void {
    this.changed.clear()
    this.known.clear()
  }
}

/** A ledger as JSON, by position: it is the larger part of each write. */
interface Stored {
  /** name, count, endsAt */
  readonly windows?: readonly (readonly [string, number, number])[]
  /** brandSlug, id, hash, attempts, createdAt, expiresAt */
  readonly codes?: readonly (readonly [string, string, string, number, number, number])[]
}

function encode({ windows, codes }: Ledger): string {
  const stored: Stored = {
    ...(windows.size > 0
      ? { windows: Array.from(windows, ([name, { count, endsAt }]) => [name, count, endsAt] as const) }
      : {}),
    ...(codes.size > 0
      ? {
          codes: Array.from(
            codes,
            ([brandSlug, { id, hash, attempts, createdAt, expiresAt }]) =>
              [brandSlug, id, hash, attempts, createdAt, expiresAt] as const,
          ),
        }
      : {}),
  }
  return JSON.stringify(stored)
}

/** A ledger as it is kept; an empty one where nothing is. */
export function decode(state: string | undefined): Ledger {
  const { windows = [], codes = [] }: Stored = state === undefined ? {} : JSON.parse(state)
  return {
    windows: new Map(windows.map(([name, count, endsAt]) => [name, { count, endsAt }])),
    codes: new Map(
      codes.map(([brandSlug, id, hash, attempts, createdAt, expiresAt]) => [
        brandSlug,
        { id, hash, attempts, createdAt, expiresAt },
      ]),
    ),
  }
}
