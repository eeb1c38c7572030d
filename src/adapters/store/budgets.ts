import { between, inArray, or } from 'drizzle-orm'
import { type BudgetCounters, counterOf, countersOf, countryCounters } from '../../domain/money/budgets.ts'
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
      const isOfCountry = between(subject, countryCounters, `${countryCounters}ZZ`)
      const rows = await orm
        .select({ subject, name, count, expiresAt })
        .from(codesAndLimits)
        .where(or(inArray(subject, subjects), isOfCountry))
      const known = rows.map((row) => row.subject)
      const spent = countersOf(budgets, known).map((budget) => {
        const counter = counterOf(budget)
        const row = rows.find((each) => each.subject === counter.subject[0] && each.name === counter.name)
        return { budget, micros: row && row.expiresAt > now ? (row.count ?? 0) : 0 }
      })
      // Another budget of each country may have counted for the country.
      return spent.filter(({ budget, micros }) => budget.country === undefined || micros > 0)
    },
  }
}
