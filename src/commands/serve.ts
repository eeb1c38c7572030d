import { statSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { portError } from '../adapters/http/port-error.ts'
import type { ClusterFacts } from '../adapters/store/condition.ts'
import type { App, Overrides } from '../app.ts'
import type { Config } from '../config/config.ts'
import { sourceOf, unreadRemedy, withVariable } from '../config/setting-source.ts'
import { OperatorError } from '../domain/ground/operator-error.ts'
import type { Problem } from '../domain/health/problem.ts'
import { version } from '../version.ts'
import { complain, type Env, exit, print, withContext } from './common.ts'

export function serveCommands(program: Command, env: Env): void {
  program
    .command('serve')
    .description('migrate the database and start the server')
    .addOption(portOption())
    .option('--domain <name>', 'serve https for this host name, with a certificate by ACME; sets TLS_DOMAIN')
    .action(async ({ domain, ...options }: PortOptions & { domain?: string }) => {
      const { readConfig } = await parts()
      const plain = withPort(env, options)
      const own = domain === undefined ? plain : withVariable(plain, 'TLS_DOMAIN', domain)
      await serve(readConfig(own), {
        env: own,
        warned: (app, config) => protectionWarnings(program, app, config),
      })
    })
  program
    .command('demo')
    .description('start a demo server on 127.0.0.1:3000 with its own database data/demo.db')
    .addOption(portOption())
    .action(async (options: PortOptions) => {
      const { readConfig, demoEnv, prepareDemo, showDemo } = await parts()
      const own = demoEnv(withPort(env, options))
      const config = readConfig(own)
      const demo = await prepareDemo(config)
      await serve(config, { env: own, demo, prepare: (app, listen) => showDemo(app, listen, demo, env) })
    })
  program
    .command('migrate')
    .description('migrate the database to the schema of this version')
    .addOption(
      new Option(
        '--distribute <engine>',
        'also distribute large tables (Citus); stop all servers first',
      ).choices(['citus']),
    )
    .action((options: { distribute?: 'citus' }) =>
      options.distribute ? migrateAndDistribute(env) : migrate(env),
    )
}

async function migrate(env: Env): Promise<void> {
  const [{ readStoreConfig }, { isMissing }] = await Promise.all([
    import('../config/store.ts'),
    import('../adapters/sqlite/marker.ts'),
  ])
  const { database } = readStoreConfig(env)
  const isNew = database.kind === 'sqlite' && isMissing(database.file)
  await withContext(env, async () => {}, { mustExist: false })
  if (!isNew) return print(`The schema of ${database.name} is up to date.`)
  const place = isAbsolute(database.file) ? '' : ` in ${process.cwd()}`
  print(`Created the database ${database.name}${place}.`)
  const remedy = sourceOf(env, 'DATABASE_URL').source === 'default' ? unreadRemedy(env) : undefined
  if (remedy) complain(`DATABASE_URL has its default. ${remedy}`)
  const foreign = foreignFolder(database.file)
  if (foreign) {
    complain(
      `The folder belongs to user ${foreign.uid}, but the database to the user of this command. If user ${foreign.uid} runs the server, run \`chown -R ${foreign.uid} ${foreign.path}\`.`,
    )
  }
}

/** The folder of a new database, if it belongs to another user, such as when root runs the command. */
function foreignFolder(file: string): { readonly path: string; readonly uid: number } | undefined {
  const path = dirname(resolve(file))
  const { uid } = statSync(path)
  return uid === statSync(file).uid ? undefined : { path, uid }
}

export interface PortOptions {
  readonly port?: string | undefined
}

export function portOption(): Option {
  return new Option('--port <port>', 'the TCP port, instead of PORT; 0 selects a free port').argParser(
    (text) => {
      if (/^[0-9]{1,5}$/.test(text) && Number(text) <= 65_535) return text
      throw new InvalidArgumentError('It must be a whole number from 0 to 65535.')
    },
  )
}

export function withPort(env: Env, { port }: PortOptions): Env {
  return port === undefined ? env : withVariable(env, 'PORT', port)
}

async function migrateAndDistribute(env: Env): Promise<void> {
  const [{ readStoreConfig }, { distribute }, { clusterFindings, wrongTables }] = await Promise.all([
    import('../config/store.ts'),
    import('../adapters/postgres/cluster.ts'),
    import('../doctor/citus.ts'),
  ])
  const { database } = readStoreConfig(env)
  const { name } = database
  if (database.kind === 'sqlite') {
    throw new OperatorError(
      `${name} is an SQLite file, which cannot be distributed. Set DATABASE_URL to the coordinator of Citus.`,
    )
  }
  const requireReady = (cluster: ClusterFacts | undefined) => {
    if (!cluster) {
      throw new OperatorError(
        `${name} does not have the extension Citus. On the coordinator and on each worker, in this database, as a superuser: \`CREATE EXTENSION citus\`. Nothing was changed.`,
      )
    }
    const found = [...clusterFindings(cluster), ...wrongTables(cluster.tables)]
    const lines = found.flatMap((finding) =>
      finding.level === 'ok' ? [] : [`  ${finding.text}`, `    → ${finding.remedy}`],
    )
    if (found.some(({ level }) => level === 'fail')) {
      throw new OperatorError(['The cluster is not ready. Nothing was changed.', ...lines].join('\n'))
    }
    if (lines.length > 0) complain(['Change this before you start servers:', ...lines].join('\n'))
  }
  await distribute(database.target, requireReady, ({ table, column, colocateWith }, isNew) =>
    print(
      `${table}: ${isNew ? '' : 'already '}distributed by ${column}${colocateWith ? `, beside ${colocateWith}` : ''}.`,
    ),
  )
  print(`The schema of ${name} is up to date.`)
}

/** Loaded on demand, so that other commands and --help are fast. */
async function parts() {
  const [app, config, warnings, demo, logger] = await Promise.all([
    import('../app.ts'),
    import('../config/config.ts'),
    import('../config/warnings.ts'),
    import('./demo.ts'),
    import('../adapters/log/logger.ts'),
  ])
  return { ...app, ...config, ...warnings, ...demo, ...logger }
}

/** OpenTelemetry takes as long to load as the rest, so it needs an endpoint. */
async function loadTracing() {
  const { createTracing } = await import('../adapters/tracing/tracing.ts')
  return createTracing
}

/** What the operator should change. */
async function protectionWarnings(
  program: Command,
  { context }: App,
  config: Config,
): Promise<readonly string[]> {
  const [{ ignoredGuard, missingProtection }, { printed }, { guardSetting }] = await Promise.all([
    import('../domain/health/protection.ts'),
    import('./finding.ts'),
    import('../config/config.ts'),
  ])
  const rows = await context.policy.rows()
  const sentences = (problem: Problem) => {
    const { message, remedy = '' } = printed(program, problem)
    return `${message} ${remedy}`.trim()
  }
  const missing = config.isProduction ? missingProtection(rows, config, context.now()) : []
  const ignored = ignoredGuard(guardSetting(config), rows.guardMode, context.now())
  return [
    ...(ignored ? [sentences(ignored)] : []),
    ...(missing.length > 0
      ? [`This server is not protected against SMS pumping. ${missing.map(sentences).join(' ')}`]
      : []),
  ]
}

interface Serving extends Pick<Overrides, 'demo' | 'env'> {
  /** What is logged at start. */
  readonly warned?: (app: App, config: Config) => Promise<readonly string[]>
  readonly prepare?: (app: App, listen: () => URL) => Promise<void>
  /** Standard error if standard output is used for something else. */
  readonly logFd?: 1 | 2
  /** When it resolves, the server stops as on SIGTERM. */
  readonly until?: () => Promise<void>
}

export async function serve(config: Config, serving: Serving = {}): Promise<void> {
  const { demo, env, warned, prepare, logFd, until } = serving
  const { createApp, createLogger, settingWarnings } = await parts()
  const { logger, close: closeLog } = createLogger(config.logLevel, logFd)
  const tracing = config.tracing && (await loadTracing())(config.tracing, { version, log: logger })
  for (const { setting, problem, remedy, isLogged } of settingWarnings(config, undefined)) {
    if (isLogged) logger.warn({ setting, remedy }, problem)
  }
  if (env && config.configFile !== undefined) {
    const { applyAtStart } = await import('./apply.ts')
    for (const difference of await applyAtStart(env, config, config.configFile))
      logger.info({ difference }, 'CONFIG_FILE changed the configuration')
  }
  const overrides = { ...(demo && { demo }), ...(env && { env }) }
  const app = await createApp(config, { ...overrides, log: logger, tracing })
  for (const warning of (await warned?.(app, config)) ?? []) logger.warn(warning)
  let stopping = false
  const stop = async (code: number) => {
    if (stopping) process.exit(exit.failed)
    stopping = true
    let outcome = code
    try {
      await app.close({ isFault: code !== exit.ok })
      logger.info('stopped')
    } catch (error) {
      logger.error({ err: error }, 'stopped with an error')
      outcome = exit.failed
    }
    await closeLog()
    process.exit(outcome)
  }
  const fault = (error: unknown) => {
    logger.fatal({ err: error }, 'unexpected error: stopping')
    void stop(exit.failed)
  }
  process.on('uncaughtException', fault)
  process.on('unhandledRejection', fault)
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      logger.info({ signal }, 'stopping: waiting for requests in progress')
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
    throw portError(error, '', config, demo === undefined)
  }
  void until?.().then(() => {
    // Only a second signal ends a stop in progress.
    if (stopping) return
    logger.info('standard input was closed; stopping: waiting for requests in progress')
    void stop(exit.ok)
  })
}
