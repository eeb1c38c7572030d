import type { Command } from 'commander'
import { reviewNumberGroup } from '../domain/operator/review-numbers.ts'
import { activeReviewNumbers, untilWords } from '../domain/policy/review-number.ts'
import { groupCommand } from './actions.ts'
import { complain, type Env, isoTime, printTable, withContext } from './common.ts'

export function reviewNumberCommands(program: Command, env: Env): void {
  groupCommand(program, reviewNumberGroup)
    .command('list')
    .description('list the review numbers')
    .option('--json', 'print a JSON array')
    .action((options: { json?: true }) =>
      withContext(env, async ({ policy, now }) => {
        const active = activeReviewNumbers((await policy.rows()).reviewNumbers, now())
        if (active.length === 0 && !options.json) {
          complain('There are no review numbers.')
          return
        }
        const rows = active.map((each) => ({
          phone: each.masked,
          brand: each.brandSlug,
          until: untilWords(each),
          createdAt: isoTime(each.createdAt),
        }))
        printTable(options.json, rows, [
          ['PHONE', ({ phone }) => phone],
          ['BRAND', ({ brand }) => brand],
          ['UNTIL', ({ until }) => until],
          ['CREATED', ({ createdAt }) => createdAt],
        ])
      }),
    )
}
