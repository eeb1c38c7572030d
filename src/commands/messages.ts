import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { providerPath } from '../domain/delivery/delivery-reports.ts'
import type { Advice } from '../domain/ground/advice.ts'
import type { Contacts, Recipient } from '../domain/ground/contact.ts'
import { rowOf } from '../domain/ground/listing.ts'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import { whyOf } from '../domain/log/event-log.ts'
import { explanationLines } from '../domain/log/explain.ts'
import { callRow, deliveryRow } from '../domain/log/log-rows.ts'
import { deliveryStatuses, type Found, type LogPosition, type PageOfLog } from '../domain/log/log-search.ts'
import { type Entered, type Fields, type InputOf, inputIn, requestIdIn } from '../domain/operator/fields.ts'
import {
  callFields,
  callFilter,
  deliveryFields,
  deliveryFilter,
  explained,
  explainedRow,
} from '../domain/operator/reads.ts'
import { ladderWords, orderWords, readRoutes, routeListing } from '../domain/operator/routes.ts'
import { addField, requireValid } from './actions.ts'
import { adviceWords } from './advice.ts'
import {
  complain,
  destinationConfig,
  type Env,
  instant,
  print,
  printListing,
  printTable,
  wholeNumber,
  wholeSeconds,
  withApp,
  withContext,
  yieldToServers,
} from './common.ts'

/** Of both lists. */
interface LogOptions {
  limit: number
  json?: true
}

interface OutboxOptions {
  to?: string
  wait?: number
}

export function messageCommands(program: Command, env: Env): void {
  logCommand(
    program
      .command('deliveries')
      .description('list the delivery log, oldest first: each attempt with its outcome'),
    deliveryFields,
    (filters, options) => printDeliveries(env, filters, options),
  )
  logCommand(
    program.command('requests').description('list the API calls with their results, oldest first'),
    callFields,
    (filters, options) => printCalls(env, filters, options),
  )
  program
    .command('explain')
    .description('print the trace of one request, and what to do')
    .argument('<requestId>', 'the requestId of the answer, or its X-Request-Id header')
    .option('--json', 'print JSON')
    .action((id: string, options: { json?: true }) => printTrace(program, env, id, options))
  program
    .command('routes')
    .description(
      'print delivery, conversion and cost of each provider by country, with 95 % intervals, and the order that they suggest',
    )
    .option('--since <duration>', 'from the start of this day in UTC: 12h, 7d, or a time in ISO 8601', '7d')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nA verified code counts for the provider that sent it last. Nothing is reordered automatically.',
    )
    .action((options: { since: string; json?: true }) => printRoutes(program, env, options))
  program
    .command('callbacks')
    .description('print the status callback URLs for providers')
    .action(() => printCallbackUrls(env))
  // The previous name.
  program.command('receipts', { hidden: true }).action(() => printCallbackUrls(env))

  program
    .command('outbox')
    .description('print the messages in the outbox as JSON lines, oldest first')
    .option('--to <recipient>', 'only to this phone number or e-mail address')
    .option(
      '--wait <seconds>',
      'wait for the first message; exits with status 1 if none arrives',
      wholeSeconds,
    )
    .action((options: OutboxOptions) => printOutbox(env, options))
}

/** With the filters of the management API. */
function logCommand<All extends Fields>(
  command: Command,
  fields: All,
  run: (filters: InputOf<All>, options: LogOptions) => Promise<void>,
): void {
  for (const [name, field] of Object.entries(fields)) addField(command, name, field)
  command
    .option('--limit <count>', 'only the latest rows', wholeNumber, 100)
    .option('--json', 'print JSON')
    .action((options: Entered & LogOptions) => {
      for (const [name, field] of Object.entries(fields)) requireValid(name, field, options[name])
      return run(inputIn(fields, options), options)
    })
}

async function printOutbox(env: Env, options: OutboxOptions): Promise<void> {
  await withContext(env, async ({ outbox }, { contacts }) => {
    const recipient = recipientIn(contacts, options.to)
    const query = { ...(recipient ? { to: recipient.to } : {}), limit: 1000 }
    const never = new AbortController().signal
    const entries = await outbox.wait(query, (options.wait ?? 0) * 1000, never)
    for (const entry of entries) print(JSON.stringify(entry))
    if (entries.length === 0 && options.wait) {
      throw new OperatorError(`No message arrived within ${options.wait} s.`)
    }
  })
}

function recipientIn(contacts: Contacts, to: string | undefined): Recipient | undefined {
  const recipient = contacts.phone(to) ?? contacts.email(to)
  if (to === undefined || recipient) return recipient
  throw new InvalidInput(`--to ${contacts.faultOf(to)}`)
}

async function filterPorts(context: Context, contacts: Contacts, { to }: { to: string | undefined }) {
  const { isRegion: isCountry } = await import('../adapters/phone/e164.ts')
  if (to !== undefined) context.requireSecret()
  return { ...context, contacts, isCountry }
}

/** The latest rows, oldest first. One search reads a limited part of the log. */
async function latest<Row>(
  limit: number,
  find: (page: PageOfLog) => Promise<Found<Row>>,
): Promise<readonly Row[]> {
  const found: Row[] = []
  let before: LogPosition | undefined
  do {
    const { rows, next } = await find({ before, limit: limit - found.length })
    found.push(...rows)
    before = next ?? undefined
  } while (before !== undefined && found.length < limit)
  return found.reverse()
}

