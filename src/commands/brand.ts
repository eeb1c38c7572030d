import type { Command } from 'commander'
import { brandGroup, brandRow } from '../domain/operator/brands.ts'
import { groupCommand } from './actions.ts'
import { type Env, printTable, withContext, yesNo } from './common.ts'

export function brandCommands(program: Command, env: Env): void {
  groupCommand(program, brandGroup)
    .command('list')
    .description('list the brands')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) =>
      withContext(env, async ({ brands }) =>
        printTable(options.json, (await brands.list()).map(brandRow), [
          ['BRAND', (row) => row.brandId],
          ['STATUS', (row) => row.status],
          ['NAME', (row) => row.displayName],
          ['NOTIFY', (row) => row.notifyTemplates.join(',') || '-'],
          ['DLT', (row) => yesNo(row.dltEnabled)],
          ['LOGIN-ID', (row) => yesNo(row.loginIdEnabled)],
          ['DOMAIN', (row) => row.domain ?? '-'],
        ]),
      ),
    )
}
