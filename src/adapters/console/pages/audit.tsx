/** @jsxImportSource preact */
import type { AuditAction, AuditRecord } from '../../../domain/operator/audit.ts'
import { Empty, Time } from '../../pages/components.tsx'
import { utc } from '../../pages/words.ts'
import { Card, consolePage, Pager, Table } from '../components.tsx'
import type { AuditModel, PageContext } from '../models.ts'

const actions: Readonly<Record<AuditAction, string>> = {
  'brand.created': 'Brand created',
  'brand.changed': 'Brand changed',
  'brand.status': 'Brand status changed',
  'brand.template': 'Template registered',
  'app.issued': 'App issued',
  'app.rotated': 'Key rotated',
  'app.key-revoked': 'Key revoked',
  'app.revoked': 'App revoked',
  'request.approved': 'Request approved',
  'request.rejected': 'Request rejected',
  'console.link': 'Sign-in link made',
  'console.login': 'Signed in',
  'console.logout': 'Signed out',
  'console.session-revoked': 'Session ended',
  'data.forgotten': 'Data forgotten',
  'data.restored': 'Database restored',
}

export function auditPage(pageContext: PageContext, { records, next }: AuditModel): string {
  return consolePage(
    pageContext,
    { title: 'Audit log', section: 'audit' },
    <>
      <Card
        class="audit"
        hint="What was changed by a command or in this console, the latest first. Entries are never changed."
      >
        <Table
          caption="Audit log"
          columns={[
            { title: 'What', isHeader: true },
            'On',
            'Details',
            'Who',
            { title: 'When', align: 'end' },
          ]}
          rows={records.map((record) => auditCells(record))}
          empty={
            <Empty title="Nothing was changed yet">
              What you change in this console or with `otpost` is written down here.
            </Empty>
          }
        />
      </Card>
      <Pager first={null} next={next === null ? null : `/admin/audit?before=${next}`} />
    </>,
  )
}

function auditCells({ action, target, details, actor, at }: AuditRecord) {
  const changes = Object.entries(details)
  return [
    actions[action],
    <Target key="target" action={action} target={target} />,
    changes.length === 0 ? null : (
      <dl key="details" class="changes">
        {changes.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    ),
    <span key="who" class="who">
      <code>{actor.name}</code>{' '}
      <span class="hint">{actor.by === 'command' ? 'by command' : 'in the console'}</span>
    </span>,
    // The exact time too, to compare it with other logs.
    <>
      <Time at={at} />
      <br />
      <span class="hint">{utc(at)}</span>
    </>,
  ]
}

/** The target, as a link if the console has its page. */
function Target({ action, target }: { action: AuditAction; target: string }) {
  const [kind] = action.split('.')
  const path = encodeURIComponent(target)
  const href =
    kind === 'brand' ? `/admin/brands/${path}` : kind === 'request' ? `/admin/requests/${path}` : undefined
  return href === undefined ? (
    <code>{target}</code>
  ) : (
    <a href={href}>
      <code>{target}</code>
    </a>
  )
}
