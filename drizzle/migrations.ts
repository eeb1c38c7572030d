import init from './0000_init.sql' with { type: 'text' }
import ledgers from './0001_ledgers.sql' with { type: 'text' }
import journalTables from './0002_journal.sql' with { type: 'text' }
import operator from './0003_operator.sql' with { type: 'text' }
import journal from './meta/_journal.json'

const texts: Readonly<Record<string, string>> = {
  '0000_init': init,
  '0001_ledgers': ledgers,
  '0002_journal': journalTables,
  '0003_operator': operator,
}

/** One schema change, as drizzle-kit numbered it. */
export interface Migration {
  readonly tag: string
  /** Epoch milliseconds at which it was generated; strictly increasing. */
  readonly when: number
  readonly statements: readonly string[]
}

/** All migrations in order, imported as text so that a compiled binary carries them. */
export const migrations: readonly Migration[] = journal.entries.map(({ tag, when }) => {
  const text = texts[tag]
  if (text === undefined) throw new Error(`drizzle/migrations.ts does not list ${tag}`)
  return { tag, when, statements: text.split('--> statement-breakpoint') }
})
