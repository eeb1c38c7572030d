import { defineConfig } from 'drizzle-kit'

// After `bun run migrations`, add STRICT and WITHOUT ROWID to each CREATE TABLE, which drizzle-kit does not
// support. Then add the new file to migrations.ts.
export default defineConfig({
  dialect: 'sqlite',
  schema: './src/adapters/sqlite/schema.ts',
  out: './drizzle/sqlite',
})
