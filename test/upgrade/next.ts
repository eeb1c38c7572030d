import type { Migration } from '../../drizzle/migration.ts'

/** A made-up next migration: a new column, a table that is created again with its rows, and a table filled from another. */
export function nextMigration(store: 'sqlite' | 'postgres'): Migration {
  return { tag: '9999_next', when: Date.UTC(2999, 0), statements: statements[store] }
}

const ownBrands = `CREATE TABLE own_brands AS SELECT app_id, brand_slug FROM app_brands`

const statements = {
  sqlite: [
    "ALTER TABLE codes_and_limits ADD note text DEFAULT 'none' NOT NULL",
    // As drizzle-kit writes it, since SQLite cannot change a constraint.
    'CREATE TABLE __new_app_brands (app_id text NOT NULL, brand_slug text NOT NULL, since integer, PRIMARY KEY(app_id, brand_slug)) STRICT, WITHOUT ROWID',
    'INSERT INTO __new_app_brands (app_id, brand_slug) SELECT app_id, brand_slug FROM app_brands',
    'DROP TABLE app_brands',
    'ALTER TABLE __new_app_brands RENAME TO app_brands',
    ownBrands,
  ],
  postgres: [
    "ALTER TABLE codes_and_limits ADD COLUMN note text DEFAULT 'none' NOT NULL",
    'ALTER TABLE app_brands ADD COLUMN since bigint',
    ownBrands,
  ],
}
