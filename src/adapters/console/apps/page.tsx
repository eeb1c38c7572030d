/** @jsxImportSource preact */

import { count } from '../../../domain/ground/format.ts'
import type { Webhook } from '../../../domain/ground/webhook-events.ts'
import type { FailingEvents } from '../../../domain/integration/event-store.ts'
import { type AppScope, unscoped } from '../../../domain/limits/scope.ts'
import {
  appIssue,
  appRevoke,
  appRevokeKey,
  appRotate,
  appSet,
  scopeEntries,
} from '../../../domain/operator/apps.ts'
import type { IssuedApp } from '../../../domain/operator/changes.ts'
import type { Entered } from '../../../domain/operator/fields.ts'
import type { Brand } from '../../../domain/texts/brand.ts'
import { Badge, Empty, Facts, LinkButton, rich, Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { auditUrl, Card, consolePage, FormLink, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { WebhookState, webhookPath } from '../webhooks/page.tsx'

interface AppsModel {
  readonly apps: readonly IssuedApp[]
  readonly configured: readonly string[]
  readonly scopeOf: (appId: string) => AppScope
  readonly webhookOf: (appId: string) => ShownWebhook | undefined
  /** Who revoked all its keys. Undefined: not among the latest entries of the audit log. */
  readonly revokerOf: (appId: string) => string | undefined
  readonly brands: readonly Brand[]
}

interface ShownWebhook {
  readonly webhook: Webhook
  readonly failing: FailingEvents | undefined
}

interface AppScopeModel {
  readonly appId: string
  readonly start: Entered
  readonly brands: readonly Brand[]
}

type Key = IssuedApp['keys'][number]

export function appsPage(
  pageContext: PageContext,
  { apps, configured, scopeOf, webhookOf, revokerOf, brands }: AppsModel,
): string {
  const working = apps.filter(({ revokedAt }) => revokedAt === null)
  const revoked = apps.filter(({ revokedAt }) => revokedAt !== null)
  return consolePage(
    pageContext,
    { title: 'Apps', section: 'apps' },
    <div class="columns wide-first loose">
      <div class="stack">
        {apps.length === 0 && (
          <Card>
            <Empty title="No apps">
              An app calls the API with an API key. Create one with the form on this page, or run `otpost app
              issue APPID` on the server.
            </Empty>
          </Card>
        )}
        {working.map((app) => (
          <App key={app.appId} app={app} scope={scopeOf(app.appId)} webhook={webhookOf(app.appId)} />
        ))}
        {revoked.length > 0 && (
          <Card
            title="Revoked"
            hint="All keys of these apps are revoked. To enable an app again, create a key for it."
          >
            <Table
              caption="Revoked apps"
              columns={['App', 'Created', 'Revoked']}
              rows={revoked.map((app) => [
                <bdi class="breaks" id={appAnchor(app.appId)}>
                  {app.appId}
                </bdi>,
                <Time at={app.createdAt} />,
                app.revokedAt === null ? (
                  '–'
                ) : (
                  <span class="two-lines">
                    <a href={auditUrl({ group: 'app', target: app.appId })}>
                      <Time at={app.revokedAt} />
                    </a>
                    <small>
                      <bdi class="breaks">{revokerOf(app.appId)}</bdi>
                    </small>
                  </span>
                ),
              ])}
              empty="None."
            />
          </Card>
        )}
      </div>
      <div class="stack">
        <Card title="Create an app" hint="The next page shows its API key once.">
          <ActionForm
            of={appIssue}
            start={scopeEntries(unscoped(''))}
            options={{ brands: brandWords(brands) }}
            fold={['brands', 'operations', 'perMinute', 'newCountrySmsPerDay']}
            foldTitle="Scope: brands, operations, limits"
            submit="Create app"
          />
        </Card>
        <Card title="Rotate a key">
          <p class="hint">
            Add a second key and deploy it. When the previous key is no longer used, revoke it. Both keys are
            valid until then.
          </p>
        </Card>
        {configured.length > 0 && (
          <Card
            title="Configured apps"
            hint="Their keys are in the setting `APP_CREDENTIALS`. Change them there."
          >
            {configured.map((id) => (
              <section key={id}>
                <h3>
                  <bdi class="breaks">{id}</bdi>
                </h3>
                <Scope scope={scopeOf(id)} webhook={webhookOf(id)} />
              </section>
            ))}
          </Card>
        )}
      </div>
    </div>,
  )
}

function appAnchor(appId: string): string {
  return `app-${encodeURIComponent(appId)}`
}

export function appHref(appId: string): string {
  return `/admin/apps#${encodeURIComponent(appAnchor(appId))}`
}

export function appScopePage(pageContext: PageContext, { appId, start, brands }: AppScopeModel): string {
  return consolePage(
    pageContext,
    { title: `Scope of ${appId}`, section: 'apps', parent: { title: 'Apps', href: '/admin/apps' } },
    <Card hint="What the app may do. A change takes effect immediately.">
      <ActionForm
        of={appSet}
        start={start}
        hidden={{ appId }}
        options={{ brands: brandWords(brands) }}
        submit="Save"
      />
    </Card>,
  )
}

function brandWords(brands: readonly Brand[]): Readonly<Record<string, string>> {
  return Object.fromEntries(brands.map(({ slug, displayName }) => [slug, `${slug}: ${displayName}`]))
}

function Scope({ scope, webhook }: { scope: AppScope; webhook: ShownWebhook | undefined }) {
  const { appId, brands, allowsOtp, allowsNotify, perMinute, newCountrySmsPerDay } = scope
  return (
    <>
      <Facts
        entries={{
          Brands:
            brands.length === 0 ? (
              'every brand'
            ) : (
              <ul class="chips">
                {brands.map((slug) => (
                  <li key={slug}>
                    <a href={`/admin/brands/${encodeURIComponent(slug)}`}>{slug}</a>
                  </li>
                ))}
              </ul>
            ),
          Operations: [allowsOtp && 'codes', allowsNotify && 'notifications'].filter(Boolean).join(', '),
          'Calls per minute':
            perMinute === null ? rich('default, `GLOBAL_LIMIT_PER_MINUTE`') : count(perMinute),
          'SMS per day to a new country':
            newCountrySmsPerDay === null ? 'no limit' : count(newCountrySmsPerDay),
          Webhook: webhook ? <WebhookState {...webhook} /> : 'none',
        }}
      />
      <p>
        <FormLink href={`/admin/apps/scope?app=${encodeURIComponent(appId)}`} small>
          Change scope
        </FormLink>{' '}
        <LinkButton href={webhookPath(appId)} small>
          Webhook<span class="sr-only"> of {appId}</span>
        </LinkButton>
      </p>
    </>
  )
}

interface AppProps {
  readonly app: IssuedApp
  readonly scope: AppScope
  readonly webhook: ShownWebhook | undefined
}

function App({ app, scope, webhook }: AppProps) {
  const { appId, keys, createdAt } = app
  const live = keys.filter(({ revokedAt }) => revokedAt === null)
  return (
    <Card
      id={appAnchor(appId)}
      title={appId}
      actions={
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
      }
    >
      <p class="hint">
        Created <Time at={createdAt} />
        {live.length > 1 && '. Key rotation in progress: revoke the previous key when it is no longer used.'}
      </p>
      <Table
        caption={`Keys of ${appId}`}
        columns={['Key', 'Status', 'Created', 'Last used', { title: 'Action', align: 'end', isQuiet: true }]}
        rows={keys.map((key) => keyRow(appId, key, live.length))}
        empty="No keys."
      />
      <Scope scope={scope} webhook={webhook} />
    </Card>
  )
}

function keyRow(appId: string, key: Key, liveCount: number) {
  const { lastFour, createdAt, revokedAt, lastUsedAt } = key
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
    lastUsedAt === null ? 'never' : <Time at={lastUsedAt} />,
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
