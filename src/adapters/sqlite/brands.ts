import { asc, eq, sql } from 'drizzle-orm'
import { type Brand, nameKey } from '../../domain/brand.ts'
import type { BrandBook } from '../../domain/operator.ts'
import { remembered } from './changes.ts'
import type { Database } from './database.ts'
import { brands } from './schema.ts'

/** Brands in SQLite; what has been read is remembered until something changes. */
export function createBrandBook({ orm, writer, changes }: Database): BrandBook {
  const bySlug = orm
    .select()
    .from(brands)
    .where(eq(brands.slug, sql.placeholder('slug')))
    .prepare()
  const byName = orm
    .select()
    .from(brands)
    .where(eq(brands.nameKey, sql.placeholder('nameKey')))
    .orderBy(sql`${brands.status} <> 'active'`, asc(brands.slug))
    .limit(1)
    .prepare()
  const all = orm.select().from(brands).orderBy(asc(brands.slug)).prepare()

  const knownBySlug = remembered(changes, (slug: string) => brandOf(bySlug.get({ slug })))
  const knownByName = remembered(changes, (name: string) => brandOf(byName.get({ nameKey: name })))

  return {
    bySlug: async (slug) => knownBySlug(slug),
    byName: async (name) => knownByName(name),
    list: async () => all.all().map((row) => toBrand(row)),
    edit: (slug, change) =>
      writer.write(() => {
        changes.tell()
        const brand = change(brandOf(bySlug.get({ slug })))
        const row = { ...brand, nameKey: nameKey(brand.displayName) }
        orm.insert(brands).values(row).onConflictDoUpdate({ target: brands.slug, set: row }).run()
        return brand
      }),
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
