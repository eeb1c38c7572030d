import { readdirSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type SecretKeys, secretKeysIn } from '../../adapters/crypto/secret-file.ts'
import { keyFingerprints } from '../../adapters/crypto/secrets.ts'
import { createSmtpMailer } from '../../adapters/email/smtp.ts'
import { conditionOf } from '../../adapters/sqlite/condition.ts'
import { type Config, readConfig } from '../../config/config.ts'
import { ConfigError, isLoopback } from '../../config/settings.ts'
import { readStoreConfig, type StoreConfig } from '../../config/store.ts'
import type { Outbox } from '../../domain/ports.ts'
import { type Env, exit, print } from '../common.ts'
import {
  type ClockSample,
  clockFindings,
  collectorFinding,
  databaseFindings,
  diskFinding,
  type Finding,
  hostFindings,
  mailFinding,
  newFolderProblem,
  type PathFacts,
  type PathUse,
  pathFinding,
  providerFinding,
  publicUrlFinding,
  type Reach,
  secretFindings,
  serverDatabaseFindings,
  serverFinding,
  settingsFindings,
  settingWarnings,
} from './checks.ts'
import { freeBytes, pathFacts, sizeOf } from './files.ts'
import { reach } from './reach.ts'

/** How long anybody else is waited for. All are asked at the same time. */
const patienceMs = 4000

/** Looks at everything, prints what was found, and returns the exit code. */
export async function runDoctor(
  env: Env,
  { full, json }: { readonly full: boolean; readonly json: boolean },
): Promise<number> {
  const findings = await examine(env, full)
  if (json) print(JSON.stringify(findings))
  else for (const line of listed(findings)) print(line)
  return findings.some(({ level }) => level === 'fail') ? exit.failed : exit.ok
}

async function examine(env: Env, full: boolean): Promise<readonly Finding[]> {
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const found = settingsFindings(error.problems)
    // What the database is may be right all the same.
    const context = storeConfigOf(env)
    return context ? [...found, ...(await lookAtDatabase(context, full)).findings] : found
  }
  const isHere = hasAddress(config.host)
  const others = await askOthers(config, isHere)
  // After them: what goes through the database holds up everything else, their answers too.
  const { findings: inside, lastRequestAt } = await lookAtDatabase(config, full)
  return [
    ...settingsFindings([]),
    ...settingWarnings({
      developmentOnly: developmentOnly(config),
      publicUrl: config.publicUrl,
      nodeEnv: env.NODE_ENV || undefined,
      trustsProxies: config.trustedProxies.length > 0,
      hasShortMetricsToken: (config.metrics?.token?.length ?? 16) < 16,
      shortKeys: [...config.appCredentials].filter(([, key]) => key.length < 32).map(([appId]) => appId),
    }),
    ...hostFindings(config.host, isHere),
    ...inside,
    ...others.findings,
    ...clockFindings(others.clocks, lastRequestAt, Date.now()),
  ]
}

function storeConfigOf(env: Env): StoreConfig | undefined {
  try {
    return readStoreConfig(env)
  } catch {
    return undefined
  }
}

/** Variables by which messages reach nobody. */
function developmentOnly({ smsMode, smsRoutes, smtp }: Config): readonly string[] {
  const reachesNobody = (route: 'plain' | 'template') =>
    made(smsRoutes[route]).some(({ endpoint }) => endpoint === undefined)
  return [
    ...(smsMode !== 'template' && reachesNobody('plain') ? ['SMS_PLAIN'] : []),
    ...(smsMode !== 'plain' && reachesNobody('template') ? ['SMS_TEMPLATE'] : []),
    ...(smtp ? [] : ['SMTP_URL']),
  ]
}

function made(makers: Config['smsRoutes']['plain']) {
  return makers.map((make) => make({ now: Date.now, outbox: untouched }))
}

/** Providers want an outbox to be made, and nothing is sent here. */
const untouched: Outbox = {
  add: refuse,
  list: refuse,
  get: refuse,
  wait: refuse,
}

