import Driver from 'better-sqlite3'

// A process that opens a database, and continues when it reads a line.

const [databaseFile = ''] = Bun.argv.slice(2)
const driver = new Driver(databaseFile, { timeout: 5000 })
console.log('open')
for await (const _ of console) {
  try {
    driver.pragma('journal_mode = WAL')
    driver.exec('CREATE TABLE written (here)')
    console.log('wrote')
  } catch (error) {
    console.log((error as { code?: string }).code)
  }
  break
}
