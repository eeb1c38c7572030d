import { type Command, Option } from 'commander'
import type { Contacts, Recipient } from '../domain/contact.ts'
import { type Delivery, type RequestTrace, statusOf, whyOf } from '../domain/events/event-log.ts'
import { explain } from '../domain/events/explain.ts'
import {
  type DeliveryFilter,
  deliveryStatuses,
  type ErrorClass,
  errorClasses,
  type Place,
  statusesIn,
  statusKeys,
  wordOf,
} from '../domain/events/log-search.ts'
import { providerPath } from '../domain/messages/delivery-reports.ts'
import { canonicalTag } from '../domain/messages/languages.ts'
import { authoredRules } from '../domain/operator/destinations.ts'
import { OperatorError } from '../domain/operator/operator.ts'
import {
  complain,
  type Env,
  instant,
  isoTime,
  print,
  printTable,
  requestId,
  wholeNumber,
  wholeSeconds,
  withApp,
  withContext,
  withServerContext,
} from './common.ts'
import { jobRow } from './queue.ts'

interface DeliveryOptions
  extends Pick<DeliveryFilter, 'provider' | 'app' | 'brand' | 'channel' | 'template' | 'lang'> {
  request?: string
  to?: string
  status?: string[]
  country?: string
  error?: ErrorClass
  since?: string
  until?: string
  limit: number
  json?: true
}

interface OutboxOptions {
  to?: string
  wait?: number
}

export function messageCommands(program: Command, env: Env): void {
  program
    .command('deliveries')
    .description(
      'list the delivery log: each attempt with its provider, outcome and delivery report; oldest first',
    )
    .option('--request <id>', 'only attempts of this request')
    .option('--to <recipient>', 'only attempts to this phone number or e-mail address')
    .addOption(
      new Option('--status <status...>', 'only attempts with one of these statuses').choices(
        statusKeys.map(wordOf),
      ),
    )
    .option('--provider <name>', 'only attempts of this provider')
    .option('--app <appId>', 'only attempts of this app')
    .option('--brand <slug>', 'only attempts of this brand')
    .addOption(new Option('--channel <channel>', 'only SMS, or only e-mail').choices(['SMS', 'EMAIL']))
    .option('--country <code>', 'only SMS to this country, such as GB')
    .option('--template <key>', 'only messages of this template')
    .option('--lang <tag>', 'only texts in this language, such as hi; not texts of the caller')
    .addOption(
      new Option('--error <class>', 'only failures with this cause').choices(Object.keys(errorClasses)),
    )
    .option('--since <when>', 'only later attempts: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z')
    .option('--until <when>', 'only earlier attempts, in the same form')
    .option('--limit <count>', 'the maximum number of attempts, the latest ones', wholeNumber, 100)
    .option('--json', 'print a JSON array')
    .action((options: DeliveryOptions) => printDeliveries(env, options))
  program
    .command('explain')
    .description(
      'print the trace of one request: checks, limits, providers, delivery reports, and what to do',
    )
    .argument('<requestId>', 'the requestId of the answer, or its X-Request-Id header')
    .option('--json', 'print JSON')
    .action((id: string, options: { json?: true }) => printTrace(env, id, options))
  program
    .command('callbacks')
    .description('print the status callback URLs that you enter in the panels of providers')
    .action(() => printCallbackUrls(env))
  // The previous name.
  program.command('receipts', { hidden: true }).action(() => printCallbackUrls(env))

  program
    .command('outbox')
    .description('print the messages in the outbox as JSON lines, oldest first')
    .option('--to <recipient>', 'only messages to this phone number or e-mail address')
    .option(
      '--wait <seconds>',
      'wait for the first message; exits with status 1 if none arrives',
      wholeSeconds,
    )
    .action((options: OutboxOptions) => printOutbox(env, options))
}

async function printOutbox(env: Env, options: OutboxOptions): Promise<void> {
  await withContext(env, async ({ outbox }, { contacts }) => {
    const recipient = recipientIn(contacts, options.to)
    const query = { ...(recipient ? { identity: recipient.identity } : {}), limit: 1000 }
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
  throw new OperatorError('--to must be a phone number or an e-mail address.')
}

async function printDeliveries(env: Env, options: DeliveryOptions): Promise<void> {
  await withServerContext(env, async ({ eventLog, subjectsOf, now }, { contacts, database }) => {
    const recipient = recipientIn(contacts, options.to)
    const { provider, app, brand, channel, template, error: errorClass } = options
    const filter: DeliveryFilter = {
      requestId: options.request === undefined ? undefined : requestId(options.request),
      recipientSubjects: recipient && subjectsOf(recipient),
      statuses: options.status && statusesIn(options.status),
      provider,
      app,
      brand: brand?.trim().toLowerCase(),
      channel,
      country: options.country?.toUpperCase(),
      template,
      lang: options.lang === undefined ? undefined : (canonicalTag(options.lang) ?? options.lang),
      errorClass,
      since: options.since === undefined ? undefined : instant(options.since, now()),
      until: options.until === undefined ? undefined : instant(options.until, now(), '--until'),
    }
    const found: Delivery[] = []
    let before: Place | undefined
    do {
      const page = { before, limit: options.limit - found.length }
      const { rows, next } = await eventLog.findDeliveries(filter, page)
      found.push(...rows)
      before = next ?? undefined
    } while (before !== undefined && found.length < options.limit)
    const rows = found.reverse()
    if (rows.length === 0 && !options.json) {
      complain(`No deliveries match in ${database.name}.`)
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
      ['WHY', (row) => whyOf({ ...row, report: row.receipt }) || '-'],
      ['MS', (row) => String(row.durationMs)],
    ])
  })
}

async function printTrace(env: Env, id: string, options: { json?: true }): Promise<void> {
  await withServerContext(env, async ({ eventLog, jobs: queue, policy, audit }, { database }) => {
    const { readDestinationConfig } = await import('../config/destinations.ts')
    const query = { requestId: requestId(id), limit: 10_000 }
    const [trace, deliveries, jobs, rules] = await Promise.all([
      eventLog.trace(query.requestId),
      eventLog.deliveries(query),
      queue.ofRequest(query.requestId),
      authoredRules({ policy, audit }, readDestinationConfig(env).smsCountries),
    ])
    if (!trace) {
      throw new OperatorError(
        `Request ${query.requestId} is not in ${database.name}. The event log has requests with valid credentials for DELIVERY_LOG_DAYS. For any other request, search the server log for this id.`,
      )
    }
    if (options.json) print(JSON.stringify({ ...traceRow(trace, deliveries), jobs: jobs.map(jobRow) }))
    else for (const line of explain(trace, deliveries, jobs, rules)) print(line)
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

function deliveryRow(delivery: Delivery) {
  const { recipientSubject: _, segments, report, reportKey: __, providerMessageId, at, ...row } = delivery
  return {
    at: isoTime(at),
    ...row,
    vendorId: providerMessageId,
    segments: segments?.count ?? null,
    encoding: segments?.encoding ?? null,
    status: statusOf({ ...row, report }),
    receipt: report && { ...report, at: isoTime(report.at) },
  }
}

function traceRow(trace: RequestTrace, deliveries: readonly Delivery[]) {
  return {
    ...trace,
    at: isoTime(trace.at),
    limits: trace.limits.map((limit) => ({
      ...limit,
      endsAt: limit.endsAt === null ? null : isoTime(limit.endsAt),
    })),
    deliveries: deliveries.map(deliveryRow),
  }
}
