import { setTimeout as pause } from 'node:timers/promises'
import { and, asc, eq, gt, lt, lte, max, sql } from 'drizzle-orm'
import { OperatorError } from '../../domain/ground/operator-error.ts'
import type { Budget } from '../../domain/money/budgets.ts'
import type { PriceStore } from '../../domain/money/price-import.ts'
import type { PriceGroup, PriceList, PriceRow } from '../../domain/money/prices.ts'
import { priceListOf } from '../../domain/money/relative-prices.ts'
import { auditRow } from './audit.ts'
import type { Row, StoreDatabase, Tables } from './database.ts'
import { givenRows, type Orm, run, type StatementSteps } from './statements.ts'

// The prices of a provider are the rows of one generation, which `price_lists` names. An import writes a new generation in small
// steps, so that requests of other processes are written in between, announces it, so that servers load it before it is in force, and
// then switches to it in one step.

/** Rows of a step: a few milliseconds. */
const batch = 2000

/** Between steps, so that the steps of requests get the database. */
const restMs = 20

/** In which servers load the announced prices. */
const loadMs = (rows: number) => rows / 50

/** Small, so that concurrent requests do not wait noticeably. */
const pageSize = 1000

type PriceDatabase = Pick<StoreDatabase, 'orm' | 'tables'>

/** A provider and the generation of its prices. */
type Part = Pick<Row<'priceLists'>, 'provider'> & { readonly generation: number }

interface Loaded {
  readonly fingerprint: string
  readonly list: PriceList
}

