import { type Command, Option } from 'commander'
import { invitationMs } from '../domain/accounts/account-changes.ts'
import { accountListing } from '../domain/accounts/accounts.ts'
import { endAllSessions, linkMs, makeLink } from '../domain/accounts/sessions.ts'
import { type AuditFilters, auditListing, withReasons } from '../domain/ground/audit.ts'
import { hourMs } from '../domain/ground/time.ts'
import { operatorGroup, operatorInvite, operatorReset } from '../domain/operator/accounts.ts'
import type { Said } from '../domain/operator/action.ts'
import { auditGroups } from '../domain/operator/audit-words.ts'
import { actionCommand, groupCommand } from './actions.ts'
import {
  commandActor,
  complain,
  type Env,
  instant,
  print,
  printListing,
  wholeNumber,
  withContext,
} from './common.ts'

interface AuditOptions extends Pick<AuditFilters, 'group' | 'target' | 'withoutSignIns'> {
  since?: string
  by?: string
  limit: number
  json?: true
}

export function adminCommands(program: Command, env: Env): void {
  const admin = program
    .command('admin')
    .description('manage accounts of the console, create sign-in links, and end sessions')
  admin
    .command('link')
    .description('print a link that signs in to the console once, within 10 minutes')
    .action(() =>
      withContext(env, async (context) => {
        await printLink(env, await makeLink(context, await commandActor(env)), `${linkMs / 60_000} minutes`)
      }),
    )
  admin
    .command('log-out')
    .description('end every console session')
    .action(() =>
      withContext(env, async (context) => {
        const ended = await endAllSessions(context, await commandActor(env))
        print(ended === 1 ? '1 session ended.' : `${ended} sessions ended.`)
      }),
    )
  const show = ({ secret = '' }: Said) => printLink(env, secret.replace(/^.*#/, ''), invitationDuration)
  for (const action of [operatorInvite, operatorReset]) actionCommand(program, env, action, show)
  groupCommand(program, operatorGroup)
    .command('list')
    .description('list the accounts')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) =>
      withContext(env, async ({ sessions }) => {
        printListing(options.json, await sessions.accounts(), accountListing)
      }),
    )
  program
    .command('audit')
    .description('list the audit log: who changed what, and when; oldest first')
    .option('--since <when>', 'only later: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z')
    .addOption(new Option('--group <group>', 'only actions of this group').choices(Object.keys(auditGroups)))
    .option('--by <name>', 'only by this person, session or user')
    .option('--target <target>', 'only of this target')
    .option('--without-sign-ins', 'leave out sign-ins')
    .option('--limit <count>', 'only the latest rows', wholeNumber, 100)
    .option('--json', 'print JSON')
    .action((options: AuditOptions) =>
      withContext(env, async ({ audit, requests, now }) => {
        const since = options.since === undefined ? {} : { since: instant(options.since, now()) }
        const { group, by, target, withoutSignIns, limit } = options
        const filters = { group, actorName: by, target, withoutSignIns }
        const found = await audit.list({ ...since, ...filters, limit })
        const records = await withReasons(found, requests)
        printListing(options.json, records.toReversed(), auditListing)
      }),
    )
}

/**
 * On standard output: the link that works where the proxy does not forward /admin. On standard error: how long it works, the SSH
 * tunnel, and the link of a published console.
 */
async function printLink(env: Env, token: string, duration: string): Promise<void> {
  const { readConsoleOrigins } = await import('../config/config.ts')
  const { publicUrl, local, port } = readConsoleOrigins(env)
  const path = `/admin/link#${token}`
  complain(`The link works once and expires in ${duration}.`)
  if (publicUrl === undefined) {
    print(`${local}${path}`)
    return
  }
  complain(
    `On your computer, run \`ssh -L ${port}:${new URL(local).hostname}:${port} SERVER\`, and open the link there:`,
  )
  print(`http://localhost:${port}${path}`)
  complain(`If your proxy forwards /admin: ${publicUrl}${path}`)
}

const invitationDuration = `${invitationMs / hourMs} hours`
