import Driver from 'better-sqlite3'
import { migrations } from '../../drizzle/sqlite/migrations.ts'
import { migrate } from '../../src/adapters/sqlite/migrate.ts'

// An upgrade that the process does not survive: killed right before the statement of that number, counted over all
// that are missing; after the last of them, right before the commit.

const [file = '', before = ''] = Bun.argv.slice(2)
const driver = new Driver(file)
driver.pragma('journal_mode = WAL')
// So few pages that what is not committed reaches the log too, and whoever comes next has to pass over it.
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
