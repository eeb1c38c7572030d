import type { Command } from 'commander'
import type { ListedJob } from '../domain/notify/queue.ts'
import { listJobs, mostListedJobs, queueGroup } from '../domain/operator/queue.ts'
import { groupCommand } from './actions.ts'
import { complain, type Env, isoTime, printTable, withContext } from './common.ts'

export function queueCommands(program: Command, env: Env): void {
  groupCommand(program, queueGroup)
    .command('list')
    .description('list jobs that are queued, in flight, or can be retried; oldest request first')
    .option('--app <appId>', 'only jobs of this app')
    .option('--json', 'print a JSON array')
    .action((options: { app?: string; json?: true }) =>
      withContext(env, async (context, { database }) => {
        const rows = await listJobs(context, { appId: options.app })
        if (rows.length === 0 && !options.json) {
          complain(`No jobs match in ${database.name}.`)
          return
        }
        printTable(options.json, rows.map(jobRow), [
          ['REQUEST', (row) => row.requestId],
          ['INDEX', (row) => String(row.index)],
          ['APP', (row) => row.app],
          ['CHANNEL', (row) => row.channel],
          ['TO', (row) => row.to],
          ['STATE', (row) => row.state],
          ['TRIES', (row) => String(row.tries)],
          ['NEXT', (row) => row.nextTryAt ?? '-'],
          ['EXPIRES', (row) => row.expiresAt],
          ['WHY', (row) => row.reason ?? '-'],
        ])
        if (rows.length === mostListedJobs && !options.json) {
          complain(`The list has the first ${mostListedJobs} jobs. Use --app to see those of one app.`)
        }
      }),
    )
}

/** As in JSON. */
export function jobRow(job: ListedJob) {
  const { requestId, position, state, masked, tries, reason, appId, brandSlug, channel, reference } = job
  return {
    requestId,
    index: position - 1,
    app: appId,
    brandId: brandSlug,
    channel,
    to: masked,
    reference,
    state,
    tries,
    reason,
    createdAt: isoTime(job.createdAt),
    updatedAt: isoTime(job.updatedAt),
    nextTryAt: state === 'queued' ? isoTime(job.dueAt) : null,
    expiresAt: isoTime(job.expiresAt),
  }
}
