import { type Command, Option } from 'commander'
import {
  type AccountPorts,
  invitationMs,
  inviteOperator,
  removeOperator,
  resetOperator,
  roleIn,
  setRole,
} from '../domain/accounts/account-changes.ts'
import { isSetUp, roles } from '../domain/accounts/accounts.ts'
import { endAllSessions, linkMs, makeLink } from '../domain/accounts/sessions.ts'
import { type AuditFilters, actorName, withReasons } from '../domain/ground/audit.ts'
import type { Contacts } from '../domain/ground/contact.ts'
import { hourMs } from '../domain/ground/time.ts'
import { auditGroups } from '../domain/operator/audit-words.ts'
import {
  commandActor,
  complain,
  type Env,
  instant,
  isoTime,
  print,
  printTable,
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
  const operator = admin.command('operator').description('manage the accounts of operators')
  operator
    .command('list')
    .description('list the accounts')
    .option('--json', 'print a JSON array')
    .action((options: { json?: true }) =>
      withContext(env, async ({ sessions }) => {
        const rows = (await sessions.accounts()).map((account) => ({
          email: account.email,
          role: account.role,
          status: isSetUp(account) ? 'active' : 'invited',
          passkeys: account.passkeys.length,
          hasApp: account.totpSecret !== null,
          signedInAt: account.signedInAt === null ? null : isoTime(account.signedInAt),
        }))
        printTable(options.json, rows, [
          ['EMAIL', (row) => row.email],
          ['ROLE', (row) => row.role],
          ['STATUS', (row) => row.status],
          ['PASSKEYS', (row) => String(row.passkeys)],
          ['APP', (row) => (row.hasApp ? 'yes' : 'no')],
          ['LAST SIGN-IN', (row) => row.signedInAt ?? '-'],
        ])
      }),
    )
  operator
    .command('invite <email>')
    .description('create an account, and print the link with which the person sets it up, within 72 hours')
    .requiredOption('--role <role>', `one of: ${roles.join(', ')}`)
    .action((asGiven: string, options: { role: string }) =>
      changed(env, asGiven, async (ports, email) => {
        const { token } = await inviteOperator(ports, email, roleIn(options.role))
        await printLink(env, token, invitationDuration)
      }),
    )
  operator
    .command('role <email> <role>')
    .description(`change a role: ${roles.join(', ')}`)
    .action((asGiven: string, role: string) =>
      changed(env, asGiven, async (ports, email) => {
        await setRole(ports, email, roleIn(role))
        print(`${email} has the role ${role}.`)
      }),
    )
  operator
    .command('reset <email>')
    .description('remove the password, the app and the passkeys, and print a link to set them up again')
    .action((asGiven: string) =>
      changed(env, asGiven, async (ports, email) =>
        printLink(env, await resetOperator(ports, email), invitationDuration),
      ),
    )
  operator
    .command('remove <email>')
    .description('remove an account and end its sessions')
    .action((asGiven: string) =>
      changed(env, asGiven, async (ports, email) => {
        await removeOperator(ports, email)
        print(`Removed ${email}.`)
      }),
    )
  program
    .command('audit')
    .description('list the audit log: who changed what, and when; oldest first')
    .option('--since <when>', 'only later entries: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z')
    .addOption(new Option('--group <group>', 'only actions of this group').choices(Object.keys(auditGroups)))
    .option('--by <name>', 'only of this e-mail address, console session or user of commands')
    .option('--target <target>', 'only of this target, as the list has it')
    .option('--without-sign-ins', 'leave out sign-ins')
    .option('--limit <count>', 'the maximum number of entries, the latest ones', wholeNumber, 100)
    .option('--json', 'print a JSON array')
    .action((options: AuditOptions) =>
      withContext(env, async ({ audit, requests, now }) => {
        const since = options.since === undefined ? {} : { since: instant(options.since, now()) }
        const { group, by, target, withoutSignIns, limit } = options
        const filters = { group, actorName: by, target, withoutSignIns }
        const found = await audit.list({ ...since, ...filters, limit })
        const records = await withReasons(found, requests)
        const rows = [...records].reverse().map(({ id: _, at, actor, ...rest }) => ({
          at: isoTime(at),
          by: actorName(actor),
          ...rest,
        }))
        printTable(options.json, rows, [
          ['TIME', (row) => row.at],
          ['BY', (row) => row.by],
          ['ACTION', (row) => row.action],
          ['TARGET', (row) => row.target],
          ['DETAILS', (row) => inWords(row.details) || '-'],
        ])
      }),
    )
}

/** @param act with the e-mail address as accounts have it */
async function changed(
  env: Env,
  asGiven: string,
  act: (ports: AccountPorts & { readonly contacts: Contacts }, email: string) => Promise<void>,
): Promise<void> {
  await withContext(env, async (context, { contacts }) =>
    act({ ...context, contacts, actor: await commandActor(env) }, contacts.email(asGiven)?.to ?? asGiven),
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

function inWords(details: Readonly<Record<string, string>>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${value.replaceAll('\n', ' ⏎ ')}`)
    .join(', ')
}
