import { listed, type Migration } from '../migration.ts'
import baseline from './0000_baseline.sql' with { type: 'text' }
import journal from './meta/_journal.json'

/** Imported as text, so that a compiled binary contains them. */
export const migrations: readonly Migration[] = listed('drizzle/sqlite/migrations.ts', journal, {
  '0000_baseline': baseline,
})
