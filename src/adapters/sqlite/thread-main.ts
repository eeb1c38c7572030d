import { openDatabase } from './database.ts'
import { serveThread } from './thread.ts'
import { databaseWork } from './work.ts'

// The thread that writes the database of a server, on a connection of its own.

declare const self: Worker

serveThread(self, ({ file, identity }) => {
  const database = openDatabase(file, identity)
  database.leaveCheckpoints()
  return { work: databaseWork(database), close: () => database.close() }
})
