import type { Command } from 'commander'
import { reviewNumberGroup } from '../domain/operator/review-numbers.ts'
import { activeReviewNumbers, reviewNumberListing } from '../domain/policy/review-number.ts'
import { groupCommand } from './actions.ts'
import { type Env, printListing, withContext } from './common.ts'

export function reviewNumberCommands(program: Command, env: Env): void {
  groupCommand(program, reviewNumberGroup)
    .command('list')
    .description('list the review numbers')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) =>
      withContext(env, async ({ policy, now }) => {
        const active = activeReviewNumbers((await policy.rows()).reviewNumbers, now())
        printListing(options.json, active, reviewNumberListing, 'There are no review numbers.')
      }),
    )
}
