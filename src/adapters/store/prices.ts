import { desc, eq, inArray, sql } from 'drizzle-orm'
import type { PriceList, PriceRow } from '../../domain/money/prices.ts'
import { priceListOf } from '../../domain/money/relative-prices.ts'
import type { PriceStore } from '../../domain/operator/money.ts'
import { auditRow } from './audit.ts'
import type { PriceTableRow, StoreDatabase } from './database.ts'
import { givenRows, run } from './statements.ts'

/** Small, so that a statement's parameter has less than 1 MB. */
const batch = 10_000

/** Small, so that concurrent requests do not wait noticeably. */
const pageSize = 5000

export function createPriceReader({ orm, tables: { prices, audit } }: Pick<StoreDatabase, 'orm' | 'tables'>) {
  let known: { readonly fingerprint: number; readonly list: PriceList } | undefined

  /** Differs after an import. */
  async function fingerprint(): Promise<number> {
    const isImport = eq(audit.action, 'price.imported')
    const imports = orm.select({ id: audit.id }).from(audit).where(isImport)
    const [last] = await imports.orderBy(desc(audit.id)).limit(1)
    return last?.id ?? 0
  }

  /** With a turn of the event loop between pages, since 100,000 prices take 130 ms. */
  async function readAll(): Promise<readonly PriceTableRow[]> {
    const rows: PriceTableRow[] = []
    for (;;) {
      const last = rows.at(-1)
      const isNext = last && sql`(${prices.prefix}, ${prices.provider}) > (${last.prefix}, ${last.provider})`
      const page = await orm
        .select()
        .from(prices)
        .where(isNext)
        .orderBy(prices.prefix, prices.provider)
        .limit(pageSize)
      rows.push(...page)
      if (page.length < pageSize) return rows
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** As one import left them. */
  async function read(): Promise<{ readonly fingerprint: number; readonly rows: readonly PriceRow[] }> {
    for (;;) {
      const before = await fingerprint()
      const rows = await readAll()
      if ((await fingerprint()) === before) return { fingerprint: before, rows: rows.map(priceOf) }
    }
  }

  return {
    rows: async (): Promise<readonly PriceRow[]> => (await read()).rows,
    /** Reads the prices again only after an import. */
    list: async (): Promise<PriceList> => {
      if (known && known.fingerprint === (await fingerprint())) return known.list
      const { fingerprint: ofRows, rows } = await read()
      known = { fingerprint: ofRows, list: priceListOf(rows) }
      return known.list
    },
  }
}

export function createPriceStore(database: StoreDatabase): PriceStore {
  const { tables, policyChanges, serialTransaction, jsonElements } = database
  const { prices, budgets, audit } = tables
  const key = [prices.prefix, prices.provider]
  return {
    rows: createPriceReader(database).rows,
    change: async ({ actor, now }, decide) => {
      try {
        return await serialTransaction(function* (inside) {
          const current = yield* run(inside.select().from(prices))
          const change = decide(current.map(priceOf), yield* run(inside.select().from(budgets)))
          const { removeGroups, save, entry } = change
          yield* run(inside.delete(prices).where(inArray(prices.provider, removeGroups.map(providerText))))
          for (let start = 0; start < save.length; start += batch) {
            const rows = save.slice(start, start + batch).map(rowOf)
            yield* run(inside.insert(prices).select(givenRows(jsonElements, prices, rows, key)))
          }
          yield* run(
            inside.insert(audit).values(auditRow({ at: now, actor, action: 'price.imported', ...entry })),
          )
          return change
        })
      } finally {
        policyChanges.invalidate()
      }
    },
  }
}

function providerText(provider: string | null): string {
  return provider ?? ''
}

function priceOf({ provider, ...row }: PriceTableRow): PriceRow {
  return { ...row, provider: provider === '' ? null : provider }
}

function rowOf({ provider, ...row }: PriceRow): PriceTableRow {
  return { ...row, provider: providerText(provider) }
}
