/** @jsxImportSource preact */
import type { IssuedApp } from '../../../domain/operator/operator.ts'
import { Badge, Button, Empty, Field, rich, Time } from '../../pages/components.tsx'
import { Card, consolePage, Form, Notice, Table } from '../components.tsx'
import type { AppsModel, PageContext } from '../models.ts'

type Key = IssuedApp['keys'][number]

export function appsPage(pageContext: PageContext, { apps, configured, appId, problem }: AppsModel): string {
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
          <App key={app.appId} app={app} />
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
                <bdi class="breaks">{app.appId}</bdi>,
                <Time at={app.createdAt} />,
                app.revokedAt === null ? '–' : <Time at={app.revokedAt} />,
              ])}
              empty="None."
            />
          </Card>
        )}
      </div>
      <div class="stack">
        <Card title="Create an app" hint="The next page shows its API key once.">
          {problem !== null && <Notice tone="bad">{rich(problem)}</Notice>}
          <Form action="/admin/apps/issue" submit="Create app">
            <Field
              label="App ID"
              name="appId"
              required
              isCode
              value={appId}
              hint="1 to 64 visible ASCII characters without a colon."
            />
          </Form>
        </Card>
        <Card title="Rotate a key">
          <p class="hint">
            Add a second key and deploy it. When the previous key is no longer used, revoke it. Both keys are
            valid until then.
          </p>
        </Card>
        {configured.length > 0 && (
          <Card title="Configured apps" hint="From the setting `APP_CREDENTIALS`. Change them there.">
            <ul class="chips">
              {configured.map((id) => (
                <li key={id}>
                  <bdi>{id}</bdi>
                </li>
              ))}
            </ul>
          </Card>
        )}
      </div>
    </div>,
  )
}

function App({ app }: { app: IssuedApp }) {
  const { appId, keys, createdAt } = app
  const live = keys.filter(({ revokedAt }) => revokedAt === null)
  return (
    <Card
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
        <Badge tone="quiet">revoked</Badge> <Time at={revokedAt} />
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
