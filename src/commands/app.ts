import { type Command, Option } from 'commander'
import type { Context } from '../context.ts'
import { counted } from '../domain/ground/format.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import { dayMs } from '../domain/ground/time.ts'
import { eventTypes, type Webhook } from '../domain/ground/webhook-events.ts'
import {
  type AppOperation,
  type AppScope,
  appOperations,
  operationsOf,
  unscoped,
} from '../domain/limits/scope.ts'
import {
  issueApp,
  revokeApp,
  revokeKey,
  rotateApp,
  type ScopeChange,
  scopeSentence,
  setApp,
} from '../domain/operator/apps.ts'
import type { AppKey, ChangePorts, IssuedApp } from '../domain/operator/changes.ts'
import { dryRunOf } from '../domain/operator/dry-run.ts'
import { removeWebhook, setWebhook, shownUrl } from '../domain/operator/webhooks.ts'
import {
  type ConfirmOptions,
  commandActor,
  complain,
  confirm,
  confirmOption,
  type DryRunOptions,
  dryRunOption,
  type Env,
  isoTime,
  list,
  listOf,
  nothingChanged,
  print,
  printTable,
  several,
  wholeNumber,
  withContext,
} from './common.ts'

export function appCommands(program: Command, env: Env): void {
  const app = program.command('app').description('create apps, and create and revoke their API keys')
  app
    .command('issue')
    .description('create an app and print its API key; otpost stores only the hash of the key')
    .argument('<appId>', 'the appId in API requests')
    .addOption(brandOption())
    .addOption(allowOption())
    .option(
      '--per-minute <calls>',
      'the limit of calls per minute, instead of GLOBAL_LIMIT_PER_MINUTE',
      wholeNumber,
    )
    .addHelpText(
      'after',
      '\nWithout options, an app may use every brand and both operations. An app whose keys are all revoked keeps its\nearlier scope, as far as no option changes it.',
    )
    .action((appId: string, options: ScopeOptions) =>
      withContext(env, async (context) => {
        const ports = context.acting(await commandActor(env))
        const { key, scope, hadScope } = await issueApp(ports, appId, scopeChange(options))
        print(key)
        if (hadScope) complain(`${appId} had a scope before. ${scopeSentence(scope)}`)
      }),
    )
  app
    .command('set')
    .description(
      'change what an app may do: its brands, operations and calls per minute; also for an app in APP_CREDENTIALS',
    )
    .argument('<appId>', 'the appId')
    .addOption(brandOption())
    .option('--any-brand', 'every brand')
    .addOption(allowOption())
    .option(
      '--per-minute <calls>',
      'the limit of calls per minute; default for GLOBAL_LIMIT_PER_MINUTE',
      (text) => (text === 'default' ? text : wholeNumber(text)),
    )
    .action((appId: string, options: ScopeOptions) =>
      withContext(env, async (context) => {
        const change = scopeChange(options)
        if (Object.values(change).every((value) => value === undefined)) {
          throw new InvalidInput('Nothing to change. Give --brand, --any-brand, --allow or --per-minute.')
        }
        const ports = context.acting(await commandActor(env))
        const scope = await setApp(ports, appId, change, context.apps.configured)
        print(JSON.stringify({ appId, ...scopeRow(scope) }))
      }),
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
    .command('webhook')
    .description(
      'set where events of an app go, and print the secret that signs them; the previous secret signs them too for 24 hours',
    )
    .argument('<appId>', 'the appId')
    .option(
      '--url <url>',
      'the URL that receives the events; https, except for a loopback host in development',
    )
    .addOption(
      new Option(
        '--event <type>',
        `an event to send: ${eventTypes.join(', ')}; ${several}; all by default`,
      ).argParser(listOf(eventTypes)),
    )
    .option('--off', 'end the webhook; events that wait are deleted')
    .addHelpText(
      'after',
      '\notpost prints the secret only once. Events that wait go to the new URL. A webhook that otpost switched off is on again.',
    )
    .action((appId: string, { url, event = [], off }: WebhookOptions) =>
      withContext(env, async (context, { isProduction, hostKind }) => {
        if (off ? url !== undefined || event.length > 0 : url === undefined)
          throw new InvalidInput('Give --url and the --event options, or --off alone.')
        const ports = context.acting(await commandActor(env))
        if (url === undefined) {
          await removeWebhook(ports, appId)
          print(`The webhook of ${appId} is ended.`)
          return
        }
        const { webhook, hadWebhook } = await setWebhook(
          { ...ports, apps: context.apps, isProduction, hostKind },
          { appId, url, eventTypes: event },
        )
        print(webhook.secret)
        if (hadWebhook) complain(`The previous secret of ${appId} signs events too, for 24 hours.`)
      }),
    )
  app
    .command('list')
    .description('list the apps with their scope and their API keys, and when each key was last used')
    .option('--json', 'print a JSON array')
    .action((options: { json?: true }) =>
      withContext(env, async ({ apps, policy }) => {
        const { scopes, webhooks } = await policy.rows()
        const rows = appRows(await apps.list(), scopes, webhooks)
        if (options.json) {
          print(JSON.stringify(rows))
          return
        }
        printTable(undefined, rows.flatMap(keyLines), [
          ['APP', (row) => row.appId],
          ['KEY', (row) => (row.lastFour === null ? '-' : `…${row.lastFour}`)],
          ['ISSUED', (row) => row.issuedAt ?? '-'],
          ['LAST USED', (row) => row.lastUsedAt ?? '-'],
          ['REVOKED', (row) => row.revokedAt ?? '-'],
          ['BRANDS', (row) => row.brands.join(',') || 'any'],
          ['ALLOW', (row) => row.allow.join(',')],
          ['PER MINUTE', (row) => String(row.perMinute ?? 'default')],
          ...(webhooks.length === 0 ? [] : [webhookColumn]),
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
    .addOption(confirmOption())
    .addOption(dryRunOption())
    .action((appId: string, { dryRun, yes }: ConfirmOptions & DryRunOptions) =>
      withContext(env, async (context) => {
        const ports = context.acting(await commandActor(env))
        const revoke = (how: ChangePorts) => revokeApp(how, appId, context.apps.configured)
        const preview = await revoke(dryRunOf(ports))
        if (dryRun) {
          for (const line of await revocationLines(context, appId)) print(line)
          if (preview !== undefined) complain(preview)
          return
        }
        await confirm(`This revokes every API key of ${appId}. Its requests fail from now on.`, { yes })
        const worksStill = await revoke(ports)
        print(`Every key of ${appId} is revoked.`)
        if (worksStill !== undefined) complain(worksStill)
      }),
    )
}

async function revocationLines({ apps, eventLog, now }: Context, appId: string): Promise<readonly string[]> {
  const app = (await apps.list()).find((each) => each.appId === appId)
  const active = app?.keys.filter(({ revokedAt }) => revokedAt === null) ?? []
  const { requests, isMore } = await eventLog.countFound('calls', { app: appId, since: now() - dayMs })
  return [
    `Would revoke ${counted(active.length, 'API key')} of ${appId}:`,
    ...active.map(
      ({ lastFour, lastUsedAt }) =>
        `  …${lastFour}, ${lastUsedAt === null ? 'never used' : `last used ${isoTime(lastUsedAt)}`}`,
    ),
    `Requests of ${appId} in the last 24 hours: ${requests}${isMore ? ' or more' : ''}.`,
    nothingChanged,
  ]
}

interface WebhookOptions {
  url?: string
  event?: readonly string[]
  off?: true
}

interface ScopeOptions {
  brand?: readonly string[]
  anyBrand?: true
  allow?: readonly AppOperation[]
  perMinute?: number | 'default'
}

function brandOption(): Option {
  return new Option(
    '--brand <slug>',
    `a brand that the app may use; ${several}; replaces the earlier brands`,
  ).argParser(list)
}

function allowOption(): Option {
  return new Option(
    '--allow <operation>',
    `an operation that the app may use: otp (send, resend and verify) or notify; ${several}; replaces the earlier operations`,
  ).argParser(listOf(appOperations))
}

function scopeChange({ brand, anyBrand, allow, perMinute }: ScopeOptions): ScopeChange {
  if (brand && anyBrand) throw new InvalidInput('--brand cannot be combined with --any-brand.')
  return {
    brands: anyBrand ? [] : brand,
    operations: allow,
    perMinute: perMinute === 'default' ? null : perMinute,
  }
}

function scopeRow(scope: AppScope) {
  const { brands, perMinute } = scope
  return { brands, allow: operationsOf(scope), perMinute }
}

function keyRow({ lastFour, createdAt, revokedAt, lastUsedAt }: AppKey) {
  return {
    lastFour,
    issuedAt: isoTime(createdAt),
    lastUsedAt: lastUsedAt === null ? null : isoTime(lastUsedAt),
    revokedAt: revokedAt === null ? null : isoTime(revokedAt),
  }
}

/** Without the secret. */
function webhookRow({ url, eventTypes, disabledAt }: Webhook) {
  return {
    url: shownUrl(url),
    events: eventTypes,
    disabledAt: disabledAt === null ? null : isoTime(disabledAt),
  }
}

/** Absent if no app has one, as `webhook` is in JSON. */
const webhookColumn = [
  'WEBHOOK',
  ({ webhook }: Pick<ReturnType<typeof appRows>[number], 'webhook'>) =>
    webhook === undefined ? '-' : webhook.disabledAt === null ? 'on' : 'switched off',
] as const

/** Also the apps with a scope or a webhook and without a key here: those of APP_CREDENTIALS. */
function appRows(issued: readonly IssuedApp[], scopes: readonly AppScope[], webhooks: readonly Webhook[]) {
  const scopeOf = new Map(scopes.map((scope) => [scope.appId, scope]))
  const webhookOf = new Map(webhooks.map((webhook) => [webhook.appId, webhookRow(webhook)]))
  const others = [...new Set([...scopeOf.keys(), ...webhookOf.keys()])]
    .filter((appId) => !issued.some((app) => app.appId === appId))
    .sort()
  const withoutKey = others.map((appId) => ({ appId, createdAt: null, revokedAt: null, keys: [] }))
  return [...issued, ...withoutKey].map(({ appId, createdAt, revokedAt, keys }) => ({
    appId,
    issuedAt: createdAt === null ? null : isoTime(createdAt),
    revokedAt: revokedAt === null ? null : isoTime(revokedAt),
    keys: keys.map(keyRow),
    ...scopeRow(scopeOf.get(appId) ?? unscoped(appId)),
    webhook: webhookOf.get(appId),
  }))
}

function keyLines({ keys, ...app }: ReturnType<typeof appRows>[number]) {
  const none = { lastFour: null, issuedAt: null, lastUsedAt: null, revokedAt: null }
  return (keys.length > 0 ? keys : [none]).map((key) => ({ ...app, ...key }))
}
