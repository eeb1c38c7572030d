import type Driver from 'better-sqlite3'

/**
 * Tells whether what was read before may have changed. SQLite counts the commits of other connections for this one
 * (`PRAGMA data_version`), those of other processes among them; commits of this one are told by whoever makes them. The
 * counter is looked at once in a turn of the event loop, so that what is remembered is at most one turn old.
 */
export class Changes {
  private version = 0
  private polledThisTurn = false
  private count = 0
  private readonly dataVersion: Driver.Statement<[], number>

  constructor(driver: Driver.Database) {
    this.dataVersion = driver.prepare<[], number>('PRAGMA data_version')
    this.dataVersion.pluck()
  }

  /** Is another number whenever something may have changed. */
  get token(): number {
    if (!this.polledThisTurn) {
      this.poll()
      this.polledThisTurn = true
      setImmediate(() => {
        this.polledThisTurn = false
      })
    }
    return this.count
  }

  /** Looks at the counter now, as a transaction has to that goes by what was read before it began. */
  poll(): void {
    const version = this.dataVersion.get() ?? 0
    if (version !== this.version) this.count++
    this.version = version
  }

  /** Says that this connection has changed something. */
  tell(): void {
    this.count++
  }
}
