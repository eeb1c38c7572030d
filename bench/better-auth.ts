import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { phoneNumber } from 'better-auth/plugins'
import Driver from 'better-sqlite3'

/**
 * better-auth's phone-number plugin as its documentation sets it up, on Bun and better-sqlite3, with the schema and
 * indexes of its own migration. Commits are as durable as otpost's, messages cost nothing, and its rate limits and
 * telemetry are off.
 */
const database = new Driver(process.env.DATABASE_FILE)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')

const origin = `http://127.0.0.1:${process.env.PORT}`
const auth = betterAuth({
  baseURL: origin,
  secret: 'a secret of the benchmark, of 32 bytes',
  database,
  telemetry: { enabled: false },
  rateLimit: { enabled: false },
  logger: { level: 'error' },
  plugins: [phoneNumber({ sendOTP: () => {} })],
})
const { runMigrations } = await getMigrations(auth.options)
await runMigrations()

Bun.serve({ hostname: '127.0.0.1', port: Number(process.env.PORT), fetch: auth.handler })