export function createPriceReader({ orm, tables: { prices, priceLists } }: PriceDatabase) {
  let known: Loaded | undefined
  /** Of an announced import, so that requests after its switch need not wait for 100,000 prices. */
  let ahead: { readonly fingerprint: string; readonly loading: Promise<Loaded | undefined> } | undefined

  async function readParts(): Promise<{ readonly inForce: readonly Part[]; readonly next: readonly Part[] }> {
    const rows = await orm.select().from(priceLists).orderBy(asc(priceLists.provider))
    const partsOf = (generationOf: (row: Row<'priceLists'>) => number | null) =>
      rows.flatMap((row) => {
        const generation = generationOf(row)
        return generation === null ? [] : [{ provider: row.provider, generation }]
      })
    return {
      inForce: partsOf(({ generation }) => generation),
      next: partsOf((row) => row.next ?? row.generation),
    }
  }

  /** With a turn of the event loop between pages, since 100,000 prices take 130 ms. */
  async function readRows({ provider, generation }: Part): Promise<readonly PriceRow[]> {
    const rows: Row<'prices'>[] = []
    const isOfPart = isOf(prices, { provider, generation })
    for (;;) {
      const last = rows.at(-1)
      const page = await orm
        .select()
        .from(prices)
        .where(last ? and(isOfPart, gt(prices.prefix, last.prefix)) : isOfPart)
        .orderBy(asc(prices.prefix))
        .limit(pageSize)
      rows.push(...page)
      if (page.length < pageSize) return rows.map(priceOf)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async function readAll(parts: readonly Part[]): Promise<readonly PriceRow[]> {
    const rows: PriceRow[] = []
    for (const part of parts) rows.push(...(await readRows(part)))
    return rows
  }

  /** As one import left them. The next one deletes the rows that it replaces. */
  async function read(): Promise<{ readonly fingerprint: string; readonly rows: readonly PriceRow[] }> {
    for (;;) {
      const { inForce } = await readParts()
      const rows = await readAll(inForce)
      const fingerprint = JSON.stringify(inForce)
      if (JSON.stringify((await readParts()).inForce) === fingerprint) return { fingerprint, rows }
    }
  }

  function loadAhead(next: readonly Part[]): void {
    const fingerprint = JSON.stringify(next)
    if (known?.fingerprint === fingerprint || ahead?.fingerprint === fingerprint) return
    const loading = readAll(next).then(
      (rows) => ({ fingerprint, list: priceListOf(rows) }),
      () => undefined,
    )
    ahead = { fingerprint, loading }
  }

  return {
    rows: async (): Promise<readonly PriceRow[]> => (await read()).rows,
    /** Reads the prices again only after an import. */
    list: async (): Promise<PriceList> => {
      const { inForce, next } = await readParts()
      const fingerprint = JSON.stringify(inForce)
      if (known?.fingerprint !== fingerprint) {
        const loaded = ahead?.fingerprint === fingerprint ? await ahead.loading : undefined
        ahead = undefined
        known = loaded
      }
      if (!known) {
        const current = await read()
        known = { fingerprint: current.fingerprint, list: priceListOf(current.rows) }
      }
      loadAhead(next)
      return known.list
    },
  }
}

export function createPriceStore(database: StoreDatabase): PriceStore {
  const { orm, tables, policyChanges, serialTransaction, write, jsonElements } = database
  const { prices, priceLists, budgets, audit } = tables
  const key = [prices.generation, prices.provider, prices.prefix]
  const insertion = (inside: Orm, rows: readonly Row<'prices'>[]) =>
    inside.insert(prices).select(givenRows(jsonElements, prices, rows, key))

  function* decided<Change>(
    inside: Orm,
    decide: (current: readonly PriceGroup[], budgets: readonly Budget[]) => Change,
  ): StatementSteps<Change> {
    const current: PriceGroup[] = []
    for (const { provider, generation } of yield* run(inside.select().from(priceLists))) {
      if (generation === null) continue
      const counted = { currency: prices.currency, count: sql<number>`CAST(count(*) AS int)` }
      const rows = yield* run(
        inside
          .select(counted)
          .from(prices)
          .where(isOf(prices, { provider, generation }))
          .groupBy(prices.currency),
      )
      for (const row of rows) current.push({ provider: provider || null, ...row })
    }
    return decide(current, yield* run(inside.select().from(budgets)))
  }

  return {
    rows: createPriceReader(database).rows,
    change: async ({ actor, now }, decide) => {
      // The first rows reserve the generation.
      const { save, generation } = await serialTransaction(function* (inside) {
        const { save } = yield* decided(inside, decide)
        const [latest] = yield* run(inside.select({ generation: max(prices.generation) }).from(prices))
        const generation = (latest?.generation ?? 0) + 1
        const rows = save.map(({ provider, ...row }) => ({ ...row, provider: provider ?? '', generation }))
        yield* run(insertion(inside, rows.slice(0, batch)))
        return { save: rows, generation }
      })
      for (let start = batch; start < save.length; start += batch) {
        await pause(restMs)
        await write(insertion(orm, save.slice(start, start + batch)))
      }
      const providers = [...new Set(save.map(({ provider }) => provider))]
      const target = priceLists.provider
      try {
        if (save.length > batch) {
          await serialTransaction(function* (inside) {
            for (const provider of providers) {
              const row = { provider, generation: null, next: generation }
              yield* run(
                inside
                  .insert(priceLists)
                  .values(row)
                  .onConflictDoUpdate({ target, set: { next: generation } }),
              )
            }
          })
          policyChanges.invalidate()
          await pause(loadMs(save.length))
        }
        const change = await serialTransaction(function* (inside) {
          const change = yield* decided(inside, decide)
          const counted = { count: sql<number>`CAST(count(*) AS int)` }
          const isStaged = eq(prices.generation, generation)
          const [staged] = yield* run(inside.select(counted).from(prices).where(isStaged))
          if (staged?.count !== save.length)
            throw new OperatorError(
              'Another import ran at the same time. Nothing was stored. Run the command again.',
            )
          for (const provider of providers) {
            const row = { provider, generation, next: null }
            yield* run(inside.insert(priceLists).values(row).onConflictDoUpdate({ target, set: row }))
          }
          const entry = { at: now, actor, action: 'price.imported', ...change.entry } as const
          yield* run(inside.insert(audit).values(auditRow(entry)))
          return change
        })
        policyChanges.invalidate()
        await removeBefore(database, generation)
        return change
      } finally {
        policyChanges.invalidate()
      }
    },
  }
}

/** Deletes what earlier imports stored and no list names, also of one that ended before its switch. */
async function removeBefore(
  { orm, tables, serialTransaction }: StoreDatabase,
  generation: number,
): Promise<void> {
  const { prices, priceLists } = tables
  const { provider, prefix } = prices
  const pairs = { generation: prices.generation, provider }
  const earlier = lt(prices.generation, generation)
  const stored = await orm
    .select(pairs)
    .from(prices)
    .where(earlier)
    .groupBy(...Object.values(pairs))
  const lists = await orm.select().from(priceLists)
  for (const pair of stored) {
    if (lists.some((list) => list.provider === pair.provider && list.generation === pair.generation)) continue
    for (;;) {
      const page = await orm
        .select({ prefix })
        .from(prices)
        .where(isOf(prices, pair))
        .orderBy(asc(prefix))
        .limit(batch)
      const last = page.at(-1)
      if (!last) break
      await pause(restMs)
      const isNamed = await serialTransaction(function* (inside) {
        const isList = and(eq(priceLists.provider, pair.provider), eq(priceLists.generation, pair.generation))
        // An import that began earlier may have switched to it meanwhile.
        if ((yield* run(inside.select().from(priceLists).where(isList))).length > 0) return true
        yield* run(inside.delete(prices).where(and(isOf(prices, pair), lte(prefix, last.prefix))))
        return false
      })
      if (isNamed) break
    }
  }
}

function isOf(prices: Tables['prices'], { provider, generation }: Part) {
  return and(eq(prices.generation, generation), eq(prices.provider, provider))
}

function priceOf({ provider, prefix, priceMicros, currency }: Row<'prices'>): PriceRow {
  return { prefix, provider: provider || null, priceMicros, currency }
}