async function printDeliveries(
  env: Env,
  filters: InputOf<typeof deliveryFields>,
  options: LogOptions,
): Promise<void> {
  await withContext(env, async (context, { contacts, database }) => {
    const filter = deliveryFilter(await filterPorts(context, contacts, filters), filters, '--')
    const rows = await latest(options.limit, (page) => context.eventLog.findDeliveries(filter, page))
    if (rows.length === 0 && !options.json) {
      complain(`No deliveries match in ${database.name}.`)
      if (filters.to !== undefined) {
        complain(
          'A rate-limited, blocked or denied request has no delivery: `otpost requests --to` lists all requests.',
        )
      }
      return
    }
    printTable(options.json, rows.map(deliveryRow), [
      ['TIME', (row) => row.at],
      ['REQUEST', (row) => row.requestId],
      ['APP', (row) => row.app],
      ['BRAND', (row) => row.brand ?? '-'],
      ['TO', (row) => row.recipient],
      ['COUNTRY', (row) => row.country ?? '-'],
      ['PROVIDER', (row) => row.provider + (row.route === null ? '' : `/${row.route}`)],
      ['TEMPLATE', (row) => row.template ?? '-'],
      ['SEGMENTS', (row) => (row.segments === null ? '-' : `${row.segments} ${row.encoding}`)],
      ['STATUS', (row) => deliveryStatuses[row.status].name],
      ['WHY', (row) => whyOf({ ...row, report: row.report }) || '-'],
      ['MS', (row) => String(row.durationMs)],
    ])
  })
}

async function printCalls(env: Env, filters: InputOf<typeof callFields>, options: LogOptions): Promise<void> {
  await withContext(env, async (context, { contacts, database }) => {
    const filter = callFilter(await filterPorts(context, contacts, filters), filters, '--')
    const rows = await latest(options.limit, (page) => context.eventLog.findCalls(filter, page))
    if (rows.length === 0 && !options.json) {
      complain(`No requests match in ${database.name}.`)
      return
    }
    printTable(options.json, rows.map(callRow), [
      ['TIME', (row) => row.at],
      ['REQUEST', (row) => row.requestId],
      ['APP', (row) => row.app],
      ['BRAND', (row) => row.brand ?? '-'],
      ['TO', (row) => row.recipient ?? (row.recipients === null ? '-' : `${row.recipients} recipients`)],
      ['COUNTRY', (row) => row.country ?? '-'],
      ['CALL', (row) => row.operation],
      ['STATUS', (row) => (row.end === null ? '-' : String(row.end.status))],
      ['RESULT', (row) => row.result],
      ['WHY', (row) => row.why || '-'],
      ['MS', (row) => (row.end === null ? '-' : String(row.end.durationMs))],
    ])
  })
}

async function printTrace(program: Command, env: Env, id: string, options: { json?: true }): Promise<void> {
  const worded = (advice: Advice) => adviceWords(program, advice)
  await withContext(env, async (context, { database }) => {
    const requestId = requestIdIn(id)
    const found = await explained({ ...context, ...(await destinationConfig(env)) }, requestId)
    if (!found) {
      throw new OperatorError(
        `Request ${requestId} is not in ${database.name}. The event log has requests with valid credentials for DELIVERY_LOG_DAYS. For any other request, search the server log for this id.`,
      )
    }
    if (options.json) print(JSON.stringify(explainedRow(found)))
    else for (const line of explanationLines(found.explanation, worded)) print(line)
  })
}

async function printRoutes(
  program: Command,
  env: Env,
  { since, json }: { since: string; json?: true },
): Promise<void> {
  yieldToServers()
  await withContext(env, async (context) => {
    const now = context.now()
    const found = await readRoutes(context, await destinationConfig(env), now, instant(since, now))
    const { rows, orders, ladders, note } = found
    if (json) {
      const shown = rows.map((row) => rowOf(routeListing, row))
      print(JSON.stringify({ since: new Date(found.since), rows: shown, orders, ladders }))
      return
    }
    printListing(undefined, rows, routeListing, 'The event log has no SMS of this time.')
    for (const order of orders) print(adviceWords(program, orderWords(order)))
    for (const ladder of ladders) print(ladderWords(ladder))
    if (note) print(note)
  })
}

async function printCallbackUrls(env: Env): Promise<void> {
  await withApp(env, async ({ context: { secrets, requireSecret }, providers }, { publicUrl }) => {
    if (publicUrl === undefined) {
      throw new OperatorError(
        'PUBLIC_URL is not set. Set it to the public base URL of this server, such as https://otp.example.com.',
      )
    }
    requireSecret()
    const readers = new Map(providers.map(({ name, deliveryReports }) => [name, deliveryReports?.namedBy]))
    for (const [name, namedBy] of readers) {
      if (namedBy === undefined) print(`${name}: no delivery reports`)
      else if (namedBy === 'attempt') print(`${name}: nothing to enter, each message has its own URL`)
      else print(`${name}: ${publicUrl}${providerPath(secrets, name)}`)
    }
  })
}
