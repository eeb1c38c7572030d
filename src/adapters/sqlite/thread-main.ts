import { openDatabase } from './database.ts'
import { serveThread } from './thread.ts'
import { databaseWork } from './work.ts'

declare const self: Worker

serveThread(self, ({ file, identity }) => {
  const database = openDatabase(file, { known: identity })
  database.leaveCheckpoints()
  return { work: databaseWork(database), close: () => database.close() }
})
