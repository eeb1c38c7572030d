/** @jsxImportSource preact */

import { count, counted, percent } from '../../../domain/ground/format.ts'
import type { Webhook } from '../../../domain/ground/webhook-events.ts'
import type { FailingEvents } from '../../../domain/integration/event-store.ts'
import { type AppScope, unscoped } from '../../../domain/limits/scope.ts'
import { type AppTraffic, limitUse } from '../../../domain/log/app-traffic.ts'
import {
  appIssue,
  appRevoke,
  appRevokeKey,
  appRotate,
  appSet,
  scopeEntries,
} from '../../../domain/operator/apps.ts'
import type { IssuedApp } from '../../../domain/operator/changes.ts'
import type { Brand } from '../../../domain/texts/brand.ts'
import { Badge, Empty, Facts, LinkButton, Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { actions, auditUrl, Card, consolePage, end, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { WebhookState, webhookPath } from '../webhooks/page.tsx'
import { appHref } from './paths.ts'

interface ShownWebhook {
  readonly webhook: Webhook
  readonly failing: FailingEvents | undefined
}

/** An app of the table. */
export interface ListedApp {
  readonly appId: string
  readonly isRevoked: boolean
  /** Its keys are in APP_CREDENTIALS. */
  readonly isConfigured: boolean
  readonly traffic: AppTraffic
  /** Calls per minute. */
  readonly perMinute: number
  /** Null: never, or its key is in APP_CREDENTIALS. */
  readonly lastUsedAt: number | null
  readonly lastUsedFrom: string | null
  readonly webhook: ShownWebhook | undefined
}

interface AppsModel {
  readonly apps: readonly ListedApp[]
  readonly brands: readonly Brand[]
}

interface AppModel extends ListedApp {
  /** Undefined: it has no key here. */
  readonly issued: IssuedApp | undefined
  readonly scope: AppScope
  readonly brands: readonly Brand[]
  /** Who revoked all its keys. Undefined: not among the latest entries of the audit log. */
  readonly revoker: string | undefined
}

type Key = IssuedApp['keys'][number]

export function appsPage(pageContext: PageContext, { apps, brands }: AppsModel): string {
  return consolePage(
    pageContext,
    { title: 'Apps', section: 'apps' },
    <>
      <Card
        title="Traffic of the last 24 hours"
        hint="If a key leaked, paste it into the search field: otpost finds its app, and neither stores nor shows the key."
        actions={<LinkButton href="/admin/relays">Relays</LinkButton>}
      >
        <Table
          caption="Apps"
          columns={[
            'App',
            end('Sent'),
            end('Verified'),
            end('Failed'),
            'Peak of its limit',
            'Last use',
            'Webhook',
          ]}
          rows={apps.map(appCells)}
          keys={apps.map(({ appId }) => appId)}
          empty={
            <Empty title="No apps">
              An app calls the API with an API key. Create one with the form on this page, or run `otpost app
              issue APPID` on the server.
            </Empty>
          }
        />
      </Card>
      <Card title="Create an app" hint="The next page shows its API key once.">
        <ActionForm
          of={appIssue}
          start={scopeEntries(unscoped(''))}
          options={{ brands: brandWords(brands) }}
          submit="Create app"
        />
      </Card>
    </>,
  )
}

function appCells(app: ListedApp) {
  const { appId, traffic, isRevoked, isConfigured, webhook } = app
  return [
    <span class="two-lines">
      <a href={appHref(appId)}>
        <bdi class="breaks">{appId}</bdi>
      </a>
      {isRevoked ? (
        <small>
          <Badge tone="quiet">revoked</Badge>
        </small>
      ) : (
        isConfigured && <small>in APP_CREDENTIALS</small>
      )}
    </span>,
    count(traffic.sent),
    count(traffic.verified),
    traffic.failed === 0 ? '0' : <Badge tone="bad">{count(traffic.failed)}</Badge>,
    <LimitUse app={app} />,
    <LastUse {...app} />,
    webhook ? <WebhookState {...webhook} /> : '–',
  ]
}

function LimitUse({ app: { traffic, perMinute } }: { app: ListedApp }) {
  return (
    <span class="two-lines">
      <span>
        {count(traffic.peak)} of {count(perMinute)}
      </span>
      {traffic.limited > 0 ? (
        <small>
          <Badge tone="warn">{counted(traffic.limited, 'call')} rejected</Badge>
        </small>
      ) : (
        <small>{percent(limitUse(traffic, perMinute))}</small>
      )}
    </span>
  )
}

function LastUse({ lastUsedAt, lastUsedFrom }: Pick<Key, 'lastUsedAt' | 'lastUsedFrom'>) {
  if (lastUsedAt === null) return <>–</>
  return (
    <span class="two-lines">
      <Time at={lastUsedAt} />
      {lastUsedFrom !== null && (
        <small>
          <code>{lastUsedFrom}</code>
        </small>
      )}
    </span>
  )
}

const parent = { title: 'Apps', href: '/admin/apps' }

export function appPage(pageContext: PageContext, app: AppModel): string {
  const { appId, traffic, perMinute, issued, isConfigured, scope, brands, webhook, revoker } = app
  return consolePage(
    pageContext,
    { title: appId, section: 'apps', parent },
    <div class="columns wide-first loose">
      <div class="stack">
        {issued && <Keys app={issued} revoker={revoker} />}
        {isConfigured && (
          <Card
            title="API key"
            hint="The key of this app is in the setting `APP_CREDENTIALS`. Change it there, and restart the server."
          />
        )}
        <Card title="Last 24 hours">
          <Facts
            entries={{
              Sent: count(traffic.sent),
              Verified: count(traffic.verified),
              Failed: count(traffic.failed),
              'Most calls of a minute': `${count(traffic.peak)} of ${count(perMinute)}`,
              'Rejected by the limit': count(traffic.limited),
            }}
          />
        </Card>
      </div>
      <div class="stack">
        <Card id="scope" title="Scope" hint="What the app may do. A change takes effect immediately.">
          <ActionForm
            of={appSet}
            start={scopeEntries(scope)}
            hidden={{ appId }}
            options={{ brands: brandWords(brands) }}
            submit="Save"
          />
        </Card>
        <Card
          title="Webhook"
          actions={
            <LinkButton href={webhookPath(appId)} small>
              {webhook ? 'Open' : 'Set'} the webhook
            </LinkButton>
          }
        >
          {webhook && <WebhookState {...webhook} />}
        </Card>
      </div>
    </div>,
  )
}

function brandWords(brands: readonly Brand[]): Readonly<Record<string, string>> {
  return Object.fromEntries(brands.map(({ slug, displayName }) => [slug, `${slug}: ${displayName}`]))
}

function Keys({ app, revoker }: { app: IssuedApp; revoker: string | undefined }) {
  const { appId, keys, createdAt, revokedAt } = app
  const live = keys.filter((key) => key.revokedAt === null)
  return (
    <Card
      title="API keys"
      actions={
        revokedAt === null && (
          <>
            {live.length < 2 && (
              <ActionButton of={appRotate} with={{ appId }}>
                Add a second key
              </ActionButton>
            )}
            <ActionButton
              of={appRevoke}
              with={{ appId }}
              confirm={`Revoke ${appId}? All its keys stop working immediately.`}
              kind="danger"
            >
              Revoke
            </ActionButton>
          </>
        )
      }
    >
      <p class="hint">
        Created <Time at={createdAt} />.{' '}
        {revokedAt !== null ? (
          <>
            All keys were revoked{' '}
            <a href={auditUrl({ group: 'app', target: appId })}>
              <Time at={revokedAt} />
            </a>
            {revoker !== undefined && (
              <>
                {' '}
                by <bdi class="breaks">{revoker}</bdi>
              </>
            )}
            . To enable the app again, create it again on the page Apps.
          </>
        ) : live.length > 1 ? (
          'Both keys are valid. Revoke the previous key when it is no longer used.'
        ) : (
          'To rotate a key, add a second one and deploy it. Both are valid until you revoke the previous one.'
        )}
      </p>
      <Table
        caption={`Keys of ${appId}`}
        columns={['Key', 'Status', 'Created', 'Last used', actions]}
        rows={keys.map((key) => keyRow(appId, key, live.length))}
        empty="No keys."
      />
    </Card>
  )
}

function keyRow(appId: string, key: Key, liveCount: number) {
  const { lastFour, createdAt, revokedAt } = key
  // Early versions did not store the last characters.
  const keyName = lastFour === 'unknown' ? 'the older key' : `the key …${lastFour}`
  return [
    lastFour === 'unknown' ? 'unknown' : <code>…{lastFour}</code>,
    revokedAt === null ? (
      <Badge tone="good">valid</Badge>
    ) : (
      <span>
        <Badge tone="quiet">revoked</Badge>{' '}
        <a href={auditUrl({ group: 'app', target: appId })}>
          <Time at={revokedAt} />
        </a>
      </span>
    ),
    <Time at={createdAt} />,
    <LastUse {...key} />,
    revokedAt !== null ? null : liveCount < 2 ? (
      <span class="hint">only valid key</span>
    ) : (
      <ActionButton
        of={appRevokeKey}
        with={{ appId, key: lastFour }}
        confirm={`Revoke ${keyName} of ${appId}? It stops working immediately.`}
        kind="danger"
      >
        {lastFour === 'unknown' ? 'Revoke the older key' : `Revoke …${lastFour}`}
      </ActionButton>
    ),
  ]
}
