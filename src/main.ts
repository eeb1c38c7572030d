import { existsSync } from 'node:fs'
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import packageJson from '../package.json'
import type { createApp, Overrides } from './app.ts'
import type { Books } from './books.ts'
import type { BooksConfig } from './books-config.ts'
import type { Config } from './config.ts'
import { type Brand, brandStatuses, registrationOf, type TemplateRegistration } from './domain/brand.ts'
import { email, phone } from './domain/contact.ts'
import { explain } from './domain/explain.ts'
import { type Delivery, type Story, statusOf } from './domain/journal.ts'
import {
  type BrandChange,
  brandStatus,
  issueApp,
  OperatorError,
  putBrand,
  registerTemplate,
  revokeApp,
  setBrandStatus,
} from './domain/operator.ts'
import { templateKeys } from './domain/templates.ts'
import { ConfigError } from './settings.ts'

/** What the process ends with: sysexits.h where it has a word for it. */
const exit = { ok: 0, failed: 1, usage: 2, config: 78 } as const

// The database, its log and the secret are for the operator's eyes only.
process.umask(0o077)

// Whoever reads the output of a command may have seen enough of it.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(exit.ok)
})

try {
  await createProgram().parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

function createProgram(): Command {
  const program = new Command('otpost')
    .description('Verification codes and notifications by SMS and e-mail.')
    .version(packageJson.version)
    .exitOverride()
    .showHelpAfterError('(--help shows what there is)')
    .addHelpText('after', '\nSettings are environment variables; the README lists them all.')

  program
    .command('serve')
    .description('bring the database up to date, then serve; SIGTERM drains and stops')
    .action(async () => {
      const { readConfig } = await parts()
      await serve(readConfig(process.env))
    })
  program
    .command('demo')
    .description('serve a demo brand and app on 127.0.0.1:3000, every message in the outbox')
    .action(async () => {
      const { readConfig, demo, demoEnv, prepareDemo } = await parts()
      await serve(readConfig(demoEnv(process.env)), { demo }, prepareDemo)
    })
  program
    .command('migrate')
    .description('bring the database up to date')
    .action(() => withBooks(async (_, config) => print(`${config.databaseFile} is up to date`)))

  const brand = program.command('brand').description('keep the brands that messages go out for')
  brand
    .command('put')
    .description('make a brand, active unless told otherwise, or change the given properties of one')
    .argument('<slug>', 'what callers send as brandId')
    .option('--name <name>', 'display name, as messages show it')
    .addOption(new Option('--status <status>', 'its status').choices(brandStatuses))
    .option('--notify <keys>', 'templates enabled on /notify, separated by commas; "" for none', commaList)
    .option('--dlt', 'use the registered-template route, as OTP_SMS_MODE says')
    .option('--no-dlt', 'use the plain route only')
    .option('--login-id', 'name the loginId of a caller in OTP messages')
    .option('--no-login-id', 'leave the loginId out')
    .option('--domain <host>', 'end OTP messages with the line that lets browsers fill the code in (WebOTP)')
    .option('--no-domain', 'leave that line out')
    .option('--entity <id>', 'its id as a principal entity, for template routes (India: DLT)')
    .option('--no-entity', 'forget that id')
    .action((slug: string, options: BrandOptions) =>
      withBooks(async ({ brands }) =>
        print(JSON.stringify(brandRow(await putBrand(brands, slug, changeOf(options))))),
      ),
    )
  brand
    .command('list')
    .description('list the brands')
    .option('--json', 'as a JSON array')
    .action((options: { json?: true }) =>
      withBooks(async ({ brands }) =>
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
  brand
    .command('template')
    .description('say how a template of a brand is registered with carriers and vendors')
    .argument('<slug>')
    .addArgument(new Argument('<key>', 'the template').choices(templateKeys))
    .option(
      '--id <id>',
      'its id there; NAME=ID for one that only this provider uses; may be repeated',
      collect,
      [],
    )
    .option('--sender <sender>', 'the sender id (header) it is registered under')
    .option('--remove', 'forget the registration')
    .action((slug: string, key: string, options: TemplateOptions) =>
      withBooks(async ({ brands }) => {
        const { vendorNames } = await import('./adapters/sms/index.ts')
        const changed = await registerTemplate(brands, slug, key, registrationChange(options, vendorNames))
        print(JSON.stringify({ brandId: changed.slug, key, ...registrationOf(changed, key) }))
      }),
    )
  brand
    .command('status')
    .description('pending → active, active → suspended, suspended → active')
    .argument('<slug>')
    .addArgument(new Argument('<status>').choices(brandStatuses))
    .action((slug: string, status: string) =>
      withBooks(async ({ brands }) => {
        const changed = await setBrandStatus(brands, slug, brandStatus(status))
        print(`${changed.slug} is ${changed.status}`)
      }),
    )

  const app = program.command('app').description('issue and revoke the credentials of applications')
  app
    .command('issue')
    .description('print the API key of a new app, once; only its hash is kept')
    .argument('<appId>')
    .action((appId: string) => withBooks(async (books) => print(await issueApp(books, appId))))
  app
    .command('list')
    .description('list the issued apps')
    .option('--json', 'as a JSON array')
    .action((options: { json?: true }) =>
      withBooks(async ({ apps }) => {
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
      withBooks(async (books) => {
        await revokeApp(books, appId)
        print(`${appId} is revoked`)
      }),
    )

  program
    .command('deliveries')
    .description('list what was handed to which provider, and what became of it')
    .option('--request <id>', 'only of this request')
    .option('--to <recipient>', 'only to this phone number or mail address')
    .option('--since <when>', 'only since then: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z')
    .option('--limit <count>', 'the latest so many', wholeNumber, 100)
    .option('--json', 'as a JSON array')
    .action(printDeliveries)
  program
    .command('explain')
    .description('tell the story of one request: its checks, limits, providers and receipts')
    .argument('<requestId>', 'as the answer and its X-Request-Id header say')
    .option('--json', 'as JSON')
    .action(printStory)
  program
    .command('receipts')
    .description('print the URLs at which vendors report what became of messages')
    .action(printReceiptUrls)

  program
    .command('outbox')
    .description('print what the outbox holds, oldest first, as JSON lines')
    .option('--to <recipient>', 'only messages to this phone number or mail address')
    .option('--wait <seconds>', 'wait for a first message, at most so long', wholeSeconds)
    .action(printOutbox)

  return program
}

/** What serves: loaded when it is to, so that commands, --help and a slip of the keys are answered at once. */
async function parts() {
  const [app, config, demo, logger] = await Promise.all([
    import('./app.ts'),
    import('./config.ts'),
    import('./demo.ts'),
    import('./adapters/log/logger.ts'),
  ])
  return { ...app, ...config, ...demo, ...logger }
}

/** Serves until a signal ends it. */
async function serve(
  config: Config,
  overrides: Pick<Overrides, 'demo'> = {},
  prepare?: (app: ReturnType<typeof createApp>, listen: () => URL) => Promise<void>,
): Promise<void> {
  const { createApp, createLogger, version } = await parts()
  const { logger, close: closeLog } = createLogger(config.logLevel)
  const app = createApp(config, { ...overrides, log: logger, databaseThread: true })
  let stopping = false
  const stop = async (code: number) => {
    if (stopping) process.exit(exit.failed)
    stopping = true
    let outcome = code
    try {
      await app.close()
      logger.info('stopped')
    } catch (error) {
      logger.error({ err: error }, 'stopped, but not in good order')
      outcome = exit.failed
    }
    await closeLog()
    process.exit(outcome)
  }
  const fault = (error: unknown) => {
    logger.fatal({ err: error }, 'unexpected fault: stopping')
    void stop(exit.failed)
  }
  process.on('uncaughtException', fault)
  process.on('unhandledRejection', fault)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      logger.info({ signal }, 'stopping: requests under way are finished first')
      void stop(exit.ok)
    })
  }
  const listen = () => {
    const url = app.listen()
    logger.info({ url: String(url), version, pid: process.pid }, 'listening')
    return url
  }
  try {
    if (prepare) await prepare(app, listen)
    else listen()
  } catch (error) {
    await app.close()
    throw portError(error, config)
  }
}

/** The errors of a port that an operator can do something about, in words; any other as it is. */
function portError(error: unknown, { host, port }: Config): unknown {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'EADDRINUSE') {
    return new OperatorError(
      `port ${port} on ${host} is in use. Stop what listens there, choose another PORT, or set REUSE_PORT=1 on both servers to hand over without downtime`,
    )
  }
  if (code === 'EACCES')
    return new OperatorError(`port ${port} is not allowed to this user: choose a PORT above 1023`)
  if (code === 'EADDRNOTAVAIL' || code === 'EINVAL' || code === 'ENOTFOUND') {
    return new ConfigError([`HOST is ${host}, but this machine has no such address`])
  }
  return error
}

type Work = (books: Books, config: BooksConfig) => Promise<void>

/** Opens the books for one command and closes them after it. */
async function withBooks(work: Work, isUsable: (config: BooksConfig) => void = () => {}): Promise<void> {
  const [{ openBooks }, { readBooksConfig }] = await Promise.all([
    import('./books.ts'),
    import('./books-config.ts'),
  ])
  const config = readBooksConfig(process.env)
  isUsable(config)
  const books = openBooks(config)
  try {
    await work(books, config)
  } finally {
    await books.close()
  }
}

/** The same for a command that tells of what a server has done: where there is nothing, nothing is made. */
function withServersBooks(work: Work): Promise<void> {
  return withBooks(work, requireDatabase)
}

function requireDatabase({ databaseFile }: BooksConfig): void {
  if (existsSync(databaseFile)) return
  throw new OperatorError(
    `there is no database at ${databaseFile}: set DATABASE_URL as the server has it (the demo has file:data/demo.db)`,
  )
}

async function printOutbox(options: { to?: string; wait?: number }): Promise<void> {
  await withBooks(async ({ outbox }, { nationalize }) => {
    const recipient = phone(options.to, nationalize) ?? email(options.to)
    if (options.to !== undefined && !recipient) {
      throw new OperatorError('--to must be a phone number or a mail address')
    }
    const query = { ...(recipient ? { identity: recipient.identity } : {}), limit: 1000 }
    const never = new AbortController().signal
    const entries = await outbox.wait(query, (options.wait ?? 0) * 1000, never)
    for (const entry of entries) print(JSON.stringify(entry))
    if (entries.length === 0 && options.wait) {
      throw new OperatorError(`no message came within ${options.wait} s`)
    }
  })
}

async function printDeliveries(options: {
  request?: string
  to?: string
  since?: string
  limit: number
  json?: true
}): Promise<void> {
  await withServersBooks(async ({ journal, secrets, now }, { nationalize, databaseFile }) => {
    const recipient = phone(options.to, nationalize) ?? email(options.to)
    if (options.to !== undefined && !recipient) {
      throw new OperatorError('--to must be a phone number or a mail address')
    }
    const rows = await journal.deliveries({
      ...(options.request === undefined ? {} : { requestId: requestId(options.request) }),
      ...(recipient ? { recipientSubjects: secrets.subjects(recipient.channel, recipient.identity) } : {}),
      ...(options.since === undefined ? {} : { since: instant(options.since, now()) }),
      limit: options.limit,
    })
    if (rows.length === 0 && !options.json) {
      complain(`there are no such deliveries in ${databaseFile}`)
      return
    }
    printTable(options.json, rows.map(deliveryRow), [
      ['TIME', (row) => row.at],
      ['REQUEST', (row) => row.requestId],
      ['APP', (row) => row.app],
      ['BRAND', (row) => row.brand ?? '-'],
      ['TO', (row) => row.recipient],
      ['PROVIDER', (row) => row.provider + (row.route === null ? '' : `/${row.route}`)],
      ['TEMPLATE', (row) => row.template ?? '-'],
      ['SEGMENTS', (row) => (row.segments === null ? '-' : `${row.segments} ${row.encoding}`)],
      ['STATUS', (row) => row.status],
      ['WHY', (row) => [row.errorClass, row.reason ?? row.receipt?.reason].filter(Boolean).join(' ') || '-'],
      ['MS', (row) => String(row.durationMs)],
    ])
  })
}

async function printStory(id: string, options: { json?: true }): Promise<void> {
  await withServersBooks(async ({ journal }, { databaseFile }) => {
    const query = { requestId: requestId(id), limit: 10_000 }
    const [story, deliveries] = await Promise.all([journal.story(query.requestId), journal.deliveries(query)])
    if (!story) {
      throw new OperatorError(
        `nothing is known of request ${query.requestId} in ${databaseFile}. Requests are kept that came with right credentials, for as long as DELIVERY_LOG_DAYS says; of any other the server's log has a line with this id`,
      )
    }
    if (options.json) print(JSON.stringify(storyRow(story, deliveries)))
    else for (const line of explain(story, deliveries)) print(line)
  })
}

async function printReceiptUrls(): Promise<void> {
  const { createApp, readConfig } = await parts()
  const config = readConfig(process.env)
  requireDatabase(config)
  const app = createApp(config)
  try {
    for (const line of app.receiptUrls()) print(line)
  } finally {
    await app.close()
  }
}

/** A delivery as it is listed: its times as text, and how it stands. */
function deliveryRow({ recipientSubject: _, segments, receipt, receiptKey: __, at, ...row }: Delivery) {
  return {
    at: isoTime(at),
    ...row,
    segments: segments?.count ?? null,
    encoding: segments?.encoding ?? null,
    status: statusOf({ ...row, receipt }),
    receipt: receipt && { ...receipt, at: isoTime(receipt.at) },
  }
}

/** A story as a program reads it: its times as text, and with its deliveries. */
function storyRow(story: Story, deliveries: readonly Delivery[]) {
  return {
    ...story,
    at: isoTime(story.at),
    limits: story.limits.map((limit) => ({
      ...limit,
      endsAt: limit.endsAt === null ? null : isoTime(limit.endsAt),
    })),
    deliveries: deliveries.map(deliveryRow),
  }
}

function requestId(text: string): string {
  const id = text.trim().toLowerCase()
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id
  throw new OperatorError('a request id is a UUID, as in the answer and its X-Request-Id header')
}

/** A time as an operator says it: so long ago, or a date and time. */
function instant(text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text.trim()) ?? []
  const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
  const time = count === undefined ? isoInstant(text.trim()) : now - Number(count) * (unitMs[unit] ?? 0)
  if (!Number.isNaN(time)) return time
  throw new OperatorError('--since must be such as 30m, 12h or 7d, or a time such as 2026-11-21T14:00Z')
}

