import { type Migration, migration } from '../migration.ts'
import baseline from './0000_baseline.sql' with { type: 'text' }

/** Imported as text, so that a compiled binary contains them. */
export const migrations: readonly Migration[] = [migration('0000_baseline', 1795859044858, baseline)]
