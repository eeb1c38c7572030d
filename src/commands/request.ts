import type { Command } from 'commander'
import type { App } from '../app.ts'
import type { Context } from '../context.ts'
import { OperatorError } from '../domain/ground/operator-error.ts'
import type { IntegrationRequestRecord } from '../domain/integration/integration.ts'
import { resemblances } from '../domain/operator/approval-limits.ts'
import {
  checkRequestMail,
  defaultMails,
  lastRequestMail,
  type RequestMail,
} from '../domain/operator/request-mail.ts'
import { approveRequest, noRequest, rejectRequest, requestIdOf } from '../domain/operator/requests.ts'
import {
  commandActor,
  complain,
  type Env,
  fileText,
  isoTime,
  print,
  printTable,
  withApp,
  withContext,
} from './common.ts'

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
  withMail(
    request
      .command('approve')
      .description('approve a request: create its app, and its brand unless it exists, and print the API key')
      .argument('<id>', 'the id of the integration request, from otpost request list')
      .requiredOption('--app <appId>', 'the appId of the new app')
      .requiredOption('--brand <slug>', 'the brandId of the new brand, or of an existing brand'),
  ).action((id: string, { app, brand, ...options }: { app: string; brand: string } & MailOptions) =>
    decide(env, id, 'approved', options, async (context) => {
      const found = await context.requests.get(requestIdOf(id))
      const names = found ? resemblances(found, await context.brands.list()) : []
      for (const warning of names) complain(warning)
      const approval = await approveRequest(context.acting(await commandActor(env)), id, {
        appId: app,
        brandSlug: brand,
      })
      const { slug: brandId, displayName, status } = approval.brand
      if (approval.brandExisted)
        complain(`Brand ${brandId} (${displayName}, ${status}) already existed and was not changed.`)
      print(approval.key)
      const { clientSnippet } = await import('../adapters/pages/client-snippet.ts')
      const { publicUrl, local } = await readOrigins(env)
      const snippet = clientSnippet({ url: publicUrl ?? local, appId: app, brandId })
      complain(`The key is shown only once. A program that uses it:\n\n${snippet}\n`)
    }),
  )
  withMail(
    request
      .command('reject')
      .description('reject a request')
      .argument('<id>', 'the id of the integration request, from otpost request list')
      .option('--reason <text>', 'the reason; otpost stores it and does not send it', ''),
  ).action((id: string, { reason, ...options }: { reason: string } & MailOptions) =>
    decide(env, id, 'rejected', options, async (context) => {
      await rejectRequest(context.acting(await commandActor(env)), id, reason)
      print(`Request ${id} is rejected.`)
    }),
  )
  withMailText(
    request
      .command('mail')
      .description('send the requester an e-mail after the decision, also if one was sent before')
      .argument('<id>', 'the id of the integration request, from otpost request list'),
  ).action((id: string, options: MailOptions) =>
    withApp(env, async (app) => {
      const found = await app.context.requests.get(requestIdOf(id))
      if (!found) throw noRequest(id)
      const status = found.status === 'rejected' ? 'rejected' : 'approved'
      const last = await lastRequestMail(app.context.audit, found.id)
      await sendMail(env, app, found.id, await mailIn(env, options, status), last?.id ?? null)
    }),
  )
}

interface MailOptions {
  mail?: true
  mailSubject?: string
  mailFile?: string
}

function withMail(command: Command): Command {
  return withMailText(command.option('--mail', 'send the requester an e-mail; it never has the API key'))
}

function withMailText(command: Command): Command {
  return command
    .option('--mail-subject <subject>', 'the subject of the e-mail, instead of the default')
    .option(
      '--mail-file <file>',
      'the text of the e-mail, in UTF-8, instead of the default; - for standard input',
    )
}

/** @throws OperatorError */
async function mailIn(
  env: Env,
  { mailSubject, mailFile }: MailOptions,
  status: 'approved' | 'rejected',
): Promise<RequestMail> {
  const { subject, text } = defaultMails[status]
  const mail = {
    subject: mailSubject ?? subject,
    text: mailFile === undefined ? text : await fileText(mailFile),
  }
  checkRequestMail(mail)
  const { publicUrl } = await readOrigins(env)
  if (publicUrl === undefined && /\{\{\s*url\s*\}\}/.test(`${mail.subject}\n${mail.text}`))
    throw new OperatorError(
      'PUBLIC_URL is not set, and the e-mail needs it for {{url}}. Set PUBLIC_URL, or give a text without {{url}} with --mail-file.',
    )
  return mail
}

/** The e-mail is checked before the decision, and sent after it. */
async function decide(
  env: Env,
  id: string,
  status: 'approved' | 'rejected',
  options: MailOptions,
  work: (context: Context) => Promise<void>,
): Promise<void> {
  const { mail, mailSubject, mailFile } = options
  if (!mail && mailSubject === undefined && mailFile === undefined) return withContext(env, work)
  const checked = await mailIn(env, options, status)
  await withApp(env, async (app) => {
    await work(app.context)
    await sendMail(env, app, id, checked, null)
  })
}

async function sendMail(
  env: Env,
  app: App,
  id: string,
  mail: RequestMail,
  after: number | null,
): Promise<void> {
  try {
    complain(await app.mailRequester(await commandActor(env), id, mail, after))
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    throw new OperatorError(
      `${error.message} The decision is stored. \`otpost request mail ${id}\` sends the e-mail.`,
    )
  }
}

async function readOrigins(env: Env) {
  const { readConsoleOrigins } = await import('../config/config.ts')
  return readConsoleOrigins(env)
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
