import { platform, setPriority } from 'node:os'
import Driver from 'better-sqlite3'
import type { Answer, Read, ReadError, Rows } from './reader.ts'
import { statementsOf } from './statements.ts'

declare const self: Worker

/** Waits this long for a lock, such as that of a recovery of the log. */
const lockMs = 2000

let statement: ReturnType<typeof statementsOf> | undefined

// A request has priority where cores are few. Elsewhere, this would change the whole process.
if (platform() === 'linux') setPriority(10)

self.onmessage = ({ data }: MessageEvent<string>) => {
  self.postMessage(JSON.stringify(answerTo(JSON.parse(data))))
}

function answerTo([file, sql, params]: Read): Answer {
  try {
    statement ??= statementsOf(new Driver(file, { readonly: true, fileMustExist: true, timeout: lockMs }))
    return [
      statement(sql)
        .raw()
        .all(...params) as Rows,
    ]
  } catch (error) {
    const { name, message, code } = error as ReadError
    return [[], { name, message, code }]
  }
}
