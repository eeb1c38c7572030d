import { defineConfig } from 'drizzle-kit'

// After `bun run migrations:postgres`, add the new file to migrations.ts.
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/adapters/postgres/schema.ts',
  out: './drizzle/postgres',
})
