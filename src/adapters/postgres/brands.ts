import { asc, eq, sql } from 'drizzle-orm'
import { type Brand, nameKey } from '../../domain/brands/brand.ts'
import type { BrandStore } from '../../domain/operator/operator.ts'
import { remembered } from './changes.ts'
import type { Database, Orm } from './database.ts'
import { brands } from './schema.ts'

/** Brands in PostgreSQL; what has been read is remembered until something changes, on any node. */
export function createBrandStore({ orm, changes }: Pick<Database, 'orm' | 'changes'>): BrandStore {
  const { read } = brandTable(orm)
  return {
    bySlug: remembered(changes, read),
    byName: remembered(changes, async (name) => {
      const [row] = await orm
        .select()
        .from(brands)
        .where(eq(brands.nameKey, name))
        .orderBy(sql`${brands.status} <> 'active'`, asc(brands.slug))
        .limit(1)
      return row && toBrand(row)
    }),
    list: async () => (await orm.select().from(brands).orderBy(asc(brands.slug))).map(toBrand),
  }
}

/** Brands as a change of the operator reads and stores them. */
export function brandTable(orm: Orm) {
  return {
    read: async (slug: string): Promise<Brand | undefined> => {
      const [row] = await orm.select().from(brands).where(eq(brands.slug, slug))
      return row && toBrand(row)
    },
    async put(brand: Brand): Promise<void> {
      const row = { ...brand, nameKey: nameKey(brand.displayName) }
      await orm.insert(brands).values(row).onConflictDoUpdate({ target: brands.slug, set: row })
    },
  }
}

function toBrand(row: typeof brands.$inferSelect): Brand {
  const { nameKey: _, ...brand } = row
  return brand
}
