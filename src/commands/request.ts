import type { Command } from 'commander'
import { noRequest, requestIdOf } from '../domain/operator/request-mail.ts'
import { requestApprove, requestGroup, requestRow } from '../domain/operator/requests.ts'
import { nameKey } from '../domain/texts/brand.ts'
import { actionCommand, groupCommand } from './actions.ts'
import { complain, type Env, print, printTable, withContext } from './common.ts'

export function requestCommands(program: Command, env: Env): void {
  const request = groupCommand(program, requestGroup)
  request
    .command('list')
    .description('list the integration requests, oldest first')
    .option('--pending', 'only requests without a decision')
    .option('--json', 'print JSON')
    .action((options: { pending?: true; json?: true }) =>
      withContext(env, async ({ requests }) => {
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
      withContext(env, async ({ requests }) => {
        const found = await requests.get(requestIdOf(id))
        if (!found) throw noRequest(id)
        const row = requestRow(found)
        if (options.json) print(JSON.stringify(row))
        else
          for (const [name, value] of Object.entries(row))
            print(`${name.padEnd(nameWidth)}  ${inWords(value)}`)
      }),
    )
  actionCommand(program, env, requestApprove, async ({ text, secret: key = '' }, { appId, brandSlug }) => {
    print(key)
    const [{ clientSnippet }, { readConsoleOrigins }] = await Promise.all([
      import('../adapters/pages/client-snippet.ts'),
      import('../config/config.ts'),
    ])
    const { publicUrl, local } = readConsoleOrigins(env)
    const app = { url: publicUrl ?? local, appId: String(appId), brandId: nameKey(String(brandSlug)) }
    complain(`The key is shown only once. A program that uses it:\n\n${clientSnippet(app)}\n`)
    if (text !== '') complain(text)
  })
}

const nameWidth = 20

/** Indents continued lines, so that an applicant's text cannot look like another field. */
function inWords(value: unknown): string {
  if (value === null) return '-'
  const text = Array.isArray(value) ? value.join(', ') || '-' : String(value)
  return text.split(/\r\n|[\r\n\u2028\u2029]/).join(`\n${' '.repeat(nameWidth + 2)}`)
}