/** A date, with a time or without, in ISO 8601 and in UTC unless it says otherwise; NaN where it is none. */
function isoInstant(text: string): number {
  const [, day = '', time = 'T00:00', zone = 'Z'] =
    /^(\d{4}-\d{2}-\d{2})(?:([T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-]\d{2}:?\d{2})?)?$/.exec(text) ?? []
  // A day that is none would become another.
  const isDay = day !== '' && new Date(day).toJSON()?.startsWith(day)
  return isDay ? Date.parse(`${day}${time.replace(' ', 'T')}${zone}`) : Number.NaN
}

interface TemplateOptions {
  id: readonly string[]
  sender?: string
  remove?: true
}

/** What was said of a template's registration; null: that it is to be forgotten. */
function registrationChange(
  { id, sender, remove }: TemplateOptions,
  providers: readonly string[],
): Partial<TemplateRegistration> | null {
  const says = id.length > 0 || sender !== undefined
  if (remove && says) throw new OperatorError('--remove forgets the registration: give nothing else with it')
  if (remove) return null
  if (!says) throw new OperatorError('say what to change: --id, --sender or --remove')
  const ids: Record<string, string> = {}
  let own: string | undefined
  for (const each of id) {
    const [, provider, providersId = ''] = /^([^=]*)=(.*)$/.exec(each) ?? []
    const known = provider === undefined ? own : ids[provider]
    if (known !== undefined)
      throw new OperatorError(`--id is given twice${provider ? ` for ${provider}` : ''}`)
    if (provider === undefined) own = each
    else if (providers.includes(provider)) ids[provider] = providersId
    else throw new OperatorError(`there is no provider ${provider}; there are ${providers.join(', ')}`)
  }
  return {
    ids,
    ...(own === undefined ? {} : { id: own }),
    ...(sender === undefined ? {} : { senderId: sender }),
  }
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

interface BrandOptions {
  name?: string
  status?: string
  notify?: string[]
  dlt?: boolean
  loginId?: boolean
  domain?: string | false
  entity?: string | false
}

function changeOf({ name, status, notify, dlt, loginId, domain, entity }: BrandOptions): BrandChange {
  return {
    displayName: name?.trim(),
    status: status === undefined ? undefined : brandStatus(status),
    notifyTemplates: notify,
    dltEnabled: dlt,
    loginIdEnabled: loginId,
    domain: domain === false ? null : domain?.toLowerCase(),
    entityId: entity === false ? null : entity,
  }
}

/** A brand as it is listed: by the name that callers use for it. */
function brandRow({ slug, ...brand }: Brand) {
  return { brandId: slug, ...brand }
}

function commaList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

function wholeSeconds(text: string): number {
  if (!/^[0-9]{1,5}$/.test(text)) throw new InvalidArgumentError('It is a whole number of seconds.')
  return Number(text)
}

function wholeNumber(text: string): number {
  if (!/^[1-9][0-9]{0,5}$/.test(text)) throw new InvalidArgumentError('It is a whole number from 1 on.')
  return Number(text)
}

function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

function yesNo(flag: boolean): string {
  return flag ? 'yes' : '-'
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints rows for people as aligned columns, or for programs as a JSON array. */
function printTable<Row>(
  json: true | undefined,
  rows: readonly Row[],
  columns: readonly (readonly [string, (row: Row) => string])[],
): void {
  if (json) {
    print(JSON.stringify(rows))
    return
  }
  const lines = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, cell]) => cell(row)))]
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)))
  for (const line of lines) {
    print(
      line
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}

/** Tells the operator what went wrong, on standard error and without a stack; returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exit.ok : exit.usage
  if (error instanceof ConfigError) {
    complain(['the settings can not be used:', ...error.problems.map((problem) => `  ${problem}`)].join('\n'))
    return exit.config
  }
  complain(error instanceof Error ? error.message : String(error))
  return exit.failed
}

function complain(message: string): void {
  process.stderr.write(`otpost: ${message}\n`)
}
