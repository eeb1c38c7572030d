import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { actorName, withReasons } from '../domain/operator/audit.ts'
import { OperatorError } from '../domain/operator/operator.ts'
import { linkMs, makeLink } from '../domain/operator/sessions.ts'
import {
  commandActor,
  complain,
  type Env,
  instant,
  isoTime,
  print,
  printTable,
  wholeNumber,
  withServerContext,
} from './common.ts'

export function adminCommands(program: Command, env: Env): void {
  const admin = program
    .command('admin')
    .description('create the console password and sign-in links, and end console sessions')
  admin
    .command('password')
    .description(
      'read a new console password from the terminal or standard input, and print the value of ADMIN_PASSWORD_HASH',
    )
    .action(async () => {
      const password = await readPassword()
      const [{ passwordProblem }, { passwordHash }, { hostname }, { name }] = await Promise.all([
        import('../adapters/crypto/new-password.ts'),
        import('../adapters/crypto/console-secrets.ts'),
        import('node:os'),
        commandActor(env),
      ])
      const problem = passwordProblem(password, [name, hostname(), env.PUBLIC_URL ?? ''])
      if (problem) throw new OperatorError(problem)
      print(await passwordHash(password))
    })
  admin
    .command('link')
    .description('print a link that signs in to the console once, within 10 minutes')
    .action(() =>
      withServerContext(env, async (context) => {
        const { readConsoleOrigins } = await import('../config/config.ts')
        const { publicUrl, local, port } = readConsoleOrigins(env)
        const token = await makeLink(context, await commandActor(env))
        complain(`The link works once and expires in ${linkMs / 60_000} minutes.`)
        print(`${publicUrl ?? local}/admin/link#${token}`)
        if (publicUrl !== undefined) {
          complain(
            `If the proxy does not forward /admin, run \`ssh -L ${port}:${new URL(local).hostname}:${port} SERVER\` and open http://localhost:${port}/admin/link#${token}`,
          )
        }
      }),
    )
  admin
    .command('log-out')
    .description('end every console session')
    .action(() =>
      withServerContext(env, async ({ sessions, now }) => {
        const ended = await sessions.endAll({
          at: now(),
          actor: await commandActor(env),
          action: 'console.session-revoked',
          target: 'all',
          details: {},
        })
        print(ended === 1 ? '1 session ended.' : `${ended} sessions ended.`)
      }),
    )
  program
    .command('audit')
    .description('list the audit log: who changed what, and when; oldest first')
    .option('--since <when>', 'only later entries: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z')
    .option('--limit <count>', 'the maximum number of entries, the latest ones', wholeNumber, 100)
    .option('--json', 'print a JSON array')
    .action((options: { since?: string; limit: number; json?: true }) =>
      withServerContext(env, async ({ audit, requests, now }) => {
        const since = options.since === undefined ? {} : { since: instant(options.since, now()) }
        const records = await withReasons(await audit.list({ ...since, limit: options.limit }), requests)
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

function inWords(details: Readonly<Record<string, string>>): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${value.replaceAll('\n', ' ⏎ ')}`)
    .join(', ')
}

/** Asks twice at a terminal; otherwise reads the first line of standard input. */
async function readPassword(): Promise<string> {
  const { stdin } = process
  if (!stdin.isTTY) {
    for await (const line of createInterface({ input: stdin })) return line
    throw new OperatorError('No password on standard input. Type a password, or pipe it in.')
  }
  const password = await typed('Password for the console: ')
  if ((await typed('Repeat the password: ')) !== password)
    throw new OperatorError('The two passwords differ. Try again.')
  return password
}

async function typed(prompt: string): Promise<string> {
  const { stdin, stderr } = process
  stderr.write(prompt)
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  stdin.resume()
  try {
    let line = ''
    for (;;) {
      const [chunk] = (await once(stdin, 'data')) as [string]
      // Arrow keys and similar send escape sequences.
      if (chunk.startsWith('\u001b')) continue
      for (const key of chunk) {
        if (key === '\r' || key === '\n') return line
        if (key === '\u0003' || key === '\u0004') throw new OperatorError('Cancelled.')
        line = key === '\u007f' || key === '\b' ? line.slice(0, -1) : line + key
      }
    }
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr.write('\n')
  }
}
