import Driver from 'better-sqlite3'
import { migrations } from '../../drizzle/sqlite/migrations.ts'
import { migrate } from '../../src/adapters/sqlite/migrate.ts'

// An upgrade in a process that is killed right before a statement, by its number over all missing migrations; after the
// last statement, right before the commit.

const [file = '', before = ''] = Bun.argv.slice(2)
const driver = new Driver(file)
driver.pragma('journal_mode = WAL')
// A small page cache, so that uncommitted pages reach the log too, and the next process has to skip them.
driver.pragma('cache_size = 1')
driver.function('die', () => process.kill(process.pid, 'SIGKILL'))
const applied = driver.prepare<[], number>('SELECT created_at FROM __drizzle_migrations').pluck().all()
let count = 0
migrate(
  driver,
  migrations.map((migration) => {
    if (applied.includes(migration.when)) return migration
    const statements = migration.statements.flatMap((statement) =>
      count++ === Number(before) ? ['SELECT die()', statement] : [statement],
    )
    const isLast = migration === migrations.at(-1)
    return {
      ...migration,
      statements: isLast && before === 'commit' ? [...statements, 'SELECT die()'] : statements,
    }
  }),
)
