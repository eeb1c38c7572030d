import Driver from 'better-sqlite3'
import { migrations } from '../../drizzle/sqlite/migrations.ts'
import { migrate } from '../../src/adapters/sqlite/migrate.ts'
import { nextMigration } from './next.ts'

// An upgrade in a process that is killed right before a statement, by its number; after the last one, right before the
// commit.

const [file = '', before = ''] = Bun.argv.slice(2)
const driver = new Driver(file)
driver.pragma('journal_mode = WAL')
// A small page cache, so that uncommitted pages reach the log too, and the next process has to skip them.
driver.pragma('cache_size = 1')
driver.function('die', () => process.kill(process.pid, 'SIGKILL'))
const next = nextMigration('sqlite')
migrate(driver, [
  ...migrations,
  { ...next, statements: next.statements.toSpliced(Number(before), 0, 'SELECT die()') },
])
