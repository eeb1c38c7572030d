/** @jsxImportSource preact */
import type { IssuedApp } from '../../../domain/operator/operator.ts'
import { Badge, Button, Empty, Field, Time } from '../../pages/components.tsx'
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
            <Empty title="No app has been issued a key">
              An app is whatever calls this server. Issue its key here, or by `otpost app issue APPID`.
            </Empty>
          </Card>
        )}
        {working.map((app) => (
          <App key={app.appId} app={app} />
        ))}
        {revoked.length > 0 && (
          <Card title="Revoked" hint="None of their keys works. Issuing a key brings one back.">
            <Table
              caption="Apps that were revoked"
              columns={['App', 'Issued', 'Revoked']}
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
        <Card title="Issue a key" hint="For an app that has none. The key is shown once.">
          {problem !== null && <Notice tone="bad">{problem}</Notice>}
          <Form action="/admin/apps/issue" submit="Issue">
            <Field
              label="App id"
              name="appId"
              required
              isCode
              value={appId}
              hint="1 to 64 visible ASCII characters, no colon."
            />
          </Form>
        </Card>
        <Card title="Rotating a key">
          <p class="hint">
            Add a second key beside the first; deploy it; revoke the old one when it is no longer used. Both
            work meanwhile, so no call fails.
          </p>
        </Card>
        {configured.length > 0 && (
          <Card title="From the settings" hint="In APP_CREDENTIALS, and changed there.">
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
            confirm={`Revoke ${appId}? None of its keys works from then on, and whatever uses them is refused.`}
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
        Issued <Time at={createdAt} />
        {live.length > 1 && '. Being rotated: revoke the old key when it is no longer used.'}
      </p>
      <Table
        caption={`Keys of ${appId}`}
        columns={['Key', 'Status', 'Made', 'Last used', { title: 'Action', align: 'end', isQuiet: true }]}
        rows={keys.map((key) => keyRow(appId, key, live.length))}
        empty="It has no key."
      />
    </Card>
  )
}

function keyRow(appId: string, key: Key, liveCount: number) {
  const { lastFour, createdAt, revokedAt, lastUsedAt } = key
  // Its last characters were not stored by older versions.
  const keyName = lastFour === 'unknown' ? 'the older key' : `the key …${lastFour}`
  return [
    lastFour === 'unknown' ? 'unknown' : <code>…{lastFour}</code>,
    revokedAt === null ? (
      <Badge tone="good">works</Badge>
    ) : (
      <span>
        <Badge tone="quiet">revoked</Badge> <Time at={revokedAt} />
      </span>
    ),
    <Time at={createdAt} />,
    lastUsedAt === null ? 'never' : <Time at={lastUsedAt} />,
    revokedAt !== null ? null : liveCount < 2 ? (
      <span class="hint">the only one</span>
    ) : (
      <Form
        action="/admin/apps/revoke-key"
        confirm={`Revoke ${keyName} of ${appId}? Whatever still uses it is refused from then on.`}
        hidden={{ appId, key: lastFour }}
      >
        <Button kind="danger" small>
          {lastFour === 'unknown' ? 'Revoke the older' : `Revoke …${lastFour}`}
        </Button>
      </Form>
    ),
  ]
}
