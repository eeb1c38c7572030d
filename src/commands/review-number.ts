import type { Command } from 'commander'
import type { StoreConfig } from '../config/store.ts'
import type { Context } from '../context.ts'
import {
  addReviewNumber,
  maxReviewDays,
  maxReviewNumbers,
  removeReviewNumber,
} from '../domain/operator/review-numbers.ts'
import { activeReviewNumbers, untilWords } from '../domain/policy/review-number.ts'
import { commandActor, complain, type Env, isoTime, print, printTable, withContext } from './common.ts'

const phoneMeaning = 'a phone number as in API requests'

export function reviewNumberCommands(program: Command, env: Env): void {
  const reviewNumber = program
    .command('review-number')
    .description('give app store reviewers a phone number with a fixed code that is not sent')
  reviewNumber
    .command('add')
    .description(
      `create a review number and print its fixed code once. At most ${maxReviewNumbers} review numbers exist at a time`,
    )
    .argument('<phone>', phoneMeaning)
    .requiredOption('--brand <slug>', 'the brand whose codes it is for')
    .requiredOption(
      '--until <date>',
      `the last day in UTC, such as 2026-11-21; at most ${maxReviewDays} days from today`,
    )
    .action((phone: string, options: { brand: string; until: string }) =>
      withContext(env, async (context, config) => {
        const ports = await reviewPorts(context, config, env)
        print((await addReviewNumber(ports, { phone, ...options })).code)
      }),
    )
  reviewNumber
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
  reviewNumber
    .command('remove')
    .description('remove a review number')
    .argument('<phone>', phoneMeaning)
    .requiredOption('--brand <slug>', 'its brand')
    .action((phone: string, { brand }: { brand: string }) =>
      withContext(env, async (context, config) => {
        const removed = await removeReviewNumber(await reviewPorts(context, config, env), { phone, brand })
        print(`Removed the review number ${removed.masked} of brand ${removed.brandSlug}.`)
      }),
    )
}

/** @throws OperatorError without the secret key of the server */
async function reviewPorts({ acting, brands, requireSecret }: Context, { contacts }: StoreConfig, env: Env) {
  requireSecret()
  return { ...acting(await commandActor(env)), brands, contacts }
}
