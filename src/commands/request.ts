import type { Command } from 'commander'
import type { IntegrationRequestRecord } from '../domain/integration/integration.ts'
import { approveRequest, OperatorError, rejectRequest, requestIdOf } from '../domain/operator/operator.ts'
import { commandActor, complain, type Env, isoTime, print, printTable, withServerContext } from './common.ts'

export function requestCommands(program: Command, env: Env): void {
  const request = program
    .command('request')
    .description('approve or reject integration requests (POST /integrations/requests)')
  request
    .command('list')
    .description('list the integration requests, oldest first')
    .option('--pending', 'only requests without a decision')
    .option('--json', 'print a JSON array')
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
    .description('print an integration request and the decision')
    .argument('<id>', 'the id of the integration request, from otpost request list')
    .option('--json', 'print JSON')
    .action((id: string, options: { json?: true }) =>
      withServerContext(env, async ({ requests }) => {
        const found = await requests.get(requestIdOf(id))
        if (!found)
          throw new OperatorError(`Request ${id} does not exist. \`otpost request list\` lists the requests.`)
        const row = requestRow(found)
        if (options.json) print(JSON.stringify(row))
        else
          for (const [name, value] of Object.entries(row))
            print(`${name.padEnd(nameWidth)}  ${inWords(value)}`)
      }),
    )
  request
    .command('approve')
    .description('approve a request: create its app, and its brand unless it exists, and print the API key')
    .argument('<id>', 'the id of the integration request, from otpost request list')
    .requiredOption('--app <appId>', 'the appId of the new app')
    .requiredOption('--brand <slug>', 'the brandId of the new brand, or of an existing brand')
    .action((id: string, { app, brand }: { app: string; brand: string }) =>
      withServerContext(env, async (context) => {
        const approval = await approveRequest(context.acting(await commandActor(env)), id, {
          appId: app,
          brandSlug: brand,
        })
        if (approval.brandExisted) {
          const { slug, displayName, status } = approval.brand
          complain(`Brand ${slug} (${displayName}, ${status}) already existed and was not changed.`)
        }
        print(approval.key)
      }),
    )
  request
    .command('reject')
    .description('reject a request')
    .argument('<id>', 'the id of the integration request, from otpost request list')
    .option('--reason <text>', 'the reason; otpost stores it and does not send it', '')
    .action((id: string, { reason }: { reason: string }) =>
      withServerContext(env, async (context) => {
        await rejectRequest(context.acting(await commandActor(env)), id, reason)
        print(`Request ${id} is rejected.`)
      }),
    )
}

const nameWidth = 20

function requestRow({ id, createdAt, decidedAt, ...rest }: IntegrationRequestRecord) {
  return {
    integrationRequestId: id,
    createdAt: isoTime(createdAt),
    ...rest,
    decidedAt: decidedAt === null ? null : isoTime(decidedAt),
  }
}

/** Indents continued lines, so that an applicant's text cannot look like another field. */
function inWords(value: unknown): string {
  if (value === null) return '-'
  const text = Array.isArray(value) ? value.join(', ') || '-' : String(value)
  return text.split(/\r\n|[\r\n\u2028\u2029]/).join(`\n${' '.repeat(nameWidth + 2)}`)
}
