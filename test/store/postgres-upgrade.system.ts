import { expect, test } from 'bun:test'
import { migrations } from '../../drizzle/postgres/migrations.ts'
import { migrate } from '../../src/adapters/postgres/migrate.ts'
import { openPool } from '../../src/adapters/postgres/pool.ts'
import { emptyDatabase } from '../support/postgres.ts'
import { targetOf } from './postgres-database.ts'

test('open limits and live codes of a database with ledgers survive the upgrade', async () => {
  const { url, remove } = await emptyDatabase()
  const pool = openPool(targetOf(url), () => {})
  const rows = (text: string) => pool.rows(text, [])
  const typedFrom = migrations.findIndex(({ tag }) => tag.endsWith('codes_and_limits'))
  await migrate(pool, migrations.slice(0, typedFrom))
  const state = {
    w: { minute: [2, 1_800_000_060_000], 'cooldown:acme': [1, 1_800_000_030_000] },
    c: { acme: ['id', 'hash', 1, 1_800_000_000_000, 1_800_000_300_000] },
  }
  await pool.rows('INSERT INTO ledgers (subject, ends_at, state) VALUES ($1, $2, $3), ($4, $2, $5)', [
    ...['ann', 1_800_000_300_000, JSON.stringify(state)],
    ...['app:shop', JSON.stringify({ w: { minute: [7, 1_800_000_060_000] }, c: {} })],
  ])
  await migrate(pool)
  expect(await rows('SELECT * FROM codes_and_limits ORDER BY subject, name')).toEqual([
    ['ann', 'code:acme', null, 'id', 'hash', 1, 1_800_000_000_000, 1_800_000_300_000, null, null],
    ['ann', 'cooldown:acme', 1, null, null, null, null, 1_800_000_030_000, null, null],
    ['ann', 'minute', 2, null, null, null, null, 1_800_000_060_000, null, null],
    ['app:shop', 'minute', 7, null, null, null, null, 1_800_000_060_000, null, null],
  ])
  expect(await rows("SELECT to_regclass('ledgers')")).toEqual([[null]])
  expect(await rows("SELECT tgname FROM pg_trigger WHERE tgname LIKE '%_revised'")).toEqual([])
  await pool.close()
  await remove()
})
