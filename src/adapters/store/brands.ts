import { and, asc, eq, sql } from 'drizzle-orm'
import type { BrandStore, Decision } from '../../domain/operator/changes.ts'
import { type BrandWithTexts, nameKey } from '../../domain/texts/brand.ts'
import { BrandTexts, noTexts } from '../../domain/texts/brand-texts.ts'
import { cached, type Row, type StoreDatabase, type Tables } from './database.ts'
import { type Orm, run, type StatementSteps } from './statements.ts'

type BrandTables = Pick<Tables, 'brands' | 'texts' | 'textVariables'>

export function createBrandStore({ orm, tables, changes }: StoreDatabase): BrandStore {
  const { brands } = tables
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
  const withTexts = async ([row]: readonly Row<'brands'>[]) => {
    if (!row) return undefined
    const [all, variables] = await Promise.all([
      listedTexts(orm, tables, row.slug),
      listedVariables(orm, tables, row.slug),
    ])
    return toBrand(row, textsOf(all, variables))
  }
  const listed = cached(changes, async () => {
    const [rows, all, variables] = await Promise.all([
      orm.select().from(brands).orderBy(asc(brands.slug)),
      listedTexts(orm, tables),
      listedVariables(orm, tables),
    ])
    const textsBySlug = Map.groupBy(all, ({ brandSlug }) => brandSlug)
    const variablesBySlug = Map.groupBy(variables, ({ brandSlug }) => brandSlug)
    return rows.map((row) =>
      toBrand(row, textsOf(textsBySlug.get(row.slug) ?? [], variablesBySlug.get(row.slug) ?? [])),
    )
  })
  return {
    bySlug: cached(changes, async (slug) => withTexts(await bySlug.execute({ slug }))),
    byName: cached(changes, async (name) => withTexts(await byName.execute({ name }))),
    list: async () => listed('all'),
  }
}

/** @param slug undefined: of all brands */
function listedTexts(orm: Orm, { texts }: BrandTables, slug?: string) {
  const { brandSlug, templateKey, channel, lang } = texts
  const isOfBrand = slug === undefined ? undefined : eq(brandSlug, slug)
  return orm.select().from(texts).where(isOfBrand).orderBy(asc(templateKey), asc(channel), asc(lang))
}

function listedVariables(orm: Orm, { textVariables }: BrandTables, slug?: string) {
  const isOfBrand = slug === undefined ? undefined : eq(textVariables.brandSlug, slug)
  return orm.select().from(textVariables).where(isOfBrand).orderBy(asc(textVariables.position))
}

/** @param variables in their order */
export function textsOf(
  all: readonly Row<'texts'>[],
  variables: readonly Omit<Row<'textVariables'>, 'brandSlug' | 'position'>[],
): BrandTexts {
  if (all.length === 0) return noTexts
  const rows = all.map(({ brandSlug: _, ...text }) => text)
  const declared = variables.map(
    ({ templateKey, name, type, max }) => [templateKey, { name, type, max }] as const,
  )
  const byKey = Map.groupBy(declared, ([templateKey]) => templateKey)
  return new BrandTexts(
    rows.flatMap(({ isDraft, variables: _, ...text }) => (isDraft ? [] : [text])),
    new Map([...byKey].map(([templateKey, each]) => [templateKey, each.map(([, variable]) => variable)])),
    rows.flatMap(({ isDraft, ...draft }) => (isDraft ? [draft] : [])),
  )
}

function toBrand({ nameKey: _, ...brand }: Row<'brands'>, texts: BrandTexts): BrandWithTexts {
  return { ...brand, texts }
}

export function* readBrand(
  orm: Orm,
  tables: BrandTables,
  slug: string,
): StatementSteps<BrandWithTexts | undefined> {
  const { brands } = tables
  const [row] = yield* run(orm.select().from(brands).where(eq(brands.slug, slug)))
  if (!row) return undefined
  const all = yield* run(listedTexts(orm, tables, slug))
  const variables = yield* run(listedVariables(orm, tables, slug))
  return toBrand(row, textsOf(all, variables))
}

type BrandDecision = Pick<
  Decision,
  'brand' | 'saveText' | 'removeText' | 'saveDraft' | 'removeDraft' | 'declare'
>

/** @param slug of the brand that the texts are of */
export function* saveBrand(
  orm: Orm,
  { brands, texts, textVariables }: BrandTables,
  slug: string,
  { brand, saveText, removeText, saveDraft, removeDraft, declare }: BrandDecision,
): StatementSteps<void> {
  if (brand) {
    const row = { ...brand, nameKey: nameKey(brand.displayName) }
    yield* run(orm.insert(brands).values(row).onConflictDoUpdate({ target: brands.slug, set: row }))
  }
  if (declare) {
    const { templateKey, variables } = declare
    const isOfTemplate = and(eq(textVariables.brandSlug, slug), eq(textVariables.templateKey, templateKey))
    yield* run(orm.delete(textVariables).where(isOfTemplate))
    for (const [index, variable] of variables.entries()) {
      const row = { ...variable, brandSlug: slug, templateKey, position: index + 1 }
      yield* run(orm.insert(textVariables).values(row))
    }
  }
  const saved = [
    ...(saveText ? [{ ...saveText, isDraft: false, variables: null }] : []),
    ...(saveDraft ? [{ ...saveDraft, isDraft: true }] : []),
  ]
  for (const text of saved) {
    const row = { ...text, brandSlug: slug }
    const target = [texts.brandSlug, texts.templateKey, texts.channel, texts.lang, texts.isDraft]
    yield* run(orm.insert(texts).values(row).onConflictDoUpdate({ target, set: row }))
  }
  for (const [removed, isDraft] of [[removeText, false] as const, [removeDraft, true] as const]) {
    if (!removed) continue
    const { templateKey, channel, lang } = removed
    const isText = and(
      eq(texts.brandSlug, slug),
      eq(texts.templateKey, templateKey),
      eq(texts.channel, channel),
      eq(texts.lang, lang),
      eq(texts.isDraft, isDraft),
    )
    yield* run(orm.delete(texts).where(isText))
  }
}
