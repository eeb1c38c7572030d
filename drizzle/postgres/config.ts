import { defineConfig } from 'drizzle-kit'

// `bun run migrations:postgres` writes the next migration here from src/adapters/postgres/schema.ts. List each
// file in migrations.ts beside this.
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/adapters/postgres/schema.ts',
  out: './drizzle/postgres',
})
