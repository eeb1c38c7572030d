import type { Command } from 'commander'
import { jobListing } from '../domain/notify/queue.ts'
import { listJobs, mostListedJobs, queueGroup } from '../domain/operator/queue.ts'
import { groupCommand } from './actions.ts'
import { complain, type Env, printListing, withContext } from './common.ts'

export function queueCommands(program: Command, env: Env): void {
  groupCommand(program, queueGroup)
    .command('list')
    .description('list jobs that wait, are in flight, or can be retried')
    .option('--app <appId>', 'only jobs of this app')
    .option('--json', 'print JSON')
    .action((options: { app?: string; json?: true }) =>
      withContext(env, async (context, { database }) => {
        const rows = await listJobs(context, { appId: options.app })
        printListing(options.json, rows, jobListing, `No jobs match in ${database.name}.`)
        if (rows.length === mostListedJobs && !options.json) {
          complain(`The list has the first ${mostListedJobs} jobs. Use --app to see those of one app.`)
        }
      }),
    )
}
