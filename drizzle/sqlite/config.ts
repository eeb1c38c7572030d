import { defineConfig } from 'drizzle-kit'

// `bun run migrations` writes the next migration here from src/adapters/sqlite/schema.ts. drizzle-kit knows neither
// STRICT nor WITHOUT ROWID: add them to each CREATE TABLE by hand, then list the file in migrations.ts beside this.
export default defineConfig({
  dialect: 'sqlite',
  schema: './src/adapters/sqlite/schema.ts',
  out: './drizzle/sqlite',
})
