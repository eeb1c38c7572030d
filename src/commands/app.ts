import type { Command } from 'commander'
import type { Webhook } from '../domain/ground/webhook-events.ts'
import type { FailingEvents } from '../domain/integration/event-store.ts'
import { webhookStateOf, webhookStateWords } from '../domain/integration/webhook-state.ts'
import { type AppScope, unscoped } from '../domain/limits/scope.ts'
import { appGroup, scopeRow } from '../domain/operator/apps.ts'
import type { AppKey, IssuedApp } from '../domain/operator/changes.ts'
import { shownUrl } from '../domain/operator/webhooks.ts'
import { groupCommand } from './actions.ts'
import { type Env, isoTime, print, printTable, withContext } from './common.ts'

export function appCommands(program: Command, env: Env): void {
  groupCommand(program, appGroup)
    .command('list')
    .description('list the apps with their scope and keys')
    .option('--json', 'print JSON')
    .action((options: { json?: true }) =>
      withContext(env, async ({ apps, policy, events }) => {
        const { scopes, webhooks } = await policy.rows()
        const rows = appRows(await apps.list(), scopes, webhooks, await events.failing())
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
}

function keyRow({ lastFour, createdAt, revokedAt, lastUsedAt, lastUsedFrom }: AppKey) {
  return {
    lastFour,
    issuedAt: isoTime(createdAt),
    lastUsedAt: lastUsedAt === null ? null : isoTime(lastUsedAt),
    ...(lastUsedFrom !== null && { lastUsedFrom }),
    revokedAt: revokedAt === null ? null : isoTime(revokedAt),
  }
}

/** Without the secret. */
function webhookRow(webhook: Webhook, failing: FailingEvents | undefined) {
  const { url, eventTypes, disabledAt } = webhook
  return {
    url: shownUrl(url),
    events: eventTypes,
    disabledAt: disabledAt === null ? null : isoTime(disabledAt),
    state: webhookStateOf(webhook, failing),
    failing: failing
      ? { ...failing, since: isoTime(failing.since), triedAt: isoTime(failing.triedAt) }
      : null,
  }
}

/** Absent if no app has one, as `webhook` is in JSON. */
const webhookColumn = [
  'WEBHOOK',
  ({ webhook }: Pick<ReturnType<typeof appRows>[number], 'webhook'>) =>
    webhook ? webhookStateWords(webhook.state, webhook.failing) : '-',
] as const

/** Also the apps with a scope or a webhook and without a key here: those of APP_CREDENTIALS. */
function appRows(
  issued: readonly IssuedApp[],
  scopes: readonly AppScope[],
  webhooks: readonly Webhook[],
  failing: ReadonlyMap<string, FailingEvents>,
) {
  const scopeOf = new Map(scopes.map((scope) => [scope.appId, scope]))
  const webhookOf = new Map(
    webhooks.map((webhook) => [webhook.appId, webhookRow(webhook, failing.get(webhook.appId))]),
  )
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
