import Driver from 'better-sqlite3'

// The thread of `checkpoints.ts`, on its own connection.

declare const self: Worker

let driver: Driver.Database | undefined

self.onmessage = ({ data: file }: MessageEvent<string>) => {
  let problem: string | undefined
  try {
    driver ??= new Driver(file, { timeout: 0, fileMustExist: true })
    // PASSIVE blocks nobody.
    driver.pragma('wal_checkpoint(PASSIVE)')
    // RESTART lets writers start again at the beginning of the log; little is left to copy, so its lock is short.
    driver.pragma('wal_checkpoint(RESTART)')
  } catch (error) {
    driver?.close()
    driver = undefined
    problem = error instanceof Error ? error.message : String(error)
  }
  self.postMessage(problem)
}