async function refuse(): Promise<never> {
  throw new Error('the doctor sends nothing')
}

interface Polled {
  readonly findings: readonly Finding[]
  /** The latest time in the database, epoch milliseconds. */
  readonly lastRequestAt: number | null
}

async function lookAtDatabase(config: StoreConfig, full: boolean): Promise<Polled> {
  const { database, secretKeys } = config
  if (database.kind === 'sqlite') {
    const { findings, lastRequestAt } = lookInside(database.file, secretKeys, full)
    return { findings: [...lookAtFiles(database.file, secretKeys !== undefined), ...findings], lastRequestAt }
  }
  const { conditionOf } = await import('../../adapters/postgres/condition.ts')
  const facts = await conditionOf(database.target)
  const noted = facts.kind === 'answered' ? facts.keyFingerprints : []
  return {
    findings: [
      ...serverDatabaseFindings(database.name, facts, Date.now()),
      ...secretFindings(noted, secretKeys ? keyFingerprints(secretKeys) : 'none', 'SECRET_KEY'),
    ],
    lastRequestAt: facts.kind === 'answered' ? facts.lastRequestAt : null,
  }
}

function lookAtFiles(databaseFile: string, hasSecret: boolean): readonly Finding[] {
  const uid = process.getuid?.() ?? 0
  const folder = dirname(resolve(databaseFile))
  const database = pathFacts(databaseFile)
  if (!database) {
    // A server would make it, and the folders above it that are not there.
    const nearest = nearestFolder(folder)
    const problem = nearest && newFolderProblem(folder, nearest, uid)
    return [
      ...(problem ? [problem] : []),
      {
        level: 'warn',
        what: 'database',
        message: `there is none at ${databaseFile}, or this user may not look at it`,
        remedy: 'otpost serve makes it; else set DATABASE_URL as the server has it, and run this as its user',
      },
    ]
  }
  const paths: readonly (readonly [PathUse, string])[] = [
    ['database', databaseFile],
    ['log', `${databaseFile}-wal`],
    ...(hasSecret ? [] : [['secret', `${databaseFile}.key`] as const]),
    ['folder', folder],
  ]
  const findings = paths.flatMap(([use, path]) => {
    const facts = pathFacts(path)
    const isOwn = uid !== 0 && facts?.ownerUid === uid
    const isShared = use === 'folder' && !isOwn && hasOthers(folder)
    return facts ? [pathFinding(use, { ...facts, isShared }, uid)] : []
  })
  if (!hasSecret && !pathFacts(`${databaseFile}.key`)) {
    findings.push({
      level: 'fail',
      what: 'secret',
      message: `${databaseFile}.key is missing: with a new one, codes on their way do not verify, and nobody's records are found`,
      remedy: 'put it back from where it is kept, or set SECRET_KEY, before the server starts',
    })
  }
  return [...findings, diskFinding(freeBytes(folder), sizeOf(databaseFile) + sizeOf(`${databaseFile}-wal`))]
}

/** Whether a folder holds more than databases and what belongs to them. */
function hasOthers(folder: string): boolean {
  try {
    return readdirSync(folder).some((name) => !name.includes('.db') && name !== 'lost+found')
  } catch {
    return false
  }
}

/** A folder, or the nearest one above it that is there, as far as this user can tell. */
function nearestFolder(folder: string): PathFacts | undefined {
  return pathFacts(folder) ?? (folder === dirname(folder) ? undefined : nearestFolder(dirname(folder)))
}

