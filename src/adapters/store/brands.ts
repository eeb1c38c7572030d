import { asc, eq, sql } from 'drizzle-orm'
import type { Brand } from '../../domain/brands/brand.ts'
import type { BrandStore } from '../../domain/operator/operator.ts'
import { type BrandRow, cached, type StoreDatabase } from './database.ts'

export function createBrandStore({ orm, tables: { brands }, changes }: StoreDatabase): BrandStore {
  const bySlug = orm
    .select()
    .from(brands)
    .where(eq(brands.slug, sql.placeholder('slug')))
    .prepare('brand_by_slug')
  const byName = orm
    .select()
    .from(brands)
    .where(eq(brands.nameKey, sql.placeholder('name')))
    .orderBy(sql`${brands.status} <> 'active'`, asc(brands.slug))
    .limit(1)
    .prepare('brand_by_name')
  return {
    bySlug: cached(changes, async (slug) => brandOf(await bySlug.execute({ slug }))),
    byName: cached(changes, async (name) => brandOf(await byName.execute({ name }))),
    list: async () => (await orm.select().from(brands).orderBy(asc(brands.slug))).map(toBrand),
  }
}

export function brandOf([row]: readonly BrandRow[]): Brand | undefined {
  return row && toBrand(row)
}

function toBrand({ nameKey: _, ...brand }: BrandRow): Brand {
  return brand
}
