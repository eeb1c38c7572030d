import Driver from 'better-sqlite3'

// The thread of `checkpoints.ts`. It has a connection of its own, on which waiting for the disk holds up nobody.

declare const self: Worker

let driver: Driver.Database | undefined

self.onmessage = ({ data: file }: MessageEvent<string>) => {
  let problem: string | undefined
  try {
    driver ??= new Driver(file, { timeout: 0, fileMustExist: true })
    // Without keeping anybody out: what is in the log by now.
    driver.pragma('wal_checkpoint(PASSIVE)')
    // Under load there is always more, and a log begins anew only once all of it has been folded back. What is left is
    // little by now, so that the lock this takes is soon free again; writers try again meanwhile.
    driver.pragma('wal_checkpoint(RESTART)')
  } catch (error) {
    driver?.close()
    driver = undefined
    problem = error instanceof Error ? error.message : String(error)
  }
  self.postMessage(problem)
}
