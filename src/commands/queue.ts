import type { Command } from 'commander'
import { counted } from '../domain/ground/format.ts'
import type { ListedJob } from '../domain/notify/queue.ts'
import { cancelJobs, listJobs, mostListedJobs, retryJobs } from '../domain/operator/queue.ts'
import {
  commandActor,
  complain,
  type Env,
  isoTime,
  print,
  printTable,
  requestId,
  withContext,
} from './common.ts'

export function queueCommands(program: Command, env: Env): void {
  const queue = program
    .command('queue')
    .description('see, retry and cancel asynchronous notifications (POST /notify with async)')
  queue
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
  queue
    .command('retry')
    .description('send the failed jobs of a request again, for one hour')
    .argument('<requestId>', 'the requestId of the 202 answer')
    .option(
      '--include-unknown',
      'also jobs with an unknown result: their recipients may get the message twice',
    )
    .addHelpText('after', '\notpost keeps the message and the recipient of a failed job for 24 hours.')
    .action((id: string, options: { includeUnknown?: true }) =>
      withContext(env, async (context) => {
        const ports = { ...context.acting(await commandActor(env)), jobs: context.jobs }
        const includesUnknown = options.includeUnknown ?? false
        print(`${counted(await retryJobs(ports, requestId(id), { includesUnknown }), 'job')} queued again.`)
      }),
    )
  queue
    .command('cancel')
    .description('cancel the queued jobs of a request')
    .argument('<requestId>', 'the requestId of the 202 answer')
    .action((id: string) =>
      withContext(env, async (context) => {
        const ports = { ...context.acting(await commandActor(env)), jobs: context.jobs }
        print(`${counted(await cancelJobs(ports, requestId(id)), 'job')} cancelled.`)
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
