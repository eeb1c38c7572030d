import type Driver from 'better-sqlite3'

/**
 * Detects changes of cached rows: by other connections with `PRAGMA data_version`, read once per turn of the event loop,
 * and by this connection with `tell`.
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

  /** A different number after a change. */
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

  tell(): void {
    this.count++
  }
}
