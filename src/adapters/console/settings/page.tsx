/** @jsxImportSource preact */
import type { SettingInForce } from '../../../config/settings.ts'
import type { ConsoleSession } from '../../../domain/accounts/sessions.ts'
import { counted } from '../../../domain/ground/format.ts'
import { Badge, Button, LinkButton, Time } from '../../pages/components.tsx'
import { actions, Card, consolePage, Form, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

interface SessionRow extends Omit<ConsoleSession, 'tokenSha256'> {
  readonly id: string
  /** The person's e-mail address. */
  readonly person: string | null
  readonly mayEnd: boolean
  readonly isOwn: boolean
}

interface SettingsModel {
  readonly settings: readonly SettingInForce[]
  readonly sessions: readonly SessionRow[]
}

export function settingsPage(pageContext: PageContext, model: SettingsModel): string {
  const given = model.settings.filter(({ source }) => source !== 'default')
  const defaults = model.settings.filter(({ source }) => source === 'default')
  return consolePage(
    pageContext,
    { title: 'Settings', section: 'settings' },
    <>
      <Card title="Sessions" hint="Open console sessions. End a session to sign it out.">
        <Table
          caption="Console sessions"
          columns={['Session', 'Person', 'From', 'Started', 'Last active', actions]}
          rows={model.sessions.map((session) => sessionCells(session))}
          empty="No open sessions."
        />
      </Card>
      <Card
        class="settings"
        title="Current settings"
        actions={<LinkButton href="/admin/providers">Providers of SMS</LinkButton>}
        hint="The server read them at start, from the environment or its settings file. To change a setting, change it there and restart the server."
      >
        <Table
          caption="Settings from the environment"
          columns={['Setting', 'Value', 'Meaning']}
          rows={given.map(settingCells)}
          empty="All settings have their default values."
        />
        {defaults.length === 0 ? null : (
          <details>
            <summary>{counted(defaults.length, 'more setting')} with default values</summary>
            <Table
              caption="Settings with default values"
              columns={['Setting', 'Value', 'Meaning']}
              rows={defaults.map(settingCells)}
              empty=""
            />
          </details>
        )}
      </Card>
    </>,
  )
}

export function settingCells({ name, value, meaning }: SettingInForce) {
  const missing = value === null ? 'set, hidden' : 'not set'
  return [
    <code>{name}</code>,
    value ? <code>{value}</code> : <span class="hint">{missing}</span>,
    <span class="hint">{meaning}</span>,
  ]
}

function sessionCells(session: SessionRow) {
  const { id, person, by, clientIp, device, startedAt, lastSeenAt, isOwn, mayEnd } = session
  const way = by === 'password' && person !== null ? 'password and code' : by === 'link' ? 'sign-in link' : by
  return [
    <span class="with-badge">
      <code>{id}</code> {isOwn ? <Badge tone="good">this session</Badge> : null}
    </span>,
    <span class="two-lines">
      {person ?? 'server administrator'}
      <small>{way}</small>
    </span>,
    <span class="two-lines">
      <code>{clientIp}</code>
      <small>{device}</small>
    </span>,
    <Time at={startedAt} />,
    <Time at={lastSeenAt} />,
    mayEnd && (
      <Form
        action={`/admin/sessions/${encodeURIComponent(id)}/revoke`}
        confirm={isOwn ? 'End this session? You are signed out immediately.' : `End the session ${id}?`}
      >
        <Button kind="danger" small>
          End<span class="sr-only"> session {id}</span>
        </Button>
      </Form>
    ),
  ]
}
