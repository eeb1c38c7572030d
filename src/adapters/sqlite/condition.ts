import { statSync } from 'node:fs'
import Driver from 'better-sqlite3'
import { migrations } from '../../../drizzle/sqlite/migrations.ts'
import { type DatabaseCheck, type DatabaseFacts, schemaState } from '../store/condition.ts'
import { timeOfId } from '../store/request-ids.ts'
import { createStores, type Stores } from '../store/stores.ts'
import { Changes } from './changes.ts'
import { DatabaseError } from './database.ts'
import { damageIn } from './draft.ts'
import { missingColumns } from './migrate.ts'
import { ormOn } from './prepared.ts'
import { storeDatabase } from './stores.ts'
import { Writer } from './writer.ts'

/** No table check starts after this time. */
const checkMs = 2000

/** For `otpost doctor`; writes nothing. A full check has no time limit. Throws DatabaseError. */
export async function conditionOf<Read>(
  file: string,
  { check, read }: { readonly check: DatabaseCheck; readonly read: (stores: Stores) => Promise<Read> },
): Promise<DatabaseFacts<Read>> {
  let driver: Driver.Database | undefined
  try {
    // Measured first, since closing the last connection removes the log.
    const logBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
    driver = new Driver(file, { timeout: 2000, fileMustExist: true })
    driver.pragma('query_only = ON')
    driver.pragma('trusted_schema = OFF')
    const tables = driver
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .pluck()
      .all()
    const last = tables.includes('requests')
      ? driver.prepare<[], string | null>('SELECT max(request_id) FROM requests').pluck().get()
      : null
    const schema = tables.includes('__drizzle_migrations') ? schemaOf(driver) : 'unknown'
    const { checked, damage } =
      check === 'quick'
        ? quicklyChecked(driver, tables)
        : { checked: check, damage: check === 'full' ? damageIn(driver) : [] }
    const missing = schema === 'current' ? missingColumns(driver) : []
    return {
      journalMode: String(driver.pragma('journal_mode', { simple: true })),
      checked,
      damage: [...missing.map((column) => `it lacks ${column}`), ...damage],
      schema,
      logBytes,
      keyFingerprints: tables.includes('key_fingerprints')
        ? driver.prepare<[], string>('SELECT fingerprint FROM key_fingerprints').pluck().all()
        : [],
      lastRequestAt: last ? timeOfId(last) : null,
      read: schema === 'current' && missing.length === 0 ? await read(storesOn(driver)) : undefined,
    }
  } catch (error) {
    throw new DatabaseError(file, error)
  } finally {
    driver?.close()
  }
}

/** `query_only` rejects their writes. */
function storesOn(driver: Driver.Database): Stores {
  const writer = new Writer(driver, () => {})
  const database = { ...ormOn(driver), driver, writer, changes: new Changes(driver) }
  return createStores(storeDatabase(database, Date.now))
}

function quicklyChecked(
  driver: Driver.Database,
  tables: readonly string[],
): Pick<DatabaseFacts<unknown>, 'checked' | 'damage'> {
  const until = performance.now() + checkMs
  const damage: string[] = []
  for (const table of tables) {
    if (performance.now() > until) return { checked: 'part', damage }
    const lines = driver.prepare<[], string>(`PRAGMA quick_check("${table}")`).pluck().all()
    damage.push(...lines.filter((line) => line !== 'ok'))
  }
  return { checked: 'quick', damage }
}

function schemaOf(driver: Driver.Database): DatabaseFacts<unknown>['schema'] {
  const applied = driver.prepare<[], number>('SELECT created_at FROM __drizzle_migrations').pluck().all()
  return schemaState(applied, migrations)
}
