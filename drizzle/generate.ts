import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  generateDrizzleJson,
  generateMigration,
  generateSQLiteDrizzleJson,
  generateSQLiteMigration,
} from 'drizzle-kit/api'
import { tables as postgresTables } from '../src/adapters/postgres/schema.ts'
import { tables as sqliteTables } from '../src/adapters/sqlite/schema.ts'
import type { AnyTable, Store } from '../src/adapters/store/dialect.ts'
import { schema } from '../src/adapters/store/schema.ts'
import { migrations as ofPostgres } from './postgres/migrations.ts'
import { migrations as ofSqlite } from './sqlite/migrations.ts'

// Writes the next migration of each store whose tables were declared otherwise: bun drizzle/generate.ts NAME.

export const stores = { sqlite: ofSqlite, postgres: ofPostgres } as const

/** From the tables of the newest migration, or of an empty database, to those that are declared. */
export async function changes(
  store: Store,
  isFromEmpty = false,
): Promise<{ readonly statements: readonly string[]; readonly snapshot: object }> {
  const file = snapshotOf(store)
  const previous = isFromEmpty || !existsSync(file) ? undefined : JSON.parse(readFileSync(file, 'utf8'))
  if (store === 'postgres') {
    const snapshot = generateDrizzleJson({ ...postgresTables }, previous?.id)
    return { statements: await generateMigration(previous ?? generateDrizzleJson({}), snapshot), snapshot }
  }
  const snapshot = await generateSQLiteDrizzleJson({ ...sqliteTables }, previous?.id)
  const statements = await generateSQLiteMigration(
    previous ?? (await generateSQLiteDrizzleJson({})),
    snapshot,
  )
  return { statements: statements.map(strict), snapshot }
}

function snapshotOf(store: Store): string {
  return join(import.meta.dir, store, 'snapshot.json')
}

/** What drizzle-kit has no word for. */
function strict(statement: string): string {
  const [, name] = /^CREATE TABLE `(?:__new_)?(\w+)`/.exec(statement) ?? []
  const table = Object.values<AnyTable>(schema).find((each) => each.name === name)
  if (!table) return statement
  const hasRowId = table.facts.hasRowId || table.columns.id?.properties.kind === 'id'
  return statement.trimEnd().replace(/\);$/, hasRowId ? ') STRICT;' : ') STRICT, WITHOUT ROWID;')
}

async function main(): Promise<void> {
  const [name = ''] = process.argv.slice(2)
  if (!/^[a-z0-9_]+$/.test(name))
    throw new Error('Give the migration a name, such as `bun run migrations more_texts`.')
  for (const [store, { length }] of Object.entries(stores)) {
    const { statements, snapshot } = await changes(store as Store)
    if (statements.length === 0) continue
    const tag = `${String(length).padStart(4, '0')}_${name}`
    writeFileSync(
      join(import.meta.dir, store, `${tag}.sql`),
      `${statements.map((each) => each.trimEnd()).join('\n--> statement-breakpoint\n')}\n`,
    )
    writeFileSync(snapshotOf(store as Store), JSON.stringify(snapshot, null, 2))
    console.log(`drizzle/${store}/migrations.ts: list '${tag}', when: ${Date.now()}`)
  }
}

if (import.meta.main) await main()
