import { listed, type Migration } from '../migration.ts'
import init from './0000_init.sql' with { type: 'text' }
import ledgers from './0001_ledgers.sql' with { type: 'text' }
import journalTables from './0002_journal.sql' with { type: 'text' }
import operator from './0003_operator.sql' with { type: 'text' }
import keyFingerprints from './0004_secret_marks.sql' with { type: 'text' }
import codesAndLimits from './0005_codes_and_limits.sql' with { type: 'text' }
import eventLog from './0006_event_log.sql' with { type: 'text' }
import provider from './0007_provider.sql' with { type: 'text' }
import recipientIndex from './0008_recipient_index.sql' with { type: 'text' }
import money from './0009_money.sql' with { type: 'text' }
import applications from './0010_applications.sql' with { type: 'text' }
import texts from './0011_texts.sql' with { type: 'text' }
import operators from './0012_operators.sql' with { type: 'text' }
import queueAndPrices from './0013_queue_and_prices.sql' with { type: 'text' }
import journal from './meta/_journal.json'

/** Imported as text, so that a compiled binary contains them. */
export const migrations: readonly Migration[] = listed('drizzle/sqlite/migrations.ts', journal, {
  '0000_init': init,
  '0001_ledgers': ledgers,
  '0002_journal': journalTables,
  '0003_operator': operator,
  '0004_secret_marks': keyFingerprints,
  '0005_codes_and_limits': codesAndLimits,
  '0006_event_log': eventLog,
  '0007_provider': provider,
  '0008_recipient_index': recipientIndex,
  '0009_money': money,
  '0010_applications': applications,
  '0011_texts': texts,
  '0012_operators': operators,
  '0013_queue_and_prices': queueAndPrices,
})
