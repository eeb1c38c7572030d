import { inArray } from 'drizzle-orm'
import { type BudgetCounters, counterOf } from '../../domain/money/budgets.ts'
import type { StoreDatabase } from './database.ts'

/** Without a lock, so requests in progress may be counted or not. */
export function createBudgetCounters({
  orm,
  tables: { codesAndLimits },
}: Pick<StoreDatabase, 'orm' | 'tables'>): BudgetCounters {
  return {
    spent: async (budgets, now) => {
      if (budgets.length === 0) return []
      const subjects = budgets.map((budget) => counterOf(budget).subject[0])
      const { subject, name, count, expiresAt } = codesAndLimits
      const rows = await orm
        .select({ subject, name, count, expiresAt })
        .from(codesAndLimits)
        .where(inArray(subject, subjects))
      return budgets.map((budget) => {
        const counter = counterOf(budget)
        const row = rows.find((each) => each.subject === counter.subject[0] && each.name === counter.name)
        return row && row.expiresAt > now ? (row.count ?? 0) : 0
      })
    },
  }
}
