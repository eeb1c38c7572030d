/** @jsxImportSource preact */
import { Badge, Button, Card, Code, ConsolePage, document, Facts, Form, Table, Time } from '../components.tsx'
import type { SessionRow, SettingsModel, Shell } from '../models.ts'

/** What is in force, and who is signed in. */
export function settingsPage(shell: Shell, model: SettingsModel): string {
  return document(
    { title: 'Settings' },
    <ConsolePage shell={shell} section="settings" title="Settings">
      <Card
        title="Sessions"
        hint="Who is signed in to this console. A session that is ended has to sign in again."
      >
        <Table
          caption="Sessions of the console"
          columns={[
            { title: 'Session' },
            { title: 'Signed in with' },
            { title: 'Since' },
            { title: 'Last seen' },
            { title: 'Ends' },
            { title: 'Actions', align: 'end', isQuiet: true },
          ]}
          rows={model.sessions.map((session) => sessionCells(shell, session))}
          empty="Nobody is signed in."
        />
      </Card>
      <Card
        class="settings"
        title="Settings in force"
        hint="Read from the environment when the server started. To change one, change the environment and start it again."
      >
        <Table
          caption="Settings in force"
          columns={[{ title: 'Setting' }, { title: 'Value' }, { title: 'From' }]}
          rows={model.settings.map(({ name, value, source }) => [
            <Code key="name">{name}</Code>,
            value === null ? (
              <span key="value" class="hint">
                set, and hidden
              </span>
            ) : value === '' ? (
              <span key="value" class="hint">
                not set
              </span>
            ) : (
              <Code key="value">{value}</Code>
            ),
            source === 'environment' ? 'environment' : <span class="hint">default</span>,
          ])}
          empty="There are no settings."
        />
      </Card>
      <Card title="Server">
        <Facts
          entries={[
            ['Version', shell.version],
            ['Bun', model.bun],
            ['Database', <Code key="file">{model.databaseFile}</Code>],
          ]}
        />
      </Card>
    </ConsolePage>,
  )
}

function sessionCells(shell: Shell, { id, by, startedAt, lastSeenAt, expiresAt, isOwn }: SessionRow) {
  return [
    <span key="session" class="with-badge">
      <Code>{id}</Code> {isOwn ? <Badge tone="good">this one</Badge> : null}
    </span>,
    by === 'password' ? 'password' : 'link of the command',
    <Time key="since" at={startedAt} now={shell.now} />,
    <Time key="seen" at={lastSeenAt} now={shell.now} />,
    <Time key="ends" at={expiresAt} now={shell.now} />,
    <Form
      key="end"
      shell={shell}
      action={`/admin/sessions/${encodeURIComponent(id)}/revoke`}
      confirm={isOwn ? 'End your own session? You will have to sign in again.' : `End the session ${id}?`}
    >
      <Button kind="danger" small>
        End<span class="sr-only"> session {id}</span>
      </Button>
    </Form>,
  ]
}
