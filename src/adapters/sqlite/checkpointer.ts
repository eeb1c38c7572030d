import { closeSync, fdatasyncSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import Driver from 'better-sqlite3'

declare const self: Worker

let driver: Driver.Database | undefined
/** Never closed, since that would release SQLite's locks of this process. */
let fd: number | undefined
/** Since a checkpoint failed. */
let isDamaged = false

self.onmessage = ({ data: file }: MessageEvent<string>) => {
  let problem: string | undefined
  try {
    driver ??= new Driver(file, { timeout: 0, fileMustExist: true })
    if (isDamaged) repair(driver, file)
    // PASSIVE does not block writers.
    else driver.pragma('wal_checkpoint(PASSIVE)')
    isDamaged = false
  } catch (error) {
    isDamaged = true
    driver?.close()
    driver = undefined
    problem = error instanceof Error ? error.message : String(error)
  }
  self.postMessage(problem)
}

/**
 * As `rewrite` of the log: a failed sync may have lost pages that earlier checkpoints copied, and SQLite would not copy them again. All
 * of them are still in the log. Meanwhile the log does not grow, and all of it is in the file, so that no other checkpoint writes a page
 * between its reading and its writing here.
 */
function repair(checkpointing: Driver.Database, file: string): void {
  const holding = new Driver(file, { timeout: 1000, fileMustExist: true })
  try {
    holding.exec('BEGIN IMMEDIATE')
    const [state] = checkpointing.pragma('wal_checkpoint(PASSIVE)') as [
      Record<'log' | 'checkpointed', number>,
    ]
    if (state.log !== state.checkpointed) throw new Error('another checkpoint or a long read is under way')
    rewrite(file)
  } finally {
    holding.close()
  }
}

function rewrite(file: string): void {
  fd ??= openSync(file, 'r+')
  const log = openSync(`${file}-wal`, 'r')
  try {
    const header = Buffer.alloc(32)
    readSync(log, header, 0, 32, 0)
    const pageBytes = header.readUInt32BE(8)
    const page = Buffer.alloc(pageBytes)
    const rewritten = new Set<number>()
    for (let at = 32; at < fstatSync(log).size; at += 24 + pageBytes) {
      readSync(log, header, 0, 4, at)
      const number = header.readUInt32BE(0)
      if (rewritten.has(number)) continue
      rewritten.add(number)
      const start = (number - 1) * pageBytes
      if (readSync(fd, page, 0, pageBytes, start) === pageBytes) writeSync(fd, page, 0, pageBytes, start)
    }
    fdatasyncSync(fd)
  } finally {
    closeSync(log)
  }
}
