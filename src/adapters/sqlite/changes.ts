import type Driver from 'better-sqlite3'

/** Detects changes of cached rows: PRAGMA data_version for other connections, `invalidate` for this one. */
export class Changes {
  private version = 0
  private polledThisTurn = false
  private count = 0
  private readonly dataVersion: Driver.Statement<[], number>

  constructor(driver: Driver.Database) {
    this.dataVersion = driver.prepare<[], number>('PRAGMA data_version')
    this.dataVersion.pluck()
  }

  /** Differs after a change. */
  token(): number {
    if (!this.polledThisTurn) {
      const version = this.dataVersion.get() ?? 0
      if (version !== this.version) this.count++
      this.version = version
      this.polledThisTurn = true
      setImmediate(() => {
        this.polledThisTurn = false
      })
    }
    return this.count
  }

  invalidate(): void {
    this.count++
  }
}
