import type { Command } from 'commander'
import { issueApp, revokeApp } from '../domain/operator.ts'
import { type Env, isoTime, print, printTable, withBooks } from './common.ts'

/** `otpost app …` */
export function appCommands(program: Command, env: Env): void {
  const app = program.command('app').description('issue and revoke the credentials of applications')
  app
    .command('issue')
    .description('print the API key of a new app, once; only its hash is kept')
    .argument('<appId>')
    .action((appId: string) => withBooks(env, async (books) => print(await issueApp(books, appId))))
  app
    .command('list')
    .description('list the issued apps')
    .option('--json', 'as a JSON array')
    .action((options: { json?: true }) =>
      withBooks(env, async ({ apps }) => {
        const rows = (await apps.list()).map(({ appId, createdAt, revokedAt }) => ({
          appId,
          issuedAt: isoTime(createdAt),
          revokedAt: revokedAt === null ? null : isoTime(revokedAt),
        }))
        printTable(options.json, rows, [
          ['APP', (row) => row.appId],
          ['ISSUED', (row) => row.issuedAt],
          ['REVOKED', (row) => row.revokedAt ?? '-'],
        ])
      }),
    )
  app
    .command('revoke')
    .description('make the key of an app stop working')
    .argument('<appId>')
    .action((appId: string) =>
      withBooks(env, async (books) => {
        await revokeApp(books, appId)
        print(`${appId} is revoked`)
      }),
    )
}
