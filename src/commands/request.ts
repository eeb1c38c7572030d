import type { Command } from 'commander'
import type { IntegrationRequestRecord } from '../domain/integration/integration.ts'
import { approveRequest, OperatorError, rejectRequest, requestIdOf } from '../domain/operator/operator.ts'
import { commandActor, complain, type Env, isoTime, print, printTable, withServerContext } from './common.ts'

/** `otpost request …` */
export function requestCommands(program: Command, env: Env): void {
  const request = program
    .command('request')
    .description('decide what integrators have asked for by POST /integrations/requests')
  request
    .command('list')
    .description('list the requests, the latest last')
    .option('--pending', 'only those that wait for a decision')
    .option('--json', 'as a JSON array')
    .action((options: { pending?: true; json?: true }) =>
      withServerContext(env, async ({ requests }) => {
        const all = [...(await requests.list())].reverse().map(requestRow)
        const rows = options.pending ? all.filter(({ status }) => status === 'pending') : all
        printTable(options.json, rows, [
          ['REQUEST', (row) => row.integrationRequestId],
          ['ASKED', (row) => row.createdAt],
          ['STATUS', (row) => row.status],
          ['COMPANY', (row) => row.companyName],
          ['BRAND', (row) => row.brandName],
          ['CONTACT', (row) => `${row.contactName} <${row.contactEmail}>`],
        ])
      }),
    )
  request
    .command('show')
    .description('print all that a request says, and what was decided')
    .argument('<id>')
    .option('--json', 'as JSON')
    .action((id: string, options: { json?: true }) =>
      withServerContext(env, async ({ requests }) => {
        const found = await requests.get(requestIdOf(id))
        if (!found) throw new OperatorError(`there is no request ${id}: see otpost request list`)
        const row = requestRow(found)
        if (options.json) print(JSON.stringify(row))
        else
          for (const [name, value] of Object.entries(row))
            print(`${name.padEnd(nameWidth)}  ${inWords(value)}`)
      }),
    )
  request
    .command('approve')
    .description('make the brand and the app of a request, and print the API key, once')
    .argument('<id>')
    .requiredOption('--app <appId>', 'the id of the new app')
    .requiredOption('--brand <slug>', 'the id of the brand: a new one, or one that is there')
    .action((id: string, { app, brand }: { app: string; brand: string }) =>
      withServerContext(env, async (context) => {
        const approval = await approveRequest(context.acting(await commandActor(env)), id, {
          appId: app,
          brandSlug: brand,
        })
        if (approval.brandExisted) {
          const { slug, displayName, status } = approval.brand
          complain(`there was a brand ${slug} (${displayName}, ${status}) already: it was left as it was`)
        }
        print(approval.key)
      }),
    )
  request
    .command('reject')
    .description('turn a request down')
    .argument('<id>')
    .option('--reason <text>', 'why; kept for you, and sent to nobody', '')
    .action((id: string, { reason }: { reason: string }) =>
      withServerContext(env, async (context) => {
        await rejectRequest(context.acting(await commandActor(env)), id, reason)
        print(`request ${id} is rejected`)
      }),
    )
}

/** Of the names of a request's fields, in characters. */
const nameWidth = 20

function requestRow({ id, createdAt, decidedAt, ...rest }: IntegrationRequestRecord) {
  return {
    integrationRequestId: id,
    createdAt: isoTime(createdAt),
    ...rest,
    decidedAt: decidedAt === null ? null : isoTime(decidedAt),
  }
}

/** On as many lines as it has, none of which could be taken for another field: strangers wrote it. */
function inWords(value: unknown): string {
  if (value === null) return '-'
  const text = Array.isArray(value) ? value.join(', ') || '-' : String(value)
  return text.split(/\r\n|[\r\n\u2028\u2029]/).join(`\n${' '.repeat(nameWidth + 2)}`)
}
