import type { SettingInForce } from '../../../config/settings.ts'
/** @jsxImportSource preact */
import { Badge, Button, Facts, Time } from '../../pages/components.tsx'
import { counted } from '../../pages/words.ts'
import { Card, consolePage, Form, Table } from '../components.tsx'
import type { PageContext, SessionRow, SettingsModel } from '../models.ts'

export function settingsPage(pageContext: PageContext, model: SettingsModel): string {
  const given = model.settings.filter(({ source }) => source === 'environment')
  const defaults = model.settings.filter(({ source }) => source === 'default')
  return consolePage(
    pageContext,
    { title: 'Settings', section: 'settings' },
    <>
      <Card
        title="Sessions"
        hint="Who is signed in to this console. A session that is ended has to sign in again."
      >
        <Table
          caption="Sessions of the console"
          columns={[
            'Session',
            'Signed in with',
            'Since',
            'Last seen',
            'Ends',
            { title: 'Actions', align: 'end', isQuiet: true },
          ]}
          rows={model.sessions.map((session) => sessionCells(session))}
          empty="Nobody is signed in."
        />
      </Card>
      <Card
        class="settings"
        title="Settings in force"
        hint="Read from the environment when the server started. To change one, change the environment and start it again."
      >
        <Table
          caption="Settings of the environment"
          columns={['Setting', 'Value']}
          rows={given.map(settingCells)}
          empty="The environment sets nothing: every setting has its default."
        />
        {defaults.length === 0 ? null : (
          <details>
            <summary>{counted(defaults.length, 'more setting')} at default</summary>
            <Table
              caption="Settings at their defaults"
              columns={['Setting', 'Value']}
              rows={defaults.map(settingCells)}
              empty=""
            />
          </details>
        )}
      </Card>
      <Card title="Server">
        <Facts
          entries={{
            Version: pageContext.version,
            Bun: model.bun,
            Database: <code>{model.databaseName}</code>,
          }}
        />
      </Card>
    </>,
  )
}

function settingCells({ name, value }: SettingInForce) {
  const missing = value === null ? 'set, and hidden' : 'not set'
  return [<code>{name}</code>, value ? <code>{value}</code> : <span class="hint">{missing}</span>]
}

function sessionCells({ id, by, startedAt, lastSeenAt, expiresAt, isOwn }: SessionRow) {
  return [
    <span class="with-badge">
      <code>{id}</code> {isOwn ? <Badge tone="good">this one</Badge> : null}
    </span>,
    by === 'password' ? 'password' : 'link of the command',
    <Time at={startedAt} />,
    <Time at={lastSeenAt} />,
    <Time at={expiresAt} />,
    <Form
      action={`/admin/sessions/${encodeURIComponent(id)}/revoke`}
      confirm={isOwn ? 'End your own session? You will have to sign in again.' : `End the session ${id}?`}
    >
      <Button kind="danger" small>
        End<span class="sr-only"> session {id}</span>
      </Button>
    </Form>,
  ]
}
