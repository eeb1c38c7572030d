/** @jsxImportSource preact */

import { count } from '../../../domain/ground/format.ts'
import type { Webhook } from '../../../domain/ground/webhook-events.ts'
import type { AppScope } from '../../../domain/limits/scope.ts'
import type { IssuedApp } from '../../../domain/operator/changes.ts'
import type { Brand } from '../../../domain/texts/brand.ts'
import {
  Badge,
  Button,
  Choice,
  Empty,
  Facts,
  Field,
  FieldGroup,
  LinkButton,
  rich,
  Time,
} from '../../pages/components.tsx'
import { auditUrl, Card, consolePage, Form, FormLink, Problem, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { WebhookState, webhookPath } from '../webhooks/page.tsx'

export interface ScopeForm {
  readonly anyBrand: boolean
  readonly brands: readonly string[]
  readonly operations: readonly string[]
  /** Empty: GLOBAL_LIMIT_PER_MINUTE. */
  readonly perMinute: string
}

export interface ScopeModel {
  readonly form: ScopeForm
  /** The form's initial values as JSON, which it sends back. */
  readonly was: string
  readonly brands: readonly Brand[]
}

export interface AppsModel {
  readonly apps: readonly IssuedApp[]
  readonly configured: readonly string[]
  readonly scopeOf: (appId: string) => AppScope
  readonly webhookOf: (appId: string) => Webhook | undefined
  /** Who revoked all its keys. Undefined: not among the latest entries of the audit log. */
  readonly revokerOf: (appId: string) => string | undefined
  /** Of the form for a new app. */
  readonly appId: string
  readonly scope: ScopeModel
  readonly problem: string | null
}

export interface AppScopeModel {
  readonly appId: string
  readonly scope: ScopeModel
  readonly problem: string | null
}

type Key = IssuedApp['keys'][number]

export function appsPage(
  pageContext: PageContext,
  { apps, configured, scopeOf, webhookOf, revokerOf, appId, scope, problem }: AppsModel,
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
          <Problem text={problem} />
          <Form action="/admin/apps/issue" hidden={{ was: scope.was }} submit="Create app">
            <Field
              label="App ID"
              name="appId"
              required
              isCode
              value={appId}
              hint="1 to 64 visible ASCII characters without a colon."
            />
            <details class="fold" open={problem !== null}>
              <summary>
                Scope <span class="hint">brands, operations, calls per minute</span>
              </summary>
              <div class="folded">
                <ScopeFields model={scope} />
              </div>
            </details>
          </Form>
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

export function appScopePage(pageContext: PageContext, { appId, scope, problem }: AppScopeModel): string {
  return consolePage(
    pageContext,
    { title: `Scope of ${appId}`, section: 'apps', parent: { title: 'Apps', href: '/admin/apps' } },
    <Card hint="What the app may do. A change takes effect immediately.">
      <Problem text={problem} />
      <Form action="/admin/apps/scope" hidden={{ appId, was: scope.was }} submit="Save">
        <ScopeFields model={scope} />
      </Form>
    </Card>,
  )
}

function ScopeFields({ model: { form, brands } }: { model: ScopeModel }) {
  return (
    <>
      <FieldGroup legend="Brands">
        <Choice
          label="Every brand"
          name="anyBrand"
          checked={form.anyBrand}
          hint="Includes brands that you create later. For single brands, clear this box."
        />
        {brands.map(({ slug, displayName }) => (
          <Choice
            key={slug}
            id={`brand-${slug}`}
            label={
              <>
                <code>{slug}</code> <bdi>{displayName}</bdi>
              </>
            }
            name="brands"
            value={slug}
            checked={form.brands.includes(slug)}
          />
        ))}
      </FieldGroup>
      <FieldGroup legend="Operations">
        <Choice
          id="operation-otp"
          label="Codes"
          name="operations"
          value="otp"
          checked={form.operations.includes('otp')}
          hint="`/otp/send`, `/otp/resend` and `/otp/verify`."
        />
        <Choice
          id="operation-notify"
          label="Notifications"
          name="operations"
          value="notify"
          checked={form.operations.includes('notify')}
          hint="`/notify`."
        />
      </FieldGroup>
      <Field
        label="Calls per minute"
        name="perMinute"
        value={form.perMinute}
        hint="1 to 999999. If empty, the setting `GLOBAL_LIMIT_PER_MINUTE` applies."
      />
    </>
  )
}

function Scope({ scope, webhook }: { scope: AppScope; webhook: Webhook | undefined }) {
  const { appId, brands, allowsOtp, allowsNotify, perMinute } = scope
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
          Webhook: webhook ? <WebhookState webhook={webhook} /> : 'none',
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
  readonly webhook: Webhook | undefined
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
            <Form action="/admin/apps/rotate" hidden={{ appId }}>
              <Button small>Add a second key</Button>
            </Form>
          )}
          <Form
            action="/admin/apps/revoke"
            confirm={`Revoke ${appId}? All its keys stop working immediately.`}
            hidden={{ appId }}
          >
            <Button kind="danger" small>
              Revoke
            </Button>
          </Form>
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
      <Form
        action="/admin/apps/revoke-key"
        confirm={`Revoke ${keyName} of ${appId}? It stops working immediately.`}
        hidden={{ appId, key: lastFour }}
      >
        <Button kind="danger" small>
          {lastFour === 'unknown' ? 'Revoke the older key' : `Revoke …${lastFour}`}
        </Button>
      </Form>
    ),
  ]
}
