import type { Command } from 'commander'
import type { AppKey, IssuedApp } from '../domain/operator/operator.ts'
import { issueApp, revokeApp, revokeKey, rotateApp } from '../domain/operator/operator.ts'
import { commandActor, complain, type Env, isoTime, print, printTable, withContext } from './common.ts'

export function appCommands(program: Command, env: Env): void {
  const app = program.command('app').description('create apps, and create and revoke their API keys')
  app
    .command('issue')
    .description('create an app and print its API key; otpost stores only the hash of the key')
    .argument('<appId>', 'the appId in API requests')
    .action((appId: string) =>
      withContext(env, async (context) =>
        print(await issueApp(context.acting(await commandActor(env)), appId)),
      ),
    )
  app
    .command('rotate')
    .description('create a second API key for an app and print it; the first key works until you revoke it')
    .argument('<appId>', 'the appId')
    .action((appId: string) =>
      withContext(env, async (context) =>
        print(await rotateApp(context.acting(await commandActor(env)), appId)),
      ),
    )
  app
    .command('list')
    .description('list the apps and their API keys, with the time of their last use')
    .option('--json', 'print a JSON array')
    .action((options: { json?: true }) =>
      withContext(env, async ({ apps }) => {
        const issued = await apps.list()
        if (options.json) {
          print(JSON.stringify(issued.map(appRow)))
          return
        }
        printTable(undefined, issued.flatMap(keyRows), [
          ['APP', (row) => row.appId],
          ['KEY', (row) => `…${row.lastFour}`],
          ['ISSUED', (row) => row.issuedAt],
          ['LAST USED', (row) => row.lastUsedAt ?? '-'],
          ['REVOKED', (row) => row.revokedAt ?? '-'],
        ])
      }),
    )
  app
    .command('revoke-key')
    .description('revoke one API key of an app')
    .argument('<appId>', 'the appId')
    .argument('<last4>', 'the last four characters of the key, from otpost app list')
    .action((appId: string, last4: string) =>
      withContext(env, async (context) => {
        const left = await revokeKey(context.acting(await commandActor(env)), appId, last4)
        print(
          `The key …${last4.slice(-4)} of ${appId} is revoked. ${left === 0 ? 'The app has no active key.' : 'Its other key is active.'}`,
        )
      }),
    )
  app
    .command('revoke')
    .description('revoke every API key of an app, except a key in APP_CREDENTIALS')
    .argument('<appId>', 'the appId')
    .action((appId: string) =>
      withContext(env, async (context) => {
        const actor = await commandActor(env)
        const worksStill = await revokeApp(context.acting(actor), appId, context.apps.configured)
        print(`Every key of ${appId} is revoked.`)
        if (worksStill !== undefined) complain(worksStill)
      }),
    )
}

function keyRow({ lastFour, createdAt, revokedAt, lastUsedAt }: AppKey) {
  return {
    lastFour,
    issuedAt: isoTime(createdAt),
    lastUsedAt: lastUsedAt === null ? null : isoTime(lastUsedAt),
    revokedAt: revokedAt === null ? null : isoTime(revokedAt),
  }
}

function keyRows({ appId, keys }: IssuedApp) {
  return keys.map((key) => ({ appId, ...keyRow(key) }))
}

function appRow({ appId, createdAt, revokedAt, keys }: IssuedApp) {
  return {
    appId,
    issuedAt: isoTime(createdAt),
    revokedAt: revokedAt === null ? null : isoTime(revokedAt),
    keys: keys.map(keyRow),
  }
}
