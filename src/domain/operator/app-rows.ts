import { isoTime, isoTimeOr } from '../ground/time.ts'
import type { Webhook } from '../ground/webhook-events.ts'
import type { FailingEvents } from '../integration/event-store.ts'
import { webhookStateOf } from '../integration/webhook-state.ts'
import { unscoped } from '../limits/scope.ts'
import type { ActionPorts } from './actions.ts'
import { scopeRow } from './apps.ts'
import type { AppKey, AppStore } from './changes.ts'
import { shownUrl } from './webhooks.ts'

// Apps for programs, as `app list --json`.

function keyRow({ lastFour, createdAt, revokedAt, lastUsedAt, lastUsedFrom }: AppKey) {
  return {
    lastFour,
    issuedAt: isoTime(createdAt),
    lastUsedAt: isoTimeOr(lastUsedAt),
    ...(lastUsedFrom !== null && { lastUsedFrom }),
    revokedAt: isoTimeOr(revokedAt),
  }
}

/** Without the secret. */
function webhookRow(webhook: Webhook, failing: FailingEvents | undefined) {
  const { url, eventTypes, disabledAt } = webhook
  return {
    url: shownUrl(url),
    events: eventTypes,
    disabledAt: isoTimeOr(disabledAt),
    state: webhookStateOf(webhook, failing),
    failing: failing
      ? { ...failing, since: isoTime(failing.since), triedAt: isoTime(failing.triedAt) }
      : null,
  }
}

export type AppRow = Awaited<ReturnType<typeof appRows>>[number]

/** Also the apps with a scope or a webhook and without a key here: those of APP_CREDENTIALS. */
export async function appRows({
  apps,
  policy,
  events,
}: Pick<ActionPorts, 'policy' | 'events'> & { readonly apps: AppStore }) {
  const [issued, { scopes, webhooks }, failing] = await Promise.all([
    apps.list(),
    policy.rows(),
    events.failing(),
  ])
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
    issuedAt: isoTimeOr(createdAt),
    revokedAt: isoTimeOr(revokedAt),
    keys: keys.map(keyRow),
    ...scopeRow(scopeOf.get(appId) ?? unscoped(appId)),
    webhook: webhookOf.get(appId),
  }))
}
