import Driver from 'better-sqlite3'

declare const self: Worker

let driver: Driver.Database | undefined

self.onmessage = ({ data: file }: MessageEvent<string>) => {
  let problem: string | undefined
  try {
    driver ??= new Driver(file, { timeout: 0, fileMustExist: true })
    // It does not block writers.
    driver.pragma('wal_checkpoint(PASSIVE)')
  } catch (error) {
    driver?.close()
    driver = undefined
    problem = error instanceof Error ? error.message : String(error)
  }
  self.postMessage(problem)
}
