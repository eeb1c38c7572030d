import type { Command } from 'commander'
import { webhookStateWords } from '../domain/integration/webhook-state.ts'
import { type AppRow, appRows } from '../domain/operator/app-rows.ts'
import { appGroup } from '../domain/operator/apps.ts'
import { groupCommand } from './actions.ts'
import { type Env, print, printTable, withContext } from './common.ts'

export function appCommands(program: Command, env: Env): void {
  groupCommand(program, appGroup)
    .command('list')
    .description('list the apps with their scope and keys')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) =>
      withContext(env, async (context) => {
        const rows = await appRows(context)
        if (options.json) {
          print(JSON.stringify(rows))
          return
        }
        printTable(undefined, rows.flatMap(keyLines), [
          ['APP', (row) => row.appId],
          ['KEY', (row) => (row.lastFour === null ? '-' : `…${row.lastFour}`)],
          ['ISSUED', (row) => row.issuedAt ?? '-'],
          ['LAST USED', (row) => row.lastUsedAt ?? '-'],
          ['REVOKED', (row) => row.revokedAt ?? '-'],
          ['BRANDS', (row) => row.brands.join(',') || 'any'],
          ['ALLOW', (row) => row.allow.join(',')],
          ['PER MINUTE', (row) => String(row.perMinute ?? 'default')],
          ...(rows.some(({ webhook }) => webhook) ? [webhookColumn] : []),
        ])
      }),
    )
}

/** Absent if no app has one, as `webhook` is in JSON. */
const webhookColumn = [
  'WEBHOOK',
  ({ webhook }: Pick<AppRow, 'webhook'>) =>
    webhook ? webhookStateWords(webhook.state, webhook.failing) : '-',
] as const

function keyLines({ keys, ...app }: AppRow) {
  const none = { lastFour: null, issuedAt: null, lastUsedAt: null, revokedAt: null }
  return (keys.length > 0 ? keys : [none]).map((key) => ({ ...app, ...key }))
}
