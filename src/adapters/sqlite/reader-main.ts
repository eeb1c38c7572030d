import { platform, setPriority } from 'node:os'
import Driver from 'better-sqlite3'
import type { Answer, Read, ReadError } from './reader.ts'

declare const self: Worker

/** Waits this long for a lock, such as that of a recovery of the log. */
const lockMs = 2000
const mostPrepared = 200

let driver: Driver.Database | undefined
const prepared = new Map<string, Driver.Statement<unknown[], unknown[]>>()

// A request has priority where cores are few. Elsewhere, this would change the whole process.
if (platform() === 'linux') setPriority(10)

self.onmessage = ({ data }: MessageEvent<string>) => {
  const [file, sql, params] = JSON.parse(data) as Read
  self.postMessage(JSON.stringify(answer(() => statement(file, sql).all(...params))))
}

function answer(read: () => unknown[][]): Answer {
  try {
    return [read()]
  } catch (error) {
    return [[], thrown(error)]
  }
}

function statement(file: string, sql: string): Driver.Statement<unknown[], unknown[]> {
  driver ??= new Driver(file, { readonly: true, fileMustExist: true, timeout: lockMs })
  const known = prepared.get(sql)
  if (known) return known
  if (prepared.size === mostPrepared) prepared.clear()
  const fresh = driver.prepare<unknown[], unknown[]>(sql).raw()
  prepared.set(sql, fresh)
  return fresh
}

function thrown(error: unknown): ReadError {
  const { name, message, code } = error as Error & { readonly code?: unknown }
  return { name, message, code }
}
