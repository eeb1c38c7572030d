import { asc, eq, sql } from 'drizzle-orm'
import { type Brand, nameKey } from '../../domain/brands/brand.ts'
import type { BrandStore } from '../../domain/operator/operator.ts'
import { remembered } from './changes.ts'
import type { Database } from './database.ts'
import { brands } from './schema.ts'

/** Brands in SQLite; what has been read is remembered until something changes. */
export function createBrandStore({ orm, changes }: Pick<Database, 'orm' | 'changes'>): BrandStore {
  const table = brandTable(orm)
  const byName = orm
    .select()
    .from(brands)
    .where(eq(brands.nameKey, sql.placeholder('nameKey')))
    .orderBy(sql`${brands.status} <> 'active'`, asc(brands.slug))
    .limit(1)
    .prepare()
  const all = orm.select().from(brands).orderBy(asc(brands.slug)).prepare()

  const knownBySlug = remembered(changes, table.read)
  const knownByName = remembered(changes, (name: string) => brandOf(byName.get({ nameKey: name })))

  return {
    bySlug: async (slug) => knownBySlug(slug),
    byName: async (name) => knownByName(name),
    list: async () => all.all().map((row) => toBrand(row)),
  }
}

/** Brands as a step of the writer reads and stores them. */
export function brandTable(orm: Database['orm']) {
  const bySlug = orm
    .select()
    .from(brands)
    .where(eq(brands.slug, sql.placeholder('slug')))
    .prepare()
  return {
    read: (slug: string): Brand | undefined => brandOf(bySlug.get({ slug })),
    put(brand: Brand): void {
      const row = { ...brand, nameKey: nameKey(brand.displayName) }
      orm.insert(brands).values(row).onConflictDoUpdate({ target: brands.slug, set: row }).run()
    },
  }
}

type Row = typeof brands.$inferSelect

function brandOf(row: Row | undefined): Brand | undefined {
  return row && toBrand(row)
}

function toBrand(row: Row): Brand {
  const { nameKey: _, ...brand } = row
  return brand
}
