import { and, gte, inArray, lt, or } from 'drizzle-orm'
import {
  anyCountry,
  type BudgetCounters,
  counterOf,
  countersOf,
  countryCounters,
} from '../../domain/money/budgets.ts'
import type { StoreDatabase } from './database.ts'

/** The character after a colon is a semicolon. */
const afterCountryCounters = countryCounters.replace(/:$/, ';')

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
        .where(
          or(
            inArray(subject, subjects),
            budgets.some(({ scope }) => scope === anyCountry)
              ? and(gte(subject, countryCounters), lt(subject, afterCountryCounters))
              : undefined,
          ),
        )
      const open = rows.filter((row) => row.expiresAt > now)
      return countersOf(
        budgets,
        open.map((row) => row.subject),
      ).map((budget) => {
        const counter = counterOf(budget)
        const row = open.find((each) => each.subject === counter.subject[0] && each.name === counter.name)
        return { budget, micros: row?.count ?? 0 }
      })
    },
  }
}
