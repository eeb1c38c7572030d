import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, release, type as systemName, totalmem } from 'node:os'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import packageJson from '../package.json'
import { megabytes, milliseconds } from './report.ts'
import { median } from './statistics.ts'
import { wrkVersion } from './wrk.ts'

/** The versions and the machine of a measurement. */
export function machine(folder: string, subject: string): string[] {
  const driver = new Driver(':memory:')
  const { sqlite } = driver.prepare('SELECT sqlite_version() AS sqlite').get() as { sqlite: string }
  driver.close()
  const cores = availableParallelism()
  return [
    `${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${cores} cores, ${megabytes(totalmem())} of memory; ${systemName()} ${release()}`,
    `${fileSystem(folder)}, where one write waits ${milliseconds(syncMs(folder))} for the disk (median of ${syncs} fdatasync)`,
    `otpost ${packageJson.version} (${subject}), Bun ${Bun.version}, SQLite ${sqlite} with a sync before each answer, ${wrkVersion()} on the same machine with 64 connections`,
  ]
}

const syncs = 200

/** How long one page takes to reach the disk. A disk that needs no time does not store it durably. */
function syncMs(folder: string): number {
  const file = openSync(join(folder, 'sync'), 'w')
  const page = Buffer.alloc(4096, 1)
  const times: number[] = []
  for (let count = 0; count < syncs; count += 1) {
    const startedAt = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    times.push(performance.now() - startedAt)
  }
  closeSync(file)
  return median(times)
}

/** Such as `ext4`, or `tmpfs`, where nothing is durable. */
function fileSystem(folder: string): string {
  return Bun.spawnSync(['df', '--output=fstype', folder]).stdout.toString().trim().split('\n').at(-1) ?? ''
}
