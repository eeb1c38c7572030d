import { listed, type Migration } from '../migration.ts'
import init from './0000_init.sql' with { type: 'text' }
import functions from './0001_functions.sql' with { type: 'text' }
import eventLog from './0002_event_log.sql' with { type: 'text' }
import codesAndLimits from './0003_codes_and_limits.sql' with { type: 'text' }
import provider from './0004_provider.sql' with { type: 'text' }
import money from './0005_money.sql' with { type: 'text' }
import applications from './0006_applications.sql' with { type: 'text' }
import texts from './0007_texts.sql' with { type: 'text' }
import operators from './0008_operators.sql' with { type: 'text' }
import queueAndPrices from './0009_queue_and_prices.sql' with { type: 'text' }
import journal from './meta/_journal.json'

/** Imported as text, so that a compiled binary contains them. */
export const migrations: readonly Migration[] = listed('drizzle/postgres/migrations.ts', journal, {
  '0000_init': init,
  '0001_functions': functions,
  '0002_event_log': eventLog,
  '0003_codes_and_limits': codesAndLimits,
  '0004_provider': provider,
  '0005_money': money,
  '0006_applications': applications,
  '0007_texts': texts,
  '0008_operators': operators,
  '0009_queue_and_prices': queueAndPrices,
})