function lookInside(databaseFile: string, secretKeys: SecretKeys | undefined, full: boolean): Polled {
  if (!pathFacts(databaseFile)) return { findings: [], lastRequestAt: null }
  try {
    const facts = conditionOf(databaseFile, { full })
    return {
      findings: [
        ...secretFindings(facts.keyFingerprints, ...ownFingerprints(databaseFile, secretKeys)),
        ...databaseFindings(facts),
      ],
      lastRequestAt: facts.lastRequestAt,
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const remedy = 'correct that, or otpost restore the latest backup'
    return { findings: [{ level: 'fail', what: 'integrity', message, remedy }], lastRequestAt: null }
  }
}

/** Marks of the secrets that these settings lead to, and where those come from. */
function ownFingerprints(
  databaseFile: string,
  given: SecretKeys | undefined,
): [string[] | 'none' | 'unusable', string] {
  if (given) return [keyFingerprints(given), 'SECRET_KEY']
  const file = `${databaseFile}.key`
  // Its absence, and what keeps this user from reading it, is told by who looks at files.
  const facts = pathFacts(file)
  if (facts?.kind !== 'file' || !facts.readable) return ['none', file]
  const keys = secretKeysIn(readFileSync(file, 'utf8'))
  return [keys ? keyFingerprints(keys) : 'unusable', file]
}

/** Whether a server could listen at this host: it is done for a moment, at a port of chance. */
function hasAddress(hostname: string): boolean {
  try {
    Bun.serve({ hostname, port: 0, fetch: () => new Response() }).stop(true)
    return true
  } catch (error) {
    return !['EADDRNOTAVAIL', 'EINVAL', 'ENOTFOUND'].includes(String((error as { code?: unknown }).code))
  }
}

interface Asked {
  readonly findings: readonly Finding[]
  readonly clocks: readonly ClockSample[]
}

/** Asks everybody that the settings name, at the same time. */
async function askOthers(config: Config, isHere: boolean): Promise<Asked> {
  const { smsRoutes, smtp, publicUrl } = config
  const providers = new Map<string, string>()
  for (const { name, endpoint } of [...made(smsRoutes.plain), ...made(smsRoutes.template)]) {
    if (endpoint !== undefined) providers.set(`${name} ${new URL(endpoint).origin}`, name)
  }
  const asking: Promise<Asked>[] = [...providers].map(([key, name]) => {
    const origin = key.slice(name.length + 1)
    return ask(`${origin}/`, (host, answer) => providerFinding(name, host, answer))
  })
  if (smtp) {
    const mailer = createSmtpMailer(smtp, patienceMs)
    const { host, port } = smtp.server
    asking.push(
      mailer.verify(patienceMs).then((reason) => {
        mailer.close()
        return { findings: [mailFinding(`${host}:${port}`, reason)], clocks: [] }
      }),
    )
  }
  if (publicUrl !== undefined) asking.push(ask(`${publicUrl}/health`, publicUrlFinding))
  if (config.tracing) asking.push(ask(config.tracing.url, collectorFinding))
  if (config.port !== 0 && isHere) asking.push(ask(`${ownUrl(config)}/health`, serverFinding))
  const answers = await Promise.all(asking)
  return {
    findings: answers.flatMap(({ findings }) => findings),
    clocks: answers.flatMap(({ clocks }) => clocks),
  }
}

async function ask(url: string, find: (host: string, answer: Reach) => Finding): Promise<Asked> {
  const { host, hostname } = new URL(url)
  const answer = await reach(url, patienceMs)
  const clocks =
    answer.kind === 'answered' && answer.date !== null
      ? [{ from: host, aheadMs: Date.now() - answer.date, isThisMachine: isLoopback(hostname) }]
      : []
  return { findings: [find(host, answer)], clocks }
}

/** Where a server with these settings is found from here. */
function ownUrl({ host, port }: Config): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`
}

function listed(findings: readonly Finding[]): readonly string[] {
  const width = Math.max(...findings.map(({ what }) => what.length))
  return findings.flatMap((finding) => {
    const { level, what, message } = finding
    const line = `${(level === 'fail' ? 'FAIL' : level).padEnd(4)}  ${what.padEnd(width)}  ${message}`
    return finding.level === 'ok' ? [line] : [line, `      ${' '.repeat(width)}  → ${finding.remedy}`]
  })
}
